// SPDX-License-Identifier: BSD-3-Clause
/* RDMA, bundles with messages, atomics, registration. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { AREA = 1 << 20, PAGE = 4096 };

struct area {
	char *at;
	ti_rdma_desc_t desc;
	ti_mem_handle_t mem;
};

static struct tx_world w;
static struct tx_end a, p;
static ti_cq_handle_t acq, pcq;
static ti_res_pool_handle_t remotes, users; /* RDMA elements; messages with buffers of ours */
static struct area local, remote;

static struct area area(ti_access_t rights)
{
	struct area m = {.at = aligned_alloc(PAGE, AREA)};

	memset(m.at, 0, AREA);
	TX_IS(tx->reg_virt_mem(w.ti, w.pd, m.at, AREA, rights, &m.desc, &m.mem), TI_SUCCESS);
	CHECK_EQ(m.desc.vaddr, (uintptr_t)m.at);
	return m;
}

static void begin(ti_conn_attr_t *attr)
{
	uint32_t none[2] = {0};

	tx_begin(&w);
	acq = tx_cq(&w, 1024);
	pcq = tx_cq(&w, 1024);
	tx_defaults(&a, &w, acq);
	tx_defaults(&p, &w, pcq);
	if (attr)
		a.attr = p.attr = *attr;
	p.receives = 8;
	tx_connect(&a, &p);
	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_RDMA, 32, 2, none, 0, &remotes), TI_SUCCESS);
	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_MSG, 32, 2, none, 0, &users), TI_SUCCESS);
	local = area(TI_MEM_READ_WRITE);
	remote = area(TI_MEM_READ_WRITE);
}

static void end(void)
{
	tx_end(&w);
	free(local.at);
	free(remote.at);
}

/* An element with len bytes at offset of our area. */
static ti_data_element_t *mine(uint32_t offset, uint32_t len)
{
	ti_data_element_t *e = tx_get(users, 1);

	e->num_io_bufs = 1;
	e->local_data_desc[0] = (ti_local_data_desc_t){local.at + offset, local.desc.rkey, len};
	e->msg_opt = TI_OPT_SIGNALED;
	return e;
}

/* The same with a remote address set. */
static ti_data_element_t *towards(uint32_t offset, uint32_t len, uint32_t there)
{
	ti_data_element_t *e = mine(offset, len);
	ti_rdma_desc_t d = remote.desc;

	d.vaddr += there;
	TX_IS(ti_rdma_set_remote(e, &d), TI_SUCCESS);
	return e;
}

static void fill(char *at, uint32_t len, unsigned seed)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = (i * 7 + seed) & 0xff;
}

/* ---- RDMA and bundles ---- */

static void single(void)
{
	ti_data_element_t *e;

	check_case("by ti_rdma_set_remote()");
	fill(local.at, AREA, 1);
	e = towards(0, AREA, 0);
	TX_IS(tx->rdma_write(a.conn, e), TI_SUCCESS);
	CHECK(tx_one(acq, TI_SUCCESS) == e);
	CHECK(!memcmp(local.at, remote.at, AREA));
	tx_put(users, e);
	fill(remote.at, AREA, 2);
	e = towards(10, 1000, 20);
	TX_IS(tx->rdma_read(a.conn, e), TI_SUCCESS);
	CHECK(tx_one(acq, TI_SUCCESS) == e);
	CHECK(!memcmp(local.at + 10, remote.at + 20, 1000));
	tx_put(users, e);
}

static void pairs(void)
{
	ti_data_element_t *r = tx_get(remotes, 1), *e = mine(0, 100), *list;

	check_case("by pairs");
	fill(local.at, AREA, 3);
	r->num_io_bufs = 1;
	r->rdma_data_desc[0] = remote.desc;
	r->p_next_msg = e;
	TX_IS(tx->rdma_write(a.conn, r), TI_SUCCESS);
	list = tx_poll(acq, 2);
	CHECK(list == r && r->p_next_msg == e);
	TX_IS(r->status, TI_SUCCESS);
	TX_IS(e->status, TI_SUCCESS);
	CHECK(!memcmp(local.at, remote.at, 100));
	/* each buffer to an address of its own */
	e->p_next_msg = NULL;
	e->num_io_bufs = r->num_io_bufs = 2;
	e->local_data_desc[1] = (ti_local_data_desc_t){local.at + 500, local.desc.rkey, 50};
	r->rdma_data_desc[0].vaddr = remote.desc.vaddr + 2000;
	r->rdma_data_desc[1] = (ti_rdma_desc_t){remote.desc.vaddr + 4000, remote.desc.rkey};
	TX_IS(tx->rdma_write(a.conn, r), TI_SUCCESS);
	list = tx_poll(acq, 2);
	CHECK(!memcmp(local.at, remote.at + 2000, 100));
	CHECK(!memcmp(local.at + 500, remote.at + 4000, 50));
	/* an address without buffers, and buffers without address */
	e->num_io_bufs = 1;
	TX_IS(tx->rdma_write(a.conn, r), TI_INVALID_PARAMETER);
	e->num_io_bufs = 2;
	r->p_next_msg = NULL;
	TX_IS(tx->rdma_write(a.conn, r), TI_INVALID_PARAMETER);
	TX_IS(tx->rdma_write(a.conn, e), TI_INVALID_PARAMETER);
	TX_IS(tx->rdma_write(a.conn, NULL), TI_INVALID_PARAMETER);
	tx_put(remotes, r);
	tx_put(users, e);
}

static void pieces(void)
{
	uint32_t piece = 4096 * 3 + 5, bytes = sizeof piece;
	ti_data_element_t *e = towards(0, AREA, 0), *imm;

	check_case("in pieces");
	TX_IS(tx->io_ctl(w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
	fill(local.at, AREA, 4);
	e->num_io_bufs = 2;
	e->local_data_desc[0].byte_count = 300001;
	e->local_data_desc[1] =
		(ti_local_data_desc_t){local.at + 300001, local.desc.rkey, AREA - 300001};
	TX_IS(tx->rdma_write(a.conn, e), TI_SUCCESS);
	CHECK(tx_one(acq, TI_SUCCESS) == e);
	CHECK(!memcmp(local.at, remote.at, AREA));
	fill(remote.at, AREA, 5);
	TX_IS(tx->rdma_read(a.conn, e), TI_SUCCESS);
	CHECK(tx_one(acq, TI_SUCCESS) == e);
	CHECK(!memcmp(local.at, remote.at, AREA));
	e->msg_opt |= TI_OPT_IMMEDIATE;
	e->oob_data = 0x01020304;
	TX_IS(tx->rdma_write(a.conn, e), TI_SUCCESS);
	CHECK(tx_one(acq, TI_SUCCESS) == e);
	imm = tx_one(pcq, TI_SUCCESS); /* one, with the last piece */
	CHECK_EQ(imm->oob_data_len, 4);
	CHECK_EQ(imm->oob_data, 0x01020304);
	tx_put(w.pool, imm);
	tx_put(users, e);
	piece = 0;
	TX_IS(tx->io_ctl(w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
}

/* The pieces of a request are of one size, whatever is set while they wait for the send queue. */
static void pieces_that_wait(void)
{
	ti_conn_attr_t attr = {.reliable = TRUE, .auto_cq_rearm = TRUE, .max_transfer_depth = 1};
	uint32_t piece = AREA / 4, on = 1, bytes = sizeof piece;
	ti_data_element_t *e;

	begin(&attr);
	check_case("pieces that wait");
	fill(local.at, AREA, 10);
	e = towards(0, AREA, 0);
	TX_IS(tx->io_ctl(w.ti, TI_SET_PENDING, &bytes, &on), TI_SUCCESS);
	TX_IS(tx->io_ctl(w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
	TX_IS(tx->rdma_write(a.conn, e), TI_PENDING);
	piece = PAGE;
	TX_IS(tx->io_ctl(w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
	CHECK(tx_one(acq, TI_SUCCESS) == e);
	CHECK(!memcmp(local.at, remote.at, AREA));
	end();
}

static void bundles(void)
{
	ti_data_element_t *e, *m, *got;

	check_case("bundles");
	fill(local.at, AREA, 6);
	e = towards(0, 100000, 0);
	m = tx_message(&w, "written", 8);
	TX_IS(tx->rdma_write_send(a.conn, e, m), TI_SUCCESS);
	got = tx_one(pcq, TI_SUCCESS);
	CHECK(!strcmp(got->local_data_desc->vaddr, "written"));
	CHECK(!memcmp(local.at, remote.at, 100000));
	CHECK(tx_poll(acq, 2) == e);
	tx_put(w.pool, got);
	e->p_next_msg = NULL;
	fill(remote.at, AREA, 7);
	TX_IS(tx->rdma_read_send(a.conn, e, m), TI_SUCCESS);
	got = tx_one(pcq, TI_SUCCESS);
	CHECK(!memcmp(local.at, remote.at, 100000));
	CHECK(tx_poll(acq, 2) == e);
	e->p_next_msg = NULL;
	tx_put(w.pool, got);
	TX_IS(tx->rdma_read_send(a.conn, e, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->rdma_read_send(a.conn, NULL, m), TI_INVALID_PARAMETER);
	tx_put(users, e);
	tx_put(w.pool, m);
}

/* ---- atomics ---- */

static uint64_t atomic8(ti_atomic_op_t op, uint64_t x, uint64_t y, uint32_t there)
{
	ti_data_element_t *e = towards(64, 8, there);
	uint64_t *operand = (uint64_t *)(local.at + 64), old;

	operand[0] = x;
	operand[1] = y;
	TX_IS(tx->atomic_op(a.conn, op, e), TI_SUCCESS);
	tx_put(users, tx_one(acq, TI_SUCCESS));
	old = operand[0];
	return old;
}

static uint32_t atomic4(ti_atomic_op_t op, uint32_t x, uint32_t y, uint32_t there)
{
	ti_data_element_t *e = towards(64, 4, there);
	uint32_t *operand = (uint32_t *)(local.at + 64);

	operand[0] = x;
	operand[1] = y;
	TX_IS(tx->atomic_op(a.conn, op, e), TI_SUCCESS);
	tx_put(users, tx_one(acq, TI_SUCCESS));
	return operand[0];
}

static void atomics(void)
{
	uint64_t *there = (uint64_t *)remote.at;
	uint32_t *halves = (uint32_t *)remote.at;
	uint32_t piece = 4, bytes = sizeof piece;
	ti_data_element_t *e;

	check_case("atomics");
	there[0] = 40;
	there[1] = 0;
	CHECK_EQ(atomic8(TI_ATOMIC_FETCH_ADD, 2, 0, 0), 40);
	CHECK_EQ(there[0], 42);
	CHECK_EQ(atomic8(TI_ATOMIC_COMPARE_SWAP, 41, 7, 0), 42);
	CHECK_EQ(there[0], 42);
	CHECK_EQ(atomic8(TI_ATOMIC_COMPARE_SWAP, 42, 7, 0), 42);
	CHECK_EQ(there[0], 7);
	halves[0] = 0xffffffff;
	halves[1] = 5;
	CHECK_EQ(atomic4(TI_ATOMIC_FETCH_ADD, 2, 0, 0), 0xffffffff);
	CHECK_EQ(halves[0], 1); /* no carry into the other half */
	CHECK_EQ(halves[1], 5);
	CHECK_EQ(atomic4(TI_ATOMIC_FETCH_ADD, 10, 0, 4), 5);
	CHECK_EQ(halves[1], 15);
	CHECK_EQ(atomic4(TI_ATOMIC_COMPARE_SWAP, 14, 1, 4), 15);
	CHECK_EQ(halves[1], 15);
	CHECK_EQ(atomic4(TI_ATOMIC_COMPARE_SWAP, 15, 99, 4), 15);
	CHECK_EQ(halves[1], 99);
	CHECK_EQ(halves[0], 1);
	TX_IS(tx->io_ctl(w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
	CHECK_EQ(atomic8(TI_ATOMIC_FETCH_ADD, 1, 0, 8), 0); /* is not divided */
	CHECK_EQ(there[1], 1);
	piece = 0;
	TX_IS(tx->io_ctl(w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
	e = towards(64, 4, 2);
	TX_IS(tx->atomic_op(a.conn, TI_ATOMIC_FETCH_ADD, e), TI_INVALID_ADDRESS);
	e->local_data_desc->byte_count = 3;
	TX_IS(tx->atomic_op(a.conn, TI_ATOMIC_FETCH_ADD, e), TI_INVALID_PARAMETER);
	TX_IS(tx->atomic_op(a.conn, 5, e), TI_INVALID_PARAMETER);
	TX_IS(tx->atomic_op(a.conn, TI_ATOMIC_FETCH_ADD, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->atomic_op(NULL, TI_ATOMIC_FETCH_ADD, e), TI_INVALID_HANDLE);
	tx_put(users, e);
}

/* ---- registration ---- */

static void physical(void)
{
	char *file =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *own =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t pages[2] = {(uintptr_t)file + 3 * PAGE, (uintptr_t)file + PAGE};
	uint64_t adjacent[2] = {(uintptr_t)local.at, (uintptr_t)local.at + PAGE};
	ti_rdma_desc_t d = {.vaddr = 0x500000010};
	ti_mem_handle_t mem, mem2;
	ti_data_element_t *e;

	check_case("pages side by side");
	TX_IS(tx->reg_phys_mem(w.ti, w.pd, adjacent, 2, TI_MEM_READ_WRITE, &d, &mem2), TI_SUCCESS);
	CHECK_EQ(d.vaddr, 0x500000010);
	fill(local.at, 2 * PAGE, 8);
	e = mine(AREA / 2, 100);
	TX_IS(ti_rdma_set_remote(e, &d), TI_SUCCESS);
	TX_IS(tx->rdma_read(a.conn, e), TI_SUCCESS);
	tx_put(users, tx_one(acq, TI_SUCCESS));
	CHECK(!memcmp(local.at + AREA / 2, local.at + 0x10, 100));
	check_case("pages anywhere");
	d.vaddr = 0;
	TX_IS(tx->reg_phys_mem(w.ti, w.pd, pages, 2, TI_MEM_READ_WRITE, &d, &mem), TI_SUCCESS);
	memset(file + 3 * PAGE, 'x', PAGE);
	memset(file + PAGE, 'y', PAGE);
	e = mine(0, 2 * PAGE);
	TX_IS(ti_rdma_set_remote(e, &d), TI_SUCCESS);
	TX_IS(tx->rdma_read(a.conn, e), TI_SUCCESS);
	tx_put(users, tx_one(acq, TI_SUCCESS));
	CHECK(local.at[0] == 'x' && local.at[PAGE] == 'y');
	TX_IS(tx->dereg_mem(mem), TI_SUCCESS);
	TX_IS(tx->dereg_mem(mem), TI_INVALID_HANDLE);
	TX_IS(tx->dereg_mem(mem2), TI_SUCCESS);
	adjacent[1] += 1;
	TX_IS(tx->reg_phys_mem(w.ti, w.pd, adjacent, 2, TI_MEM_READ, &d, &mem), TI_INVALID_ADDRESS);
	adjacent[0] = (uintptr_t)own + 2 * PAGE; /* private memory cannot be mapped twice */
	adjacent[1] = (uintptr_t)own;
	TX_IS(tx->reg_phys_mem(w.ti, w.pd, adjacent, 2, TI_MEM_READ, &d, &mem), TI_UNSUPPORTED);
	munmap(own, 4 * PAGE);
	munmap(file, 4 * PAGE);
}

static void registration(void)
{
	ti_rdma_desc_t d;
	ti_mem_handle_t mem;
	ti_region_key_t key;
	char byte;

	check_case("registration");
	TX_IS(ti_mem_lkey(local.mem, &key), TI_SUCCESS);
	CHECK_EQ(key, local.desc.rkey);
	TX_IS(ti_mem_lkey(NULL, &key), TI_INVALID_HANDLE);
	TX_IS(tx->reg_virt_mem(w.ti, NULL, &byte, 1, TI_MEM_READ, &d, &mem), TI_INVALID_HANDLE);
	TX_IS(tx->reg_virt_mem(NULL, w.pd, &byte, 1, TI_MEM_READ, &d, &mem), TI_INVALID_HANDLE);
	TX_IS(tx->reg_virt_mem(w.ti, w.pd, NULL, 1, TI_MEM_READ, &d, &mem), TI_INVALID_PARAMETER);
	TX_IS(tx->reg_virt_mem(w.ti, w.pd, &byte, 0, TI_MEM_READ, &d, &mem), TI_INVALID_PARAMETER);
	TX_IS(tx->reg_virt_mem(w.ti, w.pd, &byte, 1, 9, &d, &mem), TI_INVALID_PARAMETER);
	TX_IS(tx->reg_virt_mem(w.ti, w.pd, &byte, 1, TI_MEM_READ, NULL, &mem),
		TI_INVALID_PARAMETER);
	TX_IS(tx->destroy_pd(w.pd), TI_RESOURCE_BUSY);
	TX_IS(tx->dereg_mem(NULL), TI_INVALID_HANDLE);
}

/* ---- what goes wrong; each ends a connection ---- */

static void wrong_rights(void)
{
	struct area readable;
	ti_data_element_t *e, *m;

	begin(NULL);
	check_case("wrong rights");
	readable = area(TI_MEM_READ);
	e = mine(0, 8);
	TX_IS(ti_rdma_set_remote(e, &readable.desc), TI_SUCCESS);
	m = tx_message(&w, "never", 6);
	TX_IS(tx->rdma_write_send(a.conn, e, m), TI_SUCCESS);
	CHECK(tx_poll(acq, 2) == e);
	TX_IS(e->status, TI_INVALID_PERMISSION);
	TX_IS(m->status, TI_CANCELED);
	for (m = tx_poll(pcq, 8); m; m = m->p_next_msg)
		TX_IS(m->status, TI_CANCELED); /* among them none that was received */
	end();
	free(readable.at);
}

static void write_only(void)
{
	struct area writable;
	ti_data_element_t *e;

	begin(NULL);
	check_case("write only");
	writable = area(TI_MEM_WRITE);
	fill(local.at, AREA, 11);
	e = mine(0, 100);
	TX_IS(ti_rdma_set_remote(e, &writable.desc), TI_SUCCESS);
	TX_IS(tx->rdma_write(a.conn, e), TI_SUCCESS);
	CHECK(tx_one(acq, TI_SUCCESS) == e);
	CHECK(!memcmp(local.at, writable.at, 100));
	TX_IS(tx->rdma_read(a.conn, e), TI_SUCCESS);
	CHECK(tx_one(acq, TI_INVALID_PERMISSION) == e);
	end();
	free(writable.at);
}

static void unregistered(void)
{
	static char bytes[64];
	ti_data_element_t *e;

	begin(NULL);
	check_case("unregistered memory");
	e = mine(0, 8);
	e->local_data_desc->vaddr = bytes;
	TX_IS(tx->msg_send(a.conn, e), TI_SUCCESS);
	CHECK(tx_one(acq, TI_INVALID_PERMISSION) == e);
	end();
}

static void unreliable(void)
{
	ti_conn_attr_t attr = {.auto_cq_rearm = TRUE};
	ti_data_element_t *e, *m;

	begin(&attr);
	check_case("unreliable");
	e = towards(0, 8, 0);
	TX_IS(tx->rdma_read(a.conn, e), TI_INVALID_OPERATION);
	TX_IS(tx->atomic_op(a.conn, TI_ATOMIC_FETCH_ADD, e), TI_INVALID_OPERATION);
	m = tx_message(&w, "x", 2);
	TX_IS(tx->rdma_read_send(a.conn, e, m), TI_INVALID_OPERATION);
	TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
	CHECK(tx_one(acq, TI_SUCCESS) == m);
	CHECK_EQ(tx_one(pcq, TI_SUCCESS)->recv_byte_count, 2);
	fill(local.at, 8, 9);
	TX_IS(tx->rdma_write(a.conn, e), TI_SUCCESS);
	CHECK(tx_one(acq, TI_SUCCESS) == e);
	CHECK(!memcmp(local.at, remote.at, 8));
	end();
}

/* ---- fairness ---- */

enum { BUSY = 600 };
static _Atomic bool served;
static struct tx_count busy_done = TX_COUNT, served_done = TX_COUNT;
static ti_conn_handle_t busy;

/* Writes again what completed, so that this connection always has completions. */
static void again(ti_cq_handle_t h, ti_data_element_t *list)
{
	ti_data_element_t *next;

	(void)h;
	for (; list; list = next) {
		next = list->p_next_msg;
		list->p_next_msg = NULL;
		if (served || tx->rdma_write(busy, list))
			tx_add(&busy_done, 1);
	}
}

static void serve(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	(void)list;
	served = true;
	tx_add(&served_done, 1);
}

/* A connection whose completions never end does not keep others from their callbacks. */
static void fair(void)
{
	uint32_t none = 0;
	struct tx_end b = a, q = p;
	ti_res_pool_handle_t many;
	ti_data_element_t *e, *next;
	ti_rdma_desc_t d = remote.desc;

	check_case("fairness");
	b.comp.pfn_rdma_cb = again;
	b.attr.max_transfer_depth = BUSY;
	b.done = q.done = (struct tx_count)TX_COUNT;
	q.receives = 0;
	tx_connect(&b, &q);
	busy = b.conn;
	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_MSG, BUSY, 1, &none, 0, &many), TI_SUCCESS);
	for (e = tx_get(many, BUSY); e; e = next) {
		next = e->p_next_msg;
		e->p_next_msg = NULL;
		e->local_data_desc[0] = (ti_local_data_desc_t){local.at, local.desc.rkey, 8};
		e->msg_opt = TI_OPT_SIGNALED;
		TX_IS(ti_rdma_set_remote(e, &d), TI_SUCCESS);
		TX_IS(tx->rdma_write(busy, e), TI_SUCCESS);
	}
	b = a;
	q = p;
	b.comp.pfn_send_cb = serve;
	b.done = q.done = (struct tx_count)TX_COUNT;
	tx_connect(&b, &q);
	TX_IS(tx->msg_send(b.conn, tx_message(&w, "x", 1)), TI_SUCCESS);
	tx_await(&served_done, 1);
	tx_await(&busy_done, BUSY);
}

int main(void)
{
	begin(NULL);
	single();
	pairs();
	pieces();
	bundles();
	atomics();
	physical();
	registration();
	fair();
	end();
	pieces_that_wait();
	wrong_rights();
	write_only();
	unregistered();
	unreliable();
	return check_result();
}
