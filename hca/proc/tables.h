/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private tables of this process: from the index of an object in the segment to our own struct
 * for it, and the allocation of indices.  Freed indices are reused as late as possible, so that
 * stale keys and numbers stay invalid for long.
 */
#pragma once

#include "hca/seg/seg.h"

struct exec;
struct hca_qp;
struct hca_srq;
struct hca_cq;
struct hca_mr;

/* Starts over (a new attach). */
void tables_reset(void);
void tables_forked_child(void);

/* QPs and SRQs have their numbers in common; NULL if it is the other. */
struct hca_qp *table_qp(uint32_t index);
struct hca_srq *table_srq(uint32_t index);
struct hca_cq *table_cq(uint32_t index);
struct hca_mr *table_mr(uint32_t index);

/* Put an object at a free index: returns the index, or -ENOMEM when the table is full. */
int table_add_cq(struct hca_cq *cq);
int table_add_mr(struct hca_mr *mr);
/* The same for a QP, leasing QP numbers when needed; *qpn is its number.  May block (rdv). */
int table_add_qp(struct hca_qp *qp, uint32_t *qpn);
int table_add_srq(struct hca_srq *srq, uint32_t *srqn);

/* A number by which weftd knows us, whether a QP has it or not; 0: it has leased us none yet. */
uint32_t table_some_qpn(void);

void table_del_cq(uint32_t index);
void table_del_mr(uint32_t index);
/* Its entry, if that is its own still, stays taken, with nothing in it, until table_del_mr(). */
void table_hold_mr(struct hca_mr *mr);
/* ... or until it is put back. */
void table_return_mr(struct hca_mr *mr);
void table_del_qp(uint32_t index);

/*
 * Our QP of that index, NULL if there is none, or it is going.  It stays until the thread leaves
 * x->slot, which it has entered either way.  One in the making has its entry alone.
 */
struct hca_qp *table_enter_qp(struct exec *x, uint32_t index);
