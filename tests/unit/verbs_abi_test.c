// SPDX-License-Identifier: BSD-3-Clause
// What the ABI layer makes of the HCA's answers: errors, counts, waits, truncation.
#include "tests/unit/fake_hca.h"
#include "verbs/context.h"
#include "verbs/query.h"

#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { NEVER_TOUCHED = 12345 };

struct fixture {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	void *cq_cookie;
	struct ibv_qp *qp;
	void *qp_cookie;
};

static int set_up(void **state)
{
	static struct fixture f;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .qp_context = &f};

	f.context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	f.pd = ibv_alloc_pd(f.context);
	f.channel = ibv_create_comp_channel(f.context);
	f.cq = ibv_create_cq(f.context, 10, &f, f.channel, 0);
	f.cq_cookie = fake_last_cookie;
	init.send_cq = init.recv_cq = f.cq;
	f.qp = ibv_create_qp(f.pd, &init);
	f.qp_cookie = fake_last_cookie;
	*state = &f;
	return init.cap.max_send_sge == HCA_MAX_SGE ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->qp)
		ibv_destroy_qp(f->qp);
	if (f->cq)
		ibv_destroy_cq(f->cq);
	ibv_destroy_comp_channel(f->channel);
	ibv_dealloc_pd(f->pd);
	ibv_close_device(f->context);
	return fake_live_objects;
}

static void test_fields(void **state)
{
	struct fixture *f = *state;

	assert_ptr_equal(f->cq->context, f->context);
	assert_ptr_equal(f->cq->channel, f->channel);
	assert_ptr_equal(f->cq->cq_context, f);
	assert_int_equal(f->cq->cqe, 64);
	assert_int_equal(f->channel->refcnt, 1);
	assert_int_equal(f->qp->qp_num, 0x11);
	assert_ptr_equal(f->qp->send_cq, f->cq);
	assert_ptr_equal(f->qp->pd, f->pd);
	assert_int_equal(f->pd->handle, 7);
}

/* Positive errno, -1 and NULL, each where its man page says; and errno with all of them. */
static void test_error_conventions(void **state)
{
	struct fixture *f = *state;
	struct ibv_recv_wr recv = {0}, *bad_recv = NULL;
	struct ibv_send_wr send = {0}, *bad_send = NULL;
	struct ibv_qp_attr attr = {0};
	struct ibv_wc wc;
	void *context;

	fake_error = -ENOMEM;
	assert_null(ibv_alloc_pd(f->context));
	assert_int_equal(errno, ENOMEM);
	fake_error = -EINVAL;
	assert_int_equal(ibv_modify_qp(f->qp, &attr, IBV_QP_STATE), EINVAL);
	fake_error = -EBUSY;
	assert_int_equal(ibv_dealloc_pd(f->pd), EBUSY);
	fake_error = -ENOMEM;
	assert_int_equal(ibv_post_send(f->qp, &send, &bad_send), ENOMEM);
	assert_ptr_equal(bad_send, &send);
	fake_error = -EINVAL;
	assert_int_equal(ibv_post_recv(f->qp, &recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv);
	fake_error = -EIO;
	assert_true(ibv_poll_cq(f->cq, 1, &wc) < 0);
	fcntl(f->channel->fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(ibv_get_cq_event(f->channel, &f->cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_null(ibv_create_cq(f->context, 1, NULL, NULL, f->context->num_comp_vectors));
	assert_int_equal(errno, EINVAL);
}

static void test_success_leaves_errno(void **state)
{
	struct fixture *f = *state;
	struct ibv_port_attr port;
	struct ibv_send_wr send = {0}, *bad;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_wc wc;
	struct ibv_mr *mr;

	errno = NEVER_TOUCHED;
	assert_int_equal(verbs_query_port(f->context, 1, &port, sizeof(port)), 0);
	assert_int_equal(ibv_modify_qp(f->qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(f->qp->state, IBV_QPS_INIT);
	assert_int_equal(ibv_post_send(f->qp, &send, &bad), 0);
	assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 1);
	assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
	mr = ibv_reg_mr(f->pd, &port, sizeof(port), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(errno, NEVER_TOUCHED);
}

static void test_reg_mr_access(void **state)
{
	struct fixture *f = *state;
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr_iova2(f->pd, buf, sizeof(buf), 0x1000,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);

	assert_int_equal(fake_mr.access, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(fake_mr.iova, 0x1000);
	assert_int_equal(mr->lkey, 0x1234);
	assert_int_equal(mr->length, sizeof(buf));
	ibv_dereg_mr(mr);
	mr = ibv_reg_mr(f->pd, buf, sizeof(buf), IBV_ACCESS_ZERO_BASED);
	assert_int_equal(fake_mr.iova, 0);
	assert_int_equal(fake_mr.access, 0);
	ibv_dereg_mr(mr);
	mr = ibv_reg_mr(f->pd, buf, sizeof(buf), 0);
	assert_int_equal(fake_mr.iova, (uintptr_t)buf);
	ibv_dereg_mr(mr);
}

/* A program built against an older or newer header passes another size. */
static void test_query_port_sizes(void **state)
{
	struct fixture *f = *state;
	union {
		struct ibv_port_attr attr;
		unsigned char bytes[80];
	} u;

	memset(&u, 0xaa, sizeof(u));
	assert_int_equal(ibv_query_port(f->context, 1, (struct _compat_ibv_port_attr *)&u.attr), 0);
	assert_int_equal(u.attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(u.bytes[47], IBV_QPF_GRH_REQUIRED);
	assert_int_equal(u.bytes[48], 0xaa);
	memset(&u, 0xaa, sizeof(u));
	assert_int_equal(verbs_query_port(f->context, 1, &u.attr, 60), 0);
	assert_int_equal(u.bytes[59], 0);
	assert_int_equal(u.bytes[60], 0xaa);
	assert_int_equal(u.attr.max_msg_sz, 1u << 31);
	assert_int_equal(u.attr.max_vl_num, 4);
	assert_int_equal(u.attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(verbs_query_port(f->context, 2, &u.attr, sizeof(u.attr)), EINVAL);
}

/* 8 bits hold no speed above NDR: newer headers have room for it. */
static void test_query_port_speeds(void **state)
{
	static const struct {
		uint16_t speed;
		uint8_t old;
	} cases[] = {{1, 1}, {8, 8}, {32, 32}, {128, 128}, {256, 128}};
	struct fixture *f = *state;
	const uint16_t was = fake_page.port[0].active_speed;
	union {
		struct ibv_port_attr attr;
		struct {
			unsigned char all_before[52]; /* active_speed_ex: rdma-core 50 */
			uint32_t speed, more;
		};
	} newer;

	fake_page.port[0].cap_mask2 = 0x1800;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&newer, 0xaa, sizeof(newer));
		fake_page.port[0].active_speed = cases[i].speed;
		assert_int_equal(verbs_query_port(f->context, 1, &newer.attr, 56), 0);
		assert_int_equal(newer.attr.active_speed, cases[i].old);
		assert_int_equal(newer.attr.port_cap_flags2, 0x1800);
		assert_int_equal(newer.speed, cases[i].speed);
		assert_int_equal(newer.more, 0xaaaaaaaa);
	}
	fake_page.port[0].active_speed = was;
	fake_page.port[0].cap_mask2 = 0;
}

static void test_query_device_ex_sizes(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr_ex attr;

	memset(&attr, 0xaa, sizeof(attr));
	assert_int_equal(ibv_query_device_ex(f->context, NULL, &attr), 0);
	assert_int_equal(attr.orig_attr.phys_port_cnt, 1);
	assert_int_equal(attr.phys_port_cnt_ex, 1);
	assert_int_equal(attr.odp_caps.general_caps, 0);
	assert_int_equal(verbs_query_device_ex(f->context, NULL, &attr, 8), EINVAL);
}

static void test_gids(void **state)
{
	struct fixture *f = *state;
	struct ibv_gid_entry entry, table[4];
	union ibv_gid gid, zero = {0};
	enum verbs_gid_sysfs_type type;

	assert_int_equal(ibv_query_gid_ex(f->context, 1, 2, &entry, 0), 0);
	assert_int_equal(entry.gid_index, 2);
	assert_int_equal(entry.ndev_ifindex, 1);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(ibv_query_gid_ex(f->context, 1, 1, &entry, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(f->context, 1, FABRIC_MAX_GIDS, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(f->context, 1, 0, &entry, 1), EOPNOTSUPP);
	assert_int_equal(ibv_query_gid(f->context, 1, 1, &gid), 0);
	assert_memory_equal(&gid, &zero, sizeof(gid));
	assert_int_equal(ibv_query_gid(f->context, 1, -1, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid_table(f->context, table, 4, 0), 2);
	assert_int_equal(table[1].gid_index, 2);
	assert_int_equal(ibv_query_gid_table(f->context, table, 1, 0), -EINVAL);
	assert_int_equal(verbs_query_gid_type(f->context, 1, 0, &type), 0);
	assert_int_equal(type, GID_SYSFS_ROCE_V2);
}

static void test_pkeys(void **state)
{
	struct fixture *f = *state;
	__be16 pkey;

	assert_int_equal(ibv_query_pkey(f->context, 1, 0, &pkey), 0);
	assert_int_equal(be16toh(pkey), 0xffff);
	assert_int_equal(ibv_query_pkey(f->context, 1, 1, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(f->context, 1, htobe16(0xffff)), 0);
	assert_int_equal(ibv_get_pkey_index(f->context, 1, htobe16(0x8001)), -1);
}

static void test_query_qp_gives_our_pointers(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(f->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_ptr_equal(init.send_cq, f->cq);
	assert_ptr_equal(init.qp_context, f);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
}

static void test_create_qp_ex(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr_ex init = {
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = f->pd,
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(f->context, &init);

	assert_non_null(qp);
	assert_int_equal(init.cap.max_send_sge, HCA_MAX_SGE);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init.send_ops_flags = IBV_QP_EX_WITH_SEND;
	qp = ibv_create_qp_ex(f->context, &init);
	assert_non_null(qp);
	assert_ptr_equal(ibv_qp_to_qp_ex(qp), qp);
	fake_error = -ENOMEM; /* of the second request: reported at the end, once */
	ibv_wr_start(ibv_qp_to_qp_ex(qp));
	ibv_wr_send(ibv_qp_to_qp_ex(qp));
	ibv_wr_rdma_read(ibv_qp_to_qp_ex(qp), 1, 2);
	assert_int_equal(ibv_wr_complete(ibv_qp_to_qp_ex(qp)), ENOMEM);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	init.send_ops_flags = IBV_QP_EX_WITH_TSO;
	assert_null(ibv_create_qp_ex(f->context, &init));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void test_ece(void **state)
{
	struct fixture *f = *state;
	struct ibv_ece ece = {.comp_mask = 7};

	assert_int_equal(ibv_query_ece(f->qp, &ece), 0);
	assert_int_equal(ece.vendor_id, 0xffffff);
	assert_int_equal(ece.comp_mask, 0);
	ece.options = 0x55; /* none that we have: given back without */
	assert_int_equal(ibv_set_ece(f->qp, &ece), 0);
	assert_int_equal(ece.options, 0);
	ece.vendor_id = 0x2c9;
	assert_int_equal(ibv_set_ece(f->qp, &ece), EINVAL);
	ece.vendor_id = 0;
	assert_int_equal(ibv_set_ece(f->qp, &ece), EOPNOTSUPP);
}

/* Acknowledges what destroy waits for; what a poll before the last of it finds. */
static void *ack_cq_later(void *arg)
{
	struct fixture *f = arg;
	int before = fake_live_objects;
	intptr_t polled;
	struct ibv_wc wc;
	struct ibv_async_event event = {.element.cq = f->cq, .event_type = IBV_EVENT_CQ_ERR};

	usleep(20000);
	ibv_ack_cq_events(f->cq, 2);
	usleep(20000);
	__atomic_store_n(&f->cq_cookie, NULL, __ATOMIC_RELEASE);
	polled = fake_live_objects == before ? ibv_poll_cq(f->cq, 1, &wc) : -1;
	ibv_ack_async_event(&event);
	return (void *)polled;
}

/* Destroy returns after the last ack of both kinds and not before. */
static void test_destroy_cq_waits_for_acks(void **state)
{
	struct fixture *f = *state;
	struct ibv_async_event event;
	struct ibv_cq *cq;
	pthread_t thread;
	void *context, *polled;

	for (int i = 0; i < 2; i++) {
		fake_raise_comp(f->cq_cookie);
		assert_int_equal(ibv_get_cq_event(f->channel, &cq, &context), 0);
		assert_ptr_equal(cq, f->cq);
		assert_ptr_equal(context, f);
	}
	fake_raise_async(IBV_EVENT_CQ_ERR, f->cq_cookie);
	assert_int_equal(ibv_get_async_event(f->context, &event), 0);
	assert_ptr_equal(event.element.cq, f->cq);
	pthread_create(&thread, NULL, ack_cq_later, f);
	assert_int_equal(ibv_destroy_cq(f->cq), 0);
	assert_null(__atomic_load_n(&f->cq_cookie, __ATOMIC_ACQUIRE));
	pthread_join(thread, &polled);
	f->cq = NULL;
	assert_ptr_equal(polled, (void *)1); /* its memory was still there */
	assert_int_equal(f->channel->refcnt, 0);
}

static void *ack_qp_later(void *arg)
{
	struct fixture *f = arg;
	struct ibv_async_event event = {.element.qp = f->qp, .event_type = IBV_EVENT_COMM_EST};

	usleep(20000);
	__atomic_store_n(&f->qp_cookie, NULL, __ATOMIC_RELEASE);
	ibv_ack_async_event(&event);
	return NULL;
}

static void test_destroy_qp_waits_for_acks(void **state)
{
	struct fixture *f = *state;
	struct ibv_async_event event;
	pthread_t thread;

	fake_raise_async(IBV_EVENT_COMM_EST, f->qp_cookie);
	assert_int_equal(ibv_get_async_event(f->context, &event), 0);
	assert_ptr_equal(event.element.qp, f->qp);
	pthread_create(&thread, NULL, ack_qp_later, f);
	assert_int_equal(ibv_destroy_qp(f->qp), 0);
	assert_null(__atomic_load_n(&f->qp_cookie, __ATOMIC_ACQUIRE));
	pthread_join(thread, NULL);
	f->qp = NULL;
}

/* An event that was taken before its object went is no event; the next one is delivered. */
static void test_events_of_destroyed_objects_vanish(void **state)
{
	struct fixture *f = *state;
	struct ibv_async_event event;
	void *old = f->qp_cookie;

	assert_int_equal(ibv_destroy_qp(f->qp), 0);
	f->qp = NULL;
	fake_raise_async(IBV_EVENT_QP_FATAL, old);
	fake_raise_async(IBV_EVENT_PORT_ACTIVE, NULL);
	assert_int_equal(ibv_get_async_event(f->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(event.element.port_num, 1);
	ibv_ack_async_event(&event);
	fcntl(f->context->async_fd, F_SETFL, O_NONBLOCK);
	fake_raise_async(IBV_EVENT_QP_FATAL, old);
	assert_int_equal(ibv_get_async_event(f->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
	fcntl(f->context->async_fd, F_SETFL, 0);
}

/* A busy object stays whole: its events still find it. */
static void test_failed_destroy_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct ibv_async_event event;

	fake_error = -EBUSY;
	assert_int_equal(ibv_destroy_cq(f->cq), EBUSY);
	fake_raise_async(IBV_EVENT_CQ_ERR, f->cq_cookie);
	assert_int_equal(ibv_get_async_event(f->context, &event), 0);
	assert_ptr_equal(event.element.cq, f->cq);
	ibv_ack_async_event(&event);
}

static void test_contexts_are_independent(void **state)
{
	struct fixture *f = *state;
	struct ibv_context *other = ibv_open_device(f->context->device);

	assert_ptr_not_equal(other, f->context);
	assert_int_not_equal(other->async_fd, f->context->async_fd);
	assert_int_equal(ibv_close_device(other), 0);
	assert_true(fcntl(f->context->async_fd, F_GETFD) >= 0);
}

static void test_many_event_sources(void **state)
{
	enum { N = 200 };
	struct event_source s[N];

	(void)state;
	for (int i = 0; i < N; i++)
		assert_int_equal(event_source_add(&s[i]), 0);
	for (int i = 0; i < N; i++)
		assert_ptr_equal(event_source_count(event_cookie(&s[i]), EVENT_COMP), &s[i]);
	for (int i = 0; i < N; i++) {
		assert_int_equal(s[i].comp_count, 1);
		event_source_del(&s[i]);
		assert_null(event_source_count(event_cookie(&s[i]), EVENT_COMP));
	}
	assert_null(event_source_count(NULL, EVENT_ASYNC));
}

static void test_init_ah_from_wc(void **state)
{
	struct fixture *f = *state;
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .sl = 3};
	struct ibv_ah_attr attr;
	union {
		struct ibv_grh grh;
		uint8_t bytes[40];
	} u = {0};
	static const uint8_t ip[20] = {
		0x45, 0x68, [8] = 63, 17, [12] = 10, 1, 2, 3, [16] = 127, 0, 0, 1};

	memcpy(u.bytes + 20, ip, sizeof(ip));
	assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &u.grh, &attr), 0);
	assert_int_equal(attr.is_global, 1);
	assert_int_equal(attr.grh.sgid_index, 2);
	assert_int_equal(attr.grh.dgid.raw[12], 10);
	assert_int_equal(attr.grh.hop_limit, 63);
	assert_int_equal(attr.grh.traffic_class, 0x68);
	memset(&u, 0, sizeof(u));
	u.grh.version_tclass_flow = htobe32(0x61200345);
	u.grh.dgid.raw[0] = 0xfe;
	u.grh.dgid.raw[1] = 0x80;
	u.grh.dgid.raw[15] = 1;
	assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &u.grh, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 0);
	assert_int_equal(attr.grh.flow_label, 0x345);
	assert_int_equal(attr.grh.traffic_class, 0x12);
	u.grh.dgid.raw[15] = 9;
	assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &u.grh, &attr), -1);
}

static void test_resolve_eth(void **state)
{
	struct fixture *f = *state;
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh.dgid.raw = {0xfe, 0x80, [8] = 0x02, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55},
	};
	static const uint8_t expected[] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55};
	static const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 129, 2, 3}};
	static const uint8_t group_mac[] = {0x01, 0x00, 0x5e, 0x01, 2, 3};
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vid;

	assert_int_equal(ibv_resolve_eth_l2_from_gid(f->context, &attr, mac, &vid), 0);
	assert_memory_equal(mac, expected, sizeof(mac));
	assert_int_equal(vid, 0xffff);
	attr.grh.dgid = group;
	assert_int_equal(ibv_resolve_eth_l2_from_gid(f->context, &attr, mac, NULL), 0);
	assert_memory_equal(mac, group_mac, sizeof(mac));
	attr.is_global = 0;
	assert_int_equal(ibv_resolve_eth_l2_from_gid(f->context, &attr, mac, NULL), EINVAL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_fields),
		TEST(test_error_conventions),
		TEST(test_success_leaves_errno),
		TEST(test_reg_mr_access),
		TEST(test_query_port_sizes),
		TEST(test_query_port_speeds),
		TEST(test_query_device_ex_sizes),
		TEST(test_gids),
		TEST(test_pkeys),
		TEST(test_query_qp_gives_our_pointers),
		TEST(test_create_qp_ex),
		TEST(test_ece),
		TEST(test_destroy_cq_waits_for_acks),
		TEST(test_destroy_qp_waits_for_acks),
		TEST(test_events_of_destroyed_objects_vanish),
		TEST(test_failed_destroy_changes_nothing),
		TEST(test_contexts_are_independent),
		TEST(test_many_event_sources),
		TEST(test_init_ah_from_wc),
		TEST(test_resolve_eth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
