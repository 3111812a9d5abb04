// SPDX-License-Identifier: BSD-3-Clause
/* Peer clients: registering, being asked, the steps of a registration in each generation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "peermem/invalidate.h"
#include "peermem/region.h"
#include "peermem/registry.h"
#include "tests/unit/peermem_fake.h"

enum { ADDR = 0x7000100, LENGTH = 0x3000 };

static const struct fake_generation *const generations[] = {
	&fake_A, &fake_B, &fake_C, &fake_D, &fake_E};
static struct peer_trace trace;

static int begin(void **state)
{
	(void)state;
	fake_reset();
	return peer_generation_use('W');
}

static int revoke_nothing(struct peer_region *r)
{
	(void)r;
	return 0;
}

static int make_range(uint64_t addr, uint64_t length, bool writable, struct peer_region **r)
{
	const struct peer_request q = {
		.addr = addr, .length = length, .writable = writable, .revoke = revoke_nothing};

	return peer_region_make(&q, r, &trace);
}

static int make(struct peer_region **r)
{
	return make_range(ADDR, LENGTH, true, r);
}

static struct peer_region *live(void)
{
	struct peer_region *r;

	assert_int_equal(make(&r), 0);
	assert_non_null(r);
	assert_int_equal(peer_region_live(r), 0);
	return r;
}

static int take_stats(const struct peer_client *c, void *arg)
{
	const struct peer_client **out = arg;

	*out = c;
	return 1;
}

/* Of the one client that is registered. */
static uint64_t stat_of_first(enum peer_stat which)
{
	const struct peer_client *c = NULL;

	peer_registry_each(take_stats, &c);
	assert_non_null(c);
	return peer_counted(&c->stats, which);
}

/* ---- rows ---- */

static const struct expected {
	char letter;
	const char *registered;
	int write, force, had_table;
	uint64_t bytes;
	int reads_write, reads_force; /* of a region that is only read */
} expected[] = {
	{'W', "agms", 1, 0, 1, LENGTH, 1, 1},
	{'A', "agsm", 1, 1, 1, 2 * 4096, 0, 1},
	{'B', "agsm", 1, 0, 1, 2 * 4096, 1, 1},
	{'C', "agsm", 1, 0, 1, 2 * 4096, 1, 1},
	{'D', "agsm", 1, 0, 0, LENGTH, 1, 1},
	{'E', "agms", 1, 0, 0, LENGTH, 1, 1},
};

static void check_read_only(const struct expected *e)
{
	struct peer_region *r;

	assert_int_equal(make_range(ADDR, LENGTH, false, &r), 0);
	assert_int_equal(fake.write, e->reads_write);
	assert_int_equal(fake.force, e->reads_force);
	assert_int_equal(peer_region_live(r), 0);
	assert_int_equal(peer_region_drop(r), 0);
}

static void check_row(const struct expected *e, const struct fake_generation *g)
{
	struct peer_region *r;
	void *handle;

	fake_reset();
	assert_int_equal(peer_generation_use(e->letter), 0);
	handle = g->open("fake", 0);
	assert_non_null(handle);
	r = live();
	assert_string_equal(fake_calls(), e->registered);
	assert_int_equal(fake.write, e->write);
	assert_int_equal(fake.force, e->force);
	assert_int_equal(fake.had_table, e->had_table);
	assert_int_equal(stat_of_first(PEER_ALLOC_MRS), 1);
	assert_int_equal(stat_of_first(PEER_REG_PAGES), 2);
	assert_int_equal(stat_of_first(PEER_REG_BYTES), e->bytes);
	assert_int_equal(r->pieces.count, 2);
	assert_int_equal(r->pieces.piece[1].address, 0x20000);
	assert_int_equal(peer_region_drop(r), 0);
	assert_string_equal(fake_calls(), "upr");
	assert_int_equal(stat_of_first(PEER_DEALLOC_MRS), 1);
	assert_int_equal(stat_of_first(PEER_DEREG_PAGES), 2);
	assert_int_equal(stat_of_first(PEER_DEREG_BYTES), e->bytes);
	check_read_only(e);
	ib_unregister_peer_memory_client(handle);
}

static void clients_of_all_generations_under_all_rows(void **state)
{
	(void)state;
	for (size_t row = 0; row < sizeof expected / sizeof *expected; row++)
		for (size_t g = 0; g < sizeof generations / sizeof *generations; g++)
			check_row(&expected[row], generations[g]);
	assert_int_equal(peer_generation_use('F'), -EINVAL);
}

/* What a client writes into its table once dma_map has returned moves no byte elsewhere. */
static void changed_table(void **state)
{
	void *handle = fake_A.open("fake", 0);
	struct peer_region *r = live();

	(void)state;
	r->table.sgl[0].dma_length = 0;
	r->table.sgl[1].dma_address = 0xdead000;
	assert_int_equal(r->pieces.count, 2);
	assert_int_equal(r->pieces.piece[1].address, 0x20000);
	assert_int_equal(r->pieces.piece[1].begin, r->pieces.piece[0].length);
	assert_int_equal(peer_region_drop(r), 0);
	ib_unregister_peer_memory_client(handle);
}

/* Nobody is asked. */
static void ranges_that_wrap(void **state)
{
	static const uint64_t range[][2] = {{ADDR, UINT64_MAX}, {-(uint64_t)4096, 8192},
		{-(uint64_t)4096, 4096}, {-(uint64_t)4096, 1}, {-(uint64_t)8192, 4097}};
	void *handle = fake_A.open("fake", 0);
	struct peer_region *r;

	(void)state;
	for (size_t i = 0; i < sizeof range / sizeof *range; i++)
		assert_int_equal(make_range(range[i][0], range[i][1], true, &r), -EINVAL);
	assert_string_equal(fake_calls(), "");
	assert_int_equal(make_range(-(uint64_t)8192, 4096, true, &r), 0);
	assert_int_equal(fake_calls()[0], 'a');
	peer_region_abandon(r);
	ib_unregister_peer_memory_client(handle);
}

static void pages_of_the_host(void **state)
{
	void *handle;

	(void)state;
	assert_int_equal(peer_generation_use('A'), 0);
	fake.page_size = 65536;
	fake.entries = 1;
	fake.entry[0].length = 65536;
	handle = fake_A.open("fake", FAKE_NO_RELEASE);
	assert_int_equal(peer_region_drop(live()), 0);
	assert_string_equal(fake_calls(), "agsmup");
	assert_int_equal(stat_of_first(PEER_REG_PAGES), 16);
	assert_int_equal(stat_of_first(PEER_REG_BYTES), 65536);
	ib_unregister_peer_memory_client(handle);
}

/* ---- failures ---- */

static const struct failing {
	enum fake_call call;
	int answer, rc;
	const char *calls, *step;
} failing[] = {
	{FAKE_GET_PAGES, -ENOMEM, -ENOMEM, "agr", "get_pages"},
	{FAKE_GET_PAGES, 1, -EINVAL, "agr", "get_pages"},
	{FAKE_GET_PAGES, -4096, -EINVAL, "agr", "get_pages"},
	{FAKE_DMA_MAP, -EIO, -EIO, "agmpr", "dma_map"},
	{FAKE_DMA_MAP, 7, -EINVAL, "agmpr", "dma_map"},
};

static void check_failed(int rc, const char *calls, const char *step)
{
	struct peer_region *r;
	char text[PEER_TRACE_TEXT];

	assert_int_equal(make(&r), rc);
	assert_null(r);
	assert_string_equal(fake_calls(), calls);
	assert_string_equal(trace.step, step);
	assert_int_equal(trace.error, rc);
	peer_trace_text(&trace, text, sizeof text);
	assert_non_null(strstr(text, "fake answered 1; "));
	assert_non_null(strstr(text, strerrordesc_np(-rc)));
}

static void each_step_fails(void **state)
{
	void *handle = fake_E.open("fake", 0);

	(void)state;
	for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
		fake_reset();
		fake.answer[failing[i].call] = failing[i].answer;
		check_failed(failing[i].rc, failing[i].calls, failing[i].step);
	}
	assert_int_equal(stat_of_first(PEER_FAILED), 5);
	assert_int_equal(stat_of_first(PEER_ALLOC_MRS), 0);
	assert_int_equal(stat_of_first(PEER_DEALLOC_MRS), 0);
	ib_unregister_peer_memory_client(handle);
}

static void page_sizes(void **state)
{
	static const unsigned long bad[] = {0, 1, 2048, 4097, 12288};
	void *handle = fake_E.open("fake", 0);

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		fake.page_size = bad[i];
		assert_int_equal(peer_generation_use('W'), 0);
		check_failed(-EINVAL, "agmsupr", "get_page_size");
		assert_int_equal(peer_generation_use('B'), 0);
		check_failed(-EINVAL, "agspr", "get_page_size");
	}
	ib_unregister_peer_memory_client(handle);
	fake_reset();
	assert_int_equal(peer_generation_use('W'), 0);
	handle = fake_E.open("fake", FAKE_NO_PAGE_SIZE);
	assert_int_equal(peer_region_drop(live()), 0);
	ib_unregister_peer_memory_client(handle);
}

/* What a client filled in: page 0x7000000 to 0x7003fff is 16384 bytes. */
static const struct table {
	int nmap;
	unsigned entries;
	struct {
		uint64_t address;
		unsigned length;
	} entry[FAKE_ENTRIES];
	const char *why;
} tables[] = {
	{-1, 2, {{0x10000, 8192}, {0x20000, 8192}}, "nmap is less"},
	{3, 2, {{0x10000, 8192}, {0x20000, 8192}}, "nmap is more"},
	{1, 2, {{0x10000, 8192}, {0x20000, 8192}}, "cover"},
	{0, 2, {{0x10000, 8192}, {0x20000, 4096}}, "cover"},
	{0, 2, {{0x10000, 16384}, {0x20000, 0}}, "empty"},
	{0, 2, {{0x10800, 8192}, {0x20000, 8192}}, "whole pages"},
	{0, 2, {{0x10000, 8192}, {0x20000, 8191}}, "whole pages"},
	{0, 2, {{0x10000, 8192}, {-4096ull, 8192}}, "wraps"},
};

static void garbage_in_tables(void **state)
{
	void *handle = fake_E.open("fake", 0);

	(void)state;
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		fake_reset();
		fake.nmap = tables[i].nmap;
		fake.entries = tables[i].entries;
		memcpy(fake.entry, tables[i].entry, sizeof fake.entry);
		check_failed(-EINVAL, "agmsupr", "its table");
		assert_non_null(strstr(trace.why, tables[i].why));
	}
	ib_unregister_peer_memory_client(handle);
}

static void adjacent_entries_are_one_piece(void **state)
{
	void *handle = fake_E.open("fake", 0);
	struct peer_region *r;

	(void)state;
	fake.entry[1].address = 0x12000;
	r = live();
	assert_int_equal(r->pieces.count, 1);
	assert_int_equal(r->pieces.piece[0].length, 16384);
	assert_int_equal(peer_region_drop(r), 0);
	ib_unregister_peer_memory_client(handle);
}

static void abandoned(void **state)
{
	void *handle = fake_A.open("fake", 0);
	struct peer_region *r;

	(void)state;
	assert_int_equal(make(&r), 0);
	peer_region_abandon(r);
	assert_string_equal(fake_calls(), "agmsupr");
	ib_unregister_peer_memory_client(handle);
}

/* ---- who is asked ---- */

static void in_order_until_one_claims(void **state)
{
	void *first = fake_A.open("first", 0), *second = fake_E.open("second", 0);
	struct peer_region *r;

	(void)state;
	assert_int_equal(peer_region_drop(live()), 0);
	assert_int_equal(trace.asked, 1);
	assert_string_equal(trace.client[0].name, "first");
	fake.answer[FAKE_ACQUIRE] = -EFAULT;
	assert_int_equal(make(&r), 0);
	assert_null(r);
	assert_int_equal(trace.asked, 2);
	assert_string_equal(trace.client[1].name, "second");
	assert_int_equal(trace.client[1].answer, -EFAULT);
	fake.answer[FAKE_ACQUIRE] = 2;
	assert_int_equal(peer_region_drop(live()), 0);
	assert_int_equal(peer_generation_use('A'), 0);
	assert_int_equal(make(&r), 0);
	assert_null(r);
	ib_unregister_peer_memory_client(first);
	assert_int_equal(make(&r), 0);
	assert_int_equal(trace.asked, 1);
	ib_unregister_peer_memory_client(second);
	assert_int_equal(make(&r), 0);
	assert_int_equal(trace.asked, 0);
}

static void *refused;

static void everything_inside_acquire(void)
{
	struct peer_region *r;

	assert_null(fake_A.open("inner", 0));
	ib_unregister_peer_memory_client(refused);
	assert_int_equal(make(&r), -EDEADLK);
}

static void nothing_inside_acquire(void **state)
{
	(void)state;
	refused = fake_A.open("fake", 0);
	fake.inside[FAKE_ACQUIRE] = everything_inside_acquire;
	assert_int_equal(peer_region_drop(live()), 0);
	ib_unregister_peer_memory_client(refused);
}

/* ---- what is registered ---- */

static int say_no(unsigned long addr, size_t size, void *data, char *name, void **context)
{
	(void)addr, (void)size, (void)data, (void)name, (void)context;
	return 0;
}

static int no_pages(unsigned long addr, size_t size, int write, int force, struct sg_table *t,
	void *context, u64 core_context)
{
	(void)addr, (void)size, (void)write, (void)force, (void)t, (void)context,
		(void)core_context;
	return -EIO;
}

static int no_map(struct sg_table *t, void *context, struct device *d, int dmasync, int *nmap)
{
	(void)t, (void)context, (void)d, (void)dmasync, (void)nmap;
	return -EIO;
}

static int no_unmap(struct sg_table *t, void *context, struct device *d)
{
	(void)t, (void)context, (void)d;
	return 0;
}

static void no_put(struct sg_table *t, void *context)
{
	(void)t, (void)context;
}

static unsigned long one_page(void *context)
{
	(void)context;
	return 4096;
}

static const struct peer_memory_client whole = {
	"whole", "1", say_no, no_pages, no_map, no_unmap, no_put, one_page, NULL};

static void missing_functions(void **state)
{
	struct peer_memory_client c[6] = {whole, whole, whole, whole, whole, whole};
	void *handle;

	(void)state;
	c[0].acquire = NULL;
	c[1].get_pages = NULL;
	c[2].dma_map = NULL;
	c[3].dma_unmap = NULL;
	c[4].put_pages = NULL;
	c[5].get_page_size = NULL;
	for (int i = 0; i < 5; i++)
		assert_null(ib_register_peer_memory_client(&c[i], NULL));
	handle = ib_register_peer_memory_client(&c[5], NULL);
	assert_non_null(handle);
	ib_unregister_peer_memory_client(handle);
	assert_int_equal(peer_generation_use('C'), 0);
	assert_null(ib_register_peer_memory_client(&c[5], NULL));
	assert_null(ib_register_peer_memory_client(NULL, NULL));
}

static void names(void **state)
{
	static const char *const bad[] = {"", "a/b", ".", ".."};
	struct peer_memory_client c = whole;
	void *handle;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(c.name, sizeof c.name, "%s", bad[i]);
		assert_null(ib_register_peer_memory_client(&c, NULL));
	}
	memset(c.name, 'n', sizeof c.name);
	assert_null(ib_register_peer_memory_client(&c, NULL));
	handle = ib_register_peer_memory_client(&whole, NULL);
	assert_null(ib_register_peer_memory_client(&whole, NULL));
	ib_unregister_peer_memory_client(handle);
	ib_unregister_peer_memory_client(handle); /* unknown by now */
	ib_unregister_peer_memory_client(NULL);
	handle = ib_register_peer_memory_client(&whole, NULL);
	assert_non_null(handle);
	ib_unregister_peer_memory_client(handle);
}

static bool unmaps(const struct peer_memory_client_ex *ex, char letter)
{
	const struct peer_client *c = NULL;
	invalidate_peer_memory callback;
	void *handle;
	bool answer;

	assert_int_equal(peer_generation_use(letter), 0);
	handle = ib_register_peer_memory_client(&ex->client, &callback);
	peer_registry_each(take_stats, &c);
	answer = c->unmaps;
	ib_unregister_peer_memory_client(handle);
	return answer;
}

static void flags_are_read_where_they_are(void **state)
{
	struct peer_memory_client_ex ex = {whole, sizeof ex, PEER_MEM_INVALIDATE_UNMAPS};

	(void)state;
	assert_false(unmaps(&ex, 'W'));
	ex.client.version[15] = 1;
	assert_true(unmaps(&ex, 'W'));
	assert_true(unmaps(&ex, 'E'));
	assert_false(unmaps(&ex, 'D'));
	ex.ex_size = 148;
	assert_true(unmaps(&ex, 'W'));
	ex.ex_size = 147;
	assert_false(unmaps(&ex, 'W'));
}

static int print_all(const struct peer_client *c, void *arg)
{
	char text[64];

	(void)arg;
	assert_int_equal(peer_stat_print(c, 0, text, sizeof text), 4);
	assert_string_equal(text, "1.5\n");
	assert_string_equal(peer_stat_name(0), "version");
	assert_string_equal(peer_stat_name(PEER_STAT_FILES - 1), "num_free_callbacks");
	assert_int_equal(PEER_STAT_FILES, 8);
	assert_null(peer_stat_name(PEER_STATS + 1));
	for (unsigned i = 1; i < PEER_STAT_FILES; i++) {
		assert_non_null(peer_stat_name(i));
		assert_true(peer_stat_print(c, i, text, sizeof text) > 1);
		assert_string_equal(text, i == 1 + PEER_REG_BYTES   ? "12288\n"
					  : i == 1 + PEER_ALLOC_MRS ? "1\n"
					  : i == 1 + PEER_REG_PAGES ? "2\n"
								    : "0\n");
	}
	return 0;
}

static void files_of_statistics(void **state)
{
	void *handle = fake_E.open("fake", 0);
	struct peer_region *r = live();

	(void)state;
	assert_int_equal(peer_registry_each(print_all, NULL), 0);
	assert_int_equal(peer_region_drop(r), 0);
	ib_unregister_peer_memory_client(handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(clients_of_all_generations_under_all_rows, begin),
		cmocka_unit_test_setup(changed_table, begin),
		cmocka_unit_test_setup(ranges_that_wrap, begin),
		cmocka_unit_test_setup(pages_of_the_host, begin),
		cmocka_unit_test_setup(each_step_fails, begin),
		cmocka_unit_test_setup(page_sizes, begin),
		cmocka_unit_test_setup(garbage_in_tables, begin),
		cmocka_unit_test_setup(adjacent_entries_are_one_piece, begin),
		cmocka_unit_test_setup(abandoned, begin),
		cmocka_unit_test_setup(in_order_until_one_claims, begin),
		cmocka_unit_test_setup(nothing_inside_acquire, begin),
		cmocka_unit_test_setup(missing_functions, begin),
		cmocka_unit_test_setup(names, begin),
		cmocka_unit_test_setup(flags_are_read_where_they_are, begin),
		cmocka_unit_test_setup(files_of_statistics, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
