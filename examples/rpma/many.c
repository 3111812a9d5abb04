// SPDX-License-Identifier: BSD-3-Clause
/*
 * A server with one thread and many clients: every fd of librpma is non-blocking and in one epoll.
 * Each client adds its number to a table in the server's memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common.h"

enum { CLIENTS = 8, EVENTS = 16 };

struct server {
	struct rpma_ep *ep;
	int epoll;
	int connected, closed;
	struct offer offer;
};

static void watch(struct server *s, int fd, void *what)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = what};

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ||
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e)) {
		perror("epoll");
		exit(1);
	}
}

/* Takes requests until there is none; what answers them is an event of the new connection. */
static void take_requests(struct server *s)
{
	struct rpma_conn_private_data pdata = {&s->offer, sizeof s->offer};
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	int ret, fd;

	while (!(ret = rpma_ep_next_conn_req(s->ep, NULL, &req))) {
		need(rpma_conn_req_connect(&req, &pdata, &conn), "rpma_conn_req_connect");
		need(rpma_conn_get_event_fd(conn, &fd), "rpma_conn_get_event_fd");
		watch(s, fd, conn);
	}
	/* Other libraries say RPMA_E_PROVIDER where nothing is there. */
	if (ret != RPMA_E_NO_EVENT && errno != EAGAIN)
		need(ret, "rpma_ep_next_conn_req");
}

static void take_event(struct server *s, struct rpma_conn *conn)
{
	enum rpma_conn_event event;
	int fd;

	need(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	if (event == RPMA_CONN_ESTABLISHED) {
		s->connected++;
		return;
	}
	s->closed++;
	need(rpma_conn_get_event_fd(conn, &fd), "rpma_conn_get_event_fd");
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, fd, NULL);
	(void)rpma_conn_disconnect(conn);
	need(rpma_conn_delete(&conn), "rpma_conn_delete");
}

static void serve(struct rpma_peer *peer, const struct side *side)
{
	struct server s = {.epoll = epoll_create1(EPOLL_CLOEXEC)};
	int *table = allocate(CLIENTS * sizeof *table);
	struct epoll_event events[EVENTS];
	struct rpma_mr_local *mr;
	int fd, sum = 0;

	need(rpma_mr_reg(peer, table, CLIENTS * sizeof *table, RPMA_MR_USAGE_WRITE_DST, &mr),
		"rpma_mr_reg");
	make_offer(&s.offer, mr, 0);
	s.ep = listen_at(peer, side);
	need(rpma_ep_get_fd(s.ep, &fd), "rpma_ep_get_fd");
	watch(&s, fd, NULL);
	while (s.closed < CLIENTS) {
		int n = epoll_wait(s.epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++)
			if (events[i].data.ptr)
				take_event(&s, events[i].data.ptr);
			else
				take_requests(&s);
	}
	for (int i = 0; i < CLIENTS; i++)
		sum += table[i];
	printf("%d clients, sum %d\n", s.connected, sum);
	close(s.epoll);
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	need(rpma_ep_shutdown(&s.ep), "rpma_ep_shutdown");
}

/* All clients in one process; each could be one. */
static void write_all(struct rpma_peer *peer, const struct side *side)
{
	int *numbers = allocate(CLIENTS * sizeof *numbers);
	struct rpma_conn *conns[CLIENTS];
	struct rpma_mr_local *mr;

	need(rpma_mr_reg(peer, numbers, CLIENTS * sizeof *numbers, RPMA_MR_USAGE_WRITE_SRC, &mr),
		"rpma_mr_reg");
	for (int i = 0; i < CLIENTS; i++)
		conns[i] = connect_to(peer, side, NULL);
	for (int i = 0; i < CLIENTS; i++) {
		struct rpma_mr_remote *table = take_offer(conns[i]);
		size_t at = (size_t)i * sizeof *numbers;

		numbers[i] = i + 1;
		need(rpma_write(conns[i], table, at, mr, at, sizeof *numbers,
			     RPMA_F_COMPLETION_ALWAYS, NULL),
			"rpma_write");
		wait_conn(conns[i]);
		need(rpma_mr_remote_delete(&table), "rpma_mr_remote_delete");
		end_client(&conns[i]);
	}
	printf("%d clients done\n", CLIENTS);
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
}

int main(int argc, char **argv)
{
	struct side side = parse(argc, argv, 0, "");
	struct rpma_peer *peer = open_peer(&side);

	if (side.is_server)
		serve(peer, &side);
	else
		write_all(peer, &side);
	need(rpma_peer_delete(&peer), "rpma_peer_delete");
	return 0;
}
