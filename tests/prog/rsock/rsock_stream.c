// SPDX-License-Identifier: BSD-3-Clause
/* Stream rsockets within one process: errors, options, names, blocking or not, ends. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/rs_ends.h"

enum { MANY = 100, SHORT_MS = 200 };

/* ---- what is refused ---- */

static void refusals(void)
{
	struct sockaddr_in addr = rs_addr4(0);
	struct sockaddr_in6 addr6 = {.sin6_family = AF_INET6};
	socklen_t len = sizeof addr;
	char c = 0;
	int s;

	check_case("refusals");
	CHECK_FAILS(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	CHECK_FAILS(rsocket(AF_INET, SOCK_RAW, 0), ESOCKTNOSUPPORT);
	CHECK_FAILS(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
	CHECK_FAILS(rclose(0), EBADF);
	CHECK_FAILS(rclose(-1), EBADF);
	CHECK_FAILS(rsend(0, &c, 1, 0), EBADF);
	CHECK_FAILS(rrecv(5000000, &c, 1, 0), EBADF);
	CHECK_FAILS(rlisten(1, 1), EBADF);
	s = rsocket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	CHECK(s >= 0);
	CHECK_FAILS(rsend(s, &c, 1, 0), ENOTCONN);
	CHECK_FAILS(rrecv(s, &c, 1, 0), ENOTCONN);
	CHECK_FAILS(rrecv(s, &c, 1, MSG_OOB), EOPNOTSUPP);
	CHECK_FAILS(rshutdown(s, SHUT_WR), ENOTCONN);
	CHECK_FAILS(raccept(s, NULL, NULL), EINVAL);
	CHECK_FAILS(rgetpeername(s, (struct sockaddr *)&addr, &len), ENOTCONN);
	CHECK_FAILS(riomap(s, &c, 1, PROT_WRITE, 0, 0), ENOTCONN);
	CHECK_FAILS((ssize_t)riowrite(s, &c, 1, 0, 0), ENOTCONN);
	CHECK_FAILS(rbind(s, (struct sockaddr *)&addr, 3), EINVAL);
	CHECK_FAILS(rbind(s, (struct sockaddr *)&addr6, sizeof addr6), EAFNOSUPPORT);
	addr.sin_addr.s_addr = inet_addr("203.0.113.9");
	CHECK_FAILS(rbind(s, (struct sockaddr *)&addr, sizeof addr), EADDRNOTAVAIL);
	addr = rs_addr4(0);
	CHECK_EQ(rbind(s, (struct sockaddr *)&addr, sizeof addr), 0);
	CHECK_FAILS(rbind(s, (struct sockaddr *)&addr, sizeof addr), EINVAL);
	CHECK_EQ(rclose(s), 0);
	CHECK_FAILS(rclose(s), EBADF);
}

static void refused(void)
{
	struct sockaddr_in addr, far = rs_addr4(9);
	int l, s, err = 0;
	socklen_t len = sizeof err;
	uint16_t port;

	check_case("refused");
	l = rs_listener(&port);
	addr = rs_addr4(port);
	rclose(l);
	usleep(300000); /* for a moment a request waits for a listener to come */
	s = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK_FAILS(rconnect(s, (struct sockaddr *)&addr, sizeof addr), ECONNREFUSED);
	rclose(s);
	s = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK_EQ(rconnect(s, (struct sockaddr *)&addr, sizeof addr), -1);
	err = errno; /* at once already where the call took long */
	if (err == EINPROGRESS) {
		CHECK(rs_poll1(s, POLLOUT, RS_TEST_WAIT_MS) & POLLERR);
		CHECK_EQ(rgetsockopt(s, SOL_SOCKET, SO_ERROR, &err, &len), 0);
	}
	CHECK_EQ(err, ECONNREFUSED);
	rclose(s);
	far.sin_addr.s_addr = inet_addr("203.0.113.9");
	s = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK_FAILS(rconnect(s, (struct sockaddr *)&far, sizeof far), ENETUNREACH);
	rclose(s);
	/* A listener that goes while somebody waits for it. */
	l = rs_listener(&port);
	s = rs_connecting(port);
	rclose(l);
	CHECK(rs_poll1(s, POLLOUT, RS_TEST_WAIT_MS) & POLLERR);
	rclose(s);
}

/* ---- options and names ---- */

static int get_int(int s, int level, int name)
{
	int n = -1;
	socklen_t len = sizeof n;

	return rgetsockopt(s, level, name, &n, &len) ? -errno : n;
}

static int set_int(int s, int level, int name, int n)
{
	return rsetsockopt(s, level, name, &n, sizeof n) ? -errno : 0;
}

/* An rsocket whose connection was refused, of which nobody has asked yet. */
static int refused_one(void)
{
	uint16_t port;
	int l = rs_listener(&port), s = rs_connecting(port);

	rclose(l);
	CHECK(rs_poll1(s, POLLOUT, RS_TEST_WAIT_MS) & POLLERR);
	return s;
}

/* Whoever is told of an error first is the only one. */
static void told_once(void)
{
	struct sockaddr_in addr = rs_addr4(9);
	char c = 0;
	int s = refused_one();

	check_case("an error is told once: SO_ERROR");
	CHECK_EQ(get_int(s, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	CHECK_EQ(get_int(s, SOL_SOCKET, SO_ERROR), 0);
	CHECK_EQ(rs_poll1(s, POLLOUT, 0) & POLLERR, 0);
	CHECK_FAILS(rsend(s, &c, 1, MSG_NOSIGNAL), EPIPE);
	CHECK_EQ(rrecv(s, &c, 1, 0), 0);
	rclose(s);
	check_case("an error is told once: rrecv()");
	s = refused_one();
	CHECK_FAILS(rrecv(s, &c, 1, 0), ECONNREFUSED);
	CHECK_EQ(get_int(s, SOL_SOCKET, SO_ERROR), 0);
	CHECK_EQ(rrecv(s, &c, 1, 0), 0);
	rclose(s);
	check_case("an error is told once: rsend()");
	s = refused_one();
	CHECK_FAILS(rsend(s, &c, 1, MSG_NOSIGNAL), ECONNREFUSED);
	CHECK_EQ(get_int(s, SOL_SOCKET, SO_ERROR), 0);
	CHECK_FAILS(rsend(s, &c, 1, MSG_NOSIGNAL), EPIPE);
	rclose(s);
	check_case("an error is told once: rconnect()");
	s = refused_one();
	CHECK_FAILS(rconnect(s, (struct sockaddr *)&addr, sizeof addr), ECONNREFUSED);
	CHECK_EQ(get_int(s, SOL_SOCKET, SO_ERROR), 0);
	rclose(s);
}

/* As a TCP socket beside it that goes the same way. */
static void unconnected(void)
{
	struct sockaddr_in addr = rs_addr4(0);
	struct pollfd tcp = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	int s = rsocket(AF_INET, SOCK_STREAM, 0);

	check_case("not connected");
	for (int bound = 0;; bound++) {
		for (short events = 0; events <= (POLLIN | POLLOUT); events++) {
			tcp.events = events & (POLLIN | POLLOUT);
			CHECK_EQ(poll(&tcp, 1, 0), 1);
			CHECK_EQ(rs_poll1(s, tcp.events, 0), tcp.revents);
		}
		CHECK_EQ(tcp.revents, POLLOUT | POLLHUP);
		if (bound)
			break;
		CHECK_EQ(bind(tcp.fd, (struct sockaddr *)&addr, sizeof addr), 0);
		CHECK_EQ(rbind(s, (struct sockaddr *)&addr, sizeof addr), 0);
	}
	rclose(s);
	close(tcp.fd);
}

/* rpoll(), as poll(2), never says early that nothing has come. */
static void no_less_than(void)
{
	int s = rsocket(AF_INET, SOCK_DGRAM, 0);
	double begun;

	check_case("no less than the time that was given");
	for (int ms = 1; ms <= 5; ms++) {
		begun = now_ms();
		CHECK_EQ(rs_poll1(s, POLLIN, ms), 0);
		CHECK(now_ms() - begun >= ms);
	}
	rclose(s);
}

static void options(void)
{
	static const struct {
		int level, name, val;
	} table[] = {
		{SOL_SOCKET, SO_SNDBUF, 1 << 16},
		{SOL_SOCKET, SO_RCVBUF, 1 << 18},
		{SOL_SOCKET, SO_REUSEADDR, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{SOL_SOCKET, SO_OOBINLINE, 1},
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, 5},
		{IPPROTO_IPV6, IPV6_V6ONLY, 1},
		{SOL_RDMA, RDMA_SQSIZE, 100},
		{SOL_RDMA, RDMA_RQSIZE, 200},
		{SOL_RDMA, RDMA_INLINE, 0},
		{SOL_RDMA, RDMA_IOMAPSIZE, 4},
	};
	struct linger linger = {.l_onoff = 1, .l_linger = 3}, got = {0};
	struct timeval t = {.tv_usec = 50000};
	socklen_t len = sizeof got;
	int s = rsocket(AF_INET6, SOCK_STREAM, 0);

	check_case("options");
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		CHECK_EQ(set_int(s, table[i].level, table[i].name, table[i].val), 0);
		CHECK_EQ(get_int(s, table[i].level, table[i].name), table[i].val);
	}
	CHECK_EQ(set_int(s, SOL_SOCKET, SO_SNDBUF, -1), -EINVAL);
	CHECK_EQ(set_int(s, SOL_SOCKET, SO_BROADCAST, 1), -ENOPROTOOPT);
	CHECK_EQ(set_int(s, SOL_RDMA, RDMA_ROUTE, 1), -EINVAL);
	CHECK_EQ(get_int(s, SOL_RDMA, RDMA_ROUTE), -ENOTCONN);
	CHECK_EQ(get_int(s, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	CHECK_EQ(rsetsockopt(s, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
	CHECK_EQ(rgetsockopt(s, SOL_SOCKET, SO_LINGER, &got, &len), 0);
	CHECK_EQ(got.l_linger, 3);
	CHECK_EQ(rsetsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), 0);
	CHECK_EQ(rfcntl(s, F_GETFL), O_RDWR);
	rs_nonblock(s, true);
	CHECK_EQ(rfcntl(s, F_GETFL), O_RDWR | O_NONBLOCK);
	rclose(s);
}

static int set_time(int s, int name, time_t sec, suseconds_t usec)
{
	const struct timeval t = {.tv_sec = sec, .tv_usec = usec};

	return rsetsockopt(s, SOL_SOCKET, name, &t, sizeof t) ? -errno : 0;
}

static time_t seconds(int s, int name)
{
	struct timeval t = {.tv_sec = -1};
	socklen_t len = sizeof t;

	CHECK_EQ(rgetsockopt(s, SOL_SOCKET, name, &t, &len), 0);
	return t.tv_usec ? -1 : t.tv_sec;
}

static void *send_in_a_moment(void *arg)
{
	struct timespec nap = {.tv_nsec = 20000000};

	nanosleep(&nap, NULL);
	CHECK_EQ(rsend(*(int *)arg, "x", 1, 0), 1);
	return NULL;
}

/* Nothing is there, and something comes only once the other waits. */
static void receives(struct rs_pair *p)
{
	pthread_t t;
	char c;

	if (pthread_create(&t, NULL, send_in_a_moment, &p->active))
		die("pthread_create");
	CHECK_EQ(rrecv(p->passive, &c, 1, 0), 1);
	pthread_join(t, NULL);
}

/* Longer than any clock counts is for ever, and less than nothing does not wait; as of TCP. */
static void time_limits(void)
{
	static const int name[] = {SO_RCVTIMEO, SO_SNDTIMEO};
	/* Those of LONG_MAX, of 2^64 ns and a little more, of 2^64 ns less than the time now. */
	static const time_t ever[] = {LONG_MAX, LONG_MAX / 1000, 18446744074, 18446744073};
	struct rs_pair p = rs_pair();
	char c;

	check_case("time limits");
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(set_time(p.passive, name[i], 100L * 365 * 24 * 3600, 0), 0);
		CHECK_EQ(seconds(p.passive, name[i]), 100L * 365 * 24 * 3600);
		CHECK_EQ(set_time(p.passive, name[i], 3, 1000000), -EDOM);
		CHECK_EQ(set_time(p.passive, name[i], 3, -1), -EDOM);
		CHECK_EQ(seconds(p.passive, name[i]), 100L * 365 * 24 * 3600);
	}
	receives(&p);
	for (size_t i = 0; i < sizeof ever / sizeof ever[0]; i++) {
		CHECK_EQ(set_time(p.passive, SO_SNDTIMEO, ever[i], 999999), 0);
		CHECK_EQ(seconds(p.passive, SO_SNDTIMEO), 0);
		CHECK_EQ(set_time(p.passive, SO_RCVTIMEO, ever[i], 999999), 0);
		CHECK_EQ(seconds(p.passive, SO_RCVTIMEO), 0);
		receives(&p);
	}
	CHECK_EQ(set_time(p.passive, SO_RCVTIMEO, -1, 0), 0);
	CHECK_EQ(seconds(p.passive, SO_RCVTIMEO), 0);
	CHECK_FAILS(rrecv(p.passive, &c, 1, 0), EAGAIN);
	CHECK_EQ(set_time(p.passive, SO_RCVTIMEO, 0, 0), 0);
	receives(&p);
	rclose(p.active);
	rclose(p.passive);
}

static void names(void)
{
	struct sockaddr_in a, b, from;
	socklen_t len = sizeof a;
	struct ibv_path_data path;
	struct rs_pair p;
	uint16_t port;
	int l, s;

	check_case("names");
	l = rs_listener(&port);
	CHECK_EQ(get_int(l, SOL_SOCKET, SO_ACCEPTCONN), 1);
	s = rs_connecting(port);
	p = (struct rs_pair){.active = s, .passive = raccept(l, (struct sockaddr *)&from, &len)};
	CHECK(p.passive >= 0);
	CHECK(rs_poll1(s, POLLOUT, RS_TEST_WAIT_MS) & POLLOUT);
	CHECK_EQ(rgetsockname(p.active, (struct sockaddr *)&a, &len), 0);
	CHECK_EQ(rgetpeername(p.passive, (struct sockaddr *)&b, &len), 0);
	CHECK(memcmp(&a, &b, sizeof a) == 0 && memcmp(&a, &from, sizeof a) == 0);
	CHECK_EQ(rgetpeername(p.active, (struct sockaddr *)&b, &len), 0);
	CHECK_EQ(ntohs(b.sin_port), port);
	a = rs_addr4(port);
	CHECK_EQ(rconnect(s, (struct sockaddr *)&a, sizeof a), 0); /* it is, now */
	CHECK_FAILS(rconnect(s, (struct sockaddr *)&a, sizeof a), EISCONN);
	len = sizeof path;
	CHECK_EQ(rgetsockopt(p.active, SOL_RDMA, RDMA_ROUTE, &path, &len), 0);
	CHECK_EQ(ntohs(path.path.pkey), 0xffff);
	rclose(l);
	rclose(p.active);
	rclose(p.passive);
}

/* ---- bytes ---- */

static void send_all(int s, uint64_t from, size_t n)
{
	uint8_t buf[4096];

	while (n) {
		size_t part = n < sizeof buf ? n : sizeof buf;

		for (size_t i = 0; i < part; i++)
			buf[i] = pattern_byte(0, from + i);
		if (rsend(s, buf, part, 0) != (ssize_t)part)
			die("rsend");
		from += part;
		n -= part;
	}
}

static void expect_bytes(int s, uint64_t from, size_t n)
{
	uint8_t *buf = malloc(n);
	size_t bad = 0;

	CHECK_EQ(rrecv(s, buf, n, MSG_WAITALL), n);
	for (size_t i = 0; i < n; i++)
		bad += buf[i] != pattern_byte(0, from + i);
	CHECK_EQ(bad, 0);
	free(buf);
}

/* What was written at once may come in pieces. */
static void arrived(int s, size_t n)
{
	double until = now_ms() + RS_TEST_WAIT_MS;
	char buf[16];

	while (rrecv(s, buf, n, MSG_PEEK | MSG_DONTWAIT) != (ssize_t)n && now_ms() < until)
		usleep(100);
}

static void bytes(void)
{
	struct rs_pair p = rs_pair();
	char a[3], b[5], c;
	struct iovec iov[2] = {{a, sizeof a}, {b, sizeof b}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	check_case("bytes");
	CHECK_EQ(rwrite(p.active, "abcdefgh", 8), 8);
	arrived(p.passive, 8);
	CHECK_EQ(rrecv(p.passive, b, 3, MSG_PEEK), 3);
	CHECK(memcmp(b, "abc", 3) == 0);
	CHECK_EQ(rreadv(p.passive, iov, 2), 8);
	CHECK(memcmp(a, "abc", 3) == 0 && memcmp(b, "defgh", 5) == 0);
	CHECK_EQ(rwritev(p.passive, iov, 2), 8);
	memset(a, 0, sizeof a);
	arrived(p.active, 8);
	CHECK_EQ(rrecvmsg(p.active, &msg, MSG_PEEK), 8);
	CHECK(memcmp(a, "abc", 3) == 0 && memcmp(b, "defgh", 5) == 0);
	CHECK_EQ(rrecvmsg(p.active, &msg, 0), 8);
	CHECK_EQ(rsendmsg(p.active, &msg, 0), 8);
	arrived(p.passive, 8);
	CHECK_EQ(rread(p.passive, b, 5), 5);
	CHECK_EQ(rread(p.passive, b, 5), 3);
	CHECK_FAILS(rrecv(p.passive, &c, 1, MSG_DONTWAIT), EAGAIN);
	CHECK_EQ(rsend(p.active, b, 0, 0), 0);
	/* Round the ring several times, in pieces that are no divisor of it. */
	for (int i = 0; i < 100; i++) {
		send_all(p.active, i * 7001ull, 7001);
		expect_bytes(p.passive, i * 7001ull, 7001);
	}
	rclose(p.active);
	rclose(p.passive);
}

/* Full, and not full again. */
static void full(void)
{
	struct rs_pair p = rs_pair();
	uint8_t buf[1000];
	size_t sent = 0, got = 0;
	ssize_t n;

	check_case("full");
	rs_nonblock(p.active, true);
	for (;;) {
		for (size_t i = 0; i < sizeof buf; i++)
			buf[i] = pattern_byte(0, sent + i);
		n = rsend(p.active, buf, sizeof buf, 0);
		if (n < 0)
			break;
		sent += n;
	}
	CHECK_EQ(errno, EAGAIN);
	CHECK(sent > 10000);
	CHECK_EQ(rs_poll1(p.active, POLLOUT | POLLIN, 50), 0);
	CHECK_EQ(rs_poll1(p.passive, POLLIN, RS_TEST_WAIT_MS), POLLIN);
	while (got < sent) {
		n = rrecv(p.passive, buf, sizeof buf, 0);
		if (n <= 0)
			die("rrecv");
		for (ssize_t i = 0; i < n; i++)
			if (buf[i] != pattern_byte(0, got + i))
				die("byte %zu is wrong", got + i);
		got += n;
	}
	CHECK_EQ(rs_poll1(p.active, POLLOUT, RS_TEST_WAIT_MS), POLLOUT);
	CHECK_EQ(rs_poll1(p.passive, POLLIN, 0), 0);
	/* Small messages use up receives, not bytes: the same must hold. */
	for (sent = 0; rsend(p.active, "x", 1, 0) == 1; sent++)
		;
	CHECK_EQ(errno, EAGAIN);
	for (got = 0; got < sent; got += n)
		if ((n = rrecv(p.passive, buf, sizeof buf, 0)) <= 0)
			die("rrecv");
	CHECK_EQ(rs_poll1(p.active, POLLOUT, RS_TEST_WAIT_MS), POLLOUT);
	CHECK_EQ(rsend(p.active, "y", 1, 0), 1);
	rclose(p.active);
	rclose(p.passive);
}

/* Nothing to do costs nothing. */
static void idle(void)
{
	struct rs_pair p = rs_pair();
	struct pollfd fds[3] = {{.fd = p.active, .events = POLLIN}};
	struct rusage before, after;
	struct timeval t = {.tv_usec = SHORT_MS * 1000};
	int pipe_fds[2];
	double begin;
	char c;

	check_case("idle");
	if (pipe(pipe_fds))
		die("pipe");
	fds[1] = (struct pollfd){.fd = pipe_fds[0], .events = POLLIN};
	fds[2] = (struct pollfd){.fd = -1, .events = POLLIN};
	getrusage(RUSAGE_SELF, &before);
	begin = now_ms();
	CHECK_EQ(rpoll(fds, 3, SHORT_MS), 0);
	CHECK(now_ms() - begin >= SHORT_MS - 1);
	rsetsockopt(p.passive, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
	CHECK_FAILS(rrecv(p.passive, &c, 1, 0), EAGAIN);
	CHECK(now_ms() - begin >= 2 * SHORT_MS - 2);
	getrusage(RUSAGE_SELF, &after);
	CHECK_RANGE((after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
			    after.ru_utime.tv_usec - before.ru_utime.tv_usec,
		0, SHORT_MS * 1000);
	/* Each kind of fd by itself, and both. */
	CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
	CHECK_EQ(rpoll(fds, 3, -1), 1);
	CHECK(fds[0].revents == 0 && fds[1].revents == POLLIN);
	CHECK_EQ(rsend(p.passive, "y", 1, 0), 1);
	CHECK_EQ(rpoll(fds, 3, -1), 2);
	CHECK_EQ(read(pipe_fds[0], &c, 1), 1);
	CHECK_EQ(rpoll(fds, 3, -1), 1);
	CHECK(fds[0].revents == POLLIN && fds[1].revents == 0);
	fds[2].fd = 999999;
	CHECK_EQ(rpoll(fds, 3, 0), 2);
	CHECK_EQ(fds[2].revents, POLLNVAL);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	rclose(p.active);
	rclose(p.passive);
}

/* A thread that writes a byte once the one that started it sleeps. */
static struct {
	pthread_t thread;
	pid_t waiter;
	int fd;
} sayer;

static void *say(void *arg)
{
	await_sleep(sayer.waiter);
	CHECK_EQ(rsend(sayer.fd, "x", 1, 0), 1);
	return arg;
}

static void say_once_asleep(int fd)
{
	sayer.waiter = gettid();
	sayer.fd = fd;
	if (pthread_create(&sayer.thread, NULL, say, NULL))
		die("pthread_create");
}

static void selects(void)
{
	struct rs_pair p = rs_pair();
	struct timeval t = {.tv_usec = 20000};
	/* In ns, and in 64 bits, this is 512. */
	struct timeval ages = {.tv_sec = 20211507185753197};
	char c;
	int top = (p.active > p.passive ? p.active : p.passive) + 1;
	fd_set in, out;

	check_case("rselect");
	FD_ZERO(&in);
	FD_SET(p.passive, &in);
	CHECK_EQ(rselect(top, &in, NULL, NULL, &t), 0);
	CHECK(!FD_ISSET(p.passive, &in));
	CHECK_EQ(rsend(p.active, "x", 1, 0), 1);
	FD_SET(p.passive, &in);
	FD_ZERO(&out);
	FD_SET(p.active, &out);
	CHECK_EQ(rselect(top, &in, &out, NULL, NULL), 2);
	CHECK(FD_ISSET(p.passive, &in) && FD_ISSET(p.active, &out));
	CHECK_FAILS(rselect(-1, NULL, NULL, NULL, &t), EINVAL);
	FD_ZERO(&in);
	FD_SET(p.passive, &in);
	CHECK_EQ(rrecv(p.passive, &c, 1, 0), 1);
	CHECK_FAILS(rselect(top, &in, NULL, NULL, &(struct timeval){.tv_sec = -1}), EINVAL);
	CHECK_FAILS(rselect(top, &in, NULL, NULL, &(struct timeval){.tv_usec = -1}), EINVAL);
	say_once_asleep(p.active);
	CHECK_EQ(rselect(top, &in, NULL, NULL, &ages), 1);
	pthread_join(sayer.thread, NULL);
	rclose(p.active);
	rclose(p.passive);
}

/* ---- ends ---- */

static void shut(void)
{
	struct rs_pair p = rs_pair();
	char c;

	check_case("shutdown");
	CHECK_EQ(rsend(p.active, "last", 4, 0), 4);
	CHECK_EQ(rshutdown(p.active, SHUT_WR), 0);
	CHECK_FAILS(rsend(p.active, "x", 1, 0), EPIPE);
	CHECK(rs_poll1(p.passive, POLLIN, RS_TEST_WAIT_MS) & POLLIN);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(rrecv(p.passive, &c, 1, 0), 1);
	CHECK_EQ(rrecv(p.passive, &c, 1, 0), 0);
	CHECK_EQ(rrecv(p.passive, &c, 1, 0), 0);
	CHECK_EQ(rsend(p.passive, "back", 4, 0), 4); /* the other direction goes on */
	CHECK_EQ(rrecv(p.active, &c, 1, 0), 1);
	CHECK_EQ(rs_poll1(p.active, POLLIN, 0), POLLIN);
	CHECK_EQ(rshutdown(p.passive, SHUT_RDWR), 0);
	CHECK(rs_poll1(p.passive, POLLIN, RS_TEST_WAIT_MS) & POLLHUP);
	CHECK_FAILS(rshutdown(p.active, 17), EINVAL);
	rclose(p.active);
	rclose(p.passive);
}

static void closes(void)
{
	struct linger now = {.l_onoff = 1};
	struct rs_pair p = rs_pair();
	uint8_t buf[100];

	check_case("close");
	send_all(p.active, 0, 50000);
	rclose(p.active); /* what was sent arrives all the same */
	expect_bytes(p.passive, 0, 50000);
	CHECK_EQ(rrecv(p.passive, buf, 1, 0), 0);
	CHECK(rs_poll1(p.passive, POLLIN, RS_TEST_WAIT_MS) & POLLIN);
	while (rsend(p.passive, buf, 1, 0) == 1)
		usleep(1000);
	CHECK(errno == EPIPE || errno == ECONNRESET);
	rclose(p.passive);

	check_case("abortive close");
	p = rs_pair();
	rsetsockopt(p.active, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	rclose(p.active);
	CHECK(rs_poll1(p.passive, POLLIN, RS_TEST_WAIT_MS) & (POLLERR | POLLHUP));
	CHECK_FAILS(rrecv(p.passive, buf, 1, 0), ECONNRESET);
	CHECK_EQ(rrecv(p.passive, buf, 1, 0), 0);
	CHECK_FAILS(rsend(p.passive, buf, 1, 0), EPIPE);
	rclose(p.passive);
}

/* A client that is gone before the server takes it. */
static void gone(void)
{
	struct rs_pair p;
	uint16_t port;
	int l = rs_listener(&port), s = rs_connecting(port);

	check_case("gone");
	CHECK_EQ(rs_poll1(l, POLLIN, RS_TEST_WAIT_MS), POLLIN);
	rclose(s);
	usleep(50000);
	rs_nonblock(l, true);
	s = raccept(l, NULL, NULL);
	if (s >= 0) {
		CHECK(rs_poll1(s, POLLIN, RS_TEST_WAIT_MS) & (POLLHUP | POLLERR));
		rclose(s);
	} else {
		CHECK_EQ(errno, EAGAIN);
	}
	CHECK_FAILS(raccept(l, NULL, NULL), EAGAIN);
	rs_nonblock(l, false);
	p = rs_pair_at(l, port);
	rclose(p.active);
	rclose(p.passive);
	rclose(l);
}

/* What accept(2) does: says what is missing, and the connection waits until it is there. */
static void no_descriptors(void)
{
	struct rlimit before, limit;
	uint16_t port;
	int l = rs_listener(&port), active = rs_connecting(port), passive = -1, extra = 0, lowest;
	char c = 'x';

	check_case("no descriptors");
	CHECK(rs_poll1(l, POLLIN, RS_TEST_WAIT_MS) == POLLIN);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	lowest = dup(0);
	close(lowest);
	alarm(RS_TEST_WAIT_MS / 1000);
	for (; passive < 0 && extra < MANY; extra++) {
		limit = (struct rlimit){lowest + extra, before.rlim_max};
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
		passive = raccept(l, NULL, NULL);
		CHECK(passive >= 0 || errno == EMFILE);
		CHECK(passive >= 0 || rs_poll1(l, POLLIN, 0) == POLLIN);
	}
	alarm(0);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	CHECK_RANGE(extra, 3, MANY);
	CHECK(rs_poll1(active, POLLOUT, RS_TEST_WAIT_MS) & POLLOUT);
	CHECK_EQ(rsend(active, &c, 1, 0), 1);
	c = 0;
	CHECK_EQ(rrecv(passive, &c, 1, 0), 1);
	CHECK_EQ(c, 'x');
	rclose(active);
	rclose(passive);
	rclose(l);
}

/* As many connections as the limit of descriptors lets us have. */
static int fitting(void)
{
	enum { OTHERS = 60, PER_PAIR = 5 };
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	return limit.rlim_cur > OTHERS + PER_PAIR * MANY ? MANY
							 : (limit.rlim_cur - OTHERS) / PER_PAIR;
}

static void many(void)
{
	static struct rs_pair p[MANY];
	static struct pollfd fds[MANY];
	uint16_t port;
	int l = rs_listener(&port), got = 0, n = fitting();
	char c;

	check_case("many");
	for (int i = 0; i < n; i++) {
		p[i] = rs_pair_at(l, port);
		fds[i] = (struct pollfd){.fd = p[i].passive, .events = POLLIN};
	}
	CHECK_EQ(rpoll(fds, n, 0), 0);
	for (int i = 0; i < n; i += 3)
		CHECK_EQ(rsend(p[i].active, &c, 1, 0), 1);
	while (got < (n + 2) / 3) {
		CHECK(rpoll(fds, n, RS_TEST_WAIT_MS) > 0);
		for (int i = 0; i < n; i++) {
			if (!(fds[i].revents & POLLIN))
				continue;
			CHECK_EQ(i % 3, 0);
			CHECK_EQ(rrecv(p[i].passive, &c, 1, 0), 1);
			got++;
		}
	}
	for (int i = 0; i < n; i++) {
		rclose(p[i].active);
		rclose(p[i].passive);
	}
	rclose(l);
}

/* ---- direct placement ---- */

static void iomap(void)
{
	struct rs_pair p;
	static char buf[2][8192], out[3000];
	uint16_t port;
	int l = rs_listener(&port);
	off_t at;
	char c;

	check_case("iomap");
	CHECK_EQ(set_int(l, SOL_RDMA, RDMA_IOMAPSIZE, 0), 0);
	p = rs_pair_at(l, port);
	CHECK_FAILS(riomap(p.active, buf[0], sizeof buf[0], PROT_WRITE, 0, 0), ENOMEM);
	rclose(p.active);
	rclose(p.passive);
	CHECK_EQ(set_int(l, SOL_RDMA, RDMA_IOMAPSIZE, 2), 0);
	p = rs_pair_at(l, port);
	memset(out, 'o', sizeof out);
	CHECK_FAILS((ssize_t)riowrite(p.passive, out, 1, 0, 0), EINVAL);
	CHECK_EQ(riomap(p.active, buf[0], sizeof buf[0], PROT_WRITE, 0, 1000), 1000);
	CHECK_FAILS(riomap(p.active, buf[1], sizeof buf[1], PROT_WRITE, 0, 1001), EINVAL);
	at = riomap(p.active, buf[1], sizeof buf[1], PROT_WRITE, 0, -1);
	CHECK(at != -1 && at != 1000);
	CHECK_FAILS(riomap(p.active, out, sizeof out, PROT_WRITE, 0, 1 << 20), ENOMEM);
	CHECK_EQ(rsend(p.active, "x", 1, 0), 1);
	CHECK_EQ(rrecv(p.passive, &c, 1, 0), 1);
	CHECK_EQ(riowrite(p.passive, out, sizeof out, 1500, 0), sizeof out);
	CHECK_EQ(riowrite(p.passive, out, 7, at + 8185, 0), 7);
	CHECK_FAILS((ssize_t)riowrite(p.passive, out, 7, 999, 0), EINVAL);
	CHECK_EQ(riowrite(p.passive, out, 7, 1000 + 8190, 0), 2); /* as far as it goes */
	CHECK_EQ(rsend(p.passive, "y", 1, 0), 1);
	CHECK_EQ(rrecv(p.active, &c, 1, 0), 1);
	CHECK(buf[0][499] == 0 && buf[0][500] == 'o' && buf[0][3499] == 'o' && buf[0][3500] == 0);
	CHECK(buf[1][8184] == 0 && buf[1][8185] == 'o' && buf[1][8191] == 'o');
	CHECK_EQ(riounmap(p.active, buf[0], sizeof buf[0]), 0);
	CHECK_FAILS(riounmap(p.active, buf[0], sizeof buf[0]), EINVAL);
	CHECK_EQ(rsend(p.active, "x", 1, 0), 1);
	CHECK_EQ(rrecv(p.passive, &c, 1, 0), 1);
	CHECK_FAILS((ssize_t)riowrite(p.passive, out, 1, 1500, 0), EINVAL);
	rclose(p.active);
	rclose(p.passive);
	rclose(l);
}

/* A child can only close what it inherits; the parent goes on. */
static void forks(void)
{
	struct rs_pair p = rs_pair();
	int status;
	pid_t pid;
	char c;

	check_case("fork");
	pid = fork();
	if (pid == 0) {
		bool ok = rsend(p.active, "c", 1, 0) == -1 && rclose(p.active) == 0 &&
			  rclose(p.passive) == 0;

		_exit(ok ? 0 : 1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(rsend(p.active, "p", 1, 0), 1);
	CHECK_EQ(rrecv(p.passive, &c, 1, 0), 1);
	CHECK_EQ(c, 'p');
	rclose(p.active);
	rclose(p.passive);
}

static int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

int main(void)
{
	int fds;

	refusals();
	refused();
	told_once();
	unconnected();
	no_less_than();
	options();
	time_limits();
	names();
	bytes();
	fds = open_fds();
	full();
	idle();
	selects();
	shut();
	closes();
	gone();
	no_descriptors();
	many();
	iomap();
	forks();
	check_case("left over");
	/* Of hundreds of rsockets nothing; Weft itself may know one more process by a few. */
	CHECK_RANGE(open_fds() - fds, -8, 10);
	return check_result();
}
