// SPDX-License-Identifier: BSD-3-Clause
/*
 * The client writes into a file that the server has mapped, and flushes.
 *
 * The server's last argument says what the flush can mean: "persistent" if its platform writes to
 * persistent memory directly, else "visible" (the default): then the client can only ask that the
 * server sees the data, and the server itself makes the file durable.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common.h"

enum { SIZE = 4096 };

static void serve(struct rpma_peer *peer, const struct side *side)
{
	int persistent = side->argc > 1 && !strcmp(side->argv[1], "persistent");
	int usage = RPMA_MR_USAGE_WRITE_DST | (persistent ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT
							  : RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	struct rpma_conn_private_data pdata = {.len = sizeof(struct offer)};
	char *memory = map_file(side->argc ? side->argv[0] : "write_flush.data", SIZE);
	struct rpma_ep *ep = listen_at(peer, side);
	struct rpma_mr_local *mr;
	struct rpma_conn *conn;
	struct offer offer;

	need(rpma_mr_reg(peer, memory, SIZE, usage, &mr), "rpma_mr_reg");
	make_offer(&offer, mr, persistent);
	pdata.ptr = &offer;
	conn = accept_from(ep, NULL, &pdata);
	end_server(&conn);
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	if (!persistent && msync(memory, SIZE, MS_SYNC))
		perror("msync");
	printf("written: %s\n", memory);
	need(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
}

static void write_it(struct rpma_peer *peer, const struct side *side)
{
	struct rpma_conn *conn = connect_to(peer, side, NULL);
	struct rpma_mr_remote *dst = take_offer(conn);
	enum rpma_flush_type type = RPMA_FLUSH_TYPE_VISIBILITY;
	const char *text = side->argc ? side->argv[0] : "what the client wrote";
	char *memory = allocate(SIZE);
	struct rpma_mr_local *src;
	int types;

	need(rpma_mr_remote_get_flush_type(dst, &types), "rpma_mr_remote_get_flush_type");
	if (types & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)
		type = RPMA_FLUSH_TYPE_PERSISTENT;
	snprintf(memory, SIZE, "%s", text);
	need(rpma_mr_reg(peer, memory, SIZE, RPMA_MR_USAGE_WRITE_SRC, &src), "rpma_mr_reg");
	/* One completion for both: the flush is done when the write before it is. */
	need(rpma_write(conn, dst, 0, src, 0, SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL),
		"rpma_write");
	need(rpma_flush(conn, dst, 0, SIZE, type, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_flush");
	wait_conn(conn);
	printf("%s\n", type == RPMA_FLUSH_TYPE_PERSISTENT ? "persistent" : "visible");
	end_client(&conn);
	need(rpma_mr_remote_delete(&dst), "rpma_mr_remote_delete");
	need(rpma_mr_dereg(&src), "rpma_mr_dereg");
}

int main(int argc, char **argv)
{
	struct side side = parse(argc, argv, 2, "[FILE [persistent|visible]] (server) or [TEXT]");
	struct rpma_peer *peer = open_peer(&side);

	if (side.is_server)
		serve(peer, &side);
	else
		write_it(peer, &side);
	need(rpma_peer_delete(&peer), "rpma_peer_delete");
	return 0;
}
