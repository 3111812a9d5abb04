// SPDX-License-Identifier: BSD-3-Clause
/*
 * Preloaded into a program that knows nothing of it: a thread registers the program's heap and
 * deregisters it again, over and over, until the program ends.  What counts as heap: the area of
 * brk(2), what was registered before, and areas of at least 256 KiB below 32 GiB, where Java's is.
 * A program that ends early is held until there were some rounds.  At the end the file
 * $REGISTRAR_OUT gets a line "registered N mapped N": regions, and in how many of those rounds some
 * of it was mapped.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AREAS = 16, LEAST = 256 * 1024, MOST = 32 << 20, ROUNDS = 5 };
#define NO_MORE (1u << 30)
enum { RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

struct area {
	uint64_t lo, hi;
};

static _Atomic bool stop;
static _Atomic unsigned rounds; /* that are through; from NO_MORE on: none will follow */
static _Atomic unsigned registered, mapped;
static pthread_t thread;

static bool is_heap(const char *line, const struct area *a)
{
	return strstr(line, " rw-p ") && (strstr(line, "[heap]") || strstr(line, "weft-arena") ||
						 (a->hi < 32ull << 30 && a->hi - a->lo >= LEAST));
}

/* The areas of the heap; *arena: whether some memory lies in Weft's arena. */
static int look(struct area *areas, bool *arena)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	*arena = false;
	while (f && fgets(line, sizeof line, f)) {
		struct area a;

		if (sscanf(line, "%lx-%lx", &a.lo, &a.hi) != 2)
			continue;
		if (strstr(line, "weft-arena") && strstr(line, " rw-s ") && a.hi - a.lo < 1 << 30)
			*arena = true;
		if (n < AREAS && is_heap(line, &a))
			areas[n++] = a;
	}
	if (f)
		fclose(f);
	return n;
}

static void round_of(struct ibv_pd *pd, unsigned turn)
{
	struct area areas[AREAS], none[AREAS];
	struct ibv_mr *mr[AREAS];
	bool arena;
	int n = look(areas, &arena);

	for (int i = 0; i < n; i++) {
		/* Odd lengths and places. */
		uint64_t lo = areas[i].lo + turn % 7 * 1000, len = areas[i].hi - lo - 100;

		mr[i] = ibv_reg_mr(pd, (void *)(uintptr_t)lo, len < MOST ? len : MOST, RIGHTS);
		registered += mr[i] != NULL;
	}
	look(none, &arena);
	mapped += arena;
	usleep(2000);
	for (int i = 0; i < n; i++)
		if (mr[i] && ibv_dereg_mr(mr[i]))
			abort();
}

static void *run(void *arg)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;

	for (unsigned turn = 0; pd && !atomic_load(&stop); turn++) {
		round_of(pd, turn);
		atomic_fetch_add(&rounds, 1);
	}
	atomic_fetch_or(&rounds, NO_MORE);
	return arg;
}

__attribute__((constructor)) static void begin(void)
{
	if (getenv("REGISTRAR_OUT") && pthread_create(&thread, NULL, run, NULL))
		abort();
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("REGISTRAR_OUT");
	FILE *f;

	if (!path)
		return;
	while (atomic_load(&rounds) < ROUNDS)
		usleep(1000);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	f = fopen(path, "ae");
	if (!f)
		return;
	fprintf(f, "registered %u mapped %u\n", registered, mapped);
	fclose(f);
}
