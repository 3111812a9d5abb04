// SPDX-License-Identifier: BSD-3-Clause
/* mad/packet.c: what write and read of a umad file answer; headers, addresses, records. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "mad/packet.h"
#include "mad/tids.h"
#include "wire/rmpp.h"

/* Slots: what is registered there. */
enum { PLAIN, LAYER, USER, EMPTY, GIDS = 3, HI_TID = 0xabc000 };

static _Atomic uint64_t agents[UMAD_AGENTS];

static const struct mad_registration regs[] = {
	[PLAIN] = {.rmpp_version = 0},
	[LAYER] = {.rmpp_version = 1},
	[USER] = {.rmpp_version = 1, .user_rmpp = true},
};

static int register_agents(void **state)
{
	(void)state;
	for (uint32_t i = PLAIN; i <= USER; i++)
		agents[i] = umad_agent_word(HI_TID + i, &regs[i]);
	return 0;
}

enum { OLD_LAYOUT = 1, GONE = 2, ETHERNET = 4 };

static struct umad_sender sender(unsigned how)
{
	return (struct umad_sender){.agents = agents,
		.pkey = !(how & OLD_LAYOUT),
		.gone = how & GONE,
		.needs_grh = how & ETHERNET,
		.n_gids = GIDS};
}

/* A header and the beginning of a MAD, as a program writes them. */
struct written {
	struct umad_hdr hdr;
	uint8_t mad[UMAD_MAD_BYTES];
};

static struct written written(uint32_t id, uint8_t mgmt_class, uint8_t method, uint8_t rmpp_flags)
{
	const struct mad_hdr hdr = {.base_version = 1,
		.mgmt_class = mgmt_class,
		.class_version = 1,
		.method = method,
		.tid = 0x1111111122222222};
	struct written w = {.hdr = {.id = id, .be_lid = htons(3), .be_qpn = htonl(1)}};

	wire_pack(&mad_hdr_format, &hdr, w.mad);
	w.mad[RMPP_AT + 2] = rmpp_flags;
	return w;
}

static int check(unsigned how, const struct written *w, size_t length, struct umad_send *out)
{
	const struct umad_sender s = sender(how);
	size_t hdr_size = umad_hdr_size(s.pkey);
	uint8_t buf[sizeof *w];
	const char *why = NULL;
	int answer;

	memcpy(buf, &w->hdr, hdr_size);
	memcpy(buf + hdr_size, w->mad, sizeof w->mad);
	answer = umad_check_write(&s, buf, hdr_size + length, out, &why);
	assert_int_equal(!answer, !why);
	return answer;
}

static const struct row {
	const char *what;
	unsigned how;
	uint32_t id;
	uint8_t mgmt_class, rmpp_flags;
	uint8_t grh, gid_index;
	size_t length;
	int answer;
	bool rmpp, unlisted;
} rows[] = {
	{"a MAD", 0, PLAIN, 4, 0, 0, 0, 256, 0, 0, 0},
	{"old layout", OLD_LAYOUT, PLAIN, 4, 0, 0, 0, 256, 0, 0, 0},
	{"36 bytes", 0, PLAIN, 4, 0, 0, 0, 36, 0, 0, 0},
	{"36 bytes, old", OLD_LAYOUT, PLAIN, 4, 0, 0, 0, 36, 0, 0, 0},
	{"56 bytes of SA", 0, LAYER, 3, 0, 0, 0, 56, 0, 0, 0},
	{"... by an agent without RMPP", 0, PLAIN, 3, 0, 0, 0, 56, 0, 0, 0},
	{"64 bytes of class 6", 0, PLAIN, 6, 0, 0, 0, 64, 0, 0, 0},
	{"40 bytes of vendors", 0, USER, 0x4f, 0, 0, 0, 40, 0, 0, 0},
	{"any class", 0, PLAIN, 0x81, 0, 0, 0, 256, 0, 0, 0},
	{"GRH", 0, PLAIN, 4, 0, 1, GIDS - 1, 256, 0, 0, 0},
	{"Ethernet, GRH", ETHERNET, PLAIN, 4, 0, 1, 0, 256, 0, 0, 0},
	{"RMPP, short", 0, LAYER, 3, RMPP_ACTIVE, 0, 0, 56, 0, true, 0},
	{"RMPP, long", 0, LAYER, 3, RMPP_ACTIVE, 0, 0, 20056, 0, true, 0},
	{"RMPP of vendors", 0, LAYER, 0x30, RMPP_ACTIVE, 0, 0, 300, 0, true, 0},
	{"RMPP, not active", 0, LAYER, 3, 0, 0, 0, 256, 0, 0, 0},
	{"the program's segment", 0, USER, 3, RMPP_ACTIVE, 0, 0, 256, 0, 0, true},
	{"... of an agent without", 0, PLAIN, 3, RMPP_ACTIVE, 0, 0, 256, 0, 0, true},
	{"... that is none", 0, USER, 3, 0, 0, 0, 256, 0, 0, 0},
	{"the bit in a class without", 0, PLAIN, 4, RMPP_ACTIVE, 0, 0, 256, 0, 0, 0},

	{"35 bytes", 0, PLAIN, 4, 0, 0, 0, 35, -EINVAL, 0, 0},
	{"35 bytes, old", OLD_LAYOUT, PLAIN, 4, 0, 0, 0, 35, -EINVAL, 0, 0},
	{"35 bytes, removed", GONE, 40, 4, 0, 0, 0, 35, -EINVAL, 0, 0},
	{"agent 32", 0, 32, 4, 0, 0, 0, 256, -EINVAL, 0, 0},
	{"agent 2^32 - 1", 0, UINT32_MAX, 4, 0, 0, 0, 256, -EINVAL, 0, 0},
	{"agent 32, removed", GONE, 32, 4, 0, 0, 0, 256, -EINVAL, 0, 0},
	{"nobody there", 0, EMPTY, 4, 0, 0, 0, 256, -EIO, 0, 0},
	{"nobody there, too long", 0, 31, 4, 0, 0, 0, 257, -EIO, 0, 0},
	{"removed", GONE, PLAIN, 4, 0, 0, 0, 256, -EIO, 0, 0},
	{"Ethernet, no GRH", ETHERNET, PLAIN, 4, 0, 0, 0, 256, -EINVAL, 0, 0},
	{"no such GID", 0, PLAIN, 4, 0, 1, GIDS, 256, -ENODATA, 0, 0},
	{"no such GID, too long", ETHERNET, PLAIN, 4, 0, 1, 255, 257, -ENODATA, 0, 0},
	{"index without GRH", 0, PLAIN, 4, 0, 0, 255, 256, 0, 0, 0},
	{"257 bytes", 0, PLAIN, 4, 0, 0, 0, 257, -EINVAL, 0, 0},
	{"257 bytes, not active", 0, LAYER, 3, 0, 0, 0, 257, -EINVAL, 0, 0},
	{"257 bytes, a segment", 0, USER, 3, RMPP_ACTIVE, 0, 0, 257, -EINVAL, 0, 0},
	{"257 bytes, no RMPP", 0, PLAIN, 3, RMPP_ACTIVE, 0, 0, 257, -EINVAL, 0, 0},
	{"RMPP, no header", 0, LAYER, 3, RMPP_ACTIVE, 0, 0, 55, -EINVAL, 0, 0},
	{"55 bytes of SA", 0, LAYER, 3, 0, 0, 0, 55, -EINVAL, 0, 0},
	{"... by an agent without RMPP", 0, PLAIN, 3, 0, 0, 0, 55, -EINVAL, 0, 0},
	{"... a segment", 0, USER, 3, RMPP_ACTIVE, 0, 0, 55, -EINVAL, 0, 0},
	{"63 bytes of class 0x12", 0, PLAIN, 0x12, 0, 0, 0, 63, -EINVAL, 0, 0},
	{"39 bytes of vendors", 0, PLAIN, 0x30, 0, 0, 0, 39, -EINVAL, 0, 0},
	{"a class without RMPP", 0, LAYER, 4, 0, 0, 0, 256, -EINVAL, 0, 0},
	{"... by the program", 0, USER, 7, 0, 0, 0, 256, -EINVAL, 0, 0},
};

static void writes(void **state)
{
	(void)state;
	for (const struct row *r = rows; r < rows + sizeof rows / sizeof rows[0]; r++) {
		struct written w = written(r->id, r->mgmt_class, MAD_GET, r->rmpp_flags);
		struct umad_send out;
		int answer;

		w.hdr.grh_present = r->grh;
		w.hdr.gid_index = r->gid_index;
		w.hdr.pkey_index = 7;
		answer = check(r->how, &w, r->length, &out);
		if (answer != r->answer)
			fail_msg("%s: %d, not %d", r->what, answer, r->answer);
		if (answer)
			continue;
		assert_int_equal(out.length, r->length);
		if (out.rmpp != r->rmpp || out.listed != !r->unlisted)
			fail_msg("%s: RMPP %d, listed %d", r->what, out.rmpp, out.listed);
		assert_int_equal(out.hdr.pkey_index, r->how & OLD_LAYOUT ? 0 : 7);
		assert_int_equal(out.hdr.id, r->id);
	}
}

/* ---- transaction ids and duplicates ---- */

static struct umad_send passed(const struct written *w)
{
	struct umad_send out;

	assert_int_equal(check(0, w, 256, &out), 0);
	return out;
}

static void upper_half_of_requests(void **state)
{
	struct written get = written(USER, 3, MAD_GET, 0), resp = written(USER, 3, MAD_GET_RESP, 0);
	struct written repress = written(PLAIN, 1, MAD_TRAP_REPRESS, 0);

	(void)state;
	assert_true(passed(&get).tid == ((uint64_t)(HI_TID + USER) << 32 | 0x22222222));
	assert_true(passed(&resp).tid == 0x1111111122222222);
	assert_true(passed(&repress).tid == 0x1111111122222222);
}

static bool same(const struct written *a, const struct written *b)
{
	return passed(a).hash == passed(b).hash;
}

static void what_is_a_duplicate(void **state)
{
	struct written get = written(PLAIN, 4, MAD_GET, 0), set = written(PLAIN, 4, MAD_SET, 0);
	struct written other_class = written(PLAIN, 5, MAD_GET, 0);
	struct written other_agent = written(USER, 3, MAD_GET, 0),
		       sa = written(LAYER, 3, MAD_GET, 0);
	struct written resp = written(PLAIN, 4, MAD_GET_RESP, 0), resp2 = resp, grh = resp, grh2;

	(void)state;
	set.hdr.be_lid = htons(9);
	resp2.hdr.be_lid = htons(9);
	grh.hdr.grh_present = true;
	grh2 = grh;
	grh2.hdr.be_lid = htons(9);
	assert_true(same(&get, &set)); /* requests, wherever they go */
	assert_false(same(&get, &other_class));
	assert_false(same(&other_agent, &sa));
	assert_false(same(&get, &resp));
	assert_true(same(&resp, &resp));
	assert_false(same(&resp, &resp2));
	assert_false(same(&resp, &grh));
	assert_true(same(&grh, &grh2)); /* by GID alone */
	grh2.hdr.gid[15] = 1;
	assert_false(same(&grh, &grh2));
}

/* ---- what weftd believes ---- */

static void records_are_checked_again(void **state)
{
	const struct umad_sender s = sender(OLD_LAYOUT);
	struct written w = written(LAYER, 3, MAD_GET, RMPP_ACTIVE);
	struct umad_send out = {0};
	struct umad_record rec;
	const char *why;

	(void)state;
	assert_int_equal(check(0, &w, 300, &out), 0);
	umad_make_record(&out, w.mad, 77, &rec);
	assert_int_equal(rec.flags, UMAD_RECORD_LONG);
	assert_int_equal(rec.message, 77);
	assert_int_equal(umad_check_record(&s, &rec, &out, &why), 0);
	assert_true(out.rmpp);
	assert_int_equal(out.length, 300);
	rec.flags = 0; /* the length of a long one */
	assert_int_equal(umad_check_record(&s, &rec, &out, &why), -EINVAL);
	rec.flags = UMAD_RECORD_LONG | 2;
	assert_int_equal(umad_check_record(&s, &rec, &out, &why), -EINVAL);
	rec.flags = UMAD_RECORD_LONG;
	rec.length = 256;
	assert_int_equal(umad_check_record(&s, &rec, &out, &why), -EINVAL);
	rec.flags = 0;
	assert_int_equal(umad_check_record(&s, &rec, &out, &why), 0);
	rec.length = 35;
	assert_int_equal(umad_check_record(&s, &rec, &out, &why), -EINVAL);
	rec.length = 256;
	rec.hdr.id = EMPTY;
	assert_int_equal(umad_check_record(&s, &rec, &out, &why), -EIO);
	rec.hdr.id = 0x80000000;
	assert_int_equal(umad_check_record(&s, &rec, &out, &why), -EINVAL);
	memset(&rec, 0xff, sizeof rec);
	assert_int_equal(umad_check_record(&s, &rec, &out, &why), -EINVAL);
}

/* Where the layer cuts messages, what is none says nothing of segments. */
static void rmpp_header_of_no_message(void **state)
{
	static const uint8_t none[RMPP_SIZE];
	struct umad_send out;
	struct umad_record rec;

	(void)state;
	for (uint32_t id = PLAIN; id <= USER; id++) {
		struct written w = written(id, 3, MAD_GET, 0xf8);

		memset(w.mad + RMPP_AT + 3, 0x77, RMPP_SIZE - 3);
		assert_int_equal(check(0, &w, 256, &out), 0);
		umad_make_record(&out, w.mad, 0, &rec);
		assert_memory_equal(rec.mad, w.mad, RMPP_AT);
		assert_memory_equal(
			rec.mad + RMPP_AT, id == LAYER ? none : w.mad + RMPP_AT, RMPP_SIZE);
		assert_memory_equal(rec.mad + RMPP_AT + RMPP_SIZE, w.mad + RMPP_AT + RMPP_SIZE,
			256 - RMPP_AT - RMPP_SIZE);
	}
}

/* ---- reads ---- */

static const struct read_row {
	const char *what;
	uint32_t length;
	bool pkey;
	size_t count;
	ssize_t answer;
	size_t copy;
} reads[] = {
	{"a MAD", 256, true, 320, 320, 320},
	{"old layout", 256, false, 312, 312, 312},
	{"more room", 256, true, 4096, 320, 320},
	{"too small", 256, true, 319, -EINVAL, 0},
	{"too small, old", 256, false, 311, -EINVAL, 0},
	{"a header", 256, true, 64, -EINVAL, 0},
	{"timeout", 24, true, 88, 88, 88},
	{"timeout, old", 24, false, 80, 80, 80},
	{"timeout, too small", 24, true, 87, -EINVAL, 0},
	{"message", 456, true, 520, 520, 320},
	{"message, old", 456, false, 512, 512, 312},
	{"message, too small", 456, true, 519, -ENOSPC, 320},
	{"message, room for one", 456, true, 320, -ENOSPC, 320},
	{"message, room for less", 456, true, 319, -EINVAL, 0},
	{"message, old, too small", 456, false, 511, -ENOSPC, 312},
};

static void reads_of_all_sizes(void **state)
{
	(void)state;
	for (const struct read_row *r = reads; r < reads + sizeof reads / sizeof reads[0]; r++) {
		struct umad_record rec = {
			.length = r->length, .flags = r->length > 256 ? UMAD_RECORD_LONG : 0};
		size_t copy;
		ssize_t answer = umad_read_result(&rec, r->pkey, r->count, &copy);

		if (answer != r->answer || copy != r->copy)
			fail_msg("%s: %zd, %zu bytes", r->what, answer, copy);
	}
	assert_false(umad_may_read(true, 63));
	assert_true(umad_may_read(true, 64));
	assert_false(umad_may_read(false, 55));
	assert_true(umad_may_read(false, 56));
}

/* Whoever has the file can write into the ring. */
static void a_record_that_lies(void **state)
{
	struct umad_record rec;
	uint8_t buf[400];
	size_t copy;

	(void)state;
	memset(&rec, 0xff, sizeof rec);
	rec.flags = 0;
	assert_int_equal(umad_read_result(&rec, true, 400, &copy), 320);
	rec.flags = UMAD_RECORD_LONG;
	assert_int_equal(umad_read_result(&rec, true, 400, &copy), -ENOSPC);
	assert_int_equal(copy, 320);
	umad_copy_out(&rec, true, buf, sizeof buf);
}

static void received(void **state)
{
	const struct mad_addr from = {
		.lid = 9, .sl = 3, .path_bits = 1, .pkey_index = 2, .qpn = 0x123456};
	uint8_t mad[256] = {1, 2, 3}, buf[320];
	struct umad_record rec;
	struct umad_hdr hdr;

	(void)state;
	for (int pkey = 0; pkey < 2; pkey++) {
		size_t hdr_size = umad_hdr_size(pkey);

		umad_make_received(5, &from, 0, pkey, mad, 256, 0, &rec);
		memset(buf, 0xee, sizeof buf);
		umad_copy_out(&rec, pkey, buf, hdr_size + 256);
		memcpy(&hdr, buf, sizeof hdr);
		assert_int_equal(hdr.id, 5);
		assert_int_equal(hdr.status, 0);
		assert_int_equal(hdr.length, hdr_size + 256);
		assert_int_equal(ntohs(hdr.be_lid), 9);
		assert_int_equal(ntohl(hdr.be_qpn), 0x123456);
		assert_int_equal(hdr.be_qkey, 0);
		assert_int_equal(hdr.timeout_ms | hdr.retries | hdr.grh_present, 0);
		if (pkey)
			assert_int_equal(hdr.pkey_index, 2);
		assert_memory_equal(buf + hdr_size, mad, sizeof mad);
	}
}

static void message_of_segments(void **state)
{
	const struct mad_addr from = {.lid = 9};
	uint8_t msg[456] = {1, 3};
	struct umad_record rec;

	(void)state;
	msg[255] = 7;
	umad_make_received(0, &from, 0, true, msg, sizeof msg, 12, &rec);
	assert_int_equal(rec.hdr.length, 520);
	assert_int_equal(rec.flags, UMAD_RECORD_LONG);
	assert_int_equal(rec.message, 12);
	assert_memory_equal(rec.mad, msg, 256);
}

static void timed_out(void **state)
{
	struct umad_hdr hdr = {.id = 2,
		.timeout_ms = 200,
		.retries = 3,
		.be_qkey = 9,
		.be_lid = 4,
		.length = 11,
		.gid = {1}};
	uint8_t mad[MAD_HDR_SIZE] = {1, 4};
	struct umad_record rec;

	(void)state;
	umad_make_timeout(&hdr, mad, &rec);
	assert_int_equal(rec.hdr.status, ETIMEDOUT);
	assert_int_equal(rec.length, 24);
	hdr.status = ETIMEDOUT;
	assert_memory_equal(&rec.hdr, &hdr, sizeof hdr);
	assert_memory_equal(rec.mad, mad, sizeof mad);
}

/* ---- addresses ---- */

static void addresses_both_ways(void **state)
{
	const uint8_t own[MAD_GID] = {0xfe, 0x80, [15] = 1};
	struct umad_hdr h = {.be_qpn = htonl(1),
		.be_qkey = htonl(5),
		.be_lid = htons(0xffff),
		.sl = 4,
		.path_bits = 3,
		.grh_present = 1,
		.gid_index = 1,
		.hop_limit = 64,
		.traffic_class = 8,
		.gid = {0xfe, 0x80, [15] = 2},
		.be_flow_label = htonl(0x12345),
		.pkey_index = 6};
	struct mad_addr a = umad_addr_of(&h, own);
	struct umad_hdr back = {0};

	(void)state;
	assert_int_equal(a.lid, 0xffff);
	assert_int_equal(a.qpn, 1);
	assert_true(a.qkey == UMAD_GSI_QKEY); /* not the program's */
	assert_int_equal(a.pkey_index, 6);
	assert_int_equal(a.grh.flow_label, 0x12345);
	assert_memory_equal(a.grh.local, own, MAD_GID);
	assert_memory_equal(a.grh.remote, h.gid, MAD_GID);
	umad_tell_addr(&back, &a, 1);
	h.be_qkey = 0;
	assert_memory_equal(&back, &h, sizeof h);

	h.grh_present = 0;
	h.be_qpn = 0;
	a = umad_addr_of(&h, own);
	assert_false(a.has_grh);
	assert_int_equal(a.qkey, 0);
	assert_int_equal(a.grh.remote[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes),
		cmocka_unit_test(upper_half_of_requests),
		cmocka_unit_test(what_is_a_duplicate),
		cmocka_unit_test(records_are_checked_again),
		cmocka_unit_test(rmpp_header_of_no_message),
		cmocka_unit_test(reads_of_all_sizes),
		cmocka_unit_test(a_record_that_lies),
		cmocka_unit_test(received),
		cmocka_unit_test(message_of_segments),
		cmocka_unit_test(timed_out),
		cmocka_unit_test(addresses_both_ways),
	};

	return cmocka_run_group_tests(tests, register_agents, NULL);
}
