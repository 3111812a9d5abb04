// SPDX-License-Identifier: BSD-3-Clause
/* Messages back and forth; the server answers each with what it got, in capitals. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common.h"

enum { SIZE = 4096, MAX = 256, ROUNDS = 3, SEND_AT = 0, RECV_AT = MAX };

static struct rpma_mr_local *mr;
static char *memory;

static void post_receive(struct rpma_conn *conn)
{
	need(rpma_recv(conn, mr, RECV_AT, MAX, NULL), "rpma_recv");
}

/* The length of the next message.  The completion of our own send may come before it. */
static unsigned receive(struct rpma_conn *conn)
{
	struct ibv_wc wc;

	do
		wc = wait_conn(conn);
	while (!(wc.opcode & IBV_WC_RECV));
	return wc.byte_len;
}

static void send_text(struct rpma_conn *conn, unsigned len)
{
	need(rpma_send(conn, mr, SEND_AT, len, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_send");
}

static void serve(struct rpma_peer *peer, const struct side *side)
{
	struct rpma_ep *ep = listen_at(peer, side);
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	need(rpma_ep_next_conn_req(ep, NULL, &req), "rpma_ep_next_conn_req");
	/* The first buffer has to be there before the client can send. */
	need(rpma_conn_req_recv(req, mr, RECV_AT, MAX, NULL), "rpma_conn_req_recv");
	need(rpma_conn_req_connect(&req, NULL, &conn), "rpma_conn_req_connect");
	expect(conn, RPMA_CONN_ESTABLISHED);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned len = receive(conn);

		for (unsigned c = 0; c < len; c++)
			memory[SEND_AT + c] = (char)toupper((unsigned char)memory[RECV_AT + c]);
		post_receive(conn);
		send_text(conn, len);
	}
	end_server(&conn);
	need(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
}

static void talk(struct rpma_peer *peer, const struct side *side)
{
	struct rpma_conn *conn = connect_to(peer, side, NULL);

	for (int i = 0; i < ROUNDS; i++) {
		unsigned len = (unsigned)snprintf(memory + SEND_AT, MAX, "message %d", i);

		post_receive(conn);
		send_text(conn, len);
		len = receive(conn);
		printf("%.*s\n", (int)len, memory + RECV_AT);
	}
	end_client(&conn);
}

int main(int argc, char **argv)
{
	struct side side = parse(argc, argv, 0, "");
	struct rpma_peer *peer = open_peer(&side);

	memory = allocate(SIZE);
	need(rpma_mr_reg(peer, memory, SIZE, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr),
		"rpma_mr_reg");
	if (side.is_server)
		serve(peer, &side);
	else
		talk(peer, &side);
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	need(rpma_peer_delete(&peer), "rpma_peer_delete");
	return 0;
}
