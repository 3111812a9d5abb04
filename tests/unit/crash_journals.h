/* SPDX-License-Identifier: BSD-3-Clause */
/* Journals of one region of OWNER that tests of the power-failure simulator write, one at a time.
 */
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "crash/owner.h"
#include "crash/search.h"

enum { OWNER = 100, CLIENT = 200, OTHER = 201, BASE = 0x10000, WORDS = 16, QP = 7, QP2 = 8 };

static struct journal j;
static char path[64];

static inline int begin(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/weft-crash-test-%d", (int)getpid());
	unlink(path);
	assert_int_equal(journal_create(path, JOURNAL_SIZE_MIN), 0);
	assert_int_equal(journal_open(&j, path, true), 0);
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	journal_close(&j);
	unlink(path);
	return 0;
}

/* ---- making journals ---- */

static inline uint64_t store(const void *bytes, uint64_t len)
{
	uint64_t data = journal_room(&j, len);

	assert_true(data);
	memcpy(journal_data(&j, data), bytes, len);
	return data;
}

static inline void add(struct journal_record r, const void *bytes)
{
	r.owner = OWNER;
	if (bytes) {
		r.data = store(bytes, r.len);
		r.data_len = r.len;
	}
	assert_non_null(journal_add(&j, &r, JOURNAL_DONE));
}

static inline void region(void)
{
	uint64_t zeros[WORDS] = {0};

	add((struct journal_record){.kind = JOURNAL_REGION, .addr = BASE, .len = sizeof zeros},
		zeros);
}

/* A request of CLIENT; words of value v from word w on. */
static inline struct journal_record request(uint32_t qp, uint32_t pos, uint32_t seen)
{
	return (struct journal_record){.kind = JOURNAL_WRITE,
		.opcode = IBV_WR_RDMA_WRITE,
		.pid = CLIENT,
		.qpn = qp,
		.target_qpn = qp,
		.pos = pos,
		.seen = seen};
}

static inline void write_as(struct journal_record r, unsigned w, unsigned n, uint64_t v)
{
	uint64_t bytes[WORDS];

	for (unsigned i = 0; i < n; i++)
		bytes[i] = v;
	r.addr = BASE + 8 * w;
	r.len = 8 * n;
	add(r, bytes);
}

static inline void write_words(uint32_t qp, uint32_t pos, unsigned w, unsigned n, uint64_t v)
{
	write_as(request(qp, pos, pos), w, n, v);
}

/* Of len bytes from BASE + from on. */
static inline void push_bytes(
	struct journal_record r, enum journal_push how, unsigned from, unsigned len)
{
	r.kind = JOURNAL_PUSH;
	r.push = how;
	r.opcode = how == JOURNAL_READ ? IBV_WR_RDMA_READ : 14;
	r.addr = BASE + from;
	r.len = len;
	add(r, NULL);
}

static inline void push_as(struct journal_record r, enum journal_push how, unsigned w, unsigned n)
{
	push_bytes(r, how, 8 * w, 8 * n);
}

static inline void push(uint32_t qp, uint32_t pos, enum journal_push how, unsigned w, unsigned n)
{
	push_as(request(qp, pos, pos), how, w, n);
}

static inline void persist(unsigned w, unsigned n, const uint64_t *values)
{
	add((struct journal_record){.kind = JOURNAL_PERSIST, .addr = BASE + 8 * w, .len = 8 * n},
		values);
}

/* ---- looking at the end of them ---- */

static const struct crash_rules direct = {.ddio = false}, ddio = {.ddio = true};

static inline struct crash_state at_end(const struct crash_rules *rules)
{
	uint64_t last = journal_count(&j) - 1;
	struct crash_state s;

	assert_int_equal(crash_state_at(&s, &j, rules, (struct crash_point){.record = last},
				 crash_overtakes(&j, last)),
		0);
	assert_int_equal(s.n_regions, 1);
	return s;
}

static inline uint64_t pending_at_end(const struct crash_rules *rules)
{
	struct crash_state s = at_end(rules);
	uint64_t n = s.n_pending;

	crash_state_free(&s);
	return n;
}

static inline uint64_t images_at_end(const struct crash_rules *rules)
{
	struct crash_state s = at_end(rules);
	uint64_t n = crash_images(&s);

	crash_state_free(&s);
	return n;
}

#define RULE(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
