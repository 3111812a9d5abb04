// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two clients of one server, each of which goes to a network namespace of its own while it is
 * connected: neither's connection ends, and what they send still comes.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"

enum { SKIP = 77, CLIENTS = 2 };

/* One side of a connection: it has a byte to send and one to receive into. */
struct side {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t out, in;
};

struct client {
	pid_t pid;
	int to, from;
};

static void tell(int fd, const void *p, size_t size)
{
	if (write(fd, p, size) != (ssize_t)size)
		die("write");
}

static void hear(int fd, void *p, size_t size)
{
	if (read(fd, p, size) != (ssize_t)size)
		die("the other side ended");
}

static void expect_byte(struct side *s)
{
	s->mr = rdma_reg_msgs(s->id, &s->out, 2);
	if (!s->mr || rdma_post_recv(s->id, NULL, &s->in, 1, s->mr))
		die("rdma_post_recv");
}

static void send_byte(struct side *s, uint8_t byte)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	s->out = byte;
	if (rdma_post_send(s->id, NULL, &s->out, 1, s->mr, IBV_SEND_SIGNALED))
		die("rdma_post_send");
	CHECK_EQ(rdma_get_send_comp(s->id, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
}

static uint8_t await_byte(struct side *s)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	CHECK_EQ(rdma_get_recv_comp(s->id, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	return s->in;
}

static void end(struct side *s)
{
	CHECK_EQ(rdma_dereg_mr(s->mr), 0);
	cm_end(s->id);
}

static int run_client(int in, int out)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_event_channel *ch;
	struct side s;
	uint16_t port;
	uint8_t byte;

	hear(in, &port, sizeof port);
	ch = cm_channel();
	s.id = cm_resolved(ch, cm_addr4(port), true);
	expect_byte(&s);
	if (rdma_connect(s.id, &param))
		die("rdma_connect");
	cm_expect(ch, RDMA_CM_EVENT_ESTABLISHED);
	if (unshare(CLONE_NEWNET))
		die("unshare");
	tell(out, "", 1);
	hear(in, &byte, 1);
	send_byte(&s, byte);
	CHECK_EQ(await_byte(&s), byte + 1);
	CHECK(!cm_readable(ch, 0));
	end(&s);
	return check_failures() ? 1 : 0;
}

static void start_client(struct client *c)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		die("pipe");
	c->pid = fork();
	if (c->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exit(run_client(to[0], from[1]));
	}
	close(to[0]);
	close(from[1]);
	c->to = to[1];
	c->from = from[0];
}

/* Until the client is connected and has left our namespace. */
static void serve(struct rdma_event_channel *ch, struct client *c, uint16_t port, struct side *s)
{
	struct rdma_cm_event *e;
	char moved;

	tell(c->to, &port, sizeof port);
	e = cm_take(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	s->id = e->id;
	rdma_ack_cm_event(e);
	cm_make_qp(s->id);
	expect_byte(s);
	if (rdma_accept(s->id, NULL))
		die("rdma_accept");
	cm_expect(ch, RDMA_CM_EVENT_ESTABLISHED);
	hear(c->from, &moved, 1);
}

static bool may_unshare(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(unshare(CLONE_NEWNET) != 0);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
	struct rdma_event_channel *ch;
	struct client client[CLIENTS];
	struct side side[CLIENTS];
	struct rdma_cm_id *listener;
	uint16_t port;
	int status;

	if (!may_unshare()) {
		puts("needs root, to make network namespaces");
		return SKIP;
	}
	for (int i = 0; i < CLIENTS; i++)
		start_client(&client[i]);
	ch = cm_channel();
	listener = cm_listener(ch, 0, &port);
	for (int i = 0; i < CLIENTS; i++)
		serve(ch, &client[i], port, &side[i]);
	CHECK(!cm_readable(ch, 0));
	for (int i = 0; i < CLIENTS; i++) {
		uint8_t byte = 10 * i;

		tell(client[i].to, &byte, 1);
		CHECK_EQ(await_byte(&side[i]), byte);
		send_byte(&side[i], byte + 1);
		if (waitpid(client[i].pid, &status, 0) != client[i].pid)
			die("waitpid");
		check_child(status);
	}
	for (int i = 0; i < CLIENTS; i++)
		end(&side[i]);
	cm_end(listener);
	rdma_destroy_event_channel(ch);
	return check_result();
}
