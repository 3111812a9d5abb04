/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing what came in slots and payload rings to the buffers of receives. */
#pragma once

#include "hca/obj/cq.h"
#include "hca/obj/srq.h"

/* Copies out what has arrived in qp's slots and payload ring; the receive CQ's lock is held. */
void qp_land(struct hca_qp *qp, uint32_t upto);

/* Copies out everything that has arrived for QPs of this PD (before memory of it goes). */
void pd_land_all(struct hca_pd *pd);

/*
 * After a region of this PD left its table: returns when nobody who found it there, to bring what
 * came to its place, is still at it.
 */
void pd_pass_landers(struct hca_pd *pd);

/*
 * Copies len bytes into a receive's buffers.  The keys were checked when the message came;
 * by now the program may be deregistering them, so our own table is asked, not the published one.
 * False: a region has gone, and what belonged there with it.
 */
bool recv_scatter(const struct seg_rqe *r, unsigned sge_max, const uint8_t *from, uint32_t len);
