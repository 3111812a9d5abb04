// SPDX-License-Identifier: BSD-3-Clause
/*
 * A connection does not come about, and the program destroys what it made for it as the document's
 * samples do: the pool, the queue, then reject().  accept() failed, or was never called; in the
 * request's callback or later; receives come back by a callback, or are polled for; the queue was
 * named to accept(), or before.
 */
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { RECEIVES = 3, LATE_MS = 50 };

enum fails {
	NEVER,    /* accept() is not called */
	REFUSED,  /* it does not take an element */
	REJECTED, /* the side that connects rejects the reply */
	LATE,     /* ... does not answer */
	FAILS
};

static const char *const names[] = {"never accepted", "refused", "rejected", "late"};

/* The side that does not come about. */
static struct trial {
	bool listens, later, polls, named;
	enum fails fails;
	ti_cq_handle_t cq;
	ti_res_pool_handle_t pool;
	ti_conn_request_t kept;
	struct tx_count over;
} t;

static struct tx_world w;
static ti_cq_handle_t others; /* the other side's */
static struct tx_end peer;

static void comes_back(ti_cq_handle_t h, ti_data_element_t *list)
{
	CHECK(h == t.cq);
	CHECK(list->status != TI_SUCCESS);
	CHECK_EQ(tx_put(t.pool, list), RECEIVES);
}

static ti_data_element_t *receives(void)
{
	ti_data_element_t *list = tx_get(t.pool, RECEIVES);

	if (t.fails == REFUSED)
		list->num_io_bufs = 2; /* the pool's have one */
	return list;
}

static void fail(ti_conn_request_t *req)
{
	static const ti_status_t want[] = {
		[REFUSED] = TI_INVALID_PARAMETER, [REJECTED] = TI_REJECTED, [LATE] = TI_TIMEOUT};
	ti_comp_info_t comp = {.pfn_recv_cb = t.polls ? NULL : comes_back};

	if (t.fails == NEVER)
		return;
	if (!t.named)
		comp.h_send_cq = comp.h_recv_cq = t.cq;
	TX_IS(tx->accept(req, 0, &comp, receives()), want[t.fails]);
	if (t.polls)
		CHECK_EQ(tx_put(t.pool, tx_poll(t.cq, RECEIVES)), RECEIVES);
}

static void clean_up(ti_conn_request_t *req)
{
	ti_conn_handle_t h = req->conn_handle;

	TX_IS(tx->res_pool_destroy(t.pool), TI_SUCCESS);
	TX_IS(tx->destroy_cq(t.cq), TI_SUCCESS);
	TX_IS(tx->destroy_cq(t.cq), TI_INVALID_PARAMETER);
	if (!req->status) /* else nothing is left to do */
		TX_IS(tx->reject(req), t.fails == LATE ? TI_TIMEOUT : TI_SUCCESS);
	TX_IS(tx->disconnect(h, NULL, NULL), TI_INVALID_HANDLE);
}

static void asked(ti_conn_request_t *req)
{
	if (t.fails == LATE && req->status) /* its time was up before its turn */
		TX_IS(req->status, TI_TIMEOUT);
	else
		TX_IS(req->status, TI_SUCCESS);
	t.kept = *req;
	if (req->status) {
		clean_up(req);
	} else if (!t.later) {
		fail(req);
		clean_up(req);
	}
	tx_add(&t.over, 1);
}

/* The other side, where it connects.  Who is late may have been so before he could answer. */
static void answered(ti_conn_request_t *req)
{
	peer.status = req->status;
	if (t.fails == REJECTED)
		TX_IS(tx->reject(req), TI_SUCCESS);
	else if (t.fails != LATE || req->status)
		TX_IS(req->status, TI_REJECTED);
	tx_add(&peer.done, 1);
}

/* ---- a trial ---- */

static ti_conn_info_t info(bool listens)
{
	bool mine = listens == t.listens;
	ti_conn_info_t i = {.src_ep = listens ? w.ep : w.any,
		.dst_ep = listens ? NULL : w.ep,
		.pdh = w.pd,
		.send_cqh = mine && t.named ? t.cq : NULL,
		.recv_cqh = mine && t.named ? t.cq : NULL,
		.conn_request_cb = mine      ? asked
				   : listens ? tx_accept
					     : answered,
		.context = mine ? NULL : &peer};

	return i;
}

static void begin(ti_conn_handle_t *listener, ti_conn_handle_t *caller)
{
	ti_conn_info_t down = info(true), up = info(false);
	ti_conn_attr_t attr;

	tx_defaults(&peer, &w, others);
	attr = peer.attr;
	if (t.fails == LATE)
		attr.connect_request_timeout = LATE_MS;
	TX_IS(tx->listen(w.ti, &attr, &down, NULL, listener), TI_SUCCESS);
	TX_IS(tx->connect(w.ti, &peer.attr, &up, NULL, caller), TI_SUCCESS);
}

static void try(void)
{
	ti_conn_handle_t listener, caller;
	uint32_t size = 64;

	check_case("%s, %s, %s, %s, the queue named %s", t.listens ? "listens" : "connects",
		names[t.fails], t.later ? "later" : "in the callback",
		t.polls ? "polls" : "called back", t.named ? "before" : "to accept()");
	t.over = (struct tx_count)TX_COUNT;
	t.cq = tx_cq(&w, 64);
	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_MSG, RECEIVES, 1, &size, 0, &t.pool),
		TI_SUCCESS);
	begin(&listener, &caller);
	tx_await(&t.over, 1);
	if (t.later && !t.kept.status) {
		fail(&t.kept);
		clean_up(&t.kept);
	}
	tx_await(&peer.done, 1);
	if (!t.listens)
		TX_IS(peer.status, TI_REJECTED);
	else if (!peer.status && t.fails == LATE)
		tx_close(caller);
	tx_close(listener);
}

static void each(unsigned n)
{
	t = (struct trial){.listens = n & 1,
		.later = n & 2,
		.polls = n & 4,
		.named = n & 8,
		.fails = (enum fails)(n >> 4)};
	if (t.listens || t.fails <= REFUSED) /* who connects waits for nobody in accept() */
		try();
}

/* ---- a queue that is gone before accept() ---- */

static void gone_before(ti_conn_request_t *req)
{
	ti_comp_info_t comp = {.h_send_cq = NULL}, other = {.h_send_cq = others};

	TX_IS(req->status, TI_SUCCESS);
	TX_IS(tx->destroy_cq(t.cq), TI_SUCCESS);
	TX_IS(tx->accept(req, 0, &comp, NULL), TI_INVALID_PARAMETER);
	other.h_recv_cq = others;
	TX_IS(tx->accept(req, 0, &other, NULL), TI_INVALID_PARAMETER); /* not the one it named */
	TX_IS(tx->reject(req), TI_SUCCESS);
	tx_add(&t.over, 1);
}

static void queue_gone(void)
{
	ti_conn_attr_t attr = {.reliable = TRUE};
	ti_conn_handle_t listener, caller;
	ti_conn_info_t down, up;

	check_case("a queue that is gone");
	t = (struct trial){.listens = true, .named = true, .cq = tx_cq(&w, 64), .over = TX_COUNT};
	tx_defaults(&peer, &w, others);
	down = info(true);
	up = info(false);
	down.conn_request_cb = gone_before;
	TX_IS(tx->listen(w.ti, &attr, &down, NULL, &listener), TI_SUCCESS);
	TX_IS(tx->connect(w.ti, &attr, &up, NULL, &caller), TI_SUCCESS);
	tx_await(&t.over, 1);
	tx_await(&peer.done, 1);
	tx_close(listener);
}

int main(void)
{
	tx_begin(&w);
	others = tx_cq(&w, 64);
	for (unsigned n = 0; n < FAILS << 4; n++)
		each(n);
	queue_gone();
	tx_end(&w);
	return check_result();
}
