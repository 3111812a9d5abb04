/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the atomic operations of a modelled thread become.  Each is a scheduling point: the
 * explorer may run any other thread, write out part of a store buffer, stop or kill a process
 * before it carries the operation out.  what: the name of the calling function, for traces.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mc_op_kind {
	MC_OP_NONE,
	MC_OP_LOAD,
	MC_OP_STORE,    /* straight to memory: sequentially consistent mode, or no buffer */
	MC_OP_STORE_SC, /* seq_cst: drains the store buffer first */
	MC_OP_XCHG,
	MC_OP_ADD,
	MC_OP_OR,
	MC_OP_AND,
	MC_OP_CAS,
	MC_OP_FENCE,
	MC_OP_WAIT,   /* enabled once the word differs */
	MC_OP_CHOOSE, /* a free choice of the model */
	MC_OP_STEP,   /* nothing, but a place to be preempted, stopped or killed */
	MC_OP_START,  /* a recovery thread that waits for a death */
};

uint64_t mc_load(void *p, size_t size, int order, const char *what);
void mc_store(void *p, size_t size, uint64_t v, int order, const char *what);
uint64_t mc_rmw(enum mc_op_kind op, void *p, size_t size, uint64_t v, const char *what);
bool mc_cas(void *p, size_t size, uint64_t *expected, uint64_t desired, const char *what);
void mc_fence(int order, const char *what);
