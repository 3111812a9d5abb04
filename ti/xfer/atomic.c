// SPDX-License-Identifier: BSD-3-Clause
#include "ti/xfer/atomic.h"

#include <stdlib.h>
#include <string.h>

#include "ti/xfer/post.h"
#include "ti/xfer/rdma.h"

struct atomic32 {
	struct atomic32 *next; /* of those to spare */
	struct ibv_mr *mr;     /* of old */
	uint64_t old;          /* where the adapter leaves what it found */
	uint64_t guess, wanted;
	uint32_t operand[2]; /* compare or add; swap */
	bool swaps;
};

/* ---- the 4 bytes within 8 ---- */

static unsigned half_of(const struct element *el)
{
	return rdma_remote(el).vaddr & 4;
}

static uint32_t get_half(uint64_t word, unsigned at)
{
	uint32_t half;

	memcpy(&half, (char *)&word + at, sizeof half);
	return half;
}

static uint64_t with_half(uint64_t word, unsigned at, uint32_t half)
{
	memcpy((char *)&word + at, &half, sizeof half);
	return word;
}

/* ---- the requests ---- */

static void fill32(const struct element *el, struct ibv_send_wr *wr)
{
	struct atomic32 *a = el->atomic32;

	wr->wr.atomic.remote_addr &= ~(uint64_t)7;
	wr->wr.atomic.compare_add = a->guess;
	wr->wr.atomic.swap = a->wanted;
	wr->sg_list[0] = (struct ibv_sge){(uintptr_t)&a->old, sizeof a->old, a->mr->lkey};
}

void atomic_fill(struct conn *c, struct element *el, struct ibv_send_wr *wr)
{
	const ti_local_data_desc_t *d = el->e.local_data_desc;
	ti_rdma_desc_t remote = rdma_remote(el);
	uint64_t operand[2] = {0};

	wr->num_sge = 1;
	wr->wr.atomic.remote_addr = remote.vaddr;
	wr->wr.atomic.rkey = remote.rkey;
	if (el->atomic32) {
		fill32(el, wr);
		return;
	}
	memcpy(operand, d->vaddr,
		el->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? sizeof operand : sizeof operand[0]);
	wr->wr.atomic.compare_add = operand[0];
	wr->wr.atomic.swap = operand[1];
	wr->sg_list[0] =
		(struct ibv_sge){(uintptr_t)d->vaddr, sizeof operand[0], post_key(c, el, d)};
}

/* ---- 4 bytes ---- */

static struct atomic32 *get_atomic(struct conn *c)
{
	struct atomic32 *a = c->spare_atomics;

	if (a) {
		c->spare_atomics = a->next;
		return a;
	}
	a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	a->mr = ibv_reg_mr(c->pd->ibpd, &a->old, sizeof a->old, IBV_ACCESS_LOCAL_WRITE);
	if (a->mr)
		return a;
	free(a);
	return NULL;
}

void atomic32_end(struct conn *c, struct element *el)
{
	lock_take(&c->sq_lock);
	el->atomic32->next = c->spare_atomics;
	c->spare_atomics = el->atomic32;
	lock_drop(&c->sq_lock);
	el->atomic32 = NULL;
}

void atomics_free(struct conn *c)
{
	struct atomic32 *a;

	while ((a = c->spare_atomics) != NULL) {
		c->spare_atomics = a->next;
		(void)ibv_dereg_mr(a->mr);
		free(a);
	}
}

/* The 8 bytes to write if these are there; false: none, the comparison fails. */
static bool next_word(const struct element *el, uint64_t word)
{
	struct atomic32 *a = el->atomic32;
	unsigned at = half_of(el);
	uint32_t half = get_half(word, at);

	if (a->swaps && half != a->operand[0])
		return false;
	a->guess = word;
	a->wanted = with_half(word, at, a->swaps ? a->operand[1] : half + a->operand[0]);
	return true;
}

bool atomic32_step(struct conn *c, struct element *el)
{
	struct atomic32 *a = el->atomic32;
	uint32_t half = get_half(a->old, half_of(el));

	if (!el->result && a->old != a->guess && next_word(el, a->old)) {
		post_again(c, el);
		return true;
	}
	if (!el->result)
		memcpy(el->e.local_data_desc->vaddr, &half, sizeof half);
	atomic32_end(c, el);
	return false;
}

/* The first guess is that the other 4 bytes are 0, and these as compared. */
static ti_status_t prepare32(struct conn *c, struct element *el, bool swaps)
{
	struct atomic32 *a = get_atomic(c);

	if (!a)
		return TI_INSUFFICIENT_RESOURCES;
	el->atomic32 = a;
	a->swaps = swaps;
	memcpy(a->operand, el->e.local_data_desc->vaddr, swaps ? 8 : 4);
	(void)next_word(el, with_half(0, half_of(el), swaps ? a->operand[0] : 0));
	el->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	return TI_SUCCESS;
}

/* ---- the operation ---- */

/* The local buffer has all operands, and nothing else; *len: what each of them has. */
static ti_status_t check(const struct element *el, bool swaps, uint32_t *len)
{
	uint32_t operands = swaps ? 2 : 1;

	*len = el->bytes / operands;
	if (el->e.num_io_bufs != 1 || el->bytes % operands || (*len != 4 && *len != 8))
		return TI_INVALID_PARAMETER;
	return rdma_remote(el).vaddr % *len ? TI_INVALID_ADDRESS : TI_SUCCESS;
}

/* Under sq_lock, with el claimed. */
static ti_status_t post(struct conn *c, struct element *el, ti_atomic_op_t operation)
{
	bool swaps = operation == TI_ATOMIC_COMPARE_SWAP;
	uint32_t len;
	ti_status_t st = check(el, swaps, &len);

	el->bytes = len; /* those that are transferred */
	el->opcode = swaps ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
	if (!st && !post_has_room(c, 1))
		st = TI_INSUFFICIENT_RESOURCES;
	if (!st && len == 4)
		st = prepare32(c, el, swaps);
	if (!st)
		(void)post_send(c, el);
	return st;
}

ti_status_t op_atomic_op(
	ti_conn_handle_t h_conn, ti_atomic_op_t operation, ti_data_element_t *p_data)
{
	struct conn *c = conn_get(h_conn);
	struct element *el;
	ti_status_t st;

	if (!c)
		return TI_INVALID_HANDLE;
	lock_take(&c->sq_lock);
	if (conn_state(c) != CONN_LIVE || !c->attr.reliable)
		st = TI_INVALID_OPERATION;
	else if ((unsigned)operation > TI_ATOMIC_FETCH_ADD)
		st = TI_INVALID_PARAMETER;
	else
		st = rdma_claim(c, &p_data, IBV_WR_ATOMIC_FETCH_AND_ADD, &el);
	if (!st) {
		struct element *lead = el->lead;

		if (p_data)
			st = TI_INVALID_PARAMETER;
		else
			st = post(c, el, operation);
		if (st) {
			element_unclaim(el);
			if (lead)
				element_unclaim(lead);
		}
	}
	lock_drop(&c->sq_lock);
	conn_put(c);
	return st;
}
