// SPDX-License-Identifier: BSD-3-Clause
/*
 * What libweftti makes of events that weft0 gives rarely or never.  This program has a function of
 * librdmacm under its own name, so that libweftti calls it: it passes events on, changed.  It has
 * the clock, too, which can go ahead.
 */
#pragma GCC visibility push(default)
#include <dlfcn.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

/* ---- changing events ---- */

static atomic_int from, to, count; /* that many events "from" become "to"; -1: all */
static atomic_int changed;

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	static int (*real)(struct rdma_event_channel *, struct rdma_cm_event **);
	int ret;

	if (!real)
		real = (int (*)(struct rdma_event_channel *, struct rdma_cm_event **))dlsym(
			RTLD_NEXT, "rdma_get_cm_event");
	ret = real(channel, event);
	if (!ret && (int)(*event)->event == from && count) {
		(*event)->event = to;
		(*event)->status = -ETIMEDOUT;
		if (count > 0)
			count--;
		changed++;
	}
	return ret;
}

static atomic_int ahead_s;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int ret = syscall(SYS_clock_gettime, clock, ts);

	ts->tv_sec += ahead_s;
	return ret;
}
#pragma GCC visibility pop

static void change(enum rdma_cm_event_type what, enum rdma_cm_event_type into, int n)
{
	changed = 0;
	from = what;
	to = into;
	count = n;
}

/* ---- patience ---- */

static struct tx_world w;
static ti_cq_handle_t cq;

/* rdma_cm gives up, in each of its ways; connect() does not, and comes about in the end. */
static void never(void)
{
	static const enum rdma_cm_event_type gave_up[][2] = {
		{RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR},
		{RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_ERROR},
		{RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_UNREACHABLE},
	};
	struct tx_end a, p;

	for (int i = 0; i < 3; i++) {
		check_case("never, event %d", (int)gave_up[i][1]);
		tx_defaults(&a, &w, cq);
		tx_defaults(&p, &w, cq);
		a.attr.connect_request_timeout = p.attr.connect_request_timeout = UINT32_MAX;
		change(gave_up[i][0], gave_up[i][1], 3);
		tx_connect(&a, &p);
		CHECK_EQ(changed, 3);
		tx_disconnect(&a);
		tx_disconnect(&p);
	}
}

/* What the program says is the limit: as often as rdma_cm gives up meanwhile. */
static void limited(void)
{
	ti_conn_info_t info = {
		.src_ep = w.any, .dst_ep = w.ep, .pdh = w.pd, .conn_request_cb = tx_accept};
	struct tx_end a;
	ti_conn_handle_t h;
	double begin = now_ms();

	check_case("limited");
	tx_defaults(&a, &w, cq);
	info.context = &a;
	a.attr.connect_request_timeout = 50;
	a.attr.connect_request_retries = 3;
	change(RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, -1);
	TX_IS(tx->connect(w.ti, &a.attr, &info, NULL, &h), TI_SUCCESS);
	tx_await(&a.done, 1);
	TX_IS(a.status, TI_TIMEOUT);
	CHECK(now_ms() - begin >= 150); /* retries multiply it */
	CHECK(changed > 0);
	count = 0;
}

/* Waits until so many events were changed. */
static void await_changed(int n)
{
	for (int i = 0; changed < n && i < TX_WAIT_MS; i++)
		usleep(1000);
	CHECK_RANGE(changed, n, INT32_MAX);
}

/* Without a limit of the program's: 20 seconds, of which some are the test's own. */
static void by_default(void)
{
	ti_conn_info_t info = {
		.src_ep = w.any, .dst_ep = w.ep, .pdh = w.pd, .conn_request_cb = tx_accept};
	struct tx_end a;
	ti_conn_handle_t h;

	check_case("by default");
	tx_defaults(&a, &w, cq);
	info.context = &a;
	a.attr.connect_request_timeout = a.attr.connect_request_retries = 0;
	change(RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, -1);
	TX_IS(tx->connect(w.ti, &a.attr, &info, NULL, &h), TI_SUCCESS);
	await_changed(2);
	ahead_s = 8;
	await_changed(changed + 3);
	CHECK_EQ(tx_now(&a.done), 0);
	ahead_s = 21;
	tx_await(&a.done, 1);
	TX_IS(a.status, TI_TIMEOUT);
	count = 0;
}

int main(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 64);
	never();
	limited();
	by_default();
	tx_end(&w);
	return check_result();
}
