// SPDX-License-Identifier: BSD-3-Clause
// Extended completion queues: one completion at a time, read field by field.
#include "verbs/context.h"

#include "base/clock.h"

enum {
	STAMP_FLAGS =
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	/* No VLAN tag is ever taken off a packet here, and there are no flows with tags. */
	WC_FLAGS = IBV_WC_STANDARD_FLAGS | STAMP_FLAGS | IBV_WC_EX_WITH_TM_INFO,
	CQ_FLAGS = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	INIT_MASK = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD,
};

static struct verbs_cq *of(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct verbs_cq, ex);
}

/* ---- the iterator ---- */

static int take_next(struct verbs_cq *cq)
{
	int n = hca_cq_poll_one(cq->hca, &cq->current, &cq->more);

	if (n <= 0)
		return n ? -n : ENOENT;
	cq->ex.status = cq->current.status;
	cq->ex.wr_id = cq->current.wr_id;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct verbs_cq *cq = of(ex);
	int rc;

	if (attr->comp_mask)
		return EINVAL;
	if (!cq->single_threaded)
		lock_take(&cq->poll_lock);
	rc = take_next(cq);
	if (rc && !cq->single_threaded)
		lock_drop(&cq->poll_lock);
	return rc;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take_next(of(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	if (!of(ex)->single_threaded)
		lock_drop(&of(ex)->poll_lock);
}

/* ---- the fields ---- */

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return of(ex)->current.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return of(ex)->current.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return of(ex)->current.byte_len;
}

/* The key of IBV_WC_WITH_INV shares its place. */
static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return of(ex)->current.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return of(ex)->current.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return of(ex)->current.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return of(ex)->current.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return of(ex)->current.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return of(ex)->current.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return of(ex)->current.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return of(ex)->more.stamp_ns;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return clock_real_ns() - (hca_clock_ns() - of(ex)->more.stamp_ns);
}

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	info->tag = of(ex)->more.tm_tag;
	info->priv = of(ex)->more.tm_priv;
}

/* ---- creation ---- */

static void set_functions(struct ibv_cq_ex *ex)
{
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	ex->read_completion_ts = read_completion_ts;
	ex->read_tm_info = read_tm_info;
	ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}

static uint32_t flags_of(const struct ibv_cq_init_attr_ex *init)
{
	return init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? init->flags : 0;
}

static int check(const struct ibv_context *context, const struct ibv_cq_init_attr_ex *init)
{
	if (init->comp_mask & ~(uint32_t)INIT_MASK)
		return -EINVAL;
	if (init->wc_flags & ~(uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS)
		return -EOPNOTSUPP;
	if (init->wc_flags & ~(uint64_t)WC_FLAGS)
		return -EOPNOTSUPP;
	if (flags_of(init) & ~(uint32_t)CQ_FLAGS)
		return -EOPNOTSUPP;
	if (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
		(!init->parent_domain || !to_pd(init->parent_domain)->of ||
			is_of_another(context, init->parent_domain)))
		return -EINVAL;
	return 0;
}

struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init)
{
	uint32_t flags = flags_of(init);
	struct verbs_cq *cq;
	int rc = check(context, init);

	if (!rc && (init->cqe > INT32_MAX || init->comp_vector > INT32_MAX))
		rc = -EINVAL;
	if (rc)
		return fail_null(rc);
	cq = verbs_make_cq(context, (int)init->cqe, init->cq_context, init->channel,
		(int)init->comp_vector,
		(init->wc_flags & STAMP_FLAGS ? HCA_CQ_STAMPS : 0) |
			(flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN ? HCA_CQ_IGNORE_OVERRUN : 0));
	if (!cq)
		return NULL;
	cq->single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	if (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		cq->domain = init->parent_domain;
		count_domain_user(cq->domain, 1);
	}
	set_functions(&cq->ex);
	return &cq->ex;
}
