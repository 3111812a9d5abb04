/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that weftd has lent. */
#pragma once

#include "rdmacm/rdmacm.h"

/*
 * A port that is free for all addresses and port spaces; *loan goes with it.  Calls weftd now and
 * then: its errors.  -EADDRNOTAVAIL: there is none.
 */
int port_borrow(uint16_t *port, uint32_t *loan);

void port_give_back(uint16_t port, uint32_t loan);

/* Is it one that was lent and is not in use?  Then it is taken. */
bool port_claim(uint16_t port);

/* There is a new weftd, which knows of no loan. */
void ports_forget(void);

void ports_forked_child(void);
