// SPDX-License-Identifier: BSD-3-Clause
/* DMA windows: their address space, what is refused, regions that hold them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tsan.h"
#include "peermem/client.h"
#include "peermem/table.h"
#include "peermem/window.h"

enum { PAGE = 4096 };

static int copy_to(void *priv, uint64_t off, const void *src, size_t n)
{
	(void)priv, (void)off, (void)src, (void)n;
	return 0;
}

static int copy_from(void *priv, uint64_t off, void *dst, size_t n)
{
	(void)priv, (void)off, (void)dst, (void)n;
	return 0;
}

static int flush(void *priv)
{
	(void)priv;
	return 0;
}

static const struct weft_dma_ops ops = {
	.size = sizeof ops, .copy_to = copy_to, .copy_from = copy_from, .flush = flush};

static uint64_t add(uint64_t bus, uint64_t len)
{
	assert_int_equal(weft_dma_window_add(&bus, len, 0, &ops, NULL), 0);
	return bus;
}

static void refused(void **state)
{
	struct weft_dma_ops bad = ops;
	uint64_t bus = 0;

	(void)state;
	assert_int_equal(weft_dma_window_add(NULL, PAGE, 0, &ops, NULL), -EINVAL);
	assert_int_equal(weft_dma_window_add(&bus, PAGE, 0, NULL, NULL), -EINVAL);
	assert_int_equal(weft_dma_window_add(&bus, 0, 0, &ops, NULL), -EINVAL);
	assert_int_equal(weft_dma_window_add(&bus, PAGE + 1, 0, &ops, NULL), -EINVAL);
	assert_int_equal(weft_dma_window_add(&bus, -(uint64_t)PAGE, 0, &ops, NULL), -EINVAL);
	assert_int_equal(weft_dma_window_add(&bus, PAGE, 2, &ops, NULL), -EINVAL);
	bad.size = 8;
	assert_int_equal(weft_dma_window_add(&bus, PAGE, 0, &bad, NULL), -EINVAL);
	bad = ops;
	bad.copy_from = NULL;
	assert_int_equal(weft_dma_window_add(&bus, PAGE, 0, &bad, NULL), -EINVAL);
	bus = PAGE + 8;
	assert_int_equal(weft_dma_window_add(&bus, PAGE, 0, &ops, NULL), -EINVAL);
	bus = -(uint64_t)PAGE;
	assert_int_equal(weft_dma_window_add(&bus, 2 * PAGE, 0, &ops, NULL), -EINVAL);
	assert_int_equal(weft_dma_window_add(&bus, PAGE, 0, &ops, NULL), -EINVAL);
	assert_int_equal(weft_dma_window_del(0), -ENOENT);
}

/* Beyond what a process has. */
static void far_away(void **state)
{
	uint64_t bus = 1ull << 60;
	int err;

	(void)state;
#ifdef WEFT_TSAN
	skip(); /* its mmap() asks for address 0 instead, and gives up if it gets that */
#endif
	err = weft_dma_window_add(&bus, PAGE, 0, &ops, NULL);
	assert_true(err == -ENOMEM || err == -EEXIST); /* qemu gives another place */
}

static void overlap(void **state)
{
	uint64_t bus = add(0, 16 * PAGE), at = bus + 8 * PAGE;
	void *plain = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_int_equal(weft_dma_window_add(&at, PAGE, 0, &ops, NULL), -EEXIST);
	at = bus - PAGE;
	assert_int_equal(weft_dma_window_add(&at, 2 * PAGE, 0, &ops, NULL), -EEXIST);
	at = (uintptr_t)plain;
	assert_int_equal(weft_dma_window_add(&at, PAGE, 0, &ops, NULL), -EEXIST);
	assert_int_equal(weft_dma_window_del(bus + PAGE), -ENOENT);
	assert_int_equal(weft_dma_window_del(bus), 0);
	assert_int_equal(weft_dma_window_del(bus), -ENOENT);
	assert_int_equal(add(bus, 16 * PAGE), bus);
	assert_int_equal(weft_dma_window_del(bus), 0);
	munmap(plain, PAGE);
}

/* What a client that was built with an older header does not have counts as NULL. */
static void shorter(void **state)
{
	struct weft_dma_ops old = ops;
	struct peer_window *w;
	uint64_t bus = 0;

	(void)state;
	old.size = offsetof(struct weft_dma_ops, flush);
	assert_int_equal(weft_dma_window_add(&bus, PAGE, 0, &old, NULL), 0);
	assert_int_equal(peer_window_get(bus, PAGE, &w), 0);
	assert_non_null(w);
	assert_null(w->ops.flush);
	peer_window_put(w);
	assert_int_equal(weft_dma_window_del(bus), 0);
}

static void lookup(void **state)
{
	uint64_t bus[40];
	struct peer_window *w;

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		bus[i] = add(0, (1 + i % 3) * PAGE);
	for (unsigned i = 0; i < 40; i += 2)
		assert_int_equal(weft_dma_window_del(bus[i]), 0);
	for (unsigned i = 1; i < 40; i += 2) {
		assert_int_equal(peer_window_get(bus[i], PAGE, &w), 0);
		assert_int_equal(w->bus, bus[i]);
		assert_int_equal(weft_dma_window_del(bus[i]), -EBUSY);
		peer_window_put(w);
		assert_int_equal(weft_dma_window_del(bus[i]), 0);
	}
	assert_int_equal(peer_window_get(bus[1], PAGE, &w), 0);
	assert_null(w);
}

/* Windows that adjoin are two pieces; so is what lies beside one. */
static void pieces(void **state)
{
	uint64_t bus = add(0, 4 * PAGE);
	struct scatterlist s[3] = {{.dma_address = bus, .dma_length = PAGE},
		{.dma_address = bus + PAGE, .dma_length = PAGE},
		{.dma_address = bus + 2 * PAGE, .dma_length = PAGE}};
	struct sg_table table = {.sgl = s, .nents = 3, .orig_nents = 3};
	struct peer_pieces p;
	const char *why;

	(void)state;
	assert_int_equal(weft_dma_window_del(bus), 0);
	add(bus, 2 * PAGE);
	add(bus + 2 * PAGE, PAGE);
	assert_int_equal(peer_table_take(&table, 3, 3 * PAGE, &p, &why), 0);
	assert_int_equal(p.count, 2);
	assert_int_equal(p.flushes, 2);
	assert_int_equal(p.piece[1].begin, 2 * PAGE);
	assert_int_equal(peer_piece_of(&p, 0), 0);
	assert_int_equal(peer_piece_of(&p, 2 * PAGE - 1), 0);
	assert_int_equal(peer_piece_of(&p, 2 * PAGE), 1);
	assert_int_equal(weft_dma_window_del(bus), -EBUSY);
	peer_pieces_let_go(&p);
	peer_pieces_let_go(&p);
	assert_int_equal(weft_dma_window_del(bus), 0);
	assert_int_equal(weft_dma_window_del(bus + 2 * PAGE), 0);
	peer_pieces_free(&p);
}

static void partly(void **state)
{
	uint64_t bus = add(0, 4 * PAGE);
	struct scatterlist s[2] = {{.dma_address = bus, .dma_length = PAGE},
		{.dma_address = bus + 3 * PAGE, .dma_length = 2 * PAGE}};
	struct sg_table table = {.sgl = s, .nents = 2, .orig_nents = 2};
	struct peer_pieces p;
	const char *why = NULL;

	(void)state;
	assert_int_equal(peer_table_take(&table, 2, 3 * PAGE, &p, &why), -EINVAL);
	assert_string_equal(why, "an entry lies in a DMA window partly");
	assert_int_equal(weft_dma_window_del(bus), 0);
}

/* ---- a fork while another thread adds ---- */

static bool forks_here;
static uint8_t *given_up;
static size_t given_up_size;

/* The block that is exchanged then stays, filled, so that one sees who writes there. */
static void *exchange(void *old, size_t n)
{
	const size_t had = malloc_usable_size(old);
	void *at = malloc(n);

	assert_non_null(at);
	memcpy(at, old, had < n ? had : n);
	if (!forks_here) {
		free(old);
		return at;
	}
	memset(old, 0xdd, had);
	given_up = old;
	given_up_size = had;
	return at;
}

/* What such a child finds: the pointer that was, for its thread was not through. */
static void in_child(void)
{
	peer_window_forked_child();
	add(0, PAGE);
	for (size_t i = 0; i < given_up_size; i++)
		if (given_up[i] != 0xdd)
			_exit(1);
	_exit(0);
}

/* The program's own, that of window.c among others. */
void *realloc(void *old, size_t n)
{
	void *at = old ? exchange(old, n) : malloc(n);
	pid_t pid;
	int status;

	if (!old || !forks_here)
		return at;
	forks_here = false;
	pid = fork();
	if (!pid)
		in_child();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return at;
}

static void forked_while_adding(void **state)
{
	enum { ENOUGH = 1000 };
	uint64_t bus[ENOUGH];
	int n = 0;

	(void)state;
	forks_here = true;
	while (forks_here && n < ENOUGH)
		bus[n++] = add(0, PAGE);
	assert_false(forks_here);
	free(given_up);
	while (n)
		assert_int_equal(weft_dma_window_del(bus[--n]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(far_away),
		cmocka_unit_test(overlap),
		cmocka_unit_test(shorter),
		cmocka_unit_test(lookup),
		cmocka_unit_test(pieces),
		cmocka_unit_test(partly),
		cmocka_unit_test(forked_while_adding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
