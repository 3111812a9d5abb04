// SPDX-License-Identifier: BSD-3-Clause
/* <weft/share.h>: memory of one process in the address space of another. */
#include "verbs/objects.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#pragma GCC visibility push(default)
#include "include/weft/share.h"
#pragma GCC visibility pop

#include "hca/mem/import.h"
#include "hca/mem/second.h"

_Static_assert(sizeof(struct weft_share_handle) == sizeof(struct export_handle), "the same bytes");

static struct hca_mr *to_export(struct weft_share *share)
{
	return (struct hca_mr *)share;
}

struct weft_share *weft_share_export(struct ibv_context *context, void *addr, size_t length,
	int prot, struct weft_share_handle *handle)
{
	struct export_handle h;
	struct hca_mr *mr;
	int rc;

	if (!context || !handle || (prot != PROT_READ && prot != (PROT_READ | PROT_WRITE)))
		return fail_null(-EINVAL);
	rc = hca_export(addr, length, prot & PROT_WRITE, &h, &mr);
	if (rc)
		return fail_null(rc);
	memcpy(handle, &h, sizeof h);
	return (struct weft_share *)mr;
}

int weft_share_close(struct weft_share *share)
{
	return to_errno(share ? hca_unexport(to_export(share), false) : -EINVAL);
}

int weft_share_revoke(struct weft_share *share)
{
	return to_errno(share ? hca_unexport(to_export(share), true) : -EINVAL);
}

void *weft_share_map(struct ibv_context *context, const struct weft_share_handle *handle,
	uint64_t offset, size_t length, int prot, int flags, void *addr)
{
	struct export_handle h;
	struct import_wish w = {
		.handle = &h, .offset = offset, .length = length, .prot = prot, .at = addr};
	void *p;
	int rc;

	if (!context || !handle || flags & ~(WEFT_SHARE_FIXED | WEFT_SHARE_NOREPLACE))
		return fail_null(-EINVAL);
	memcpy(&h, handle, sizeof h);
	if (flags)
		w.placed = flags & WEFT_SHARE_NOREPLACE ? MAP_FIXED_NOREPLACE : MAP_FIXED;
	rc = hca_import(&w, &p);
	return rc ? fail_null(rc) : p;
}

int weft_share_unmap(void *addr, size_t length)
{
	return to_errno(hca_unimport(addr, length));
}

void *weft_share_second(struct ibv_context *context, void *addr, size_t length)
{
	void *p;
	int rc = context ? hca_second(addr, length, &p) : -EINVAL;

	return rc ? fail_null(rc) : p;
}
