// SPDX-License-Identifier: BSD-3-Clause
/*
 * Many messages, and many connections on one queue, called back: no completion is lost.
 *
 * usage: ti_load [MESSAGES]
 */
#include <stdlib.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { CONNS = 64, WINDOW = 8, MESSAGES = 20000 };

static struct tx_world w;
static ti_cq_handle_t cq;
static ti_res_pool_handle_t pool;
static struct tx_count sends, recvs;

static unsigned count(const ti_data_element_t *list)
{
	unsigned n = 0;

	for (; list; list = list->p_next_msg) {
		CHECK_EQ(list->status, TI_SUCCESS);
		n++;
	}
	return n;
}

static void sent(ti_cq_handle_t h, ti_data_element_t *list)
{
	unsigned n;

	(void)h;
	n = count(list);
	tx_put(pool, list);
	tx_add(&sends, n);
}

/* What belongs to no connection goes to the pool; the main thread posts anew. */
static void received(ti_cq_handle_t h, ti_data_element_t *list)
{
	unsigned n;

	(void)h;
	n = count(list);
	tx_put(pool, list);
	tx_add(&recvs, n);
}

/* A program that rearms itself, then polls. */
static void manual(ti_cq_handle_t h, ti_data_element_t *list)
{
	ti_data_element_t *next;

	CHECK(!list);
	TX_IS(tx->rearm_cq(h), TI_SUCCESS);
	TX_IS(tx->poll_cq(h, &list), TI_SUCCESS);
	for (; list; list = next) {
		next = list->p_next_msg;
		list->p_next_msg = NULL;
		(list->msg_opt ? sent : received)(h, list);
	}
}

static void run(unsigned conns, unsigned messages, bool rearm)
{
	struct tx_end a[CONNS], p[CONNS];
	uint32_t size = 64;
	unsigned done = 0;

	check_case("%u connections, %s", conns, rearm ? "rearmed by the library" : "by hand");
	sends = recvs = (struct tx_count)TX_COUNT;
	tx_begin(&w);
	cq = tx_cq(&w, 65536);
	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_MSG, 2 * CONNS * WINDOW, 1, &size, 0, &pool),
		TI_SUCCESS);
	for (unsigned i = 0; i < conns; i++) {
		tx_defaults(&a[i], &w, cq);
		a[i].attr.auto_cq_rearm = rearm;
		a[i].comp.pfn_send_cb = rearm ? sent : manual;
		a[i].comp.pfn_recv_cb = rearm ? received : manual;
		p[i] = a[i];
		tx_connect(&a[i], &p[i]);
	}
	while (done < messages) {
		for (unsigned i = 0; i < conns; i++)
			for (unsigned k = 0; k < WINDOW; k++, done++) {
				ti_data_element_t *r = tx_get(pool, 1), *s = tx_get(pool, 1);

				s->msg_opt = TI_OPT_SIGNALED;
				TX_IS(tx->msg_recv(p[i].conn, r), TI_SUCCESS);
				TX_IS(tx->msg_send(a[i].conn, s), TI_SUCCESS);
			}
		tx_await(&sends, done);
		tx_await(&recvs, done);
	}
	CHECK_EQ(tx_now(&sends), done);
	CHECK_EQ(tx_now(&recvs), done);
	tx_end(&w);
}

int main(int argc, char **argv)
{
	unsigned messages = argc > 1 ? strtoul(argv[1], NULL, 0) : MESSAGES;

	run(1, messages, true);
	run(1, messages, false);
	run(CONNS, messages, true);
	run(CONNS, messages, false);
	return check_result();
}
