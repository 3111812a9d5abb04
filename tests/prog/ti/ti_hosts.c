// SPDX-License-Identifier: BSD-3-Clause
/*
 * The Transport Interface between two hosts, each with its weftd: a connection, messages both ways,
 * RDMA writes, reads and atomics towards memory there, and the end of one side.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_areas.h"
#include "tests/lib/two_hosts.h"

enum { PORT = 7600, ENTRIES = 1024, MESSAGES = 50 };

static const char near_at[] = "198.51.100.1", far_at[] = "198.51.100.2";

static struct tx_rdma x; /* acq: of sends, pcq: of receives */
static struct tx_end me;

/* ---- both ends ---- */

static void begin(const char *at, ti_port_t port)
{
	tx_begin_at(&x.w, at, port);
	x.acq = tx_cq(&x.w, ENTRIES);
	x.pcq = tx_cq(&x.w, ENTRIES);
	tx_defaults(&me, &x.w, x.acq);
	me.comp.h_recv_cq = x.pcq;
	me.receives = TX_RECEIVES;
	tx_rdma_areas(&x);
}

static ti_conn_info_t info_to(ti_endpoint_handle_t src, ti_endpoint_handle_t dst)
{
	return (ti_conn_info_t){.src_ep = src,
		.dst_ep = dst,
		.pdh = x.w.pd,
		.conn_request_cb = tx_accept,
		.context = &me};
}

static void connected(void)
{
	tx_await(&me.done, 1);
	TX_IS(me.status, TI_SUCCESS);
}

static void say(const void *data, uint32_t len)
{
	ti_data_element_t *m = tx_message(&x.w, data, len);

	TX_IS(tx->msg_send(me.conn, m), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == m);
	tx_put(x.w.pool, m);
}

/* The next message, one alone, as each side waits for an answer: of that length; its receive is
 * posted again. */
static void hear(void *data, uint32_t len)
{
	ti_data_element_t *m = tx_one(x.pcq, TI_SUCCESS);

	CHECK_EQ(m->recv_byte_count, len);
	memcpy(data, m->local_data_desc->vaddr, len);
	TX_IS(tx->msg_recv(me.conn, m), TI_SUCCESS);
}

static void hear_word(char want)
{
	char c = 0;

	hear(&c, 1);
	CHECK_EQ(c, want);
}

/* ---- the far host ---- */

static void listen_there(ti_conn_handle_t *listener)
{
	ti_conn_info_t info = info_to(x.w.ep, NULL);

	TX_IS(tx->listen(x.w.ti, &me.attr, &info, NULL, listener), TI_SUCCESS);
}

static void is_filled(const char *at, unsigned seed)
{
	static char want[TX_AREA];

	tx_fill(want, TX_AREA, seed);
	CHECK(!memcmp(at, want, TX_AREA));
}

static void live_far(int in, int out, void *arg)
{
	ti_conn_handle_t listener;
	uint64_t word;

	(void)arg;
	begin(far_at, PORT);
	listen_there(&listener);
	t_signal(out);
	connected();
	say(&x.remote.desc, sizeof x.remote.desc);
	hear_word('w');
	is_filled(x.remote.at, 1);
	tx_fill(x.remote.at, TX_AREA, 2);
	memset(x.remote.at, 0, 8);
	say("r", 1);
	hear_word('a');
	memcpy(&word, x.remote.at, 8);
	CHECK_EQ(word, 5);
	say("k", 1);
	for (char i = 0; i < MESSAGES; i++) {
		hear_word(i);
		say(&i, 1);
	}
	t_await(in); /* the end takes the other side's receives with it */
	tx_end(&x.w);
	_exit(check_result());
}

/* ---- the near host ---- */

static void connect_there(void)
{
	ti_endpoint_handle_t there = tx_endpoint(x.w.ti, far_at, PORT);
	ti_conn_info_t info = info_to(x.w.any, there);
	ti_conn_handle_t conn;

	TX_IS(tx->connect(x.w.ti, &me.attr, &info, NULL, &conn), TI_SUCCESS);
	connected();
	CHECK(me.conn == conn);
}

static void done(ti_data_element_t *e)
{
	CHECK(tx_one(x.acq, TI_SUCCESS) == e);
	tx_put(x.users, e);
}

static void rdma(void)
{
	ti_rdma_desc_t there;
	ti_data_element_t *e;
	uint64_t before;

	check_case("RDMA");
	hear(&there, sizeof there);
	tx_fill(x.local.at, TX_AREA, 1);
	e = tx_towards_desc(&x, 0, TX_AREA, there);
	TX_IS(tx->rdma_write(me.conn, e), TI_SUCCESS);
	done(e);
	say("w", 1);
	hear_word('r');
	e = tx_towards_desc(
		&x, 8, TX_AREA - 8, (ti_rdma_desc_t){.vaddr = there.vaddr + 8, .rkey = there.rkey});
	TX_IS(tx->rdma_read(me.conn, e), TI_SUCCESS);
	done(e);
	tx_fill(x.remote.at, TX_AREA, 2);
	CHECK(!memcmp(x.local.at + 8, x.remote.at + 8, TX_AREA - 8));
	e = tx_towards_desc(&x, 0, 8, there);
	memcpy(x.local.at, &(uint64_t){5}, 8); /* the operand, where the old value comes */
	TX_IS(tx->atomic_op(me.conn, TI_ATOMIC_FETCH_ADD, e), TI_SUCCESS);
	done(e);
	memcpy(&before, x.local.at, 8);
	CHECK_EQ(before, 0);
	say("a", 1);
	hear_word('k');
}

int main(void)
{
	struct t_child far;

	t_start(60);
	two_hosts(&far, live_far);
	t_await(far.from);
	begin(near_at, PORT);
	connect_there();
	rdma();
	check_case("messages");
	for (char i = 0; i < MESSAGES; i++) {
		say(&i, 1);
		hear_word(i);
	}
	t_signal(far.to);
	T_EQUAL(t_wait(&far), 0); /* its last answer has been acknowledged */
	tx_end(&x.w);
	return check_result();
}
