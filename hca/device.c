// SPDX-License-Identifier: BSD-3-Clause
/* Identity and limits of the device. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "hca/api/hca.h"
#include "hca/mem/peer_show.h"
#include "hca/proc/proc.h"
#include "include/weft/verbs_ext.h"

enum {
	CLOCK_KHZ = 1000000,
	RC_ODP = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
		 IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV,
	UD_ODP = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV,
	UC_ODP = UD_ODP | IBV_ODP_SUPPORT_WRITE,
};

int hca_open(const struct fabric_page **page)
{
	const struct rdv_attach *at;
	int rc = proc_attach(&at);

	if (rc)
		return rc;
	peer_show();
	*page = at->fabric;
	return 0;
}

void hca_count_breach(void)
{
	const struct rdv_attach *at = proc_at();

	if (at)
		atomic_fetch_add_explicit(
			&at->seg->counters[0][CTR_PEER_BREACHES], 1, memory_order_relaxed);
}

uint64_t hca_clock_ns(void)
{
	return clock_ns();
}

static void query_basic(const struct fabric_page *page, struct ibv_device_attr *a)
{
	snprintf(a->fw_ver, sizeof a->fw_ver, "%s", WEFT_VERSION);
	a->node_guid = page->node_guid;
	a->sys_image_guid = page->sys_image_guid;
	a->max_mr_size = UINT64_MAX;
	a->page_size_cap = 0xfffff000;
	a->vendor_id = 0xffffff;
	a->vendor_part_id = 0;
	a->hw_ver = 0;
	a->max_qp = SEG_QPS - 1;
	a->max_qp_wr = HCA_MAX_WR;
	a->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_CURR_QP_STATE_MOD |
			      IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
			      IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_XRC |
			      IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
			      IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
	a->max_sge = HCA_MAX_SGE;
	a->max_sge_rd = HCA_MAX_SGE;
	a->max_cq = SEG_CQS - 1;
	a->max_cqe = HCA_MAX_CQE;
	a->max_mr = SEG_MRS - 2;
	a->max_mw = SEG_MRS - 2;
	a->max_pd = 1 << 24;
	a->max_qp_rd_atom = HCA_MAX_RD_ATOMIC;
	a->max_res_rd_atom = a->max_qp_rd_atom * 1024;
	a->max_qp_init_rd_atom = HCA_MAX_RD_ATOMIC;
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->max_pkeys = 1;
	a->max_ah = INT32_MAX;
	a->max_srq = SEG_QPS - 1;
	a->max_srq_wr = HCA_MAX_WR;
	a->max_srq_sge = HCA_MAX_SGE;
	a->max_mcast_grp = SEG_MEMBERS;
	a->max_mcast_qp_attach = SEG_MEMBERS;
	a->max_total_mcast_qp_attach = SEG_MEMBERS;
	a->local_ca_ack_delay = 15;
	a->phys_port_cnt = page->n_ports;
}

void hca_query_device(const struct fabric_page *page, struct ibv_device_attr_ex *a)
{
	memset(a, 0, sizeof *a);
	query_basic(page, &a->orig_attr);
	a->device_cap_flags_ex = (uint32_t)a->orig_attr.device_cap_flags |
				 IB_UVERBS_DEVICE_FLUSH_GLOBAL | IB_UVERBS_DEVICE_FLUSH_PERSISTENT |
				 IB_UVERBS_DEVICE_ATOMIC_WRITE;
	a->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	a->odp_caps.per_transport_caps.rc_odp_caps = RC_ODP;
	a->odp_caps.per_transport_caps.uc_odp_caps = UC_ODP;
	a->odp_caps.per_transport_caps.ud_odp_caps = UD_ODP;
	a->xrc_odp_caps = RC_ODP;
	a->tm_caps = (struct ibv_tm_caps){
		.max_rndv_hdr_size = HCA_MAX_RNDV_HEADER,
		.max_num_tags = HCA_MAX_TAGS,
		.flags = IBV_TM_CAP_RC,
		.max_ops = HCA_MAX_TAG_OPS,
		.max_sge = HCA_MAX_SGE,
	};
	a->max_dm_size = HCA_DM_BYTES;
	a->cq_mod_caps.max_cq_count = UINT16_MAX;
	a->cq_mod_caps.max_cq_period = UINT16_MAX;
	a->phys_port_cnt_ex = a->orig_attr.phys_port_cnt;
	a->completion_timestamp_mask = UINT64_MAX;
	a->hca_core_clock = CLOCK_KHZ;
}
