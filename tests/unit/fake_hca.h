/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for hca/ that lets a test of the ABI layer say what the HCA answers and see what it
 * was asked.  Objects are bare allocations; nothing is checked or moved.
 */
#pragma once

#include "hca/api/hca.h"

struct fake_mr_call {
	void *addr;
	uint64_t length, iova;
	unsigned access;
};

extern struct fabric_page fake_page;
extern int fake_error;              /* if not 0: what the next call that may fail returns */
extern struct fake_mr_call fake_mr; /* the last hca_mr_reg */
extern void *fake_last_cookie;      /* of the last CQ or QP that was created */
extern int fake_live_objects;

/* Queue an event, as a peer would. */
void fake_raise_async(enum ibv_event_type type, void *cookie);
void fake_raise_comp(void *cookie);
