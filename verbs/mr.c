// SPDX-License-Identifier: BSD-3-Clause
// Memory regions.
#include "verbs/context.h"

#include <stdlib.h>

static struct ibv_mr *wrap(struct verbs_mr *mr, struct ibv_pd *pd, void *addr, size_t length)
{
	uint32_t key = hca_mr_key(mr->hca);

	count_domain_user(pd, 1);
	mr->mr = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.handle = key,
		.lkey = key,
		.rkey = key,
	};
	return &mr->mr;
}

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
	return wrap(mr, pd, addr, length);
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

	if (rc)
		return to_errno(rc);
	count_domain_user(mr->pd, -1);
	free(to_mr(mr));
	return 0;
}

/* "Input error": the program may go on using the MR as it was. */
int ibv_rereg_mr(
	struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	int rc = -EINVAL;

	if (!(flags & IBV_REREG_MR_CHANGE_PD && is_of_another(mr->context, pd)))
		rc = hca_mr_rereg(to_mr(mr)->hca, flags, pd ? to_pd(pd)->hca : NULL, addr, length,
			(unsigned)access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE);
	if (rc) {
		errno = -rc;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		count_domain_user(pd, 1);
		count_domain_user(mr->pd, -1);
		mr->pd = pd;
		mr->context = pd->context;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = addr;
		mr->length = length;
	}
	return 0;
}

struct ibv_mr *verbs_alloc_null_mr(struct ibv_pd *pd)
{
	struct verbs_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return fail_null(ENOMEM);
	rc = hca_mr_null(to_pd(pd)->hca, &mr->hca);
	if (rc) {
		free(mr);
		return fail_null(rc);
	}
	wrap(mr, pd, NULL, SIZE_MAX);
	mr->mr.rkey = 0;
	return &mr->mr;
}

struct ibv_mr *verbs_reg_dm_mr(
	struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned int access)
{
	struct verbs_mr *mr;
	int rc;

	if (!(access & IBV_ACCESS_ZERO_BASED) || is_of_another(pd->context, dm))
		return fail_null(EINVAL);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return fail_null(ENOMEM);
	rc = hca_dm_reg(to_pd(pd)->hca, to_dm(dm)->hca, offset, length,
		access & ~(unsigned)(IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE), &mr->hca);
	if (rc) {
		free(mr);
		return fail_null(rc);
	}
	return wrap(mr, pd, NULL, length);
}

int verbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	struct ibv_sge *sge, uint32_t n)
{
	return to_errno(hca_mr_advise(to_pd(pd)->hca, advice, flags, sge, n));
}

struct ibv_mr *ibv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	struct verbs_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return fail_null(ENOMEM);
	rc = hca_mr_from_fd(to_pd(pd)->hca, fd, offset, length, iova, (unsigned)access, &mr->hca);
	if (rc) {
		free(mr);
		return fail_null(rc);
	}
	return wrap(mr, pd, (void *)(uintptr_t)offset, length);
}

/* ---- import: the same region by its handle, through another context ---- */

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct verbs_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return fail_null(ENOMEM);
	rc = hca_mr_get(to_pd(pd)->hca, mr_handle, &mr->hca);
	if (rc) {
		free(mr);
		return fail_null(rc);
	}
	return wrap(mr, pd, NULL, 0); /* where it is, only who registered it knows */
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	hca_mr_put(to_mr(mr)->hca);
	count_domain_user(mr->pd, -1);
	free(to_mr(mr));
}
