// SPDX-License-Identifier: BSD-3-Clause
/*
 * accept(), reject(), disconnect() and timeouts at the same time, in an order that a seed draws.  A
 * model says what may come of it: each connect() is answered once, no element is lost, both ends
 * agree, and nothing is left.  usage: ti_race [ROUNDS [SEED]]
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { ROUNDS = 60, CALLS = 8, RECEIVES = 2, NAP_MAX_US = 1500 };

enum deed { ACCEPT, REJECT, DISCONNECT, LEAVE, DEEDS };

/* One end of a call: what its request callback does, and what came of it. */
struct side {
	struct call *call;
	enum deed deed;
	unsigned nap_us;
	_Atomic unsigned told;   /* callbacks */
	ti_status_t status, did; /* of the request; of the deed */
	ti_conn_request_t req;
	_Atomic bool has_handle;
};

struct call {
	struct side active, passive;
	bool killer; /* a thread disconnects the active side at some time */
	unsigned killer_us;
	ti_status_t killed;
	ti_conn_handle_t conn; /* of connect() */
};

static struct tx_world w;
static ti_cq_handle_t cq;
static struct call calls[CALLS];
static _Atomic unsigned answered, errors;

/* Requests of an earlier round may come late: they are turned away. */
static struct {
	pthread_mutex_t lock;
	uint32_t round;
	unsigned inside; /* callbacks of it */
} now = {.lock = PTHREAD_MUTEX_INITIALIZER};
static unsigned seed;

static unsigned draw(unsigned n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % n;
}

static void nap(unsigned us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000l}, NULL);
}

/* ---- what callbacks do ---- */

static void broke(ti_err_rec_t *rec)
{
	(void)rec;
	errors++;
}

static ti_comp_info_t comp(void)
{
	return (ti_comp_info_t){.h_send_cq = cq, .h_recv_cq = cq, .pfn_err_cb = broke};
}

static void act(struct side *s)
{
	ti_comp_info_t c = comp();

	nap(s->nap_us);
	switch (s->deed) {
	case ACCEPT:
		s->did = tx->accept(&s->req, 0, &c, tx_get(w.pool, RECEIVES));
		break;
	case REJECT:
		s->did = tx->reject(&s->req);
		break;
	case DISCONNECT:
		s->did = tx->disconnect(s->req.conn_handle, NULL, NULL);
		break;
	default:
		break;
	}
	if (s->did) /* it came too late: what is left is to end it, and the peer hears */
		(void)tx->disconnect(s->req.conn_handle, NULL, NULL);
}

static void called(ti_conn_request_t *req)
{
	struct side *s = &((struct call *)req->context)->active;

	s->told++;
	s->status = req->status;
	s->req = *req;
	if (!req->status)
		act(s);
	answered++;
}

static bool enter(uint32_t number)
{
	bool ours;

	pthread_mutex_lock(&now.lock);
	ours = number / CALLS == now.round;
	now.inside += ours;
	pthread_mutex_unlock(&now.lock);
	return ours;
}

static void leave(void)
{
	pthread_mutex_lock(&now.lock);
	now.inside--;
	pthread_mutex_unlock(&now.lock);
}

static void end_round(void)
{
	bool idle;

	do {
		pthread_mutex_lock(&now.lock);
		idle = !now.inside;
		now.round += idle;
		pthread_mutex_unlock(&now.lock);
		nap(100);
	} while (!idle);
}

/* Which call it is of, the private data say. */
static void asked(ti_conn_request_t *req)
{
	struct side *s;
	uint32_t number;

	memcpy(&number, req->private_data, sizeof number);
	if (!enter(number)) {
		(void)tx->disconnect(req->conn_handle, NULL, NULL);
		return;
	}
	s = &calls[number % CALLS].passive;
	s->told++;
	s->status = req->status;
	s->req = *req;
	s->has_handle = true;
	if (!req->status)
		act(s);
	else /* its time was up before the callback's turn came */
		s->did = tx->disconnect(req->conn_handle, NULL, NULL);
	leave();
}

/* ---- a round ---- */

static void *kill_call(void *arg)
{
	struct call *c = arg;

	nap(c->killer_us);
	c->killed = tx->disconnect(c->conn, NULL, NULL);
	return NULL;
}

static void draw_side(struct side *s, struct call *c)
{
	*s = (struct side){.call = c, .deed = draw(DEEDS), .nap_us = draw(2) * draw(NAP_MAX_US)};
	if (s->deed == LEAVE && draw(2))
		s->deed = ACCEPT;
}

static void start(unsigned n, pthread_t *thread)
{
	struct call *c = &calls[n];
	uint32_t number = now.round * CALLS + n;
	ti_conn_info_t info = {.src_ep = w.any,
		.dst_ep = w.ep,
		.pdh = w.pd,
		.private_data = &number,
		.private_data_len = sizeof number,
		.conn_request_cb = called,
		.context = c};
	ti_conn_attr_t attr = {.reliable = TRUE, .auto_cq_rearm = TRUE};

	attr.connect_request_timeout = draw(2) && c->passive.deed != LEAVE ? 0 : 1 + draw(3);
	TX_IS(tx->connect(w.ti, &attr, &info, NULL, &c->conn), TI_SUCCESS);
	if (c->killer && pthread_create(thread, NULL, kill_call, c))
		die("pthread_create");
}

/* What may be, given what each side did. */
static void judge(const struct call *c)
{
	const struct side *a = &c->active, *p = &c->passive;
	bool a_in = !a->status && a->deed == ACCEPT && !a->did;
	bool p_in = p->told && !p->status && p->deed == ACCEPT && !p->did;

	CHECK_EQ(a->told, 1);
	CHECK(p->told <= 1);
	CHECK(!p->status || p->status == TI_TIMEOUT || p->status == TI_CANCELED);
	/* a reply is accept()'s */
	CHECK(a->status || (p->told && p->deed == ACCEPT));
	/* who waits in accept() gets in by the other's accept() alone */
	CHECK(!p_in || a_in);
	switch (a->status) {
	case TI_SUCCESS:
	case TI_TIMEOUT:
		break;
	case TI_REJECTED:
		CHECK(p->told && (p->status || p->deed != LEAVE));
		break;
	case TI_CANCELED:
		CHECK(c->killer && !c->killed);
		break;
	default:
		CHECK(!"a status that connect() has");
	}
	/* one disconnect() of each handle works */
	if (c->killer)
		CHECK(c->killed == TI_SUCCESS || c->killed == TI_INVALID_HANDLE);
}

/* All that was taken from the pool comes back. */
static void collect(void)
{
	double until = now_ms() + TX_WAIT_MS;
	ti_pool_response_t resp;
	ti_data_element_t *list;

	for (;;) {
		TX_IS(tx->poll_cq(cq, &list), TI_SUCCESS);
		if (list)
			tx_put(w.pool, list);
		if (!tx->res_pool_get(w.pool, TX_POOL, FALSE, NULL, NULL, NULL, &resp))
			break;
		if (now_ms() > until)
			die("elements are lost");
		nap(100);
	}
	tx_put(w.pool, resp.p_element_list);
}

static void end_call(struct call *c)
{
	/* TI_INVALID_HANDLE: it has ended */
	(void)tx->disconnect(c->conn, NULL, NULL);
	if (c->passive.has_handle)
		(void)tx->disconnect(c->passive.req.conn_handle, NULL, NULL);
}

static void round_of_calls(ti_conn_attr_t *listens)
{
	ti_conn_info_t info = {
		.src_ep = w.ep, .pdh = w.pd, .conn_request_cb = asked, .context = calls};
	pthread_t threads[CALLS];
	ti_conn_handle_t l;
	double until = now_ms() + TX_WAIT_MS;

	answered = 0;
	TX_IS(tx->listen(w.ti, listens, &info, NULL, &l), TI_SUCCESS);
	for (unsigned n = 0; n < CALLS; n++) {
		calls[n] = (struct call){.killer = !draw(3), .killer_us = draw(NAP_MAX_US)};
		draw_side(&calls[n].active, &calls[n]);
		draw_side(&calls[n].passive, &calls[n]);
	}
	for (unsigned n = 0; n < CALLS; n++)
		start(n, &threads[n]);
	for (unsigned n = 0; n < CALLS; n++)
		if (calls[n].killer)
			pthread_join(threads[n], NULL);
	while (answered < CALLS) {
		if (now_ms() > until)
			die("%u of %u calls were answered", answered, (unsigned)CALLS);
		nap(100);
	}
	tx_close(l);
	for (unsigned n = 0; n < CALLS; n++)
		end_call(&calls[n]);
	end_round();
	collect();
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : ROUNDS, first;
	ti_conn_attr_t listens = {.reliable = TRUE, .auto_cq_rearm = TRUE};

	seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : (unsigned)time(NULL);
	first = seed;
	tx_begin(&w);
	cq = tx_cq(&w, 65536);
	for (unsigned r = 0; r < rounds; r++) {
		check_case("ti_race %u %u", r + 1, first);
		listens.connect_request_timeout = draw(2) ? 0 : 1 + draw(3);
		round_of_calls(&listens);
		for (unsigned n = 0; n < CALLS; n++) {
			check_case("ti_race %u %u, call %u: %d, %d", r + 1, first, n,
				(int)calls[n].active.deed, (int)calls[n].passive.deed);
			judge(&calls[n]);
		}
	}
	tx_end(&w);
	return check_result();
}
