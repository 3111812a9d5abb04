/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This process as part of the fabric: its attach, and the execution identity of its threads.
 * Objects remember the epoch in which they were made: in a forked child, and after the process
 * attached anew, older ones are stale and only their private memory may be freed.
 */
#pragma once

#include "hca/exec/complete.h"
#include "rdv/rdv.h"

/*
 * Attaches if need be (control path; errors as rdv_attach()).  *out may be NULL.
 */
int proc_attach(const struct rdv_attach **out);

/* The attach of the last proc_attach(); only after one succeeded. */
const struct rdv_attach *proc_at(void);

/* Our own segment. */
struct seg *proc_seg(void);

/* Epoch of the present attach; 0 before the first. */
uint32_t proc_epoch(void);

/*
 * The calling thread's execution identity; NULL if all exec slots of the process are taken.
 * Cheap after the first call of a thread.
 */
struct exec *exec_self(void);

/*
 * The same for what must not be left undone: if all slots are taken, one that is kept for this, one
 * thread at a time; waits for the thread that has it, which may serve a queue meanwhile, but waits
 * for nobody itself.  NULL: not attached.  In between the thread may get it again.
 */
struct exec *exec_get(void);

/* Gives back what exec_get() gave, NULL too. */
void exec_put(struct exec *x);

/* The view of our own process. */
struct view proc_view(void);
