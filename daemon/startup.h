/* SPDX-License-Identifier: BSD-3-Clause */
/* How weftd becomes the one server of its fabric, and ceases to be it. */
#pragma once

#include "daemon/server.h"

/*
 * Makes weftd ready to serve: lock, epoch, hub, page, socket.  On failure returns a negative
 * errno and leaves one line for people in why.  May wait 3 s for a predecessor to leave.
 */
int server_start(struct server *s, const char *fabric, char *why, size_t size);

/* Takes the socket away, so that the next client starts a new weftd; frees the sessions. */
void server_end(struct server *s);
