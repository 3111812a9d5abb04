/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>

#include "crash/journal.h"

/*
 * Opens a journal, or prints why not and returns EXIT_FAILED; to read it, only if it is all as it
 * was written.
 */
int crash_open(struct journal *j, const char *path, bool writable);
