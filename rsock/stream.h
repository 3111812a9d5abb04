/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a connection. */
#pragma once

#include "rsock/rsock.h"

/* Makes queues and buffers; s->id has its device.  *hello: for the peer. */
int stream_open(struct rsocket *s, struct rs_hello *hello);

/* Takes the peer's.  -EPROTO. */
int stream_meet(struct rsocket *s, const struct rs_hello *hello);

void stream_free(struct rsocket *s);

/* Takes completions, gives credit. */
void stream_progress(struct rsocket *s);

/* Bytes that came and were not read. */
size_t stream_unread(const struct rsocket *s);

bool stream_readable(const struct rsocket *s);

bool stream_writable(const struct rsocket *s);

/* True while a send has to complete before something that is due can go on. */
bool stream_send_pends(const struct rsocket *s, bool want_out);

/* Copies out at most len; 0: the end, -EAGAIN: nothing there. */
ssize_t stream_take(struct rsocket *s, void *buf, size_t len, bool peek, size_t skip);

/* Sends some of it; -EAGAIN: no room. */
ssize_t stream_put(struct rsocket *s, const void *buf, size_t len);

/* Says that we send no more.  -EAGAIN. */
int stream_fin(struct rsocket *s);

/* All that was posted has completed. */
bool stream_drained(const struct rsocket *s);

enum rs_msg { RS_CREDIT = 1, RS_FIN, RS_IOMAP, RS_IOUNMAP };

/* A control message; big-endian.  Each carries the credit as it is. */
struct rs_ctl {
	uint32_t type;
	uint32_t msgs;     /* that the sender of this has taken, 32 bits of them */
	uint64_t consumed; /* the same of bytes */
	uint64_t offset, len, addr;
	uint32_t rkey, index;
};

/* Sends one about iomap; -EAGAIN. */
int stream_say(struct rsocket *s, enum rs_msg type, const struct rs_iomap *map);

/* A plain RDMA WRITE of at most len bytes; -EAGAIN. */
ssize_t stream_write(struct rsocket *s, const void *buf, size_t len, uint64_t addr, uint32_t rkey);
