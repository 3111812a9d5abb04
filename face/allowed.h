/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a face's protocol lets a peer send.  A peer may speak raw verbs, so each completion of a
 * receive is held against this before anybody looks at a byte: what an RDMA WRITE WITH IMMEDIATE
 * has of length and immediate is no message, as its bytes are in no receive.
 */
#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum allowed_imm {
	ALLOWED_NO_IMM,
	ALLOWED_ANY_IMM,    /* or none */
	ALLOWED_THIS_IMM,   /* the value below */
	ALLOWED_LENGTH_IMM, /* as many as there are bytes */
};

/* One kind of message.  Bytes: both may be had. */
struct allowed {
	enum ibv_wc_opcode opcode;
	enum allowed_imm imm;
	uint32_t value; /* host order */
	uint32_t min_bytes, max_bytes;
};

static inline bool allowed_imm_fits(const struct allowed *a, const struct ibv_wc *wc)
{
	bool has_imm = wc->wc_flags & IBV_WC_WITH_IMM;

	switch (a->imm) {
	case ALLOWED_NO_IMM:
		return !has_imm;
	case ALLOWED_ANY_IMM:
		return true;
	case ALLOWED_THIS_IMM:
		return has_imm && ntohl(wc->imm_data) == a->value;
	case ALLOWED_LENGTH_IMM:
		return has_imm && ntohl(wc->imm_data) == wc->byte_len;
	}
	return false;
}

/* Is wc, the success of a receive, of that kind?  No face has a message that invalidates a key. */
static inline bool allowed_fits(const struct allowed *a, const struct ibv_wc *wc)
{
	return wc->opcode == a->opcode && !(wc->wc_flags & IBV_WC_WITH_INV) &&
	       wc->byte_len >= a->min_bytes && wc->byte_len <= a->max_bytes &&
	       allowed_imm_fits(a, wc);
}

/* Of which of n kinds it is; -1: of none, and allowed_not() says why. */
static inline int allowed_kind(const struct allowed *kinds, int n, const struct ibv_wc *wc)
{
	for (int i = 0; i < n; i++)
		if (allowed_fits(&kinds[i], wc))
			return i;
	return -1;
}

/* Words for the log: what of wc, which is of none of n kinds, no kind has. */
const char *allowed_not(const struct allowed *kinds, int n, const struct ibv_wc *wc);

/*
 * Counts a peer that broke a face's protocol, for `weft status`; where libibverbs is not Weft's
 * nobody counts.  Never blocks.
 */
void allowed_breach(struct ibv_context *verbs);
