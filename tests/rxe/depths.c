// SPDX-License-Identifier: BSD-3-Clause
/*
 * A client that asks for 16 READs at a time of a server that grants one, and then posts 64: all are
 * done, in the end of both whatever their stack is.
 *
 * usage: depths [-s SERVER]
 */
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READS = 64, LEN = 3000, ASKED = 16, GRANTED = 1 };

static const char port[] = "7471";

/* What the server tells: where the bytes are. */
struct offer {
	uint64_t addr;
	uint32_t rkey;
};

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static struct rdma_cm_id *make_end(const char *to)
{
	struct rdma_addrinfo hints = {
		.ai_port_space = RDMA_PS_TCP, .ai_flags = to ? 0 : RAI_PASSIVE};
	struct ibv_qp_init_attr init = {
		.sq_sig_all = 1, .cap = {READS, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;

	must(!rdma_getaddrinfo(to ? to : "0.0.0.0", port, &hints, &res), "rdma_getaddrinfo");
	must(!rdma_create_ep(&id, res, NULL, &init), "rdma_create_ep");
	rdma_freeaddrinfo(res);
	return id;
}

static void serve(void)
{
	static uint8_t there[LEN];
	struct rdma_cm_id *listener = make_end(NULL), *id;
	struct offer offer = {.addr = (uintptr_t)there};
	struct rdma_conn_param grants = {.responder_resources = GRANTED,
		.initiator_depth = GRANTED,
		.rnr_retry_count = 7,
		.private_data = &offer,
		.private_data_len = sizeof offer};
	struct ibv_mr *mr;
	struct ibv_wc wc;

	for (int i = 0; i < LEN; i++)
		there[i] = i * 7;
	must(!rdma_listen(listener, 1), "rdma_listen");
	must(!rdma_get_request(listener, &id), "rdma_get_request");
	mr = rdma_reg_read(id, there, LEN);
	must(mr != NULL, "rdma_reg_read");
	offer.rkey = mr->rkey;
	must(!rdma_post_recv(id, NULL, there, 0, mr), "rdma_post_recv");
	must(!rdma_accept(id, &grants), "rdma_accept");
	must(rdma_get_recv_comp(id, &wc) == 1 && !wc.status, "the client's last word");
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void check_depth(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	must(!ibv_query_qp(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init), "ibv_query_qp");
	printf("depth %d\n", attr.max_rd_atomic);
	if (attr.max_rd_atomic != GRANTED)
		exit(1);
}

static void read_all(struct rdma_cm_id *id, const struct offer *from)
{
	static uint8_t here[READS][LEN];
	struct ibv_mr *mr = rdma_reg_msgs(id, here, sizeof here);
	struct ibv_wc wc;

	must(mr != NULL, "rdma_reg_msgs");
	for (int i = 0; i < READS; i++)
		must(!rdma_post_read(id, NULL, here[i], LEN, mr, 0, from->addr, from->rkey),
			"rdma_post_read");
	for (int i = 0; i < READS; i++) {
		must(rdma_get_send_comp(id, &wc) == 1, "rdma_get_send_comp");
		if (wc.status) {
			printf("READ %d: %s\n", i, ibv_wc_status_str(wc.status));
			exit(1);
		}
		for (int k = 0; k < LEN; k++)
			must(here[i][k] == (uint8_t)(k * 7), "a byte that was read");
	}
	must(!rdma_post_send(id, NULL, here, 0, mr, 0), "rdma_post_send");
	must(rdma_get_send_comp(id, &wc) == 1, "rdma_get_send_comp");
	rdma_dereg_mr(mr);
}

int main(int argc, char **argv)
{
	struct rdma_conn_param asks = {.responder_resources = ASKED,
		.initiator_depth = ASKED,
		.retry_count = 7,
		.rnr_retry_count = 7};
	struct rdma_cm_id *id;
	struct offer offer;

	if (argc < 3) {
		serve();
		return 0;
	}
	id = make_end(argv[2]);
	must(!rdma_connect(id, &asks), "rdma_connect");
	memcpy(&offer, id->event->param.conn.private_data, sizeof offer);
	check_depth(id->qp);
	read_all(id, &offer);
	rdma_disconnect(id);
	rdma_destroy_ep(id);
	return 0;
}
