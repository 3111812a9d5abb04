/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of CQs: what is due, and what nobody told. */
#pragma once

#include "hca/obj/srq.h"

/*
 * Fires the event of a moderated CQ that is due, or always; for our own waits, in which nobody
 * depends on weftd.  True if the CQ is moderated.
 */
bool cq_moderated(struct hca_cq *cq, bool always);

/* The program takes an event of the CQ. */
void cq_event_taken(struct hca_cq *cq);

/*
 * For a CQ whose channel has nothing to read, with the channel's lock: fires it if it was fired, or
 * is armed and has completions.  Who had to fire it, or weftd, over whom it went, may have died.
 */
void cq_fire_untold(struct hca_cq *cq);
