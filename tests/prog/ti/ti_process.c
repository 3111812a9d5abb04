// SPDX-License-Identifier: BSD-3-Clause
/* Peers that are killed or stopped. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { PEER_PORT = 7700, RECEIVES = 8 };

/* ---- the peer's process ---- */

static int from_peer; /* a byte for each thing that it did */
static int to_parent;
static pid_t peer;

static void say(char c)
{
	if (write(to_parent, &c, 1) != 1)
		_exit(1);
}

static void hears(char want)
{
	char c = 0;

	CHECK_EQ(read(from_peer, &c, 1), 1);
	CHECK_EQ(c, want);
}

static void start_peer(void (*run)(void))
{
	int ends[2];

	if (pipe(ends))
		die("pipe");
	peer = fork();
	if (!peer) {
		close(ends[0]);
		to_parent = ends[1];
		run();
		for (;;)
			pause();
	}
	close(ends[1]);
	from_peer = ends[0];
}

static void kill_peer(void)
{
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	close(from_peer);
}

/* ---- the world of each ---- */

static struct tx_world w;
static ti_cq_handle_t cq;
static struct tx_end e;

static void begin(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 1024);
	tx_defaults(&e, &w, cq);
	e.receives = RECEIVES;
}

static ti_conn_handle_t begin_conn(bool listens, ti_conn_req_cb_t cb)
{
	ti_endpoint_handle_t there = tx_endpoint(w.ti, "127.0.0.1", PEER_PORT);
	ti_conn_info_t info = {.src_ep = listens ? there : w.any,
		.dst_ep = listens ? NULL : there,
		.pdh = w.pd,
		.conn_request_cb = cb,
		.context = &e};
	ti_conn_handle_t h;

	if (listens)
		TX_IS(tx->listen(w.ti, &e.attr, &info, NULL, &h), TI_SUCCESS);
	else
		TX_IS(tx->connect(w.ti, &e.attr, &info, NULL, &h), TI_SUCCESS);
	return h;
}

static void peer_accepts(ti_conn_request_t *req)
{
	tx_accept(req);
	say(req->status || e.status ? 'f' : 'c');
}

static void peer_waits(ti_conn_request_t *req)
{
	(void)req;
	say('r');
}

static void accepting_peer(void)
{
	begin();
	begin_conn(true, peer_accepts);
	say('l');
}

static void silent_peer(void)
{
	begin();
	begin_conn(true, peer_waits);
	say('l');
}

/* Connects after the parent listens. */
static void calling_peer(void)
{
	begin();
	begin_conn(false, peer_accepts);
	say('l');
}

/* ---- the parent's ---- */

static struct {
	struct tx_count n;
	ti_status_t code;
} broken = {TX_COUNT, 0};

static void broke(ti_err_rec_t *rec)
{
	broken.code = rec->code;
	tx_add(&broken.n, 1);
}

static void meet_peer(const char *name)
{
	start_peer(accepting_peer);
	begin();
	check_case("%s", name);
	hears('l');
	broken.n.n = 0;
	e.comp.pfn_err_cb = broke;
	begin_conn(false, tx_accept);
	tx_await(&e.done, 1);
	TX_IS(e.status, TI_SUCCESS);
	hears('c');
}

/* A connection whose peer is killed: the error callback, all elements, and nothing works but
 * disconnect(). */
static void killed_while_connected(void)
{
	ti_data_element_t *list, *m;

	meet_peer("killed while connected");
	kill_peer();
	tx_await(&broken.n, 1);
	TX_IS(broken.code, TI_CANCELED);
	list = tx_poll(cq, RECEIVES);
	for (m = list; m; m = m->p_next_msg)
		TX_IS(m->status, TI_CANCELED);
	tx_put(w.pool, list);
	m = tx_message(&w, "x", 1);
	TX_IS(tx->msg_send(e.conn, m), TI_INVALID_OPERATION);
	tx_put(w.pool, m);
	tx_disconnect(&e);
	tx_end(&w);
}

/* The same in the middle of sends that nobody receives: none stays away. */
static void killed_while_sent_to(void)
{
	ti_data_element_t *list;

	meet_peer("killed while sent to");
	for (int i = 0; i < 2 * RECEIVES; i++)
		TX_IS(tx->msg_send(e.conn, tx_message(&w, "x", 1)), TI_SUCCESS);
	kill_peer();
	list = tx_poll(cq, RECEIVES + 2 * RECEIVES);
	tx_put(w.pool, list);
	tx_await(&broken.n, 1);
	CHECK(broken.code == TI_CANCELED || broken.code == TI_TIMEOUT);
	tx_disconnect(&e);
	tx_end(&w);
}

/* connect() is told that it will not come about, long before its time is up. */
static void killed_before_the_answer(void)
{
	start_peer(silent_peer);
	begin();
	check_case("killed before the answer");
	hears('l');
	e.attr.connect_request_timeout = UINT32_MAX;
	begin_conn(false, tx_accept);
	hears('r');
	kill_peer();
	tx_await(&e.done, 1);
	CHECK(e.status == TI_REJECTED || e.status == TI_CANCELED);
	tx_end(&w);
}

static struct {
	struct tx_count n;
	ti_conn_request_t req;
} asked = {TX_COUNT, {0}};

static void keep(ti_conn_request_t *req)
{
	asked.req = *req;
	tx_add(&asked.n, 1);
}

/* accept() of a request whose sender is dead fails, and gives its receives back. */
static void killed_before_accept(void)
{
	ti_data_element_t *list, *m;
	ti_conn_handle_t l;

	begin();
	check_case("killed before accept()");
	l = begin_conn(true, keep);
	start_peer(calling_peer);
	hears('l');
	tx_await(&asked.n, 1);
	kill_peer();
	e.attr.connect_request_timeout = 0;
	CHECK(tx->accept(&asked.req, 0, &e.comp, tx_get(w.pool, RECEIVES)) != TI_SUCCESS);
	list = tx_poll(cq, RECEIVES);
	for (m = list; m; m = m->p_next_msg)
		CHECK(m->status != TI_SUCCESS);
	tx_put(w.pool, list);
	TX_IS(tx->disconnect(asked.req.conn_handle, NULL, NULL), TI_SUCCESS);
	TX_IS(tx->disconnect(l, NULL, NULL), TI_SUCCESS);
	tx_end(&w);
}

/* ---- a peer that is stopped ---- */

/* Until all of its threads are: one that is not takes what comes next. */
static void stop_peer(void)
{
	int status = 0;

	kill(peer, SIGSTOP);
	if (waitpid(peer, &status, WUNTRACED) != peer || !WIFSTOPPED(status))
		die("the peer does not stop");
}

/* Nothing waits for one that is: what was posted comes back, and the end comes. */
static void stopped_while_connected(void)
{
	meet_peer("stopped while connected");
	stop_peer();
	for (int i = 0; i < 2 * RECEIVES; i++)
		TX_IS(tx->msg_send(e.conn, tx_message(&w, "x", 1)), TI_SUCCESS);
	tx_disconnect(&e);
	tx_put(w.pool, tx_poll(cq, RECEIVES + 2 * RECEIVES));
	tx_end(&w);
	kill_peer();
}

static void stopped_before_the_answer(void)
{
	start_peer(silent_peer);
	begin();
	check_case("stopped before the answer");
	hears('l');
	stop_peer();
	e.attr.connect_request_timeout = 100;
	begin_conn(false, tx_accept);
	tx_await(&e.done, 1);
	TX_IS(e.status, TI_TIMEOUT);
	tx_end(&w);
	kill_peer();
}

/* accept() waits for the other side's, and no longer than the program says. */
static void stopped_before_accept(void)
{
	begin();
	check_case("stopped before accept()");
	asked.n.n = 0;
	e.attr.connect_request_timeout = 500;
	begin_conn(true, keep);
	start_peer(calling_peer);
	hears('l');
	tx_await(&asked.n, 1);
	stop_peer();
	TX_IS(tx->accept(&asked.req, 0, &e.comp, tx_get(w.pool, RECEIVES)), TI_TIMEOUT);
	tx_put(w.pool, tx_poll(cq, RECEIVES));
	tx_end(&w);
	kill_peer();
}

int main(void)
{
	killed_while_connected();
	killed_while_sent_to();
	killed_before_the_answer();
	killed_before_accept();
	stopped_while_connected();
	stopped_before_the_answer();
	stopped_before_accept();
	return check_result();
}
