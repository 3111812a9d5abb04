/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The SCIF device by system calls alone, as its drivers had it: /dev/scif of later ones,
 * /dev/mic/scif of earlier ones.  Calls answer as ioctl(2) does.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum raw_gen { RAW_NEW, RAW_OLD, RAW_GENS };
extern const char *const raw_path[RAW_GENS];

enum raw_nr {
	RAW_BIND = 1,
	RAW_LISTEN,
	RAW_CONNECT,
	RAW_ACCEPTREQ,
	RAW_ACCEPTREG,
	RAW_SEND,
	RAW_RECV,
	RAW_REG,
	RAW_UNREG,
	RAW_READFROM,
	RAW_WRITETO,
	RAW_VREADFROM,
	RAW_VWRITETO,
	RAW_NODE_IDS,
	RAW_MARK,
	RAW_WAIT,
	RAW_SIGNAL,
	RAW_COUNT
};

enum { RAW_GET_VERSION = 0x7317 };

struct raw_id {
	uint16_t node, port;
};

struct raw_connect {
	struct raw_id self, peer;
};

struct raw_accept {
	int32_t flags;
	struct raw_id peer;
	uint64_t endpt;
};

struct raw_msg {
	uint64_t msg;
	int32_t len, flags, out_len;
};

struct raw_reg {
	uint64_t addr, len;
	int64_t offset;
	int32_t prot, flags;
	int64_t out_offset;
};

struct raw_unreg {
	int64_t offset;
	uint64_t len;
};

struct raw_copy {
	int64_t loffset;
	uint64_t len;
	int64_t roffset;
	uint64_t addr;
	int32_t flags;
};

struct raw_node_ids {
	uint64_t nodes, self;
	int32_t len;
};

struct raw_node_ids_old {
	uint16_t *nodes;
	int len;
	uint16_t *self;
};

struct raw_mark {
	int32_t flags;
	uint64_t mark;
};

struct raw_signal {
	int64_t loff;
	uint64_t lval;
	int64_t roff;
	uint64_t rval;
	int32_t flags;
};

/* The number of a command. */
unsigned long raw_cmd(enum raw_gen gen, enum raw_nr nr);

/* ioctl(2) with a struct, or whatever arg points to. */
int raw_do(int fd, enum raw_gen gen, enum raw_nr nr, void *arg);

/* Opens the device; ends the test if it cannot. */
int raw_open(enum raw_gen gen, int flags);
/* A listener on a free port. */
int raw_listener(enum raw_gen gen, int backlog, uint16_t *port);
int raw_connect(int fd, enum raw_gen gen, struct raw_id peer);
/* Both halves; the new fd. */
int raw_accept(int fd, enum raw_gen gen, int flags, struct raw_id *peer);
/* How many bytes. */
int raw_send(int fd, enum raw_gen gen, const void *msg, int len, int flags);
int raw_recv(int fd, enum raw_gen gen, void *msg, int len, int flags);
int64_t raw_register(int fd, enum raw_gen gen, void *mem, uint64_t len, int64_t off, int flags);

/* Two connected endpoints of this process. */
struct raw_pair {
	int listener, a, b;
	uint16_t port;
};
struct raw_pair raw_make_pair(enum raw_gen gen);
void raw_end_pair(struct raw_pair *p);
