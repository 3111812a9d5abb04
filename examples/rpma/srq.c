// SPDX-License-Identifier: BSD-3-Clause
/* Two connections whose messages the server receives from one shared receive queue. */
#include <stdio.h>
#include <string.h>

#include "common.h"

enum { CONNS = 2, MESSAGES = 5, SIZE = 64, BUFFERS = CONNS * MESSAGES };

static struct rpma_srq *make_srq(struct rpma_peer *peer, struct rpma_mr_local *mr)
{
	struct rpma_srq_cfg *cfg;
	struct rpma_srq *srq;

	need(rpma_srq_cfg_new(&cfg), "rpma_srq_cfg_new");
	need(rpma_srq_cfg_set_rq_size(cfg, BUFFERS), "rpma_srq_cfg_set_rq_size");
	need(rpma_srq_cfg_set_rcq_size(cfg, BUFFERS), "rpma_srq_cfg_set_rcq_size");
	need(rpma_srq_new(peer, cfg, &srq), "rpma_srq_new");
	need(rpma_srq_cfg_delete(&cfg), "rpma_srq_cfg_delete");
	for (size_t i = 0; i < BUFFERS; i++)
		need(rpma_srq_recv(srq, mr, i * SIZE, SIZE, (void *)i), "rpma_srq_recv");
	return srq;
}

static void receive_all(struct rpma_srq *srq, struct rpma_conn **conns, const char *memory)
{
	int got[CONNS] = {0}, bytes = 0;
	struct rpma_cq *rcq;
	uint32_t qp_num;

	need(rpma_srq_get_rcq(srq, &rcq), "rpma_srq_get_rcq");
	for (int n = 0; n < BUFFERS; n++) {
		struct ibv_wc wc = wait_cq(rcq);

		for (int i = 0; i < CONNS; i++) {
			need(rpma_conn_get_qp_num(conns[i], &qp_num), "rpma_conn_get_qp_num");
			got[i] += qp_num == wc.qp_num;
		}
		bytes += (int)strlen(memory + wc.wr_id * SIZE);
	}
	printf("received %d and %d messages, %d bytes\n", got[0], got[1], bytes);
}

static void serve(struct rpma_peer *peer, const struct side *side)
{
	struct rpma_ep *ep = listen_at(peer, side);
	char *memory = allocate((size_t)BUFFERS * SIZE);
	struct rpma_conn *conns[CONNS];
	struct rpma_conn_cfg *cfg;
	struct rpma_mr_local *mr;
	struct rpma_srq *srq;

	need(rpma_mr_reg(peer, memory, (size_t)BUFFERS * SIZE, RPMA_MR_USAGE_RECV, &mr),
		"rpma_mr_reg");
	srq = make_srq(peer, mr);
	need(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
	need(rpma_conn_cfg_set_srq(cfg, srq), "rpma_conn_cfg_set_srq");
	for (int i = 0; i < CONNS; i++)
		conns[i] = accept_from(ep, cfg, NULL);
	receive_all(srq, conns, memory);
	for (int i = 0; i < CONNS; i++)
		end_server(&conns[i]);
	need(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
	need(rpma_srq_delete(&srq), "rpma_srq_delete");
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	need(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
}

static void send_all(struct rpma_peer *peer, const struct side *side)
{
	struct rpma_conn *conns[CONNS];
	char *memory = allocate(SIZE);
	struct rpma_mr_local *mr;

	strcpy(memory, "a message");
	need(rpma_mr_reg(peer, memory, SIZE, RPMA_MR_USAGE_SEND, &mr), "rpma_mr_reg");
	for (int i = 0; i < CONNS; i++)
		conns[i] = connect_to(peer, side, NULL);
	for (int n = 0; n < MESSAGES; n++)
		for (int i = 0; i < CONNS; i++) {
			need(rpma_send(conns[i], mr, 0, SIZE, RPMA_F_COMPLETION_ALWAYS, NULL),
				"rpma_send");
			wait_conn(conns[i]);
		}
	for (int i = 0; i < CONNS; i++)
		end_client(&conns[i]);
	printf("sent %d messages\n", CONNS * MESSAGES);
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
}

int main(int argc, char **argv)
{
	struct side side = parse(argc, argv, 0, "");
	struct rpma_peer *peer = open_peer(&side);

	if (side.is_server)
		serve(peer, &side);
	else
		send_all(peer, &side);
	need(rpma_peer_delete(&peer), "rpma_peer_delete");
	return 0;
}
