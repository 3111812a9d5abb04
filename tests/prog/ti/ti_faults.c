// SPDX-License-Identifier: BSD-3-Clause
/*
 * What libweftti makes of what weft0 does rarely or never.  This program has functions of other
 * libraries under their own names, so that libweftti calls them: events are passed on, changed, the
 * clock can go ahead, a thread can be slow to notice.  And the adapter can refuse what it is given.
 */
#pragma GCC visibility push(default)
#include <dlfcn.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

/* ---- changing events ---- */

static atomic_int from, to, count; /* that many events "from" become "to"; -1: all */
static atomic_int changed;
static atomic_int kept_from = -1; /* events of that kind are kept until the gate below is open */
static atomic_bool keeps, may_come;

static void keep_event(void)
{
	keeps = true;
	while (!may_come)
		usleep(1000);
	kept_from = -1;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	static int (*real)(struct rdma_event_channel *, struct rdma_cm_event **);
	int ret;

	if (!real)
		real = (int (*)(struct rdma_event_channel *, struct rdma_cm_event **))dlsym(
			RTLD_NEXT, "rdma_get_cm_event");
	ret = real(channel, event);
	if (!ret && (int)(*event)->event == kept_from)
		keep_event();
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

/* ---- a thread that is told late ---- */

static _Thread_local bool is_slow;
static atomic_bool gate; /* open: it goes on */

static bool is_of_ti(void *address)
{
	Dl_info info;

	return dladdr(address, &info) && strstr(info.dli_fname, "libweftti");
}

/* May return early, so a thread that is slow to notice may as well. */
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	const struct timespec never = {.tv_sec = INT32_MAX};

	if (!is_slow || !is_of_ti(__builtin_return_address(0)))
		return pthread_cond_timedwait(cond, mutex, &never);
	pthread_mutex_unlock(mutex);
	while (!gate)
		usleep(1000);
	return pthread_mutex_lock(mutex);
}
#pragma GCC visibility pop

static void keep(enum rdma_cm_event_type what)
{
	keeps = may_come = false;
	kept_from = what;
}

static void await_kept(void)
{
	for (int i = 0; !keeps && i < TX_WAIT_MS; i++)
		usleep(1000);
	CHECK(keeps);
}

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
	ahead_s = 19;
	await_changed(changed + 3);
	CHECK_EQ(tx_now(&a.done), 0);
	ahead_s = 21;
	tx_await(&a.done, 1);
	TX_IS(a.status, TI_TIMEOUT);
	count = 0;
}

/* ---- an end that comes before accept() has noticed that it succeeded ---- */

static struct tx_count received, broken;
static atomic_bool may_return;

static void receives_slowly(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	tx_put(w.pool, list);
	tx_add(&received, 1);
	while (!may_return)
		usleep(1000);
}

static void broke(ti_err_rec_t *rec)
{
	(void)rec;
	tx_add(&broken, 1);
}

static struct tx_end late;

static void *accept_slowly(void *arg)
{
	struct tx_kept *k = arg;

	is_slow = true;
	k->req.context = &late;
	tx_accept(&k->req);
	return NULL;
}

static void listen_and_call(struct tx_end *a, struct tx_kept *k, ti_conn_handle_t *listener)
{
	ti_conn_info_t up = {
		.src_ep = w.any, .dst_ep = w.ep, .pdh = w.pd, .conn_request_cb = tx_accept};
	ti_conn_info_t down = {
		.src_ep = w.ep, .pdh = w.pd, .conn_request_cb = tx_keep, .context = k};
	ti_conn_handle_t h;

	up.context = a;
	TX_IS(tx->listen(w.ti, &a->attr, &down, NULL, listener), TI_SUCCESS);
	TX_IS(tx->connect(w.ti, &a->attr, &up, NULL, &h), TI_SUCCESS);
	tx_await(&k->n, 1);
}

static void await_state(ti_conn_handle_t h, uint32_t state)
{
	ti_conn_profile_t profile = {.conn = h};
	uint32_t bytes = sizeof profile;

	for (int i = 0; profile.state != state && i < TX_WAIT_MS; i++) {
		TX_IS(tx->io_ctl(w.ti, TI_GET_CONN_PROFILE, &bytes, &profile), TI_SUCCESS);
		usleep(1000);
	}
	CHECK_EQ(profile.state, state);
}

static void ended_before_noticed(void)
{
	struct tx_kept k = {TX_COUNT, {0}};
	struct tx_count gone = TX_COUNT;
	ti_conn_handle_t listener;
	struct tx_end a;
	pthread_t thread;

	check_case("ended before noticed");
	received = broken = (struct tx_count)TX_COUNT;
	tx_defaults(&a, &w, cq);
	a.comp.pfn_err_cb = broke;
	tx_defaults(&late, &w, cq);
	late.comp.pfn_recv_cb = receives_slowly;
	late.receives = 1;
	listen_and_call(&a, &k, &listener);
	pthread_create(&thread, NULL, accept_slowly, &k);
	tx_await(&a.done, 1);
	TX_IS(tx->msg_send(a.conn, tx_message(&w, "x", 1)), TI_SUCCESS);
	tx_await(&received, 1);
	await_state(k.req.conn_handle, TI_CONN_ESTABLISHED);
	TX_IS(tx->disconnect(k.req.conn_handle, tx_told, &gone), TI_SUCCESS);
	tx_await(&broken, 1); /* the peer was told: it is being closed */
	may_return = true;    /* nothing is under way any more */
	for (int i = 0; i < 100 && !tx_now(&gone); i++)
		usleep(1000);
	CHECK_EQ(tx_now(&gone), 0); /* but accept() */
	gate = true;
	pthread_join(thread, NULL);
	tx_await(&gone, 1);
	tx_disconnect(&a);
	tx_put(w.pool, tx_one(cq, TI_SUCCESS));
	tx_close(listener);
}

/* ---- an accept() that fails while the completion thread is in a callback ---- */

static struct {
	struct tx_kept k;
	struct tx_end end;
	ti_res_pool_handle_t pool;
	atomic_bool returned;
} failing;

/* Has the element with the message until it is let go on. */
static void receives_from_pool(ti_cq_handle_t h, ti_data_element_t *list)
{
	bool came = list->status == TI_SUCCESS;

	(void)h;
	if (came)
		tx_add(&received, 1);
	while (came && !may_return)
		usleep(1000);
	tx_put(failing.pool, list);
}

/* As the samples: what accept() had is destroyed when it returns. */
static void *accept_in_vain(void *unused)
{
	struct tx_end *e = &failing.end;

	(void)unused;
	TX_IS(tx->accept(&failing.k.req, 0, &e->comp, tx_get(failing.pool, 2)), TI_TIMEOUT);
	failing.returned = true;
	TX_IS(tx->res_pool_destroy(failing.pool), TI_SUCCESS);
	return NULL;
}

/* A message comes before the peer's last word, in place of which rdma_cm gives up. */
static void failed_while_called_back(void)
{
	ti_conn_handle_t listener;
	uint32_t size = 64;
	struct tx_end a;
	pthread_t thread;

	check_case("accept fails beside a callback");
	received.n = 0;
	may_return = false;
	failing.k = (struct tx_kept){.n = TX_COUNT};
	tx_defaults(&a, &w, cq);
	tx_defaults(&failing.end, &w, cq);
	failing.end.comp.pfn_recv_cb = receives_from_pool;
	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_MSG, 2, 1, &size, 0, &failing.pool),
		TI_SUCCESS);
	keep(RDMA_CM_EVENT_ESTABLISHED);
	change(RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_UNREACHABLE, 1);
	listen_and_call(&a, &failing.k, &listener);
	pthread_create(&thread, NULL, accept_in_vain, NULL);
	tx_await(&a.done, 1);
	TX_IS(tx->msg_send(a.conn, tx_message(&w, "x", 1)), TI_SUCCESS);
	tx_await(&received, 1);
	may_come = true;
	for (int i = 0; i < 50 && !failing.returned; i++)
		usleep(1000);
	CHECK(!failing.returned);
	may_return = true;
	pthread_join(thread, NULL);
	tx_close(failing.k.req.conn_handle);
	tx_disconnect(&a);
	tx_put(w.pool, tx_poll(cq, 1));
	tx_close(listener);
}

/* ---- a connect() whose service ends ---- */

static struct tx_count requests, calls;

static void count_request(ti_conn_request_t *req)
{
	TX_IS(tx->reject(req), TI_SUCCESS);
	tx_add(&requests, 1);
}

static void told_canceled(ti_conn_request_t *req)
{
	TX_IS(req->status, TI_CANCELED);
	tx_add(&calls, 1);
}

static void told_rejected(ti_conn_request_t *req)
{
	TX_IS(req->status, TI_REJECTED);
	tx_add(&calls, 1);
}

/* Returns when events of which the first has come already have led to what they lead to. */
static void pass_events(void)
{
	ti_conn_attr_t attr = {.reliable = TRUE};
	ti_conn_info_t to_nobody = {.src_ep = w.any, .pdh = w.pd, .conn_request_cb = told_rejected};
	ti_conn_handle_t h;

	to_nobody.dst_ep = tx_endpoint(w.ti, "127.0.0.1", w.port + 100);
	TX_IS(tx->connect(w.ti, &attr, &to_nobody, NULL, &h), TI_SUCCESS);
	await_state(h, TI_CONN_BROKEN);
}

/* What rdma_cm answers afterwards leads to nothing: the listener is not asked. */
static void ended_while_connecting(enum rdma_cm_event_type at)
{
	ti_conn_attr_t attr = {.reliable = TRUE};
	ti_conn_info_t down = {.src_ep = w.ep, .pdh = w.pd, .conn_request_cb = count_request};
	ti_conn_info_t up = {.conn_request_cb = told_canceled};
	struct tx_count gone = TX_COUNT;
	ti_conn_handle_t listener, h;
	struct tx_world other;

	check_case("ended while it connects, event %d", (int)at);
	requests = calls = (struct tx_count)TX_COUNT;
	tx_begin(&other);
	up.src_ep = other.any;
	up.dst_ep = tx_endpoint(other.ti, "127.0.0.1", w.port);
	up.pdh = other.pd;
	TX_IS(tx->listen(w.ti, &attr, &down, NULL, &listener), TI_SUCCESS);
	keep(at);
	TX_IS(tx->connect(other.ti, &attr, &up, NULL, &h), TI_SUCCESS);
	await_kept();
	tx_hold(&w);
	TX_IS(tx->destroy_ti(other.ti, tx_told, &gone), TI_SUCCESS);
	may_come = true;
	pass_events();
	tx_let_go();
	tx_await(&gone, 1);
	tx_await(&calls, 2);
	CHECK_EQ(tx_now(&requests), 0);
	tx_close(listener);
}

/* ---- an adapter that refuses receives ---- */

static int (*real_post_recv)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);
static atomic_int until_refused; /* receives; below 0: it takes all */

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (until_refused >= 0 && until_refused-- == 0) {
		*bad = wr;
		return ENOMEM;
	}
	return real_post_recv(qp, wr, bad);
}

static struct ibv_context **refuse_receives(void)
{
	struct ibv_context **devices = rdma_get_devices(NULL);

	if (!devices || !devices[0])
		die("no device");
	until_refused = -1;
	real_post_recv = devices[0]->ops.post_recv;
	devices[0]->ops.post_recv = post_recv;
	return devices;
}

static struct tx_count back;

static void comes_back(ti_cq_handle_t h, ti_data_element_t *list)
{
	unsigned n = 0;

	(void)h;
	for (ti_data_element_t *e = list; e; e = e->p_next_msg, n++)
		CHECK(e->status != TI_SUCCESS);
	tx_put(w.pool, list);
	tx_add(&back, n);
}

/* accept() fails, and each element comes back once. */
static void refused_by_accept(void)
{
	struct tx_kept k = {TX_COUNT, {0}};
	ti_conn_handle_t listener;
	struct tx_end a, p;

	check_case("refused by accept");
	back = (struct tx_count)TX_COUNT;
	tx_defaults(&a, &w, cq);
	tx_defaults(&p, &w, cq);
	p.comp.pfn_recv_cb = comes_back;
	listen_and_call(&a, &k, &listener);
	until_refused = 2;
	TX_IS(tx->accept(&k.req, 0, &p.comp, tx_get(w.pool, 4)), TI_INSUFFICIENT_RESOURCES);
	until_refused = -1;
	CHECK_EQ(tx_now(&back), 4);
	tx_close(k.req.conn_handle);
	CHECK_EQ(tx_now(&back), 4);
	tx_await(&a.done, 1);
	CHECK(a.status != TI_SUCCESS);
	tx_close(listener);
}

/* A receive that is refused breaks the connection; those before and behind it come back, too. */
static void refused_later(void)
{
	struct tx_end a, p;

	check_case("refused later");
	broken.n = 0;
	tx_defaults(&a, &w, cq);
	tx_defaults(&p, &w, cq);
	p.comp.pfn_err_cb = broke;
	tx_connect(&a, &p);
	until_refused = 1;
	TX_IS(tx->msg_recv(p.conn, tx_get(w.pool, 3)), TI_SUCCESS);
	until_refused = -1;
	tx_await(&broken, 1);
	tx_put(w.pool, tx_poll(cq, 3));
	tx_disconnect(&p);
	tx_disconnect(&a);
}

/* ---- an adapter whose completions cannot be read ---- */

static int (*real_poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
static atomic_bool poll_fails; /* once */

static int poll_cq(struct ibv_cq *q, int n, struct ibv_wc *wc)
{
	return atomic_exchange(&poll_fails, false) ? -1 : real_poll_cq(q, n, wc);
}

static struct {
	struct tx_count n;
	ti_status_t code;
} cq_broken = {TX_COUNT, TI_SUCCESS};

static void cq_broke(ti_err_rec_t *rec)
{
	cq_broken.code = rec->code;
	tx_add(&cq_broken.n, 1);
}

static void cq_error(struct ibv_context *device)
{
	ti_cq_handle_t own = tx_cq(&w, 64);
	ti_data_element_t *list;
	struct tx_end a, p;

	check_case("CQ error");
	real_poll_cq = device->ops.poll_cq;
	device->ops.poll_cq = poll_cq;
	tx_defaults(&a, &w, own);
	a.comp.pfn_err_cb = cq_broke;
	tx_defaults(&p, &w, cq);
	tx_connect(&a, &p);
	poll_fails = true;
	TX_IS(tx->poll_cq(own, &list), TI_SUCCESS);
	tx_await(&cq_broken.n, 1);
	TX_IS(cq_broken.code, TI_CQ_ERROR);
	tx_disconnect(&a);
	tx_disconnect(&p);
	TX_IS(tx->destroy_cq(own), TI_SUCCESS);
	device->ops.poll_cq = real_poll_cq;
}

static void broken_adapter(void)
{
	struct ibv_context **devices = refuse_receives();

	refused_by_accept();
	refused_later();
	cq_error(devices[0]);
	devices[0]->ops.post_recv = real_post_recv;
	rdma_free_devices(devices);
}

int main(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 64);
	ended_before_noticed();
	failed_while_called_back();
	ended_while_connecting(RDMA_CM_EVENT_ADDR_RESOLVED);
	ended_while_connecting(RDMA_CM_EVENT_ROUTE_RESOLVED);
	broken_adapter();
	never();
	limited();
	by_default();
	tx_end(&w);
	return check_result();
}
