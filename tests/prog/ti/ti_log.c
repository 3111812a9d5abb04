// SPDX-License-Identifier: BSD-3-Clause
/* debug_svc(): what each level lets the library say of the same things. */
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

/* ---- the log ---- */

enum class { FATAL, ERROR, WARN, INFO, DEBUG, CLASSES };

static char path[256];
static char log_text[1 << 20];

static void open_log(void)
{
	const char *dir = getenv("WEFT_RUNTIME_DIR");
	char spec[300];

	snprintf(path, sizeof path, "%s/ti_log", dir ? dir : "/tmp");
	snprintf(spec, sizeof spec, "debug:%s", path);
	setenv("WEFT_LOG", spec, 1);
}

static void forget_log(void)
{
	if (truncate(path, 0))
		die("truncate %s", path);
}

static void read_log(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0, got;

	while ((got = read(fd, log_text + n, sizeof log_text - 1 - n)) > 0)
		n += got;
	log_text[n] = '\0';
	close(fd);
}

/* Has the library said something of that class? */
static bool said_any(enum class c)
{
	static const char *const names[] = {"fatal", "error", "warn", "info", "debug"};
	char mark[32];

	snprintf(mark, sizeof mark, "]: %s: ti: ", names[c]);
	return strstr(log_text, mark);
}

/* ---- an adapter whose completions cannot be read, once ---- */

static int (*real_poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
static atomic_bool poll_fails;

static int poll_cq(struct ibv_cq *q, int n, struct ibv_wc *wc)
{
	return atomic_exchange(&poll_fails, false) ? -1 : real_poll_cq(q, n, wc);
}

/* Before anybody uses it. */
static struct ibv_context **take_adapter(void)
{
	struct ibv_context **devices = rdma_get_devices(NULL);

	if (!devices || !devices[0])
		die("no device");
	real_poll_cq = devices[0]->ops.poll_cq;
	devices[0]->ops.poll_cq = poll_cq;
	return devices;
}

/* ---- something of each class ---- */

static struct tx_world w;
static struct tx_count broken, came;

static void broke(ti_err_rec_t *rec)
{
	CHECK(rec->code != TI_SUCCESS);
	tx_add(&broken, 1);
}

static void back(ti_cq_handle_t h, ti_data_element_t *list)
{
	unsigned n = 0;

	(void)h;
	for (ti_data_element_t *e = list; e; e = e->p_next_msg)
		n++;
	tx_put(w.pool, list);
	tx_add(&came, n);
}

static void connect_ends(struct tx_end *a, struct tx_end *p, ti_cq_handle_t cq)
{
	broken = came = (struct tx_count)TX_COUNT;
	tx_defaults(a, &w, cq);
	a->attr.msg_flow_control = FALSE;
	a->comp.pfn_send_cb = a->comp.pfn_recv_cb = back;
	a->comp.pfn_err_cb = broke;
	*p = *a;
	tx_connect(a, p);
}

/* A message that finds no receive. */
static void an_error(ti_cq_handle_t cq)
{
	struct tx_end a, p;

	connect_ends(&a, &p, cq);
	TX_IS(tx->msg_send(a.conn, tx_message(&w, "x", 1)), TI_SUCCESS);
	tx_await(&came, 1);
	tx_await(&broken, 1);
	tx_disconnect(&a);
	tx_await(&broken, 2); /* the other side hears of it */
	tx_disconnect(&p);
}

static void a_fatal_one(ti_cq_handle_t cq)
{
	ti_data_element_t *list;
	struct tx_end a, p;

	connect_ends(&a, &p, cq);
	poll_fails = true; /* the next one that polls breaks the connection that it looks at */
	TX_IS(tx->poll_cq(cq, &list), TI_SUCCESS);
	tx_await(&broken, 1);
	tx_disconnect(&a);
	tx_disconnect(&p);
}

static void a_warning(void)
{
	ti_data_element_t *e = tx_get(w.pool, 1);

	TX_IS(tx->res_pool_destroy(w.pool), TI_RESOURCE_BUSY);
	tx_put(w.pool, e);
}

static void memory(void)
{
	static char bytes[100];
	ti_mem_handle_t mem;
	ti_rdma_desc_t d;

	TX_IS(tx->reg_virt_mem(w.ti, w.pd, bytes, sizeof bytes, TI_MEM_READ, &d, &mem), TI_SUCCESS);
	TX_IS(tx->dereg_mem(mem), TI_SUCCESS);
}

/* A service with all that; when it has ended, all has been said. */
static void live(void)
{
	ti_cq_handle_t cq;

	forget_log();
	tx_begin(&w);
	cq = tx_cq(&w, 64);
	memory();
	a_warning();
	an_error(cq);
	a_fatal_one(cq);
	tx_end(&w);
	read_log();
}

/* ---- the levels ---- */

static void says(ti_handle_t ti, ti_debug_level_t level, enum class least)
{
	check_case("level %d", (int)level);
	TX_IS(tx->debug_svc(ti, level), TI_SUCCESS);
	live();
	for (enum class c = FATAL; c < CLASSES; c++) {
		check_case("level %d, class %d", (int)level, (int)c);
		CHECK_EQ(said_any(c), c <= least);
	}
}

static void words(const char *const *all)
{
	for (; *all; all++) {
		check_case("the words \"%s\"", *all);
		CHECK(strstr(log_text, *all));
	}
}

/* What happens, at TI_DBG_VERBOSE. */
static const char *const happens[] = {
	"fatal: ti: connection ",
	"is broken: CQ Error",
	"error: ti: connection ",
	"is broken: Timeout",
	"warn: ti: pool ",
	"info: ti: service ",
	": connects\n",
	": listens\n",
	": a request, connection ",
	"is established\n",
	"is broken: the peer ended it\n",
	"info: ti: connection ",
	" has ended\n",
	NULL,
};

/* Operations, at TI_DBG_DEBUG. */
static const char *const operations[] = {
	"debug: ti: create_ti((nil)) begins\n",
	"debug: ti: create_ti((nil)) returns: Success\n",
	"ti: connect(0x",
	"ti: listen(0x",
	"ti: accept(0x",
	"ti: disconnect(0x",
	"ti: msg_send(0x",
	"ti: poll_cq(0x",
	"ti: res_pool_get(0x",
	"ti: reg_virt_mem(0x",
	"debug: ti: memory 0x",
	": 100 bytes at 0x",
	") begins\n",
	") returns: Resource Busy\n",
	NULL,
};

/* By WEFT_LOG alone: there is no service yet. */
static const char *const before_all[] = {
	"debug: ti: events_register(0x",
	") returns: Success\n",
	NULL,
};

static void heard(const ti_event_t event, const void *context, const void *data)
{
	(void)event;
	(void)context;
	(void)data;
}

static void first_of_all(void)
{
	check_case("before a service");
	TX_IS(tx->events_register(&w, heard), TI_SUCCESS);
	read_log();
	words(before_all);
	TX_IS(tx->events_deregister(&w, heard), TI_SUCCESS);
}

int main(void)
{
	struct ibv_context **devices;
	ti_handle_t first; /* not the one that is told of */

	open_log();
	devices = take_adapter();
	tx = ti_ops_get();
	first_of_all();
	TX_IS(tx->create_ti(&first), TI_SUCCESS);
	says(first, TI_DBG_OFF, FATAL);
	says(first, TI_DBG_STD, ERROR);
	says(first, TI_DBG_VERBOSE, INFO);
	words(happens);
	says(first, TI_DBG_DEBUG, DEBUG);
	words(happens);
	words(operations);
	says(first, TI_DBG_OFF, FATAL); /* and back */
	TX_IS(tx->destroy_ti(first, NULL, NULL), TI_SUCCESS);
	rdma_free_devices(devices);
	return check_result();
}
