/* SPDX-License-Identifier: BSD-3-Clause */
/* What every part of the shim does around a call of a client. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kshim/kshim.h"

/* Of libweftkshim.so.0. */
#define KSHIM_EXPORT __attribute__((visibility("default")))

/* A call that can fail begins: true, it is to fail.  Every call ends with hook_after(). */
bool hook_before(const char *call);

/* A call that cannot fail begins. */
void hook_enter(const char *call);

/* The call ends; returns rc. */
int hook_after(const char *call, int rc);

/* The next call that is to fail, counted from now on; 0: none. */
void hook_fail_nth(unsigned long n);

/* That call has been made. */
bool hook_failed(void);

/* Tells w from now on, which stays the caller's. */
void hook_watch(const struct kshim_watch *w);

/* Somebody is told. */
bool hook_is_watched(void);

/* Tell about a lock, about memory freed, and about what no client may do, which is logged too. */
void hook_lock(const void *lock, const char *name, enum kshim_lock_use use);
void hook_freed(const void *at, size_t n);
void hook_wrong(enum kshim_wrong which, const char *text);
