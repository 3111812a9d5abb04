// SPDX-License-Identifier: BSD-3-Clause
/*
 * When destroy_ti() has returned nothing of the service goes on, though the library has not begun
 * to end it: its system thread is held in a callback.  What each operation answers then is
 * ti_handles'.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/lib/by_packet.h"
#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

static struct tx_world up, down; /* of who connects, and ends; of who listens */
static ti_cq_handle_t up_cq, down_cq;
static struct tx_end a, p;
static struct tx_count gone;

static void begin(void)
{
	tx_begin(&down);
	tx_begin(&up);
	down_cq = tx_cq(&down, 64);
	up_cq = tx_cq(&up, 64);
	tx_defaults(&a, &up, up_cq);
	tx_defaults(&p, &down, down_cq);
	gone = (struct tx_count)TX_COUNT;
}

static void destroy_held(void)
{
	tx_hold(&down);
	TX_IS(tx->destroy_ti(up.ti, tx_told, &gone), TI_SUCCESS);
}

static void end(void)
{
	tx_let_go();
	tx_await(&gone, 1);
	tx_end(&down);
}

/* ---- a message that waits for a receive ---- */

static struct tx_count back = TX_COUNT;

static void comes_back(ti_cq_handle_t h, ti_data_element_t *list)
{
	CHECK(h == up_cq);
	TX_IS(list->status, TI_CANCELED);
	TX_IS(tx->res_pool_put(up.pool, list), TI_INVALID_HANDLE);
	tx_add(&back, 1);
}

/* It does not leave any more, comes back, and the receive is for others. */
static void message(void)
{
	ti_data_element_t *list;

	check_case("a message that waits");
	begin();
	a.comp.pfn_send_cb = comes_back;
	tx_connect(&a, &p);
	TX_IS(tx->msg_send(a.conn, tx_message(&up, "x", 1)), TI_SUCCESS);
	CHECK_EQ(tx_now(&back), 0);
	destroy_held();
	TX_IS(tx->msg_recv(p.conn, tx_get(down.pool, 1)), TI_SUCCESS);
	tx_await(&back, 1);
	TX_IS(tx->poll_cq(down_cq, &list), TI_SUCCESS);
	CHECK(!list);
	CHECK_EQ(tx_now(&gone), 0);
	tx_let_go();
	tx_put(down.pool, tx_one(down_cq, TI_CANCELED)); /* the peer has gone */
	tx_await(&gone, 1);
	tx_end(&down);
}

/* ---- who waits for elements ---- */

static atomic_int waiter;

static void *get_waiting(void *status)
{
	ti_pool_response_t r;

	waiter = gettid();
	*(ti_status_t *)status = tx->res_pool_get(up.pool, 1, FALSE, NULL, NULL, NULL, &r);
	return NULL;
}

static void waiting_get(void)
{
	uint32_t bytes = sizeof(uint32_t), on = 1;
	ti_status_t st = TI_NO_STATUS;
	pthread_t thread;

	check_case("a get that waits");
	begin();
	TX_IS(tx->io_ctl(up.ti, (ti_ioctl_t)TI_SET_BLOCKING_GET, &bytes, &on), TI_SUCCESS);
	(void)tx_get(up.pool, TX_POOL);
	pthread_create(&thread, NULL, get_waiting, &st);
	while (!waiter)
		usleep(1000);
	await_sleep(waiter);
	destroy_held();
	pthread_join(thread, NULL);
	TX_IS(st, TI_INSUFFICIENT_RESOURCES);
	CHECK_EQ(tx_now(&gone), 0);
	end();
}

/* ---- a callback that has not had its turn ---- */

static struct tx_kept kept;

static void *accept_kept(void *of)
{
	struct tx_end *e = of;

	e->status = tx->accept(&kept.req, 0, &e->comp, NULL);
	return NULL;
}

static void answered(ti_conn_request_t *req)
{
	TX_IS(req->status, TI_CANCELED);
	CHECK_EQ(req->cb_type, CN_REJECT);
	TX_IS(tx->accept(req, 0, &a.comp, NULL), TI_INVALID_HANDLE);
	tx_add(&a.done, 1);
}

static void await_reply(struct tx_world *w, ti_conn_handle_t h)
{
	ti_conn_profile_t profile = {.conn = h};
	uint32_t bytes = sizeof profile;

	for (int i = 0; profile.state != TI_CONN_REQUESTED && i < TX_WAIT_MS; i++) {
		TX_IS(tx->io_ctl(w->ti, TI_GET_CONN_PROFILE, &bytes, &profile), TI_SUCCESS);
		usleep(1000);
	}
	CHECK_EQ(profile.state, TI_CONN_REQUESTED);
}

/*
 * `from` connects to `to`, whose thread accepts, until the reply has come; down's system thread is
 * held then.  The handle of who connects.
 */
static ti_conn_handle_t meet(struct tx_world *from, struct tx_end *caller_end,
	ti_conn_req_cb_t told, struct tx_world *to, struct tx_end *acceptor, pthread_t *thread)
{
	ti_conn_info_t there = {.conn_request_cb = told},
		       here = {.conn_request_cb = tx_keep, .context = &kept};
	ti_conn_handle_t listener, caller;

	kept = (struct tx_kept){.n = TX_COUNT};
	here.src_ep = to->ep;
	here.pdh = to->pd;
	there.src_ep = from->any;
	there.dst_ep = tx_endpoint(from->ti, "127.0.0.1", to->port);
	there.pdh = from->pd;
	TX_IS(tx->listen(to->ti, &acceptor->attr, &here, NULL, &listener), TI_SUCCESS);
	TX_IS(tx->connect(from->ti, &caller_end->attr, &there, NULL, &caller), TI_SUCCESS);
	tx_await(&kept.n, 1);
	tx_hold(&down);
	pthread_create(thread, NULL, accept_kept, acceptor);
	await_reply(from, caller);
	return caller;
}

/* The reply is there: it is told of as canceled, and the peer is. */
static void reply(void)
{
	pthread_t thread;

	check_case("a reply");
	begin();
	(void)meet(&up, &a, answered, &down, &p, &thread);
	TX_IS(tx->destroy_ti(up.ti, tx_told, &gone), TI_SUCCESS);
	tx_let_go();
	tx_await(&a.done, 1);
	pthread_join(thread, NULL);
	TX_IS(p.status, TI_REJECTED);
	tx_await(&gone, 1);
	tx_end(&down);
}

/* ---- an accept() that waits for the peer ---- */

static void replied(ti_conn_request_t *req)
{
	(void)req;
	tx_add(&p.done, 1);
}

/* It is canceled, though the reply has left. */
static void accepting(void)
{
	struct tx_count ended = TX_COUNT;
	ti_conn_handle_t caller;
	pthread_t thread;

	check_case("an accept that waits");
	begin();
	caller = meet(&down, &p, replied, &up, &a, &thread);
	TX_IS(tx->destroy_ti(up.ti, tx_told, &gone), TI_SUCCESS);
	pthread_join(thread, NULL);
	TX_IS(a.status, TI_CANCELED);
	CHECK_EQ(tx_now(&gone), 0);
	tx_let_go();
	tx_await(&gone, 1);
	tx_await(&p.done, 1);
	TX_IS(tx->disconnect(caller, tx_told, &ended), TI_SUCCESS);
	tx_await(&ended, 1);
	tx_end(&down);
}

int main(void)
{
	if (!by_packet()) /* it has left then, and comes if there is a receive in time */
		message();
	waiting_get();
	reply();
	accepting();
	return check_result();
}
