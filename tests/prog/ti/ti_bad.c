// SPDX-License-Identifier: BSD-3-Clause
/* Bad parameters and elements: a status each, and nothing is done. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

static struct tx_world w;
static ti_cq_handle_t cq;
static struct tx_end a, p;
static ti_conn_attr_t attr = {.reliable = TRUE};
static ti_conn_info_t info;
static ti_conn_request_t req;
static ti_comp_info_t comp;
static char memory[4096];

static void no_request(ti_conn_request_t *r)
{
	(void)r;
	die("a request came");
}

/* ---- parameters ---- */

static void parameters(void)
{
	static char data[400];
	ti_conn_info_t i = info;
	ti_conn_attr_t at = attr;
	ti_conn_handle_t h;
	ti_cq_handle_t q = (void *)1;

	check_case("parameters");
	TX_IS(tx->create_ti(NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->create_cq(w.ti, w.pd, 0, &q), TI_INVALID_PARAMETER);
	TX_IS(tx->create_cq(w.ti, w.pd, 65537, &q), TI_INVALID_PARAMETER);
	CHECK(!q);
	TX_IS(tx->create_cq(w.ti, w.pd, 65536, &q), TI_SUCCESS);
	TX_IS(tx->destroy_cq(q), TI_SUCCESS);
	TX_IS(tx->poll_cq(cq, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->debug_svc(w.ti, (ti_debug_level_t)4), TI_INVALID_PARAMETER);
	for (ti_debug_level_t l = TI_DBG_STD; l >= TI_DBG_OFF && l <= TI_DBG_STD; l--)
		TX_IS(tx->debug_svc(w.ti, l), TI_SUCCESS);
	i.private_data = data;
	i.private_data_len = 57;
	TX_IS(tx->connect(w.ti, &at, &i, NULL, &h), TI_INVALID_PARAMETER);
	i.private_data = NULL;
	i.private_data_len = 8;
	TX_IS(tx->connect(w.ti, &at, &i, NULL, &h), TI_INVALID_PARAMETER);
	i = info;
	i.conn_request_cb = NULL;
	TX_IS(tx->connect(w.ti, &at, &i, NULL, &h), TI_INVALID_PARAMETER);
	TX_IS(tx->connect(w.ti, NULL, &info, NULL, &h), TI_INVALID_PARAMETER);
	TX_IS(tx->connect(w.ti, &at, NULL, NULL, &h), TI_INVALID_PARAMETER);
	TX_IS(tx->connect(w.ti, &at, &info, NULL, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->listen(w.ti, &at, &info, NULL, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->accept(NULL, 0, &comp, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->accept(&req, 0, NULL, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->reject(NULL), TI_INVALID_PARAMETER);
	at.reliable = FALSE;
	at.msg_flow_control = TRUE;
	TX_IS(tx->listen(w.ti, &at, &info, NULL, &h), TI_INVALID_PARAMETER);
	TX_IS(tx->connect(w.ti, &at, &info, NULL, &h), TI_INVALID_PARAMETER);
	at = attr;
	at.max_recv_depth = UINT32_MAX;
	TX_IS(tx->listen(w.ti, &at, &info, NULL, &h), TI_INVALID_PARAMETER);
	CHECK(!h);
}

/* ---- what connect() and listen() find when they begin ---- */

/* Neither is scheduled: no_request() is not called, and destroy_ti()'s callback would come after
 * it.
 */
static void taken(void)
{
	ti_conn_info_t i = info;
	ti_conn_handle_t first, h = (void *)1;

	check_case("an address that is taken");
	i.src_ep = w.ep;
	TX_IS(tx->listen(w.ti, &attr, &i, NULL, &first), TI_SUCCESS);
	TX_IS(tx->listen(w.ti, &attr, &i, NULL, &h), TI_RESOURCE_BUSY);
	CHECK(!h);
	h = (void *)1;
	TX_IS(tx->connect(w.ti, &attr, &i, NULL, &h), TI_RESOURCE_BUSY);
	CHECK(!h);
	TX_IS(tx->disconnect(first, NULL, NULL), TI_SUCCESS);
}

/* ---- io_ctl() ---- */

static void controls(void)
{
	static const int switches[] = {TI_SET_ADDR_ORDER, TI_SET_BLOCKING_GET, TI_SET_PENDING};
	ti_conn_profile_t prof = {.conn = a.conn, .state = 77};
	uint32_t bytes = sizeof prof, value = 2;

	check_case("io_ctl()");
	TX_IS(tx->io_ctl(w.ti, TI_GET_CONN_PROFILE, NULL, &prof), TI_INVALID_SETTING);
	TX_IS(tx->io_ctl(w.ti, TI_GET_CONN_PROFILE, &bytes, NULL), TI_INVALID_SETTING);
	bytes = sizeof prof - 1;
	TX_IS(tx->io_ctl(w.ti, TI_GET_CONN_PROFILE, &bytes, &prof), TI_INVALID_SETTING);
	CHECK_EQ(bytes, sizeof prof); /* what is needed */
	CHECK_EQ(prof.state, 77);
	bytes = sizeof prof + 1;
	TX_IS(tx->io_ctl(w.ti, TI_GET_CONN_PROFILE, &bytes, &prof), TI_SUCCESS);
	CHECK_EQ(bytes, sizeof prof);
	CHECK_EQ(prof.state, TI_CONN_ESTABLISHED);
	for (int s = 0; s < 3; s++) {
		bytes = sizeof value - 1;
		TX_IS(tx->io_ctl(w.ti, switches[s], &bytes, &value), TI_INVALID_SETTING);
		CHECK_EQ(bytes, sizeof value);
		TX_IS(tx->io_ctl(w.ti, switches[s], &bytes, &value), TI_INVALID_SETTING);
	}
	TX_IS(tx->io_ctl(w.ti, (ti_ioctl_t)99, &bytes, &value), TI_UNSUPPORTED);
}

/* ---- elements ---- */

/* All but the last are fine: none is posted. */
static void refused(ti_data_element_t *bad, ti_status_t want)
{
	ti_data_element_t *list = tx_message(&w, "1", 1);

	list->p_next_msg = tx_message(&w, "2", 1);
	list->p_next_msg->p_next_msg = bad;
	TX_IS(tx->msg_send(a.conn, list), want);
	TX_IS(tx->msg_recv(a.conn, list), want);
	list->p_next_msg->p_next_msg = NULL;
	tx_put(w.pool, list); /* they are the program's */
}

static void elements(void)
{
	struct _ti_data_element forged = {.pool_type = TI_RES_POOL_MSG};
	ti_local_data_desc_t many[40] = {0};
	ti_data_element_t *m = tx_message(&w, "x", 1), *r;
	ti_local_data_desc_t *own = m->local_data_desc;
	ti_res_pool_handle_t rdma;
	uint32_t size = 0;

	check_case("elements");
	TX_IS(tx->msg_send(a.conn, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->msg_recv(a.conn, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->rdma_write(a.conn, NULL), TI_INVALID_PARAMETER);
	refused(&forged, TI_INVALID_PARAMETER);
	forged.otd = memory;
	refused(&forged, TI_INVALID_PARAMETER);
	m->oob_data_len = 5;
	refused(m, TI_INVALID_PARAMETER);
	m->oob_data_len = 0;
	m->num_io_bufs = 40;
	m->local_data_desc = many;
	refused(m, TI_INVALID_PARAMETER);
	m->num_io_bufs = 2; /* the pool's elements have one */
	m->local_data_desc = own;
	refused(m, TI_INVALID_PARAMETER);
	m->num_io_bufs = 1;
	m->local_data_desc = NULL;
	refused(m, TI_INVALID_PARAMETER);
	m->local_data_desc = own;
	own->byte_count = UINT64_MAX;
	refused(m, TI_INVALID_PARAMETER);
	own->byte_count = 1;
	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_RDMA, 1, 1, &size, 0, &rdma), TI_SUCCESS);
	r = tx_get(rdma, 1);
	refused(r, TI_INVALID_PARAMETER);                       /* no message */
	TX_IS(tx->rdma_write(a.conn, r), TI_INVALID_PARAMETER); /* no buffers */
	TX_IS(tx->rdma_write(a.conn, m), TI_INVALID_PARAMETER); /* no address */
	TX_IS(tx->rdma_write_send(a.conn, m, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->atomic_op(a.conn, (ti_atomic_op_t)2, m), TI_INVALID_PARAMETER);
	tx_put(rdma, r);
	TX_IS(tx->res_pool_destroy(rdma), TI_SUCCESS);
	m->p_next_msg = m; /* the same one twice */
	CHECK(tx->msg_send(a.conn, m) != TI_SUCCESS);
	m->p_next_msg = NULL;
	tx_put(w.pool, m);
}

/* ---- receives of an accept() that fails ---- */

static unsigned came_back;

static void back(ti_cq_handle_t h, ti_data_element_t *list)
{
	CHECK(h == cq);
	for (; list; list = list->p_next_msg, came_back++)
		TX_IS(list->status, TI_INVALID_HANDLE);
}

/* With a request that is stale: returns what comp says they are given back by. */
static ti_status_t accept_stale(
	ti_cq_handle_t queue, ti_xfer_cb_t callback, ti_data_element_t *list)
{
	ti_conn_request_t stale = {.conn_handle = (void *)0x1234};
	ti_comp_info_t c = {.h_send_cq = queue, .h_recv_cq = queue, .pfn_recv_cb = callback};

	return tx->accept(&stale, 0, &c, list);
}

static void check_empty(ti_cq_handle_t queue)
{
	ti_data_element_t *list = (void *)1;

	TX_IS(tx->poll_cq(queue, &list), TI_SUCCESS);
	CHECK(!list);
}

static void given_back(void)
{
	ti_data_element_t *list = tx_get(w.pool, 2);

	check_case("receives given back");
	came_back = 0;
	TX_IS(accept_stale(cq, back, list), TI_INVALID_HANDLE);
	CHECK_EQ(came_back, 2);
	check_empty(cq);
	TX_IS(accept_stale(cq, NULL, list), TI_INVALID_HANDLE);
	TX_IS(tx->res_pool_put(w.pool, list), TI_INVALID_PARAMETER); /* until they are polled for */
	CHECK(tx_poll(cq, 2) == list);
	TX_IS(list->status, TI_INVALID_HANDLE);
	TX_IS(accept_stale(NULL, back, list), TI_INVALID_HANDLE); /* whose are they? */
	CHECK_EQ(came_back, 2);
	tx_put(w.pool, list);
}

static void of_another_service(void)
{
	struct tx_world other;
	ti_cq_handle_t its;
	ti_data_element_t *list;

	check_case("receives of another service");
	tx_begin(&other);
	its = tx_cq(&other, 8);
	list = tx_get(other.pool, 3);
	came_back = 0;
	TX_IS(accept_stale(cq, NULL, list), TI_INVALID_PARAMETER);
	TX_IS(accept_stale(cq, back, list), TI_INVALID_PARAMETER);
	TX_IS(list->status, TI_NO_STATUS);
	check_empty(cq);
	tx_put(other.pool, list);
	list = tx_get(other.pool, 3);
	tx_end(&other);
	TX_IS(accept_stale(cq, back, list), TI_INVALID_PARAMETER); /* nothing is there any more */
	TX_IS(accept_stale(its, back, list), TI_INVALID_HANDLE);
	TX_IS(accept_stale(NULL, back, list), TI_INVALID_HANDLE);
	CHECK_EQ(came_back, 0);
	check_empty(cq);
}

/* One that is posted, forged or in the list twice: none comes back, and none is changed. */
static void not_the_programs(void)
{
	struct _ti_data_element forged = {.pool_type = TI_RES_POOL_MSG, .status = TI_NO_STATUS};
	ti_data_element_t *list = tx_get(w.pool, 3), *posted = tx_get(w.pool, 1);
	ti_data_element_t *last = list->p_next_msg->p_next_msg;

	check_case("receives that are not the program's");
	came_back = 0;
	TX_IS(tx->msg_recv(p.conn, posted), TI_SUCCESS);
	last->p_next_msg = posted;
	TX_IS(accept_stale(cq, back, list), TI_INVALID_PARAMETER);
	TX_IS(accept_stale(cq, NULL, list), TI_INVALID_PARAMETER);
	TX_IS(accept_stale(cq, back, posted), TI_INVALID_PARAMETER);
	TX_IS(posted->status, TI_NO_STATUS);
	forged.otd = &forged;
	last->p_next_msg = &forged;
	TX_IS(accept_stale(cq, back, list), TI_INVALID_PARAMETER);
	TX_IS(forged.status, TI_NO_STATUS);
	last->p_next_msg = list;
	TX_IS(accept_stale(cq, back, list), TI_INVALID_PARAMETER);
	TX_IS(accept_stale(cq, NULL, list), TI_INVALID_PARAMETER);
	TX_IS(list->status, TI_NO_STATUS);
	CHECK_EQ(came_back, 0);
	check_empty(cq);
	last->p_next_msg = NULL;
	tx_put(w.pool, list);
	list = tx_message(&w, "x", 1);
	TX_IS(tx->msg_send(a.conn, list), TI_SUCCESS);
	tx_put(w.pool, tx_poll(cq, 2));
}

int main(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 1024);
	tx_defaults(&a, &w, cq);
	tx_defaults(&p, &w, cq);
	tx_connect(&a, &p);
	info = (ti_conn_info_t){
		.src_ep = w.any, .dst_ep = w.ep, .pdh = w.pd, .conn_request_cb = no_request};
	comp = a.comp;
	req.conn_handle = a.conn;
	parameters();
	taken();
	controls();
	elements();
	given_back();
	of_another_service();
	not_the_programs();
	check_case("the end");
	tx_disconnect(&a); /* all is as it was */
	tx_disconnect(&p);
	tx_end(&w);
	return check_result();
}
