// SPDX-License-Identifier: BSD-3-Clause
#include "roce/proto/reads.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/roce.h"

int reads_start(struct rc_reads *r, uint32_t room)
{
	*r = (struct rc_reads){.room = room};
	if (!room)
		return 0;
	r->ring = calloc(room, sizeof *r->ring);
	return r->ring ? 0 : -ENOMEM;
}

void reads_end(struct rc_reads *r)
{
	free(r->ring);
	*r = (struct rc_reads){0};
}

struct rc_read *reads_at(struct rc_reads *r, uint32_t i)
{
	return &r->ring[(r->first + i) % r->room];
}

struct rc_read *reads_add(struct rc_reads *r)
{
	return reads_at(r, r->count++);
}

struct rc_read *reads_find(struct rc_reads *r, uint32_t psn)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct rc_read *read = reads_at(r, i);
		int32_t at = roce_psn_diff(psn, read->psn);

		if (at >= 0 && at < (int32_t)read->packets)
			return read;
	}
	return NULL;
}

void reads_retire(struct rc_reads *r)
{
	while (r->count && read_complete(reads_at(r, 0))) {
		r->came -= reads_at(r, 0)->packets;
		r->first = (r->first + 1) % r->room;
		r->count--;
	}
}

void reads_cut(struct rc_reads *r, uint32_t psn)
{
	while (r->count && roce_psn_diff(reads_at(r, r->count - 1)->psn, psn) >= 0)
		r->came -= __builtin_popcountll(reads_at(r, --r->count)->got);
}

uint32_t reads_came_from(struct rc_reads *r, uint32_t psn)
{
	int32_t before = r->count ? roce_psn_diff(psn, reads_at(r, 0)->psn) : 0;

	return r->came - (before > 0 ? (uint32_t)before : 0);
}

uint32_t reads_turn(struct rc_reads *r)
{
	uint32_t packets;

	return read_hole(reads_at(r, 0), &packets);
}

void read_came(struct rc_reads *r, struct rc_read *read, uint32_t i)
{
	if (read->got >> i & 1)
		return;
	read->got |= 1ull << i;
	r->came++;
}

/* The response that follows the one of that PSN, which came in its turn: *i of it; or NULL. */
static struct rc_read *next_response(struct rc_reads *r, uint32_t psn, uint32_t *i)
{
	struct rc_read *read = reads_at(r, 0);

	*i = roce_psn_diff(psn, read->psn) + 1;
	if (*i < read->packets)
		return read;
	*i = 0;
	return r->count > 1 ? reads_at(r, 1) : NULL;
}

struct rc_read *reads_doubt_next(struct rc_reads *r, uint32_t psn, uint32_t *i)
{
	struct rc_read *next = next_response(r, psn, i);

	if (!next || !(next->got >> *i & 1))
		return NULL;
	next->got &= ~(1ull << *i);
	r->came--;
	return next;
}

static uint64_t first_of(uint32_t packets)
{
	return packets == 64 ? ~0ull : (1ull << packets) - 1;
}

bool read_complete(const struct rc_read *read)
{
	return read->got == first_of(read->packets);
}

uint32_t read_missing(const struct rc_read *read, uint32_t from, uint32_t end, uint32_t *packets)
{
	uint64_t missing = from < end ? ~read->got & first_of(end) & ~first_of(from) : 0, behind;
	unsigned at;

	*packets = 0;
	if (!missing)
		return end;
	at = __builtin_ctzll(missing);
	behind = ~(missing >> at);
	*packets = behind ? __builtin_ctzll(behind) : 64;
	return at;
}

uint32_t read_hole(const struct rc_read *read, uint32_t *packets)
{
	return roce_psn_add(read->psn, read_missing(read, 0, read->packets, packets));
}
