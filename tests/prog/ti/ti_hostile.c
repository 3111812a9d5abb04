// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer that connects to libweftti by plain rdma_cm and sends what no element has room for: no
 * element ever says that more has come into its buffers than there is.
 */
#include <arpa/inet.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/raw_end.h"
#include "tests/lib/ti_ends.h"

enum { AREA = 64 << 10, RECEIVES = 8 };

static struct tx_world w;
static struct tx_end p;
static struct raw_end r;
static ti_cq_handle_t cq;
static ti_rdma_desc_t there; /* memory of TI's end that the peer may write */
static struct tx_count broken;

static void broke(ti_err_rec_t *rec)
{
	(void)rec;
	tx_add(&broken, 1);
}

/* Connects to a listener of TI's. */
static void meet(void)
{
	ti_conn_info_t down = {
		.src_ep = w.ep, .pdh = w.pd, .conn_request_cb = tx_accept, .context = &p};
	ti_conn_handle_t listener;

	tx_defaults(&p, &w, cq);
	p.receives = RECEIVES;
	p.comp.pfn_err_cb = broke;
	broken.n = 0;
	TX_IS(tx->listen(w.ti, &p.attr, &down, NULL, &listener), TI_SUCCESS);
	raw_begin(&r, w.port);
	raw_dial(&r, "raw", 3);
	CHECK_EQ(raw_answer(&r, TX_WAIT_MS), 1);
	tx_await(&p.done, 1);
	TX_IS(p.status, TI_SUCCESS);
	tx_close(listener);
}

/* The elements that are left come back, and count for nothing. */
static void part(void)
{
	ti_data_element_t *left;

	raw_end(&r);
	tx_close(p.conn);
	TX_IS(tx->poll_cq(cq, &left), TI_SUCCESS);
	for (const ti_data_element_t *e = left; e; e = e->p_next_msg)
		CHECK_EQ(e->recv_byte_count, 0);
	if (left)
		tx_put(w.pool, left);
}

static enum ibv_wc_status request(enum ibv_wr_opcode opcode, uint32_t len, uint32_t imm)
{
	struct ibv_send_wr wr = {.opcode = opcode, .imm_data = htonl(imm)};

	wr.wr.rdma.remote_addr = there.vaddr;
	wr.wr.rdma.rkey = there.rkey;
	return raw_do(&r, &wr, 0, len);
}

/* What came with the next element; it goes back into the pool. */
static ti_data_element_t next(ti_status_t status)
{
	ti_data_element_t *e = tx_one(cq, status), was = *e;

	tx_put(w.pool, e);
	return was;
}

/* Of messages the length is the element's; of a write with immediate data nothing is in it. */
static void lengths(void)
{
	static const uint32_t len[] = {0, 1, TX_SIZE, TX_SIZE + 1, AREA};
	ti_data_element_t e, *all;

	for (unsigned i = 0; i < sizeof len / sizeof *len; i++) {
		check_case("%u bytes", len[i]);
		meet();
		CHECK_EQ(request(IBV_WR_RDMA_WRITE_WITH_IMM, len[i], 7), IBV_WC_SUCCESS);
		e = next(TI_SUCCESS);
		CHECK_EQ(e.recv_byte_count, 0);
		CHECK_EQ(e.oob_data_len, 4);
		CHECK_EQ(e.oob_data, htonl(7));
		if (len[i] <= TX_SIZE) {
			CHECK_EQ(request(IBV_WR_SEND, len[i], 0), IBV_WC_SUCCESS);
			e = next(TI_SUCCESS);
			CHECK_EQ(e.recv_byte_count, len[i]);
			CHECK_EQ(e.oob_data_len, 0);
			CHECK_EQ(request(IBV_WR_SEND_WITH_IMM, len[i], 9), IBV_WC_SUCCESS);
			CHECK_EQ(next(TI_SUCCESS).recv_byte_count, len[i]);
		} else { /* it ends the connection: the receive has no room */
			CHECK(request(IBV_WR_SEND, len[i], 0) != IBV_WC_SUCCESS);
			all = tx_poll(cq, RECEIVES - 1);
			TX_IS(all->status, TI_ERROR);
			CHECK_EQ(all->recv_byte_count, 0);
			tx_put(w.pool, all);
			tx_await(&broken, 1);
		}
		part();
	}
}

int main(void)
{
	static uint8_t area[AREA];
	ti_mem_handle_t mem;

	tx_begin(&w);
	cq = tx_cq(&w, 1024);
	TX_IS(tx->reg_virt_mem(w.ti, w.pd, area, sizeof area, TI_MEM_READ_WRITE, &there, &mem),
		TI_SUCCESS);
	lengths();
	tx_end(&w);
	return check_result();
}
