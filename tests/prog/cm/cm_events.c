// SPDX-License-Identifier: BSD-3-Clause
/* Connections within one process: which events come in which order, and what is refused. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"

/* A refusal that got lost comes after 4 s, each time; one may wait for a CPU so long. */
enum { SOON_MS = 3000, TRIES = 5 };

static struct rdma_event_channel *ach, *pch;

static void fd_is_real(void)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id = cm_id(ach);

	check_case("fd");
	CHECK(!cm_readable(ach, 0));
	CHECK_EQ(fcntl(ach->fd, F_SETFL, fcntl(ach->fd, F_GETFL) | O_NONBLOCK), 0);
	CHECK_FAILS(rdma_get_cm_event(ach, &e), EAGAIN);
	CHECK_EQ(rdma_resolve_addr(id, NULL, cm_addr4(1), 100), 0);
	CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	CHECK(!cm_readable(ach, 0));
	CHECK_FAILS(rdma_get_cm_event(ach, &e), EAGAIN);
	CHECK_EQ(fcntl(ach->fd, F_SETFL, fcntl(ach->fd, F_GETFL) & ~O_NONBLOCK), 0);
	CHECK(id->verbs && id->port_num == 1 && id->pd);
	cm_end(id);
	/* Events of an id that is gone do not make the fd readable. */
	id = cm_id(ach);
	CHECK_EQ(rdma_resolve_addr(id, NULL, cm_addr4(1), 100), 0);
	CHECK(cm_readable(ach, 0));
	cm_end(id);
	CHECK(!cm_readable(ach, 0));
}

static _Atomic int signals;

static void count_signal(int sig)
{
	(void)sig;
	signals++;
}

/* Lets some signals go by, then makes an event. */
static void *event_after_signals(void *arg)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	signals = 0;
	while (signals < 50)
		usleep(1000);
	CHECK_EQ(rdma_resolve_addr(arg, NULL, cm_addr4(1), 100), 0);
	return NULL;
}

/* A handler with SA_RESTART does not end the wait for an event, one without it does. */
static void signalled(void)
{
	const struct itimerval each_ms = {{0, 1000}, {0, 1000}}, never = {0};
	struct sigaction sa = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
	struct rdma_cm_id *id = cm_id(ach);
	struct rdma_cm_event *e = NULL;
	pthread_t t;

	check_case("signals");
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &each_ms, NULL);
	if (pthread_create(&t, NULL, event_after_signals, id))
		die("pthread_create");
	CHECK_EQ(rdma_get_cm_event(ach, &e), 0);
	pthread_join(t, NULL);
	if (!e)
		cm_expect(ach, RDMA_CM_EVENT_ADDR_RESOLVED);
	else
		CHECK_EQ(rdma_ack_cm_event(e), 0);
	sa.sa_flags = 0;
	sigaction(SIGALRM, &sa, NULL);
	CHECK_FAILS(rdma_get_cm_event(ach, &e), EINTR);
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL); /* children set an alarm */
	cm_end(id);
}

/* A child need not acknowledge what its parent has not. */
static void inherited(void)
{
	struct rdma_cm_id *id = cm_id(ach);
	struct rdma_cm_event *e;
	int status;
	pid_t pid;

	check_case("inherited");
	CHECK_EQ(rdma_resolve_addr(id, NULL, cm_addr4(1), 100), 0);
	CHECK_EQ(rdma_get_cm_event(ach, &e), 0);
	pid = fork();
	if (!pid) {
		alarm(20);
		_exit(rdma_destroy_id(id) ? 1 : 0);
	}
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(rdma_ack_cm_event(e), 0);
	cm_end(id);
}

static void life(bool qp)
{
	struct rdma_cm_id *listener;
	struct cm_conn c;
	uint16_t port;

	check_case("life, %s QP", qp ? "with" : "without");
	listener = cm_listener(pch, 0, &port);
	c = cm_connect(ach, pch, port, qp);
	CHECK(c.active->verbs == c.passive->verbs);
	CHECK_EQ(ntohs(rdma_get_dst_port(c.active)), port);
	CHECK_EQ(rdma_get_src_port(c.active), rdma_get_dst_port(c.passive));
	CHECK_EQ(ntohs(rdma_get_src_port(c.passive)), port);
	if (qp)
		CHECK_EQ(c.active->qp->state, IBV_QPS_RTS);
	CHECK_EQ(rdma_disconnect(c.active), 0);
	CHECK_EQ(cm_expect(pch, RDMA_CM_EVENT_DISCONNECTED), 0);
	CHECK(!cm_readable(ach, 20)); /* the answer is the other side's to give */
	CHECK_EQ(rdma_disconnect(c.passive), 0);
	CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_DISCONNECTED), 0);
	if (qp)
		CHECK_EQ(c.active->qp->state, IBV_QPS_ERR);
	cm_end(c.active);
	cm_end(c.passive);
	cm_end(listener);
	CHECK(!cm_readable(ach, 20) && !cm_readable(pch, 0));
}

/* The time of waiting is the path's ack timeout, on both sides, as its client set it. */
static void time_wait(void)
{
	struct rdma_conn_param p = {.retry_count = 7, .rnr_retry_count = 7, .qp_num = 77};
	struct rdma_cm_id *listener, *id, *passive;
	struct rdma_cm_event *e;
	uint8_t timeout = 8; /* 1 ms */
	uint16_t port;

	check_case("the time of waiting");
	listener = cm_listener(pch, 0, &port);
	id = cm_resolved(ach, cm_addr4(port), false);
	CHECK_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), 0);
	CHECK_EQ(rdma_connect(id, &p), 0);
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = e->id;
	rdma_ack_cm_event(e);
	CHECK_EQ(rdma_accept(passive, &p), 0);
	cm_expect(ach, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK_EQ(rdma_establish(id), 0);
	cm_expect(pch, RDMA_CM_EVENT_ESTABLISHED);
	CHECK_EQ(rdma_disconnect(id), 0);
	cm_expect(pch, RDMA_CM_EVENT_DISCONNECTED);
	CHECK_EQ(rdma_disconnect(passive), 0);
	cm_expect(ach, RDMA_CM_EVENT_DISCONNECTED);
	CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_TIMEWAIT_EXIT), 0);
	CHECK_EQ(cm_expect(pch, RDMA_CM_EVENT_TIMEWAIT_EXIT), 0);
	cm_end(id);
	cm_end(passive);
	cm_end(listener);
}

static void private_data(void)
{
	struct rdma_conn_param p = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_id *listener, *id, *passive;
	struct rdma_cm_event *e;
	uint8_t data[256];
	uint16_t port;

	check_case("private data");
	for (int i = 0; i < 256; i++)
		data[i] = i;
	listener = cm_listener(pch, 0, &port);
	id = cm_resolved(ach, cm_addr4(port), true);
	p.private_data = data;
	p.private_data_len = 57;
	CHECK_FAILS(rdma_connect(id, &p), EINVAL);
	p.private_data_len = 56;
	CHECK_EQ(rdma_connect(id, &p), 0);
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(e->listen_id == listener);
	CHECK_EQ(e->param.conn.private_data_len, 56);
	CHECK(!memcmp(e->param.conn.private_data, data, 56));
	passive = e->id;
	rdma_ack_cm_event(e);
	cm_make_qp(passive);
	p.private_data_len = 197;
	CHECK_FAILS(rdma_accept(passive, &p), EINVAL);
	p.private_data_len = 196;
	CHECK_EQ(rdma_accept(passive, &p), 0);
	e = cm_take(ach, RDMA_CM_EVENT_ESTABLISHED);
	CHECK_EQ(e->param.conn.private_data_len, 196);
	CHECK(!memcmp(e->param.conn.private_data, data, 196));
	rdma_ack_cm_event(e);
	cm_expect(pch, RDMA_CM_EVENT_ESTABLISHED);
	cm_end(id);
	cm_expect(pch, RDMA_CM_EVENT_DISCONNECTED); /* destroyed without a word */
	cm_end(passive);

	id = cm_resolved(ach, cm_addr4(port), true);
	CHECK_EQ(rdma_connect(id, NULL), 0);
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK_EQ(e->param.conn.retry_count, 7);
	passive = e->id;
	rdma_ack_cm_event(e);
	CHECK_FAILS(rdma_reject(passive, data, 149), EINVAL);
	CHECK_EQ(rdma_reject(passive, data, 148), 0);
	e = cm_take(ach, RDMA_CM_EVENT_REJECTED);
	CHECK_EQ(e->status, 28);
	CHECK_EQ(e->param.conn.private_data_len, 148);
	CHECK(!memcmp(e->param.conn.private_data, data, 148));
	rdma_ack_cm_event(e);
	cm_end(id);
	cm_end(passive);
	cm_end(listener);
}

/* A request whose client gave up: no event comes of it, which the program could not place yet. */
static void given_up(void)
{
	struct rdma_cm_id *listener, *id, *passive, *second;
	struct rdma_cm_event *e;
	uint16_t port;

	check_case("given up");
	listener = cm_listener(pch, 0, &port);
	id = cm_resolved(ach, cm_addr4(port), true);
	CHECK_EQ(rdma_connect(id, NULL), 0);
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = e->id;
	rdma_ack_cm_event(e);
	cm_end(id);
	/* What came of it would come before the next request. */
	id = cm_resolved(ach, cm_addr4(port), true);
	CHECK_EQ(rdma_connect(id, NULL), 0);
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	second = e->id;
	rdma_ack_cm_event(e);
	cm_make_qp(passive);
	CHECK_FAILS(rdma_accept(passive, NULL), EINVAL);
	cm_end(passive);
	cm_end(second);
	CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_REJECTED), 28);
	cm_end(id);
	cm_end(listener);
}

/* How long it takes to be refused by a port where nobody listens, in ms. */
static double call_nobody(void)
{
	struct rdma_cm_id *id = cm_resolved(ach, cm_addr4(9), true);
	double took = now_ms();

	CHECK_EQ(rdma_connect(id, NULL), 0);
	CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_REJECTED), 8);
	took = now_ms() - took;
	CHECK(!cm_readable(ach, 20));
	cm_end(id);
	return took;
}

/* A machine with a default route asks the next hop first. */
static void no_way(struct rdma_cm_id *id, void *to)
{
	if (rdma_resolve_addr(id, NULL, to, 200))
		CHECK_EQ(errno, ENETUNREACH);
	else
		CHECK(cm_expect(ach, RDMA_CM_EVENT_ADDR_ERROR) < 0);
}

static void unreachable(void)
{
	struct rdma_cm_id *id;
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons(9)};
	int tries = 1;

	check_case("nobody there");
	while (call_nobody() > SOON_MS && tries < TRIES)
		tries++;
	CHECK_RANGE(tries, 1, TRIES - 1);

	far.sin_addr.s_addr = htonl(0xcb007101); /* 203.0.113.1, of a documentation network */
	id = cm_id(ach);
	no_way(id, &far);
	cm_end(id); /* it may be bound: to an address to ask from */
	id = cm_id(ach);
	CHECK_FAILS(rdma_bind_addr(id, (struct sockaddr *)&far), EADDRNOTAVAIL);
	cm_end(id);
}

static void wrong_order(void)
{
	struct rdma_cm_id *id = cm_id(ach), *other = cm_id(ach);
	struct sockaddr_in6 unknown = {.sin6_family = AF_UNIX};
	uint16_t port;

	check_case("wrong order");
	CHECK_FAILS(rdma_connect(id, NULL), EINVAL);
	CHECK_FAILS(rdma_accept(id, NULL), EINVAL);
	CHECK_FAILS(rdma_disconnect(id), EINVAL);
	CHECK_FAILS(rdma_resolve_route(id, 100), EINVAL);
	CHECK_FAILS(rdma_bind_addr(id, (struct sockaddr *)&unknown), EAFNOSUPPORT);
	CHECK_EQ(rdma_bind_addr(id, cm_addr4(0)), 0);
	port = ntohs(rdma_get_src_port(id));
	CHECK(port);
	CHECK_FAILS(rdma_bind_addr(id, cm_addr4(0)), EINVAL);
	CHECK_FAILS(rdma_bind_addr(other, cm_addr4(port)), EADDRINUSE);
	CHECK(!other->verbs); /* as before */
	if (has_ipv6())
		CHECK_EQ(rdma_bind_addr(other, cm_addr6(port)), 0); /* another address */
	cm_end(id);
	cm_end(other);
	CHECK_FAILS(rdma_create_id(ach, &id, NULL, 0x9999), EPROTONOSUPPORT);
}

static void versions(void)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6};
	struct rdma_cm_id *listener = cm_id(pch), *id;
	uint16_t port;
	int one = 1;

	check_case("IPv6");
	CHECK_EQ(rdma_bind_addr(listener, (struct sockaddr *)&any), 0);
	CHECK(!listener->verbs);
	CHECK_EQ(rdma_listen(listener, 1), 0);
	CHECK_FAILS(rdma_listen(listener, 1), EINVAL);
	port = ntohs(rdma_get_src_port(listener));
	for (int v6 = 0; v6 <= has_ipv6(); v6++) { /* it serves both */
		id = cm_resolved(ach, v6 ? cm_addr6(port) : cm_addr4(port), true);
		CHECK_EQ(rdma_connect(id, NULL), 0);
		struct rdma_cm_event *e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
		struct rdma_cm_id *passive = e->id;

		CHECK_EQ(rdma_get_local_addr(passive)->sa_family, v6 ? AF_INET6 : AF_INET);
		rdma_ack_cm_event(e);
		cm_end(passive);
		CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_REJECTED), 28);
		cm_end(id);
	}
	cm_end(listener);

	listener = cm_id(pch);
	CHECK_EQ(rdma_set_option(listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof one),
		0);
	CHECK_EQ(rdma_bind_addr(listener, (struct sockaddr *)&any), 0);
	CHECK_EQ(rdma_listen(listener, 1), 0);
	port = ntohs(rdma_get_src_port(listener));
	id = cm_resolved(ach, cm_addr4(port), true);
	CHECK_EQ(rdma_connect(id, NULL), 0);
	CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_REJECTED), 28);
	cm_end(id);
	cm_end(listener);
}

/* ---- addresses that are GIDs ---- */

static struct sockaddr_ib gid_addr(int index, uint64_t ps, uint16_t port)
{
	struct sockaddr_ib sib = {.sib_family = AF_IB,
		.sib_pkey = 0xffff,
		.sib_sid = htobe64(ps << 16 | port),
		.sib_sid_mask = UINT64_MAX};
	struct ibv_context **list = rdma_get_devices(NULL);

	if (!list || ibv_query_gid(list[0], 1, index, (union ibv_gid *)&sib.sib_addr))
		die("ibv_query_gid");
	rdma_free_devices(list);
	return sib;
}

static void by_gid(int index)
{
	struct sockaddr_ib sib = gid_addr(index, RDMA_PS_TCP, 0);
	struct rdma_cm_id *listener = cm_id(pch), *id = cm_id(ach), *passive;
	const struct sockaddr_ib *seen;
	struct rdma_cm_event *e;
	uint16_t port;

	check_case("GID %d", index);
	CHECK_EQ(rdma_bind_addr(listener, (struct sockaddr *)&sib), 0);
	CHECK_EQ(rdma_listen(listener, 1), 0);
	port = ntohs(rdma_get_src_port(listener));
	CHECK(port);
	sib = gid_addr(index, RDMA_PS_TCP, port);
	CHECK_EQ(rdma_resolve_addr(id, NULL, (struct sockaddr *)&sib, 100), 0);
	CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	CHECK_EQ(rdma_resolve_route(id, 100), 0);
	CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
	seen = (const struct sockaddr_ib *)rdma_get_peer_addr(id);
	CHECK_EQ(seen->sib_family, AF_IB);
	CHECK(!memcmp(&seen->sib_addr, &sib.sib_addr, 16) && seen->sib_sid == sib.sib_sid);
	CHECK_EQ(rdma_connect(id, NULL), 0);
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = e->id;
	rdma_ack_cm_event(e);
	CHECK_EQ(rdma_get_peer_addr(passive)->sa_family, AF_IB);
	CHECK_EQ(rdma_get_dst_port(passive), rdma_get_src_port(id));
	cm_end(passive);
	CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_REJECTED), 28);
	cm_end(id);
	cm_end(listener);
}

static void no_such_gid(void)
{
	struct sockaddr_ib sib = gid_addr(0, RDMA_PS_UDP, 0);
	struct rdma_cm_id *id = cm_id(ach);

	check_case("no such GID");
	CHECK_FAILS(rdma_bind_addr(id, (struct sockaddr *)&sib), EPROTONOSUPPORT);
	sib = gid_addr(0, RDMA_PS_TCP, 0);
	sib.sib_pkey = htons(0x8001);
	CHECK_FAILS(rdma_bind_addr(id, (struct sockaddr *)&sib), ENODEV);
	sib.sib_pkey = 0;
	sib.sib_addr.sib_raw[15] ^= 0x55;
	CHECK_FAILS(rdma_bind_addr(id, (struct sockaddr *)&sib), EADDRNOTAVAIL);
	no_way(id, &sib);
	cm_end(id);
}

static void migrate(void)
{
	struct rdma_event_channel *third = cm_channel();
	struct rdma_cm_id *id = cm_id(ach), *listener, *active[20];
	uint16_t port;
	struct rdma_cm_event *e;

	check_case("migrate");
	CHECK_EQ(rdma_resolve_addr(id, NULL, cm_addr4(9), 100), 0);
	CHECK_EQ(rdma_migrate_id(id, third), 0);
	CHECK(!cm_readable(ach, 0));
	CHECK(id->channel == third);
	CHECK_EQ(cm_expect(third, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	cm_end(id);

	/* A listener goes with the requests that wait. */
	listener = cm_listener(pch, 0, &port);
	for (int i = 0; i < 20; i++) {
		active[i] = cm_resolved(ach, cm_addr4(port), false);
		CHECK_EQ(rdma_connect(active[i], NULL), 0);
	}
	CHECK(cm_readable(pch, CM_WAIT_MS));
	CHECK_EQ(rdma_migrate_id(listener, third), 0);
	CHECK(!cm_readable(pch, 0));
	for (int i = 0; i < 20; i++) {
		e = cm_take(third, RDMA_CM_EVENT_CONNECT_REQUEST);
		id = e->id;
		rdma_ack_cm_event(e);
		cm_end(id);
		CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_REJECTED), 28);
	}
	CHECK(!cm_readable(third, 20));
	for (int i = 0; i < 20; i++)
		cm_end(active[i]);
	cm_end(listener);
	rdma_destroy_event_channel(third);
}

static void *ack_later(void *arg)
{
	usleep(100000);
	rdma_ack_cm_event(arg);
	return NULL;
}

static void destroy_waits(void)
{
	struct rdma_cm_id *id = cm_id(ach);
	struct rdma_cm_event *e;
	pthread_t t;
	double start;

	check_case("destroy waits");
	CHECK_EQ(rdma_resolve_addr(id, NULL, cm_addr4(9), 100), 0);
	e = cm_take(ach, RDMA_CM_EVENT_ADDR_RESOLVED);
	start = now_ms();
	pthread_create(&t, NULL, ack_later, e);
	CHECK_EQ(rdma_destroy_id(id), 0);
	CHECK_RANGE(now_ms() - start, 90, CM_WAIT_MS);
	pthread_join(t, NULL);
}

/* ---- synchronous ids ---- */

static void *sync_client(void *arg)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *res;
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
	static char text[32] = "synchronous";
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	if (rdma_getaddrinfo("127.0.0.1", arg, &hints, &res) ||
		rdma_create_ep(&id, res, NULL, &init))
		die("client endpoint");
	rdma_freeaddrinfo(res);
	mr = rdma_reg_msgs(id, text, sizeof text);
	if (rdma_connect(id, NULL))
		die("client connect");
	CHECK_EQ(rdma_post_send(id, NULL, text, sizeof text, mr, IBV_SEND_SIGNALED), 0);
	CHECK_EQ(rdma_get_send_comp(id, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(rdma_disconnect(id), 0);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	return NULL;
}

static void synchronous(void)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE}, *res;
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_cm_id *listener, *id;
	char port[8], text[32] = "";
	struct ibv_mr *mr;
	struct ibv_wc wc;
	pthread_t t;

	check_case("synchronous");
	if (rdma_getaddrinfo("127.0.0.1", NULL, &hints, &res) &&
		rdma_getaddrinfo("127.0.0.1", "0", &hints, &res))
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&listener, res, NULL, &init) || rdma_listen(listener, 0))
		die("listener endpoint");
	rdma_freeaddrinfo(res);
	snprintf(port, sizeof port, "%d", ntohs(rdma_get_src_port(listener)));
	pthread_create(&t, NULL, sync_client, port);
	if (rdma_get_request(listener, &id))
		die("rdma_get_request");
	CHECK(id->qp && id->recv_cq && id->recv_cq_channel);
	mr = rdma_reg_msgs(id, text, sizeof text);
	CHECK_EQ(rdma_post_recv(id, NULL, text, sizeof text, mr), 0);
	CHECK_EQ(rdma_accept(id, NULL), 0);
	CHECK_EQ(rdma_get_recv_comp(id, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK(!strcmp(text, "synchronous"));
	CHECK_EQ(rdma_disconnect(id), 0);
	pthread_join(t, NULL);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

/* ---- XRC: the receives are those of a shared queue, which the server names ---- */

static const struct ibv_qp_init_attr small = {
	.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
	.sq_sig_all = 1};

static void *xrc_client(void *arg)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_XRC_SEND};
	struct ibv_qp_init_attr init = small;
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	char text[8] = "by XRC"; /* inline, though no room was asked for */
	struct ibv_sge sge = {.addr = (uintptr_t)text, .length = sizeof text};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_INLINE};
	struct ibv_wc wc;

	if (rdma_getaddrinfo("127.0.0.1", arg, &hints, &res) ||
		rdma_create_ep(&id, res, NULL, &init) || rdma_connect(id, NULL))
		die("XRC client");
	rdma_freeaddrinfo(res);
	CHECK_EQ(id->qp->qp_type, IBV_QPT_XRC_SEND);
	CHECK_EQ(id->event->param.conn.srq, 1);
	memcpy(&wr.qp_type.xrc.remote_srqn, id->event->param.conn.private_data, 4);
	CHECK_EQ(ibv_post_send(id->qp, &wr, &bad), 0);
	CHECK_EQ(rdma_get_send_comp(id, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(rdma_disconnect(id), 0);
	rdma_destroy_ep(id);
	return NULL;
}

static void xrc(void)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP,
		.ai_flags = RAI_PASSIVE,
		.ai_qp_type = IBV_QPT_XRC_RECV};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 2, .max_sge = 1}};
	struct ibv_qp_init_attr init = small;
	struct rdma_conn_param param = {.private_data_len = 4};
	struct rdma_cm_id *listener, *id;
	struct rdma_addrinfo *res;
	char port[8], text[8] = "";
	struct ibv_mr *mr;
	struct ibv_wc wc;
	uint32_t srqn;
	pthread_t t;

	check_case("XRC");
	if (rdma_getaddrinfo("127.0.0.1", "0", &hints, &res) ||
		rdma_create_ep(&listener, res, NULL, &init) || rdma_listen(listener, 0))
		die("XRC listener");
	rdma_freeaddrinfo(res);
	snprintf(port, sizeof port, "%d", ntohs(rdma_get_src_port(listener)));
	pthread_create(&t, NULL, xrc_client, port);
	if (rdma_get_request(listener, &id) || rdma_create_srq(id, NULL, &srq))
		die("XRC request");
	CHECK_EQ(id->qp->qp_type, IBV_QPT_XRC_RECV);
	CHECK_EQ(ibv_get_srq_num(id->srq, &srqn), 0);
	param.private_data = &srqn;
	mr = rdma_reg_msgs(id, text, sizeof text);
	CHECK_EQ(rdma_post_recv(id, NULL, text, sizeof text, mr), 0);
	CHECK_EQ(rdma_accept(id, &param), 0);
	CHECK_EQ(rdma_get_recv_comp(id, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK(!strcmp(text, "by XRC"));
	CHECK_EQ(rdma_disconnect(id), 0);
	pthread_join(t, NULL);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

/* ---- what a connection is made of ---- */

enum { CLIENT, SERVER, ENDS, OUR_ACK = 19 };

/* Options of both ids, 0: not set; and what both queue pairs have then. */
static const struct options {
	uint8_t tos[ENDS], ack[ENDS], has_tos[ENDS], has_ack[ENDS];
} options[] = {
	{{0x28, 0}, {8, 0}, {0x28, 0x28}, {8, 8}}, /* an answer goes the way of its request */
	{{0x28, 0x50}, {8, 9}, {0x28, 0x50}, {8, 9}},
	{{0, 0x50}, {0, 9}, {0, 0x50}, {OUR_ACK, 9}},
	{{0, 0}, {0, 0}, {0, 0}, {OUR_ACK, OUR_ACK}},
};

static void set_options(struct rdma_cm_id *id, const struct options *o, int end)
{
	uint8_t tos = o->tos[end], ack = o->ack[end];

	if (tos)
		CHECK_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	if (ack)
		CHECK_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack, 1),
			0);
}

/* Of the id's queue pair, or of what the program is told for one that it brings up itself. */
static struct ibv_qp_attr attributes(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask = 0;

	if (id->qp) {
		CHECK_EQ(ibv_query_qp(id->qp, &attr, IBV_QP_STATE | IBV_QP_AV, &init), 0);
		return attr;
	}
	CHECK_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
	attr.qp_state = IBV_QPS_RTS;
	CHECK_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
	return attr;
}

/*
 * How often it sends again the client says; how often after an RNR NAK each end says of the other,
 * whose receives may come late.
 */
static void check_end(struct rdma_cm_id *id, const struct options *o, int end)
{
	struct ibv_qp_attr attr = attributes(id);

	CHECK_EQ(attr.retry_cnt, 3);
	CHECK_EQ(attr.rnr_retry, end == CLIENT ? 6 : 5);
	CHECK_EQ(attr.timeout, o->has_ack[end]);
	CHECK_EQ(attr.ah_attr.grh.traffic_class, o->has_tos[end]);
}

static void parameters(const struct options *o, bool qp)
{
	struct rdma_conn_param asks = {
		.retry_count = 3, .rnr_retry_count = 5, .flow_control = 1, .srq = 1, .qp_num = 77};
	struct rdma_conn_param grants = {.retry_count = 4, .rnr_retry_count = 6, .qp_num = 78};
	struct rdma_cm_id *listener, *active, *passive;
	struct ibv_qp_attr there;
	struct rdma_cm_event *e;
	uint16_t port;

	check_case("parameters, row %d, %s QP", (int)(o - options), qp ? "with" : "without");
	listener = cm_listener(pch, 0, &port);
	active = cm_resolved(ach, cm_addr4(port), qp);
	set_options(active, o, CLIENT);
	CHECK_EQ(rdma_connect(active, &asks), 0);
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK_EQ(e->param.conn.retry_count, 3);
	CHECK_EQ(e->param.conn.rnr_retry_count, 5);
	CHECK_EQ(e->param.conn.flow_control, 1);
	CHECK_EQ(e->param.conn.srq, !qp);
	passive = e->id;
	rdma_ack_cm_event(e);
	if (qp)
		cm_make_qp(passive);
	set_options(passive, o, SERVER);
	CHECK_EQ(rdma_accept(passive, &grants), 0);
	e = cm_take(ach, qp ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK_EQ(e->param.conn.rnr_retry_count, 6);
	CHECK_EQ(e->param.conn.flow_control, 0);
	CHECK_EQ(e->param.conn.srq, 0);
	rdma_ack_cm_event(e);
	check_end(active, o, CLIENT);
	check_end(passive, o, SERVER);
	there = attributes(active);
	CHECK_EQ(there.ah_attr.grh.flow_label, attributes(passive).ah_attr.grh.flow_label);
	CHECK_EQ(there.path_mtu, attributes(passive).path_mtu);
	if (!qp)
		CHECK_EQ(rdma_establish(active), 0);
	cm_expect(pch, RDMA_CM_EVENT_ESTABLISHED);
	cm_end(active);
	cm_expect(pch, RDMA_CM_EVENT_DISCONNECTED);
	cm_end(passive);
	cm_end(listener);
}

static int make_qp(
	struct rdma_cm_id *id, enum ibv_qp_type type, struct ibv_cq *send, struct ibv_cq *recv)
{
	struct ibv_qp_init_attr init = small;

	init.qp_type = type;
	init.send_cq = send;
	init.recv_cq = recv;
	return rdma_create_qp(id, NULL, &init) ? -errno : 0;
}

/* The shared queue's CQ is the id's, until that queue ends: no QP can have another one. */
static void cq_of_srq(void)
{
	struct ibv_srq_init_attr_ex srq = {.attr = {.max_wr = 2, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_XRC};
	struct rdma_cm_id *id = cm_resolved(ach, cm_addr4(9), false);
	struct ibv_cq *a = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	struct ibv_cq *b = ibv_create_cq(id->verbs, 4, NULL, NULL, 0), *its;

	check_case("CQ of a shared queue");
	if (!a || !b || rdma_create_srq_ex(id, &srq))
		die("rdma_create_srq_ex");
	id->qp_type = IBV_QPT_XRC_RECV;
	its = id->recv_cq;
	CHECK(its && srq.cq == its);
	CHECK_EQ(make_qp(id, IBV_QPT_XRC_RECV, a, b), -EINVAL);
	CHECK(!id->qp && id->recv_cq == its);
	CHECK_EQ(make_qp(id, IBV_QPT_RC, a, NULL), -EINVAL); /* not with that queue */
	CHECK(!id->qp && id->recv_cq == its);
	CHECK_EQ(make_qp(id, IBV_QPT_XRC_RECV, b, its), 0);
	CHECK(id->qp && id->send_cq == b && id->recv_cq == its);
	rdma_destroy_qp(id);
	CHECK(id->recv_cq == its);
	CHECK_EQ(make_qp(id, IBV_QPT_XRC_RECV, NULL, NULL), 0);
	CHECK(id->qp && id->send_cq && id->send_cq != b && id->recv_cq == its);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	id->qp_type = IBV_QPT_RC;
	CHECK(!id->send_cq && !id->recv_cq);
	CHECK_EQ(make_qp(id, IBV_QPT_RC, a, b), 0);
	rdma_destroy_qp(id);
	CHECK_EQ(make_qp(id, IBV_QPT_RC, b, a), 0);
	rdma_destroy_qp(id);
	id->send_cq = a;
	CHECK_EQ(make_qp(id, IBV_QPT_RC, b, b), -EINVAL);
	CHECK_EQ(make_qp(id, IBV_QPT_RC, NULL, b), 0);
	CHECK(id->qp && id->qp->send_cq == a && id->qp->recv_cq == b);
	rdma_destroy_qp(id);
	CHECK_EQ(ibv_destroy_cq(a), 0);
	CHECK_EQ(ibv_destroy_cq(b), 0);
	cm_end(id);
}

static void refusals_of_connections(void)
{
	struct ibv_sa_path_rec *path;
	struct rdma_cm_id *id = cm_resolved(ach, cm_addr4(9), false);
	struct rdma_conn_param p = {.responder_resources = 200};
	struct ibv_context **list;
	uint8_t timeout = 32;
	int n = 0;

	check_case("limits");
	path = id->route.path_rec;
	CHECK(path && id->route.num_paths == 1 && path->mtu);
	CHECK_FAILS(rdma_connect(id, &p), EINVAL);
	CHECK_FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
		EINVAL);
	CHECK_FAILS(rdma_set_option(id, RDMA_OPTION_ID, 99, &timeout, 1), ENOSYS);
	list = rdma_get_devices(&n);
	CHECK(list && n == 1 && list[0] == id->verbs && !list[1]);
	rdma_free_devices(list);
	cm_end(id);
}

int main(void)
{
	ach = cm_channel();
	pch = cm_channel();
	fd_is_real();
	signalled();
	inherited();
	life(true);
	life(false);
	time_wait();
	private_data();
	given_up();
	unreachable();
	wrong_order();
	versions();
	by_gid(0); /* that of the node's GUID */
	by_gid(1); /* an IPv4 address */
	no_such_gid();
	migrate();
	destroy_waits();
	synchronous();
	xrc();
	for (unsigned i = 0; i < 2 * sizeof options / sizeof *options; i++)
		parameters(&options[i / 2], i & 1);
	cq_of_srq();
	refusals_of_connections();
	rdma_destroy_event_channel(ach);
	rdma_destroy_event_channel(pch);
	return check_result();
}
