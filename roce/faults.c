// SPDX-License-Identifier: BSD-3-Clause
#include "roce/faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/at_open.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "hca/proc/proc.h"
#include "rdv/proto.h"
#include "roce/fault/fault.h"
#include "roce/fault/held.h"
#include "roce/rx.h"
#include "roce/watch.h"

enum { PACKET_MAX = 64 << 10 };

/* What goes with a packet that came and is held back. */
struct came {
	struct roce_from from;
	unsigned index;
};

_Static_assert(sizeof(struct came) <= FAULT_TAG_MAX, "it is a tag");
_Static_assert(sizeof(struct tx_path) <= FAULT_TAG_MAX, "it is a tag");

static const _Atomic uint32_t no_rules;
const _Atomic uint32_t *_Atomic faults_word = &no_rules;

static struct {
	struct lock lock;
	uint32_t epoch; /* of the attach whose rules these are */
	uint32_t word;  /* of the rules in set; 0: none */
	struct fault_set set;
	struct fault_line in, out;
	_Atomic uint64_t next;
} faults AT_OPEN_DATA;

/* ---- rules ---- */

static void take_rules(struct seg_faults *f, uint32_t word)
{
	char text[SEG_FAULT_TEXT];
	struct fault_rules rules = {0};
	struct fault_error why;

	if (!seg_fault_read(f, word, text) || fault_parse(text, strlen(text), &rules, &why))
		return;
	fault_start(&faults.set, &rules);
	faults.word = word;
	for (unsigned i = 0; i < SEG_FAULT_RULES; i++) {
		atomic_store_explicit(&f->count[i].seen, 0, memory_order_relaxed);
		atomic_store_explicit(&f->count[i].done, 0, memory_order_relaxed);
	}
	atomic_store_explicit(&f->taken, word, memory_order_release);
}

static void show_counts(struct seg_faults *f)
{
	for (unsigned i = 0; i < faults.set.rules.n; i++) {
		atomic_store_explicit(
			&f->count[i].seen, faults.set.state[i].seen, memory_order_relaxed);
		atomic_store_explicit(
			&f->count[i].done, faults.set.state[i].done, memory_order_relaxed);
	}
}

/* Under the lock: what the rules, as they are now, say of a packet. */
static enum fault_act ask(enum fault_way way, const uint8_t *bytes, size_t n, struct fault_how *how)
{
	struct seg_faults *f = &proc_seg()->faults;
	uint32_t word = atomic_load_explicit(&f->word, memory_order_acquire);
	enum fault_act act;

	if (word && word != faults.word)
		take_rules(f, word);
	if (!word || word != faults.word)
		return FAULT_PASS;
	act = fault_on(&faults.set, way, bytes, n, how);
	show_counts(f);
	return act;
}

/* The variable's rules become those of this process, as by weft fault set -p. */
static void take_variable(void)
{
	static bool told;
	const char *text = secure_getenv("WEFT_FAULT");
	struct proto_fault call = {.pid = PROTO_FAULT_SELF};
	struct fault_rules rules;
	struct fault_error why;
	char said[256];
	size_t len = text ? strlen(text) : 0;

	if (!len)
		return;
	if (fault_parse(text, len, &rules, &why)) {
		fault_error_text(&why, said, sizeof said);
		if (!told)
			log_line(LOG_LVL_WARN, "WEFT_FAULT=%.40s has no effect: %s", text, said);
		told = true;
		return;
	}
	memcpy(call.text, text, len);
	if (rdv_cm_call(OP_FAULT, &call, offsetof(struct proto_fault, text) + len, NULL))
		log_line(LOG_LVL_WARN, "WEFT_FAULT has no effect: weftd does not answer");
}

void faults_start(void)
{
	bool anew;

	lock_take(&faults.lock);
	anew = faults.epoch != proc_epoch();
	faults.epoch = proc_epoch();
	atomic_store_explicit(&faults_word, &proc_seg()->faults.word, memory_order_relaxed);
	lock_drop(&faults.lock);
	if (anew)
		take_variable();
}

/* ---- packets that are held back ---- */

static void note_next(void)
{
	uint64_t in = fault_line_due(&faults.in), out = fault_line_due(&faults.out);
	uint64_t next = in < out ? in : out;

	if (!next)
		next = 1; /* it has been overtaken */
	atomic_store_explicit(&faults.next, next == UINT64_MAX ? 0 : next, memory_order_relaxed);
}

uint64_t faults_next(void)
{
	return atomic_load_explicit(&faults.next, memory_order_relaxed);
}

static struct fault_held *take(struct fault_line *l, uint64_t now)
{
	struct fault_held *h;

	lock_take(&faults.lock);
	h = fault_line_take(l, now);
	note_next();
	lock_drop(&faults.lock);
	return h;
}

void faults_release(struct exec *x, uint64_t now)
{
	struct fault_held *h;
	size_t n;

	while ((h = take(&faults.in, now))) {
		const struct came *c = fault_held_tag(h);
		const void *bytes = fault_held_packet(h, &n);

		rx_accept(x, &c->from, bytes, n, c->index, now);
		fault_held_free(h);
	}
	while ((h = take(&faults.out, now))) {
		const void *bytes = fault_held_packet(h, &n);
		const struct iovec piece = {(void *)bytes, n};

		tx_now(x, fault_held_tag(h), &piece, 1);
		fault_held_free(h);
	}
}

/* Under the lock.  How often the packet goes on now. */
static unsigned carry_out(enum fault_act act, const struct fault_how *how, struct fault_line *l,
	const uint8_t *bytes, size_t n, const void *tag, size_t tag_len)
{
	if (act == FAULT_HOLD && !fault_line_hold(l, bytes, n, tag, tag_len,
					 clock_ns() + how->hold_ns, how->behind)) {
		note_next();
		return 0;
	}
	if (act != FAULT_LOSE)
		fault_line_passed(l);
	note_next();
	return act == FAULT_LOSE ? 0 : act == FAULT_TWICE ? 2 : 1;
}

/* Under the lock: a packet that no rule hits goes on, and may overtake one that is held back. */
static void passed(struct fault_line *l)
{
	if (!l->n)
		return;
	fault_line_passed(l);
	note_next();
}

enum fault_act faults_ask(const uint8_t *head, size_t n, struct fault_how *how)
{
	enum fault_act act;

	lock_take(&faults.lock);
	act = ask(FAULT_OUT, head, n, how);
	if (act == FAULT_PASS)
		passed(&faults.out);
	lock_drop(&faults.lock);
	return act;
}

void faults_out_as(struct exec *x, const struct tx_path *path, uint8_t *bytes, size_t n,
	enum fault_act act, const struct fault_how *how)
{
	const struct iovec piece = {bytes, n};
	unsigned times;

	if (act == FAULT_FLIP)
		bytes[how->bit / 8] ^= 1u << how->bit % 8;
	lock_take(&faults.lock);
	times = carry_out(act, how, &faults.out, bytes, n, path, sizeof *path);
	lock_drop(&faults.lock);
	while (times--)
		tx_now(x, path, &piece, 1);
	if (faults_next())
		watch_wake();
}

void faults_out(struct exec *x, const struct tx_path *path, uint8_t *bytes, size_t n)
{
	const struct iovec piece = {bytes, n};
	struct fault_how how;
	enum fault_act act = faults_ask(bytes, n, &how);

	if (act == FAULT_PASS)
		tx_now(x, path, &piece, 1);
	else
		faults_out_as(x, path, bytes, n, act, &how);
}

/* A rule hits a packet that came. */
static void hit_in(struct exec *x, const struct roce_from *from, const uint8_t *bytes, size_t n,
	unsigned index, uint64_t now, enum fault_act act, const struct fault_how *how)
{
	static uint8_t changed[PACKET_MAX];
	struct came c;
	unsigned times;

	memset(&c, 0, sizeof c);
	c.from = *from;
	c.index = index;
	lock_take(&faults.lock);
	times = carry_out(act, how, &faults.in, bytes, n, &c, sizeof c);
	lock_drop(&faults.lock);
	if (act == FAULT_FLIP && n <= sizeof changed) {
		memcpy(changed, bytes, n);
		changed[how->bit / 8] ^= 1u << how->bit % 8;
		bytes = changed;
	}
	while (times--)
		rx_accept(x, from, bytes, n, index, now);
}

bool faults_in(struct exec *x, const struct roce_from *from, const uint8_t *bytes, size_t n,
	unsigned index, uint64_t now)
{
	struct fault_how how;
	enum fault_act act;

	lock_take(&faults.lock);
	act = ask(FAULT_IN, bytes, n, &how);
	if (act == FAULT_PASS)
		passed(&faults.in);
	lock_drop(&faults.lock);
	if (act == FAULT_PASS)
		return false;
	hit_in(x, from, bytes, n, index, now, act, &how);
	return true;
}

void faults_forked_child(void)
{
	atomic_store_explicit(&faults.lock.word, 0, memory_order_relaxed);
	atomic_store_explicit(&faults_word, &no_rules, memory_order_relaxed);
	fault_line_clear(&faults.in);
	fault_line_clear(&faults.out);
	atomic_store_explicit(&faults.next, 0, memory_order_relaxed);
	faults.word = 0;
}
