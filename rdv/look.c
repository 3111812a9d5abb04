// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/look.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rdv/admin.h"

static _Atomic uint64_t looked_ns; /* when weftd was last looked for */

void rdv_look(void)
{
	uint64_t now = clock_coarse_ns(), before;
	const char *autostart = secure_getenv("WEFT_AUTOSTART");

	before = atomic_load_explicit(&looked_ns, memory_order_relaxed);
	if (before && now - before < NSEC_PER_SEC)
		return;
	if (!autostart || strcmp(autostart, "0"))
		rdv_start(NULL, false, NULL);
	atomic_store_explicit(&looked_ns, clock_coarse_ns(), memory_order_relaxed);
}
