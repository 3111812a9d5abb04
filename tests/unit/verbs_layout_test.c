// SPDX-License-Identifier: BSD-3-Clause
// The sizes and offsets that compiled programs rely on, and how a context's tables are filled.
#include "tests/unit/fake_hca.h"
#include "verbs/context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define FROM_END(op) (sizeof(struct verbs_context) - offsetof(struct verbs_context, op))

static void test_device_layout(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct ibv_device), 664);
	assert_int_equal(offsetof(struct ibv_device, node_type), 16);
	assert_int_equal(offsetof(struct ibv_device, transport_type), 20);
	assert_int_equal(offsetof(struct ibv_device, name), 24);
	assert_int_equal(offsetof(struct ibv_device, dev_name), 88);
	assert_int_equal(offsetof(struct ibv_device, dev_path), 152);
	assert_int_equal(offsetof(struct ibv_device, ibdev_path), 408);
	assert_int_equal(offsetof(struct verbs_device, not_a_vendor_device), 664);
}

#ifdef __x86_64__
static void test_context_layout(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct ibv_context), 328);
	assert_int_equal(offsetof(struct ibv_context, ops), 8);
	assert_int_equal(offsetof(struct ibv_context, ops.alloc_mw), 64);
	assert_int_equal(offsetof(struct ibv_context, ops.poll_cq), 96);
	assert_int_equal(offsetof(struct ibv_context, ops.req_notify_cq), 104);
	assert_int_equal(offsetof(struct ibv_context, ops.post_srq_recv), 168);
	assert_int_equal(offsetof(struct ibv_context, ops.post_send), 208);
	assert_int_equal(offsetof(struct ibv_context, ops.post_recv), 216);
	assert_int_equal(offsetof(struct ibv_context, cmd_fd), 264);
	assert_int_equal(offsetof(struct ibv_context, async_fd), 268);
	assert_int_equal(offsetof(struct ibv_context, num_comp_vectors), 272);
	assert_int_equal(offsetof(struct ibv_context, mutex), 280);
	assert_int_equal(offsetof(struct ibv_context, abi_compat), 320);
	assert_int_equal(sizeof(struct verbs_context), 648);
	assert_int_equal(FROM_END(query_port), 648);
	assert_int_equal(FROM_END(create_cq_ex), 448);
	assert_int_equal(FROM_END(query_device_ex), 432);
	assert_int_equal(FROM_END(create_qp_ex), 384);
	assert_int_equal(FROM_END(close_xrcd), 352);
	assert_int_equal(FROM_END(sz), 336);
	assert_int_equal(FROM_END(context), 328);
}

static void test_object_sizes(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct ibv_pd), 16);
	assert_int_equal(sizeof(struct ibv_mr), 48);
	assert_int_equal(sizeof(struct ibv_comp_channel), 16);
	assert_int_equal(offsetof(struct ibv_comp_channel, fd), 8);
	assert_int_equal(sizeof(struct ibv_cq), 128);
	assert_int_equal(sizeof(struct ibv_cq_ex), 288);
	assert_int_equal(sizeof(struct ibv_qp), 160);
	assert_int_equal(offsetof(struct ibv_qp_ex, wr_atomic_write), 344);
	assert_int_equal(offsetof(struct verbs_qp, wr_flush), 352); /* whatever the header has */
	assert_int_equal(sizeof(struct ibv_srq), 128);
	assert_int_equal(sizeof(struct ibv_wc), 48);
	assert_int_equal(sizeof(struct ibv_send_wr), 128);
	assert_int_equal(sizeof(struct ibv_recv_wr), 32);
	assert_int_equal(sizeof(struct ibv_device_attr), 232);
	assert_int_equal(sizeof(struct ibv_device_attr_ex), 400);
	assert_int_equal(offsetof(struct ibv_port_attr, port_cap_flags2), 48);
	assert_int_equal(sizeof(struct ibv_qp_attr), 144);
	assert_int_equal(sizeof(struct ibv_gid_entry), 32);
	assert_int_equal(sizeof(struct ibv_async_event), 16);
}
#endif

static void test_private_structs_begin_with_public(void **state)
{
	(void)state;
	assert_int_equal(offsetof(struct verbs_pd, pd), 0);
	assert_int_equal(offsetof(struct verbs_mr, mr), 0);
	assert_int_equal(offsetof(struct verbs_channel, ch), 0);
	assert_int_equal(offsetof(struct verbs_cq, cq), 0);
	assert_int_equal(offsetof(struct verbs_qp, qp), 0);
	assert_true(offsetof(struct verbs_cq, hca) >= sizeof(struct ibv_cq_ex));
	assert_true(offsetof(struct verbs_qp, hca) >= sizeof(struct ibv_qp_ex));
}

static void test_device_list_is_stable(void **state)
{
	struct ibv_device **a, **b;
	void *zero[2] = {0};
	int n;

	(void)state;
	a = ibv_get_device_list(&n);
	b = ibv_get_device_list(NULL);
	assert_int_equal(n, 1);
	assert_ptr_equal(a[0], b[0]);
	assert_null(a[1]);
	assert_memory_equal(a[0], zero, sizeof(zero));
	assert_memory_equal((char *)a[0] + 664, zero, sizeof(void *));
	assert_string_equal(ibv_get_device_name(a[0]), "weft0");
	assert_string_equal(a[0]->ibdev_path, "/sys/class/infiniband/weft0");
	assert_int_equal(ibv_get_device_guid(a[0]), fake_page.node_guid);
	ibv_free_device_list(a);
	ibv_free_device_list(b);
}

static void test_unreachable_daemon(void **state)
{
	int n = 5;

	(void)state;
	fake_error = -ENOTCONN;
	errno = 0;
	assert_null(ibv_get_device_list(&n));
	assert_int_equal(errno, ENOTCONN);
	assert_int_equal(n, 0);
}

static void test_every_context_slot_is_filled(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = ibv_open_device(list[0]);
	void *slot[sizeof(c->ops) / sizeof(void *)];

	(void)state;
	memcpy(slot, &c->ops, sizeof(slot));
	assert_int_equal(sizeof(slot) / sizeof(*slot), 32);
	for (size_t i = 0; i < sizeof(slot) / sizeof(*slot); i++)
		assert_non_null(slot[i]);
	assert_ptr_equal(c->abi_compat, (void *)-1);
	assert_int_equal(verbs_get_ctx(c)->sz, sizeof(struct verbs_context));
	assert_null(verbs_get_ctx(c)->ibv_create_flow);
	assert_true(c->async_fd >= 0);
	assert_true(c->num_comp_vectors >= 1);
	assert_int_equal(ibv_close_device(c), 0);
	ibv_free_device_list(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device_layout),
#ifdef __x86_64__
		cmocka_unit_test(test_context_layout),
		cmocka_unit_test(test_object_sizes),
#endif
		cmocka_unit_test(test_private_structs_begin_with_public),
		cmocka_unit_test(test_unreachable_daemon),
		cmocka_unit_test(test_device_list_is_stable),
		cmocka_unit_test(test_every_context_slot_is_filled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
