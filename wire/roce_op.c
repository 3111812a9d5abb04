// SPDX-License-Identifier: BSD-3-Clause
#include "wire/roce_op.h"

/* Header lengths are summed by the compiler, so that a row names its headers alone. */
#define HAS(set, header, bytes) (((set) & (header)) ? (bytes) : 0)
#define HEAD(set)                                                                                  \
	(12 + HAS(set, ROCE_DETH, 8) + HAS(set, ROCE_FETH, 4) + HAS(set, ROCE_RETH, 16) +          \
		HAS(set, ROCE_ATOMIC_ETH, 28) + HAS(set, ROCE_AETH, 4) +                           \
		HAS(set, ROCE_ATOMIC_ACK_ETH, 8) + HAS(set, ROCE_IMM, 4) +                         \
		HAS(set, ROCE_IETH, 4) + HAS(set, ROCE_CNP_ETH, 16))
#define OP(name, act, place, payload, set)                                                         \
	{                                                                                          \
		name, ROCE_##act, ROCE_##place, ROCE_##payload, set, HEAD(set)                     \
	}

static const struct roce_op ops[256] = {
	[0x00] = OP("RC SEND_FIRST", SEND, FIRST, FULL, 0),
	[0x01] = OP("RC SEND_MIDDLE", SEND, MIDDLE, FULL, 0),
	[0x02] = OP("RC SEND_LAST", SEND, LAST, REST, 0),
	[0x03] = OP("RC SEND_LAST_IMM", SEND, LAST, REST, ROCE_IMM),
	[0x04] = OP("RC SEND_ONLY", SEND, ONLY, UP_TO, 0),
	[0x05] = OP("RC SEND_ONLY_IMM", SEND, ONLY, UP_TO, ROCE_IMM),
	[0x06] = OP("RC WRITE_FIRST", WRITE, FIRST, FULL, ROCE_RETH),
	[0x07] = OP("RC WRITE_MIDDLE", WRITE, MIDDLE, FULL, 0),
	[0x08] = OP("RC WRITE_LAST", WRITE, LAST, REST, 0),
	[0x09] = OP("RC WRITE_LAST_IMM", WRITE, LAST, REST, ROCE_IMM),
	[0x0a] = OP("RC WRITE_ONLY", WRITE, ONLY, UP_TO, ROCE_RETH),
	[0x0b] = OP("RC WRITE_ONLY_IMM", WRITE, ONLY, UP_TO, ROCE_RETH | ROCE_IMM),
	[0x0c] = OP("RC READ_REQUEST", READ, ONLY, NO_PAYLOAD, ROCE_RETH),
	[0x0d] = OP("RC READ_RESPONSE_FIRST", READ_RESPONSE, FIRST, FULL, ROCE_AETH),
	[0x0e] = OP("RC READ_RESPONSE_MIDDLE", READ_RESPONSE, MIDDLE, FULL, 0),
	[0x0f] = OP("RC READ_RESPONSE_LAST", READ_RESPONSE, LAST, REST, ROCE_AETH),
	[0x10] = OP("RC READ_RESPONSE_ONLY", READ_RESPONSE, ONLY, UP_TO, ROCE_AETH),
	[0x11] = OP("RC ACKNOWLEDGE", ACK, ONLY, NO_PAYLOAD, ROCE_AETH),
	[0x12] = OP("RC ATOMIC_ACKNOWLEDGE", ATOMIC_ACK, ONLY, NO_PAYLOAD,
		ROCE_AETH | ROCE_ATOMIC_ACK_ETH),
	[0x13] = OP("RC COMPARE_SWAP", COMPARE_SWAP, ONLY, NO_PAYLOAD, ROCE_ATOMIC_ETH),
	[0x14] = OP("RC FETCH_ADD", FETCH_ADD, ONLY, NO_PAYLOAD, ROCE_ATOMIC_ETH),
	[0x16] = OP("RC SEND_LAST_INV", SEND, LAST, REST, ROCE_IETH),
	[0x17] = OP("RC SEND_ONLY_INV", SEND, ONLY, UP_TO, ROCE_IETH),
	[0x1c] = OP("RC FLUSH", FLUSH, ONLY, NO_PAYLOAD, ROCE_FETH | ROCE_RETH),
	[0x1d] = OP("RC ATOMIC_WRITE", ATOMIC_WRITE, ONLY, 8_BYTES, ROCE_RETH),
	[0x20] = OP("UC SEND_FIRST", SEND, FIRST, FULL, 0),
	[0x21] = OP("UC SEND_MIDDLE", SEND, MIDDLE, FULL, 0),
	[0x22] = OP("UC SEND_LAST", SEND, LAST, REST, 0),
	[0x23] = OP("UC SEND_LAST_IMM", SEND, LAST, REST, ROCE_IMM),
	[0x24] = OP("UC SEND_ONLY", SEND, ONLY, UP_TO, 0),
	[0x25] = OP("UC SEND_ONLY_IMM", SEND, ONLY, UP_TO, ROCE_IMM),
	[0x26] = OP("UC WRITE_FIRST", WRITE, FIRST, FULL, ROCE_RETH),
	[0x27] = OP("UC WRITE_MIDDLE", WRITE, MIDDLE, FULL, 0),
	[0x28] = OP("UC WRITE_LAST", WRITE, LAST, REST, 0),
	[0x29] = OP("UC WRITE_LAST_IMM", WRITE, LAST, REST, ROCE_IMM),
	[0x2a] = OP("UC WRITE_ONLY", WRITE, ONLY, UP_TO, ROCE_RETH),
	[0x2b] = OP("UC WRITE_ONLY_IMM", WRITE, ONLY, UP_TO, ROCE_RETH | ROCE_IMM),
	[0x64] = OP("UD SEND_ONLY", SEND, ONLY, UP_TO, ROCE_DETH),
	[0x65] = OP("UD SEND_ONLY_IMM", SEND, ONLY, UP_TO, ROCE_DETH | ROCE_IMM),
	[0x81] = OP("CNP", CNP, ONLY, NO_PAYLOAD, ROCE_CNP_ETH),
};

const struct roce_op *roce_op(uint8_t opcode)
{
	return &ops[opcode];
}

/* The first opcode of an act at a place, of any transport: those with other headers follow. */
static const uint8_t first_of[][ROCE_ONLY + 1] = {
	[ROCE_SEND] = {[ROCE_MIDDLE] = 0x01, [ROCE_LAST] = 0x02, [ROCE_ONLY] = 0x04},
	[ROCE_WRITE] =
		{[ROCE_FIRST] = 0x06, [ROCE_MIDDLE] = 0x07, [ROCE_LAST] = 0x08, [ROCE_ONLY] = 0x0a},
	[ROCE_READ] = {[ROCE_ONLY] = 0x0c},
	[ROCE_READ_RESPONSE] =
		{[ROCE_FIRST] = 0x0d, [ROCE_MIDDLE] = 0x0e, [ROCE_LAST] = 0x0f, [ROCE_ONLY] = 0x10},
	[ROCE_ACK] = {[ROCE_ONLY] = 0x11},
	[ROCE_CNP] = {0},
};

int roce_opcode(
	enum roce_transport transport, enum roce_act act, enum roce_place place, unsigned headers)
{
	for (int low = first_of[act][place]; low < 0x20; low++) {
		const struct roce_op *op = &ops[transport | low];

		if (op->name && op->act == act && op->place == place && op->headers == headers)
			return transport | low;
	}
	return -1;
}

size_t roce_header_len(unsigned header)
{
	return HEAD(header) - 12;
}

bool roce_payload_fits(const struct roce_op *op, size_t bytes, size_t mtu)
{
	switch ((enum roce_payload)op->payload) {
	case ROCE_NO_PAYLOAD:
		return bytes == 0;
	case ROCE_FULL:
		return bytes == mtu;
	case ROCE_REST:
		return bytes >= 1 && bytes <= mtu;
	case ROCE_UP_TO:
		return bytes <= mtu;
	case ROCE_8_BYTES:
		return bytes == 8;
	}
	return false;
}
