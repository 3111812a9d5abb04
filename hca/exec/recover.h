/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What weftd does to segments when a timer expires or a process dies.  Runs in weftd, as a peer
 * with an attach id and exec slots of its own; never touches user memory, never waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hca/seg/seg.h"

struct recover_env {
	struct seg *hub; /* weftd's own segment; slot 0 is used */
	uint32_t hub_id; /* its attach id */
	/* Writes the eventfd of a channel (id 0: the async eventfd) of a process; must not block.
	 */
	void (*fire)(uint32_t attach_id, uint32_t channel, void *arg);
	/* Is it readable? */
	bool (*unread)(uint32_t attach_id, uint32_t channel, void *arg);
	/*
	 * Asks for recover_timer() of that QP, or SEG_TIMER_CQ | CQ, or SEG_TIMER_CHANNEL |
	 * channel, at CLOCK_MONOTONIC ns when.
	 */
	void (*timer)(uint32_t attach_id, uint32_t qp_index, uint64_t when, void *arg);
	void *arg;
};

/*
 * The timer of QP qp_index in seg (of process attach_id, alive) fired, or was asked for: fails
 * the head of its send queue if its deadline passed, else asks for the timer again.  The same
 * for SEG_TIMER_CQ | the index of a CQ, whose event has waited long enough, and for
 * SEG_TIMER_CHANNEL | a channel, which may lack a count (hca/seg/fired.h).
 */
void recover_timer(
	const struct recover_env *env, struct seg *seg, uint32_t attach_id, uint32_t qp_index);

/*
 * Process dead_id is gone (its seg_header.dead is set already): frees what it held in the
 * segment seg of live process attach_id, wakes that process where a wake-up may be lost, and
 * starts the retry timers of QPs whose peer is no more.  Call once per live process.
 */
void recover_death(
	const struct recover_env *env, struct seg *seg, uint32_t attach_id, uint32_t dead_id);

/* An async event of the port, enum ibv_event_type, for process attach_id. */
void recover_port_event(
	const struct recover_env *env, struct seg *seg, uint32_t attach_id, unsigned type);

/*
 * A process re-published its segment to a weftd that started anew: takes over the timers of its
 * parked QPs and moderated CQs.  What the old weftd held must have been freed by recover_death()
 * with its id.
 */
void recover_adopt(const struct recover_env *env, struct seg *seg, uint32_t attach_id);
