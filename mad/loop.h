/* SPDX-License-Identifier: BSD-3-Clause */
/* MADs for ports of this layer, until mad_run() delivers them: never from within the sender. */
#pragma once

#include "mad/mad.h"

enum { MAD_LOOPS_MAX = 65536 }; /* of all ports together */

/* What mad_receive() gets at the next mad_run(); for transmit().  -ENOBUFS: too many; -ENOMEM. */
int mad_queue(struct mad_port *port, const struct mad_addr *from, const uint8_t mad[MAD_SIZE]);

/* The same for what the port sends to itself.  A QP that is not there: 0.  -ENOBUFS, -ENOMEM. */
int mad_loopback(struct mad_port *port, const struct mad_addr *to, const uint8_t mad[MAD_SIZE]);

/* Delivers at most n of them, in the order of sending. */
void mad_loop_run(struct mad_layer *layer, unsigned n);

/* Drops those of a port that goes. */
void mad_loop_forget(struct mad_port *port);

/* Gives all memory back. */
void mad_loop_free(struct mad_layer *layer);
