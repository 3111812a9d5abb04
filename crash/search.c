// SPDX-License-Identifier: BSD-3-Clause
#include "crash/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
	SET_FIRST = 1024,
	PAIRS_MAX = 24,
	SINGLES_MAX = 400,
	SHRINK_CHECKS = 400,
	KEPT_CHECKS = 100,
	TRIES = 8
};

/* ---- images that were found good ---- */

struct crash_set {
	uint64_t *slots; /* 0 = free */
	uint64_t n, size;
};

static bool set_has(const struct crash_set *set, uint64_t key)
{
	for (uint64_t i = key & (set->size - 1); set->slots[i]; i = (i + 1) & (set->size - 1))
		if (set->slots[i] == key)
			return true;
	return false;
}

static void set_put(struct crash_set *set, uint64_t key)
{
	uint64_t i = key & (set->size - 1);

	while (set->slots[i])
		i = (i + 1) & (set->size - 1);
	set->slots[i] = key;
	set->n++;
}

static int set_add(struct crash_set *set, uint64_t key)
{
	struct crash_set big = {.size = 2 * set->size};

	if (2 * set->n >= set->size) {
		big.slots = calloc(big.size, sizeof *big.slots);
		if (!big.slots)
			return -ENOMEM;
		for (uint64_t i = 0; i < set->size; i++)
			if (set->slots[i])
				set_put(&big, set->slots[i]);
		free(set->slots);
		*set = big;
	}
	set_put(set, key);
	return 0;
}

static int set_make(struct crash_search *q)
{
	if (q->set)
		return 0;
	q->set = calloc(1, sizeof *q->set);
	if (!q->set)
		return -ENOMEM;
	q->set->size = SET_FIRST;
	q->set->slots = calloc(SET_FIRST, sizeof *q->set->slots);
	return q->set->slots ? 0 : -ENOMEM;
}

void crash_search_end(struct crash_search *q)
{
	if (q->set)
		free(q->set->slots);
	free(q->set);
	q->set = NULL;
}

/* ---- one point ---- */

/* The pending words of one record: they follow each other. */
struct run {
	uint64_t first, end;
};

/* What is done at a point. */
struct point {
	struct crash_search *q;
	struct crash_state *s;
	struct crash_point at;
	uint64_t base;       /* hash of what is durable */
	uint8_t *keep;       /* the image in work */
	struct run *records; /* that have words pending, the latest first */
	uint64_t n_records;
	uint64_t tried, fresh; /* images, and those that were not known */
	uint64_t random;
};

static uint64_t hash_word(const struct crash_region *r, uint64_t word, uint64_t value)
{
	return hash_mix(hash_mix(r->base + word) ^ hash_mix(r->owner) ^ value);
}

static uint64_t hash_durable(const struct crash_state *s)
{
	uint64_t h = hash_mix(s->marks);

	for (unsigned i = 0; i < s->n_regions; i++)
		for (uint64_t w = 0; w < s->regions[i].words; w++)
			h += hash_word(&s->regions[i], w, s->regions[i].durable[w]);
	return h;
}

/* Of an image; that of the durable state is known. */
static uint64_t hash_image(struct point *p, const uint8_t *keep)
{
	struct crash_state *s = p->s;
	uint64_t h = p->base;

	s->stamp++;
	for (uint64_t i = s->n_pending; i-- > 0;) {
		const struct crash_pending *w = &s->pending[i];
		struct crash_region *r = &s->regions[w->region];

		if (!keep[i] || r->mark[w->word] == s->stamp)
			continue;
		r->mark[w->word] = s->stamp;
		h += hash_word(r, w->word, w->value) - hash_word(r, w->word, r->durable[w->word]);
	}
	return h ? h : 1;
}

/* 1 broken, 0 good, or an error. */
static int look(struct point *p, const uint8_t *keep)
{
	uint64_t key = hash_image(p, keep);
	int rc;

	p->tried++;
	if (set_has(p->q->set, key))
		return 0;
	p->q->checked++;
	p->fresh++;
	rc = p->q->check(p->q->arg, p->s, p->at, keep);
	return rc ? rc : set_add(p->q->set, key);
}

/* ---- all images ---- */

static int by_word(const void *a, const void *b, void *arg)
{
	const struct crash_state *s = arg;
	const struct crash_pending *x = &s->pending[*(const uint64_t *)a];
	const struct crash_pending *y = &s->pending[*(const uint64_t *)b];

	if (x->region != y->region)
		return x->region < y->region ? -1 : 1;
	if (x->word != y->word)
		return x->word < y->word ? -1 : 1;
	return x < y ? -1 : 1;
}

static bool same_word(const struct crash_state *s, uint64_t a, uint64_t b)
{
	return s->pending[a].region == s->pending[b].region &&
	       s->pending[a].word == s->pending[b].word;
}

static uint64_t durable_value(const struct crash_state *s, uint64_t i)
{
	return s->regions[s->pending[i].region].durable[s->pending[i].word];
}

/*
 * The pending words that change something, in the order of their places; to be freed.  One that
 * has the value that was there before it makes no other image, whether it is kept or lost.
 */
static uint64_t *sorted(const struct crash_state *s, uint64_t *count)
{
	uint64_t *order = malloc((s->n_pending + 1) * sizeof *order), n = 0;

	*count = 0;
	if (!order)
		return NULL;
	for (uint64_t i = 0; i < s->n_pending; i++)
		order[i] = i;
	qsort_r(order, s->n_pending, sizeof *order, by_word, (void *)s);
	for (uint64_t i = 0; i < s->n_pending; i++) {
		bool first = !i || !same_word(s, order[i - 1], order[i]);
		/* The last one before it of that word that changed something, or else what is
		 * durable. */
		uint64_t before = !first && n && same_word(s, order[n - 1], order[i])
					  ? s->pending[order[n - 1]].value
					  : durable_value(s, order[i]);
		if (s->pending[order[i]].value != before)
			order[n++] = order[i];
	}
	*count = n;
	return order;
}

static uint64_t count_images(const struct crash_state *s, const uint64_t *order, uint64_t count)
{
	uint64_t total = 1;

	for (uint64_t i = 0; i < count;) {
		uint64_t n = i;

		while (n < count && same_word(s, order[i], order[n]))
			n++;
		if (total > UINT64_MAX / (n - i + 1))
			return UINT64_MAX;
		total *= n - i + 1;
		i = n;
	}
	return total;
}

uint64_t crash_images(struct crash_state *s)
{
	uint64_t count, *order = sorted(s, &count);
	uint64_t n = order ? count_images(s, order, count) : UINT64_MAX;

	free(order);
	return n;
}

/* Image number `which`: each word has as many digits as values. */
static void nth_image(struct point *p, const uint64_t *order, uint64_t count, uint64_t which)
{
	const struct crash_state *s = p->s;

	memset(p->keep, 0, s->n_pending);
	for (uint64_t i = 0; i < count;) {
		uint64_t n = i, chosen;

		while (n < count && same_word(s, order[i], order[n]))
			n++;
		chosen = which % (n - i + 1);
		which /= n - i + 1;
		for (; i < n; i++)
			p->keep[order[i]] = chosen && chosen--;
	}
}

static int all_images(struct point *p, const uint64_t *order, uint64_t count, uint64_t n)
{
	int rc = 0;

	for (uint64_t i = 0; !rc && i < n; i++) {
		nth_image(p, order, count, i);
		rc = look(p, p->keep);
	}
	return rc;
}

/* ---- some images ---- */

static void set_record(struct point *p, struct run record, bool kept)
{
	memset(p->keep + record.first, kept, record.end - record.first);
}

static void set_all(struct point *p, bool kept)
{
	memset(p->keep, kept, p->s->n_pending);
}

static uint64_t draw(struct point *p)
{
	p->random = hash_mix(p->random);
	return p->random;
}

/* Each write is kept, lost, or in pieces. */
static void random_image(struct point *p)
{
	uint64_t record = UINT64_MAX, mode = 0;

	for (uint64_t i = 0; i < p->s->n_pending; i++) {
		if (p->s->pending[i].record != record)
			mode = draw(p) % 3;
		record = p->s->pending[i].record;
		p->keep[i] = mode == 2 ? draw(p) >> 17 & 1 : mode;
	}
}

static int random_images(struct point *p)
{
	int rc = 0;

	p->q->sampled = true;
	while (!rc && p->fresh < p->q->images && p->tried < TRIES * p->q->images) {
		random_image(p);
		rc = look(p, p->keep);
	}
	return rc;
}

/* The images in which mistakes show first: one write alone survives, or is lost alone. */
static int some_images(struct point *p)
{
	int rc;

	p->q->sampled = true;
	set_all(p, false);
	rc = look(p, p->keep);
	set_all(p, true);
	if (!rc)
		rc = look(p, p->keep);
	for (uint64_t i = 0; !rc && i < p->n_records && p->fresh < p->q->images / 2; i++) {
		set_all(p, false);
		set_record(p, p->records[i], true);
		rc = look(p, p->keep);
		if (rc)
			break;
		set_all(p, true);
		set_record(p, p->records[i], false);
		rc = look(p, p->keep);
	}
	return rc ? rc : random_images(p);
}

/* ---- the least that breaks it ---- */

void crash_find_lost(struct crash_state *s, const uint8_t *keep, uint8_t *lost)
{
	s->stamp++;
	for (uint64_t i = s->n_pending; i-- > 0;) {
		uint64_t *mark = &s->regions[s->pending[i].region].mark[s->pending[i].word];

		if (keep[i])
			*mark = s->stamp;
		lost[i] = !keep[i] && *mark != s->stamp;
	}
}

/* Is there a broken image with one write lost, or two?  It is in p->keep then. */
static int lose_few(struct point *p)
{
	int rc = 0;

	if (p->n_records > SINGLES_MAX)
		return 0;
	for (uint64_t i = 0; !rc && i < p->n_records; i++) {
		set_all(p, true);
		set_record(p, p->records[i], false);
		rc = look(p, p->keep);
	}
	if (p->n_records > PAIRS_MAX)
		return rc;
	for (uint64_t i = 0; !rc && i < p->n_records; i++) {
		for (uint64_t k = i + 1; !rc && k < p->n_records; k++) {
			set_all(p, true);
			set_record(p, p->records[i], false);
			set_record(p, p->records[k], false);
			rc = look(p, p->keep);
		}
	}
	return rc;
}

/* Tries to keep these words, too.  1: it is still broken, so they stay. */
static int restore(struct point *p, struct run words, uint8_t *was)
{
	uint8_t *keep = p->keep + words.first;
	uint64_t n = words.end - words.first;
	int rc = 0;

	memcpy(was, keep, n);
	memset(keep, true, n);
	if (memcmp(was, keep, n))
		rc = look(p, p->keep);
	if (rc != 1)
		memcpy(keep, was, n);
	return rc;
}

/* Records [at, end), of which the latest is the first. */
static struct run records_of(const struct point *p, uint64_t at, uint64_t end)
{
	return (struct run){p->records[end - 1].first, p->records[at].end};
}

/* Whole records, in chunks that get smaller. */
static int restore_records(struct point *p, uint8_t *was)
{
	uint64_t n = p->n_records;
	int rc = 0;

	for (uint64_t chunk = (n + 1) / 2; rc >= 0 && chunk; chunk /= 2)
		for (uint64_t at = 0; rc >= 0 && at < n; at += chunk)
			rc = restore(p, records_of(p, at, chunk < n - at ? at + chunk : n), was);
	return rc < 0 ? rc : 0;
}

/* Words, in the same way. */
static int restore_words(struct point *p, uint8_t *was)
{
	uint64_t n = p->s->n_pending, end = p->tried + SHRINK_CHECKS;
	int rc = 0;

	for (uint64_t chunk = (n + 1) / 2; rc >= 0 && chunk; chunk /= 2)
		for (uint64_t at = 0; rc >= 0 && at < n && p->tried < end; at += chunk)
			rc = restore(p, (struct run){at, chunk < n - at ? at + chunk : n}, was);
	return rc < 0 ? rc : 0;
}

/* p->keep is broken; so it is afterwards, with less lost. */
static int shrink(struct point *p)
{
	uint64_t n = p->s->n_pending;
	uint8_t *found = malloc(n + 1), *was = malloc(n + 1);
	int rc = found && was ? 0 : -ENOMEM;

	if (!rc) {
		memcpy(found, p->keep, n);
		rc = lose_few(p);
	}
	if (!rc) {
		memcpy(p->keep, found, n);
		rc = restore_records(p, was);
	}
	if (rc >= 0)
		rc = restore_words(p, was);
	free(found);
	free(was);
	return rc;
}

/* ---- the least that has to be kept ---- */

/* Puts the records of which nothing is lost first in p->records; how many they are. */
static uint64_t untouched(struct point *p, const uint8_t *lost)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < p->n_records; i++) {
		struct run record = p->records[i];

		if (memchr(lost + record.first, true, record.end - record.first))
			continue;
		p->records[i] = p->records[n];
		p->records[n++] = record;
	}
	return n;
}

/* Does it break as well if records [at, end) are lost too?  Then keep[] says so. */
static int lose(struct point *p, uint8_t *keep, uint64_t at, uint64_t end)
{
	uint64_t n = p->s->n_pending;
	uint8_t *was = malloc(n + 1);
	int rc;

	if (!was)
		return -ENOMEM;
	memcpy(was, keep, n);
	for (; at < end; at++)
		memset(keep + p->records[at].first, CRASH_NOT_KEPT,
			p->records[at].end - p->records[at].first);
	rc = memcmp(was, keep, n) ? look(p, keep) : 0;
	if (rc != 1)
		memcpy(keep, was, n);
	free(was);
	return rc < 0 ? rc : 0;
}

/* p->keep is broken, and stays as it is; what need not be kept is CRASH_EITHER afterwards. */
static int mark_needless(struct point *p)
{
	uint64_t n = p->s->n_pending, end = p->tried + KEPT_CHECKS, records;
	uint8_t *lost = calloc(1, n + 1), *keep = malloc(n + 1);
	int rc = lost && keep ? 0 : -ENOMEM;

	if (!rc) {
		memcpy(keep, p->keep, n);
		crash_find_lost(p->s, keep, lost);
		records = untouched(p, lost);
		for (uint64_t chunk = records; !rc && chunk; chunk /= 2)
			for (uint64_t at = 0; !rc && at < records && p->tried < end; at += chunk)
				rc = lose(p, keep, at, at + chunk < records ? at + chunk : records);
		for (uint64_t i = 0; i < n; i++)
			if (p->keep[i] && !keep[i])
				p->keep[i] = CRASH_EITHER;
	}
	free(lost);
	free(keep);
	return rc;
}

/* ---- a point ---- */

static int list_records(struct point *p)
{
	const struct crash_state *s = p->s;

	p->records = malloc((s->n_pending + 1) * sizeof *p->records);
	if (!p->records)
		return -ENOMEM;
	for (uint64_t i = s->n_pending; i > 0; i--) {
		struct run *last = p->records + p->n_records - 1;

		if (p->n_records && s->pending[i].record == s->pending[i - 1].record)
			last->first = i - 1;
		else
			p->records[p->n_records++] = (struct run){i - 1, i};
	}
	return 0;
}

static int search(struct point *p)
{
	uint64_t *order, count, n;
	int rc = -ENOMEM;

	if (p->q->random)
		return random_images(p);
	order = sorted(p->s, &count);
	if (!order)
		return rc;
	n = count_images(p->s, order, count);
	if (n <= (p->q->exhaustive ? CRASH_EXHAUSTIVE_MAX : p->q->images))
		rc = all_images(p, order, count, n);
	else
		rc = p->q->exhaustive ? -E2BIG : some_images(p);
	free(order);
	return rc;
}

int crash_search_point(
	struct crash_search *q, struct crash_state *s, struct crash_point at, uint8_t **keep)
{
	struct point p = {.q = q, .s = s, .at = at};
	int rc = set_make(q);

	p.keep = calloc(1, s->n_pending + 1);
	if (!rc)
		rc = p.keep ? list_records(&p) : -ENOMEM;
	if (!rc) {
		q->points++;
		p.base = hash_durable(s);
		p.random = hash_mix(q->seed ^ hash_mix(at.record));
		rc = search(&p);
	}
	if (rc == 1 && (rc = shrink(&p)) >= 0 && (rc = mark_needless(&p)) >= 0)
		rc = 1;
	free(p.records);
	if (rc == 1)
		*keep = p.keep;
	else
		free(p.keep);
	return rc;
}
