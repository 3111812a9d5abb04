// SPDX-License-Identifier: BSD-3-Clause
/* Address handles, and the checks that all paths have in common. */
#include "hca/run/ah.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/obj/pd.h"
#include "hca/proc/proc.h"

bool gid_is_multicast(const uint8_t *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return gid[0] == 0xff || (!memcmp(gid, mapped, sizeof mapped) && gid[12] >> 4 == 0xe);
}

int gid_find(const uint8_t *gid)
{
	const struct fabric_port *port = &proc_at()->fabric->port[0];

	for (uint32_t i = 0; i < FABRIC_MAX_GIDS && i < port->n_gids; i++)
		if (!memcmp(port->gid[i].raw, gid, sizeof port->gid[i].raw))
			return i;
	return -ENOENT;
}

static bool is_zero_gid(const uint8_t *raw)
{
	static const uint8_t zero[16];

	return !memcmp(raw, zero, sizeof zero);
}

int path_check(const struct ibv_ah_attr *attr, bool unicast, const char **why)
{
	const struct fabric_port *port = fabric_port(proc_at()->fabric, attr->port_num);

	_Static_assert(FABRIC_MAX_GIDS > UINT8_MAX, "sgid_index has 8 bits");
	*why = NULL;
	if (!port)
		*why = "the device has no port of the path's number";
	else if (port->link_layer == IBV_LINK_LAYER_INFINIBAND) {
		*why = "traffic between the nodes of a simulated subnet is not supported yet";
		return -EHOSTUNREACH;
	} else if (!attr->is_global)
		*why = "a RoCE path needs a GRH (is_global and a destination GID)";
	else if (is_zero_gid(port->gid[attr->grh.sgid_index].raw))
		*why = "there is no GID at sgid_index";
	else if (is_zero_gid(attr->grh.dgid.raw))
		*why = "the destination GID is zero";
	if (*why)
		return -EINVAL;
	if (gid_find(attr->grh.dgid.raw) >= 0 || (!unicast && gid_is_multicast(attr->grh.dgid.raw)))
		return 0;
	*why = "the destination GID is not of this host; other hosts are not supported yet";
	return -EHOSTUNREACH;
}

int hca_ah_create(struct hca_pd *pd, const struct ibv_ah_attr *attr, struct hca_ah **out)
{
	const char *why;
	struct hca_ah *ah;
	int rc = proc_attach(NULL);

	if (rc)
		return rc;
	if (pd->epoch != proc_epoch())
		return -EINVAL; /* of the process we were forked from */
	rc = path_check(attr, false, &why);
	if (rc) {
		log_line(rc == -EHOSTUNREACH ? LOG_LVL_WARN : LOG_LVL_INFO, "create_ah: %s", why);
		return rc;
	}
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

void ah_fill(const struct ibv_ah *ibv, uint32_t qpn, uint32_t qkey, struct seg_wqe *w)
{
	const struct ibv_ah_attr *a = &((const struct hca_ah *)ibv)->attr;

	memcpy(w->av.dgid, a->grh.dgid.raw, sizeof w->av.dgid);
	w->av.qpn = qpn | (uint32_t)a->grh.sgid_index << AV_SGID_SHIFT;
	w->av.qkey = qkey;
	w->av.flow = (a->grh.flow_label & 0xfffff) | (uint32_t)a->grh.hop_limit << AV_HOP_SHIFT |
		     (uint32_t)(a->sl & 15) << AV_SL_SHIFT;
	w->tclass = a->grh.traffic_class;
}
