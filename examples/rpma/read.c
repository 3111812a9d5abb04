// SPDX-License-Identifier: BSD-3-Clause
/* The client reads the server's memory; the server does nothing for it. */
#include <stdio.h>
#include <string.h>

#include "common.h"

enum { SIZE = 4096 };

static void serve(struct rpma_peer *peer, const struct side *side)
{
	struct rpma_conn_private_data pdata = {.len = sizeof(struct offer)};
	struct rpma_ep *ep = listen_at(peer, side);
	char *memory = allocate(SIZE);
	struct rpma_mr_local *mr;
	struct rpma_conn *conn;
	struct offer offer;

	strcpy(memory, "what the server has in its memory");
	need(rpma_mr_reg(peer, memory, SIZE, RPMA_MR_USAGE_READ_SRC, &mr), "rpma_mr_reg");
	make_offer(&offer, mr, 0);
	pdata.ptr = &offer;
	conn = accept_from(ep, NULL, &pdata);
	end_server(&conn);
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	need(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
}

static void read_it(struct rpma_peer *peer, const struct side *side)
{
	struct rpma_conn *conn = connect_to(peer, side, NULL);
	struct rpma_mr_remote *src = take_offer(conn);
	char *memory = allocate(SIZE);
	struct rpma_mr_local *dst;
	size_t size;

	need(rpma_mr_remote_get_size(src, &size), "rpma_mr_remote_get_size");
	need(rpma_mr_reg(peer, memory, SIZE, RPMA_MR_USAGE_READ_DST, &dst), "rpma_mr_reg");
	need(rpma_read(conn, dst, 0, src, 0, size, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_read");
	wait_conn(conn);
	printf("read: %s\n", memory);
	end_client(&conn);
	need(rpma_mr_remote_delete(&src), "rpma_mr_remote_delete");
	need(rpma_mr_dereg(&dst), "rpma_mr_dereg");
}

int main(int argc, char **argv)
{
	struct side side = parse(argc, argv, 0, "");
	struct rpma_peer *peer = open_peer(&side);

	if (side.is_server)
		serve(peer, &side);
	else
		read_it(peer, &side);
	need(rpma_peer_delete(&peer), "rpma_peer_delete");
	return 0;
}
