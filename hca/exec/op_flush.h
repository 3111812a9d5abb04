/* SPDX-License-Identifier: BSD-3-Clause */
/* FLUSH. */
#pragma once

#include "hca/exec/work.h"

/*
 * Executes w; the responder is ready.  Whatever this QP wrote before is in place already, visible
 * to all: the copies were made by a CPU, in the order of the queue.  What is left for the global
 * type are the checks, and a fence for copies within the process.
 */
enum step op_flush(struct work *w);
