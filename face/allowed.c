// SPDX-License-Identifier: BSD-3-Clause
#include "face/allowed.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "include/weft/breach.h"

const char *allowed_not(const struct allowed *kinds, int n, const struct ibv_wc *wc)
{
	bool opcode = false, imm = false;

	for (int i = 0; i < n; i++) {
		if (wc->opcode != kinds[i].opcode)
			continue;
		opcode = true;
		imm |= allowed_imm_fits(&kinds[i], wc);
	}
	if (!opcode)
		return "it sent by an operation that its protocol has not";
	if (wc->wc_flags & IBV_WC_WITH_INV)
		return "its message invalidates a key";
	return imm ? "its message has a length that there is not"
		   : "its message has an immediate that there is not";
}

static weft_count_breach_fn find_count(void)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *found = lib ? dlsym(lib, "weft_count_breach") : NULL;
	weft_count_breach_fn fn = NULL;

	memcpy(&fn, &found, sizeof found);
	if (lib)
		dlclose(lib); /* we are linked with it: it stays */
	return fn;
}

void allowed_breach(struct ibv_context *verbs)
{
	static _Atomic(weft_count_breach_fn) known;
	weft_count_breach_fn fn = atomic_load_explicit(&known, memory_order_relaxed);
	int err = errno;

	if (!fn)
		fn = find_count();
	atomic_store_explicit(&known, fn, memory_order_relaxed);
	if (fn)
		fn(verbs);
	errno = err;
}
