// SPDX-License-Identifier: BSD-3-Clause
/* Endpoints that a child inherits: it sends and receives, while its parent lives.  scif_heir.c has
   the other calls. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/scif_ends.h"

enum { BIG = 20000, LATE_MS = 10000 };

/* In another process: connects, speaks, and expects the end. */
static void client(int in, int out)
{
	static uint8_t sent[BIG], got[BIG];
	scif_epd_t e = scif_dial(0, scif_hear(in));

	pattern_fill(sent, BIG, 1);
	CHECK_EQ(scif_send(e, "hello", 5, SCIF_SEND_BLOCK), 5);
	CHECK_EQ(scif_recv(e, got, 5, SCIF_RECV_BLOCK), 5);
	CHECK(!memcmp(got, "HELLO", 5));
	CHECK_EQ(scif_send(e, sent, BIG, SCIF_SEND_BLOCK), BIG);
	CHECK_EQ(scif_recv(e, got, BIG, SCIF_RECV_BLOCK), BIG);
	CHECK(!memcmp(sent, got, BIG));
	scif_tell(out, 1);
	/* the last close, which is not the one of who accepted, is the end */
	CHECK_EQ(scif_recv(e, got, 1, SCIF_RECV_BLOCK), -1);
	CHECK_EQ(errno, ECONNRESET);
	scif_close(e);
}

static void serve(scif_epd_t e)
{
	static _Alignas(4096) uint8_t buf[BIG];
	uint8_t c;

	check_case("the child of the server");
	CHECK_EQ(scif_raw_poll(e, POLLIN, LATE_MS), POLLIN);
	CHECK_EQ(scif_recv(e, buf, 5, SCIF_RECV_BLOCK), 5);
	CHECK_EQ(scif_recv(e, &c, 1, 0), 0);
	CHECK_EQ(scif_raw_poll(e, POLLIN, 0), 0); /* nothing is left */
	CHECK_EQ(scif_raw_poll(e, POLLOUT, 0), POLLOUT);
	CHECK_EQ(scif_send(e, "HELLO", 5, 0), 5);
	CHECK_EQ(scif_events(e, POLLIN, LATE_MS), POLLIN);
	CHECK_EQ(scif_recv(e, buf, BIG, SCIF_RECV_BLOCK), BIG);
	CHECK_EQ(scif_send(e, buf, BIG, SCIF_SEND_BLOCK), BIG);
}

/* Accepts, forks, and closes: what servers do. */
static void server(void)
{
	struct scif_child c = scif_fork(client);
	struct scif_portID peer;
	scif_epd_t l, e;
	uint16_t port;
	int status;
	pid_t pid;

	check_case("server");
	l = scif_listener(1, &port);
	scif_tell(c.to, port);
	if (scif_accept(l, &peer, &e, SCIF_ACCEPT_SYNC))
		die("accept");
	pid = fork();
	if (!pid) {
		serve(e);
		scif_hear(c.from); /* the client has it all */
		CHECK_EQ(scif_close(e), 0);
		_exit(check_result());
	}
	CHECK_EQ(scif_close(e), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	check_child(status);
	scif_join(&c);
	CHECK_EQ(scif_close(l), 0);
}

/* Parent and child use both ends of a connection, in turn. */
static void both(void)
{
	struct scif_pair p = scif_make_pair();
	int status;
	pid_t pid;
	char c = 0;

	check_case("both");
	CHECK_EQ(scif_send(p.a, "1", 1, 0), 1);
	pid = fork();
	if (!pid) {
		check_case("the child");
		CHECK_EQ(scif_recv(p.b, &c, 1, SCIF_RECV_BLOCK), 1);
		CHECK_EQ(c, '1');
		CHECK_EQ(scif_send(p.a, "2", 1, SCIF_SEND_BLOCK), 1);
		if (!fork()) { /* whose parent did not make the endpoint */
			CHECK_EQ(scif_send(p.a, "3", 1, SCIF_SEND_BLOCK), 1);
			_exit(check_result());
		}
		wait(&status);
		check_child(status);
		_exit(check_result());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	check_child(status);
	CHECK_EQ(scif_recv(p.b, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(c, '2');
	CHECK_EQ(scif_recv(p.b, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(c, '3');
	CHECK_EQ(scif_send(p.b, "4", 1, 0), 1);
	CHECK_EQ(scif_recv(p.a, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(c, '4');
	scif_end_pair(&p);
}

/* Has an endpoint, and a child, and is killed. */
static void doomed(int in, int out)
{
	struct scif_pair p = scif_make_pair();
	char c;

	(void)in;
	if (!fork()) {
		CHECK_EQ(scif_send(p.a, "x", 1, 0), 1);
		scif_tell(out, 1);
		CHECK_EQ(scif_recv(p.a, &c, 1, SCIF_RECV_BLOCK), -1);
		CHECK_EQ(errno, ECONNRESET);
		CHECK_EQ(scif_send(p.a, "x", 1, 0), -1);
		CHECK_EQ(errno, ECONNRESET);
		CHECK_EQ(scif_close(p.a), 0);
		scif_tell(out, check_failures());
		_exit(0);
	}
	pause();
}

/* The endpoint ends with the process that made it. */
static void parent_killed(void)
{
	struct scif_child c = scif_fork(doomed);

	check_case("the parent is killed");
	CHECK_EQ(scif_hear(c.from), 1);
	kill(c.pid, SIGKILL);
	CHECK_EQ(waitpid(c.pid, NULL, 0), c.pid);
	CHECK_EQ(scif_hear(c.from), 0);
	close(c.to);
	close(c.from);
}

static uint64_t open_fds(void)
{
	uint64_t set = 0;

	for (int fd = 0; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			set |= UINT64_C(1) << fd;
	return set;
}

/*
 * The socket to a child that has ended is not watched any more, though a process that knows nothing
 * of it has it too: its number soon stands for something else.
 */
static void number_used_again(void)
{
	struct scif_pair p = scif_make_pair();
	double until = now_ms() + LATE_MS;
	int gate[2], s[2], fd;
	uint64_t before;
	pid_t child, other;
	char c = 0;

	check_case("the number of a socket to a child");
	if (pipe(gate))
		die("pipe");
	before = open_fds();
	child = fork();
	if (!child) {
		(void)!read(gate[0], &c, 1);
		_exit(0);
	}
	fd = __builtin_ffsll(open_fds() & ~before) - 1;
	other = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!other) /* past all handlers */
		for (;;)
			syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
	CHECK_EQ(write(gate[1], "x", 1), 1);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	while (fd >= 0 && fcntl(fd, F_GETFD) >= 0 && now_ms() < until)
		usleep(100);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s))
		die("socketpair");
	CHECK_EQ(fd == s[0] || fd == s[1], 1);
	CHECK_EQ(write(fd == s[0] ? s[1] : s[0], "mine", 4), 4);
	usleep(50000);
	CHECK_EQ(recv(fd, &c, 1, MSG_DONTWAIT), 1);
	CHECK_EQ(c, 'm');
	kill(other, SIGKILL);
	CHECK_EQ(waitpid(other, NULL, 0), other);
	scif_end_pair(&p);
}

int main(void)
{
	alarm(50);
	number_used_again();
	server();
	both();
	parent_killed();
	return check_result();
}
