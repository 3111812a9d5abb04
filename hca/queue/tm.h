/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner's side of the list of tags of a shared receive queue (hca/seg/tm_list.h). */
#pragma once

#include "hca/obj/srq.h"

struct hca_tm;

/*
 * Makes the list of an SRQ of CQ cq; its entry is in the table as one of srq's.  cap: room for so
 * many tags and operations.  -ENOMEM.
 */
int tm_create(struct hca_srq *srq, const struct ibv_tm_cap *cap, struct hca_tm **tm);

/* Makes its entry void, so that no new executor finds it. */
void tm_close(struct hca_tm *tm);

/* Frees it; nobody uses it any more. */
void tm_free(struct hca_tm *tm, struct hca_cq *cq);

uint32_t tm_index(const struct hca_tm *tm);

/* Its receives. */
struct hca_rxq *tm_rxq(struct hca_tm *tm);

/* Takes the completion of the oldest operation; false: there is none. */
bool tm_take_op(struct hca_tm *tm, struct ibv_wc *wc);

/* A message that matched nothing is given to the program: *wc_flags may ask it to synchronise. */
void tm_note_unexpected(struct hca_tm *tm, unsigned *wc_flags);
