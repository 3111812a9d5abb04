// SPDX-License-Identifier: BSD-3-Clause
/*
 * ti_lat send|event SIZE COUNT: a message of libweftti each way between two processes, polled for
 * or called back; prints half the round trip in microseconds: average, median, 99.9th percentile.
 * ti_lat write_bw|write1_bw SIZE COUNT: RDMA writes, 16 under way, posted by lists as they come
 * from poll_cq(), or one by one; prints GB/s. ti_lat pool SIZE COUNT: prints the nanoseconds of a
 * res_pool_get() and _put() of one element, of a msg_send(), and their ratio.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/ti.h>

#include "base/clock.h"
#include "bench/pin.h"

enum { ACTIVE_CPU = 0, PEER_CPU = 1, WARM_UP = 100, RECEIVES = 64, UNDER_WAY = 16, PORT = 7498 };

static ti_ops_t *tx;
static ti_handle_t ti;
static ti_pd_handle_t pd;
static ti_cq_handle_t send_cq, recv_cq;
static ti_res_pool_handle_t pool;
static ti_data_element_t *idle; /* elements to send */
static uint32_t size, pool_size;
static bool event;
static _Atomic ti_conn_handle_t conn;
static ti_rdma_desc_t memory, remote;

static void need(ti_status_t st, const char *what)
{
	if (!st)
		return;
	printf("%s: %s\n", what, ti_status_2_str(st));
	exit(1);
}

/* ---- connecting ---- */

static ti_data_element_t *get(uint32_t n)
{
	ti_pool_response_t resp;

	need(tx->res_pool_get(pool, n, FALSE, NULL, NULL, NULL, &resp), "elements");
	return resp.p_element_list;
}

static void begin(void)
{
	ti_mem_handle_t mem;
	ti_endpoint_handle_t ep;
	ti_inet_addr_t addr;
	void *at = mmap(NULL, 2 * (size_t)size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	tx = ti_ops_get();
	SET_IPV4_ADDR(addr, htonl(INADDR_LOOPBACK));
	need(tx->create_ti(&ti), "service");
	need(tx->create_endpoint(ti, &addr, 0, &ep), "address");
	need(tx->create_pd(ti, ep, &pd), "domain");
	need(tx->create_cq(ti, pd, 4096, &send_cq), "queue");
	recv_cq = send_cq;
	if (event)
		need(tx->create_cq(ti, pd, 4096, &recv_cq), "queue");
	need(tx->res_pool_create(ti, TI_RES_POOL_MSG, 2 * RECEIVES, 1, &pool_size, 0, &pool),
		"pool");
	if (at == MAP_FAILED)
		need(TI_INSUFFICIENT_MEMORY, "memory");
	memset(at, 1, 2 * (size_t)size);
	need(tx->reg_virt_mem(ti, pd, at, 2 * size, TI_MEM_READ_WRITE, &memory, &mem), "memory");
	idle = get(UNDER_WAY);
}

static void take(ti_cq_handle_t cq, ti_data_element_t *list);

/* A request, or its answer. */
static void meet(ti_conn_request_t *req)
{
	ti_comp_info_t comp = {
		.h_send_cq = send_cq, .h_recv_cq = recv_cq, .pfn_recv_cb = event ? take : NULL};
	ti_data_element_t *list = get(RECEIVES);

	need(req->status, "request");
	if (!req->caller)
		memcpy(&remote, req->private_data, sizeof remote);
	req->private_data = &memory;
	req->private_data_len = sizeof memory;
	for (ti_data_element_t *e = list; e; e = e->p_next_msg)
		e->p_context = &recv_cq; /* it is one to receive */
	need(tx->accept(req, UINT32_MAX, &comp, list), "accept");
	conn = req->conn_handle;
}

static ti_conn_info_t info(ti_port_t port)
{
	ti_conn_info_t i = {.pdh = pd, .conn_request_cb = meet};
	ti_inet_addr_t addr;

	SET_IPV4_ADDR(addr, htonl(INADDR_LOOPBACK));
	need(tx->create_endpoint(ti, &addr, port, &i.src_ep), "address");
	return i;
}

static ti_conn_attr_t attr = {.reliable = TRUE, .msg_flow_control = TRUE, .auto_cq_rearm = TRUE};

/* ---- a turn ---- */

static uint64_t *ns, from;
static size_t wanted, turns;
static bool active;
static atomic_bool ended;

static void send_one(void)
{
	ti_data_element_t *e;

	while (!idle)
		take(send_cq, NULL);
	e = idle;
	idle = e->p_next_msg;
	e->p_next_msg = NULL;
	e->local_data_desc->byte_count = size;
	need(tx->msg_send(conn, e), "send");
}

/* A message came: the other's turn is over. */
static void turn(void)
{
	uint64_t now = active ? clock_ns() : 0;

	if (active && turns >= WARM_UP && turns < wanted + WARM_UP)
		ns[turns - WARM_UP] = now - from;
	turns++;
	if (turns < wanted + WARM_UP) {
		from = now;
		send_one();
		return;
	}
	if (!active)
		send_one(); /* the last answer */
	ended = true;
}

/* Elements that completed; list is NULL: looks for some. */
static void take(ti_cq_handle_t cq, ti_data_element_t *list)
{
	ti_data_element_t *e, *came = NULL;

	if (!list)
		need(tx->poll_cq(cq, &list), "poll");
	while ((e = list) != NULL) {
		list = e->p_next_msg;
		if (e->status == TI_CANCELED && (ended || !active))
			return; /* one side has what it wanted, and ended the other */
		need(e->status, "completion");
		e->p_next_msg = NULL;
		if (e->p_context == &recv_cq) {
			came = e;
		} else {
			e->p_next_msg = idle;
			idle = e;
		}
	}
	if (!came)
		return;
	turn();
	need(tx->msg_recv(conn, came), "receive");
}

static void talk(void)
{
	if (active) {
		from = clock_ns();
		send_one();
	}
	while (!ended)
		if (event)
			usleep(10000);
		else
			take(recv_cq, NULL);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(void)
{
	double sum = 0;

	for (size_t i = 0; i < wanted; i++)
		sum += (double)ns[i];
	qsort(ns, wanted, sizeof *ns, compare);
	printf("%.3f %.3f %.3f\n", sum / (double)wanted / 2e3, (double)ns[wanted / 2] / 2e3,
		(double)ns[wanted * 999 / 1000] / 2e3);
}

/* ---- writes ---- */

static void aim(ti_data_element_t *e)
{
	e->local_data_desc[0] =
		(ti_local_data_desc_t){(void *)(uintptr_t)memory.vaddr, memory.rkey, size};
	e->msg_opt = TI_OPT_SIGNALED;
	need(ti_rdma_set_remote(e, &remote), "address");
}

/* What poll_cq() gives goes back as the list that it is; one: an element at a time. */
static void write_list(ti_data_element_t *list, bool one)
{
	ti_data_element_t *e = list, *next;

	for (; e; e = next) {
		next = e->p_next_msg;
		aim(e);
		if (!one)
			continue;
		e->p_next_msg = NULL;
		need(tx->rdma_write(conn, e), "write");
	}
	if (!one && list)
		need(tx->rdma_write(conn, list), "write");
}

/*
 * From the first half of our memory into the second of the peer's: perftest's lie so, too, and
 * halves of the same name can be at addresses that caches confuse.
 */
static void write_all(bool one)
{
	ti_data_element_t *e, *list;
	size_t done = 0;

	remote.vaddr += size;
	write_list(idle, one);
	from = clock_ns();
	while (done < wanted) {
		need(tx->poll_cq(send_cq, &list), "poll");
		for (e = list; e; e = e->p_next_msg, done++)
			need(e->status, "write");
		write_list(list, one);
	}
	printf("%.3f\n", (double)size * (double)done / (double)(clock_ns() - from));
}

/* ---- elements ---- */

/* Messages in bursts that the peer has receives for; the posts alone are timed. */
static double post_cost(void)
{
	ti_data_element_t *all[UNDER_WAY], *list;
	uint64_t spent = 0;
	size_t sent = 0;

	for (; sent < wanted; sent += UNDER_WAY) {
		for (int i = 0; i < UNDER_WAY; i++) {
			all[i] = idle;
			idle = idle->p_next_msg;
			all[i]->p_next_msg = NULL;
			all[i]->local_data_desc->byte_count = size;
		}
		from = clock_ns();
		for (int i = 0; i < UNDER_WAY; i++)
			need(tx->msg_send(conn, all[i]), "send");
		spent += clock_ns() - from;
		for (int back = 0; back < UNDER_WAY;) {
			need(tx->poll_cq(send_cq, &list), "poll");
			for (ti_data_element_t *e = list, *next; e; e = next, back++) {
				next = e->p_next_msg;
				e->p_next_msg = idle;
				idle = e;
			}
		}
	}
	return (double)spent / (double)sent;
}

static void compare_costs(void)
{
	double pair, post;

	from = clock_ns();
	for (size_t i = 0; i < wanted; i++)
		need(tx->res_pool_put(pool, get(1)), "put");
	pair = (double)(clock_ns() - from) / (double)wanted;
	post = post_cost();
	printf("%.1f %.1f %.3f\n", pair, post, pair / post);
}

/* ---- the two processes ---- */

static bool is(const char *what, const char *name)
{
	return !strcmp(what, name);
}

static bool is_write(const char *what)
{
	return is(what, "write_bw") || is(what, "write1_bw");
}

static void serve(int ready, const char *what)
{
	ti_conn_handle_t listener;
	ti_conn_info_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(PEER_CPU);
	begin();
	i = info(PORT);
	need(tx->listen(ti, &attr, &i, NULL, &listener), "listen");
	if (write(ready, "", 1) != 1)
		exit(1);
	while (!conn)
		usleep(1000);
	if (is(what, "send") || is(what, "event"))
		talk();
	for (;;) {
		ti_data_element_t *list = NULL, *next;

		if (is(what, "pool"))
			need(tx->poll_cq(recv_cq, &list), "poll");
		else
			pause();
		for (; list; list = next) {
			next = list->p_next_msg;
			list->p_next_msg = NULL;
			if (list->status)
				pause();
			need(tx->msg_recv(conn, list), "receive");
		}
	}
}

static void measure(const char *what)
{
	ti_inet_addr_t addr;
	ti_conn_handle_t h;
	ti_conn_info_t i;

	begin();
	i = info(0);
	SET_IPV4_ADDR(addr, htonl(INADDR_LOOPBACK));
	need(tx->create_endpoint(ti, &addr, PORT, &i.dst_ep), "peer");
	need(tx->connect(ti, &attr, &i, NULL, &h), "connect");
	while (!conn)
		usleep(1000);
	if (is_write(what)) {
		write_all(is(what, "write1_bw"));
	} else if (is(what, "pool")) {
		compare_costs();
	} else {
		talk();
		report();
	}
}

int main(int argc, char **argv)
{
	const char *what = argc == 4 ? argv[1] : "";
	int ready[2];
	pid_t child;
	char c;

	size = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	wanted = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	event = is(what, "event");
	pool_size = size;
	ns = calloc(wanted + 1, sizeof *ns);
	if (!size || !wanted || !ns ||
		!(event || is(what, "send") || is_write(what) || is(what, "pool"))) {
		fprintf(stderr, "usage: ti_lat send|event|write_bw|write1_bw|pool SIZE COUNT\n");
		return 2;
	}
	if (pipe(ready))
		return 1;
	child = fork();
	if (!child)
		serve(ready[1], what);
	close(ready[1]);
	if (child < 0 || read(ready[0], &c, 1) != 1)
		return 1;
	pin(ACTIVE_CPU);
	active = true;
	measure(what);
	fflush(stdout);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	_exit(0);
}
