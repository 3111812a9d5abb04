// SPDX-License-Identifier: BSD-3-Clause
#include "crash/model.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 8, PENDING_FIRST = 256, ASKED_BEFORE = 1024 };

/* ---- regions ---- */

static uint64_t end_of(const struct crash_region *r)
{
	return r->base + r->words * WORD;
}

static bool overlaps(const struct crash_region *r, uint32_t owner, uint64_t addr, uint64_t len)
{
	return r->owner == owner && addr < end_of(r) && addr + len > r->base;
}

static void region_free(struct crash_region *r)
{
	free(r->durable);
	free(r->visible);
	free(r->mark);
}

static int region_alloc(struct crash_region *r, uint32_t owner, uint64_t addr, uint64_t len)
{
	uint64_t base = addr / WORD * WORD;
	uint64_t words = (addr + len - base + WORD - 1) / WORD;

	*r = (struct crash_region){
		.owner = owner, .addr = addr, .len = len, .base = base, .words = words};
	r->durable = calloc(words, WORD);
	r->visible = calloc(words, WORD);
	r->mark = calloc(words, WORD);
	if (r->durable && r->visible && r->mark)
		return 0;
	region_free(r);
	return -ENOMEM;
}

/* Takes in an older region that lies within: what is known of its words stays so. */
static void absorb(struct crash_state *s, struct crash_region *big, unsigned old, unsigned as)
{
	const struct crash_region *r = &s->regions[old];
	uint64_t at = (r->base - big->base) / WORD;

	memcpy(big->durable + at, r->durable, r->words * WORD);
	memcpy(big->visible + at, r->visible, r->words * WORD);
	for (uint64_t i = 0; i < s->n_pending; i++) {
		if (s->pending[i].region != old)
			continue;
		s->pending[i].region = as;
		s->pending[i].word += at;
	}
}

/* Takes region i out of the list; the last one takes its place. */
static void region_drop(struct crash_state *s, unsigned i)
{
	unsigned last = --s->n_regions;

	region_free(&s->regions[i]);
	s->regions[i] = s->regions[last];
	for (uint64_t p = 0; p < s->n_pending; p++)
		if (s->pending[p].region == last)
			s->pending[p].region = i;
}

/* Where a byte range and a region's words meet. */
struct span {
	uint64_t first, end;
};

static struct span span_of(const struct crash_region *r, uint64_t addr, uint64_t len)
{
	uint64_t lo = addr > r->base ? addr : r->base;
	uint64_t hi = addr + len < end_of(r) ? addr + len : end_of(r);

	return (struct span){(lo - r->base) / WORD, (hi - r->base + WORD - 1) / WORD};
}

/* A word of the region with those of its bytes replaced that [addr, addr+len) covers. */
static uint64_t merged(const struct crash_region *r, uint64_t word, uint64_t old, uint64_t addr,
	uint64_t len, const uint8_t *bytes)
{
	uint64_t at = r->base + word * WORD;
	uint8_t out[WORD];

	memcpy(out, &old, WORD);
	for (unsigned i = 0; i < WORD; i++)
		if (at + i >= addr && at + i < addr + len)
			out[i] = bytes[at + i - addr];
	memcpy(&old, out, WORD);
	return old;
}

/* ---- pending words ---- */

static int pend(struct crash_state *s, unsigned region, uint64_t word, uint64_t value, uint64_t rec)
{
	if (s->n_pending == s->max_pending) {
		uint64_t max = s->max_pending ? 2 * s->max_pending : PENDING_FIRST;
		struct crash_pending *p = realloc(s->pending, max * sizeof *p);

		if (!p)
			return -ENOMEM;
		s->pending = p;
		s->max_pending = max;
	}
	s->pending[s->n_pending++] = (struct crash_pending){
		.region = region, .word = word, .value = value, .record = rec};
	s->regions[region].visible[word] = value;
	return 0;
}

/*
 * What fn chooses is durable from here on, and so is the order of each word's values: earlier ones
 * are gone.
 */
static void settle(
	struct crash_state *s, bool (*fn)(const struct crash_pending *p, void *arg), void *arg)
{
	uint64_t kept = 0;

	s->stamp++;
	for (uint64_t i = s->n_pending; i-- > 0;) {
		struct crash_pending *p = &s->pending[i];
		struct crash_region *r = &s->regions[p->region];
		bool later = r->mark[p->word] == s->stamp;

		if (!later && !fn(p, arg))
			continue;
		if (!later)
			r->durable[p->word] = p->value;
		r->mark[p->word] = s->stamp;
		p->region = UINT32_MAX;
	}
	for (uint64_t i = 0; i < s->n_pending; i++)
		if (s->pending[i].region != UINT32_MAX)
			s->pending[kept++] = s->pending[i];
	s->n_pending = kept;
}

/* ---- the kinds of records ---- */

struct context {
	struct crash_state *s;
	const struct journal *j;
	const struct journal_record *r;
	uint64_t index;
	uint64_t asked; /* bytes that a READ stands for */
};

/* The owner's bytes differ from what peers left there: it stored them itself. */
static int local_stores(struct context *c, unsigned region, struct span span, const uint8_t *bytes)
{
	struct crash_region *r = &c->s->regions[region];
	int rc = 0;

	for (uint64_t w = span.first; !rc && w < span.end; w++) {
		uint64_t value = merged(r, w, r->visible[w], c->r->addr, c->r->len, bytes);

		if (value != r->visible[w])
			rc = pend(c->s, region, w, value, c->index);
	}
	return rc;
}

static int add_region(struct context *c, const uint8_t *bytes)
{
	uint64_t lo = c->r->addr, hi = c->r->addr + c->r->len;
	struct crash_state *s = c->s;
	struct crash_region big, *list;
	unsigned as = s->n_regions;
	int rc;

	for (unsigned i = 0; i < s->n_regions; i++) {
		const struct crash_region *r = &s->regions[i];

		if (!overlaps(r, c->r->owner, c->r->addr, c->r->len))
			continue;
		if (r->addr <= lo && r->addr + r->len >= hi)
			return local_stores(c, i, span_of(r, lo, hi - lo), bytes);
		lo = r->addr < lo ? r->addr : lo;
		hi = r->addr + r->len > hi ? r->addr + r->len : hi;
	}
	rc = region_alloc(&big, c->r->owner, lo, hi - lo);
	if (rc)
		return rc;
	list = realloc(s->regions, (as + 1) * sizeof *list);
	if (!list) {
		region_free(&big);
		return -ENOMEM;
	}
	s->regions = list;
	memcpy((char *)big.durable + (c->r->addr - big.base), bytes, c->r->len);
	memcpy(big.visible, big.durable, big.words * WORD);
	for (unsigned i = 0; i < as; i++)
		if (overlaps(&s->regions[i], big.owner, lo, hi - lo))
			absorb(s, &big, i, as);
	s->regions[as] = big;
	s->n_regions++;
	for (unsigned i = as; i-- > 0;)
		if (overlaps(&s->regions[i], big.owner, lo, hi - lo))
			region_drop(s, i);
	as = s->n_regions - 1;
	for (unsigned i = 0; i < s->n_regions; i++)
		if (s->regions[i].visible == big.visible)
			as = i;
	return local_stores(c, as, span_of(&s->regions[as], c->r->addr, c->r->len), bytes);
}

static int add_write(struct context *c, const uint8_t *bytes)
{
	struct crash_state *s = c->s;
	int rc = 0;

	for (unsigned i = 0; !rc && i < s->n_regions; i++) {
		struct crash_region *r = &s->regions[i];
		struct span span;

		if (!overlaps(r, c->r->owner, c->r->addr, c->r->len))
			continue;
		span = span_of(r, c->r->addr, c->r->len);
		for (uint64_t w = span.first; !rc && w < span.end; w++)
			rc = pend(s, i, w,
				merged(r, w, r->visible[w], c->r->addr, c->r->len, bytes),
				c->index);
	}
	return rc;
}

/* Do both come from one end of a queue pair, and go to the same other one? */
static bool same_queue(const struct journal_record *a, const struct journal_record *b)
{
	return a->owner == b->owner && a->pid == b->pid && a->qpn == b->qpn &&
	       a->target_qpn == b->target_qpn;
}

static bool in_bytes(const struct context *c, const struct crash_pending *p, uint64_t len)
{
	const struct crash_region *r = &c->s->regions[p->region];
	uint64_t at = r->base + p->word * WORD;

	return r->owner == c->r->owner && at < c->r->addr + len && at + WORD > c->r->addr;
}

static bool in_range(const struct context *c, const struct crash_pending *p)
{
	return in_bytes(c, p, c->r->len);
}

/* Record i if it is of the same process, work request and, if that is known, queue pair. */
static const struct journal_record *alike(
	const struct journal *j, uint64_t i, const struct journal_record *read)
{
	const struct journal_record *r = journal_at(j, i);
	bool is = r && r->pid == read->pid && r->wr_id == read->wr_id &&
		  (!r->qpn || r->qpn == read->qpn);

	return is && (r->kind == JOURNAL_ASKED || r->kind == JOURNAL_PUSH) ? r : NULL;
}

/*
 * The call of rpma_flush() that posted READ i: of those that wait for theirs the first, as READs of
 * a queue pair are carried out in order.  So many wait as there are more calls than READs since
 * some record before; none waited at that from where on there are most.
 */
static const struct journal_record *asked_by(const struct journal *j, uint64_t i)
{
	uint64_t from = i > ASKED_BEFORE ? i - ASKED_BEFORE : 0;
	const struct journal_record *read = journal_at(j, i), *r;
	int more = 0, waiting = 0;

	for (uint64_t n = i; n-- > from;) {
		r = alike(j, n, read);
		if (r)
			more += r->kind == JOURNAL_ASKED ? 1 : -1;
		if (more > waiting)
			waiting = more;
	}
	for (uint64_t n = i; waiting && n-- > from;) {
		r = alike(j, n, read);
		if (r && r->kind == JOURNAL_ASKED && !--waiting)
			return r;
	}
	return NULL;
}

static bool is_pushed(const struct crash_pending *p, void *arg)
{
	const struct context *c = arg;
	const struct journal_record *by = journal_at(c->j, p->record);

	if (!by || by->kind != JOURNAL_WRITE || !same_queue(by, c->r))
		return false;
	return c->r->push == JOURNAL_READ || in_range(c, p);
}

static bool is_pushed_as_asked(const struct crash_pending *p, void *arg)
{
	const struct context *c = arg;

	return is_pushed(p, arg) && in_bytes(c, p, c->asked);
}

/* A READ where FLUSHes are demanded. */
static void push_as_asked(struct context *c)
{
	const struct journal_record *by = asked_by(c->j, c->index);

	if (!by || by->push != JOURNAL_FLUSH_PERSISTENT || c->r->addr + by->len < c->r->addr)
		return;
	c->asked = by->len;
	settle(c->s, is_pushed_as_asked, c);
}

static void push(struct context *c, const struct crash_rules *rules)
{
	if (c->r->push == JOURNAL_READ && !rules->ddio && rules->ranges)
		push_as_asked(c);
	else if (c->r->push == JOURNAL_FLUSH_PERSISTENT ||
		 (c->r->push == JOURNAL_READ && !rules->ddio))
		settle(c->s, is_pushed, c);
}

/* Whatever is there: the bytes were taken when no write was under way (crash/owner.h). */
static bool is_persisted(const struct crash_pending *p, void *arg)
{
	return in_range(arg, p);
}

static int persist_begins(struct context *c, const uint8_t *bytes)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < c->s->n_regions; i++) {
		const struct crash_region *r = &c->s->regions[i];

		if (overlaps(r, c->r->owner, c->r->addr, c->r->len))
			rc = local_stores(c, i, span_of(r, c->r->addr, c->r->len), bytes);
	}
	return rc;
}

/* ---- points ---- */

/* The record, if it and its bytes make sense. */
static const struct journal_record *usable(const struct journal *j, uint64_t i)
{
	const struct journal_record *r = journal_at(j, i);
	bool has_bytes;

	if (!r)
		return NULL;
	has_bytes =
		r->kind == JOURNAL_REGION || r->kind == JOURNAL_WRITE || r->kind == JOURNAL_PERSIST;
	if (has_bytes && (r->data_len != r->len || !journal_bytes(j, r)))
		return NULL;
	return r->addr + r->len < r->addr ? NULL : r;
}

static int apply(struct crash_state *s, const struct journal *j, const struct crash_rules *rules,
	struct crash_point to, bool *matters)
{
	struct context c = {.s = s, .j = j, .r = usable(j, to.record), .index = to.record};
	uint64_t before = s->n_pending;
	int rc = 0;

	*matters = false;
	if (!c.r)
		return 0;
	switch (c.r->kind) {
	case JOURNAL_REGION:
		rc = add_region(&c, journal_bytes(j, c.r));
		*matters = true;
		break;
	case JOURNAL_WRITE:
		rc = add_write(&c, journal_bytes(j, c.r));
		*matters = s->n_pending > before;
		break;
	case JOURNAL_PUSH:
		push(&c, rules);
		break;
	case JOURNAL_PERSIST:
		if (to.during)
			rc = persist_begins(&c, journal_bytes(j, c.r));
		else
			settle(s, is_persisted, &c);
		*matters = s->n_pending > before;
		break;
	case JOURNAL_MARK:
		s->marks++;
		*matters = true;
		break;
	}
	return rc;
}

int crash_state_step(struct crash_state *s, const struct journal *j,
	const struct crash_rules *rules, struct crash_point to, bool *matters)
{
	return apply(s, j, rules, to, matters);
}

static bool has_halves(const struct journal *j, uint64_t i)
{
	const struct journal_record *r = journal_at(j, i);

	return r && r->kind == JOURNAL_PERSIST;
}

struct crash_point crash_point_first(const struct journal *j)
{
	return (struct crash_point){.during = has_halves(j, 0)};
}

struct crash_point crash_point_next(const struct journal *j, struct crash_point p)
{
	if (p.during)
		return (struct crash_point){.record = p.record};
	p.record++;
	p.during = p.record < journal_count(j) && has_halves(j, p.record);
	return p;
}

/* ---- what may be overtaken ---- */

static bool is_atomic(const struct journal_record *r)
{
	return r->opcode == IBV_WR_ATOMIC_WRITE || r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/*
 * May w, of the same queue pair as push p and later, overtake it?  `sure`: the number up to which
 * requests were over when w began.
 */
static bool may_pass(const struct journal_record *p, const struct journal_record *w, uint32_t sure)
{
	if (!before(p->pos, w->pos) || before(p->pos, sure))
		return false;
	return p->push == JOURNAL_READ || !is_atomic(w);
}

/* The request of the same queue pair that is before record i: its record, or UINT64_MAX. */
static uint64_t previous(const struct journal *j, uint64_t i, const struct journal_record *w)
{
	while (i-- > 0) {
		const struct journal_record *r = usable(j, i);

		if (r && (r->kind == JOURNAL_PUSH || r->kind == JOURNAL_WRITE) && same_queue(r, w))
			return i;
	}
	return UINT64_MAX;
}

/* All requests before this number were over when w, of record i, began. */
static uint32_t over_before(const struct journal *j, uint64_t i, const struct journal_record *w)
{
	if (w->fenced)
		return w->pos;
	while ((i = previous(j, i, w)) != UINT64_MAX) {
		const struct journal_record *r = journal_at(j, i);

		if (before(r->pos, w->seen) || before(w->pos, r->pos))
			break;
		if (r->fenced && before(r->pos, w->pos))
			return r->pos;
	}
	return w->seen;
}

bool crash_overtakes(const struct journal *j, uint64_t i)
{
	const struct journal_record *w = usable(j, i);
	uint32_t sure;

	if (!w || w->kind != JOURNAL_WRITE || w->fenced)
		return false;
	sure = over_before(j, i, w);
	while ((i = previous(j, i, w)) != UINT64_MAX) {
		const struct journal_record *p = journal_at(j, i);

		if (before(p->pos, sure))
			return false;
		if (p->kind == JOURNAL_PUSH && may_pass(p, w, sure))
			return true;
	}
	return false;
}

int crash_state_at(struct crash_state *s, const struct journal *j, const struct crash_rules *rules,
	struct crash_point at, bool late)
{
	const struct journal_record *w = late ? usable(j, at.record) : NULL;
	uint32_t sure = w ? over_before(j, at.record, w) : 0;
	struct crash_point p = crash_point_first(j);
	bool matters;
	int rc = 0;

	crash_state_init(s);
	for (; !rc && p.record <= at.record && p.record < journal_count(j);
		p = crash_point_next(j, p)) {
		const struct journal_record *r = usable(j, p.record);

		if (p.record == at.record && at.during && !p.during)
			break;
		if (w && r && r->kind == JOURNAL_PUSH && same_queue(r, w) && may_pass(r, w, sure))
			continue;
		rc = apply(s, j, rules, p, &matters);
	}
	return rc;
}

/* ---- what is found out later ---- */

/* The region of s with that word of another state's; its number in *word then. */
static struct crash_region *find_word(
	struct crash_state *s, const struct crash_region *other, uint64_t *word)
{
	uint64_t at = other->base + *word * WORD;

	for (unsigned i = 0; i < s->n_regions; i++) {
		if (!overlaps(&s->regions[i], other->owner, at, WORD))
			continue;
		*word = (at - s->regions[i].base) / WORD;
		return &s->regions[i];
	}
	return NULL;
}

/* What record i made pending in `ahead` becomes so in s.  -ENOENT: nothing. */
static int take_over(struct crash_state *s, const struct crash_state *ahead, uint64_t record)
{
	int rc = -ENOENT;

	for (uint64_t i = 0; i < ahead->n_pending && (!rc || rc == -ENOENT); i++) {
		const struct crash_pending *p = &ahead->pending[i];
		uint64_t word = p->word;
		struct crash_region *r;

		if (p->record != record)
			continue;
		r = find_word(s, &ahead->regions[p->region], &word);
		if (r)
			rc = pend(s, r - s->regions, word, p->value, record);
	}
	return rc;
}

int crash_state_foresee(struct crash_state *s, const struct journal *j,
	const struct crash_rules *rules, struct crash_point *from)
{
	struct crash_state ahead;
	struct crash_point p = *from;
	bool matters;
	int rc = crash_state_at(&ahead, j, rules, p, false);
	int found = -ENOENT;

	while (!rc && found == -ENOENT) {
		p = crash_point_next(j, p);
		if (p.record >= journal_count(j))
			break;
		rc = apply(&ahead, j, rules, p, &matters);
		if (!rc && p.during)
			found = take_over(s, &ahead, p.record);
	}
	crash_state_free(&ahead);
	*from = p;
	return rc ? rc : found;
}

/* ---- the state ---- */

void crash_state_init(struct crash_state *s)
{
	*s = (struct crash_state){0};
}

void crash_state_free(struct crash_state *s)
{
	for (unsigned i = 0; i < s->n_regions; i++)
		region_free(&s->regions[i]);
	free(s->regions);
	free(s->pending);
	crash_state_init(s);
}

void crash_image(const struct crash_state *s, const uint8_t *keep, unsigned region, uint64_t *words)
{
	const struct crash_region *r = &s->regions[region];

	memcpy(words, r->durable, r->words * WORD);
	for (uint64_t i = 0; i < s->n_pending; i++)
		if (s->pending[i].region == region && keep[i])
			words[s->pending[i].word] = s->pending[i].value;
}
