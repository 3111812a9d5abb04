// SPDX-License-Identifier: BSD-3-Clause
/* SCIF endpoints and messages: what existing programs rely on. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/scif_ends.h"

enum { RING = 4095, BIG = 300000, WAIT_MS = 10000, SHORT_MS = 20, MANY = 20 };

static void ring_is_exact(void)
{
	struct scif_pair p = scif_make_pair();
	uint8_t buf[2 * RING];

	check_case("ring");
	pattern_fill(buf, sizeof(buf), 0);
	CHECK_EQ(scif_recv(p.b, buf, 10, 0), 0);
	CHECK_EQ(scif_send(p.a, buf, sizeof(buf), 0), RING);
	CHECK_EQ(scif_send(p.a, buf, 1, 0), 0);
	CHECK_EQ(scif_raw_poll(p.a, POLLOUT, 0), 0);
	CHECK_EQ(scif_events(p.a, SCIF_POLLOUT, 0), -1);
	CHECK_EQ(scif_events(p.b, SCIF_POLLIN, WAIT_MS), SCIF_POLLIN);
	CHECK_EQ(scif_raw_poll(p.b, POLLIN, WAIT_MS), POLLIN);
	memset(buf, 0, sizeof(buf));
	CHECK_EQ(scif_recv(p.b, buf, 100, 0), 100);
	CHECK_EQ(scif_raw_poll(p.a, POLLIN | POLLOUT, WAIT_MS), POLLOUT);
	CHECK_EQ(scif_send(p.a, buf, 200, 0), 100);
	CHECK_EQ(scif_recv(p.b, buf + 100, RING - 100, SCIF_RECV_BLOCK), RING - 100);
	CHECK_EQ(pattern_match(buf, RING, 0), RING);
	CHECK_EQ(scif_recv(p.b, buf, RING, 0), 100);
	CHECK_EQ(scif_raw_poll(p.b, POLLIN, 0), 0);
	check_case("bytes one by one");
	for (int i = 0; i < RING; i++)
		if (!CHECK_EQ(scif_send(p.b, "x", 1, 0), 1))
			break;
	CHECK_EQ(scif_send(p.b, "x", 1, 0), 0);
	CHECK_EQ(scif_recv(p.a, buf, sizeof(buf), 0) > 0, 1);
	scif_end_pair(&p);
}

/* Also when the receiver took little, which it does not tell at once. */
static void room_is_known(void)
{
	struct scif_pair p = scif_make_pair();
	uint8_t buf[RING + 100] = {0};

	check_case("room");
	for (int taken = 1; taken < 400; taken += 7) {
		CHECK_EQ(scif_send(p.a, buf, taken, SCIF_SEND_BLOCK), taken);
		CHECK_EQ(scif_recv(p.b, buf, taken, SCIF_RECV_BLOCK), taken);
		CHECK_EQ(scif_send(p.a, buf, sizeof(buf), 0), RING);
		CHECK_EQ(scif_recv(p.b, buf, 1, SCIF_RECV_BLOCK), 1);
		CHECK_EQ(scif_events(p.a, SCIF_POLLOUT, WAIT_MS), SCIF_POLLOUT);
		CHECK_EQ(scif_send(p.a, buf, 2, 0), 1);
		CHECK_EQ(scif_recv(p.b, buf, RING, SCIF_RECV_BLOCK), RING);
	}
	scif_end_pair(&p);
}

static void readiness(void)
{
	struct scif_pair p = scif_make_pair();
	struct epoll_event e = {.events = EPOLLIN}, got;
	int ep = epoll_create1(EPOLL_CLOEXEC), copy;
	fd_set in, out;
	char c;

	check_case("readiness");
	CHECK_EQ(scif_get_fd(p.a), p.a);
	CHECK_EQ(fcntl(p.a, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, p.b, &e), 0);
	CHECK_EQ(epoll_wait(ep, &got, 1, 0), 0);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(p.b, &in);
	FD_SET(p.b, &out);
	CHECK_EQ(select(p.b + 1, &in, &out, NULL, NULL), 1);
	CHECK(!FD_ISSET(p.b, &in) && FD_ISSET(p.b, &out));
	CHECK_EQ(scif_events(p.b, SCIF_POLLIN | SCIF_POLLOUT, 0), SCIF_POLLOUT);
	CHECK_EQ(scif_events(p.b, SCIF_POLLIN, SHORT_MS), -1);
	CHECK_EQ(scif_send(p.a, "a", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(epoll_wait(ep, &got, 1, WAIT_MS), 1);
	CHECK_EQ(scif_events(p.b, SCIF_POLLIN | SCIF_POLLOUT, 0), SCIF_POLLIN | SCIF_POLLOUT);
	copy = dup(p.b);
	CHECK_EQ(close(p.b), 0);
	CHECK_EQ(scif_recv(copy, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(c, 'a');
	p.b = copy;
	CHECK_EQ(scif_raw_poll(p.b, POLLIN, 0), 0);
	check_case("close(2) disconnects");
	CHECK_EQ(close(p.b), 0);
	CHECK_EQ(scif_raw_poll(p.a, 0, WAIT_MS) & POLLHUP, POLLHUP);
	CHECK_EQ(scif_send(p.a, "a", 1, 0), -1);
	CHECK_EQ(errno, ECONNRESET);
	close(ep);
	scif_close(p.a);
	scif_close(p.listener);
}

static void *send_big(void *arg)
{
	scif_epd_t epd = *(scif_epd_t *)arg;
	static uint8_t big[BIG];

	pattern_fill(big, BIG, 0);
	CHECK_EQ(scif_send(epd, big, BIG, SCIF_SEND_BLOCK), BIG);
	return NULL;
}

static void *recv_big(void *arg)
{
	scif_epd_t epd = *(scif_epd_t *)arg;
	static uint8_t big[BIG];

	CHECK_EQ(scif_recv(epd, big, BIG, SCIF_RECV_BLOCK), BIG);
	CHECK_EQ(pattern_match(big, BIG, 0), BIG);
	return NULL;
}

static void blocking(void)
{
	struct scif_pair p = scif_make_pair();
	pthread_t t[2];

	check_case("blocking");
	pthread_create(&t[0], NULL, send_big, &p.a);
	pthread_create(&t[1], NULL, recv_big, &p.b);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	scif_end_pair(&p);
}

static void errno_is_kept(void)
{
	struct scif_pair p = scif_make_pair();
	uint16_t self = 77;
	char c;

	check_case("errno");
	errno = 0;
	CHECK_EQ(scif_get_nodeIDs(NULL, 0, &self), 1);
	CHECK_EQ(self, 0);
	CHECK_EQ(scif_send(p.a, "ab", 2, 0), 2);
	CHECK_EQ(scif_recv(p.b, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(scif_recv(p.b, &c, 1, 0), 1);
	CHECK_EQ(scif_recv(p.b, &c, 1, 0), 0);
	CHECK_EQ(scif_events(p.b, SCIF_POLLOUT, 0), SCIF_POLLOUT);
	scif_end_pair(&p);
	CHECK_EQ(errno, 0);
}

static void last_words(void)
{
	struct scif_pair p = scif_make_pair();
	char buf[32];

	check_case("last words");
	CHECK_EQ(scif_send(p.a, "farewell", 8, 0), 8);
	CHECK_EQ(scif_close(p.a), 0);
	CHECK_EQ(scif_raw_poll(p.b, 0, WAIT_MS) & POLLHUP, POLLHUP);
	CHECK_EQ(scif_events(p.b, SCIF_POLLIN, WAIT_MS), SCIF_POLLIN | SCIF_POLLHUP);
	CHECK_EQ(scif_recv(p.b, buf, 4, 0), 4);
	CHECK_EQ(scif_recv(p.b, buf, sizeof(buf), SCIF_RECV_BLOCK), 4);
	CHECK_EQ(memcmp(buf, "well", 4), 0);
	CHECK_EQ(scif_recv(p.b, buf, 1, 0), -1);
	CHECK_EQ(errno, ECONNRESET);
	CHECK_EQ(scif_events(p.b, SCIF_POLLIN | SCIF_POLLOUT, 0), SCIF_POLLHUP);
	CHECK_EQ(scif_register(p.b, scif_pages(4096), 4096, 0, 3, 0), -1);
	CHECK_EQ(errno, ECONNRESET);
	scif_close(p.b);
	scif_close(p.listener);
}

static pid_t sleeper; /* a thread that goes to sleep in a call */

static void *close_soon(void *arg)
{
	await_sleep(sleeper);
	CHECK_EQ(scif_close(*(scif_epd_t *)arg), 0);
	return NULL;
}

static void closing_wakes(void)
{
	struct scif_portID peer;
	scif_epd_t epd, other;
	uint16_t port;
	pthread_t t;

	check_case("closing wakes");
	sleeper = gettid();
	epd = scif_listener(1, &port);
	pthread_create(&t, NULL, close_soon, &epd);
	CHECK_EQ(scif_accept(epd, &peer, &other, SCIF_ACCEPT_SYNC), -1);
	CHECK(errno == EINTR);
	pthread_join(t, NULL);
	epd = scif_listener(1, &port);
	pthread_create(&t, NULL, close_soon, &epd);
	CHECK_EQ(scif_events(epd, SCIF_POLLIN, WAIT_MS), SCIF_POLLNVAL);
	pthread_join(t, NULL);
}

static void ports(void)
{
	struct scif_portID dst = {0, 0}, peer;
	scif_epd_t l, e, other;
	uint16_t port;

	check_case("ports");
	l = scif_listener(1, &port);
	CHECK(port > SCIF_PORT_RSVD);
	dst.port = port;
	e = scif_open();
	CHECK_EQ(scif_bind(e, port), -1);
	CHECK_EQ(errno, EINVAL);
	fcntl(e, F_SETFL, O_NONBLOCK);
	CHECK_EQ(scif_connect(e, &dst), -1);
	CHECK_EQ(errno, EINPROGRESS);
	CHECK_EQ(scif_raw_poll(l, POLLIN, WAIT_MS), POLLIN);
	CHECK_EQ(scif_events(l, SCIF_POLLIN, 0), SCIF_POLLIN);
	CHECK_EQ(scif_connect(e, &dst), -1);
	CHECK_EQ(errno, EINPROGRESS);
	CHECK_EQ(scif_raw_poll(e, POLLOUT, 0), 0); /* only accept completes it */
	check_case("backlog");
	other = scif_open();
	CHECK_EQ(scif_connect(other, &dst), -1);
	CHECK_EQ(errno, ECONNREFUSED);
	CHECK_EQ(scif_close(other), 0);
	check_case("accept");
	CHECK_EQ(scif_accept(l, &peer, &other, 0), 0);
	CHECK_EQ(scif_raw_poll(l, POLLIN, 0), 0);
	CHECK_EQ(scif_raw_poll(e, POLLOUT, WAIT_MS), POLLOUT);
	CHECK_EQ(peer.node, 0);
	CHECK_EQ(scif_connect(e, &dst), peer.port);
	CHECK_EQ(scif_connect(e, &dst), -1);
	CHECK_EQ(errno, EISCONN);
	CHECK_EQ(scif_accept(l, &peer, &other, 0), -1);
	CHECK_EQ(errno, EAGAIN);
	check_case("a port is taken while what was accepted lives");
	CHECK_EQ(scif_close(l), 0);
	l = scif_open();
	CHECK_EQ(scif_bind(l, port), -1);
	CHECK_EQ(scif_close(other), 0);
	CHECK_EQ(scif_bind(l, port), port);
	check_case("bound, but nobody listens");
	other = scif_open();
	CHECK_EQ(scif_connect(other, &dst), -1);
	CHECK_EQ(errno, ECONNREFUSED);
	CHECK_EQ(scif_listen(l, 1), 0);
	fcntl(other, F_SETFL, O_NONBLOCK);
	CHECK_EQ(scif_connect(other, &dst), -1);
	CHECK_EQ(errno, EINPROGRESS);
	CHECK_EQ(scif_raw_poll(l, POLLIN, WAIT_MS), POLLIN);
	check_case("closing a listener refuses");
	CHECK_EQ(scif_close(l), 0);
	CHECK_EQ(scif_raw_poll(other, POLLOUT, WAIT_MS), POLLOUT);
	CHECK_EQ(scif_connect(other, &dst), -1);
	CHECK_EQ(errno, ECONNREFUSED);
	scif_close(other);
	scif_close(e);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void signals(void)
{
	struct scif_pair p = scif_make_pair();
	struct sigaction sa = {.sa_handler = on_alarm};
	char buf[8];

	check_case("signals");
	sigaction(SIGALRM, &sa, NULL);
	ualarm(50000, 50000);
	CHECK_EQ(scif_recv(p.a, buf, 1, SCIF_RECV_BLOCK), -1);
	CHECK_EQ(errno, EINTR);
	CHECK_EQ(scif_send(p.b, "abc", 3, SCIF_SEND_BLOCK), 3);
	CHECK_EQ(scif_recv(p.a, buf, 8, SCIF_RECV_BLOCK), 3);
	ualarm(0, 0);
	scif_end_pair(&p);
}

/* The child is node 1; it echoes until the end. */
static void echo(int in, int out)
{
	struct scif_portID peer;
	uint16_t port, nodes[4], self;
	uint8_t buf[RING];
	scif_epd_t l, e;
	int n;

	setenv("WEFT_NODE", "1", 1);
	l = scif_listener(MANY, &port);
	CHECK_EQ(scif_get_nodeIDs(nodes, 4, &self), 2);
	CHECK_EQ(self, 1);
	CHECK_EQ(nodes[0], 0);
	CHECK_EQ(nodes[1], 1);
	scif_tell(out, port);
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(scif_accept(l, &peer, &e, SCIF_ACCEPT_SYNC), 0);
		CHECK_EQ(peer.node, 0);
		while (scif_recv(e, &n, sizeof(n), SCIF_RECV_BLOCK) == sizeof(n)) {
			CHECK_EQ(scif_recv(e, buf, n, SCIF_RECV_BLOCK), n);
			CHECK_EQ(scif_send(e, buf, n, SCIF_SEND_BLOCK), n);
		}
		CHECK_EQ(errno, ECONNRESET);
		CHECK_EQ(scif_close(e), 0);
	}
	scif_hear(in);
}

static void two_processes(void)
{
	struct scif_child c = scif_fork(echo);
	uint16_t port = scif_hear(c.from);
	struct scif_portID dst = {7, port};
	uint8_t buf[RING], back[RING];
	scif_epd_t e = scif_open();

	check_case("two processes");
	CHECK_EQ(scif_get_nodeIDs(NULL, 0, NULL), 2);
	CHECK_EQ(scif_connect(e, &dst), -1);
	CHECK_EQ(errno, ENODEV);
	dst.node = 0;
	CHECK_EQ(scif_connect(e, &dst), -1);
	CHECK_EQ(errno, ECONNREFUSED);
	scif_close(e);
	for (int i = 0; i < MANY; i++) {
		e = scif_dial(1, port);
		for (int n = 1; n <= RING; n = n * 3 + i) {
			pattern_fill(buf, n, i);
			CHECK_EQ(scif_send(e, &n, sizeof(n), SCIF_SEND_BLOCK), sizeof(n));
			CHECK_EQ(scif_send(e, buf, n, SCIF_SEND_BLOCK), n);
			CHECK_EQ(scif_recv(e, back, n, SCIF_RECV_BLOCK), n);
			CHECK_EQ(memcmp(buf, back, n), 0);
		}
		CHECK_EQ(scif_close(e), 0);
	}
	scif_tell(c.to, 0);
	scif_join(&c);
}

int main(void)
{
	two_processes(); /* forks: before there are threads */
	ring_is_exact();
	room_is_known();
	readiness();
	blocking();
	errno_is_kept();
	last_words();
	closing_wakes();
	ports();
	signals();
	return check_result();
}
