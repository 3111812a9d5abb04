// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/gpu_lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"

/* A call has a buffer for itself, and goes from slot to slot: one is copied while others fly. */
enum { BUFFERS = 4, SLOTS = 4, SLOT_BYTES = 256 * 1024, BUFFER_BYTES = SLOTS * SLOT_BYTES };

struct slot {
	void *event; /* marks what flies */
	bool flies;
};

struct buffer {
	struct lock lock;
	uint8_t *pinned;
	struct slot slot[SLOTS];
};

struct gpu_lane {
	const struct gpu_api *api;
	struct gpu_handles h;
	int device;
	bool primary; /* for memory of no context */
	bool whole;   /* nothing is missing */
	uint64_t id;  /* of the first buffer: it goes with the context */
	struct buffer buffer[BUFFERS];
	_Atomic unsigned turn;
	struct lock order; /* over a copy and its mark: */
	void *last;        /* the latest mark of a write; NULL: none yet */
	/* Under lanes.lock: */
	unsigned refs; /* regions */
	bool lost;     /* its context is gone */
	struct gpu_lane *next;
};

static struct {
	struct lock lock;
	struct gpu_lane *list;
} lanes;

/* ---- making one ---- */

bool gpu_lane_is_alive(const struct gpu_lane *lane)
{
	return lane->api->id(lane->buffer[0].pinned) == lane->id;
}

/* What is there already stays: a step that failed is tried again. */
static int fill_buffer(struct gpu_lane *lane, struct buffer *b)
{
	int rc = b->pinned ? 0 : lane->api->alloc(BUFFER_BYTES, (void **)&b->pinned);

	if (!rc && !lane->id)
		lane->id = lane->api->id(b->pinned);
	for (int i = 0; i < SLOTS && !rc; i++)
		if (!b->slot[i].event)
			rc = lane->api->make_event(&b->slot[i].event);
	return rc;
}

/* The first buffer comes first: by it is known whether the rest is there still. */
static int fill(struct gpu_lane *lane)
{
	struct gpu_inside was;
	int rc = gpu_lane_enter(lane, &was);

	if (rc)
		return rc;
	for (int i = 0; i < BUFFERS && !rc; i++)
		rc = fill_buffer(lane, &lane->buffer[i]);
	if (!rc)
		rc = lane->api->open(&lane->h);
	gpu_lane_leave(lane, &was);
	lane->whole = !rc;
	return rc;
}

static int make(const struct gpu_api *api, const struct gpu_range *range, struct gpu_lane **out)
{
	struct gpu_lane *lane = calloc(1, sizeof *lane);
	int rc;

	if (!lane)
		return -ENOMEM;
	lane->api = api;
	lane->device = range->device;
	lane->primary = !range->context;
	rc = api->context(range, &lane->h.context);
	if (rc)
		free(lane);
	else
		*out = lane;
	return rc;
}

static struct gpu_lane **place_of(const struct gpu_api *api, const struct gpu_range *range)
{
	struct gpu_lane **at = &lanes.list;

	while (*at && !((*at)->api == api &&
			      (range->context ? (*at)->h.context == range->context
					      : (*at)->primary && (*at)->device == range->device)))
		at = &(*at)->next;
	return at;
}

/* With the lock held: lanes of contexts that are gone are only their regions' any more. */
static void lose(struct gpu_lane **at)
{
	struct gpu_lane *lane = *at;

	*at = lane->next;
	lane->lost = true;
	if (!lane->refs)
		free(lane);
}

int gpu_lane_get(const struct gpu_api *api, const struct gpu_range *range, struct gpu_lane **out)
{
	struct gpu_lane **at;
	int rc = 0;

	lock_take(&lanes.lock);
	at = place_of(api, range);
	if (*at && !gpu_lane_is_alive(*at))
		lose(at);
	at = place_of(api, range);
	if (!*at)
		rc = make(api, range, at);
	if (!rc && !(*at)->whole)
		rc = fill(*at);
	if (!rc) {
		*out = *at;
		(*out)->refs++;
	}
	lock_drop(&lanes.lock);
	return rc;
}

void gpu_lane_put(struct gpu_lane *lane)
{
	lock_take(&lanes.lock);
	if (--lane->refs == 0 && lane->lost)
		free(lane);
	lock_drop(&lanes.lock);
}

void gpu_lane_forked_child(void)
{
	const struct lock open = {.word = 0};

	lanes.lock = open;
	lanes.list = NULL;
}

/* ---- using one ---- */

int gpu_lane_enter(struct gpu_lane *lane, struct gpu_inside *was)
{
	return lane->api->enter(lane->h.context, was);
}

void gpu_lane_leave(struct gpu_lane *lane, const struct gpu_inside *was)
{
	lane->api->leave(was);
}

static struct buffer *take_buffer(struct gpu_lane *lane)
{
	unsigned turn = atomic_fetch_add_explicit(&lane->turn, 1, memory_order_relaxed);
	struct buffer *b;

	for (unsigned i = 0; i < BUFFERS; i++) {
		b = &lane->buffer[(turn + i) % BUFFERS];
		if (lock_try(&b->lock))
			return b;
	}
	b = &lane->buffer[turn % BUFFERS];
	lock_take(&b->lock);
	return b;
}

/* What flew in the slot has arrived: its bytes may be used. */
static int land(struct gpu_lane *lane, struct slot *s)
{
	int rc = s->flies ? lane->api->wait(s->event) : 0;

	s->flies = false;
	return rc;
}

/* Marks of one lane are made in the order of its stream, so the latest stands for all. */
static int fly(struct gpu_lane *lane, struct slot *s, uint64_t device, uint8_t *pinned, size_t n,
	bool writes)
{
	int rc;

	lock_take(&lane->order);
	rc = writes ? lane->api->to_device(&lane->h, device, pinned, n)
		    : lane->api->from_device(&lane->h, pinned, device, n);
	if (!rc)
		rc = lane->api->mark(&lane->h, s->event);
	if (!rc && writes)
		lane->last = s->event;
	lock_drop(&lane->order);
	s->flies = !rc;
	return rc;
}

static size_t piece(size_t left)
{
	return left < SLOT_BYTES ? left : SLOT_BYTES;
}

int gpu_lane_write(struct gpu_lane *lane, uint64_t to, const void *from, size_t n)
{
	struct buffer *b = take_buffer(lane);
	int rc = 0;

	for (size_t done = 0, i = 0; done < n && !rc; i = (i + 1) % SLOTS) {
		uint8_t *at = b->pinned + i * SLOT_BYTES;
		size_t step = piece(n - done);

		rc = land(lane, &b->slot[i]);
		if (rc)
			break;
		memcpy(at, (const uint8_t *)from + done, step);
		rc = fly(lane, &b->slot[i], to + done, at, step, true);
		done += step;
	}
	lock_drop(&b->lock);
	return rc;
}

/* What came back into the slots from the first that is still out, up to till. */
static int read_loop(struct gpu_lane *lane, struct buffer *b, uint8_t *to, uint64_t from, size_t n)
{
	size_t asked = 0, done = 0;
	int rc = 0;

	while (done < n && !rc) {
		struct slot *s;

		while (asked < n && asked < done + BUFFER_BYTES && !rc) {
			size_t i = asked / SLOT_BYTES % SLOTS;

			rc = land(lane, &b->slot[i]);
			if (!rc)
				rc = fly(lane, &b->slot[i], from + asked,
					b->pinned + i * SLOT_BYTES, piece(n - asked), false);
			asked += piece(n - asked);
		}
		s = &b->slot[done / SLOT_BYTES % SLOTS];
		if (!rc)
			rc = land(lane, s);
		if (!rc)
			memcpy(to + done, b->pinned + (s - b->slot) * SLOT_BYTES, piece(n - done));
		done += piece(n - done);
	}
	return rc;
}

int gpu_lane_read(struct gpu_lane *lane, void *to, uint64_t from, size_t n)
{
	struct buffer *b = take_buffer(lane);
	int rc = read_loop(lane, b, to, from, n);

	lock_drop(&b->lock);
	return rc;
}

int gpu_lane_flush(struct gpu_lane *lane)
{
	void *last;

	lock_take(&lane->order);
	last = lane->last;
	lock_drop(&lane->order);
	return last ? lane->api->wait(last) : 0;
}
