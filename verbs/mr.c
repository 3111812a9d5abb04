// SPDX-License-Identifier: BSD-3-Clause
// Memory regions.
#include "verbs/objects.h"

#include <stdlib.h>

static struct ibv_mr *reg_mr(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	struct verbs_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return fail_null(ENOMEM);
	access &= ~IBV_ACCESS_OPTIONAL_RANGE;
	if (access & IBV_ACCESS_ZERO_BASED) {
		iova = 0;
		access &= ~IBV_ACCESS_ZERO_BASED;
	}
	rc = hca_mr_reg(to_pd(pd)->hca, addr, length, iova, access, &mr->hca);
	if (rc) {
		free(mr);
		return fail_null(rc);
	}
	count_domain_user(pd, 1);
	mr->mr = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.handle = hca_mr_key(mr->hca),
		.lkey = hca_mr_key(mr->hca),
		.rkey = hca_mr_key(mr->hca),
	};
	return &mr->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg_mr(pd, addr, length, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return reg_mr(pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr_iova2(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	return reg_mr(pd, addr, length, iova, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int rc = hca_mr_dereg(to_mr(mr)->hca);

	if (!rc) {
		count_domain_user(mr->pd, -1);
		free(to_mr(mr));
	}
	return to_errno(rc);
}

/* "Input error": the program may go on using the MR as it was. */
int ibv_rereg_mr(
	struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	(void)mr, (void)flags, (void)pd, (void)addr, (void)length, (void)access;
	errno = EOPNOTSUPP;
	return IBV_REREG_MR_ERR_INPUT;
}

struct ibv_mr *ibv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	(void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
	return fail_null(EOPNOTSUPP);
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	(void)pd, (void)mr_handle;
	return fail_null(EOPNOTSUPP);
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	(void)mr;
}
