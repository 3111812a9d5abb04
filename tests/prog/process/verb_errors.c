// SPDX-License-Identifier: BSD-3-Clause
/*
 * What each verb answers when it is used wrongly, and what it says of that in the log: the errors
 * of the manual pages, in a table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

static char log_file[256];
static struct vp_end e;
static struct ibv_comp_channel *channel; /* with a CQ on it */
static struct ibv_cq *cq;
static struct ibv_td *td;
static struct ibv_pd *parent; /* on e.pd, with td */
static struct ibv_srq *shared_queue;

/* The errno of a verb that gives a pointer, or 0. */
static int of_pointer(void *p)
{
	return p ? 0 : errno;
}

/* ... of one that gives -1. */
static int of_minus_one(int rc)
{
	return rc < 0 ? errno : 0;
}

static int pd_in_use(void)
{
	return ibv_dealloc_pd(e.pd);
}

static int parent_of_parent(void)
{
	struct ibv_parent_domain_init_attr attr = {.pd = parent};

	return of_pointer(ibv_alloc_parent_domain(e.ctx, &attr));
}

static int parent_of_nothing(void)
{
	struct ibv_parent_domain_init_attr attr = {.pd = NULL};

	return of_pointer(ibv_alloc_parent_domain(e.ctx, &attr));
}

static int parent_with_half_an_allocator(void)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = e.pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS};

	return of_pointer(ibv_alloc_parent_domain(e.ctx, &attr));
}

static int parent_with_unknown_mask(void)
{
	struct ibv_parent_domain_init_attr attr = {.pd = e.pd, .comp_mask = 1u << 20};

	return of_pointer(ibv_alloc_parent_domain(e.ctx, &attr));
}

static int td_with_unknown_mask(void)
{
	struct ibv_td_init_attr attr = {.comp_mask = 1};

	return of_pointer(ibv_alloc_td(e.ctx, &attr));
}

static int td_in_use(void)
{
	return ibv_dealloc_td(td);
}

static int mr_of_length_0(void)
{
	return of_pointer(ibv_reg_mr(e.pd, e.buf, 0, 0));
}

static int mr_wraps(void)
{
	return of_pointer(ibv_reg_mr(e.pd, e.buf, SIZE_MAX - 4096, 0));
}

static int mr_unmapped(void)
{
	return of_pointer(ibv_reg_mr(e.pd, (void *)4096, 4096, 0));
}

static int mr_remote_write_alone(void)
{
	return of_pointer(ibv_reg_mr(e.pd, e.buf, 4096, IBV_ACCESS_REMOTE_WRITE));
}

static int mr_unknown_right(void)
{
	return of_pointer(ibv_reg_mr(e.pd, e.buf, 4096, 1 << 15));
}

static int dmabuf(int fd, size_t length, int access)
{
	return of_pointer(ibv_reg_dmabuf_mr(e.pd, 0, length, 0, fd, access));
}

static int dmabuf_of_no_fd(void)
{
	return dmabuf(-1, 4096, IBV_ACCESS_LOCAL_WRITE);
}

static int dmabuf_of_nothing(void)
{
	return dmabuf(0, 0, IBV_ACCESS_LOCAL_WRITE);
}

static int dmabuf_remote_write_alone(void)
{
	return dmabuf(0, 4096, IBV_ACCESS_REMOTE_WRITE);
}

static int mw_unknown_type(void)
{
	return of_pointer(ibv_alloc_mw(e.pd, 0));
}

static int channel_in_use(void)
{
	return ibv_destroy_comp_channel(channel);
}

static int cq_of_0(void)
{
	return of_pointer(ibv_create_cq(e.ctx, 0, NULL, NULL, 0));
}

static int cq_too_large(void)
{
	struct ibv_device_attr dev;

	CHECK_EQ(ibv_query_device(e.ctx, &dev), 0);
	return of_pointer(ibv_create_cq(e.ctx, dev.max_cqe + 1, NULL, NULL, 0));
}

static int cq_vector(void)
{
	return of_pointer(ibv_create_cq(e.ctx, 1, NULL, NULL, e.ctx->num_comp_vectors));
}

static int cq_vector_negative(void)
{
	return of_pointer(ibv_create_cq(e.ctx, 1, NULL, NULL, -1));
}

static int channel_of_another(void)
{
	struct ibv_context *other = vp_open();
	struct ibv_comp_channel *theirs = ibv_create_comp_channel(other);
	int err = of_pointer(ibv_create_cq(e.ctx, 1, NULL, theirs, 0));

	CHECK_EQ(ibv_destroy_comp_channel(theirs), 0);
	CHECK_EQ(ibv_close_device(other), 0);
	return err;
}

static int cq_in_use(void)
{
	return ibv_destroy_cq(e.scq);
}

static int cq_resize_to_0(void)
{
	return ibv_resize_cq(cq, 0);
}

static int cq_modify_nothing(void)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = 0};

	return ibv_modify_cq(cq, &attr);
}

static struct ibv_qp_init_attr_ex good_qp(void)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e.pd,
	};
}

static int qp_of_no_type(void)
{
	struct ibv_qp_init_attr_ex init = good_qp();

	init.qp_type = 77;
	return of_pointer(ibv_create_qp_ex(e.ctx, &init));
}

static int qp_without_cq(void)
{
	struct ibv_qp_init_attr_ex init = good_qp();

	init.recv_cq = NULL;
	return of_pointer(ibv_create_qp_ex(e.ctx, &init));
}

static int qp_with_too_many_wr(void)
{
	struct ibv_qp_init_attr_ex init = good_qp();

	init.cap.max_send_wr = UINT32_MAX;
	return of_pointer(ibv_create_qp_ex(e.ctx, &init));
}

static int qp_with_too_much_inline(void)
{
	struct ibv_qp_init_attr_ex init = good_qp();

	init.cap.max_inline_data = 1 << 20;
	return of_pointer(ibv_create_qp_ex(e.ctx, &init));
}

static int qp_with_create_flags(void)
{
	struct ibv_qp_init_attr_ex init = good_qp();

	init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	return of_pointer(ibv_create_qp_ex(e.ctx, &init));
}

static int port_0(void)
{
	struct ibv_port_attr attr;

	return ibv_query_port(e.ctx, 0, &attr);
}

static int port_2(void)
{
	struct ibv_port_attr attr;

	return ibv_query_port(e.ctx, 2, &attr);
}

static int gid_beyond_the_end(void)
{
	union ibv_gid gid;

	return of_minus_one(ibv_query_gid(e.ctx, 1, 1 << 20, &gid));
}

static int pkey_beyond_the_end(void)
{
	__be16 pkey;

	return of_minus_one(ibv_query_pkey(e.ctx, 1, 1, &pkey));
}

static int gid_ex_with_flags(void)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(e.ctx, 1, 0, &entry, 1);
}

static int rt_values_unknown(void)
{
	struct ibv_values_ex values = {.comp_mask = 1 << 9};

	return ibv_query_rt_values_ex(e.ctx, &values);
}

static int flow(void)
{
	struct ibv_flow_attr attr = {.size = sizeof attr, .port = 1};

	return of_pointer(ibv_create_flow(e.qp, &attr));
}

static int counters(void)
{
	struct ibv_counters_init_attr attr = {0};

	return of_pointer(ibv_create_counters(e.ctx, &attr));
}

static int srq_max_wr(uint32_t n)
{
	struct ibv_srq_attr attr = {.max_wr = n};

	return ibv_modify_srq(shared_queue, &attr, IBV_SRQ_MAX_WR);
}

static int srq_resize_to_0(void)
{
	return srq_max_wr(0);
}

static int srq_resize_too_large(void)
{
	return srq_max_wr(INT32_MAX);
}

static int srq_modify_unknown(void)
{
	struct ibv_srq_attr attr = {.max_wr = 8};

	return ibv_modify_srq(shared_queue, &attr, 1 << 7);
}

static int srq_ops_without_tags(void)
{
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC}, *bad;

	return ibv_post_srq_ops(shared_queue, &wr, &bad);
}

static int work_queue(void)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = e.pd, .cq = cq};

	return of_pointer(ibv_create_wq(e.ctx, &attr));
}

static int rate_limit(void)
{
	struct ibv_qp_rate_limit_attr attr = {.rate_limit = 1};

	return ibv_modify_qp_rate_limit(e.qp, &attr);
}

#define CASE(fn, want)                                                                             \
	{                                                                                          \
#fn, fn, want, NULL                                                                \
	}
/* The log has a line with that text then. */
#define TOLD(fn, want, why)                                                                        \
	{                                                                                          \
#fn, fn, want, why                                                                 \
	}
static const struct {
	const char *name;
	int (*fn)(void);
	int want;
	const char *why;
} cases[] = {
	CASE(pd_in_use, EBUSY),
	CASE(parent_of_parent, EINVAL),
	CASE(parent_of_nothing, EINVAL),
	CASE(parent_with_half_an_allocator, EINVAL),
	CASE(parent_with_unknown_mask, EOPNOTSUPP),
	CASE(td_with_unknown_mask, EINVAL),
	CASE(td_in_use, EBUSY),
	CASE(mr_of_length_0, EINVAL),
	CASE(mr_wraps, EINVAL),
	CASE(mr_unmapped, EFAULT),
	CASE(mr_remote_write_alone, EINVAL),
	CASE(mr_unknown_right, EINVAL),
	TOLD(dmabuf_of_no_fd, EBADF, "reg_dmabuf_mr refused: fd -1: Bad file descriptor"),
	TOLD(dmabuf_of_nothing, EINVAL, "reg_dmabuf_mr refused: there is nothing to register"),
	TOLD(dmabuf_remote_write_alone, EINVAL, "reg_dmabuf_mr refused: REMOTE_WRITE"),
	CASE(mw_unknown_type, EINVAL),
	CASE(channel_in_use, EBUSY),
	TOLD(cq_of_0, EINVAL, "create_cq refused: 0 entries, and there may be 1 to "),
	TOLD(cq_too_large, EINVAL, " entries, and there may be 1 to "),
	TOLD(cq_vector, EINVAL, "create_cq refused: comp_vector "),
	TOLD(cq_vector_negative, EINVAL, "create_cq refused: comp_vector -1, and there are "),
	TOLD(channel_of_another, EBADF, "create_cq refused: the completion channel is of another"),
	CASE(cq_in_use, EBUSY),
	TOLD(cq_resize_to_0, EINVAL, "resize_cq refused: 0 entries, and there may be 1 to "),
	TOLD(cq_modify_nothing, EINVAL, "modify_cq refused: attr_mask 0"),
	CASE(qp_of_no_type, EINVAL),
	CASE(qp_without_cq, EINVAL),
	CASE(qp_with_too_many_wr, EINVAL),
	CASE(qp_with_too_much_inline, EINVAL),
	CASE(qp_with_create_flags, EOPNOTSUPP),
	TOLD(port_0, EINVAL, "there is no port 0: the device has 1, from 1"),
	TOLD(port_2, EINVAL, "there is no port 2: the device has 1, from 1"),
	TOLD(gid_beyond_the_end, EINVAL, "there is no GID index 1048576: the table has "),
	TOLD(pkey_beyond_the_end, EINVAL, "there is no P_Key index 1: the table has 1, from 0"),
	CASE(gid_ex_with_flags, EOPNOTSUPP),
	CASE(rt_values_unknown, EINVAL),
	CASE(flow, EOPNOTSUPP),
	CASE(counters, EOPNOTSUPP),
	CASE(srq_resize_to_0, EINVAL),
	CASE(srq_resize_too_large, EINVAL),
	CASE(srq_modify_unknown, EINVAL),
	CASE(srq_ops_without_tags, EOPNOTSUPP),
	CASE(work_queue, EOPNOTSUPP),
	CASE(rate_limit, EOPNOTSUPP),
};

static void setup(void)
{
	struct ibv_td_init_attr no_mask = {0};
	struct ibv_parent_domain_init_attr attr = {0};
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct vp_opts o = vp_defaults();

	vp_make(&e, vp_open(), &o);
	shared_queue = ibv_create_srq(e.pd, &init);
	channel = ibv_create_comp_channel(e.ctx);
	cq = ibv_create_cq(e.ctx, 10, NULL, channel, 0);
	td = ibv_alloc_td(e.ctx, &no_mask);
	attr.pd = e.pd;
	attr.td = td;
	parent = ibv_alloc_parent_domain(e.ctx, &attr);
	CHECK(channel && cq && td && parent && shared_queue);
}

/* Also: a QP or an SRQ in a parent domain keeps it, as it keeps the PD below. */
static void teardown(void)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq;
	struct ibv_qp_init_attr_ex init = good_qp();
	struct ibv_qp *qp;

	init.pd = parent;
	qp = ibv_create_qp_ex(e.ctx, &init);
	CHECK(qp);
	CHECK_EQ(ibv_dealloc_pd(parent), EBUSY);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	srq = ibv_create_srq(parent, &shared);
	CHECK(srq);
	CHECK_EQ(ibv_dealloc_pd(parent), EBUSY);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_dealloc_pd(parent), 0);
	CHECK_EQ(ibv_dealloc_td(td), 0);
	CHECK_EQ(ibv_destroy_srq(shared_queue), 0);
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	CHECK_EQ(ibv_destroy_comp_channel(channel), 0);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

int main(void)
{
	unsigned before;
	char how[300];

	snprintf(log_file, sizeof log_file, "%s/log", getenv("WEFT_RUNTIME_DIR"));
	snprintf(how, sizeof how, "info:%s", log_file);
	setenv("WEFT_LOG", how, 1);
	setup();
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		check_case("%s", cases[i].name);
		errno = 0;
		before = cases[i].why ? lines_with(log_file, cases[i].why) : 0;
		CHECK_EQ(cases[i].fn(), cases[i].want);
		if (cases[i].why)
			CHECK_EQ(lines_with(log_file, cases[i].why), before + 1);
	}
	teardown();
	return check_result();
}
