/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for umad/file.c: it answers what a test says, and keeps what it was asked. */
#pragma once

#include <stdint.h>

#include "umad/file.h"

enum { FAKE_FD = 1000, FAKE_MESSAGE = 2048 };

struct fake_file {
	/* answers; 0 is success */
	int open_rc; /* success: FAKE_FD */
	int enable_rc;
	int register_rc;
	int register2_rc;
	int unregister_rc;
	ssize_t write_rc; /* 0: all of it */
	ssize_t read_rc;  /* 0: the message; -ENOSPC: as much of it as fits, and an error */
	int wait_rc;
	int wait_fd; /* not 0: wait polls this one, as the real file does */
	uint32_t id; /* of the next agent */
	uint32_t flags_known;
	uint8_t message[FAKE_MESSAGE]; /* what is read */
	size_t message_len;

	/* what was asked */
	char device[64];
	int port;
	int flags;
	unsigned n_open, n_register, n_register2, n_write, n_read, n_wait;
	struct umad_agent agent;
	uint32_t unregistered;
	uint8_t written[FAKE_MESSAGE];
	size_t written_len;
	size_t read_len;
	int waited_ms;
};

extern struct fake_file fake;
