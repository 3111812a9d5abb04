// SPDX-License-Identifier: BSD-3-Clause
/* The keeper of a group's sockets: none is lost, whoever dies, and when. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "roce/port/keeper.h"
#include "roce/port/socket.h"

enum { ENTRIES = 6, MANY = 5000 };

/* What a walk saw. */
struct seen {
	int n;
	int times[ENTRIES];
	uint16_t port[ENTRIES];
	int die_after; /* visits; -1: never */
};

static uint16_t port_of(int fd)
{
	struct sockaddr_in a = {0};
	socklen_t len = sizeof a;

	return getsockname(fd, (struct sockaddr *)&a, &len) ? 0 : ntohs(a.sin_port);
}

static void close_entry(const struct keeper_entry *e)
{
	for (int i = 0; i < KEEPER_FDS; i++)
		if (e->fd[i] >= 0)
			close(e->fd[i]);
}

static int look(void *arg, const struct keeper_entry *e)
{
	struct seen *s = arg;

	s->times[e->index]++;
	s->port[e->index] = port_of(e->fd[KEEPER_IPV4]);
	close_entry(e);
	if (s->n++ == s->die_after)
		raise(SIGKILL);
	return 0;
}

/* Entries with a bound socket each, every other with a second one, which nobody else holds. */
static void fill(struct keeper *k, uint16_t *ports)
{
	const struct roce_socket_wish wish = {.addr = {[12] = 127, 0, 0, 1}}, v6 = {.ipv6 = true};

	assert_int_equal(keeper_open(k), 0);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		struct keeper_entry e = {.index = i, .fd = {roce_socket_open(&wish), -1}};

		assert_int_equal(roce_socket_bind(e.fd[0], &wish), 0);
		ports[i] = port_of(e.fd[0]);
		if (i & 1)
			e.fd[KEEPER_IPV6] = roce_socket_open(&v6);
		assert_int_equal(keeper_put(k, &e), 0);
		close_entry(&e);
	}
}

static void whole(const struct keeper *k, const uint16_t *ports)
{
	struct seen s = {.die_after = -1};

	assert_int_equal(keeper_walk(k, look, &s), 0);
	assert_int_equal(s.n, ENTRIES);
	for (int i = 0; i < ENTRIES; i++) {
		assert_int_equal(s.times[i], 1);
		assert_int_equal(s.port[i], ports[i]);
	}
}

/* A walker that is killed at its n-th entry, and is not the last one. */
static void killed_at(const struct keeper *k, int n)
{
	struct seen s = {.die_after = n};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		keeper_walk(k, look, &s);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static void walks(void **state)
{
	uint16_t ports[ENTRIES];
	struct keeper k;

	(void)state;
	fill(&k, ports);
	for (int round = 0; round < 3; round++)
		whole(&k, ports);
	for (int n = 0; n < ENTRIES; n++) {
		killed_at(&k, n);
		killed_at(&k, ENTRIES - 1 - n);
		whole(&k, ports);
	}
	keeper_close(&k);
}

/* A port is taken as long as its socket is on its way, and free once the pair is gone. */
static void holds(void **state)
{
	struct roce_socket_wish wish = {.addr = {[12] = 127, 0, 0, 1}};
	uint16_t ports[ENTRIES];
	struct keeper k;
	int fd;

	(void)state;
	fill(&k, ports);
	fd = roce_socket_open(&wish);
	wish.port = ports[2];
	assert_int_equal(roce_socket_bind(fd, &wish), -EADDRINUSE);
	keeper_close(&k);
	assert_int_equal(roce_socket_bind(fd, &wish), 0);
	close(fd);
}

static int count(void *arg, const struct keeper_entry *e)
{
	close_entry(e);
	++*(int *)arg;
	return 0;
}

/* Full to the brim it can still be walked. */
static void full(void **state)
{
	struct keeper_entry e = {.fd = {STDIN_FILENO, -1}};
	const struct rlimit files = {8192, 8192};
	struct keeper k;
	int err = 0, seen = 0;

	(void)state;
	if (setrlimit(RLIMIT_NOFILE, &files))
		skip();
	assert_int_equal(keeper_open(&k), 0);
	while (!err && e.index < MANY) {
		err = keeper_put(&k, &e);
		e.index += !err;
	}
	assert_true(err == -EAGAIN || err == -ETOOMANYREFS || !err);
	assert_true(e.index > 200);
	assert_int_equal(keeper_walk(&k, count, &seen), 0);
	assert_int_equal(seen, e.index);
	keeper_close(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks),
		cmocka_unit_test(holds),
		cmocka_unit_test(full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
