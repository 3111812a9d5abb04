// SPDX-License-Identifier: BSD-3-Clause
/* libibumad above the umad file: layouts, headers, addresses, agents, sending and receiving. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/fake_umad_file.h"
#include "tests/unit/umad_tree.h"
#include "umad/newer.h"
#include "umad/umad.h"

enum { HEADER = 64, OLD_HEADER = 56, MAD = 256 };

static void test_layouts(void **state)
{
	(void)state;
	assert_int_equal(sizeof(ib_user_mad_t), HEADER);
	assert_int_equal(offsetof(ib_user_mad_t, addr), 20);
	assert_int_equal(offsetof(ib_user_mad_t, data), HEADER);
	assert_int_equal(sizeof(ib_mad_addr_t), 44);
	assert_int_equal(offsetof(ib_mad_addr_t, qkey), 4);
	assert_int_equal(offsetof(ib_mad_addr_t, lid), 8);
	assert_int_equal(offsetof(ib_mad_addr_t, grh_present), 12);
	assert_int_equal(offsetof(ib_mad_addr_t, gid), 16);
	assert_int_equal(offsetof(ib_mad_addr_t, flow_label), 32);
	assert_int_equal(offsetof(ib_mad_addr_t, pkey_index), 36);
	assert_int_equal(sizeof(struct umad_reg_attr), 32);
	assert_int_equal(offsetof(struct umad_reg_attr, flags), 4);
	assert_int_equal(offsetof(struct umad_reg_attr, method_mask), 8);
	assert_int_equal(offsetof(struct umad_reg_attr, oui), 24);
	assert_int_equal(offsetof(struct umad_reg_attr, rmpp_version), 28);
	assert_int_equal(sizeof(struct umad_device_node), 16);
	assert_int_equal(offsetof(struct umad_device_node, ca_name), 8);
	assert_int_equal(sizeof(struct umad_ca_pair), 48);
	assert_int_equal(offsetof(struct umad_ca_pair, smi_preferred_port), 20);
	assert_int_equal(offsetof(struct umad_ca_pair, gsi_name), 24);
	assert_int_equal(offsetof(struct umad_ca_pair, gsi_preferred_port), 44);
}

static void test_port_layouts(void **state)
{
	(void)state;
	assert_int_equal(sizeof(umad_port_t), 112);
	assert_int_equal(offsetof(umad_port_t, portnum), 20);
	assert_int_equal(offsetof(umad_port_t, base_lid), 24);
	assert_int_equal(offsetof(umad_port_t, lmc), 28);
	assert_int_equal(offsetof(umad_port_t, sm_lid), 32);
	assert_int_equal(offsetof(umad_port_t, sm_sl), 36);
	assert_int_equal(offsetof(umad_port_t, state), 40);
	assert_int_equal(offsetof(umad_port_t, phys_state), 44);
	assert_int_equal(offsetof(umad_port_t, rate), 48);
	assert_int_equal(offsetof(umad_port_t, capmask), 52);
	assert_int_equal(offsetof(umad_port_t, gid_prefix), 56);
	assert_int_equal(offsetof(umad_port_t, port_guid), 64);
	assert_int_equal(offsetof(umad_port_t, pkeys_size), 72);
	assert_int_equal(offsetof(umad_port_t, pkeys), 80);
	assert_int_equal(offsetof(umad_port_t, link_layer), 88);
	assert_int_equal(sizeof(umad_ca_t), 208);
	assert_int_equal(offsetof(umad_ca_t, node_type), 20);
	assert_int_equal(offsetof(umad_ca_t, numports), 24);
	assert_int_equal(offsetof(umad_ca_t, fw_ver), 28);
	assert_int_equal(offsetof(umad_ca_t, ca_type), 48);
	assert_int_equal(offsetof(umad_ca_t, hw_ver), 88);
	assert_int_equal(offsetof(umad_ca_t, node_guid), 112);
	assert_int_equal(offsetof(umad_ca_t, system_guid), 120);
	assert_int_equal(offsetof(umad_ca_t, ports), 128);
}

static int open_anew(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof fake);
	fake.id = 5;
	return umad_open_port("mlx0", 1) == FAKE_FD ? 0 : -1;
}

static void test_open(void **state)
{
	(void)state;
	assert_string_equal(fake.device, "mlx0");
	assert_int_equal(fake.port, 1);
	assert_int_equal(fake.flags, O_RDWR | O_NONBLOCK);
	assert_int_equal(umad_get_fd(FAKE_FD), FAKE_FD);
	fake.open_rc = -EOPNOTSUPP;
	assert_int_equal(umad_open_port("mlx0", 1), -EIO);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(umad_open_port("mlx0", 2), -EINVAL);
	assert_int_equal(fake.n_open, 2);
}

static void test_header_sizes(void **state)
{
	ib_user_mad_t *mad = umad_alloc(1, HEADER + MAD);

	(void)state;
	assert_int_equal(umad_size(), HEADER);
	assert_ptr_equal(umad_get_mad(mad), (char *)mad + HEADER);
	umad_set_pkey(mad, 3);
	assert_int_equal(mad->addr.pkey_index, 3);
	assert_int_equal(umad_get_pkey(mad), 3);
	fake.enable_rc = -EINVAL;
	assert_int_equal(umad_open_port("mlx0", 1), FAKE_FD);
	assert_int_equal(umad_size(), OLD_HEADER);
	assert_ptr_equal(umad_get_mad(mad), (char *)mad + OLD_HEADER);
	umad_set_pkey(mad, 4); /* it would be the first bytes of the MAD */
	assert_int_equal(mad->addr.pkey_index, 3);
	assert_int_equal(umad_get_pkey(mad), 0);
	umad_free(mad);
}

static void test_addresses(void **state)
{
	ib_user_mad_t mad = {.status = 110}, copy;
	ib_mad_addr_t grh = {.gid = {0xfe, 0x80, [15] = 9},
		.flow_label = 0x12345,
		.hop_limit = 64,
		.traffic_class = 7};

	(void)state;
	umad_set_addr(&mad, 0x1234, 1, 5, 0x80010000);
	assert_int_equal(mad.addr.lid, htobe16(0x1234));
	assert_int_equal(mad.addr.qpn, htobe32(1));
	assert_int_equal(mad.addr.qkey, htobe32(0x80010000));
	assert_int_equal(mad.addr.sl, 5);
	copy = mad;
	umad_set_addr_net(&mad, htobe16(0x1234), htobe32(1), 5, htobe32(0x80010000));
	assert_memory_equal(&mad, &copy, sizeof mad);
	umad_set_grh(&mad, &grh);
	assert_int_equal(mad.addr.grh_present, 1);
	assert_memory_equal(mad.addr.gid, grh.gid, 16);
	assert_int_equal(mad.addr.flow_label, htobe32(0x12345));
	assert_int_equal(mad.addr.hop_limit, 64);
	assert_int_equal(mad.addr.traffic_class, 7);
	umad_set_grh(&mad, NULL);
	assert_int_equal(mad.addr.grh_present, 0);
	assert_int_equal(umad_status(&mad), 110);
	assert_ptr_equal(umad_get_mad_addr(&mad), &mad.addr);
}

static void test_register(void **state)
{
	long mask[2] = {0x6, 0x1};
	uint8_t oui[3] = {0x00, 0x14, 0x06};

	(void)state;
	assert_int_equal(umad_register(FAKE_FD, 0x81, 1, 0, mask), 5);
	assert_int_equal(fake.agent.qpn, 0);
	assert_int_equal(fake.agent.oui, 0x001405);
	assert_int_equal(fake.agent.method_mask[0], 0x6);
	assert_int_equal(fake.agent.method_mask[1], 0x1);
	assert_int_equal(umad_register(FAKE_FD, 0x03, 2, 1, NULL), 5);
	assert_int_equal(fake.agent.qpn, 1);
	assert_int_equal(fake.agent.class_version, 2);
	assert_int_equal(fake.agent.rmpp_version, 1);
	assert_int_equal(fake.agent.method_mask[0], 0);
	assert_int_equal(umad_register_oui(FAKE_FD, 0x30, 1, oui, mask), 5);
	assert_int_equal(fake.agent.oui, 0x001406);
	assert_int_equal(fake.agent.class_version, 1);
	assert_int_equal(umad_register_oui(FAKE_FD, 0x2f, 1, oui, mask), -EINVAL);
	assert_int_equal(umad_register_oui(FAKE_FD, 0x50, 1, oui, mask), -EINVAL);
	fake.register_rc = -EPROTONOSUPPORT;
	assert_int_equal(umad_register(FAKE_FD, 0x01, 1, 0, mask), -EPERM);
	assert_int_equal(errno, EPROTONOSUPPORT);
	assert_int_equal(umad_register_oui(FAKE_FD, 0x30, 1, oui, mask), -EPERM);
}

static void test_register2(void **state)
{
	struct umad_reg_attr attr = {.mgmt_class = 0x30,
		.mgmt_class_version = 1,
		.flags = UMAD_USER_RMPP,
		.method_mask = {0x2, 0x8},
		.oui = 0x001405,
		.rmpp_version = 1};
	uint32_t id = 0;

	(void)state;
	assert_int_equal(umad_register2(FAKE_FD, &attr, &id), 0);
	assert_int_equal(id, 5);
	assert_int_equal(fake.agent.flags, UMAD_USER_RMPP);
	assert_int_equal(fake.agent.oui, 0x001405);
	assert_int_equal(fake.agent.method_mask[1], 0x8);
	assert_int_equal(fake.n_register, 0);
	assert_int_equal(umad_register2(FAKE_FD, NULL, &id), EINVAL);
	assert_int_equal(umad_register2(FAKE_FD, &attr, NULL), EINVAL);
	attr.oui = 0;
	assert_int_equal(umad_register2(FAKE_FD, &attr, &id), EINVAL);
	attr.oui = 0x01001405;
	assert_int_equal(umad_register2(FAKE_FD, &attr, &id), EINVAL);
	assert_int_equal(fake.n_register2, 1);
}

/* A file without the newer call: the older one serves agents without flags. */
static void test_register_fallback(void **state)
{
	struct umad_reg_attr attr = {.mgmt_class = 0x81, .mgmt_class_version = 1};
	uint32_t id = 0;

	(void)state;
	fake.register2_rc = -ENOTTY;
	assert_int_equal(umad_register2(FAKE_FD, &attr, &id), 0);
	assert_int_equal(id, 5);
	assert_int_equal(fake.n_register, 1);
	assert_int_equal(fake.agent.qpn, 0);
	fake.register2_rc = -EINVAL;
	fake.register_rc = -ENOMEM;
	assert_int_equal(umad_register2(FAKE_FD, &attr, &id), ENOMEM);
	assert_int_equal(fake.n_register, 2);
	fake.register2_rc = -EPROTONOSUPPORT; /* no reason to try again */
	assert_int_equal(umad_register2(FAKE_FD, &attr, &id), EPROTONOSUPPORT);
	assert_int_equal(fake.n_register, 2);
	fake.register2_rc = -ENOTTY;
	attr.flags = UMAD_USER_RMPP;
	assert_int_equal(umad_register2(FAKE_FD, &attr, &id), ENOTTY);
	assert_int_equal(fake.n_register, 2);
	assert_int_equal(attr.flags, 0);
}

static void test_unregister(void **state)
{
	(void)state;
	assert_int_equal(umad_unregister(FAKE_FD, 7), 0);
	assert_int_equal(fake.unregistered, 7);
	fake.unregister_rc = -EINVAL;
	assert_int_equal(umad_unregister(FAKE_FD, 7), -1);
	assert_int_equal(errno, EINVAL);
}

static void test_send(void **state)
{
	struct {
		ib_user_mad_t head;
		uint8_t mad[MAD];
	} msg = {0};
	const ib_user_mad_t *sent = (void *)fake.written;

	(void)state;
	for (int i = 0; i < MAD; i++)
		msg.mad[i] = (uint8_t)i; /* bytes 8 to 15 are the transaction id */
	errno = 0;
	assert_int_equal(umad_send(FAKE_FD, 3, &msg, MAD, 200, 4), 0);
	assert_int_equal(errno, 0);
	assert_int_equal(fake.written_len, HEADER + MAD);
	assert_int_equal(sent->agent_id, 3);
	assert_int_equal(sent->timeout_ms, 200);
	assert_int_equal(sent->retries, 4);
	assert_memory_equal(fake.written + HEADER, msg.mad, MAD);
	fake.write_rc = -EINVAL; /* as for a transaction id that is in flight */
	assert_int_equal(umad_send(FAKE_FD, 3, &msg, MAD, 200, 4), -EIO);
	assert_int_equal(errno, EINVAL);
	fake.write_rc = HEADER;
	assert_int_equal(umad_send(FAKE_FD, 3, &msg, MAD, 200, 4), -EIO);
	assert_int_equal(errno, EIO);
	assert_int_equal(umad_send(FAKE_FD, 3, &msg, -100, 200, 4), -EIO);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(fake.n_write, 3);
}

static ib_user_mad_t *arrive(size_t len)
{
	ib_user_mad_t *mad = (void *)fake.message;

	memset(fake.message, 0xa5, sizeof fake.message);
	mad->agent_id = 9;
	mad->status = 0;
	mad->length = (uint32_t)len;
	fake.message_len = len;
	return mad;
}

static void test_recv(void **state)
{
	uint8_t buf[HEADER + MAD];
	int length = MAD;

	(void)state;
	arrive(HEADER + MAD);
	assert_int_equal(umad_recv(FAKE_FD, buf, &length, 0), 9);
	assert_int_equal(fake.n_wait, 0);
	assert_int_equal(fake.read_len, HEADER + MAD);
	assert_int_equal(length, MAD);
	assert_memory_equal(buf, fake.message, sizeof buf);
	arrive(HEADER + 24)->status = ETIMEDOUT; /* nobody answered */
	assert_int_equal(umad_recv(FAKE_FD, buf, &length, -1), 9);
	assert_int_equal(fake.waited_ms, -1);
	assert_int_equal(length, 24);
	assert_int_equal(umad_status(buf), ETIMEDOUT);
	arrive(HEADER);
	length = MAD;
	assert_int_equal(umad_recv(FAKE_FD, buf, &length, 0), 9);
	assert_int_equal(length, 0);
}

/* A message of several segments: the header says how much room it wants, and it is still there. */
static void test_recv_too_short(void **state)
{
	uint8_t buf[HEADER + 456];
	int length = MAD;

	(void)state;
	arrive(HEADER + 456);
	fake.read_rc = -ENOSPC;
	assert_int_equal(umad_recv(FAKE_FD, buf, &length, 0), -ENOSPC);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(length, 456);
	fake.read_rc = 0;
	assert_int_equal(umad_recv(FAKE_FD, buf, &length, 0), 9);
	assert_int_equal(length, 456);
	fake.enable_rc = -EINVAL;
	assert_int_equal(umad_open_port("mlx0", 1), FAKE_FD);
	arrive(OLD_HEADER + 456);
	fake.read_rc = -ENOSPC;
	length = MAD;
	assert_int_equal(umad_recv(FAKE_FD, buf, &length, 0), -ENOSPC);
	assert_int_equal(fake.read_len, OLD_HEADER + MAD);
	assert_int_equal(length, 456);
}

static void test_recv_errors(void **state)
{
	uint8_t buf[HEADER + MAD] = {0};
	int length = MAD;

	(void)state;
	assert_int_equal(umad_recv(FAKE_FD, NULL, &length, 0), -EINVAL);
	assert_int_equal(umad_recv(FAKE_FD, buf, NULL, 0), -EINVAL);
	fake.read_rc = -EAGAIN;
	assert_int_equal(umad_recv(FAKE_FD, buf, &length, 0), -EAGAIN);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(length, MAD);
	fake.read_rc = -EIO;
	assert_int_equal(umad_recv(FAKE_FD, buf, &length, 0), -EIO);
	fake.wait_rc = -ETIMEDOUT;
	assert_int_equal(umad_recv(FAKE_FD, buf, &length, 10), -ETIMEDOUT);
	assert_int_equal(errno, ETIMEDOUT);
	fake.wait_rc = -EINTR;
	assert_int_equal(umad_recv(FAKE_FD, buf, &length, 10), -EIO);
	assert_int_equal(errno, EINTR);
	assert_int_equal(fake.n_read, 2);
	length = -1;
	assert_int_equal(umad_recv(FAKE_FD, buf, &length, 0), -EINVAL);
	assert_int_equal(fake.n_read, 2);
}

static void test_poll(void **state)
{
	(void)state;
	assert_int_equal(umad_poll(FAKE_FD, 7), 0);
	assert_int_equal(fake.waited_ms, 7);
	fake.wait_rc = -ETIMEDOUT;
	assert_int_equal(umad_poll(FAKE_FD, 7), -ETIMEDOUT);
	fake.wait_rc = -EBADF;
	assert_int_equal(umad_poll(FAKE_FD, 7), -EIO);
	assert_int_equal(errno, EBADF);
}

static void *receive(void *arg)
{
	uint8_t buf[HEADER + MAD];
	int length = MAD;

	(void)arg;
	umad_recv(FAKE_FD, buf, &length, -1);
	return NULL;
}

/* opensm cancels its receiver at exit. */
static void test_cancel(void **state)
{
	pthread_t thread;
	void *result;
	int silent[2];

	(void)state;
	assert_int_equal(pipe(silent), 0);
	fake.wait_fd = silent[0];
	assert_int_equal(pthread_create(&thread, NULL, receive, NULL), 0);
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	fake.wait_fd = 0;
	close(silent[0]);
	close(silent[1]);
	arrive(HEADER + MAD); /* and nothing of it stays behind */
	assert_null(receive(NULL));
	assert_int_equal(fake.n_read, 1);
}

static void test_debug_level(void **state)
{
	(void)state;
	assert_int_equal(umad_debug(-1), 0);
	assert_int_equal(umad_debug(2), 2);
	assert_int_equal(umad_debug(-1), 2);
	assert_int_equal(umad_debug(0), 0);
	assert_int_equal(umad_init(), 0);
	assert_int_equal(umad_done(), 0);
}

#define WITH_PORT(f) cmocka_unit_test_setup(f, open_anew)

static int make_tree(void **state)
{
	static const struct tree_port port = {.guid = 0x10};

	(void)state;
	tree_start();
	tree_ca("mlx0", "1: CA");
	tree_add_port("mlx0", 1, 0, &port);
	return 0;
}

static int remove_tree(void **state)
{
	(void)state;
	tree_clear(1);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_port_layouts), WITH_PORT(test_open),
		WITH_PORT(test_header_sizes), WITH_PORT(test_addresses), WITH_PORT(test_register),
		WITH_PORT(test_register2), WITH_PORT(test_register_fallback),
		WITH_PORT(test_unregister), WITH_PORT(test_send), WITH_PORT(test_recv),
		WITH_PORT(test_recv_too_short), WITH_PORT(test_recv_errors), WITH_PORT(test_poll),
		WITH_PORT(test_cancel), cmocka_unit_test(test_debug_level)};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
