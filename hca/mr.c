// SPDX-License-Identifier: BSD-3-Clause
/* Protection domains and memory regions. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "hca/hca.h"
#include "hca/mapped.h"
#include "hca/objects.h"
#include "hca/proc.h"
#include "hca/quiesce.h"
#include "hca/share.h"
#include "hca/tables.h"

enum {
	ACCESS_KNOWN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING,
	ACCESS_OPTIONAL = IBV_ACCESS_OPTIONAL_RANGE,
	ACCESS_NEEDS_LOCAL = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

static _Atomic uint32_t next_pd = 1;
static uint8_t key_variant[SEG_MRS];

int hca_pd_alloc(struct hca_pd **out)
{
	int rc = proc_attach(NULL);
	struct hca_pd *pd;

	if (rc)
		return rc;
	pd = calloc(1, sizeof *pd);
	if (!pd)
		return -ENOMEM;
	pd->epoch = proc_epoch();
	pd->handle = atomic_fetch_add_explicit(&next_pd, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&proc_seg()->hdr.n_pd, 1, memory_order_relaxed);
	*out = pd;
	return 0;
}

int hca_pd_free(struct hca_pd *pd)
{
	if (pd->epoch == proc_epoch()) {
		if (atomic_load_explicit(&pd->users, memory_order_acquire))
			return -EBUSY;
		atomic_fetch_sub_explicit(&proc_seg()->hdr.n_pd, 1, memory_order_relaxed);
	}
	free(pd);
	return 0;
}

uint32_t hca_pd_handle(const struct hca_pd *pd)
{
	return pd->handle;
}

static int refuse(int err, const char *why, uint64_t addr, uint64_t length)
{
	log_line(LOG_LVL_INFO, "reg_mr of %#llx+%#llx refused: %s", (unsigned long long)addr,
		(unsigned long long)length, why);
	return err;
}

static int check_request(uint64_t addr, uint64_t length, uint64_t iova, unsigned access)
{
	int rc;

	if (!length || addr + length < addr || iova + length < iova)
		return refuse(-EINVAL, "the range is empty or wraps around", addr, length);
	if (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND))
		return refuse(-EOPNOTSUPP,
			"on-demand paging, zero-based regions and memory windows are not supported "
			"yet",
			addr, length);
	if (access & ~(unsigned)(ACCESS_KNOWN | ACCESS_OPTIONAL))
		return refuse(-EINVAL, "unknown access flags", addr, length);
	if (access & ACCESS_NEEDS_LOCAL && !(access & IBV_ACCESS_LOCAL_WRITE))
		return refuse(
			-EINVAL, "remote write and atomics need local write too", addr, length);
	rc = mapped_check(addr, length, access & IBV_ACCESS_LOCAL_WRITE);
	return rc ? refuse(rc, "a page is not mapped, or not with the rights asked for", addr,
			    length)
		  : 0;
}

/* Makes the region known to peers: the key is the last word to appear. */
static void publish(const struct hca_mr *mr)
{
	struct seg_mr *s = &proc_seg()->mr[mr->index];
	struct seg_header *hdr = &proc_seg()->hdr;

	s->access = mr->access;
	s->pd = mr->pd->handle;
	s->iova = mr->iova;
	s->length = mr->length;
	s->addr = mr->addr;
	atomic_store_explicit(&s->key, mr->key, memory_order_release);
	atomic_fetch_add_explicit(&hdr->n_mr, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&hdr->mr_bytes, mr->length, memory_order_relaxed);
}

int hca_mr_reg(struct hca_pd *pd, void *addr, uint64_t length, uint64_t iova, unsigned access,
	struct hca_mr **out)
{
	int rc = check_request((uintptr_t)addr, length, iova, access);
	struct hca_mr *mr;

	if (rc)
		return rc;
	rc = proc_attach(NULL);
	if (rc)
		return rc;
	if (pd->epoch != proc_epoch())
		return -EINVAL; /* of the process we were forked from */
	mr = calloc(1, sizeof *mr);
	if (!mr)
		return -ENOMEM;
	rc = table_add_mr(mr);
	if (rc < 0) {
		free(mr);
		return rc;
	}
	mr->index = rc;
	mr->key = mr->index << 8 | key_variant[mr->index]++;
	mr->epoch = proc_epoch();
	mr->pd = pd;
	mr->addr = (uintptr_t)addr;
	mr->length = length;
	mr->iova = iova;
	mr->access = access & ~(unsigned)ACCESS_OPTIONAL;
	share_reg(mr);
	atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	publish(mr);
	*out = mr;
	return 0;
}

int hca_mr_dereg(struct hca_mr *mr)
{
	struct seg_header *hdr;

	if (mr->epoch == proc_epoch()) {
		hdr = &proc_seg()->hdr;
		atomic_store_explicit(&proc_seg()->mr[mr->index].key, 0, memory_order_seq_cst);
		quiesce();
		pd_land_all(mr->pd);
		share_dereg(mr);
		table_del_mr(mr->index);
		atomic_fetch_sub_explicit(&hdr->n_mr, 1, memory_order_relaxed);
		atomic_fetch_sub_explicit(&hdr->mr_bytes, mr->length, memory_order_relaxed);
		atomic_fetch_sub_explicit(&mr->pd->users, 1, memory_order_release);
	}
	free(mr);
	return 0;
}

uint32_t hca_mr_key(const struct hca_mr *mr)
{
	return mr->key;
}
