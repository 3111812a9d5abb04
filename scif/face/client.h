/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients: who is told of nodes that come and go. */
#pragma once

struct scif_client;

/*
 * scif_client_register(), scif_client_unregister() without conversion of errors.  Callbacks run in
 * here and, later, in a thread that lives while there are clients; one at a time.  They may call
 * anything, these two included.
 */
int client_add(struct scif_client *client);
void client_remove(struct scif_client *client);

/* In a forked child: there are no clients. */
void client_forked(void);
