// SPDX-License-Identifier: BSD-3-Clause
/*
 * Callbacks that wait: each has a thread as long as it does, and not longer; there are at most so
 * many, and those behind them are called when one returns.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { CALLS = 40, THREADS_MAX = 256, FLOOD = CALLS + THREADS_MAX + 20, IDLE = 3 };

static struct tx_world w;
static ti_comp_info_t comp;
static ti_conn_attr_t attr;
static ti_conn_request_t asked[FLOOD];
static struct tx_count replies = TX_COUNT, accepted = TX_COUNT, refused = TX_COUNT;

/* ---- threads of the library that call back ---- */

static bool is_system(const char *task)
{
	char path[300], name[32] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(name, sizeof name, f))
		name[0] = '\0';
	fclose(f);
	return !strcmp(name, "ti-system\n");
}

static unsigned system_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	if (!d)
		die("/proc/self/task");
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		n += e->d_name[0] != '.' && is_system(e->d_name);
	closedir(d);
	return n;
}

/* Until at most those are left that wait for the next callback. */
static void await_few(void)
{
	for (int ms = 0; ms < TX_WAIT_MS && system_threads() > IDLE; ms++)
		usleep(1000);
	CHECK(system_threads() <= IDLE);
}

/* ---- the two sides ---- */

/* Waits in accept() for the other side's. */
static void listens(ti_conn_request_t *req)
{
	tx_add(tx->accept(req, 0, &comp, NULL) ? &refused : &accepted, 1);
}

/* The answer; it is accepted later. */
static void connects(ti_conn_request_t *req)
{
	if (req->status) {
		tx_add(&refused, 1);
		return;
	}
	asked[tx_now(&replies)] = *req;
	tx_add(&replies, 1);
}

static ti_conn_info_t info(ti_conn_req_cb_t cb)
{
	return (ti_conn_info_t){.src_ep = w.any, .pdh = w.pd, .conn_request_cb = cb};
}

static ti_conn_handle_t begin_listen(void)
{
	ti_conn_info_t i = info(listens);
	ti_conn_handle_t listener;

	i.src_ep = w.ep;
	TX_IS(tx->listen(w.ti, &attr, &i, NULL, &listener), TI_SUCCESS);
	return listener;
}

static void begin_connect(unsigned n)
{
	ti_conn_info_t i = info(connects);
	ti_conn_handle_t h;

	i.dst_ep = w.ep;
	for (; n; n--)
		TX_IS(tx->connect(w.ti, &attr, &i, NULL, &h), TI_SUCCESS);
}

/* Accepts the answers from that one on, as long as new ones come; how many there were. */
static unsigned accept_answers(unsigned from)
{
	for (; from < tx_now(&replies); from++)
		TX_IS(tx->accept(&asked[from], 0, &comp, NULL), TI_SUCCESS);
	return from;
}

/* ---- cases ---- */

static void each_has_one(void)
{
	check_case("each that waits has a thread");
	begin_connect(CALLS);
	tx_await(&replies, CALLS);
	CHECK(system_threads() >= CALLS);
	accept_answers(0);
	tx_await(&accepted, CALLS);
	check_case("and not longer");
	await_few();
}

/* One after the other, for a listener has a backlog. */
static void flood(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned before = tx_now(&replies);

		begin_connect(1);
		for (int ms = 0; ms < 10 && tx_now(&replies) == before; ms++)
			usleep(1000);
	}
}

static void not_too_many(void)
{
	unsigned done = CALLS;

	check_case("no more than so many");
	flood(FLOOD - CALLS);
	CHECK(system_threads() <= THREADS_MAX);
	CHECK(tx_now(&accepted) == CALLS);
	check_case("all are called in the end");
	for (int ms = 0; ms < TX_WAIT_MS && tx_now(&accepted) < FLOOD; ms++) {
		done = accept_answers(done);
		usleep(1000);
	}
	CHECK_EQ(tx_now(&accepted), FLOOD);
	CHECK_EQ(tx_now(&refused), 0);
	await_few();
}

int main(void)
{
	ti_conn_handle_t listener;

	tx_begin(&w);
	attr = (ti_conn_attr_t){.reliable = TRUE, .connect_request_timeout = UINT32_MAX};
	comp.h_send_cq = comp.h_recv_cq = tx_cq(&w, 16384);
	listener = begin_listen();
	each_has_one();
	not_too_many();
	tx_close(listener);
	tx_end(&w); /* takes the connections along */
	await_few();
	return check_result();
}
