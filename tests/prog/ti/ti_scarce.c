// SPDX-License-Identifier: BSD-3-Clause
/*
 * File descriptors, memory or threads run out: each call of libweftti fails or works, and later all
 * do.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/no_memory.h"
#include "tests/lib/ti_ends.h"

enum { ALLOCATIONS = 2000, TIMEOUT_MS = 5000 };

static struct tx_world w;
static ti_cq_handle_t cq;

static atomic_bool no_threads;

/* In place of the C library's. */
__attribute__((visibility("default"))) int pthread_create(
	pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
	static int (*_Atomic create)(
		pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (atomic_load(&no_threads))
		return EAGAIN;
	if (!create)
		*(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
	return create(thread, attr, main, arg);
}

static void begin(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 64);
}

static void turn_away(ti_conn_request_t *req)
{
	if (!req->status)
		(void)tx->reject(req);
}

static ti_conn_info_t info(struct tx_end *e, bool listens)
{
	return (ti_conn_info_t){.src_ep = listens ? w.ep : w.any,
		.dst_ep = listens ? NULL : w.ep,
		.pdh = w.pd,
		.conn_request_cb = turn_away,
		.context = e};
}

static rlim_t set_limit(rlim_t n)
{
	struct rlimit lim;
	rlim_t before;

	getrlimit(RLIMIT_NOFILE, &lim);
	before = lim.rlim_cur;
	lim.rlim_cur = n;
	if (setrlimit(RLIMIT_NOFILE, &lim))
		die("setrlimit");
	return before;
}

static int first_free_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

/* Each of these may fail; what it made is destroyed. */
static void try_all(void)
{
	static struct tx_end e;
	ti_conn_info_t down = info(&e, true), up = info(&e, false);
	ti_inet_addr_t addr = {.IP_addr_type = TI_ADDR_IPV4};
	ti_endpoint_handle_t ep;
	ti_conn_handle_t h = NULL;
	ti_pd_handle_t pd;
	uint32_t size = 64;
	ti_res_pool_handle_t pool;
	ti_handle_t ti;

	tx_defaults(&e, &w, cq);
	if (!tx->create_ti(&ti))
		(void)tx->destroy_ti(ti, NULL, NULL);
	if (!tx->create_endpoint(w.ti, &addr, 0, &ep))
		TX_IS(tx->destroy_endpoint(ep), TI_SUCCESS);
	if (!tx->create_pd(w.ti, w.ep, &pd))
		TX_IS(tx->destroy_pd(pd), TI_SUCCESS);
	if (!tx->res_pool_create(w.ti, TI_RES_POOL_MSG, 1, 1, &size, 0, &pool))
		TX_IS(tx->res_pool_destroy(pool), TI_SUCCESS);
	if (!tx->listen(w.ti, &e.attr, &down, NULL, &h))
		TX_IS(tx->disconnect(h, NULL, NULL), TI_SUCCESS);
	if (!tx->connect(w.ti, &e.attr, &up, NULL, &h))
		(void)tx->disconnect(h, NULL, NULL);
}

static void no_descriptors(void)
{
	struct tx_end a, p;
	rlim_t before = set_limit(first_free_fd());
	ti_handle_t ti;

	check_case("no descriptors");
	tx = ti_ops_get();
	TX_IS(tx->create_ti(&ti), TI_INSUFFICIENT_RESOURCES); /* the very first one */
	CHECK(!ti);
	set_limit(before);
	begin();
	for (int more = 0; more < 4; more++) {
		before = set_limit(first_free_fd() + more);
		try_all();
		set_limit(before);
	}
	tx_end(&w);
	begin();
	tx_defaults(&a, &w, cq);
	tx_defaults(&p, &w, cq);
	tx_connect(&a, &p); /* as if nothing had been */
	tx_end(&w);
}

static void no_memory(void)
{
	int n;

	check_case("no memory");
	begin();
	for (n = 0; n < ALLOCATIONS; n++) {
		left = n;
		failed = false;
		try_all();
		left = -1;
		if (!failed)
			break;
	}
	CHECK_RANGE(n, 6, ALLOCATIONS - 1);
	tx_end(&w);
}

/* ---- threads ---- */

static struct tx_kept asked = {.n = TX_COUNT};
static ti_status_t accepted;
static struct tx_end answered = {.done = TX_COUNT};

/* Needs another callback, for it waits until the other side accepts. */
static void accept_at_once(ti_conn_request_t *req)
{
	ti_comp_info_t comp = {.h_send_cq = cq, .h_recv_cq = cq};

	asked.req = *req;
	atomic_store(&no_threads, true);
	accepted = tx->accept(req, 0, &comp, NULL);
	atomic_store(&no_threads, false);
	tx_add(&asked.n, 1);
}

/* A process of its own, since threads that an earlier case had would do. */
static void no_second_thread(void)
{
	ti_conn_info_t down, up;
	ti_conn_handle_t h;

	check_case("no thread for a second callback");
	begin();
	tx_defaults(&answered, &w, cq);
	answered.attr.connect_request_timeout = TIMEOUT_MS;
	down = info(&answered, true);
	up = info(&answered, false);
	down.conn_request_cb = accept_at_once;
	up.conn_request_cb = tx_accept;
	TX_IS(tx->listen(w.ti, &answered.attr, &down, NULL, &h), TI_SUCCESS);
	TX_IS(tx->connect(w.ti, &answered.attr, &up, NULL, &h), TI_SUCCESS);
	tx_await(&asked.n, 1);
	TX_IS(accepted, TI_INSUFFICIENT_RESOURCES);
	tx_close(asked.req.conn_handle);
	tx_await(&answered.done, 1);
	CHECK(answered.status);
	tx_end(&w);
}

static void in_a_child(void (*test)(void))
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		test();
		exit(check_result());
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	check_child(status);
}

int main(void)
{
	in_a_child(no_second_thread);
	no_descriptors();
	no_memory();
	return check_result();
}
