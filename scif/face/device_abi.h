/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of the SCIF device and what their arguments point to.  Earlier drivers put the size
 * of a pointer into a command where later ones put that of what it points to; the structs are
 * the same but for that of NODE_IDS.
 */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>

enum { DEV_TYPE = 's', DEV_VERSION = 1 };

enum dev_nr {
	DEV_BIND = 1,
	DEV_LISTEN,
	DEV_CONNECT,
	DEV_ACCEPTREQ,
	DEV_ACCEPTREG,
	DEV_SEND,
	DEV_RECV,
	DEV_REG,
	DEV_UNREG,
	DEV_READFROM,
	DEV_WRITETO,
	DEV_VREADFROM,
	DEV_VWRITETO,
	DEV_NODE_IDS,
	DEV_FENCE_MARK,
	DEV_FENCE_WAIT,
	DEV_FENCE_SIGNAL,
	DEV_GET_VERSION = 23, /* of earlier drivers alone */
};

struct dev_port {
	uint16_t node, port;
};

struct dev_connect {
	struct dev_port self, peer;
};

struct dev_accept {
	int32_t flags;
	struct dev_port peer;
	uint64_t endpt;
};

struct dev_msg {
	uint64_t msg;
	int32_t len, flags, out_len;
};

struct dev_reg {
	uint64_t addr, len;
	int64_t offset;
	int32_t prot, flags;
	int64_t out_offset;
};

struct dev_unreg {
	int64_t offset;
	uint64_t len;
};

struct dev_copy {
	int64_t loffset;
	uint64_t len;
	int64_t roffset;
	uint64_t addr;
	int32_t flags;
};

struct dev_node_ids {
	uint64_t nodes, self;
	int32_t len;
};

struct dev_node_ids_old {
	uint64_t nodes;
	int32_t len;
	uint64_t self;
};

struct dev_fence_mark {
	int32_t flags;
	uint64_t mark;
};

struct dev_fence_signal {
	int64_t loff;
	uint64_t lval;
	int64_t roff;
	uint64_t rval;
	int32_t flags;
};

_Static_assert(sizeof(struct dev_accept) == 16 && sizeof(struct dev_msg) == 24 &&
		       sizeof(struct dev_reg) == 40 && sizeof(struct dev_copy) == 40 &&
		       sizeof(struct dev_node_ids) == 24 && sizeof(struct dev_node_ids_old) == 24 &&
		       sizeof(struct dev_fence_mark) == 16 && sizeof(struct dev_fence_signal) == 40,
	"the sizes of the drivers");
