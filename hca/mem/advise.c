// SPDX-License-Identifier: BSD-3-Clause
/* ibv_advise_mr: bringing pages in before they are needed. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/api/hca.h"
#include "hca/obj/mr.h"
#include "hca/proc/tables.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static int check_sge(const struct hca_pd *pd, const struct ibv_sge *s, bool write)
{
	const struct hca_mr *mr = s->lkey ? table_mr(key_index(s->lkey)) : NULL;
	uint64_t off;

	if (!mr || mr->key != s->lkey) /* none also if its client took it away */
		return -EFAULT;
	off = s->addr - mr->iova;
	if (s->addr < mr->iova || off > mr->length || s->length > mr->length - off)
		return -EFAULT;
	if (mr->pd != pd || (write && !(mr->access & IBV_ACCESS_LOCAL_WRITE)))
		return -EPERM;
	return 0;
}

/* Regions that are not on demand are present by definition; populating theirs does no harm. */
static int bring_in(const struct ibv_sge *s, bool write)
{
	const struct hca_mr *mr = table_mr(key_index(s->lkey));
	uint64_t page = sysconf(_SC_PAGESIZE);
	uint64_t from, to;
	int saved = errno;
	int rc = 0;

	if (!s->length || !mr || !mr->kind->changeable || mr->kind->io)
		return 0;
	from = (mr->addr + (s->addr - mr->iova)) & ~(page - 1);
	to = (mr->addr + (s->addr - mr->iova) + s->length + page - 1) & ~(page - 1);
	if (madvise((void *)(uintptr_t)from, to - from,
		    write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		rc = errno == EINVAL ? 0 /* a kernel before 5.14 */ : -EFAULT;
	errno = saved;
	return rc;
}

int hca_mr_advise(struct hca_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	const struct ibv_sge *sge, uint32_t n)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	int rc = 0;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !n)
		return -EINVAL;
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = check_sge(pd, &sge[i], write);
	/* The pages that are present are within reach anyway: nothing to do without faulting. */
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return rc;
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = bring_in(&sge[i], write);
	return flags & IBV_ADVISE_MR_FLAG_FLUSH || rc == -EPERM ? rc : 0;
}
