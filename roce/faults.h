/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults that are injected into this process's packets (weft-fault(1)): whoever sends or reads one
 * asks first whether there are rules, which is one load.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "hca/exec/exec.h"
#include "roce/fault/fault.h"
#include "roce/port/socket.h"
#include "roce/tx.h"

/* Of our segment: not 0 while there are rules.  Not NULL. */
extern const _Atomic uint32_t *_Atomic faults_word;

static inline bool faults_set(void)
{
	return atomic_load_explicit(
		atomic_load_explicit(&faults_word, memory_order_relaxed), memory_order_relaxed);
}

/*
 * This process is attached: its rules are found, and if WEFT_FAULT has some, they are these.  May
 * wait for weftd.
 */
void faults_start(void);

/*
 * Sends a packet of n bytes, or does to it what the rules say.  Any thread; bytes may be changed.
 */
void faults_out(struct exec *x, const struct tx_path *path, uint8_t *bytes, size_t n);

/*
 * The same in two steps, the first of which sees no more of the packet than its headers, and how
 * long it will be: what is to be done with it, once for each packet.  Not FAULT_PASS, nor
 * FAULT_LOSE: faults_out_as() carries it out.
 */
enum fault_act faults_ask(const uint8_t *head, size_t n, struct fault_how *how);
void faults_out_as(struct exec *x, const struct tx_path *path, uint8_t *bytes, size_t n,
	enum fault_act act, const struct fault_how *how);

/* A packet has come, the index-th of its message.  False: it is to be taken as it is. */
bool faults_in(struct exec *x, const struct roce_from *from, const uint8_t *bytes, size_t n,
	unsigned index, uint64_t now);

/* When packets that are held back go on; 0: there are none. */
uint64_t faults_next(void);

/* Lets those go on whose time has come.  Under the engine's lock. */
void faults_release(struct exec *x, uint64_t now);

/* In a forked child: rules and packets are the parent's. */
void faults_forked_child(void);
