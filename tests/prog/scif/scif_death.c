// SPDX-License-Identifier: BSD-3-Clause
/* The peer of a SCIF endpoint is killed, or stopped; a child inherits an endpoint. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"

/* A second is usual; who is not told waits for ever. */
enum { PAGE = 4096, LEN = 64 * PAGE, ROUNDS = 12, SOON_MS = 15000 };

/* Accepts, opens a window, and copies without end until it is killed. */
static void victim(int in, int out)
{
	uint8_t *m = scif_pages(LEN);
	struct scif_portID peer;
	scif_epd_t l, e;
	uint16_t port;
	off_t o;

	(void)in;
	l = scif_listener(1, &port);
	scif_tell(out, port);
	if (scif_accept(l, &peer, &e, SCIF_ACCEPT_SYNC))
		die("accept");
	o = scif_register(e, m, LEN, 0x100000, SCIF_PROT_READ | SCIF_PROT_WRITE, SCIF_MAP_FIXED);
	scif_send(e, "ready", 5, SCIF_SEND_BLOCK);
	while (scif_writeto(e, o, LEN, o, 0) == 0)
		scif_send(e, "x", 1, 0);
	pause();
}

static void kill_it(struct scif_child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->to);
	close(c->from);
}

static void killed(int round)
{
	struct scif_child c = scif_fork(victim);
	scif_epd_t e = scif_dial(0, scif_hear(c.from));
	uint8_t *m = scif_pages(LEN), buf[4096];
	double start;
	int n = 0, mark;

	check_case("killed, round %d", round);
	CHECK_EQ(scif_register(e, m, LEN, 0x100000, 3, SCIF_MAP_FIXED), 0x100000);
	CHECK_EQ(scif_recv(e, buf, 5, SCIF_RECV_BLOCK), 5);
	usleep(1000 * round);
	kill_it(&c);
	start = now_ms();
	if (round % 3 == 0) { /* sleeping in recv */
		while (n >= 0 && now_ms() < start + SOON_MS)
			n = scif_recv(e, buf, sizeof(buf), SCIF_RECV_BLOCK);
		CHECK_EQ(n, -1);
	} else if (round % 3 == 1) { /* in poll */
		CHECK_EQ(scif_raw_poll(e, 0, SOON_MS) & POLLHUP, POLLHUP);
		CHECK_EQ(scif_send(e, buf, 1, 0), -1);
	} else { /* copying */
		while (n == 0 && now_ms() < start + SOON_MS)
			n = scif_writeto(e, 0x100000, LEN, 0x100000, SCIF_RMA_SYNC);
		CHECK_EQ(n, -1);
	}
	CHECK_EQ(errno, ECONNRESET);
	CHECK(now_ms() - start < SOON_MS);
	CHECK_EQ(scif_fence_mark(e, SCIF_FENCE_INIT_PEER, &mark), -1);
	CHECK_EQ(errno, ECONNRESET);
	CHECK_EQ(scif_close(e), 0);
}

/* A stopped peer takes nothing and holds up nothing but what waits for it. */
static void stopped(void)
{
	struct scif_child c = scif_fork(victim);
	scif_epd_t e = scif_dial(0, scif_hear(c.from)), l;
	uint8_t *m = scif_pages(LEN), buf[5000];
	uint16_t port;
	int sum = 0;

	check_case("stopped");
	memset(buf, 1, sizeof(buf));
	CHECK_EQ(scif_register(e, m, LEN, 0x100000, 3, SCIF_MAP_FIXED), 0x100000);
	CHECK_EQ(scif_recv(e, buf, 5, SCIF_RECV_BLOCK), 5);
	kill(c.pid, SIGSTOP);
	waitpid(c.pid, NULL, WUNTRACED);
	for (int i = 0; i < 5000; i++)
		sum += scif_send(e, buf, 1, 0);
	CHECK_EQ(sum, 4095);
	l = scif_listener(1, &port);
	CHECK_EQ(scif_close(l), 0);
	kill(c.pid, SIGCONT);
	kill_it(&c);
	CHECK_EQ(scif_raw_poll(e, 0, SOON_MS) & POLLHUP, POLLHUP);
	scif_close(e);
}

/* A child that closes what it inherited does not disconnect its parent. */
static void inherited(void)
{
	struct scif_pair p = scif_make_pair();
	char c = 0;
	pid_t pid = fork();
	int status;

	check_case("inherited");
	if (!pid) {
		CHECK_EQ(scif_close(p.a), 0);
		CHECK_EQ(scif_close(p.b), 0);
		p = scif_make_pair(); /* its own work */
		CHECK_EQ(scif_send(p.a, "y", 1, 0), 1);
		CHECK_EQ(scif_recv(p.b, &c, 1, SCIF_RECV_BLOCK), 1);
		scif_end_pair(&p);
		_exit(check_result());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	check_child(status);
	CHECK_EQ(scif_send(p.a, "z", 1, 0), 1);
	CHECK_EQ(scif_recv(p.b, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(c, 'z');
	scif_end_pair(&p);
}

int main(void)
{
	alarm(100);
	for (int i = 0; i < ROUNDS; i++)
		killed(i);
	stopped();
	inherited();
	return check_result();
}
