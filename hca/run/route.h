/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where requests of a QP go that name their responder each by itself: datagrams, and the shared
 * receive queues of XRC.  A small cache per QP, touched only by the holder of the QP's token.
 */
#pragma once

#include "hca/exec/work.h"
#include "hca/obj/srq.h"

struct routes;

/* NULL if there is no memory. */
struct routes *routes_new(void);

/* live false: a forked child's copy, whose processes the parent alone knows. */
void routes_free(struct routes *r, bool live);

/*
 * The QP or SRQ with that number, as it is now.  Valid until the next call for the same QP.  May
 * ask weftd.  The caller holds qp's token and is in one of its exec slots.  -ENOENT: there is none;
 * -EADDRNOTAVAIL: the number is not of this fabric; -EAGAIN: weftd, new itself, may not know it
 * yet; others: it could not be reached now.
 */
int route_to(struct work *w, struct hca_qp *qp, uint32_t qpn, const struct end **out);

/* Is the number of another fabric on this host?  As route_to() where that has to ask weftd. */
bool route_elsewhere(struct work *w, uint32_t qpn);

/*
 * Where datagrams to that number last went, which may have gone since: only to fetch lines of it.
 * NULL if nowhere.  The caller holds the token of the routes' QP.
 */
const struct end *route_guess(struct routes *r, uint32_t qpn);

/* exec.find_srq */
int route_srq(struct work *w, uint32_t srqn, const struct end **out);

/* Makes our exec slot name e's process before anything of it is read. */
void route_enter(struct work *w, const struct end *e);
