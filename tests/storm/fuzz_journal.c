// SPDX-License-Identifier: BSD-3-Clause
/*
 * libFuzzer: a journal of the power-failure simulator with anything in it, as the commands read it:
 * it is looked through first, as they do, and then read all the same, as a process may write
 * nonsense meanwhile.
 *
 * The input is a list of patches of a journal in order: place, length, bytes.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crash/search.h"

enum {
	OWNER = 100,
	BASE = 0x10000,
	LEN = 256,
	RECORDS = 8,
	PATCH_MAX = 64,
	IMAGES = 8,
	PENDING_MAX = 4096,
};

static struct journal j;
static uint8_t *fresh; /* the file as it was */

static void add(enum journal_kind kind, uint64_t addr, uint64_t len, uint32_t pos)
{
	struct journal_record r = {.kind = kind,
		.owner = OWNER,
		.pid = OWNER + 1,
		.addr = addr,
		.len = len,
		.qpn = 7,
		.target_qpn = 7,
		.pos = pos};

	if (kind != JOURNAL_PUSH) {
		r.data = journal_room(&j, len);
		r.data_len = len;
		memset(journal_data(&j, r.data), (int)pos + 1, len);
	}
	if (!journal_add(&j, &r, JOURNAL_DONE))
		abort();
}

static void set_up(void)
{
	char path[64];

	snprintf(path, sizeof path, "/tmp/weft-fuzz-journal-%d", (int)getpid());
	if (journal_create(path, JOURNAL_SIZE_MIN) || journal_open(&j, path, true))
		abort();
	unlink(path);
	add(JOURNAL_REGION, BASE, LEN, 0);
	add(JOURNAL_WRITE, BASE + 8, 24, 0);
	add(JOURNAL_PUSH, BASE, 16, 1);
	add(JOURNAL_WRITE, BASE + 3, 40, 2);
	add(JOURNAL_PERSIST, BASE + 8, 64, 0);
	add(JOURNAL_REGION, BASE + 128, LEN, 0);
	add(JOURNAL_WRITE, BASE, 8, 3);
	journal_mark(&j, "a mark");
	fresh = malloc(JOURNAL_SIZE_MIN);
	if (!fresh)
		abort();
	memcpy(fresh, j.head, JOURNAL_SIZE_MIN);
}

/* Where the patches go: what is in use. */
static uint64_t place(uint32_t at)
{
	const uint64_t records = (RECORDS + 4) * sizeof(struct journal_record), bytes = 2048;

	at %= sizeof *j.head + records + bytes;
	if (at < sizeof *j.head)
		return at;
	at -= sizeof *j.head;
	return at < records ? JOURNAL_HEAD_BYTES + at : j.data_off + at - records;
}

static void patch(const uint8_t *data, size_t size)
{
	while (size > 3) {
		uint32_t at = data[0] | data[1] << 8;
		size_t len = 1 + data[2] % PATCH_MAX;

		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		for (size_t i = 0; i < len; i++)
			((uint8_t *)j.head)[place(at + i)] = data[i];
		data += len;
		size -= len;
	}
}

static int look(void *arg, const struct crash_state *s, struct crash_point at, const uint8_t *keep)
{
	(void)at, (void)keep;
	return s->n_pending % 3 == 1 && ++*(unsigned *)arg > 2;
}

static void search(struct crash_state *s, struct crash_point p)
{
	unsigned calls = 0;
	struct crash_search q = {.images = IMAGES, .check = look, .arg = &calls};
	uint8_t *keep = NULL;

	if (s->n_pending <= PENDING_MAX && crash_search_point(&q, s, p, &keep) == 1)
		free(keep);
	crash_search_end(&q);
}

static void walk(const struct crash_rules *rules)
{
	struct crash_point p = crash_point_first(&j);
	struct crash_state s, late;
	bool matters;

	crash_state_init(&s);
	for (; p.record < journal_count(&j) && p.record < RECORDS + 4;
		p = crash_point_next(&j, p)) {
		if (crash_state_step(&s, &j, rules, p, &matters))
			break;
		if (matters)
			search(&s, p);
		if (!p.during && crash_overtakes(&j, p.record)) {
			(void)crash_state_at(&late, &j, rules, p, true);
			crash_state_free(&late);
		}
	}
	crash_state_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct crash_rules ddio = {.ddio = size & 1};
	struct journal_damage d = {0};

	if (!j.head)
		set_up();
	memcpy(j.head, fresh, JOURNAL_SIZE_MIN);
	patch(data, size);
	if (journal_verify(&j, &d) && (!d.what || d.at >= j.size))
		abort();
	walk(&ddio);
	return 0;
}
