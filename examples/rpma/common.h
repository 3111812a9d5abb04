/* SPDX-License-Identifier: BSD-3-Clause */
/* What the examples share: connecting, and ending the program where something fails. */
#pragma once

#include <librpma.h>
#include <stddef.h>

/* Which side this process is. */
struct side {
	int is_server;
	const char *addr, *port;
	int argc; /* further arguments */
	char **argv;
};

/* Takes "server|client ADDR PORT" plus up to `more` arguments, described by `usage`. */
struct side parse(int argc, char **argv, int more, const char *usage);

/* Ends the program with a message if ret is an error of librpma. */
void need(int ret, const char *what);

/* The adapter through which addr is reached, or which owns it. */
struct rpma_peer *open_peer(const struct side *side);

/* Listens, and says so on stdout. */
struct rpma_ep *listen_at(struct rpma_peer *peer, const struct side *side);

/* One connection, established; pdata may be NULL. */
struct rpma_conn *connect_to(struct rpma_peer *peer, const struct side *side,
	const struct rpma_conn_private_data *pdata);
struct rpma_conn *accept_from(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
	const struct rpma_conn_private_data *pdata);

/* Waits for that event of the connection. */
void expect(struct rpma_conn *conn, enum rpma_conn_event want);

/* Waits for the next completion of a queue, which must be a success. */
struct ibv_wc wait_cq(struct rpma_cq *cq);
/* The same of a connection's main queue. */
struct ibv_wc wait_conn(struct rpma_conn *conn);

/* Disconnects (the client), or waits for the client to do it (the server); deletes conn. */
void end_client(struct rpma_conn **conn);
void end_server(struct rpma_conn **conn);

/* Zeroed, page-aligned memory. */
void *allocate(size_t size);
/* A file of that size, mapped; made if it is not there. */
void *map_file(const char *path, size_t size);

/* What a server tells a client of a region and of its platform, as private data. */
enum { MR_DESC_SIZE = 21, PEER_DESC_SIZE = 1 };
struct offer {
	uint8_t mr[MR_DESC_SIZE];
	uint8_t peer[PEER_DESC_SIZE]; /* its peer configuration */
};
void make_offer(struct offer *offer, const struct rpma_mr_local *mr, int direct_write);
/* Takes the server's offer from conn's private data, and applies its peer configuration. */
struct rpma_mr_remote *take_offer(struct rpma_conn *conn);
