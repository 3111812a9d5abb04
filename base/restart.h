/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>

/*
 * poll(2) always fails with EINTR where read(2) goes on after a handler with SA_RESTART.  For who
 * waits in poll() in place of a read(): true if every handler of the program has SA_RESTART, so
 * that the wait is to go on; false if some has not, and EINTR is the answer.  Does not block.
 */
bool restart_after_signal(void);
