// SPDX-License-Identifier: BSD-3-Clause
/*
 * Objects of two contexts of one device, and of two protection domains, do not go together; what a
 * shared receive queue makes meaningless is not looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { PAGE = 4096, GRH = 40, QKEY = 0x11223344 };

/* One of each kind, of a context. */
struct set {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;
	struct ibv_dm *dm;
	struct ibv_td *td;
};

static struct set one, two;

static void make(struct set *s)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_alloc_dm_attr dm = {.length = PAGE};
	struct ibv_td_init_attr td = {0};
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	s->ctx = vp_open();
	s->pd = ibv_alloc_pd(s->ctx);
	s->channel = ibv_create_comp_channel(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 16, NULL, s->channel, 0);
	s->srq = ibv_create_srq(s->pd, &srq);
	s->xrcd = ibv_open_xrcd(s->ctx, &xrcd);
	s->dm = ibv_alloc_dm(s->ctx, &dm);
	s->td = ibv_alloc_td(s->ctx, &td);
	if (!s->pd || !s->cq || !s->srq || !s->xrcd || !s->dm || !s->td)
		die("set-up");
}

static void end(struct set *s)
{
	CHECK_EQ(ibv_dealloc_td(s->td), 0);
	CHECK_EQ(ibv_free_dm(s->dm), 0);
	CHECK_EQ(ibv_close_xrcd(s->xrcd), 0);
	CHECK_EQ(ibv_destroy_srq(s->srq), 0);
	CHECK_EQ(ibv_destroy_cq(s->cq), 0);
	CHECK_EQ(ibv_destroy_comp_channel(s->channel), 0);
	CHECK_EQ(ibv_dealloc_pd(s->pd), 0);
	CHECK_EQ(ibv_close_device(s->ctx), 0);
}

/* A call that makes something must not, by that errno. */
#define REFUSED(call, err) (errno = 0, CHECK(!(call)), CHECK_EQ(errno, err))

/* ---- queue pairs ---- */

static struct ibv_qp *qp(const struct set *pd, const struct set *send_cq, const struct set *recv_cq,
	const struct set *srq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = send_cq->cq,
		.recv_cq = recv_cq->cq,
		.srq = srq ? srq->srq : NULL,
		.cap = {1, 1, 1, 1, 0},
	};

	return ibv_create_qp(pd->pd, &init);
}

static struct ibv_qp *qp_ex(struct set *context, const struct set *pd, const struct set *cq)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq->cq,
		.recv_cq = cq->cq,
		.cap = {1, 1, 1, 1, 0},
		/* more than the domain: else the header takes the domain's context */
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = pd->pd,
	};

	return ibv_create_qp_ex(context->ctx, &init);
}

static struct ibv_qp *target(struct set *context, const struct set *xrcd)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd->xrcd,
	};

	return ibv_create_qp_ex(context->ctx, &init);
}

static struct ibv_qp *opened(struct set *context, const struct set *xrcd, uint32_t qpn)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = xrcd->xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(context->ctx, &attr);
}

static void queue_pairs(void)
{
	struct ibv_qp *x;

	check_case("queue pairs");
	REFUSED(qp(&one, &two, &one, NULL), EINVAL);
	REFUSED(qp(&one, &one, &two, NULL), EINVAL);
	REFUSED(qp(&two, &one, &one, NULL), EINVAL);
	REFUSED(qp(&one, &one, &one, &two), EINVAL);
	REFUSED(qp_ex(&one, &two, &two), EINVAL);
	REFUSED(qp_ex(&one, &two, &one), EINVAL);
	REFUSED(qp_ex(&one, &one, &two), EINVAL);
	REFUSED(target(&one, &two), EINVAL);
	CHECK_EQ(ibv_destroy_qp(qp(&one, &one, &one, &one)), 0);
	CHECK_EQ(ibv_destroy_qp(qp_ex(&two, &two, &two)), 0);
	x = target(&one, &one);
	REFUSED(opened(&two, &one, x->qp_num), EINVAL);
	CHECK_EQ(ibv_destroy_qp(opened(&one, &one, x->qp_num)), 0);
	CHECK_EQ(ibv_destroy_qp(x), 0);
}

/* ---- shared receive queues ---- */

static struct ibv_srq *srq_ex(
	struct set *context, const struct set *pd, const struct set *cq, const struct set *xrcd)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     (xrcd ? IBV_SRQ_INIT_ATTR_XRCD : IBV_SRQ_INIT_ATTR_TM),
		.srq_type = xrcd ? IBV_SRQT_XRC : IBV_SRQT_TM,
		.pd = pd->pd,
		.xrcd = xrcd ? xrcd->xrcd : NULL,
		.cq = cq->cq,
		.tm_cap = {.max_num_tags = 4, .max_ops = 4},
	};

	return ibv_create_srq_ex(context->ctx, &init);
}

static void receive_queues(void)
{
	check_case("shared receive queues");
	REFUSED(srq_ex(&one, &two, &one, &one), EINVAL);
	REFUSED(srq_ex(&one, &one, &two, &one), EINVAL);
	REFUSED(srq_ex(&one, &one, &one, &two), EINVAL);
	REFUSED(srq_ex(&one, &two, &two, &two), EINVAL);
	REFUSED(srq_ex(&one, &one, &two, NULL), EINVAL);
	CHECK_EQ(ibv_destroy_srq(srq_ex(&one, &one, &one, &one)), 0);
	CHECK_EQ(ibv_destroy_srq(srq_ex(&two, &two, &two, NULL)), 0);
}

/* ---- completion queues, regions, domains ---- */

static struct ibv_cq_ex *cq_ex(
	struct set *context, const struct set *channel, struct ibv_pd *domain)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 4,
		.channel = channel->channel,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = domain ? IBV_CQ_INIT_ATTR_MASK_PD : 0,
		.parent_domain = domain,
	};

	return ibv_create_cq_ex(context->ctx, &init);
}

static struct ibv_pd *domain(struct set *context, const struct set *pd, const struct set *td)
{
	struct ibv_parent_domain_init_attr init = {.pd = pd->pd, .td = td->td};

	return ibv_alloc_parent_domain(context->ctx, &init);
}

static void others(void)
{
	const int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	void *page = aligned_alloc(PAGE, PAGE);
	struct ibv_pd *d = domain(&one, &one, &one);
	struct ibv_mr *mr = ibv_reg_mr(one.pd, page, PAGE, IBV_ACCESS_LOCAL_WRITE);

	check_case("completion queues");
	REFUSED(ibv_create_cq(one.ctx, 4, NULL, two.channel, 0), EBADF);
	REFUSED(cq_ex(&one, &two, NULL), EBADF);
	REFUSED(cq_ex(&two, &two, d), EINVAL);
	CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex(&one, &one, d))), 0);
	check_case("domains");
	REFUSED(domain(&one, &two, &one), EINVAL);
	REFUSED(domain(&one, &one, &two), EINVAL);
	check_case("regions");
	REFUSED(ibv_reg_dm_mr(one.pd, two.dm, 0, 64, access), EINVAL);
	CHECK_EQ(ibv_dereg_mr(ibv_reg_dm_mr(one.pd, one.dm, 0, 64, access)), 0);
	errno = 0;
	CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, two.pd, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	CHECK_EQ(errno, EINVAL);
	CHECK(mr->pd == one.pd && mr->context == one.ctx);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(d), 0);
	free(page);
}

/* ---- domains that meet in a request ---- */

static struct vp_end e;

/* What becomes of a datagram to ourselves by an address handle of that domain. */
static void send_by(struct ibv_pd *pd, enum ibv_wc_status status)
{
	struct vp_opts o = vp_defaults();
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.sgid_index = VP_GID_INDEX, .hop_limit = 64}};
	bool good = status == IBV_WC_SUCCESS;
	struct vp_addr nobody = {0};
	struct ibv_wc wc;
	struct ibv_ah *ah;
	struct ibv_pd *own;

	o.type = IBV_QPT_UD;
	vp_make(&e, vp_open(), &o);
	own = domain(&(struct set){.ctx = e.ctx}, &(struct set){.pd = e.pd}, &(struct set){0});
	vp_connect(&e, &nobody);
	attr.grh.dgid = vp_addr(&e).gid;
	ah = ibv_create_ah(pd ? pd : own, &attr);
	CHECK(ah);
	CHECK_EQ(vp_post_recv(&e, 2, 0, GRH + 8), 0);
	CHECK_EQ(vp_post_ud(&e, 1, ah, e.qp->qp_num, VP_QKEY, 64, 8), 0);
	vp_want(e.scq, &wc, status, 1);
	if (good)
		vp_want(e.rcq, &wc, IBV_WC_SUCCESS, 2);
	else
		vp_quiet(e.rcq, 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	CHECK_EQ(ibv_dealloc_pd(own), 0);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

static void requests(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct vp_end b;

	check_case("an address handle of a parent domain of the queue pair's");
	send_by(NULL, IBV_WC_SUCCESS);
	check_case("an address handle of another domain");
	send_by(one.pd, IBV_WC_LOC_QP_OP_ERR);
	check_case("a region of another context's domain");
	vp_pair(&e, &b, &o);
	mr = ibv_reg_mr(two.pd, e.buf, 64, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	e.mr->lkey ^= mr->lkey;
	mr->lkey ^= e.mr->lkey;
	e.mr->lkey ^= mr->lkey;
	CHECK_EQ(vp_post_send(&e, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	vp_want(e.scq, &wc, IBV_WC_LOC_PROT_ERR, 1);
	vp_pair_free(&e, &b);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
}

/* ---- capacities ---- */

/* A queue pair of that type with these receives; what it has of them. */
static void capacities(enum ibv_qp_type type, struct ibv_srq *srq, uint32_t wr, uint32_t sge)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.send_cq = one.cq,
		.recv_cq = type == IBV_QPT_XRC_SEND ? NULL : one.cq,
		.srq = srq,
		.cap = {1, wr, 1, sge, 0},
	};
	struct ibv_qp_init_attr has;
	struct ibv_qp_attr attr;
	struct ibv_qp *x;

	check_case("type %d, %u receives of %u SGEs", type, wr, sge);
	x = ibv_create_qp(one.pd, &init);
	if (!CHECK(x))
		return;
	CHECK_EQ(init.cap.max_recv_wr, 0);
	CHECK_EQ(init.cap.max_recv_sge, 0);
	CHECK_EQ(ibv_query_qp(x, &attr, IBV_QP_CAP, &has), 0);
	CHECK_EQ(attr.cap.max_recv_wr, 0);
	CHECK_EQ(attr.cap.max_recv_sge, 0);
	CHECK_EQ(ibv_destroy_qp(x), 0);
}

static void all_capacities(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = one.cq, .recv_cq = one.cq};
	struct ibv_device_attr dev;

	CHECK_EQ(ibv_query_device(one.ctx, &dev), 0);
	for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
		capacities(type, one.srq, dev.max_qp_wr + 1, 1);
		capacities(type, one.srq, 1, dev.max_sge + 1);
		capacities(type, one.srq, UINT32_MAX, UINT32_MAX);
	}
	capacities(IBV_QPT_XRC_SEND, NULL, UINT32_MAX, UINT32_MAX);
	check_case("without a shared receive queue");
	init.cap = (struct ibv_qp_cap){1, dev.max_qp_wr + 1, 1, 1, 0};
	REFUSED(ibv_create_qp(one.pd, &init), EINVAL);
	init.cap = (struct ibv_qp_cap){1, 1, 1, dev.max_sge + 1, 0};
	REFUSED(ibv_create_qp(one.pd, &init), EINVAL);
	init.srq = one.srq;
	init.cap = (struct ibv_qp_cap){dev.max_qp_wr + 1, 1, 1, 1, 0};
	REFUSED(ibv_create_qp(one.pd, &init), EINVAL);
}

int main(void)
{
	make(&one);
	make(&two);
	queue_pairs();
	receive_queues();
	others();
	requests();
	all_capacities();
	end(&one);
	end(&two);
	return check_result();
}
