// SPDX-License-Identifier: BSD-3-Clause
/*
 * mad/umad_abi.h against the kernel's header; mad/file.c: what REGISTER_AGENT, REGISTER_AGENT2,
 * UNREGISTER_AGENT and ENABLE_PKEY answer, and what they leave behind.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <rdma/ib_user_mad.h>

#include "mad/file.h"

/* ---- layouts ---- */

#define SAME(ours, our_member, theirs, their_member)                                               \
	assert_int_equal(offsetof(struct ours, our_member), offsetof(struct theirs, their_member))

static void layouts(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct umad_hdr), sizeof(struct ib_user_mad_hdr));
	assert_int_equal(UMAD_HDR_OLD, sizeof(struct ib_user_mad_hdr_old));
	assert_int_equal(sizeof(struct umad_reg_req), sizeof(struct ib_user_mad_reg_req));
	assert_int_equal(sizeof(struct umad_reg_req2), sizeof(struct ib_user_mad_reg_req2));
	SAME(umad_hdr, timeout_ms, ib_user_mad_hdr, timeout_ms);
	SAME(umad_hdr, length, ib_user_mad_hdr, length);
	SAME(umad_hdr, be_qpn, ib_user_mad_hdr, qpn);
	SAME(umad_hdr, be_qkey, ib_user_mad_hdr, qkey);
	SAME(umad_hdr, be_lid, ib_user_mad_hdr, lid);
	SAME(umad_hdr, sl, ib_user_mad_hdr, sl);
	SAME(umad_hdr, path_bits, ib_user_mad_hdr, path_bits);
	SAME(umad_hdr, grh_present, ib_user_mad_hdr, grh_present);
	SAME(umad_hdr, gid_index, ib_user_mad_hdr, gid_index);
	SAME(umad_hdr, hop_limit, ib_user_mad_hdr, hop_limit);
	SAME(umad_hdr, traffic_class, ib_user_mad_hdr, traffic_class);
	SAME(umad_hdr, gid, ib_user_mad_hdr, gid);
	SAME(umad_hdr, be_flow_label, ib_user_mad_hdr, flow_label);
	SAME(umad_hdr, pkey_index, ib_user_mad_hdr, pkey_index);
	SAME(umad_reg_req, method_mask, ib_user_mad_reg_req, method_mask);
	SAME(umad_reg_req, qpn, ib_user_mad_reg_req, qpn);
	SAME(umad_reg_req, mgmt_class, ib_user_mad_reg_req, mgmt_class);
	SAME(umad_reg_req, class_version, ib_user_mad_reg_req, mgmt_class_version);
	SAME(umad_reg_req, oui, ib_user_mad_reg_req, oui);
	SAME(umad_reg_req, rmpp_version, ib_user_mad_reg_req, rmpp_version);
	SAME(umad_reg_req2, qpn, ib_user_mad_reg_req2, qpn);
	SAME(umad_reg_req2, mgmt_class, ib_user_mad_reg_req2, mgmt_class);
	SAME(umad_reg_req2, class_version, ib_user_mad_reg_req2, mgmt_class_version);
	SAME(umad_reg_req2, flags, ib_user_mad_reg_req2, flags);
	SAME(umad_reg_req2, method_mask, ib_user_mad_reg_req2, method_mask);
	SAME(umad_reg_req2, oui, ib_user_mad_reg_req2, oui);
	SAME(umad_reg_req2, rmpp_version, ib_user_mad_reg_req2, rmpp_version);
}

static void numbers(void **state)
{
	(void)state;
	assert_int_equal(UMAD_ABI_VERSION, IB_USER_MAD_ABI_VERSION);
	assert_int_equal(UMAD_IOC_REGISTER_AGENT, IB_USER_MAD_REGISTER_AGENT);
	assert_int_equal(UMAD_IOC_UNREGISTER_AGENT, IB_USER_MAD_UNREGISTER_AGENT);
	assert_int_equal(UMAD_IOC_ENABLE_PKEY, IB_USER_MAD_ENABLE_PKEY);
	assert_int_equal(UMAD_IOC_REGISTER_AGENT2, IB_USER_MAD_REGISTER_AGENT2);
	assert_int_equal(UMAD_USER_RMPP, IB_USER_MAD_USER_RMPP);
	assert_int_equal(UMAD_FLAGS_CAP, IB_USER_MAD_REG_FLAGS_CAP);
}

/* ---- registrations ---- */

static const struct umad_port infiniband = {.has_smi = true};
static const struct umad_port ethernet = {.has_smi = false};
static const struct umad_port removed = {.has_smi = true, .gone = true};
static const struct umad_file fresh, full = {.slots = ~0u};

/* Of both calls: which values get which answer. */
static const struct row {
	const char *what;
	const struct umad_port *port;
	const struct umad_file *file;
	uint8_t qpn, mgmt_class, version;
	uint32_t oui;
	uint8_t rmpp;
	int answer;
} rows[] = {
	{"directed route", &infiniband, &fresh, 0, 0x81, 1, 0, 0, 0},
	{"LID route", &infiniband, &fresh, 0, 0x01, 1, 0, 0, 0},
	{"SA", &infiniband, &fresh, 1, 0x03, 2, 0, 1, 0},
	{"SA without RMPP", &infiniband, &fresh, 1, 0x03, 2, 0, 0, 0},
	{"performance", &infiniband, &fresh, 1, 0x04, 1, 0, 0, 0},
	{"on Ethernet", &ethernet, &fresh, 1, 0x04, 1, 0, 0, 0},
	{"send only, QP1", &infiniband, &fresh, 1, 0, 0, 0, 0, 0},
	{"send only, QP0", &infiniband, &fresh, 0, 0, 0, 0, 0, 0},
	{"send only, RMPP", &infiniband, &fresh, 1, 0, 0, 0, 1, 0},
	{"send only, odd version", &infiniband, &fresh, 1, 0, 255, 0, 0, 0},
	{"vendor range 1", &infiniband, &fresh, 1, 0x09, 1, 0, 0, 0},
	{"vendor range 2", &infiniband, &fresh, 1, 0x30, 1, 0x1405, 1, 0},
	{"its last", &infiniband, &fresh, 1, 0x4f, 1, 0xffffff, 0, 0},
	{"device management, RMPP", &infiniband, &fresh, 1, 0x06, 1, 0, 1, 0},
	{"device administration, RMPP", &infiniband, &fresh, 1, 0x10, 1, 0, 1, 0},
	{"BIS, RMPP", &infiniband, &fresh, 1, 0x12, 1, 0, 1, 0},
	{"class version 8", &infiniband, &fresh, 1, 0x04, 8, 0, 0, 0},
	{"class version 0x82", &infiniband, &fresh, 1, 0x04, 0x82, 0, 0, 0},

	{"class version 0x83", &infiniband, &fresh, 1, 0x04, 0x83, 0, 0, -EINVAL},
	{"QP2", &infiniband, &fresh, 2, 0x04, 1, 0, 0, -EINVAL},
	{"QP0 on Ethernet", &ethernet, &fresh, 0, 0x81, 1, 0, 0, -EPROTONOSUPPORT},
	{"... before what else is wrong", &ethernet, &fresh, 0, 0x04, 1, 0, 7, -EPROTONOSUPPORT},
	{"RMPP 2", &infiniband, &fresh, 1, 0x03, 2, 0, 2, -EINVAL},
	{"send only, RMPP 2", &infiniband, &fresh, 1, 0, 0, 0, 2, -EINVAL},
	{"performance, RMPP", &infiniband, &fresh, 1, 0x04, 1, 0, 1, -EINVAL},
	{"CM, RMPP", &infiniband, &fresh, 1, 0x07, 1, 0, 1, -EINVAL},
	{"class 0x50", &infiniband, &fresh, 1, 0x50, 1, 0, 0, -EINVAL},
	{"class 0x80", &infiniband, &fresh, 0, 0x80, 1, 0, 0, -EINVAL},
	{"class 0x82", &infiniband, &fresh, 1, 0x82, 1, 0, 0, -EINVAL},
	{"class 0xff", &infiniband, &fresh, 1, 0xff, 1, 0, 0, -EINVAL},
	{"vendor range 2 without OUI", &infiniband, &fresh, 1, 0x30, 1, 0, 0, -EINVAL},
	{"directed route on QP1", &infiniband, &fresh, 1, 0x81, 1, 0, 0, -EINVAL},
	{"LID route on QP1", &infiniband, &fresh, 1, 0x01, 1, 0, 0, -EINVAL},
	{"SA on QP0", &infiniband, &fresh, 0, 0x03, 2, 0, 0, -EINVAL},
	{"removed", &removed, &fresh, 1, 0x04, 1, 0, 0, -EPIPE},
	{"removed, QP2", &removed, &fresh, 2, 0x04, 1, 0, 0, -EPIPE},
	{"33 agents", &infiniband, &full, 1, 0x04, 1, 0, 0, -ENOMEM},
	{"33 agents, QP2", &infiniband, &full, 2, 0x04, 1, 0, 0, -EINVAL},
	{"33 agents, no such class", &infiniband, &full, 1, 0x50, 1, 0, 0, -ENOMEM},
};

static int register1(
	const struct row *r, struct mad_registration *reg, uint32_t *slot, const char **why)
{
	struct umad_reg_req req = {.qpn = r->qpn,
		.mgmt_class = r->mgmt_class,
		.class_version = r->version,
		.oui = {r->oui >> 16, r->oui >> 8, r->oui},
		.rmpp_version = r->rmpp,
		.method_mask = {6, 0, 0, 1u << 31}};

	return umad_check_req(r->file, r->port, &req, reg, slot, why);
}

static int register2(const struct row *r, uint32_t *flags, struct mad_registration *reg,
	uint32_t *slot, const char **why)
{
	struct umad_reg_req2 req = {.qpn = r->qpn,
		.mgmt_class = r->mgmt_class,
		.class_version = r->version,
		.oui = r->oui,
		.flags = *flags,
		.rmpp_version = r->rmpp,
		.method_mask = {6, 1ull << 63}};
	int answer = umad_check_req2(r->file, r->port, &req, reg, slot, why);

	*flags = req.flags;
	return answer;
}

static void check_reg(const struct row *r, const struct mad_registration *reg)
{
	assert_int_equal(reg->qpn, r->qpn);
	assert_int_equal(reg->mgmt_class, r->mgmt_class);
	assert_int_equal(reg->oui, r->oui);
	assert_int_equal(reg->rmpp_version, r->rmpp);
	assert_false(reg->user_rmpp);
	assert_int_equal(reg->class_version, r->mgmt_class ? r->version : 0);
	assert_true(reg->methods[0] == (r->mgmt_class ? 6 : 0));
	assert_true(reg->methods[1] == (r->mgmt_class ? 1ull << 63 : 0));
}

static void registrations(void **state)
{
	(void)state;
	for (const struct row *r = rows; r < rows + sizeof rows / sizeof rows[0]; r++)
		for (int second = 0; second < 2; second++) {
			struct mad_registration reg = {0};
			uint32_t slot = 99, flags = 0;
			const char *why = NULL;
			int answer = second ? register2(r, &flags, &reg, &slot, &why)
					    : register1(r, &reg, &slot, &why);

			if (answer != r->answer)
				fail_msg("%s (%d): %d, not %d", r->what, second + 1, answer,
					r->answer);
			assert_int_equal(!answer, !why);
			if (answer)
				continue;
			assert_int_equal(slot, 0);
			check_reg(r, &reg);
		}
}

/* What REGISTER_AGENT2 alone has. */
static const struct {
	const char *what;
	struct row row;
	uint32_t flags, flags_after;
	int answer;
} rows2[] = {
	{"user RMPP", {.qpn = 1, .mgmt_class = 3, .rmpp = 1}, 1, 1, 0},
	{"user RMPP, version 0", {.qpn = 1, .mgmt_class = 3}, 1, 1, 0},
	{"user RMPP, no class", {.qpn = 1, .rmpp = 1}, 1, 1, -EINVAL},
	{"flag 2", {.qpn = 1, .mgmt_class = 3}, 2, 1, -EINVAL},
	{"all flags", {.qpn = 1, .mgmt_class = 3}, ~0u, 1, -EINVAL},
	{"flag 2, 33 agents", {.file = &full, .qpn = 1, .mgmt_class = 3}, 3, 1, -EINVAL},
	{"flag 2, QP2", {.qpn = 2, .mgmt_class = 3}, 2, 2, -EINVAL},
	{"flag 2, removed", {.port = &removed, .qpn = 1}, 2, 2, -EPIPE},
	{"OUI of 25 bits", {.qpn = 1, .mgmt_class = 0x30, .oui = 1 << 24}, 0, 0, -EINVAL},
	{"... on QP0 of Ethernet", {.port = &ethernet, .qpn = 0, .mgmt_class = 1, .oui = 1 << 24},
		0, 0, -EINVAL},
	{"... of another class", {.qpn = 1, .mgmt_class = 4, .oui = 1 << 24}, 0, 0, -EINVAL},
	{"... send only", {.qpn = 1, .oui = 1 << 24}, 0, 0, 0},
};

static void registrations2(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows2 / sizeof rows2[0]; i++) {
		struct row r = rows2[i].row;
		struct mad_registration reg = {0};
		uint32_t slot, flags = rows2[i].flags;
		const char *why;
		int answer;

		r.port = r.port ? r.port : &infiniband;
		r.file = r.file ? r.file : &fresh;
		answer = register2(&r, &flags, &reg, &slot, &why);
		if (answer != rows2[i].answer || flags != rows2[i].flags_after)
			fail_msg("%s: %d, flags %#x", rows2[i].what, answer, flags);
		if (!answer)
			assert_int_equal(reg.user_rmpp, flags & UMAD_USER_RMPP);
	}
}

/* An OUI is nobody's business but the vendors'. */
static void oui_of_other_classes(void **state)
{
	const struct row r = {
		.port = &infiniband, .file = &fresh, .qpn = 1, .mgmt_class = 4, .oui = 0x1405};
	struct mad_registration reg;
	const char *why;
	uint32_t slot;

	(void)state;
	assert_int_equal(register1(&r, &reg, &slot, &why), 0);
	assert_int_equal(reg.oui, 0);
}

/* ---- slots ---- */

static uint32_t next_slot(const struct umad_file *f)
{
	const struct row r = {.port = &infiniband, .file = f, .qpn = 1, .mgmt_class = 4};
	struct mad_registration reg;
	const char *why;
	uint32_t slot;

	assert_int_equal(register1(&r, &reg, &slot, &why), 0);
	return slot;
}

static void lowest_slot_first(void **state)
{
	struct umad_file f = {0};

	(void)state;
	for (uint32_t i = 0; i < UMAD_AGENTS; i++) {
		assert_int_equal(next_slot(&f), i);
		umad_registered(&f, i, false);
	}
	assert_int_equal(umad_unregistered(&f, 7), 0);
	assert_int_equal(umad_unregistered(&f, 31), 0);
	assert_int_equal(umad_unregistered(&f, 1), 0);
	assert_int_equal(umad_unregistered(&f, 1), -EINVAL);
	assert_int_equal(umad_unregistered(&f, 32), -EINVAL);
	assert_int_equal(umad_unregistered(&f, UINT32_MAX), -EINVAL);
	assert_int_equal(next_slot(&f), 1);
	umad_registered(&f, 1, false);
	assert_int_equal(next_slot(&f), 7);
}

/* ---- layout ---- */

static void layout_is_chosen_first(void **state)
{
	struct umad_file f = {0};

	(void)state;
	assert_int_equal(umad_hdr_size(f.pkey), 56);
	umad_registered(&f, 0, false);
	assert_int_equal(umad_hdr_size(f.pkey), 56);
	assert_int_equal(umad_enable_pkey(&f), -EINVAL);
	umad_registered(&f, 1, true); /* too late */
	assert_int_equal(umad_hdr_size(f.pkey), 56);

	f = (struct umad_file){0};
	assert_int_equal(umad_enable_pkey(&f), 0);
	assert_int_equal(umad_enable_pkey(&f), 0);
	assert_int_equal(umad_hdr_size(f.pkey), 64);
	umad_registered(&f, 0, false);
	assert_int_equal(umad_hdr_size(f.pkey), 64);
	assert_int_equal(umad_enable_pkey(&f), -EINVAL);
	assert_int_equal(umad_unregistered(&f, 0), 0);
	assert_int_equal(umad_enable_pkey(&f), -EINVAL);

	f = (struct umad_file){0};
	umad_registered(&f, 0, true);
	assert_int_equal(umad_hdr_size(f.pkey), 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts),
		cmocka_unit_test(numbers),
		cmocka_unit_test(registrations),
		cmocka_unit_test(registrations2),
		cmocka_unit_test(oui_of_other_classes),
		cmocka_unit_test(lowest_slot_first),
		cmocka_unit_test(layout_is_chosen_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
