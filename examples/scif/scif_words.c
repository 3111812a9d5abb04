// SPDX-License-Identifier: BSD-3-Clause
/*
 * How long a word takes to another process and back, by memory of one that both have mapped, by
 * messages, and by RMA:
 *
 *   scif_words serve PORT
 *   scif_words ask NODE PORT
 */
#include <sched.h>
#include <scif.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, WINDOW = 256 * PAGE, TURNS = 20000, COPIES = 1000, SPINS = 10000 };
static const off_t offset = 0x80000;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* What comes in place of that word; the other may need our CPU to write it. */
static uint64_t next_word(_Atomic uint64_t *w, uint64_t old)
{
	uint64_t v;

	for (int i = 1; (v = atomic_load_explicit(w, memory_order_acquire)) == old; i++)
		if (i % SPINS == 0)
			sched_yield();
	return v;
}

/* Words of the window: the question and, on another line, the answer.  0 is the last question. */
static void answer_words(_Atomic uint64_t *w)
{
	uint64_t i = 0;

	while ((i = next_word(&w[0], i)) != 0)
		atomic_store_explicit(&w[16], i, memory_order_release);
}

/* Enough turns, or a second is over: each takes long where both have one CPU. */
static bool over(int turns, int enough, double start)
{
	return turns == enough || (turns % 64 == 0 && seconds() - start > 1);
}

static int ask_words(_Atomic uint64_t *w)
{
	double start = seconds();
	int i = 0;

	do {
		atomic_store_explicit(&w[0], ++i, memory_order_release);
		next_word(&w[16], i - 1);
	} while (!over(i, TURNS, start));
	atomic_store_explicit(&w[0], 0, memory_order_release);
	return i;
}

static void serve(uint16_t port)
{
	scif_epd_t listener = scif_open(), epd;
	void *window = aligned_alloc(PAGE, WINDOW);
	struct scif_portID peer;
	char c;

	if (listener < 0 || scif_bind(listener, port) < 0 || scif_listen(listener, 1))
		fail("cannot listen");
	if (scif_accept(listener, &peer, &epd, SCIF_ACCEPT_SYNC))
		fail("scif_accept");
	memset(window, 0, WINDOW);
	if (scif_register(epd, window, WINDOW, offset, SCIF_PROT_READ | SCIF_PROT_WRITE,
		    SCIF_MAP_FIXED) < 0)
		fail("scif_register");
	scif_send(epd, "r", 1, SCIF_SEND_BLOCK);
	scif_recv(epd, &c, 1, SCIF_RECV_BLOCK);
	if (c == 'm')
		answer_words(window);
	while (scif_recv(epd, &c, 1, SCIF_RECV_BLOCK) == 1)
		scif_send(epd, &c, 1, SCIF_SEND_BLOCK);
	scif_close(epd);
	scif_close(listener);
}

static void time_mapped(scif_epd_t epd)
{
	void *w = scif_mmap(NULL, PAGE, SCIF_PROT_READ | SCIF_PROT_WRITE, 0, epd, offset);
	double start;
	int turns;

	if (w == SCIF_MMAP_FAILED) {
		perror("scif_mmap");
		scif_send(epd, "-", 1, SCIF_SEND_BLOCK);
		return;
	}
	scif_send(epd, "m", 1, SCIF_SEND_BLOCK);
	start = seconds();
	turns = ask_words(w);
	printf("8 bytes by mapped memory, there and back: %.2f us\n",
		(seconds() - start) / turns * 1e6);
	scif_munmap(w, PAGE);
}

static void time_messages(scif_epd_t epd)
{
	double start = seconds();
	char c = 'x';
	int i = 0;

	do {
		if (scif_send(epd, &c, 1, SCIF_SEND_BLOCK) != 1 ||
			scif_recv(epd, &c, 1, SCIF_RECV_BLOCK) != 1)
			fail("message");
	} while (!over(++i, TURNS / 4, start));
	printf("1 byte by messages, there and back:       %.2f us\n",
		(seconds() - start) / i * 1e6);
}

static void time_copies(scif_epd_t epd, size_t len)
{
	void *window = aligned_alloc(PAGE, WINDOW);
	off_t own = scif_register(epd, window, WINDOW, 0, SCIF_PROT_READ | SCIF_PROT_WRITE, 0);
	double start, took;

	if (own < 0)
		fail("scif_register");
	memset(window, 1, WINDOW);
	start = seconds();
	for (int i = 0; i < COPIES; i++)
		if (scif_writeto(epd, own, len, offset, SCIF_RMA_SYNC))
			fail("scif_writeto");
	took = (seconds() - start) / COPIES;
	printf("scif_writeto of %7zu bytes:             %.2f us, %.2f GB/s\n", len, took * 1e6,
		len / took * 1e-9);
	scif_unregister(epd, own, WINDOW);
	free(window);
}

static void ask(uint16_t node, uint16_t port)
{
	struct scif_portID dst = {node, port};
	scif_epd_t epd = scif_open();
	char c;

	if (epd < 0 || scif_connect(epd, &dst) < 0)
		fail("cannot connect");
	if (scif_recv(epd, &c, 1, SCIF_RECV_BLOCK) != 1)
		fail("scif_recv");
	time_mapped(epd);
	time_messages(epd);
	time_copies(epd, PAGE);
	time_copies(epd, WINDOW);
	scif_close(epd);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "serve") == 0) {
		serve(atoi(argv[2]));
		return 0;
	}
	if (argc == 4 && strcmp(argv[1], "ask") == 0) {
		ask(atoi(argv[2]), atoi(argv[3]));
		return 0;
	}
	fprintf(stderr, "usage: scif_words serve PORT | ask NODE PORT\n");
	return 2;
}
