// SPDX-License-Identifier: BSD-3-Clause
/*
 * What poll, select and epoll show of a umad file is what read(2) then finds: no event without a
 * MAD, no MAD without an event.  By the system calls alone, since a look through the library puts
 * right what it finds wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/prog/umad/help.h"

enum { MADS = 300, BURST = 3, NOBODY = CLASS + 1, TIMEOUT_MS = 2 };

/* The ways to wait: true: fd is readable.  ms: as of poll(2). */

static int epfd;

static bool by_epoll(int fd, int ms)
{
	struct epoll_event got;

	(void)fd;
	return T_SYS(epoll_wait(epfd, &got, 1, ms));
}

static bool by_poll(int fd, int ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return T_SYS(poll(&pfd, 1, ms));
}

static bool by_select(int fd, int ms)
{
	struct timeval wait = {ms / 1000, ms % 1000 * 1000};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return T_SYS(select(fd + 1, &set, NULL, NULL, &wait));
}

static void watch(int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events};

	epfd = T_SYS(epoll_create1(EPOLL_CLOEXEC));
	T_SYS(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev));
}

struct both {
	int fd;
	uint32_t sender, server;
};

static struct both open_both(void)
{
	struct both b = {.fd = open_file(O_NONBLOCK)};

	b.sender = add_sender(b.fd, 0);
	b.server = add_agent(b.fd, CLASS, 0);
	return b;
}

/* A request to the file itself; or one that nobody answers, which comes back. */
static void send_one(const struct both *b, uint32_t tid, bool to_nobody)
{
	struct packet p = request(b->sender, to_nobody ? NOBODY : CLASS, tid);

	p.hdr.timeout_ms = to_nobody ? TIMEOUT_MS : 0;
	put(b->fd, &p);
}

/* A read; 1: a MAD. */
static unsigned read_one(int fd)
{
	struct packet p;
	ssize_t n = umad_file_read(fd, &p, sizeof p);

	T_CHECK(n > 0 || n == -EAGAIN);
	return n > 0;
}

/* Waits for so many, and takes one at each event. */
static void get_one_by_one(const struct both *b, unsigned n, bool (*wait)(int, int))
{
	while (n) {
		T_CHECK(wait(b->fd, LONG_MS));
		T_EQUAL(read_one(b->fd), 1);
		n--;
	}
}

/* Waits for so many, and takes at each event what there is; but does not look behind the last. */
static void get_to_the_end(const struct both *b, unsigned n, bool (*wait)(int, int))
{
	while (n) {
		unsigned got = 0;

		T_CHECK(wait(b->fd, LONG_MS));
		while (got < n && read_one(b->fd))
			got++;
		T_CHECK(got);
		n -= got;
	}
}

/* Nothing is there, and nothing says so: not even what was shown before and is no news. */
static void check_silent(const struct both *b, bool (*wait)(int, int))
{
	T_CHECK(!wait(b->fd, 0));
	T_CHECK(!by_poll(b->fd, 0));
}

static void all(const struct both *b, bool (*wait)(int, int),
	void (*get)(const struct both *, unsigned, bool (*)(int, int)))
{
	for (uint32_t i = 0; i < MADS; i++) {
		unsigned n = i % 7 ? 1 : BURST;

		check_silent(b, wait);
		for (unsigned k = 0; k < n; k++)
			send_one(b, i * BURST + k, n == 1 && i % 10 == 1);
		get(b, n, wait);
		check_silent(b, wait);
	}
	T_EQUAL(read_one(b->fd), 0);
}

static void readable_by_edge(void)
{
	struct both b = open_both();

	watch(b.fd, EPOLLIN | EPOLLET);
	all(&b, by_epoll, get_to_the_end);
}

static void readable_by_level(void)
{
	struct both b = open_both();

	watch(b.fd, EPOLLIN);
	all(&b, by_epoll, get_one_by_one);
	all(&b, by_epoll, get_to_the_end);
}

static void readable_by_poll(void)
{
	struct both b = open_both();

	all(&b, by_poll, get_one_by_one);
	all(&b, by_poll, get_to_the_end);
}

static void readable_by_select(void)
{
	struct both b = open_both();

	all(&b, by_select, get_one_by_one);
	all(&b, by_select, get_to_the_end);
}

/* ---- two readers ---- */

static _Atomic unsigned read_by_both;

/*
 * May find that the other was faster, but then nothing is left that says otherwise: so it does not
 * look once all were read.
 */
static void *read_some(void *arg)
{
	const struct both *b = arg;

	while (atomic_load(&read_by_both) < MADS)
		if (by_epoll(b->fd, 1) && atomic_load(&read_by_both) < MADS)
			atomic_fetch_add(&read_by_both, read_one(b->fd));
	return NULL;
}

static void readable_to_two(void)
{
	struct both b = open_both();
	pthread_t reader[2];

	watch(b.fd, EPOLLIN);
	for (int i = 0; i < 2; i++)
		T_OK(pthread_create(&reader[i], NULL, read_some, &b));
	for (uint32_t i = 0; i < MADS; i++)
		send_one(&b, i, false);
	for (int i = 0; i < 2; i++)
		T_OK(pthread_join(reader[i], NULL));
	T_EQUAL(atomic_load(&read_by_both), MADS);
	T_CHECK(!by_epoll(b.fd, 0));
	T_CHECK(!by_poll(b.fd, 0));
}

/* ---- no event ---- */

/* As poll(2), both ways never say too early that nothing has come. */
static void waits_long_enough(void)
{
	struct packet p;
	int fd = open_file(0);
	uint64_t begun;

	for (int i = 0; i < 20; i++) {
		int ms = 1 + i % 5;

		begun = clock_ns();
		T_EQUAL(umad_file_wait(fd, ms), -ETIMEDOUT);
		T_CHECK(clock_ns() - begun >= (uint64_t)ms * NSEC_PER_MSEC);
		begun = clock_ns();
		T_EQUAL(umad_file_receive(fd, &p, sizeof p, ms), -ETIMEDOUT);
		T_CHECK(clock_ns() - begun >= (uint64_t)ms * NSEC_PER_MSEC);
	}
}

const struct test_case readiness_cases[] = {
	{"readable_by_edge", readable_by_edge},
	{"readable_by_level", readable_by_level},
	{"readable_by_poll", readable_by_poll},
	{"readable_by_select", readable_by_select},
	{"readable_to_two", readable_to_two},
	{"waits_long_enough", waits_long_enough},
	{0},
};
