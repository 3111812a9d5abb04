// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/pd.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/obj/pd.h"
#include "hca/proc/proc.h"

static _Atomic uint32_t next_pd = 1;

static struct {
	struct lock lock;
	struct hca_pd *first;
} pds;

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
	lock_take(&pds.lock);
	pd->next = pds.first;
	pd->link = &pds.first;
	if (pd->next)
		pd->next->link = &pd->next;
	pds.first = pd;
	lock_drop(&pds.lock);
	*out = pd;
	return 0;
}

static void pd_delist(struct hca_pd *pd)
{
	*pd->link = pd->next;
	if (pd->next)
		pd->next->link = pd->link;
}

int hca_pd_free(struct hca_pd *pd)
{
	lock_take(&pds.lock);
	if (pd->epoch == proc_epoch()) {
		if (atomic_load_explicit(&pd->users, memory_order_acquire)) {
			lock_drop(&pds.lock);
			return log_busy("ibv_dealloc_pd",
				"QPs, SRQs, regions, windows or address handles are of the PD");
		}
		atomic_fetch_sub_explicit(&proc_seg()->hdr.n_pd, 1, memory_order_relaxed);
	}
	pd_delist(pd);
	lock_drop(&pds.lock);
	free(pd);
	return 0;
}

uint32_t hca_pd_handle(const struct hca_pd *pd)
{
	return pd->handle;
}

int hca_pd_get(uint32_t handle, struct hca_pd **out)
{
	struct hca_pd *pd;

	lock_take(&pds.lock);
	for (pd = pds.first; pd; pd = pd->next)
		if (pd->handle == handle && pd->epoch == proc_epoch())
			break;
	if (pd)
		atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	lock_drop(&pds.lock);
	*out = pd;
	return pd ? 0 : -ENOENT;
}

void hca_pd_put(struct hca_pd *pd)
{
	atomic_fetch_sub_explicit(&pd->users, 1, memory_order_release);
}

void pd_forked_child(void)
{
	atomic_store_explicit(&pds.lock.word, 0, memory_order_relaxed);
}
