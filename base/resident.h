/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a process which sleeps need not have. */
#pragma once

/*
 * Gives back what of the program's and its libraries' read-only pages is mapped, and what malloc()
 * keeps free.  Whatever is used again is mapped again, by a page fault each 64 KiB.  Does nothing
 * while somebody traces the process: his breakpoints are in these pages.
 */
void resident_give_back(void);
