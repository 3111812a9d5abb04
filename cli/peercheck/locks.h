/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which locks of a client are held while it invalidates, and which its functions take.  Locks are
 * of one kind if they are taken under one name, as those of regions are.
 */
#pragma once

#include <stdbool.h>

#include "kshim/kshim.h"

/* What this thread does with a lock. */
void locks_use(const void *lock, const char *name, enum kshim_lock_use use);

/* This thread is, or is no longer, inside one of the functions that the core calls. */
void locks_in_function(bool in);

/* This thread calls the callback. */
void locks_over_callback(void);

/* The name of a kind that was seen in both; NULL: there is none. */
const char *locks_both(void);
