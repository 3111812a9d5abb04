// SPDX-License-Identifier: BSD-3-Clause
/* Connecting, private data in both directions, disconnecting. */
#include <stdio.h>

#include "common.h"

static void show(const struct rpma_conn *conn)
{
	struct rpma_conn_private_data pdata;

	need(rpma_conn_get_private_data(conn, &pdata), "rpma_conn_get_private_data");
	printf("the peer says: %.*s\n", pdata.len, (char *)pdata.ptr);
}

int main(int argc, char **argv)
{
	struct side side = parse(argc, argv, 0, "");
	struct rpma_conn_private_data pdata = {.len = 6};
	struct rpma_peer *peer = open_peer(&side);
	struct rpma_conn *conn;

	if (side.is_server) {
		struct rpma_ep *ep = listen_at(peer, &side);

		pdata.ptr = "server";
		conn = accept_from(ep, NULL, &pdata);
		show(conn);
		end_server(&conn);
		need(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
	} else {
		pdata.ptr = "client";
		conn = connect_to(peer, &side, &pdata);
		show(conn);
		end_client(&conn);
	}
	need(rpma_peer_delete(&peer), "rpma_peer_delete");
	return 0;
}
