/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two endpoints say to each other.  All words are little endian.
 *
 * A connection is an RC queue pair.  Bytes of scif_send() travel as SENDs with immediate
 * (WIRE_DATA), all else as SENDs of one struct wire_ctl.  Each side has a struct wire_credit that
 * the other writes by RDMA: how many bytes its program took and how many messages its library did.
 * So nobody sends more than has room, and no SEND meets a lack of receives.  It is written now and
 * then; WIRE_TOOK_AT bytes behind it each side keeps what is true of itself, for the other to read
 * by RDMA when it needs more room than it knows of.
 */
#pragma once

#include <stdint.h>

enum {
	WIRE_MAGIC = 0x46494353,
	WIRE_VERSION = 3,
	WIRE_RING = 4096,  /* one byte of it stays free: 4095 in flight */
	WIRE_RECVS = 64,   /* receives that each side keeps posted */
	WIRE_SPARE = 24,   /* of them for WIRE_WANT and WIRE_CREDIT alone */
	WIRE_MSG = 2048,   /* largest SEND */
	WIRE_DATA = 0x5ca, /* immediate of a SEND of bytes */
	WIRE_TOOK_AT = 64,
};

/* Private data of the CM's REQ and REP. */
struct wire_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t src_node, src_port;
	uint16_t dst_node, dst_port;
	uint16_t pad;
	uint32_t credit_rkey;
	uint64_t credit_addr;
	uint64_t host; /* GUID of the adapter, in its own byte order */
} __attribute__((packed));

/* In the memory of who sends, written by who receives; and what that one took, in its own. */
struct wire_credit {
	uint64_t bytes;
	uint64_t msgs;
};

enum wire_op {
	WIRE_REGISTER =
		1,       /* a window: offset, length, protection, rkey; its addresses are offsets */
	WIRE_UNREGISTER, /* offset: use it no more */
	WIRE_RETAINED,   /* offset: answer: still in use */
	WIRE_RELEASED,   /* offset: answer, at once or after that: nobody uses it */
	WIRE_WANT,       /* bytes known to be taken, WANT_*: tell me when there is more */
	WIRE_CREDIT,     /* WANT_* bits: there is */
	WIRE_MARK,       /* which is your last RMA? */
	WIRE_MARK_ACK,   /* number */
	WIRE_WAIT,       /* number: tell me when it is complete */
	WIRE_WAIT_ACK,   /* */
	WIRE_SIGNAL,     /* mine: offset, value; yours: offset, value; SCIF_SIGNAL_* as I see it */
	WIRE_SIGNAL_ACK, /* 0 or an errno */
	WIRE_MAP,        /* offset: which memory is behind your window? */
	WIRE_MAP_ACK,    /* 0 or an errno, 32 bytes for weft_share_map() */
};

/* What a sender lacks: room for bytes, or receives. */
enum wire_want { WANT_BYTES = 1, WANT_MSGS = 2 };

struct wire_ctl {
	uint32_t op;
	uint32_t id; /* an answer repeats its question's */
	uint64_t arg[5];
};
