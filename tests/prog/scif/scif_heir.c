// SPDX-License-Identifier: BSD-3-Clause
/*
 * All calls on endpoints that a child, or a grandchild, inherited: the process that made them
 * makes the calls for it.  Messages are in scif_fork.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/scif_ends.h"
#include "tests/lib/shared_memory.h"

enum { PAGE = 4096, LEN = 16 * PAGE, BIG = 5 << 20, OFF = 0x100000, OTHER = 0x1000000 };
enum { READ = SCIF_PROT_READ, WRITE = SCIF_PROT_WRITE, BOTH = READ | WRITE };

static struct scif_pair pair;
static uint8_t *ours, *theirs; /* windows of a and b, made before the fork */

/* ---- what heirs do ---- */

static void copies(void)
{
	uint8_t *m = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* windows that were there, of the process that made them */
	CHECK_EQ(scif_writeto(pair.a, OFF, LEN, OTHER, SCIF_RMA_SYNC), 0);
	CHECK_EQ(scif_vreadfrom(pair.a, m, BIG, OTHER, SCIF_RMA_SYNC), 0);
	CHECK_EQ(pattern_match(m, LEN, 1), LEN);
	pattern_fill(m, BIG, 2);
	CHECK_EQ(scif_vwriteto(pair.a, m + 1, BIG - 1, OTHER + 1, SCIF_RMA_USECACHE), 0);
	memset(m, 0, BIG);
	CHECK_EQ(scif_vreadfrom(pair.a, m + 1, BIG - 1, OTHER + 1, SCIF_RMA_ORDERED), 0);
	m[0] = pattern_byte(2, 0);
	CHECK_EQ(pattern_match(m, BIG, 2), BIG);
	CHECK_EQ(scif_readfrom(pair.a, OFF, LEN, OTHER, SCIF_RMA_SYNC), 0);
	CHECK_EQ(scif_vreadfrom(pair.b, m, LEN, OFF, 0), 0);
	m[0] = pattern_byte(2, 0);
	CHECK_EQ(pattern_match(m, LEN, 2), LEN);
	munmap(m, BIG);
}

static void fences(void)
{
	uint64_t word[2] = {0};
	int mark;

	CHECK_EQ(scif_writeto(pair.a, OFF, LEN, OTHER, 0), 0);
	CHECK_EQ(scif_fence_mark(pair.a, SCIF_FENCE_INIT_SELF, &mark), 0);
	CHECK_EQ(scif_fence_wait(pair.a, mark), 0);
	CHECK_EQ(scif_fence_mark(pair.b, SCIF_FENCE_INIT_PEER, &mark), 0);
	CHECK_EQ(scif_fence_wait(pair.b, mark), 0);
	CHECK_EQ(scif_fence_signal(pair.a, OFF + 8, 111, OTHER + 24, 222,
			 SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE),
		0);
	CHECK_EQ(scif_fence_mark(pair.a, SCIF_FENCE_INIT_SELF, &mark), 0);
	CHECK_EQ(scif_fence_wait(pair.a, mark), 0);
	CHECK_EQ(scif_vreadfrom(pair.b, &word[0], 8, OFF + 8, 0), 0);
	CHECK_EQ(scif_vreadfrom(pair.a, &word[1], 8, OTHER + 24, 0), 0);
	CHECK_EQ(word[0], 111);
	CHECK_EQ(word[1], 222);
}

/* Memory of the heir as a window of the endpoint. */
static void windows(void)
{
	uint8_t *m = scif_pages(LEN), got[16];
	off_t o;
	int fd;

	if (!scif_can_map()) {
		CHECK_FAILS(scif_register(pair.a, m, LEN, 0, BOTH, 0), EOPNOTSUPP);
		return;
	}
	pattern_fill(m, LEN, 5);
	o = scif_register(pair.a, m, LEN, 0, BOTH, 0);
	if (!CHECK(o > 0))
		return;
	CHECK_FAILS(scif_register(pair.a, m, LEN, o, BOTH, SCIF_MAP_FIXED), EADDRINUSE);
	CHECK_EQ(scif_vreadfrom(pair.b, got, 16, o + PAGE, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(got, m + PAGE, 16), 0);
	CHECK_EQ(scif_vwriteto(pair.b, "to the heir", 12, o + 8, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(m + 8, "to the heir", 12), 0);
	CHECK_EQ(scif_readfrom(pair.a, o, LEN, OTHER, SCIF_RMA_SYNC), 0);
	pattern_fill(m, 64, 2); /* signals were there */
	CHECK_EQ(pattern_match(m, LEN, 2), LEN);
	CHECK_FAILS(scif_unregister(pair.a, o, PAGE), EINVAL);
	CHECK_EQ(scif_unregister(pair.a, o, LEN), 0);
	CHECK_FAILS(scif_vreadfrom(pair.b, got, 16, o, SCIF_RMA_SYNC), ENXIO);
	/* again, and left for the end */
	CHECK_EQ(scif_register(pair.a, m, LEN, o, READ, SCIF_MAP_FIXED), o);
	CHECK_EQ(scif_vreadfrom(pair.b, got, 16, o + 8, SCIF_RMA_SYNC), 0);
	CHECK_EQ(scif_unregister(pair.a, o, LEN), 0);
	/* what is shared already, and what nobody can map */
	m = shared_kinds[SHARED_UNLINKED].make(LEN, &fd);
	o = scif_register(pair.a, m, LEN, 0, BOTH, 0);
	if (CHECK(o > 0)) {
		CHECK_EQ(scif_vwriteto(pair.b, "shared", 7, o + 8, SCIF_RMA_SYNC), 0);
		CHECK_EQ(memcmp(m + 8, "shared", 7), 0);
		CHECK_EQ(scif_unregister(pair.a, o, LEN), 0);
	}
	CHECK_EQ(mprotect(m, LEN, PROT_READ), 0);
	CHECK_FAILS(scif_register(pair.a, m, LEN, 0, BOTH, 0), EOPNOTSUPP);
	close(fd);
}

static void errors(void)
{
	struct scif_portID dst = {.port = 1};
	uint8_t *m = scif_pages(2 * PAGE);
	int mark;

	munmap(m + PAGE, PAGE);
	CHECK_FAILS(scif_register(pair.a, m + 1, PAGE, 0, BOTH, 0), EINVAL);
	CHECK_FAILS(scif_register(pair.a, m, PAGE, 0, 4, 0), EINVAL);
	if (scif_can_map())
		CHECK_FAILS(scif_register(pair.a, m, 2 * PAGE, 0, BOTH, 0), EFAULT);
	CHECK_FAILS(scif_unregister(pair.a, 0x77000, PAGE), ENXIO);
	CHECK_FAILS(scif_unregister(pair.a, -PAGE, PAGE), EINVAL);
	CHECK_FAILS(scif_writeto(pair.a, OFF, LEN, 0x77000, 0), ENXIO);
	CHECK_FAILS(scif_writeto(pair.a, OFF, LEN, OTHER, 0x100), EINVAL);
	CHECK_FAILS(scif_readfrom(pair.a, OFF, 0, OTHER, 0), EINVAL);
	CHECK_FAILS(scif_vwriteto(pair.a, m, 0, OTHER, 0), EINVAL);
	CHECK_FAILS(scif_vwriteto(pair.a, m + PAGE - 8, 16, OTHER, 0), EFAULT);
	CHECK_FAILS(scif_vreadfrom(pair.a, m + PAGE - 8, 16, OTHER, 0), EFAULT);
	CHECK_FAILS(scif_vwriteto(pair.a, m, 8, 0x77000, 0), ENXIO);
	CHECK_FAILS(scif_fence_mark(pair.a, 0, &mark), EINVAL);
	CHECK_FAILS(scif_fence_mark(pair.a, SCIF_FENCE_INIT_SELF, NULL), EINVAL);
	CHECK_FAILS(scif_fence_wait(pair.a, 12345), EINVAL);
	CHECK_FAILS(scif_fence_signal(
			    pair.a, OFF + 1, 1, 0, 0, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL),
		EINVAL);
	CHECK_FAILS(scif_bind(pair.a, 0), EISCONN);
	CHECK_FAILS(scif_listen(pair.a, 1), EISCONN);
	CHECK_FAILS(scif_connect(pair.a, &dst), EISCONN);
	CHECK_FAILS(scif_bind(pair.listener, 0), EISCONN);
	CHECK_EQ(scif_mmap(NULL, PAGE, READ, 0, pair.a, OTHER) == SCIF_MMAP_FAILED, 1);
	CHECK_EQ(errno, EOPNOTSUPP);
}

/* Accepts what a program in another process asks for. */
static void accepting(scif_epd_t l, uint16_t port)
{
	struct scif_portID peer, dst = {.port = port};
	scif_epd_t e, asks;
	uint8_t c;

	CHECK_FAILS(scif_accept(l, &peer, &e, 0), EAGAIN);
	asks = scif_open();
	CHECK_EQ(fcntl(asks, F_SETFL, O_NONBLOCK), 0);
	CHECK_FAILS(scif_connect(asks, &dst), EINPROGRESS);
	CHECK_EQ(scif_accept(l, &peer, &e, SCIF_ACCEPT_SYNC), 0);
	CHECK_EQ(scif_raw_poll(asks, POLLOUT, 10000), POLLOUT);
	CHECK_EQ(scif_connect(asks, &dst), peer.port);
	CHECK_EQ(scif_send(asks, "q", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(scif_recv(e, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(c, 'q');
	CHECK_EQ(scif_send(e, "a", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(scif_recv(asks, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(c, 'a');
	/* ours is the last close of it */
	CHECK_EQ(scif_close(e), 0);
	CHECK_EQ(scif_recv(asks, &c, 1, SCIF_RECV_BLOCK), -1);
	CHECK_EQ(errno, ECONNRESET);
	errno = 0;
	CHECK_EQ(scif_close(asks), 0);
	CHECK_FAILS(scif_accept(l, &peer, NULL, 0), EINVAL);
	CHECK_FAILS(scif_accept(pair.a, &peer, &e, 0), EINVAL);
}

static void interrupt(int sig)
{
	(void)sig;
}

/* A signal ends a wait for requests, and the next one is not lost. */
static void interrupted(scif_epd_t l)
{
	struct sigaction sa = {.sa_handler = interrupt};
	struct scif_portID peer;
	scif_epd_t e;

	sigaction(SIGALRM, &sa, NULL);
	ualarm(50000, 50000);
	CHECK_FAILS(scif_accept(l, &peer, &e, SCIF_ACCEPT_SYNC), EINTR);
	ualarm(0, 0);
}

static void heir(const char *who)
{
	uint16_t port;
	scif_epd_t l = scif_listener(4, &port); /* one of its own, too */

	check_case("%s", who);
	errno = 0;
	copies();
	fences();
	windows();
	errors();
	accepting(pair.listener, pair.port);
	interrupted(pair.listener);
	accepting(l, port);
	CHECK_EQ(scif_close(l), 0);
}

static void join(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	check_child(status);
}

/* ---- what the peer sees ---- */

/* The peer maps a window of memory of its peer's child, and keeps it when that has died. */
static void mapped(void)
{
	int to[2], back[2];
	uint8_t *m;
	pid_t pid;

	check_case("mapped by the peer");
	if (!scif_can_map() || pipe(to) || pipe(back))
		return;
	pid = fork();
	if (!pid) {
		m = scif_pages(LEN);
		pattern_fill(m, LEN, 8);
		CHECK_EQ(scif_register(pair.a, m, LEN, 4 * OTHER, BOTH, SCIF_MAP_FIXED), 4 * OTHER);
		scif_tell(back[1], 1);
		scif_hear(to[0]);
		CHECK_EQ(m[3], 99);
		m[4] = 98;
		_exit(check_result());
	}
	CHECK_EQ(scif_hear(back[0]), 1);
	m = scif_mmap(NULL, LEN, BOTH, 0, pair.b, 4 * OTHER);
	if (CHECK(m != SCIF_MMAP_FAILED)) {
		CHECK_EQ(pattern_match(m, LEN, 8), LEN);
		m[3] = 99;
	}
	scif_tell(to[1], 1);
	join(pid);
	if (m != SCIF_MMAP_FAILED) {
		CHECK_EQ(m[4], 98);
		CHECK_EQ(scif_munmap(m, LEN), 0);
	}
	/* a window of the endpoint, not of the child */
	m = scif_pages(LEN);
	CHECK_EQ(scif_vreadfrom(pair.b, m, LEN, 4 * OTHER, SCIF_RMA_SYNC), 0);
	CHECK_EQ(m[3], 99);
	CHECK_EQ(m[5], pattern_byte(8, 5));
	CHECK_EQ(scif_unregister(pair.a, 4 * OTHER, LEN), 0);
}

/* A child connects, and its parent goes on with the connection. */
static void connects(void)
{
	struct scif_portID dst = {.port = pair.port}, peer;
	scif_epd_t e = scif_open(), other;
	pid_t pid;
	char c;

	check_case("connects");
	pid = fork();
	if (!pid) {
		CHECK_EQ(scif_bind(e, 0) > 0, 1);
		CHECK_EQ(scif_connect(e, &dst) > 0, 1);
		CHECK_EQ(scif_send(e, "c", 1, SCIF_SEND_BLOCK), 1);
		_exit(check_result());
	}
	CHECK_EQ(scif_accept(pair.listener, &peer, &other, SCIF_ACCEPT_SYNC), 0);
	join(pid);
	CHECK_EQ(scif_recv(other, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(scif_send(e, "p", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(scif_recv(other, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(c, 'p');
	CHECK_EQ(scif_close(e), 0);
	CHECK_EQ(scif_close(other), 0);
}

int main(void)
{
	pid_t pid;

	alarm(50);
	pair = scif_make_pair();
	ours = scif_pages(LEN);
	theirs = scif_pages(BIG);
	CHECK_EQ(scif_register(pair.a, ours, LEN, OFF, BOTH, SCIF_MAP_FIXED), OFF);
	CHECK_EQ(scif_register(pair.b, theirs, BIG, OTHER, BOTH, SCIF_MAP_FIXED), OTHER);
	pattern_fill(ours, LEN, 1);
	pid = fork();
	if (!pid) {
		heir("child");
		_exit(check_result());
	}
	join(pid);
	pattern_fill(ours, LEN, 1);
	pid = fork();
	if (!pid) {
		uint16_t port;

		scif_listener(1, &port); /* so that there is another process to ask */
		pid = fork();
		if (!pid) {
			heir("grandchild");
			_exit(check_result());
		}
		join(pid);
		_exit(check_result());
	}
	join(pid);
	mapped();
	connects();
	scif_end_pair(&pair);
	return check_result();
}
