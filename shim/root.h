/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <limits.h>

/*
 * Writes the root of the tree that weftd keeps for this process's fabric (WEFT_FABRIC,
 * WEFT_RUNTIME_DIR as they are at the first call), and sees to it that weftd runs: starts it
 * unless WEFT_AUTOSTART=0, looking again at most once a second.  May block up to 5 s for that.
 * If weftd cannot be had, the path is that of the tree it left, or of nothing; if there is no
 * runtime directory, "/proc/self/no-weft-tree", which does not exist.
 */
void tree_root(char root[PATH_MAX]);

/*
 * Has weftd write the files that have counters, which change without its doing, anew.  May block up
 * to 5 s; does nothing if there is no weftd.
 */
void tree_refresh(void);
