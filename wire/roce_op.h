/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The opcodes of the base transport header, as a table: of which transport, what the packet does,
 * where in its message it stands, which headers follow, and how long its payload may be
 * (InfiniBand Architecture, volume 1, 9.2 and annexes A19, A20; RoCEv2: annex A17).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The upper three bits of an opcode. */
enum roce_transport {
	ROCE_RC = 0x00,
	ROCE_UC = 0x20,
	ROCE_UD = 0x60,
	ROCE_CN = 0x80, /* congestion notification */
	ROCE_TRANSPORT_MASK = 0xe0,
};

/* What a packet does. */
enum roce_act {
	ROCE_SEND = 1,
	ROCE_WRITE,
	ROCE_READ,
	ROCE_READ_RESPONSE,
	ROCE_ACK,
	ROCE_ATOMIC_ACK,
	ROCE_COMPARE_SWAP,
	ROCE_FETCH_ADD,
	ROCE_FLUSH,
	ROCE_ATOMIC_WRITE,
	ROCE_CNP,
};

/* The headers behind the BTH, in the order in which they stand in a packet. */
enum roce_header {
	ROCE_DETH = 1 << 0,
	ROCE_FETH = 1 << 1, /* of FLUSH */
	ROCE_RETH = 1 << 2,
	ROCE_ATOMIC_ETH = 1 << 3,
	ROCE_AETH = 1 << 4,
	ROCE_ATOMIC_ACK_ETH = 1 << 5,
	ROCE_IMM = 1 << 6,
	ROCE_IETH = 1 << 7,    /* the rkey to invalidate */
	ROCE_CNP_ETH = 1 << 8, /* 16 reserved bytes */
	ROCE_HEADER_KINDS = 9,
};

/* Where in its message a packet stands. */
enum roce_place { ROCE_MIDDLE = 0, ROCE_FIRST = 1, ROCE_LAST = 2, ROCE_ONLY = 3 };

/* How many bytes of payload it may carry. */
enum roce_payload {
	ROCE_NO_PAYLOAD = 0,
	ROCE_FULL,    /* exactly the path MTU */
	ROCE_REST,    /* 1 to the path MTU: what full ones left */
	ROCE_UP_TO,   /* 0 to the path MTU */
	ROCE_8_BYTES, /* an atomic write's */
};

struct roce_op {
	const char *name;  /* NULL: there is no such opcode */
	uint8_t act;       /* enum roce_act */
	uint8_t place;     /* enum roce_place */
	uint8_t payload;   /* enum roce_payload */
	uint16_t headers;  /* enum roce_header, those behind the BTH */
	uint16_t head_len; /* bytes of all its headers, the BTH's 12 among them */
};

/* The row of an opcode, known or not; any byte may be asked for. */
const struct roce_op *roce_op(uint8_t opcode);

/* The opcode of that transport, act, place and headers, or -1. */
int roce_opcode(enum roce_transport, enum roce_act, enum roce_place, unsigned headers);

/* Does it travel from the responder to the requester? */
static inline bool roce_is_response(const struct roce_op *op)
{
	return op->act == ROCE_READ_RESPONSE || op->act == ROCE_ACK || op->act == ROCE_ATOMIC_ACK;
}

/* The bytes of one header (one bit of enum roce_header). */
size_t roce_header_len(unsigned header);

/* May a packet of this kind carry so many bytes (padding not counted), on a path of that MTU? */
bool roce_payload_fits(const struct roce_op *, size_t bytes, size_t mtu);
