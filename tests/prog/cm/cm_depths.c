// SPDX-License-Identifier: BSD-3-Clause
/*
 * How many READs may be under way: what the client asks for, what the server grants, and what both
 * queue pairs have then, whoever brings them up.  64 READs at once go through with any of that.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/pattern.h"

enum { READS = 64, LEN = 3000, ALL = RDMA_MAX_RESP_RES };

static struct rdma_event_channel *ach, *pch;
static struct rdma_cm_id *listener;
static uint16_t port;

/* Depths of one side: what it asks for or grants, or what its queue pair has. */
struct depths {
	uint8_t responds, initiates;
};

/* An agreement: what is asked for, what is granted, what the client and the server have then. */
static const struct agreement {
	struct depths asked, granted, client, server;
} agreements[] = {
	{{16, 16}, {16, 16}, {16, 16}, {16, 16}},
	{{16, 16}, {1, 1}, {1, 1}, {1, 1}},
	{{16, 4}, {2, 7}, {7, 2}, {2, 7}},
	{{4, 16}, {0, 1}, {1, 0}, {0, 1}},
	{{3, 2}, {ALL, ALL}, {3, 2}, {2, 3}},
	{{ALL, ALL}, {5, 6}, {6, 5}, {5, 6}},
};

enum { AGREEMENTS = sizeof agreements / sizeof *agreements };

static struct rdma_conn_param param_of(struct depths d)
{
	return (struct rdma_conn_param){
		.responder_resources = d.responds,
		.initiator_depth = d.initiates,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = READS,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	if (rdma_create_qp(id, NULL, &init))
		die("rdma_create_qp");
}

static void check_qp(struct ibv_qp *qp, struct depths want)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC, &init))
		die("ibv_query_qp");
	CHECK_EQ(attr.max_dest_rd_atomic, want.responds);
	CHECK_EQ(attr.max_rd_atomic, want.initiates);
}

/* What a program that brings its queue pair up by itself is told. */
static void check_attributes(struct rdma_cm_id *id, struct depths want)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask = 0;

	CHECK_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
	CHECK(mask & IBV_QP_MAX_DEST_RD_ATOMIC);
	CHECK_EQ(attr.max_dest_rd_atomic, want.responds);
	attr.qp_state = IBV_QPS_RTS;
	CHECK_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
	CHECK(mask & IBV_QP_MAX_QP_RD_ATOMIC);
	CHECK_EQ(attr.max_rd_atomic, want.initiates);
}

static void check_told(const struct rdma_cm_event *e, struct depths want)
{
	CHECK_EQ(e->param.conn.responder_resources, want.responds);
	CHECK_EQ(e->param.conn.initiator_depth, want.initiates);
}

/* 64 at once, of the server's memory; fails: the client may not. */
static void read_all(struct rdma_cm_id *from, struct rdma_cm_id *to, bool fails)
{
	static uint8_t there[LEN], here[READS][LEN];
	struct ibv_mr *mr = rdma_reg_read(to, there, sizeof there);
	struct ibv_mr *sink = rdma_reg_msgs(from, here, sizeof here);
	struct ibv_wc wc;

	if (!mr || !sink)
		die("cannot register");
	pattern_fill(there, LEN, 7);
	memset(here, 0, sizeof here);
	for (int i = 0; i < READS; i++)
		CHECK_EQ(rdma_post_read(
				 from, NULL, here[i], LEN, sink, 0, (uintptr_t)there, mr->rkey),
			0);
	for (int i = 0; i < READS; i++) {
		if (rdma_get_send_comp(from, &wc) != 1)
			die("rdma_get_send_comp");
		if (!fails && wc.status)
			die("READ %d ends in %s", i, ibv_wc_status_str(wc.status));
		if (fails)
			CHECK_EQ(wc.status, i ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_QP_OP_ERR);
		else
			CHECK(!memcmp(here[i], there, LEN));
	}
	rdma_dereg_mr(sink);
	rdma_dereg_mr(mr);
}

static void asynchronous(const struct agreement *a, struct sockaddr *to)
{
	struct rdma_conn_param asks = param_of(a->asked), grants = param_of(a->granted);
	struct rdma_cm_id *active = cm_resolved(ach, to, false), *passive;
	struct rdma_cm_event *e;

	make_qp(active);
	CHECK_EQ(rdma_connect(active, &asks), 0);
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = e->id;
	rdma_ack_cm_event(e);
	make_qp(passive);
	CHECK_EQ(rdma_accept(passive, &grants), 0);
	e = cm_take(ach, RDMA_CM_EVENT_ESTABLISHED);
	check_told(e, a->client);
	rdma_ack_cm_event(e);
	cm_expect(pch, RDMA_CM_EVENT_ESTABLISHED);
	check_qp(active->qp, a->client);
	check_qp(passive->qp, a->server);
	read_all(active, passive, !a->client.initiates);
	if (a->server.initiates && a->client.initiates)
		read_all(passive, active, false);
	cm_end(active);
	cm_expect(pch, RDMA_CM_EVENT_DISCONNECTED);
	cm_end(passive);
}

/* The queue pairs are the program's: it is told by the event and by rdma_init_qp_attr(). */
static void without_qp(const struct agreement *a, struct sockaddr *to)
{
	struct rdma_conn_param asks = param_of(a->asked), grants = param_of(a->granted);
	struct rdma_cm_id *active = cm_resolved(ach, to, false), *passive;
	struct rdma_cm_event *e;

	asks.qp_num = 77;
	grants.qp_num = 78;
	CHECK_EQ(rdma_connect(active, &asks), 0);
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = e->id;
	rdma_ack_cm_event(e);
	CHECK_EQ(rdma_accept(passive, &grants), 0);
	check_attributes(passive, a->server);
	e = cm_take(ach, RDMA_CM_EVENT_CONNECT_RESPONSE);
	check_told(e, a->client);
	rdma_ack_cm_event(e);
	check_attributes(active, a->client);
	CHECK_EQ(rdma_establish(active), 0);
	check_attributes(active, a->client);
	cm_expect(pch, RDMA_CM_EVENT_ESTABLISHED);
	cm_end(active);
	cm_expect(pch, RDMA_CM_EVENT_DISCONNECTED);
	cm_end(passive);
}

static void *connect_ep(void *arg)
{
	struct rdma_conn_param asks = param_of(agreements[1].asked);
	struct ibv_qp_init_attr init = {.cap = {READS, 1, 1, 1, 0}, .sq_sig_all = 1};
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *res;
	struct sockaddr_in *to = arg;
	struct rdma_cm_id *id;
	char text[8];

	snprintf(text, sizeof text, "%d", ntohs(to->sin_port));
	if (rdma_getaddrinfo("127.0.0.1", text, &hints, &res))
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&id, res, NULL, &init) || rdma_connect(id, &asks))
		die("cannot connect an endpoint");
	rdma_freeaddrinfo(res);
	check_qp(id->qp, agreements[1].client);
	rdma_disconnect(id);
	rdma_destroy_ep(id);
	return NULL;
}

/* In one call, as rdma_create_ep()'s users do. */
static void endpoint(struct sockaddr *to)
{
	struct rdma_conn_param grants = param_of(agreements[1].granted);
	struct rdma_cm_event *e;
	struct rdma_cm_id *passive;
	pthread_t thread;

	check_case("an endpoint");
	pthread_create(&thread, NULL, connect_ep, to);
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = e->id;
	rdma_ack_cm_event(e);
	make_qp(passive);
	CHECK_EQ(rdma_accept(passive, &grants), 0);
	cm_expect(pch, RDMA_CM_EVENT_ESTABLISHED);
	cm_expect(pch, RDMA_CM_EVENT_DISCONNECTED);
	CHECK_EQ(rdma_disconnect(passive), 0);
	pthread_join(thread, NULL);
	cm_end(passive);
}

int main(void)
{
	ach = cm_channel();
	pch = cm_channel();
	listener = cm_listener(pch, 0, &port);
	for (int i = 0; i < AGREEMENTS; i++) {
		check_case("agreement %d", i);
		asynchronous(&agreements[i], cm_addr4(port));
		if (agreements[i].asked.responds != ALL)
			without_qp(&agreements[i], cm_addr4(port));
	}
	endpoint(cm_addr4(port));
	cm_end(listener);
	rdma_destroy_event_channel(ach);
	rdma_destroy_event_channel(pch);
	return check_result();
}
