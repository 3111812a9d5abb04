// SPDX-License-Identifier: BSD-3-Clause
#include "roce/proto/window.h"

static const uint64_t PATIENCE_MIN = 1000000, PATIENCE_FIRST = 20000000;

/* Above the threshold the window grows by this part of it with each round trip. */
enum { GROWTH = 16 };

/* A loss takes this part of it. */
enum { LOST = 4, MISSED = 16 };

static uint32_t at_most(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void window_start(struct rc_window *w, uint32_t mtu)
{
	uint32_t limit = at_most(WINDOW_BYTES / mtu, WINDOW_MAX);

	*w = (struct rc_window){
		.psns = at_most(WINDOW_START, limit), .limit = limit, .threshold = limit};
}

void window_acked(struct rc_window *w, uint32_t psns)
{
	if (w->psns < w->threshold) {
		w->psns = at_most(w->psns + psns, w->limit);
		return;
	}
	w->counted += psns;
	if (w->counted >= w->psns) {
		w->counted -= w->psns;
		w->psns = at_most(w->psns + 1 + w->psns / GROWTH, w->limit);
	}
}

static void shrink(struct rc_window *w, uint32_t part)
{
	uint32_t less = w->psns - w->psns / part;

	w->threshold = less > WINDOW_MIN ? less : WINDOW_MIN;
	w->psns = at_most(w->threshold, w->limit);
	w->counted = 0;
}

void window_lost(struct rc_window *w)
{
	shrink(w, LOST);
}

void window_missed(struct rc_window *w)
{
	shrink(w, MISSED);
}

void window_measured(struct rc_window *w, uint64_t rtt)
{
	uint64_t apart = rtt > w->rtt ? rtt - w->rtt : w->rtt - rtt;

	if (!w->rtt) {
		w->rtt = rtt;
		w->variance = rtt / 2;
		return;
	}
	w->variance += apart / 4 - w->variance / 4;
	w->rtt += rtt / 8 - w->rtt / 8;
}

uint64_t window_patience(const struct rc_window *w)
{
	uint64_t wait = w->rtt + 4 * w->variance;

	if (!w->rtt)
		return PATIENCE_FIRST;
	return wait > PATIENCE_MIN ? wait : PATIENCE_MIN;
}
