// SPDX-License-Identifier: BSD-3-Clause
/* RoCEv2 packets: the table of opcodes, and headers written and read, held against field tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/field.h"
#include "wire/roce.h"

#define F(member, byte, bit, bits) WIRE_FIELD(struct roce_packet, member, byte, bit, bits)

/* What one header holds, from its first byte on. */
struct layout {
	unsigned header; /* 0: the BTH */
	size_t len;
	size_t n;
	struct wire_field fields[9];
};

static const struct layout layouts[] = {
	{0, 12, 9,
		{F(opcode, 0, 0, 8), F(solicited, 1, 0, 1), F(pad, 1, 2, 2), F(pkey, 2, 0, 16),
			F(fecn, 4, 0, 1), F(dest_qpn, 5, 0, 24), F(ack_req, 8, 0, 1),
			F(again, 8, 1, 1), F(psn, 9, 0, 24)}},
	{ROCE_DETH, 8, 2, {F(qkey, 0, 0, 32), F(src_qpn, 5, 0, 24)}},
	{ROCE_FETH, 4, 1, {F(flush, 0, 0, 32)}},
	{ROCE_RETH, 16, 3, {F(va, 0, 0, 64), F(rkey, 8, 0, 32), F(length, 12, 0, 32)}},
	{ROCE_ATOMIC_ETH, 28, 4,
		{F(va, 0, 0, 64), F(rkey, 8, 0, 32), F(swap_add, 12, 0, 64),
			F(compare, 20, 0, 64)}},
	{ROCE_AETH, 4, 2, {F(syndrome, 0, 0, 8), F(msn, 1, 0, 24)}},
	{ROCE_ATOMIC_ACK_ETH, 8, 1, {F(old, 0, 0, 64)}},
	{ROCE_IMM, 4, 1, {F(imm, 0, 0, 32)}},
	{ROCE_IETH, 4, 1, {F(invalidate, 0, 0, 32)}},
	{ROCE_CNP_ETH, 16, 0, {{0}}},
};

enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0] };

static uint64_t seed = 1;

static uint64_t random_bits(unsigned bits)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return bits == 64 ? seed ^ seed >> 29 : seed >> (64 - bits);
}

/* A packet of that opcode with all fields of its headers at random, by the field tables alone. */
static size_t make(uint8_t opcode, uint8_t *msg, struct roce_packet *p)
{
	unsigned set = roce_op(opcode)->headers;
	size_t at = 0;

	memset(p, 0, sizeof *p);
	for (int i = 0; i < N_LAYOUTS; i++) {
		const struct layout *l = &layouts[i];
		const struct wire_format format = {"header", l->fields, l->n};

		if (l->header && !(set & l->header))
			continue;
		for (size_t f = 0; f < l->n; f++) {
			uint64_t v = random_bits(l->fields[f].bits);

			memcpy((char *)p + l->fields[f].off, &v, l->fields[f].size);
		}
		if (!l->header) {
			p->opcode = opcode;
			p->pad = 0;
		}
		wire_pack(&format, p, msg + at);
		at += l->len;
	}
	return at;
}

static bool same(const struct roce_packet *a, const struct roce_packet *b, unsigned set)
{
	for (int i = 0; i < N_LAYOUTS; i++) {
		const struct layout *l = &layouts[i];

		if (l->header && !(set & l->header))
			continue;
		for (size_t f = 0; f < l->n; f++)
			if (memcmp((const char *)a + l->fields[f].off,
				    (const char *)b + l->fields[f].off, l->fields[f].size))
				return false;
	}
	return true;
}

/* Each opcode: what is written can be read, and both are as the field tables say. */
static void headers(void **state)
{
	int known = 0;

	(void)state;
	for (int opcode = 0; opcode < 256; opcode++) {
		uint8_t msg[128] = {0}, again[ROCE_HEADERS_MAX];
		struct roce_packet want, got;
		size_t len;

		if (!roce_op(opcode)->name)
			continue;
		known++;
		len = make(opcode, msg, &want);
		assert_int_equal(len, roce_op(opcode)->head_len);
		assert_true(len <= ROCE_HEADERS_MAX);
		assert_int_equal(roce_parse(msg, len + 8 + ROCE_ICRC_LEN, &got), ROCE_GOOD);
		assert_true(same(&want, &got, roce_op(opcode)->headers));
		assert_ptr_equal(got.payload, msg + len);
		assert_int_equal(got.payload_len, 8);
		assert_int_equal(roce_build(&got, again), len);
		assert_memory_equal(again, msg, len);
		assert_int_equal(roce_peek_qpn(msg, sizeof msg), want.dest_qpn);
	}
	assert_int_equal(known, 25 + 12 + 2 + 1);
}

/* Places and acts find their opcode again. */
static void opcodes(void **state)
{
	(void)state;
	for (int opcode = 0; opcode < 256; opcode++) {
		const struct roce_op *op = roce_op(opcode);

		if (op->name)
			assert_int_equal(roce_opcode(opcode & ROCE_TRANSPORT_MASK, op->act,
						 op->place, op->headers),
				opcode);
	}
	assert_int_equal(roce_opcode(ROCE_RC, ROCE_WRITE, ROCE_ONLY, ROCE_RETH | ROCE_IMM), 0x0b);
	assert_int_equal(roce_opcode(ROCE_UC, ROCE_READ, ROCE_ONLY, ROCE_RETH), -1);
	assert_int_equal(roce_opcode(ROCE_UD, ROCE_SEND, ROCE_ONLY, ROCE_DETH), 0x64);
	assert_int_equal(roce_header_len(ROCE_ATOMIC_ETH), 28);
}

static void payloads(void **state)
{
	static const struct {
		uint8_t opcode;
		size_t bytes;
		bool fits;
	} rows[] = {
		{0x00, 1024, true}, {0x00, 1023, false}, {0x00, 1028, false}, /* SEND_FIRST */
		{0x02, 1, true}, {0x02, 0, false}, {0x02, 1025, false},       /* SEND_LAST */
		{0x04, 0, true}, {0x04, 1024, true}, {0x04, 1025, false},     /* SEND_ONLY */
		{0x0c, 0, true}, {0x0c, 4, false},                            /* READ_REQUEST */
		{0x1d, 8, true}, {0x1d, 4, false}, {0x1d, 12, false},         /* ATOMIC_WRITE */
		{0x11, 0, true}, {0x11, 1, false},                            /* ACKNOWLEDGE */
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_int_equal(roce_payload_fits(roce_op(rows[i].opcode), rows[i].bytes, 1024),
			rows[i].fits);
}

/* What is no packet is told apart; nothing beyond the datagram's bytes is looked at. */
static void faults(void **state)
{
	struct roce_packet p;

	(void)state;
	for (int opcode = 0; opcode < 256; opcode++)
		for (size_t len = 0; len < 64; len++) {
			uint8_t *msg = calloc(1, len + 1);
			enum roce_fault f;

			assert_non_null(msg);
			msg[0] = opcode;
			f = roce_parse(msg, len, &p);
			if (len < 16 || (roce_op(opcode)->name &&
						len < (size_t)roce_op(opcode)->head_len + 4))
				assert_int_equal(f, ROCE_TOO_SHORT);
			else if (!roce_op(opcode)->name)
				assert_int_equal(f, ROCE_UNKNOWN_OPCODE);
			else
				assert_int_equal(f, len % 4 ? ROCE_BAD_LENGTH : ROCE_GOOD);
			free(msg);
		}
	uint8_t pad[20] = {0x04, 0x30}, version[16] = {0x04, 0x01};

	assert_int_equal(roce_parse(pad, 20, &p), ROCE_GOOD);
	assert_int_equal(p.payload_len, 1);
	assert_int_equal(roce_parse(pad, 16, &p), ROCE_BAD_LENGTH);
	assert_int_equal(roce_parse(version, 16, &p), ROCE_BAD_VERSION);
	for (int f = 0; f <= ROCE_FAULTS; f++)
		assert_non_null(roce_fault_text(f));
}

static void numbers(void **state)
{
	(void)state;
	assert_int_equal(roce_psn_diff(0, 0xffffff), 1);
	assert_int_equal(roce_psn_diff(0xffffff, 0), -1);
	assert_int_equal(roce_psn_diff(0x800000, 0), -0x800000);
	assert_int_equal(roce_psn_add(0xfffffe, 3), 1);
	assert_int_equal(roce_packets(0, 1024), 1);
	assert_int_equal(roce_packets(1024, 1024), 1);
	assert_int_equal(roce_packets(1025, 1024), 2);
	assert_int_equal(roce_source_port(0, 0x11, 0x11), 49441); /* as Linux's rxe was seen to */
	assert_int_equal(roce_source_port(0xb2868, 1, 2), 59460);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers),
		cmocka_unit_test(opcodes),
		cmocka_unit_test(payloads),
		cmocka_unit_test(faults),
		cmocka_unit_test(numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
