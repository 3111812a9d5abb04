/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions of heirs and their answers: one message each, with bytes and fds. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { HEIR_BYTES = 4095, HEIR_FDS = 3 };

enum heir_op {
	HEIR_SEND,
	HEIR_RECV,
	HEIR_BIND,
	HEIR_LISTEN,
	HEIR_CONNECT,
	HEIR_ACCEPT,
	HEIR_REGISTER, /* with the handle of an export */
	HEIR_UNREGISTER,
	HEIR_COPY,
	HEIR_COPY_MEMORY, /* with a sealed file that stands for the memory */
	HEIR_MARK,
	HEIR_WAIT,
	HEIR_SIGNAL,
};

struct heir_question {
	uint32_t op;
	int32_t flags;
	int64_t arg[4];
};

struct heir_answer {
	int64_t ret;
	uint64_t word; /* a mark; who was accepted */
};

/* The parts of a message. */
struct heir_msg {
	void *head;
	size_t head_len;
	void *data;
	size_t len;       /* of data; when receiving: its room, and then what came */
	int fd[HEIR_FDS]; /* -1: none */
};

/* Sends it; waits for room.  -ECONNRESET: nobody is there. */
int heir_put(int sock, const struct heir_msg *m);
/* The same without waiting: a socket for one answer has room.  -ECONNRESET, too, if it has none. */
int heir_answer(int sock, const struct heir_msg *m);
/* Receives one.  -EBADMSG, also with what should not be; -EAGAIN; -ECONNRESET. */
int heir_get(int sock, struct heir_msg *m);
/* Closes what came. */
void heir_drop(struct heir_msg *m);
