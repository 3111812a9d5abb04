// SPDX-License-Identifier: BSD-3-Clause
/* Regions of our own: registration, advice, ranges. */
#include "rpma/mr.h"

#include <errno.h>
#include <stdlib.h>

#include "include/weft/verbs_ext.h"
#include "rpma/log.h"

enum { USAGE_ALL = 0xff };

/* What one ibv_sge of an advice covers at most. */
#define ADVICE_MAX ((size_t)1 << 30)

/* ---- registration ---- */

static int access_of(const struct rpma_peer *peer, int usage)
{
	const int flush = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	int access = 0;

	/* A flush is a read, for a peer that cannot do it otherwise. */
	if (usage & (RPMA_MR_USAGE_READ_SRC | flush))
		access |= IBV_ACCESS_REMOTE_READ;
	if (usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY && peer->flush)
		access |= IBV_ACCESS_FLUSH_GLOBAL;
	if (usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT && peer->flush)
		access |= IBV_ACCESS_FLUSH_PERSISTENT;
	if (usage & (RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_RECV))
		access |= IBV_ACCESS_LOCAL_WRITE;
	if (usage & RPMA_MR_USAGE_READ_DST && peer->iwarp)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if (usage & RPMA_MR_USAGE_WRITE_DST)
		access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	return access;
}

static int reg(struct rpma_peer *peer, void *ptr, size_t size, int access, struct ibv_mr **mr)
{
	*mr = ibv_reg_mr(peer->pd, ptr, size, access);
	/* Some memory (a file of a DAX file system) can be registered on demand alone. */
	if (!*mr && errno == EOPNOTSUPP && peer->odp)
		*mr = ibv_reg_mr(peer->pd, ptr, size, access | IBV_ACCESS_ON_DEMAND);
	return *mr ? 0 : PROVIDER_FAILED("ibv_reg_mr()", errno);
}

int rpma_mr_reg(
	struct rpma_peer *peer, void *ptr, size_t size, int usage, struct rpma_mr_local **mr_ptr)
{
	struct rpma_mr_local *mr;
	int ret;

	if (!peer || !ptr || !size || !mr_ptr || !usage || usage & ~USAGE_ALL)
		return RPMA_E_INVAL;
	mr = malloc(sizeof *mr);
	if (!mr)
		return RPMA_E_NOMEM;
	mr->usage = usage;
	ret = reg(peer, ptr, size, access_of(peer, usage), &mr->mr);
	if (ret)
		free(mr);
	else
		*mr_ptr = mr;
	return ret;
}
RPMA_SINCE_0_10(rpma_mr_reg);

int rpma_mr_dereg(struct rpma_mr_local **mr_ptr)
{
	struct rpma_mr_local *mr;
	int err;

	if (!mr_ptr)
		return RPMA_E_INVAL;
	mr = *mr_ptr;
	*mr_ptr = NULL;
	if (!mr)
		return 0;
	err = ibv_dereg_mr(mr->mr);
	free(mr);
	return err ? PROVIDER_FAILED("ibv_dereg_mr()", err) : 0;
}
RPMA_SINCE_0_10(rpma_mr_dereg);

int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr)
{
	if (!mr || !ptr)
		return RPMA_E_INVAL;
	*ptr = mr->mr->addr;
	return 0;
}
RPMA_SINCE_0_10(rpma_mr_get_ptr);

int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size)
{
	if (!mr || !size)
		return RPMA_E_INVAL;
	*size = mr->mr->length;
	return 0;
}
RPMA_SINCE_0_10(rpma_mr_get_size);

/* ---- ranges ---- */

static bool lies_within(size_t offset, size_t len, uint64_t size)
{
	return offset <= size && len <= size - offset;
}

int mr_local_range(const struct rpma_mr_local *mr, size_t offset, size_t len, struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){0};
	if (!mr)
		return offset || len ? RPMA_E_INVAL : 0;
	if (!lies_within(offset, len, mr->mr->length) || len > UINT32_MAX)
		return RPMA_E_INVAL;
	sge->addr = (uintptr_t)mr->mr->addr + offset;
	sge->length = len;
	sge->lkey = mr->mr->lkey;
	return 0;
}

int mr_remote_range(
	const struct rpma_mr_remote *mr, size_t offset, size_t len, uint64_t *addr, uint32_t *rkey)
{
	*addr = 0;
	*rkey = 0;
	if (!mr)
		return offset || len ? RPMA_E_INVAL : 0;
	if (!lies_within(offset, len, mr->size))
		return RPMA_E_INVAL;
	*addr = mr->addr + offset;
	*rkey = mr->rkey;
	return 0;
}

int mr_recv(const struct rpma_mr_local *dst, size_t offset, size_t len, const void *op_context,
	struct recv *r)
{
	r->wr = (struct ibv_recv_wr){.wr_id = (uintptr_t)op_context};
	if (dst) {
		r->wr.sg_list = &r->sge;
		r->wr.num_sge = 1;
	}
	return mr_local_range(dst, offset, len, &r->sge);
}

/* ---- advice ---- */

static int advise(
	struct ibv_mr *mr, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sge)
{
	int err = ibv_advise_mr(mr->pd, advice, flags, sge, 1);

	switch (err) {
	case 0:
		return 0;
	case EOPNOTSUPP:
#if ENOTSUP != EOPNOTSUPP
	case ENOTSUP:
#endif
		return RPMA_E_NOSUPP;
	case EFAULT:
	case EINVAL:
		return RPMA_E_INVAL;
	default:
		return PROVIDER_FAILED("ibv_advise_mr()", err);
	}
}

int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len, int advice, uint32_t flags)
{
	struct ibv_sge sge;
	int ret;

	if (!mr || !lies_within(offset, len, mr->mr->length))
		return RPMA_E_INVAL;
	do {
		size_t part = len < ADVICE_MAX ? len : ADVICE_MAX;

		ret = mr_local_range(mr, offset, part, &sge);
		if (!ret)
			ret = advise(mr->mr, (enum ibv_advise_mr_advice)advice, flags, &sge);
		offset += part;
		len -= part;
	} while (!ret && len);
	return ret;
}
RPMA_SINCE_0_10(rpma_mr_advise);
