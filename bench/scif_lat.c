// SPDX-License-Identifier: BSD-3-Clause
/*
 * scif_lat WHAT SIZE COUNT: what one operation of SCIF takes between two processes that wait in
 * its calls or spin on memory, in microseconds: the median over SAMPLES of the mean of COUNT, and
 * the least.
 *
 *   map       round trip of a word over scif_mmap(), both sides spinning
 *   send      scif_send() and scif_recv(), one way
 *   unix      the same by read(2) and write(2) on a UNIX stream socket, for comparison
 *   writeto, readfrom, vwriteto, vreadfrom, cached (vwriteto with SCIF_RMA_USECACHE)
 *             until the copy is complete (SCIF_RMA_SYNC)
 *   register  scif_register() of memory that was not registered before
 */
#include <scif.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/pin.h"

enum { ACTIVE_CPU = 0, PEER_CPU = 1, SAMPLES = 9, PAGE = 4096, OFFSET = 1 << 30 };

static scif_epd_t epd;
static int sock[2];
static size_t size, whole; /* of memory: pages */
static unsigned count;
static uint8_t *memory;
static _Atomic uint64_t *ours, *theirs; /* words of our and of its window */
static uint64_t turn;

static void need(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static uint8_t *pages(size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	need(p != MAP_FAILED, "mmap");
	return p;
}

/* The same window on both sides. */
static void open_window(void)
{
	memory = pages(whole);
	need(scif_register(epd, memory, whole, OFFSET, SCIF_PROT_READ | SCIF_PROT_WRITE,
		     SCIF_MAP_FIXED) == OFFSET,
		"scif_register");
	need(scif_send(epd, "w", 1, SCIF_SEND_BLOCK) == 1, "scif_send");
	need(scif_recv(epd, memory, 1, SCIF_RECV_BLOCK) == 1, "scif_recv");
}

/* ---- one round on each side ---- */

static void await(_Atomic uint64_t *word, uint64_t value)
{
	while (atomic_load_explicit(word, memory_order_acquire) != value)
		;
}

static void move(bool out)
{
	static uint8_t buf[1 << 20];

	if (out)
		need(scif_send(epd, buf, size, SCIF_SEND_BLOCK) == (int)size, "scif_send");
	else
		need(scif_recv(epd, buf, size, SCIF_RECV_BLOCK) == (int)size, "scif_recv");
}

static void move_unix(int fd, bool out)
{
	static uint8_t buf[1 << 20];
	ssize_t n;

	for (size_t done = 0; done < size; done += n) {
		n = out ? write(fd, buf, size - done) : read(fd, buf, size - done);
		need(n > 0, "socket");
	}
}

static void ping_map(void)
{
	atomic_store_explicit(theirs, ++turn, memory_order_release);
	await(ours, turn);
}

static void pong_map(void)
{
	await(ours, ++turn);
	atomic_store_explicit(theirs, turn, memory_order_release);
}

static void ping_send(void)
{
	move(true);
	move(false);
}

static void pong_send(void)
{
	move(false);
	move(true);
}

static void ping_unix(void)
{
	move_unix(sock[0], true);
	move_unix(sock[0], false);
}

static void pong_unix(void)
{
	move_unix(sock[1], false);
	move_unix(sock[1], true);
}

static void do_writeto(void)
{
	need(!scif_writeto(epd, OFFSET, size, OFFSET, SCIF_RMA_SYNC), "scif_writeto");
}

static void do_readfrom(void)
{
	need(!scif_readfrom(epd, OFFSET, size, OFFSET, SCIF_RMA_SYNC), "scif_readfrom");
}

static uint8_t *plain(void)
{
	static uint8_t *p;

	if (!p)
		p = pages(whole);
	return p;
}

static void do_vwriteto(void)
{
	need(!scif_vwriteto(epd, plain(), size, OFFSET, SCIF_RMA_SYNC), "scif_vwriteto");
}

static void do_vreadfrom(void)
{
	need(!scif_vreadfrom(epd, plain(), size, OFFSET, SCIF_RMA_SYNC), "scif_vreadfrom");
}

static void do_cached(void)
{
	need(!scif_vwriteto(epd, plain(), size, OFFSET, SCIF_RMA_SYNC | SCIF_RMA_USECACHE),
		"scif_vwriteto");
}

/* Leaves the window where it is, until the end. */
static void do_register(void)
{
	uint8_t *p = pages(whole);
	uint64_t from = clock_ns();

	need(scif_register(epd, p, whole, 0, SCIF_PROT_READ | SCIF_PROT_WRITE, 0) >= 0,
		"scif_register");
	turn += clock_ns() - from; /* the time of the calls alone */
}

static const struct what {
	const char *name;
	void (*active)(void), (*peer)(void);
	int ways; /* of bytes, in a round */
} whats[] = {
	{"map", ping_map, pong_map, 1},
	{"send", ping_send, pong_send, 2},
	{"unix", ping_unix, pong_unix, 2},
	{"writeto", do_writeto, NULL, 1},
	{"readfrom", do_readfrom, NULL, 1},
	{"vwriteto", do_vwriteto, NULL, 1},
	{"vreadfrom", do_vreadfrom, NULL, 1},
	{"cached", do_cached, NULL, 1},
	{"register", do_register, NULL, 1},
};

/* ---- two processes ---- */

static void map_words(void)
{
	uint8_t *there = scif_mmap(NULL, PAGE, SCIF_PROT_READ | SCIF_PROT_WRITE, 0, epd, OFFSET);

	need(there != SCIF_MMAP_FAILED, "scif_mmap");
	/* each spins on a word of its own memory */
	ours = (_Atomic uint64_t *)memory;
	theirs = (_Atomic uint64_t *)there;
}

static void prepare(const struct what *w, bool active)
{
	open_window();
	if (!strcmp(w->name, "map"))
		map_words();
	move(active);
	move(!active);
}

static void serve(const struct what *w, int ready)
{
	scif_epd_t l = scif_open();
	struct scif_portID peer;
	int port = scif_bind(l, 0);
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(PEER_CPU);
	need(port > 0 && !scif_listen(l, 1), "scif_listen");
	need(write(ready, &port, sizeof port) == sizeof port, "pipe");
	need(!scif_accept(l, &peer, &epd, SCIF_ACCEPT_SYNC), "scif_accept");
	prepare(w, false);
	for (unsigned i = 0; w->peer && i < (SAMPLES + 1) * count; i++)
		w->peer();
	while (scif_recv(epd, &c, 1, SCIF_RECV_BLOCK) > 0)
		;
	exit(0);
}

static void meet(int port)
{
	struct scif_portID dst = {.port = port};

	epd = scif_open();
	scif_get_nodeIDs(NULL, 0, &dst.node);
	need(scif_connect(epd, &dst) > 0, "scif_connect");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double sample(const struct what *w)
{
	uint64_t from = clock_ns();

	if (w->active == do_register)
		turn = 0;
	for (unsigned i = 0; i < count; i++)
		w->active();
	return (double)(w->active == do_register ? turn : clock_ns() - from) / count / w->ways /
	       NSEC_PER_USEC;
}

static void measure(const struct what *w)
{
	double us[SAMPLES];

	sample(w); /* warms up */
	for (int i = 0; i < SAMPLES; i++)
		us[i] = sample(w);
	qsort(us, SAMPLES, sizeof us[0], compare);
	printf("%.4f %.4f\n", us[SAMPLES / 2], us[0]);
}

static const struct what *find(const char *name)
{
	for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++)
		if (!strcmp(whats[i].name, name))
			return &whats[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct what *w = argc == 4 ? find(argv[1]) : NULL;
	int ready[2], status, port;
	pid_t child;

	size = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	count = argc == 4 ? strtoul(argv[3], NULL, 10) / SAMPLES + 1 : 0;
	if (!w || !size || size > 1 << 20) {
		fprintf(stderr, "usage: scif_lat WHAT SIZE COUNT\n");
		return 2;
	}
	whole = (size + PAGE - 1) & -(size_t)PAGE;
	if (pipe(ready) || socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		return 1;
	child = fork();
	if (!child)
		serve(w, ready[1]);
	close(ready[1]);
	if (child < 0 || read(ready[0], &port, sizeof port) != sizeof port)
		return 1;
	pin(ACTIVE_CPU);
	meet(port);
	prepare(w, true);
	measure(w);
	need(!scif_close(epd), "scif_close");
	return waitpid(child, &status, 0) == child && !status ? 0 : 1;
}
