// SPDX-License-Identifier: BSD-3-Clause
/* Children of fork: of a program's thread, and of each kind of callback. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { PATIENCE_S = 60 };

static struct tx_world w;
static ti_cq_handle_t cq;

static void hear(const ti_event_t event, const void *data, const void *count)
{
	(void)data;
	if (event == TI_EVENT_NETDEV_ONLINE)
		tx_add((struct tx_count *)count, 1);
}

/* The parent's handles are stale in a child, which begins anew; the parent's are as they were. */
static void forked(void)
{
	struct tx_count online = TX_COUNT;
	pid_t pid;
	int status;

	check_case("fork");
	tx_begin(&w);
	cq = tx_cq(&w, 64);
	TX_IS(tx->events_register(&online, hear), TI_SUCCESS);
	tx_await(&online, 1);
	pid = fork();
	if (!pid) {
		struct tx_world mine;

		TX_IS(tx->destroy_ti(w.ti, NULL, NULL), TI_INVALID_HANDLE);
		TX_IS(tx->destroy_cq(cq), TI_INVALID_PARAMETER);
		TX_IS(tx->events_deregister(&online, hear), TI_FAILURE);
		online = (struct tx_count)TX_COUNT;
		TX_IS(tx->events_register(&online, hear), TI_SUCCESS);
		tx_await(&online, 1);
		tx_begin(&mine);
		tx_end(&mine);
		_exit(check_failures() > 0);
	}
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	TX_IS(tx->destroy_cq(cq), TI_SUCCESS);
	TX_IS(tx->events_deregister(&online, hear), TI_SUCCESS);
	tx_end(&w);
}

/* ---- by callbacks ---- */

static _Atomic unsigned forks;
static bool in_child;

/* A child that does not end is killed: the library's threads have signals blocked. */
static void end_in_time(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	alarm(PATIENCE_S);
}

/* The child returns from the callback, by which its only thread ends, and so the child. */
static void fork_here(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		in_child = true;
		end_in_time();
		return;
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	forks++;
}

static void asked(ti_conn_request_t *req)
{
	fork_here();
	if (!in_child)
		tx_accept(req);
}

static void moved(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	fork_here();
	if (!in_child)
		tx_put(w.pool, list);
}

static void broke(ti_err_rec_t *rec)
{
	(void)rec;
	fork_here();
}

static void gone(void *count)
{
	fork_here();
	if (!in_child)
		tx_told(count);
}

static void event(const ti_event_t e, const void *data, const void *context)
{
	(void)e;
	(void)data;
	(void)context;
	if (!forks)
		fork_here();
}

static void await_forks(unsigned n)
{
	for (int i = 0; forks < n && i < TX_WAIT_MS; i++)
		usleep(1000);
	CHECK_EQ(forks, n);
}

static ti_conn_info_t info(ti_endpoint_handle_t src, ti_endpoint_handle_t dst, struct tx_end *e)
{
	return (ti_conn_info_t){
		.src_ep = src, .dst_ep = dst, .pdh = w.pd, .conn_request_cb = asked, .context = e};
}

/* Both requests, a message on both sides, the peer's end, disconnect() and destroy_ti(). */
static void by_connections(void)
{
	struct tx_count done = TX_COUNT;
	struct tx_end a, p;
	ti_conn_info_t down = info(w.ep, NULL, &p), up = info(w.any, w.ep, &a);
	ti_conn_handle_t l, h;

	check_case("by connections");
	forks = 0;
	tx_defaults(&a, &w, cq);
	a.comp.pfn_send_cb = a.comp.pfn_recv_cb = moved;
	p = a;
	a.comp.pfn_err_cb = broke;
	p.receives = 1;
	TX_IS(tx->listen(w.ti, &p.attr, &down, NULL, &l), TI_SUCCESS);
	TX_IS(tx->connect(w.ti, &a.attr, &up, NULL, &h), TI_SUCCESS);
	tx_await(&a.done, 1);
	tx_await(&p.done, 1);
	await_forks(2);
	TX_IS(tx->msg_send(a.conn, tx_message(&w, "x", 1)), TI_SUCCESS);
	await_forks(4);
	TX_IS(tx->disconnect(p.conn, gone, &done), TI_SUCCESS);
	tx_await(&done, 1);
	await_forks(6); /* and a is broken */
	TX_IS(tx->destroy_ti(w.ti, gone, &done), TI_SUCCESS);
	tx_await(&done, 2);
	await_forks(7);
}

static void by_events(void)
{
	check_case("by events");
	forks = 0;
	TX_IS(tx->events_register(NULL, event), TI_SUCCESS);
	await_forks(1);
	TX_IS(tx->events_deregister(NULL, event), TI_SUCCESS);
}

static void got(ti_pool_response_t *r)
{
	(void)r;
	fork_here();
}

/* That one runs in the program's thread, which goes on in the child. */
static void by_pools(void)
{
	check_case("by pools");
	forks = 0;
	(void)tx->res_pool_get(w.pool, 1, FALSE, got, NULL, NULL, NULL);
	if (in_child) {
		TX_IS(tx->res_pool_destroy(w.pool), TI_INVALID_HANDLE);
		_exit(check_failures() > 0);
	}
	CHECK_EQ(forks, 1);
}

int main(void)
{
	forked();
	tx_begin(&w);
	cq = tx_cq(&w, 64);
	by_pools();
	by_events();
	by_connections();
	return check_result();
}
