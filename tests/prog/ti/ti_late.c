// SPDX-License-Identifier: BSD-3-Clause
/*
 * Requests whose time is up before the library's own thread has noticed: what accept(), reject()
 * and the callback say then.  This program has clock_gettime() under its own name: the clock can go
 * ahead for all threads but that one.
 */
#pragma GCC visibility push(default)
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { LATE_S = 21, RECEIVES = 3 };

static atomic_int ahead_s;

/* Each request then is late, for the library's default is less. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int ret = syscall(SYS_clock_gettime, clock, ts);
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	if (strcmp(name, "ti-cm") != 0)
		ts->tv_sec += ahead_s;
	return ret;
}
#pragma GCC visibility pop

static struct tx_world w;
static ti_cq_handle_t cq;

/* ---- requests that are kept ---- */

static struct tx_kept up, down; /* of who connects, of who listens */
static ti_conn_handle_t listener, conn;

static void listen_for(ti_conn_req_cb_t cb, void *context, uint32_t ms)
{
	ti_conn_attr_t attr = {.reliable = TRUE, .connect_request_timeout = ms};
	ti_conn_info_t info = {
		.src_ep = w.ep, .pdh = w.pd, .conn_request_cb = cb, .context = context};

	down = (struct tx_kept){.n = TX_COUNT};
	TX_IS(tx->listen(w.ti, &attr, &info, NULL, &listener), TI_SUCCESS);
}

static void call(void)
{
	ti_conn_attr_t attr = {.reliable = TRUE};
	ti_conn_info_t info = {.src_ep = w.any,
		.dst_ep = w.ep,
		.pdh = w.pd,
		.conn_request_cb = tx_keep,
		.context = &up};

	up = (struct tx_kept){.n = TX_COUNT};
	TX_IS(tx->connect(w.ti, &attr, &info, NULL, &conn), TI_SUCCESS);
}

/* ---- calls that come late ---- */

static void accept_late(struct tx_kept *k)
{
	ti_comp_info_t comp = {.h_send_cq = cq, .h_recv_cq = cq};
	ti_data_element_t *list;

	TX_IS(tx->accept(&k->req, 0, &comp, tx_get(w.pool, RECEIVES)), TI_TIMEOUT);
	list = tx_poll(cq, RECEIVES);
	for (ti_data_element_t *e = list; e; e = e->p_next_msg)
		TX_IS(e->status, TI_TIMEOUT);
	tx_put(w.pool, list);
	TX_IS(tx->accept(&k->req, 0, &comp, NULL), TI_TIMEOUT);
}

static void reject_late(struct tx_kept *k)
{
	ti_conn_handle_t h = k->req.conn_handle;

	TX_IS(tx->reject(&k->req), TI_TIMEOUT);
	CHECK(!k->req.conn_handle);
	TX_IS(tx->disconnect(h, NULL, NULL), TI_INVALID_HANDLE);
}

static void late(struct tx_kept *k, bool accepts)
{
	tx_await(&k->n, 1);
	TX_IS(k->req.status, TI_SUCCESS);
	ahead_s = LATE_S;
	if (accepts)
		accept_late(k);
	reject_late(k);
	ahead_s = 0;
}

static void of_requests(bool accepts)
{
	check_case("of requests, %s", accepts ? "accepted" : "rejected");
	listen_for(tx_keep, &down, 0);
	call();
	late(&down, accepts);
	tx_await(&up.n, 1); /* the peer is told */
	TX_IS(up.req.status, TI_REJECTED);
	tx_close(listener);
}

static void of_replies(bool accepts)
{
	struct tx_end p;

	check_case("of replies, %s", accepts ? "accepted" : "rejected");
	tx_defaults(&p, &w, cq);
	listen_for(tx_accept, &p, 0);
	call();
	late(&up, accepts);
	tx_await(&p.done, 1);
	CHECK(p.status != TI_SUCCESS);
	tx_close(listener);
}

/* ---- callbacks that come late: nothing is left to do after them ---- */

static void request_told(void)
{
	check_case("a request's callback");
	ahead_s = LATE_S;
	listen_for(tx_keep, &down, 0);
	call();
	tx_await(&down.n, 1);
	TX_IS(down.req.status, TI_TIMEOUT);
	TX_IS(tx->disconnect(down.req.conn_handle, NULL, NULL), TI_INVALID_HANDLE);
	ahead_s = 0;
	tx_await(&up.n, 1);
	TX_IS(up.req.status, TI_REJECTED);
	tx_close(listener);
}

static void reply_told(void)
{
	ti_comp_info_t comp = {.h_send_cq = cq, .h_recv_cq = cq};

	check_case("a reply's callback");
	listen_for(tx_keep, &down, UINT32_MAX);
	call();
	tx_await(&down.n, 1);
	ahead_s = LATE_S;
	CHECK(tx->accept(&down.req, 0, &comp, NULL) != TI_SUCCESS);
	tx_await(&up.n, 1);
	TX_IS(up.req.status, TI_TIMEOUT);
	TX_IS(tx->disconnect(conn, NULL, NULL), TI_INVALID_HANDLE);
	ahead_s = 0;
	tx_close(down.req.conn_handle);
	tx_close(listener);
}

int main(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 64);
	for (int accepts = 0; accepts < 2; accepts++) {
		of_requests(accepts);
		of_replies(accepts);
	}
	request_told();
	reply_told();
	tx_end(&w);
	return check_result();
}
