// SPDX-License-Identifier: BSD-3-Clause
/* Address handles. */
#include "hca/run/ah.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/obj/pd.h"
#include "hca/proc/proc.h"
#include "hca/run/far_datagram.h"
#include "hca/run/path.h"

/* 0 if datagrams go there. */
static int check_path(const struct ibv_ah_attr *attr)
{
	struct seg_path path;
	const char *why;
	int rc = path_find(attr, &path, &why);

	if (rc == PATH_REMOTE && !far_datagram_route(&path)) {
		rc = -EHOSTUNREACH;
		why = "nobody carries datagrams to that host";
	}
	if (rc >= 0)
		return 0;
	if (rc == -EHOSTUNREACH)
		log_line(LOG_LVL_WARN, "create_ah: %s", why);
	else
		log_refusal("create_ah: %s", why);
	return rc;
}

int hca_ah_create(struct hca_pd *pd, const struct ibv_ah_attr *attr, struct hca_ah **out)
{
	struct hca_ah *ah;
	int rc = proc_attach(NULL);

	if (rc)
		return rc;
	if (pd->epoch != proc_epoch())
		return -EINVAL; /* of the process we were forked from */
	rc = check_path(attr);
	if (rc)
		return rc;
	ah = calloc(1, sizeof *ah);
	if (!ah)
		return -ENOMEM;
	ah->pd = pd;
	ah->epoch = proc_epoch();
	ah->attr = *attr;
	atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	*out = ah;
	return 0;
}

void hca_ah_destroy(struct hca_ah *ah)
{
	if (ah->epoch == proc_epoch())
		atomic_fetch_sub_explicit(&ah->pd->users, 1, memory_order_release);
	free(ah);
}

void ah_fill(const struct hca_pd *pd, const struct ibv_ah *ibv, uint32_t qpn, uint32_t qkey,
	struct seg_wqe *w)
{
	const struct hca_ah *ah = (const struct hca_ah *)ibv;
	const struct ibv_ah_attr *a = &ah->attr;

	if (__builtin_expect(ah->pd == pd, 1))
		memcpy(w->av.dgid, a->grh.dgid.raw, sizeof w->av.dgid);
	else
		memset(w->av.dgid, 0, sizeof w->av.dgid);
	w->av.qpn = qpn | (uint32_t)a->grh.sgid_index << AV_SGID_SHIFT;
	w->av.qkey = qkey;
	w->av.flow = (a->grh.flow_label & 0xfffff) | (uint32_t)a->grh.hop_limit << AV_HOP_SHIFT |
		     (uint32_t)(a->sl & 15) << AV_SL_SHIFT;
	w->tclass = a->grh.traffic_class;
}
