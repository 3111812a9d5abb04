// SPDX-License-Identifier: BSD-3-Clause
/*
 * wire/field.h: every place and width of a number, held against bits that are set one by one.
 * wire/mad.h: what reads and writes the header of a MAD, held against its format.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "wire/mad.h"

enum { BYTES = 24, LAST_BYTE = 10 };

struct number {
	uint64_t before, value, after;
};

static void fill(uint8_t *msg, uint64_t seed)
{
	for (unsigned i = 0; i < BYTES; i++)
		msg[i] = (uint8_t)hash_mix(seed + i);
}

static void put_bit(uint8_t *msg, unsigned bit, uint64_t value)
{
	uint8_t mask = 0x80 >> bit % 8;

	msg[bit / 8] = value & 1 ? msg[bit / 8] | mask : msg[bit / 8] & ~mask;
}

static void check(unsigned bit, unsigned bits)
{
	const struct wire_field field = {
		"value", bit, bits, offsetof(struct number, value), sizeof(uint64_t)};
	const struct wire_format format = {"number", &field, 1};
	const struct number in = {1, hash_mix(bit * 64 + bits), 2};
	struct number out = {3, 4, 5};
	uint8_t msg[BYTES], want[BYTES];

	fill(msg, bit);
	memcpy(want, msg, sizeof want);
	for (unsigned i = 0; i < bits; i++)
		put_bit(want, bit + i, in.value >> (bits - 1 - i));
	wire_pack(&format, &in, msg);
	assert_memory_equal(msg, want, sizeof want);
	wire_unpack(&format, msg, &out);
	assert_int_equal(out.value, in.value << (64 - bits) >> (64 - bits));
	assert_int_equal(out.before, 3);
	assert_int_equal(out.after, 5);
}

static void everywhere(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < LAST_BYTE * 8; bit++)
		for (unsigned bits = 1; bits <= 64; bits++)
			check(bit, bits);
}

struct narrow {
	uint8_t byte;
	uint16_t half;
	uint32_t word;
};

/* A member is as wide as its type. */
static void narrow(void **state)
{
	static const struct wire_field fields[] = {
		WIRE_FIELD(struct narrow, byte, 0, 0, 8),
		WIRE_FIELD(struct narrow, half, 1, 0, 16),
		WIRE_FIELD(struct narrow, word, 3, 0, 32),
	};
	const struct narrow in = {0x12, 0x3456, 0x789abcde};
	struct narrow out = {0};
	const struct wire_format format = WIRE_FORMAT("narrow", fields);
	const uint8_t want[] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde};
	uint8_t msg[sizeof want] = {0};

	(void)state;
	wire_pack(&format, &in, msg);
	assert_memory_equal(msg, want, sizeof want);
	wire_unpack(&format, msg, &out);
	assert_int_equal(out.byte, in.byte);
	assert_int_equal(out.half, in.half);
	assert_int_equal(out.word, in.word);
}

static void header(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		uint8_t mad[MAD_SIZE], want[MAD_SIZE], got[MAD_SIZE];
		struct mad_hdr by_format, by_hand;

		for (unsigned i = 0; i < MAD_SIZE; i++) {
			mad[i] = (uint8_t)hash_mix(seed << 16 | i);
			want[i] = got[i] = (uint8_t)~mad[i];
		}
		wire_unpack(&mad_hdr_format, mad, &by_format);
		mad_hdr_unpack(mad, &by_hand);
		wire_pack(&mad_hdr_format, &by_format, want);
		mad_hdr_pack(&by_hand, got);
		assert_memory_equal(got, want, MAD_SIZE);
		wire_pack(&mad_hdr_format, &by_hand, got);
		assert_memory_equal(got, want, MAD_SIZE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everywhere),
		cmocka_unit_test(narrow),
		cmocka_unit_test(header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
