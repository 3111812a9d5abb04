// SPDX-License-Identifier: BSD-3-Clause
/*
 * The smallest program that does something: one process listens and prints, the other one sends.
 *
 * echo ADDRESS PORT               waits for a text
 * echo ADDRESS PORT TEXT [FROM]   sends it there from an address of this host: FROM, or the same
 */
#include <arpa/inet.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/ti.h>

enum { RECEIVES = 4, SIZE = 4096 };

static ti_ops_t *ops;
static ti_handle_t ti;
static ti_endpoint_handle_t here, there;
static ti_pd_handle_t pd;
static ti_cq_handle_t cq;
static ti_res_pool_handle_t pool;
static ti_conn_handle_t conn;
static sem_t done; /* what callbacks tell main() */

static void must(ti_status_t status)
{
	if (status) {
		fprintf(stderr, "%s\n", ops->ti_status_2_str(status));
		_Exit(1);
	}
}

static ti_data_element_t *get(uint32_t n)
{
	ti_pool_response_t response;

	must(ops->res_pool_get(pool, n, FALSE, NULL, NULL, NULL, &response));
	return response.p_element_list;
}

/* ---- callbacks ---- */

static void sent(ti_cq_handle_t queue, ti_data_element_t *list)
{
	(void)queue;
	must(list->status);
	must(ops->res_pool_put(pool, list));
	sem_post(&done);
}

/*
 * Receives that nothing came for come with TI_CANCELED when the connection ends.  The pool's handle
 * is stale then, if it is destroy_ti() that ends it.
 */
static void received(ti_cq_handle_t queue, ti_data_element_t *list)
{
	(void)queue;
	for (ti_data_element_t *e = list; e; e = e->p_next_msg)
		if (e->status == TI_SUCCESS) {
			printf("%.*s\n", (int)e->recv_byte_count,
				(char *)e->local_data_desc->vaddr);
			sem_post(&done);
		}
	(void)ops->res_pool_put(pool, list);
}

/* Of the listener, whom somebody asks, and of the one that connects, who is answered. */
static void requested(ti_conn_request_t *request)
{
	ti_comp_info_t comp = {
		.h_send_cq = cq, .h_recv_cq = cq, .pfn_send_cb = sent, .pfn_recv_cb = received};

	must(request->status);
	must(ops->accept(request, 0, &comp, get(RECEIVES)));
	conn = request->conn_handle;
	sem_post(&done);
}

static void ended(void *unused)
{
	(void)unused;
	sem_post(&done);
}

/* ---- ---- */

static void make(const char *address, ti_port_t port, const char *from)
{
	ti_inet_addr_t addr;
	uint32_t size = SIZE;

	must(ops->create_ti(&ti));
	SET_IPV4_ADDR(addr, inet_addr(from));
	must(ops->create_endpoint(ti, &addr, 0, &here));
	SET_IPV4_ADDR(addr, inet_addr(address));
	must(ops->create_endpoint(ti, &addr, port, &there));
	must(ops->create_pd(ti, here, &pd));
	must(ops->create_cq(ti, pd, 64, &cq));
	must(ops->res_pool_create(ti, TI_RES_POOL_MSG, 16, 1, &size, 0, &pool));
}

static void begin(bool sends)
{
	ti_conn_attr_t attr = {.reliable = TRUE, .msg_flow_control = TRUE, .auto_cq_rearm = TRUE};
	ti_conn_info_t info = {.src_ep = sends ? here : there,
		.dst_ep = sends ? there : NULL,
		.pdh = pd,
		.conn_request_cb = requested};
	ti_conn_handle_t handle;

	if (sends)
		must(ops->connect(ti, &attr, &info, NULL, &handle));
	else
		must(ops->listen(ti, &attr, &info, NULL, &handle));
}

static void send_text(const char *text)
{
	ti_data_element_t *e = get(1);
	size_t len = strnlen(text, SIZE);

	memcpy(e->local_data_desc->vaddr, text, len);
	e->local_data_desc->byte_count = len;
	e->msg_opt = TI_OPT_SIGNALED;
	must(ops->msg_send(conn, e));
}

int main(int argc, char **argv)
{
	bool sends = argc >= 4;

	if (argc < 3 || argc > 5)
		return 2;
	ops = ti_ops_get();
	sem_init(&done, 0, 0);
	make(argv[1], atoi(argv[2]), argc == 5 ? argv[4] : argv[1]);
	begin(sends);
	sem_wait(&done); /* connected */
	if (sends)
		send_text(argv[3]);
	sem_wait(&done); /* sent, or received */
	must(ops->destroy_ti(ti, ended, NULL));
	sem_wait(&done);
	return 0;
}
