// SPDX-License-Identifier: BSD-3-Clause
/* The rooms that proc/ tells what happens, and the functions that the executor calls. */
#include <stddef.h>

#include "hca/mem/mem_part.h"
#include "hca/proc/parts.h"
#include "hca/run/datagram.h"
#include "hca/run/own_bytes.h"
#include "hca/run/route.h"
#include "hca/run/run_part.h"

const struct proc_part *const proc_parts[] = {&run_part, &mem_part, NULL};

const struct proc_calls proc_calls = {
	.datagram = datagram_send, .find_srq = route_srq, .owned = &own_bytes};
