/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections whose peer may have been started anew, as somebody who says to be it tells by a
 * request from the queue pair that is connected.  The peer itself is asked: of one that it knows it
 * says so, and nothing happens.  The server's side asks by its REP, which is answered by RTU, the
 * client's by LAP and APR, which Linux does not answer on Ethernet.
 */
#pragma once

#include "cm/cm.h"

/* Asks the peer, if the connection stands and it is not being asked. */
void suspect(struct cm_id *id);

/* The peer knows the connection; harmless if it was not asked. */
void suspect_cleared(struct cm_id *id);

/* It does not, or does not answer: if it was asked, the connection is over.  False: it was not. */
bool suspect_gone(struct cm_id *id);
