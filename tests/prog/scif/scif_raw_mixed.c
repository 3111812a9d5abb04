// SPDX-License-Identifier: BSD-3-Clause
/* Calls of libscif.so.0 and system calls on the SCIF device, in one program and between two. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"
#include "tests/lib/scif_raw.h"
#include "tests/lib/shared_memory.h"

enum { PAGE = 4096, WAIT_MS = 20000, RW = PROT_READ | PROT_WRITE };

static const char *self;

/* Before the device was ever opened: the shim does not know the library yet. */
static void system_calls_on_endpoints(void)
{
	struct scif_pair p = scif_make_pair();
	int fd;
	uint8_t *far = shared_kinds[SHARED_UNLINKED].make(PAGE, &fd), *m;
	char byte = 0;

	check_case("system calls on endpoints");
	CHECK_EQ(scif_register(p.b, far, PAGE, 0x10000, 3, SCIF_MAP_FIXED), 0x10000);
	if (scif_can_map()) {
		m = mmap(NULL, PAGE, RW, MAP_SHARED, p.a, 0x10000);
		if (m == MAP_FAILED)
			die("mmap");
		far[5] = 55;
		CHECK_EQ(m[5], 55);
		m[6] = 66;
		CHECK_EQ(far[6], 66);
		CHECK_EQ(scif_munmap(m, PAGE), 0);
	}
	close(fd);
	CHECK_EQ(raw_send(p.a, RAW_NEW, "x", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(raw_recv(p.b, RAW_OLD, &byte, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(byte, 'x');
	CHECK_EQ(close(p.a), 0);
	CHECK_EQ(scif_raw_poll(p.b, POLLIN, WAIT_MS), POLLHUP);
	scif_close(p.b);
	scif_close(p.listener);
}

static void calls_on_the_device(void)
{
	struct raw_pair p = raw_make_pair(RAW_NEW);
	uint8_t *far = scif_pages(2 * PAGE), *m;
	char byte = 0;

	check_case("calls on the device");
	CHECK_EQ(scif_send(p.a, "y", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(scif_recv(p.b, &byte, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(byte, 'y');
	CHECK_EQ(scif_register(p.b, far, 2 * PAGE, 0x10000, 3, SCIF_MAP_FIXED), 0x10000);
	if (scif_can_map()) {
		m = scif_mmap(NULL, 2 * PAGE, 3, 0, p.a, 0x10000);
		if (m == MAP_FAILED)
			die("scif_mmap");
		m[PAGE] = 7;
		CHECK_EQ(far[PAGE], 7);
		CHECK_EQ(munmap(m, PAGE), 0);
		CHECK_EQ(m[PAGE], 7);
		CHECK_EQ(scif_munmap(m, 2 * PAGE), 0);
	}
	CHECK_EQ(scif_unregister(p.b, 0x10000, 2 * PAGE), 0);
	CHECK_EQ(scif_events(p.a, POLLIN | POLLOUT, WAIT_MS), POLLOUT);
	CHECK_EQ(scif_close(p.a), 0);
	CHECK_EQ(scif_raw_poll(p.b, POLLIN, WAIT_MS), POLLHUP);
	close(p.b);
	close(p.listener);
}

static void accepted_by_the_other(void)
{
	struct scif_portID id;
	struct raw_id peer;
	scif_epd_t l, c, s;
	uint16_t port;

	check_case("accepted by the other");
	l = scif_listener(2, &port);
	c = raw_open(RAW_OLD, O_NONBLOCK);
	CHECK_EQ(raw_connect(c, RAW_OLD, (struct raw_id){0, port}), -1);
	CHECK_EQ(scif_accept(l, &id, &s, SCIF_ACCEPT_SYNC), 0);
	CHECK_EQ(scif_events(c, POLLOUT, WAIT_MS), POLLOUT);
	CHECK_EQ(raw_connect(c, RAW_OLD, (struct raw_id){0, port}), id.port);
	scif_close(s);
	scif_close(c);

	id = (struct scif_portID){0, port};
	c = scif_open();
	fcntl(c, F_SETFL, O_NONBLOCK);
	CHECK_EQ(scif_connect(c, &id), -1);
	s = raw_accept(l, RAW_NEW, SCIF_ACCEPT_SYNC, &peer);
	CHECK(s >= 0);
	CHECK_EQ(scif_events(c, POLLOUT, WAIT_MS), POLLOUT);
	CHECK_EQ(scif_connect(c, &id), peer.port);
	scif_close(s);
	scif_close(c);
	scif_close(l);
}

/* Who asks is gone when the answer comes: the accepted endpoint is given up, once. */
static void nobody_to_accept(void)
{
	struct scif_portID dst = {0}, peer;
	uint16_t port;
	scif_epd_t l = scif_listener(2, &port), s;

	check_case("nobody to accept");
	dst.port = port;
	for (int i = 0; i < 5; i++) {
		scif_epd_t c = scif_open();
		double until = now_ms() + 200;

		fcntl(c, F_SETFL, O_NONBLOCK);
		CHECK_EQ(scif_connect(c, &dst), -1);
		CHECK_EQ(scif_raw_poll(l, POLLIN, WAIT_MS), POLLIN);
		CHECK_EQ(close(c), 0);
		do {
			CHECK_EQ(scif_accept(l, &peer, &s, 0), -1);
			CHECK_EQ(errno, EAGAIN);
		} while (scif_raw_poll(l, POLLIN, 0) && now_ms() < until);
	}
	scif_close(l);
}

/* Close(2) that the shim does not see: the connection ends all the same. */
static void replaced(void)
{
	struct raw_pair p = raw_make_pair(RAW_NEW);

	check_case("replaced");
	CHECK_EQ(dup2(STDERR_FILENO, p.a), p.a);
	CHECK_EQ(scif_raw_poll(p.b, 0, WAIT_MS), POLLHUP);
	raw_end_pair(&p);
}

static void server(int in, int out)
{
	struct raw_id peer;
	uint16_t port;
	int l = raw_listener(RAW_OLD, 2, &port), s;
	uint8_t *near = scif_pages(PAGE);
	struct raw_copy c = {0x10000, PAGE, 0x20000, 0, SCIF_RMA_SYNC};
	char buf[5];

	scif_tell(out, port);
	s = raw_accept(l, RAW_OLD, SCIF_ACCEPT_SYNC, &peer);
	CHECK_EQ(raw_recv(s, RAW_OLD, buf, 5, SCIF_RECV_BLOCK), 5);
	CHECK_EQ(memcmp(buf, "hello", 5), 0);
	CHECK_EQ(raw_register(s, RAW_OLD, near, PAGE, 0x10000, SCIF_MAP_FIXED), 0x10000);
	CHECK_EQ(raw_do(s, RAW_OLD, RAW_READFROM, &c), 0);
	CHECK_EQ(near[100], 'w');
	CHECK_EQ(raw_send(s, RAW_OLD, "done", 4, SCIF_SEND_BLOCK), 4);
	scif_hear(in);
	close(s);
	close(l);
}

static void two_processes(void)
{
	struct scif_child child = scif_fork(server);
	scif_epd_t c = scif_dial(0, scif_hear(child.from));
	uint8_t *far = scif_pages(PAGE);
	char buf[4];

	check_case("two processes");
	memset(far, 'w', PAGE);
	CHECK_EQ(scif_register(c, far, PAGE, 0x20000, 3, SCIF_MAP_FIXED), 0x20000);
	CHECK_EQ(scif_send(c, "hello", 5, SCIF_SEND_BLOCK), 5);
	CHECK_EQ(scif_recv(c, buf, 4, SCIF_RECV_BLOCK), 4);
	CHECK_EQ(memcmp(buf, "done", 4), 0);
	scif_tell(child.to, 0);
	scif_join(&child);
	scif_close(c);
}

static int inherited;

/* It closes what it inherited, has no half-accepted connections, and can open its own. */
static void heir(int in, int out)
{
	struct raw_id peer;
	uint16_t port;
	int l, s;
	char byte = 0;

	CHECK_EQ(close(inherited), 0);
	l = raw_listener(RAW_NEW, 1, &port);
	scif_tell(out, port);
	s = raw_accept(l, RAW_NEW, SCIF_ACCEPT_SYNC, &peer);
	CHECK_EQ(raw_recv(s, RAW_NEW, &byte, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(byte, 'h');
	scif_hear(in);
	close(s);
	close(l);
}

static void forked(void)
{
	struct raw_pair p = raw_make_pair(RAW_NEW);
	struct raw_accept a = {.flags = SCIF_ACCEPT_SYNC};
	struct scif_child child;
	int c = raw_open(RAW_NEW, O_NONBLOCK), e;
	char byte;

	check_case("forked");
	CHECK_EQ(raw_connect(c, RAW_NEW, (struct raw_id){0, p.port}), -1);
	CHECK_EQ(raw_do(p.listener, RAW_NEW, RAW_ACCEPTREQ, &a), 0);
	CHECK_EQ(scif_raw_poll(c, POLLOUT, WAIT_MS), POLLOUT);
	inherited = p.a;
	child = scif_fork(heir);
	e = scif_dial(0, scif_hear(child.from));
	CHECK_EQ(raw_send(e, RAW_NEW, "h", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(raw_send(p.a, RAW_NEW, "p", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(raw_recv(p.b, RAW_NEW, &byte, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(close(p.a), 0);
	CHECK_EQ(scif_raw_poll(p.b, 0, WAIT_MS), POLLHUP);
	scif_tell(child.to, 0);
	scif_join(&child);
	close(e);
	close(p.b);
	close(p.listener);
	close(c);
}

static struct raw_pair parents;

/*
 * Every system call that the shim wraps, on what was inherited: the library asks the kernel about
 * such an fd, and must not come back by the shim.
 */
static void user(int in, int out)
{
	struct pollfd p[2] = {{.fd = parents.a, .events = POLLIN | POLLOUT}, {.fd = in}};
	uint8_t *far = scif_pages(PAGE);
	char buf[2] = "";
	void *m;

	CHECK_EQ(poll(p, 2, WAIT_MS), 1);
	CHECK_EQ(p[0].revents, POLLOUT);
	CHECK_EQ(scif_events(parents.a, POLLIN | POLLOUT, WAIT_MS), POLLOUT);
	p[0].events = POLLIN;
	CHECK_EQ(poll(p, 2, 0), 0);
	CHECK_EQ(poll(p, 2, 20), 0);
	/* Nothing is there yet: both wait in poll(2). */
	CHECK_EQ(raw_send(parents.a, RAW_NEW, "u", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(raw_recv(parents.a, RAW_NEW, buf, 2, SCIF_RECV_BLOCK), 2);
	CHECK_EQ(memcmp(buf, "ok", 2), 0);
	m = mmap(NULL, PAGE, RW, MAP_SHARED, parents.a, 0x10000);
	CHECK(m == MAP_FAILED && errno == EOPNOTSUPP);
	CHECK_EQ(munmap(far, PAGE), 0);
	CHECK_EQ(ioctl(parents.a, RAW_GET_VERSION), 1);
	/* Nobody has asked yet, and once the parent knows that somebody has. */
	CHECK_EQ(scif_raw_poll(parents.listener, POLLIN, 0), 0);
	scif_tell(out, 0);
	CHECK_EQ(
		close(raw_accept(parents.listener, RAW_NEW, SCIF_ACCEPT_SYNC, &(struct raw_id){0})),
		0);
	CHECK_EQ(close(parents.a), 0);
	CHECK_EQ(poll(p, 1, 0), 1);
	CHECK_EQ(p[0].revents, POLLNVAL);
}

static void used_by_a_child(void)
{
	struct scif_child child;
	int c;
	char byte = 0;

	check_case("used by a child");
	parents = raw_make_pair(RAW_NEW);
	child = scif_fork(user);
	CHECK_EQ(raw_recv(parents.b, RAW_NEW, &byte, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(byte, 'u');
	CHECK_EQ(raw_send(parents.b, RAW_NEW, "o", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(raw_send(parents.b, RAW_NEW, "k", 1, SCIF_SEND_BLOCK), 1);
	scif_hear(child.from);
	c = raw_open(RAW_NEW, 0);
	CHECK(raw_connect(c, RAW_NEW, (struct raw_id){0, parents.port}) >= 0);
	close(c);
	scif_join(&child);
	raw_end_pair(&parents);
}

static int run_again(const char *what, int fd)
{
	char number[16];
	int status;
	pid_t pid;

	snprintf(number, sizeof(number), "%d", fd);
	pid = fork();
	if (!pid) {
		if (!strcmp(what, "unshimmed"))
			unsetenv("LD_PRELOAD");
		execl(self, self, what, number, NULL);
		_exit(99);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("fork");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* What another program finds: after exec(3) an inherited endpoint is a socket and no more. */
static int other_program(const char *what, int fd)
{
	int ret = ioctl(fd, RAW_GET_VERSION), err = errno;

	if (!strcmp(what, "unshimmed"))
		return open("/dev/scif", O_RDWR) == -1 ? errno : 0;
	return ret == -1 ? err : 0;
}

static void executed(void)
{
	int open_fd = raw_open(RAW_NEW, 0), closed_fd = raw_open(RAW_NEW, O_CLOEXEC);

	check_case("executed");
	CHECK_EQ(run_again("inherited", open_fd), ENOTTY);
	CHECK_EQ(run_again("inherited", closed_fd), EBADF);
	CHECK_EQ(ioctl(open_fd, RAW_GET_VERSION), 1);
	CHECK_EQ(run_again("unshimmed", open_fd), ENOENT);
	close(open_fd);
	close(closed_fd);
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc == 3)
		return other_program(argv[1], atoi(argv[2]));
	two_processes(); /* forks: before there are threads */
	system_calls_on_endpoints();
	calls_on_the_device();
	accepted_by_the_other();
	nobody_to_accept();
	replaced();
	forked();
	used_by_a_child();
	executed();
	return check_result();
}
