/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A datagram at its receiver, wherever it came from: whoever carries it there puts it into a buffer
 * of the receiver's queue, from which its owner lands it.
 */
#pragma once

#include "hca/exec/work.h"

struct arrival {
	uint32_t from_qpn, qkey;
	uint32_t imm; /* big endian */
	bool has_imm, solicited;
	bool ipv4;          /* which header lies in the GRH */
	uint32_t length;    /* of the payload, at most SEG_RING_MSG_MAX */
	const uint8_t *grh; /* SEG_GRH_BYTES */
	const void *bytes;  /* the payload if it is one piece; NULL: */
	struct sgl *list;
};

/*
 * Gives it to QP `to`, which was found to be of type UD; drops it, by name, where that is not to
 * be. The caller is in an exec slot of w->x that names to's process; of w its x and mem_now count.
 * STEP_DONE; STEP_BUSY: nothing was done, the receives are moving to a larger ring.
 */
enum step arrive(struct work *w, const struct arrival *a, const struct end *to);

enum arrived {
	ARRIVED,        /* it was taken, or dropped and counted */
	ARRIVED_NO_QP,  /* there is no such QP in this process */
	ARRIVED_TYPE,   /* it is not of type UD, */
	ARRIVED_STATE,  /* ... or takes nothing now, */
	ARRIVED_LENGTH, /* ... or its MTU is less */
};

/*
 * Gives it to QP number qpn of this process.  Any thread whose exec slot is free; x is that
 * thread's.  Does not block.
 */
enum arrived arrive_here(struct exec *x, uint32_t qpn, const struct arrival *a);

/* The same to all members of that multicast group that this process has. */
void arrive_at_group(struct exec *x, const uint8_t mgid[16], const struct arrival *a);
