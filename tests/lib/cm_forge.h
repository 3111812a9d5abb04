/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the communication manager that anybody makes up: UD packets from QP1 to QP1 with the
 * right ICRC, from an ordinary UDP socket, by IPv4.
 */
#pragma once

#include <netinet/in.h>

#include "wire/cm_msg.h"

struct forger {
	int fd;
	struct sockaddr_in from, to;
	uint32_t psn;
	uint64_t sent;
};

/* A socket at that address of this host, at a port of the kernel's choice. */
void forger_open(struct forger *f, struct in_addr from, struct in_addr to);
void forger_close(struct forger *f);

/* Waits where the socket is full. */
void forge_mad(struct forger *f, const uint8_t mad[MAD_SIZE]);
void forge(struct forger *f, const struct cm_msg *m);

/* The same from BTH to payload, room for the ICRC behind it. */
void forge_packet(struct forger *f, uint8_t *packet, size_t len);

/* A REQ of that number to a port of the TCP port space, from as many adapters and queue pairs. */
struct cm_msg forged_req(const struct forger *f, uint32_t comm, uint16_t port);
