// SPDX-License-Identifier: BSD-3-Clause
/*
 * A storm of kill -9 for SCIF: in each run a process connects to this one and is killed at some
 * instant, while it connects or while bytes, copies, fences and windows are under way.  This one
 * gets ECONNRESET within a second, from whatever call it is in, and lives on.
 *
 * usage: scif_storm [RUNS [SEED]]
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"

enum {
	DEFAULT_RUNS = 1000,
	BATCH = 100,
	PAGE = 4096,
	LEN = 64 * PAGE,
	OFF = 0x100000,
	EARLY_US = 12000,     /* while it starts and connects */
	TRAFFIC_US = 6000,    /* while it is at work */
	SOON_MS = 1000,       /* the promise; a busy machine may break it once in a while */
	LIMIT_MS = 20000,     /* nobody waits that long, whatever the machine does */
	MAX_SLOW_PERCENT = 6, /* one that is always slow, of eight kinds of calls, makes twelve */
};

static uint64_t rnd;
static unsigned met, early, slow;
static uint8_t *memory;

static uint32_t draw(uint32_t n)
{
	rnd ^= rnd << 13;
	rnd ^= rnd >> 7;
	rnd ^= rnd << 17;
	return rnd % n;
}

static void nap_us(unsigned us)
{
	struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

/* ---- who is killed ---- */

static void victim(uint16_t port)
{
	uint8_t *m = scif_pages(LEN), buf[1000];
	scif_epd_t e;
	int mark;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	e = scif_dial(0, port);
	if (scif_register(e, m, LEN, OFF, SCIF_PROT_READ | SCIF_PROT_WRITE, SCIF_MAP_FIXED) != OFF)
		_exit(1);
	scif_send(e, "r", 1, SCIF_SEND_BLOCK);
	for (unsigned i = 0;; i++) {
		scif_send(e, buf, i % sizeof(buf), 0);
		scif_recv(e, buf, sizeof(buf), 0);
		scif_writeto(e, OFF, 1 + i * 977 % LEN, OFF, 0);
		if (i % 16 == 0 && !scif_fence_mark(e, SCIF_FENCE_INIT_SELF, &mark))
			scif_fence_wait(e, mark);
	}
}

/* ---- this process, in one of its calls; 0: it may go on, -1 and errno ---- */

static int receive(scif_epd_t e)
{
	uint8_t buf[500];

	return scif_recv(e, buf, sizeof(buf), SCIF_RECV_BLOCK) < 0 ? -1 : 0;
}

static int send_all(scif_epd_t e)
{
	uint8_t buf[3000] = {0};

	return scif_send(e, buf, sizeof(buf), SCIF_SEND_BLOCK) < 0 ? -1 : 0;
}

static int await_hang_up(scif_epd_t e)
{
	if (scif_raw_poll(e, 0, LIMIT_MS) & POLLHUP)
		return send_all(e);
	return 0;
}

static int write_to(scif_epd_t e)
{
	return scif_writeto(e, OFF, LEN, OFF, draw(2) ? SCIF_RMA_SYNC : 0);
}

static int read_from(scif_epd_t e)
{
	static uint8_t buf[LEN];

	return scif_vreadfrom(e, buf, LEN - 100, OFF + 7, draw(2) ? SCIF_RMA_SYNC : 0);
}

static int fence(scif_epd_t e)
{
	int mark;

	if (scif_writeto(e, OFF, PAGE, OFF, 0) || scif_fence_mark(e, SCIF_FENCE_INIT_PEER, &mark) ||
		scif_fence_wait(e, mark))
		return -1;
	return scif_fence_signal(e, OFF, 1, OFF + 8, 2,
		SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE);
}

static int windows(scif_epd_t e)
{
	off_t o = scif_register(e, memory + LEN, PAGE, 0, SCIF_PROT_READ, 0);

	return o < 0 ? -1 : scif_unregister(e, o, PAGE);
}

/* What is mapped can be read and written, whoever lives. */
static int mapping(scif_epd_t e)
{
	volatile uint8_t *there = scif_mmap(NULL, LEN, SCIF_PROT_READ | SCIF_PROT_WRITE, 0, e, OFF);

	if ((void *)there == SCIF_MMAP_FAILED && errno == EOPNOTSUPP)
		return receive(e);
	if ((void *)there == SCIF_MMAP_FAILED)
		return -1;
	for (unsigned i = 0; i < LEN; i += PAGE)
		there[i] = there[i] + 1;
	return scif_munmap((void *)there, LEN);
}

static int (*const calls[])(scif_epd_t) = {
	receive, send_all, await_hang_up, write_to, read_from, fence, windows, mapping};

/* ---- a run ---- */

struct run {
	pid_t pid;
	unsigned delay_us;
	_Atomic bool connected; /* the delay begins, if it is not early */
	bool early;
	_Atomic uint64_t killed_us; /* when; 0: not yet */
};

static uint64_t now_us(void)
{
	return now_ms() * 1000;
}

static void *killer(void *arg)
{
	struct run *r = arg;
	uint64_t end = now_us() + LIMIT_MS * 1000ull;

	while (!r->early && !atomic_load(&r->connected) && now_us() < end)
		nap_us(100);
	nap_us(r->delay_us);
	kill(r->pid, SIGKILL);
	waitpid(r->pid, NULL, 0);
	atomic_store(&r->killed_us, now_us());
	return NULL;
}

static void judge(const char *what, uint64_t since_us)
{
	uint64_t ms = (now_us() - since_us) / 1000;

	CHECK(ms < LIMIT_MS);
	if (ms < SOON_MS)
		return;
	slow++;
	printf("%s: %u ms after the kill\n", what, (unsigned)ms);
}

/* The connection of the run's process; -1: it died before there was one. */
static scif_epd_t accept_it(scif_epd_t listener, struct run *r)
{
	struct scif_portID peer;
	bool dead = false;
	scif_epd_t e;

	while (scif_accept(listener, &peer, &e, 0)) {
		CHECK_EQ(errno, EAGAIN);
		if (dead)
			return -1;
		scif_raw_poll(listener, POLLIN, 2);
		dead = atomic_load(&r->killed_us);
	}
	return e;
}

/* Makes one kind of call until the connection is over. */
static void suffer(scif_epd_t e, struct run *r)
{
	int kind = draw(sizeof(calls) / sizeof(calls[0]));
	uint64_t end = now_us() + LIMIT_MS * 1000ull, killed;
	char c;
	int ret;

	check_case("call %d", kind);
	ret = scif_register(e, memory, LEN, OFF, SCIF_PROT_READ | SCIF_PROT_WRITE,
		      SCIF_MAP_FIXED) == OFF &&
			      scif_recv(e, &c, 1, SCIF_RECV_BLOCK) == 1
		      ? 0
		      : -1;
	atomic_store(&r->connected, true);
	while (!ret && now_us() < end)
		ret = calls[kind](e);
	CHECK_EQ(ret, -1);
	CHECK_EQ(errno, ECONNRESET);
	killed = atomic_load(&r->killed_us);
	if (killed)
		judge("reset", killed);
}

static void one_run(scif_epd_t listener, uint16_t port)
{
	struct run r = {.early = draw(4) == 0};
	pthread_t thread;
	scif_epd_t e;

	r.delay_us = draw(r.early ? EARLY_US : TRAFFIC_US);
	r.pid = fork();
	if (!r.pid)
		victim(port);
	if (r.pid < 0 || pthread_create(&thread, NULL, killer, &r))
		die("cannot begin");
	e = accept_it(listener, &r);
	if (e < 0) {
		judge("no connection", atomic_load(&r.killed_us));
		early++;
	} else {
		met++;
		suffer(e, &r);
		CHECK_EQ(scif_close(e), 0);
	}
	atomic_store(&r.connected, true);
	pthread_join(thread, NULL);
}

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Everything works as before, and nothing is left. */
static void look_around(unsigned fds)
{
	struct scif_pair p = scif_make_pair();
	double until = now_ms() + LIMIT_MS;
	char c = 0;

	check_case("afterwards");
	CHECK_EQ(scif_send(p.a, "z", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(scif_recv(p.b, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(c, 'z');
	scif_end_pair(&p);
	while (fds && open_fds() > fds && now_ms() < until)
		nap_us(10000);
	if (fds)
		CHECK_RANGE(open_fds(), 0, fds);
}

int main(int argc, char **argv)
{
	unsigned runs = argc > 1 ? strtoul(argv[1], NULL, 0) : DEFAULT_RUNS, fds;
	uint16_t port;
	scif_epd_t listener;

	rnd = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x5c1f;
	memory = scif_pages(LEN + PAGE);
	listener = scif_listener(8, &port);
	for (unsigned i = 0; i < 8; i++)
		one_run(listener, port);
	look_around(0);
	fds = open_fds() + 8;
	for (unsigned i = 8; i < runs && !check_failures(); i++) {
		one_run(listener, port);
		if (i % BATCH == 0)
			look_around(fds);
	}
	look_around(fds);
	CHECK_EQ(scif_close(listener), 0);
	printf("%u connections, %u never made, %u slow\n", met, early, slow);
	CHECK_RANGE(slow, 0, 2 + runs * MAX_SLOW_PERCENT / 100);
	CHECK(met > early);
	return check_result();
}
