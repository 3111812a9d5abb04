// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/mr_null.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "base/lock.h"
#include "hca/api/hca.h"
#include "hca/mem/mr.h"
#include "hca/mem/mr_kinds.h"
#include "include/weft/verbs_ext.h"

enum { SINK_BYTES = 32 << 20 };
#define NULL_BYTES (1ull << HCA_MAX_MSG_LOG)

/* Two stretches of address space as long as a message: one of zeros, one of the same few pages. */
static struct {
	struct lock lock;
	void *zeros, *sink;
} nothing;

void mr_null_forked_child(void)
{
	atomic_store_explicit(&nothing.lock.word, 0, memory_order_relaxed);
}

static int map_sink(void)
{
	int fd, rc;

	if (!file_limit_allows(SINK_BYTES))
		return -EFBIG;
	fd = memfd_create("weft-null", MFD_CLOEXEC);
	rc = fd < 0 || ftruncate(fd, SINK_BYTES) ? -errno : 0;
	for (uint64_t at = 0; !rc && at < NULL_BYTES; at += SINK_BYTES)
		if (mmap((char *)nothing.sink + at, SINK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED)
			rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

static void *reserve(int prot)
{
	void *p = mmap(NULL, NULL_BYTES, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int map_nothing(void)
{
	int saved = errno;
	int rc = -ENOMEM;

	lock_take(&nothing.lock);
	if (nothing.sink) {
		rc = 0;
	} else if ((nothing.zeros = reserve(PROT_READ)) && (nothing.sink = reserve(PROT_NONE))) {
		rc = map_sink();
	}
	if (rc && nothing.zeros)
		munmap(nothing.zeros, NULL_BYTES);
	if (rc && nothing.sink)
		munmap(nothing.sink, NULL_BYTES);
	if (rc)
		nothing.zeros = nothing.sink = NULL;
	lock_drop(&nothing.lock);
	errno = saved;
	return rc;
}

int hca_mr_null(struct hca_pd *pd, struct hca_mr **out)
{
	struct mr_region r = {
		.length = UINT64_MAX, .access = IBV_ACCESS_LOCAL_WRITE, .kind = &mr_null};
	int rc = map_nothing();

	if (rc)
		return rc;
	r.addr = (uintptr_t)nothing.zeros;
	r.of = nothing.sink;
	return mr_add(pd, &r, out);
}
