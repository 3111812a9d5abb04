// SPDX-License-Identifier: BSD-3-Clause
/* rsockets between processes and threads: both directions at once, a killed peer, many sleepers. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/rs_ends.h"

enum { BOTH_WAYS = 8 << 20, CHUNK = 50000, SMALL = 20000, KILL_MS = 15000 };

/* ---- a peer process ---- */

struct peer {
	pid_t pid;
	int fd; /* our end */
};

/* Queues and buffers so small that credit is always short. */
static void make_small(int fd)
{
	int n = 16, bytes = 4096;

	rsetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &n, sizeof n);
	rsetsockopt(fd, SOL_RDMA, RDMA_RQSIZE, &n, sizeof n);
	rsetsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
	rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

static bool small_ends;

static void start(struct peer *p, void (*run)(int fd))
{
	uint16_t port;
	int l = rs_listener(&port);

	if (small_ends)
		make_small(l);

	p->pid = fork();
	if (p->pid == 0) {
		struct sockaddr_in addr = rs_addr4(port);
		int fd;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = rsocket(AF_INET, SOCK_STREAM, 0);
		if (small_ends)
			make_small(fd);
		if (rconnect(fd, (struct sockaddr *)&addr, sizeof addr))
			die("rconnect");
		run(fd);
		_exit(check_failures() != 0);
	}
	p->fd = raccept(l, NULL, NULL);
	if (p->fd < 0)
		die("raccept");
	rclose(l);
}

static void finish(struct peer *p)
{
	int status;

	CHECK_EQ(waitpid(p->pid, &status, 0), p->pid);
	check_child(status);
}

/* ---- both directions at once ---- */

static ssize_t put(int fd, uint64_t from, size_t total, size_t chunk)
{
	static __thread uint8_t buf[CHUNK];
	size_t n = total - from < chunk ? total - from : chunk;

	for (size_t i = 0; i < n; i++)
		buf[i] = pattern_byte(0, from + i);
	return rsend(fd, buf, n, 0);
}

static ssize_t take(int fd, uint64_t from)
{
	static __thread uint8_t buf[CHUNK];
	ssize_t n = rrecv(fd, buf, sizeof buf, 0);

	for (ssize_t i = 0; i < n; i++)
		if (buf[i] != pattern_byte(0, from + i))
			die("byte %llu is wrong", (unsigned long long)from + i);
	return n;
}

/* With rpoll, without blocking. */
static void exchange(int fd, size_t total, size_t chunk)
{
	size_t sent = 0, got = 0;

	rs_nonblock(fd, true);
	while (sent < total || got < total) {
		short want = (sent < total ? POLLOUT : 0) | (got < total ? POLLIN : 0);
		short r = rs_poll1(fd, want, RS_TEST_WAIT_MS);
		ssize_t n;

		if (!r || r & POLLERR)
			die("no progress at %zu, %zu: %x", sent, got, r);
		n = r & POLLOUT ? put(fd, sent, total, chunk) : 0;
		if (n > 0)
			sent += n;
		n = r & POLLIN ? take(fd, got) : 0;
		if (n > 0)
			got += n;
	}
	CHECK_EQ(got, total);
	rs_nonblock(fd, false);
}

static void exchange_large(int fd)
{
	exchange(fd, BOTH_WAYS, CHUNK);
	rclose(fd);
}

static void exchange_small(int fd)
{
	exchange(fd, SMALL, 1);
	rclose(fd);
}

struct job {
	int fd;
	size_t total;
};

static void *sender(void *arg)
{
	struct job *j = arg;

	for (size_t sent = 0; sent < j->total;) {
		ssize_t n = put(j->fd, sent, j->total, CHUNK);

		if (n <= 0)
			die("rsend");
		sent += n;
	}
	return NULL;
}

/* One thread in rsend, one in rrecv. */
static void by_threads(int fd)
{
	struct job j = {.fd = fd, .total = BOTH_WAYS};
	pthread_t t;
	size_t got = 0;

	pthread_create(&t, NULL, sender, &j);
	while (got < j.total) {
		ssize_t n = take(fd, got);

		if (n <= 0)
			die("rrecv");
		got += n;
	}
	pthread_join(t, NULL);
	CHECK_EQ(got, j.total);
}

static void exchange_threads(int fd)
{
	by_threads(fd);
	rclose(fd);
}

static void both_ways(void)
{
	struct peer p;

	check_case("both ways");
	start(&p, exchange_large);
	exchange(p.fd, BOTH_WAYS, CHUNK);
	finish(&p);
	rclose(p.fd);
	check_case("both ways, byte by byte");
	start(&p, exchange_small);
	exchange(p.fd, SMALL, 1);
	finish(&p);
	rclose(p.fd);
	check_case("both ways, by threads");
	start(&p, exchange_threads);
	by_threads(p.fd);
	finish(&p);
	rclose(p.fd);
}

static void exchange_some(int fd)
{
	exchange(fd, SMALL, 700);
	rclose(fd);
}

static void short_of_credit(void)
{
	struct peer p;

	small_ends = true;
	check_case("small buffers");
	start(&p, exchange_some);
	exchange(p.fd, SMALL, 700);
	finish(&p);
	rclose(p.fd);
	check_case("small buffers, byte by byte");
	start(&p, exchange_small);
	exchange(p.fd, SMALL, 1);
	finish(&p);
	rclose(p.fd);
	check_case("small buffers, by threads");
	start(&p, exchange_threads);
	by_threads(p.fd);
	finish(&p);
	rclose(p.fd);
	small_ends = false;
}

/* ---- a peer that is killed ---- */

static void say_and_wait(int fd)
{
	rsend(fd, "hello", 5, 0);
	for (;;)
		pause();
}

static void *kill_soon(void *arg)
{
	usleep(100000);
	kill(*(pid_t *)arg, SIGKILL);
	return NULL;
}

enum sleeping { IN_RECV, IN_POLL, IN_SEND };

static void killed(enum sleeping how)
{
	char buf[4096] = {0};
	struct peer p;
	pthread_t t;
	ssize_t n = 0;
	double begin;

	check_case("killed while we are in %d", how);
	start(&p, say_and_wait);
	CHECK_EQ(rrecv(p.fd, buf, 5, MSG_WAITALL), 5);
	pthread_create(&t, NULL, kill_soon, &p.pid);
	begin = now_ms();
	if (how == IN_RECV)
		n = rrecv(p.fd, buf, 1, 0);
	else if (how == IN_POLL)
		n = rs_poll1(p.fd, POLLIN, RS_TEST_WAIT_MS) ? rrecv(p.fd, buf, 1, 0) : 0;
	else
		while ((n = rsend(p.fd, buf, sizeof buf, 0)) > 0)
			;
	CHECK_EQ(errno, ECONNRESET);
	CHECK_EQ(n, -1);
	CHECK_RANGE(now_ms() - begin, 0, KILL_MS);
	CHECK_EQ(rrecv(p.fd, buf, 1, 0), 0);
	CHECK_EQ(rsend(p.fd, buf, 1, 0), -1);
	CHECK_EQ(errno, EPIPE);
	pthread_join(t, NULL);
	waitpid(p.pid, NULL, 0);
	CHECK_EQ(rclose(p.fd), 0);
}

/* What a peer sent before it was killed is there. */
static void killed_after(void)
{
	char buf[8] = {0};
	struct peer p;

	check_case("killed after its word");
	start(&p, say_and_wait);
	CHECK(rs_poll1(p.fd, POLLIN, RS_TEST_WAIT_MS) & POLLIN);
	kill(p.pid, SIGKILL);
	waitpid(p.pid, NULL, 0);
	usleep(200000);
	CHECK_EQ(rrecv(p.fd, buf, sizeof buf, 0), 5);
	CHECK_EQ(rrecv(p.fd, buf, sizeof buf, 0), -1);
	CHECK_EQ(errno, ECONNRESET);
	rclose(p.fd);
}

/* ---- several threads asleep for one rsocket ---- */

static void *poll_in(void *arg)
{
	CHECK(rs_poll1(*(int *)arg, POLLIN, RS_TEST_WAIT_MS) & POLLIN);
	return NULL;
}

static void *recv_one(void *arg)
{
	char c;

	CHECK_EQ(rrecv(*(int *)arg, &c, 1, 0), 1);
	return NULL;
}

static void *recv_closed(void *arg)
{
	char c;

	CHECK_EQ(rrecv(*(int *)arg, &c, 1, 0), -1);
	return NULL;
}

static void sleepers(void)
{
	struct rs_pair p = rs_pair();
	pthread_t t[4];
	int done = 0;

	check_case("sleepers");
	pthread_create(&t[0], NULL, poll_in, &p.passive);
	pthread_create(&t[1], NULL, recv_one, &p.passive);
	pthread_create(&t[2], NULL, recv_one, &p.passive);
	usleep(50000);
	CHECK_EQ(rsend(p.active, "xyz", 3, 0), 3);
	for (done = 0; done < 3; done++)
		pthread_join(t[done], NULL);
	CHECK_EQ(rrecv(p.passive, &(char){0}, 1, 0), 1);
	pthread_create(&t[0], NULL, recv_closed, &p.passive);
	usleep(50000);
	CHECK_EQ(rclose(p.passive), 0);
	pthread_join(t[0], NULL);
	rclose(p.active);
}

int main(void)
{
	both_ways();
	short_of_credit();
	killed(IN_RECV);
	killed(IN_POLL);
	killed(IN_SEND);
	killed_after();
	sleepers();
	return check_result();
}
