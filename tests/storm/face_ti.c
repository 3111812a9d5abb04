// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"
#include "tests/storm/face_victim.h"

enum { AREA = 8192, RECEIVES = 32 };

/* What an element has to say, in order. */
struct due {
	uint32_t len, imm;
	bool has_imm;
	uint8_t bytes[TX_SIZE];
};

static struct tx_world w;
static struct tx_end p;
static ti_cq_handle_t cq;
static ti_conn_handle_t listener;
static ti_rdma_desc_t there;
static uint8_t area[AREA];
static struct due due[RECEIVES];
static unsigned n_due, n_came;

static uint16_t start(void)
{
	ti_conn_info_t down = {.conn_request_cb = tx_accept, .context = &p};
	ti_mem_handle_t mem;

	tx_begin(&w);
	cq = tx_cq(&w, 1024);
	TX_IS(tx->reg_virt_mem(w.ti, w.pd, area, sizeof area, TI_MEM_READ_WRITE, &there, &mem),
		TI_SUCCESS);
	down.src_ep = w.ep;
	down.pdh = w.pd;
	tx_defaults(&p, &w, cq);
	p.receives = RECEIVES;
	TX_IS(tx->listen(w.ti, &p.attr, &down, NULL, &listener), TI_SUCCESS);
	return w.port;
}

static uint8_t hello(const struct raw_end *r, uint8_t priv[RAW_PRIV])
{
	(void)r;
	memset(priv, 1, RAW_PRIV);
	return RAW_PRIV;
}

static bool accept_it(void)
{
	if (!tx_now(&p.done))
		return false;
	p.done.n = 0;
	TX_IS(p.status, TI_SUCCESS);
	return true;
}

static void meet(struct raw_end *r)
{
	(void)r;
	n_due = n_came = 0;
}

static void message(struct raw_end *r, struct face_request *q)
{
	*q = (struct face_request){.wr.opcode = IBV_WR_SEND, .len = face_draw(TX_SIZE + 1)};
	if (face_draw(2))
		q->wr.opcode = IBV_WR_SEND_WITH_IMM;
	q->wr.imm_data = face_draw(UINT32_MAX);
	for (uint32_t i = 0; i < q->len; i += 7)
		r->buf[i] = face_draw(256);
}

static void aim(struct face_request *q)
{
	q->wr.wr.rdma.remote_addr = there.vaddr + face_draw(64);
	q->wr.wr.rdma.rkey = there.rkey;
}

/* Whatever comes is for the program, or refused by the queue pair. */
static bool done(const struct raw_end *r, const struct face_request *q)
{
	bool sent = q->wr.opcode == IBV_WR_SEND || q->wr.opcode == IBV_WR_SEND_WITH_IMM;
	struct due *d = &due[n_due % RECEIVES];

	if (!sent && q->wr.opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
		return true;
	n_due++;
	*d = (struct due){.len = sent ? q->len : 0,
		.has_imm = q->wr.opcode != IBV_WR_SEND,
		.imm = q->wr.imm_data};
	if (d->len)
		memcpy(d->bytes, r->buf, d->len);
	return true;
}

static void check(const ti_data_element_t *e)
{
	const struct due *d = &due[n_came % RECEIVES];

	if (e->status) {
		CHECK_EQ(e->recv_byte_count, 0);
		return;
	}
	if (!CHECK(n_came++ < n_due))
		return;
	CHECK_EQ(e->recv_byte_count, d->len);
	CHECK(!memcmp(e->local_data_desc->vaddr, d->bytes, d->len));
	CHECK_EQ(e->oob_data_len, d->has_imm ? 4 : 0);
	if (d->has_imm)
		CHECK_EQ(e->oob_data, d->imm);
}

static void look(void)
{
	ti_data_element_t *list;

	TX_IS(tx->poll_cq(cq, &list), TI_SUCCESS);
	for (const ti_data_element_t *e = list; e; e = e->p_next_msg)
		check(e);
	if (list)
		tx_put(w.pool, list);
}

static bool over(void)
{
	return true;
}

static void close_it(void)
{
	tx_close(p.conn);
	look();
}

static void end(void)
{
	tx_end(&w);
}

const struct face_victim face_ti = {
	.name = "TI",
	.listen = start,
	.hello = hello,
	.accept = accept_it,
	.meet = meet,
	.message = message,
	.aim = aim,
	.done = done,
	.look = look,
	.over = over,
	.close = close_it,
	.end = end,
};
