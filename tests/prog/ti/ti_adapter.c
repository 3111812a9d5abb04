// SPDX-License-Identifier: BSD-3-Clause
/*
 * What libweftti asks the adapter for, where weft0 does the same either way: this program is
 * between them.
 */
#pragma GCC visibility push(default)
#include <dlfcn.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_areas.h"

/* How often each number of retries was given to a queue pair. */
static atomic_int retries[8], rnr_retries[8];

static int (*real_modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_RETRY_CNT) {
		retries[attr->retry_cnt % 8]++;
		rnr_retries[attr->rnr_retry % 8]++;
	}
	return real_modify_qp(qp, attr, mask);
}

static struct ibv_pd *(*real_alloc_pd)(struct ibv_context *);
static int (*real_dealloc_pd)(struct ibv_pd *);
static atomic_int domains; /* that are there */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *verbs)
{
	struct ibv_pd *pd = real_alloc_pd(verbs);

	domains += pd != NULL;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	int ret = real_dealloc_pd(pd);

	domains -= !ret;
	return ret;
}
#pragma GCC visibility pop

/* ---- retries of sends ---- */

/* Two ends with different numbers; what their queue pairs get. */
static void retry(uint32_t active, int as_active, uint32_t passive, int as_passive, boolean_t flow)
{
	struct tx_world w;
	struct tx_end a, p;
	ti_cq_handle_t cq;

	check_case("%u and %u retries", active, passive);
	for (int i = 0; i < 8; i++)
		retries[i] = rnr_retries[i] = 0;
	tx_begin(&w);
	cq = tx_cq(&w, 64);
	tx_defaults(&a, &w, cq);
	a.attr.msg_flow_control = flow;
	p = a;
	a.attr.max_send_retries = active;
	p.attr.max_send_retries = passive;
	tx_connect(&a, &p);
	for (int i = 0; i < 8; i++) {
		CHECK_EQ(retries[i], (i == as_active) + (i == as_passive));
		CHECK_EQ(rnr_retries[i], i == (flow ? 7 : 0) ? 2 : 0); /* 7: without end */
	}
	tx_end(&w);
}

/* As asked for; 0 and what is more than adapters have is as many as they have. */
static void retried(void)
{
	retry(3, 3, 5, 5, TRUE);
	retry(0, 7, 1, 1, FALSE);
	retry(7, 7, 1000, 7, TRUE);
}

/* ---- fences, solicited events ---- */

static int (*real_post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static atomic_int messages, fenced_messages, solicited_messages;

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (const struct ibv_send_wr *at = wr; at; at = at->next) {
		if (at->opcode != IBV_WR_SEND)
			continue;
		messages++;
		fenced_messages += !!(at->send_flags & IBV_SEND_FENCE);
		solicited_messages += !!(at->send_flags & IBV_SEND_SOLICITED);
	}
	return real_post_send(qp, wr, bad);
}

/* Those that ask for it, and the last part of each bundle. */
static void fences(void)
{
	struct tx_rdma x;
	ti_data_element_t *m;

	tx_rdma_begin(&x, NULL);
	check_case("fences");
	m = tx_message(&x.w, "plain", 6);
	TX_IS(tx->msg_send(x.a.conn, m), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == m);
	CHECK_EQ(fenced_messages, 0);
	m->msg_opt |= TI_OPT_FENCE;
	TX_IS(tx->msg_send(x.a.conn, m), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == m);
	CHECK_EQ(fenced_messages, 1);
	m->msg_opt &= ~(ti_msg_opt_t)TI_OPT_FENCE;
	TX_IS(tx->rdma_read_send(x.a.conn, tx_towards(&x, 0, 100, 0), m), TI_SUCCESS);
	(void)tx_poll(x.acq, 2);
	CHECK_EQ(fenced_messages, 2);
	m->p_next_msg = NULL;
	TX_IS(tx->rdma_write_send(x.a.conn, tx_towards(&x, 0, 100, 0), m), TI_SUCCESS);
	(void)tx_poll(x.acq, 2);
	CHECK_EQ(fenced_messages, 3);
	CHECK_EQ(messages, 4);
	tx_rdma_end(&x);
}

/* The message that asks for it alone. */
static void solicited(void)
{
	struct tx_rdma x;
	ti_data_element_t *m;

	tx_rdma_begin(&x, NULL);
	check_case("solicited");
	solicited_messages = 0;
	m = tx_message(&x.w, "x", 1);
	m->msg_opt = TI_OPT_SIGNALED;
	TX_IS(tx->msg_send(x.a.conn, m), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == m);
	CHECK_EQ(solicited_messages, 0);
	m->msg_opt |= TI_OPT_SOLICITED;
	TX_IS(tx->msg_send(x.a.conn, m), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == m);
	CHECK_EQ(solicited_messages, 1);
	tx_put(x.w.pool, m);
	tx_rdma_end(&x);
}

/* ---- domains ---- */

/* A pool that was used in a domain does not keep it. */
static void gone_domains(void)
{
	struct tx_world w, other;
	struct tx_end a, p;
	int before;

	check_case("domains that are destroyed before their pool");
	tx_begin(&w);
	before = domains;
	other = w;
	for (int i = 0; i < 5; i++) {
		TX_IS(tx->create_pd(w.ti, w.ep, &other.pd), TI_SUCCESS);
		CHECK_EQ(domains, before + 1);
		tx_defaults(&a, &other, tx_cq(&other, 64));
		p = a;
		p.receives = 4;
		tx_connect(&a, &p);
		tx_disconnect(&a);
		tx_disconnect(&p);
		tx_put(w.pool, tx_poll(a.comp.h_recv_cq, 4));
		TX_IS(tx->destroy_cq(a.comp.h_send_cq), TI_SUCCESS);
		TX_IS(tx->destroy_pd(other.pd), TI_SUCCESS);
		CHECK_EQ(domains, before);
	}
	tx_end(&w);
}

/* Before anybody uses it. */
static struct ibv_context **take_adapter(void)
{
	struct ibv_context **devices;

	*(void **)&real_modify_qp = dlsym(RTLD_NEXT, "ibv_modify_qp");
	*(void **)&real_alloc_pd = dlsym(RTLD_NEXT, "ibv_alloc_pd");
	*(void **)&real_dealloc_pd = dlsym(RTLD_NEXT, "ibv_dealloc_pd");
	devices = rdma_get_devices(NULL);
	if (!devices || !devices[0])
		die("no device");
	real_post_send = devices[0]->ops.post_send;
	devices[0]->ops.post_send = post_send;
	return devices;
}

int main(void)
{
	struct ibv_context **devices = take_adapter();

	retried();
	fences();
	solicited();
	gone_domains();
	rdma_free_devices(devices);
	return check_result();
}
