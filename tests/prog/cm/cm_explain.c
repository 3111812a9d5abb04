// SPDX-License-Identifier: BSD-3-Clause
/*
 * rdma_cm says in the log why a call is refused, or an event tells of a failure.  With "node": on a
 * node of a simulated subnet.  With "hint": a verb is refused, too, and nobody asked for a log.
 * With "cleanup": nobody did, and there is nothing to say.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"

enum { WAIT_MS = 2000, SERVER_REASON = 28, OTHER = 65534, LOW_PORT = 80 };

static char log_file[256];

/* Exactly one line has the text. */
static void told(const char *text)
{
	check_case("the line: %s", text);
	CHECK_EQ(lines_with(log_file, text), 1);
}

static void new_id(struct rdma_event_channel *ch)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct rdma_cm_id *id = cm_id(ch), *other;
	struct sockaddr_in sa = {.sin_family = 77};
	int value = 1;

	CHECK_FAILS(rdma_disconnect(id), EINVAL);
	told("rdma_disconnect refused: the id is new, and the call is for one that is connected, "
	     "or was");
	CHECK_FAILS(rdma_reject(id, NULL, 0), EINVAL);
	told("rdma_reject refused: the id is new, and the call is for one that is that of a "
	     "request");
	CHECK_FAILS(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
	told("rdma_notify refused: the id is new, and the call is for one that has accepted");
	CHECK_FAILS(rdma_create_qp(id, NULL, &init), EINVAL);
	told("rdma_create_qp refused: the id has no device yet");
	CHECK_FAILS(rdma_get_request(id, &other), EINVAL);
	told("rdma_get_request refused: the id has an event channel of the program's");
	CHECK_FAILS(rdma_bind_addr(id, (struct sockaddr *)&sa), EAFNOSUPPORT);
	told("an address of family 77 refused");
	CHECK_FAILS(rdma_create_id(ch, &other, NULL, 0x77), EPROTONOSUPPORT);
	told("rdma_create_id refused: there is no port space 0x77");
	CHECK_FAILS(rdma_set_option(id, RDMA_OPTION_ID, 99, &value, sizeof value), ENOSYS);
	told("rdma_set_option refused: there is no option 99 of RDMA_OPTION_ID");
	CHECK_FAILS(rdma_set_option(id, 9, 9, &value, sizeof value), ENOSYS);
	told("rdma_set_option refused: there is no level 9");
	CHECK_FAILS(rdma_leave_multicast(id, cm_addr4(0)), EADDRNOTAVAIL);
	told("rdma_leave_multicast refused: the id has not joined 127.0.0.1");
	CHECK_EQ(rdma_destroy_id(id), 0);
}

static void addresses(struct rdma_event_channel *ch, uint16_t port)
{
	struct rdma_cm_id *id = cm_id(ch);
	struct sockaddr_in here = *(struct sockaddr_in *)cm_addr4(port);
	char line[100];

	CHECK_FAILS(rdma_bind_addr(id, cm_addr4(port)), EADDRINUSE);
	snprintf(line, sizeof line, "rdma_bind_addr refused: another id of this fabric has port %u",
		port);
	told(line);
	if (has_ipv6()) {
		CHECK_FAILS(rdma_resolve_addr(id, cm_addr6(0), (struct sockaddr *)&here, WAIT_MS),
			EINVAL);
		told("rdma_resolve_addr refused: the source is of IPv6, the destination of IPv4");
	}
	CHECK_EQ(rdma_destroy_id(id), 0);
}

static unsigned first_free_for_all(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
	unsigned start = 1024;

	if (f && fscanf(f, "%u", &start) != 1)
		start = 1024;
	if (f)
		fclose(f);
	return start;
}

/* As one who may not have low ports, where not all may. */
static void low_port(void)
{
	unsigned start = first_free_for_all();
	char line[100];
	int status;
	pid_t pid;

	if (start <= LOW_PORT)
		return;
	pid = fork();
	if (pid == 0) {
		struct rdma_cm_id *own = cm_id(cm_channel());

		if (geteuid() == 0 && setresuid(OTHER, OTHER, OTHER))
			_exit(1);
		_exit(rdma_bind_addr(own, cm_addr4(LOW_PORT)) && errno == EACCES ? 0 : 1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	snprintf(line, sizeof line, "rdma_bind_addr refused: port %u is below %u, for which",
		LOW_PORT, start);
	told(line);
}

static void private_data(struct rdma_event_channel *ch, uint16_t port)
{
	struct rdma_cm_id *id = cm_resolved(ch, cm_addr4(port), true);
	static const char data[200];
	struct rdma_conn_param param = {.private_data = data, .private_data_len = sizeof data};

	CHECK_FAILS(rdma_connect(id, &param), EINVAL);
	told("private data of 200 bytes refused: this message has room for 56");
	param.private_data = NULL;
	param.private_data_len = 1;
	CHECK_FAILS(rdma_connect(id, &param), EINVAL);
	told("private data of 1 bytes is missing");
	param.private_data_len = 0;
	param.initiator_depth = 254;
	CHECK_FAILS(rdma_connect(id, &param), EINVAL);
	told("responder_resources or initiator_depth of 254 refused");
	cm_end(id);
}

static void out_of_order(struct rdma_event_channel *ch, uint16_t port)
{
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *id = cm_id(ch);

	CHECK_FAILS(rdma_resolve_route(id, WAIT_MS), EINVAL);
	told("rdma_resolve_route refused: the id is new, and the call is for one that has its "
	     "address "
	     "resolved");
	CHECK_FAILS(rdma_connect(id, &param), EINVAL);
	told("rdma_connect refused: the id is new, and the call is for one that has its route "
	     "resolved");
	CHECK_FAILS(rdma_accept(id, &param), EINVAL);
	told("rdma_accept refused: the id is new, and the call is for one that is that of a "
	     "request");
	CHECK_FAILS(rdma_establish(id), EINVAL);
	told("rdma_establish refused: the id is new");
	CHECK_EQ(rdma_bind_addr(id, cm_addr4(0)), 0);
	CHECK_FAILS(rdma_bind_addr(id, cm_addr4(0)), EINVAL);
	told("rdma_bind_addr refused: the id has an address, and the call is for one that is new");
	CHECK_EQ(rdma_resolve_addr(id, NULL, cm_addr4(port), WAIT_MS), 0);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	CHECK_FAILS(rdma_resolve_addr(id, NULL, cm_addr4(port), WAIT_MS), EINVAL);
	told("rdma_resolve_addr refused: the id has its address resolved, not its route");
	CHECK_FAILS(rdma_listen(id, 1), EINVAL);
	told("rdma_listen refused: the id has its address resolved, not its route");
	CHECK_EQ(rdma_destroy_id(id), 0);
}

/* A port at which nobody listens any more. */
static void nobody_listens(struct rdma_event_channel *ch)
{
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *id;
	char line[200];
	uint16_t port;

	rdma_destroy_id(cm_listener(ch, 1, &port));
	id = cm_resolved(ch, cm_addr4(port), true);
	CHECK_EQ(rdma_connect(id, &param), 0);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_REJECTED), 8);
	snprintf(line, sizeof line,
		"the connection to 127.0.0.1 port %u is rejected: nobody listens there in this "
		"port "
		"space (reason 8)",
		port);
	told(line);
	told("(reason 8); rdma_cm stays within a fabric, and here live, too: ");
	cm_end(id);
}

/* The same of datagrams. */
static void nobody_takes_datagrams(struct rdma_event_channel *ch)
{
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *id;

	CHECK_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	CHECK_EQ(rdma_resolve_addr(id, NULL, cm_addr4(9), WAIT_MS), 0);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	CHECK_EQ(rdma_resolve_route(id, WAIT_MS), 0);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
	CHECK_EQ(rdma_connect(id, &param), 0);
	cm_expect(ch, RDMA_CM_EVENT_UNREACHABLE);
	told("if nobody listens there; rdma_cm stays within a fabric, and here live, too: ");
	rdma_destroy_id(id);
}

static void rejects(struct rdma_event_channel *ch)
{
	struct rdma_event_channel *lch = cm_channel();
	struct rdma_conn_param param = {0};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id, *request;
	uint16_t port;
	struct rdma_cm_id *listener = cm_listener(lch, 1, &port);

	id = cm_resolved(ch, cm_addr4(port), true);
	CHECK_EQ(rdma_connect(id, &param), 0);
	event = cm_take(lch, RDMA_CM_EVENT_CONNECT_REQUEST);
	request = event->id;
	rdma_ack_cm_event(event);
	CHECK_EQ(rdma_reject(request, NULL, 0), 0);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_REJECTED), SERVER_REASON);
	told("is rejected: the other side's program said rdma_reject, or ended (reason 28)");
	cm_end(id);
	rdma_destroy_id(request);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(lch);
}

static void no_way(struct rdma_event_channel *ch)
{
	struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(4711)};
	struct rdma_cm_id *id = cm_id(ch);

	inet_pton(AF_INET, "203.0.113.1", &there.sin_addr); /* of documentation */
	CHECK_FAILS(rdma_bind_addr(id, (struct sockaddr *)&there), EADDRNOTAVAIL);
	told("rdma_bind_addr: 203.0.113.1 is no address of this device");
	CHECK_FAILS(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, WAIT_MS), ENETUNREACH);
	told("no way to 203.0.113.1: it is no address of this machine, and WEFT_WIRE is never");
	rdma_destroy_id(id);
}

static void on_a_node(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id = cm_id(ch);

	CHECK_FAILS(rdma_bind_addr(id, cm_addr4(0)), EADDRNOTAVAIL);
	told("rdma_bind_addr: 127.0.0.1 is no address of this device: a node of a simulated subnet "
	     "has no IP address");
	rdma_destroy_id(id);
}

/* What programs call as they clean up. */
static void cleanup(void)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id;

	CHECK_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	CHECK_EQ(rdma_bind_addr(id, cm_addr4(0)), 0);
	CHECK_FAILS(rdma_disconnect(id), EINVAL);
	CHECK_FAILS(rdma_reject(id, NULL, 0), EINVAL);
	CHECK_EQ(rdma_destroy_id(id), 0);
	id = cm_id(ch);
	CHECK_FAILS(rdma_disconnect(id), EINVAL);
	CHECK_FAILS(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

static void hint(void)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *id = cm_id(ch);
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;

	CHECK_FAILS(rdma_connect(id, &param), EINVAL);
	CHECK_EQ(rdma_bind_addr(id, cm_addr4(0)), 0);
	channel = ibv_create_comp_channel(id->verbs);
	cq = ibv_create_cq(id->verbs, 1, NULL, channel, 0);
	CHECK_EQ(ibv_destroy_comp_channel(channel), EBUSY);
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	CHECK_EQ(ibv_destroy_comp_channel(channel), 0);
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *ch;
	char how[300];
	uint16_t port;

	if (argc > 1 && strcmp(argv[1], "node")) {
		strcmp(argv[1], "hint") ? cleanup() : hint();
		return check_result();
	}
	snprintf(log_file, sizeof log_file, "%s/log", getenv("WEFT_RUNTIME_DIR"));
	snprintf(how, sizeof how, "info:%s", log_file);
	setenv("WEFT_LOG", how, 1);
	ch = cm_channel();
	if (argc > 1) {
		on_a_node(ch);
	} else {
		struct rdma_cm_id *listener = cm_listener(ch, 1, &port);

		new_id(ch);
		addresses(ch, port);
		private_data(ch, port);
		low_port();
		out_of_order(ch, port);
		rdma_destroy_id(listener);
		nobody_listens(ch);
		nobody_takes_datagrams(ch);
		rejects(ch);
		no_way(ch);
	}
	rdma_destroy_event_channel(ch);
	return check_result();
}
