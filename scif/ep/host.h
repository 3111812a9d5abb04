/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes on several machines: WEFT_SCIF_NODES has rows NODE=ADDRESS, with commas between them.  A
 * node that has one listens at that address, at the CM's port of the number of each SCIF port, and
 * is looked for there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Can WEFT_SCIF_NODES be read?  -EINVAL, with a line in the log; 0 also if it is not there. */
int host_check(void);
/* The address of that node, with that port; false: it has no row. */
bool host_of(uint16_t node, uint16_t port, struct sockaddr_storage *addr);
/* The nodes that have a row, at most room of them; how many. */
int host_nodes(uint16_t *nodes, int room);

/* An address as text without its port, and back, with that port; false: it is none. */
void host_text(const struct sockaddr_storage *addr, char *text, socklen_t len);
bool host_read(const char *text, uint16_t port, struct sockaddr_storage *addr);
