/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of libweftti for test programs, over the operations vector alone. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <weft/ti.h>

enum { TX_WAIT_MS = 20000, TX_SIZE = 4096, TX_POOL = 64 };

/* Checks a status; prints it in words. */
#define TX_IS(call, want) tx_is((call), (want), __FILE__, __LINE__, #call)
bool tx_is(ti_status_t got, ti_status_t want, const char *file, int line, const char *what);

extern ti_ops_t *tx; /* the vector */

/* A service with what connections need.  What cannot be made ends the program. */
struct tx_world {
	ti_handle_t ti;
	ti_endpoint_handle_t ep, any; /* 127.0.0.1 with the port below; without a port */
	ti_pd_handle_t pd;
	ti_res_pool_handle_t pool; /* TX_POOL messages of TX_SIZE bytes */
	ti_port_t port;            /* one that nobody else uses */
};
void tx_begin(struct tx_world *w);
/* The same at another address of this host, with that port. */
void tx_begin_at(struct tx_world *w, const char *ipv4, ti_port_t port);
/* destroy_ti(), and waits for its callback. */
void tx_end(struct tx_world *w);

ti_endpoint_handle_t tx_endpoint(ti_handle_t ti, const char *ipv4, ti_port_t port);
ti_cq_handle_t tx_cq(const struct tx_world *w, uint32_t entries);

/* ---- waiting ---- */

/* What callbacks count, and others wait for. */
struct tx_count {
	pthread_mutex_t lock;
	pthread_cond_t more;
	unsigned n;
};
#define TX_COUNT                                                                                   \
	{                                                                                          \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0                             \
	}
void tx_add(struct tx_count *c, unsigned n);
/* Waits until there are so many; ends the program if there are not. */
void tx_await(struct tx_count *c, unsigned n);
unsigned tx_now(struct tx_count *c);
/* A ti_context_cb_t: adds one to the struct tx_count. */
void tx_told(void *count);

/*
 * Holds the library's system thread in a callback of w's service, until tx_let_go(): all that it
 * does, for any service, waits.
 */
void tx_hold(const struct tx_world *w);
void tx_let_go(void);

/* ---- connections ---- */

/* How an end connects: zeros are sensible. */
struct tx_end {
	struct tx_world *w;
	ti_conn_attr_t attr;
	ti_comp_info_t comp; /* h_recv_cq NULL: h_send_cq */
	uint32_t receives;   /* elements of the pool posted by accept() */
	uint32_t max_rdma;
	ti_conn_req_cb_t asked; /* NULL: tx_accept(); it has to call that */
	/* results */
	ti_conn_handle_t conn;
	ti_status_t status; /* of accept(), or of the request */
	struct tx_count done;
};

/* reliable, with flow control, rearmed by the library; both CQs cq, no callbacks, RDMA of any size.
 */
void tx_defaults(struct tx_end *e, struct tx_world *w, ti_cq_handle_t cq);

/* Connects active to passive within this process; ends the program if that fails. */
void tx_connect(struct tx_end *active, struct tx_end *passive);
/* A ti_conn_req_cb_t whose context is a struct tx_end: accepts. */
void tx_accept(ti_conn_request_t *req);
void tx_disconnect(struct tx_end *e);
/* Ends any connection or listener, and waits until it has ended. */
void tx_close(ti_conn_handle_t h);

/* A ti_conn_req_cb_t whose context is a struct tx_kept: keeps the request, and counts. */
struct tx_kept {
	struct tx_count n;
	ti_conn_request_t req;
};
void tx_keep(ti_conn_request_t *req);

/* ---- elements ---- */

/* n of the pool in a list, each of that size. */
ti_data_element_t *tx_get(ti_res_pool_handle_t pool, uint32_t n);
ti_data_element_t *tx_message(const struct tx_world *w, const void *data, uint32_t len);

/* Polls until n elements came; a list of them, in order. */
ti_data_element_t *tx_poll(ti_cq_handle_t cq, unsigned n);
/* One that must have that status and come alone. */
ti_data_element_t *tx_one(ti_cq_handle_t cq, ti_status_t status);
/* Back into the pool; checks.  How many they were. */
unsigned tx_put(ti_res_pool_handle_t pool, ti_data_element_t *list);
