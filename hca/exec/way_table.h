/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way leads to memory: the rows, and the one place that chooses among them.  A kind of memory
 * that is reached otherwise is one row more, and a line that chooses it.
 */
#pragma once

#include "hca/exec/way.h"

/*
 * Chooses how p is reached, memory of e, the requester.  If it is mapped here, p is a list of our
 * own addresses from now on.
 */
void way_of_requester(const struct end *e, struct payload *p, const struct held *held);

/* The same of w->mem, the responder's side. */
void way_of_responder(const struct work *w, struct payload *p, const struct held *held);

/*
 * Must bytes for p, a receive of the responder, go straight there, and not where its owner copies
 * them out?
 */
bool way_is_direct(const struct work *w, const struct payload *p, const struct held *held);
