/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP numbers that weftd has leased to this process, a claim at a time, and the claims' sockets: for
 * the attachment, under the lock of control calls.
 */
#pragma once

#include "rdv/conn.h"

/* Tells a new weftd what we have, and takes what the program has closed of it.  -errno. */
int leases_publish(struct conn *conn);

/* In a forked child: they are the parent's. */
void leases_forget(void);
