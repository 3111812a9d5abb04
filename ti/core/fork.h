/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* From now on a child of fork() begins anew: the parent's handles are stale there.  0 or -ENOMEM.
 */
int fork_watch(void);

/* How many forks lie between the first process and this one: another number is another process. */
unsigned fork_count(void);

/*
 * Callbacks that fork: in the child, which has their thread alone, nothing of the parent's may be
 * waited for or changed.  A thread of the library's says so at its beginning, and calls
 * fork_called_back() behind each callback with what fork_count() was before; it does not return in
 * a child, where the thread ends.
 */
void fork_thread_is_ours(void);
void fork_called_back(unsigned before);
