// SPDX-License-Identifier: BSD-3-Clause
/* Memory windows as objects; what requests do with them is in window.c. */
#include <errno.h>
#include <stdlib.h>

#include "hca/api/hca.h"
#include "hca/mem/mr.h"
#include "hca/obj/pd.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"
#include "hca/proc/tables.h"

static void enlist(struct hca_pd *pd, struct hca_mw *mw)
{
	lock_take(&pd->lock);
	mw->next = pd->mws;
	mw->link = &pd->mws;
	if (mw->next)
		mw->next->link = &mw->next;
	pd->mws = mw;
	lock_drop(&pd->lock);
}

static void delist(struct hca_pd *pd, struct hca_mw *mw)
{
	lock_take(&pd->lock);
	*mw->link = mw->next;
	if (mw->next)
		mw->next->link = mw->link;
	lock_drop(&pd->lock);
}

/* An entry that may be bound; its key stays 0 until then. */
static void describe(const struct hca_mw *mw, enum ibv_mw_type type)
{
	struct seg_mr *s = &proc_seg()->mr[mw->slot.index];

	s->pd = mw->slot.pd->handle;
	s->under = s->qpn = s->inv_qpn = s->inv_pos = 0;
	s->flags = MR_WINDOW | (type == IBV_MW_TYPE_2 ? MR_WINDOW_QP : 0);
}

int hca_mw_alloc(struct hca_pd *pd, enum ibv_mw_type type, struct hca_mw **out)
{
	struct hca_mw *mw;
	int rc;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return -EINVAL;
	rc = proc_attach(NULL);
	if (rc)
		return rc;
	if (pd->epoch != proc_epoch())
		return -EINVAL; /* of the process we were forked from */
	mw = calloc(1, sizeof *mw);
	if (!mw)
		return -ENOMEM;
	rc = table_add_mr(&mw->slot);
	if (rc < 0) {
		free(mw);
		return rc;
	}
	mw->slot.index = rc;
	mw->slot.epoch = proc_epoch();
	mw->slot.pd = pd;
	mw->born = mr_next_key(rc);
	describe(mw, type);
	atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	enlist(pd, mw);
	*out = mw;
	return 0;
}

int hca_mw_dealloc(struct hca_mw *mw)
{
	struct hca_pd *pd = mw->slot.pd;

	if (mw->slot.epoch == proc_epoch()) {
		struct seg_mr *s = &proc_seg()->mr[mw->slot.index];

		delist(pd, mw);
		s->flags = 0;
		atomic_store_explicit(&s->key, 0, memory_order_seq_cst);
		quiesce();
		/* Once more: a bind may have been under way. */
		atomic_store_explicit(&s->key, 0, memory_order_release);
		table_del_mr(mw->slot.index);
		atomic_fetch_sub_explicit(&pd->users, 1, memory_order_release);
	}
	free(mw);
	return 0;
}

uint32_t hca_mw_key(const struct hca_mw *mw)
{
	return mw->born;
}
