/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 packets that somebody sends who is no queue pair's peer: by an ordinary UDP socket of that
 * address, or, as root can, with any source port.  What cannot be set up ends the program.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/roce.h"

enum { FORGER_BYTES = 5000 };

struct forger {
	int fd;
	bool raw;
	struct sockaddr_in from, to;
	uint8_t bytes[8 + FORGER_BYTES]; /* UDP header, and what follows it */
};

/* Sends to that address, from the other one; from_port 0: an ordinary socket. */
void forger_open(struct forger *, const char *from, uint16_t from_port, const char *to);
void forger_close(struct forger *);

/* Sends it; its payload is pattern_fill() of that seed. */
void forger_send(struct forger *, const struct roce_packet *, uint32_t seed);
