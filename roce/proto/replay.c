// SPDX-License-Identifier: BSD-3-Clause
#include "roce/proto/replay.h"

#include <errno.h>
#include <stdlib.h>

static struct response *at(const struct response_ring *r, uint32_t i)
{
	return &r->ring[(r->first + i) % r->room];
}

static void put(struct response_ring *r, const struct response *response)
{
	if (r->count == r->room) {
		r->first = (r->first + 1) % r->room;
		r->count--;
	}
	*at(r, r->count++) = *response;
}

int replay_start(struct replay *r, uint32_t max_reads)
{
	*r = (struct replay){.done.room = max_reads, .queue.room = 2 * max_reads};
	if (!max_reads)
		return 0;
	r->done.ring = calloc(r->done.room, sizeof *r->done.ring);
	r->queue.ring = calloc(r->queue.room, sizeof *r->queue.ring);
	if (r->done.ring && r->queue.ring)
		return 0;
	replay_end(r);
	return -ENOMEM;
}

void replay_end(struct replay *r)
{
	free(r->done.ring);
	free(r->queue.ring);
	*r = (struct replay){0};
}

bool replay_has_room(const struct replay *r)
{
	return r->queue.count < r->queue.room;
}

bool replay_is_full(const struct replay *r)
{
	return r->unsent == r->done.room;
}

void replay_add(struct replay *r, const struct response *response)
{
	put(&r->done, response);
	put(&r->queue, response);
	r->unsent++;
}

/* Does the packet ask for (a part of) what that one was? */
static bool same_request(const struct response *r, const struct roce_packet *p, uint32_t mtu)
{
	uint32_t i = (p->psn - r->psn) & ROCE_PSN_MASK;
	uint64_t skipped = (uint64_t)i * mtu;

	if (r->act != p->op->act || i >= r->packets || r->rkey != p->rkey)
		return false;
	if (r->act == ROCE_READ)
		return p->va == r->va + skipped && p->length <= r->length - skipped;
	return i == 0 && p->va == r->va;
}

bool replay_again(struct replay *r, const struct roce_packet *p, uint32_t mtu)
{
	for (uint32_t i = 0; i < r->done.count; i++) {
		struct response again = *at(&r->done, i);

		if (!same_request(&again, p, mtu))
			continue;
		if (!replay_has_room(r))
			return false;
		if (again.act == ROCE_READ) {
			again.va = p->va;
			again.length = p->length;
			again.packets = roce_packets(p->length, mtu);
		}
		again.psn = p->psn;
		again.again = true;
		put(&r->queue, &again);
		return true;
	}
	return false;
}

struct response *replay_next(struct replay *r)
{
	return r->queue.count ? at(&r->queue, 0) : NULL;
}

void replay_sent(struct replay *r)
{
	r->unsent -= !at(&r->queue, 0)->again;
	r->queue.first = (r->queue.first + 1) % r->queue.room;
	r->queue.count--;
}
