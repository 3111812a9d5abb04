/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 packets: what a datagram on UDP port 4791 holds, read and written.  A datagram is the BTH,
 * the headers that its opcode names, the payload, 0 to 3 bytes that fill it up to a multiple of 4,
 * and the ICRC.  Numbers are big endian on the wire (the ICRC is not) and in host order here.
 */
#pragma once

#include "wire/roce_op.h"

enum {
	ROCE_PORT = 4791,
	ROCE_BTH_LEN = 12,
	ROCE_ICRC_LEN = 4,
	ROCE_HEADERS_MAX = ROCE_BTH_LEN + 28, /* of an atomic */
	ROCE_PSN_MASK = 0xffffff,
	ROCE_QPN_MASK = 0xffffff,
	ROCE_PKEY_DEFAULT = 0xffff,
};

/* AETH syndromes: the upper three bits say what, the lower five more. */
enum roce_syndrome {
	ROCE_ACK_NO_CREDITS = 0x1f, /* an ACK whose sender counts no credits */
	ROCE_RNR_NAK = 0x20,        /* + the code of the time to wait */
	ROCE_NAK_PSN = 0x60,
	ROCE_NAK_INVALID_REQUEST = 0x61,
	ROCE_NAK_REMOTE_ACCESS = 0x62,
	ROCE_NAK_REMOTE_OPERATION = 0x63,
	ROCE_SYNDROME_KIND = 0xe0,
};

/* Why a datagram is no packet of ours. */
enum roce_fault {
	ROCE_GOOD,
	ROCE_TOO_SHORT,      /* for its headers and the ICRC */
	ROCE_BAD_VERSION,    /* a transport header version other than 0 */
	ROCE_UNKNOWN_OPCODE, /* or of a transport that RoCE does not carry */
	ROCE_BAD_LENGTH,     /* not a multiple of 4, or less than it says to be padding */
	ROCE_FAULTS,
};

/* A packet's headers.  Those fields alone are meant that its opcode has. */
struct roce_packet {
	const struct roce_op *op;
	uint8_t opcode;
	bool solicited;
	bool ack_req;
	bool again; /* sent before: a reserved bit, which Weft sets for Weft alone */
	bool fecn, becn;
	uint8_t pad; /* bytes behind the payload */
	uint16_t pkey;
	uint32_t dest_qpn;
	uint32_t psn;
	uint32_t qkey, src_qpn;     /* DETH */
	uint32_t flush;             /* FETH: types in bits 0 to 3, level in bits 4 and 5 */
	uint64_t va;                /* RETH, AtomicETH */
	uint32_t rkey;              /* the same */
	uint32_t length;            /* RETH */
	uint64_t swap_add, compare; /* AtomicETH */
	uint8_t syndrome;           /* AETH */
	uint32_t msn;               /* the same, 24 bits */
	uint64_t old;               /* AtomicAckETH */
	uint32_t imm;               /* as a number: ibv_wc has it in network order */
	uint32_t invalidate;        /* IETH */
	const uint8_t *payload;     /* within the datagram */
	size_t payload_len;         /* without padding */
};

/*
 * Reads a datagram of that many bytes, its ICRC last.  What is fit for the queue pair (MTU, state,
 * keys) and the ICRC itself are others' to check.  *p is valid where ROCE_GOOD is returned.
 */
enum roce_fault roce_parse(const uint8_t *datagram, size_t len, struct roce_packet *p);

/* The headers of p, whose op follows from its opcode; returns their length. */
size_t roce_build(const struct roce_packet *p, uint8_t head[ROCE_HEADERS_MAX]);

/* The destination queue pair of any datagram, without looking at more; 0 for a short one. */
uint32_t roce_peek_qpn(const uint8_t *datagram, size_t len);

/* As if that datagram, which is none too short, had been sent before. */
void roce_set_again(uint8_t *datagram);

/* Do both hold the same, but for what the network may change, and how they were sent? */
bool roce_same(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len);

/* What a reader of a log or capture wants to see: "RC SEND_ONLY qpn=0x12 psn=7 ..."; as snprintf.
 */
int roce_print(const struct roce_packet *p, char *buf, size_t size);

/* Words for a fault. */
const char *roce_fault_text(enum roce_fault);

/* a - b of 24-bit sequence numbers, -2^23 to 2^23 - 1. */
static inline int32_t roce_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t roce_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & ROCE_PSN_MASK;
}

/* No message is longer, whatever its RETH says (InfiniBand Architecture, volume 1, 9.7.7). */
#define ROCE_MESSAGE_MAX (UINT32_C(1) << 31)

/* How many packets a message of that length takes: one at least. */
static inline uint32_t roce_packets(uint64_t bytes, uint32_t mtu)
{
	return bytes ? (bytes + mtu - 1) / mtu : 1;
}

/*
 * The UDP source port of a connected queue pair: from the flow label, or where that is 0 from both
 * queue pair numbers, so that both directions use one port and routers spread the connections.
 */
uint16_t roce_source_port(uint32_t flow_label, uint32_t qpn, uint32_t remote_qpn);
