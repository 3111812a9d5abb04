// SPDX-License-Identifier: BSD-3-Clause
// Protection domains, thread domains, and parent domains, which put both together.
#include "verbs/context.h"

#include <stdlib.h>

#include "base/log.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct verbs_pd *pd = calloc(1, sizeof(*pd));
	int rc;

	if (!pd)
		return fail_null(ENOMEM);
	rc = hca_pd_alloc(&pd->hca);
	if (rc) {
		free(pd);
		return fail_null(rc);
	}
	pd->pd.context = context;
	pd->pd.handle = hca_pd_handle(pd->hca);
	return &pd->pd;
}

static int dealloc_parent_domain(struct verbs_pd *pd)
{
	if (atomic_load_explicit(&pd->users, memory_order_acquire))
		return log_busy("ibv_dealloc_pd",
			"QPs, SRQs, regions, windows or address handles are of the PD");
	atomic_fetch_sub_explicit(&pd->of->users, 1, memory_order_release);
	if (pd->td)
		atomic_fetch_sub_explicit(&pd->td->users, 1, memory_order_release);
	return 0;
}

/* Whoever imported it last may deallocate it, once nobody else has it. */
static int dealloc_imported(struct verbs_pd *pd)
{
	int rc;

	if (atomic_load_explicit(&pd->users, memory_order_acquire))
		return log_busy("ibv_dealloc_pd",
			"QPs, SRQs, regions, windows or address handles are of the PD");
	hca_pd_put(pd->hca);
	rc = hca_pd_free(pd->hca);
	if (rc) {
		struct hca_pd *same;

		hca_pd_get(pd->pd.handle, &same);
	}
	return rc;
}

int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct verbs_pd *pd = to_pd(ibpd);
	int rc;

	if (pd->of)
		rc = dealloc_parent_domain(pd);
	else if (pd->imported)
		rc = dealloc_imported(pd);
	else if (atomic_load_explicit(&pd->users, memory_order_acquire))
		rc = log_busy("ibv_dealloc_pd",
			"QPs, SRQs, regions, windows or address handles are of the PD");
	else
		rc = hca_pd_free(pd->hca);
	if (!rc)
		free(pd);
	return to_errno(rc);
}

/* ---- thread domains: a promise of the program that we take no advantage of ---- */

struct ibv_td *verbs_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init)
{
	struct verbs_td *td;

	if (init->comp_mask)
		return fail_null(EINVAL);
	td = calloc(1, sizeof(*td));
	if (!td)
		return fail_null(ENOMEM);
	td->td.context = context;
	return &td->td;
}

int verbs_dealloc_td(struct ibv_td *ibtd)
{
	struct verbs_td *td = container_of(ibtd, struct verbs_td, td);

	if (atomic_load_explicit(&td->users, memory_order_acquire))
		return to_errno(log_busy("ibv_dealloc_td", "a parent domain uses it"));
	free(td);
	return 0;
}

/*
 * The allocators are taken and not used: a provider may use them for its queues, and ours lie in
 * the segment.
 */
struct ibv_pd *verbs_alloc_parent_domain(
	struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct verbs_pd *pd;

	if (attr->comp_mask & ~known)
		return fail_null(EOPNOTSUPP);
	if (!attr->pd || to_pd(attr->pd)->of || is_of_another(context, attr->pd) ||
		is_of_another(context, attr->td))
		return fail_null(EINVAL);
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS &&
		(!attr->alloc || !attr->free))
		return fail_null(EINVAL);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return fail_null(ENOMEM);
	pd->of = to_pd(attr->pd);
	pd->hca = pd->of->hca;
	pd->pd.context = context;
	pd->pd.handle = pd->of->pd.handle;
	atomic_fetch_add_explicit(&pd->of->users, 1, memory_order_relaxed);
	if (attr->td) {
		pd->td = container_of(attr->td, struct verbs_td, td);
		atomic_fetch_add_explicit(&pd->td->users, 1, memory_order_relaxed);
	}
	return &pd->pd;
}

/* ---- import: the same PD by its handle, through another context ---- */

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct verbs_pd *pd;
	int rc;

	if (to_ctx(context)->card)
		return fail_null(EOPNOTSUPP);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return fail_null(ENOMEM);
	rc = hca_pd_get(pd_handle, &pd->hca);
	if (rc) {
		free(pd);
		return fail_null(rc);
	}
	pd->imported = true;
	pd->pd.context = context;
	pd->pd.handle = pd_handle;
	return &pd->pd;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	hca_pd_put(to_pd(pd)->hca);
	if (!atomic_fetch_or_explicit(&to_pd(pd)->users, PD_UNIMPORTED, memory_order_acq_rel))
		free(to_pd(pd));
}
