/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* From now on a child of fork() begins anew: the parent's handles are stale there.  0 or -ENOMEM.
 */
int fork_watch(void);
