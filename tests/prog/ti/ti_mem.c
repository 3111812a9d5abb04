// SPDX-License-Identifier: BSD-3-Clause
/* Registered memory: where it lies, whose it is, what may be done with it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_areas.h"

enum { PAGE = 4096 };

static struct tx_rdma x;

/* ---- registration ---- */

static void physical(void)
{
	char *file =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *own =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t pages[2] = {(uintptr_t)file + 3 * PAGE, (uintptr_t)file + PAGE};
	uint64_t adjacent[2] = {(uintptr_t)x.local.at, (uintptr_t)x.local.at + PAGE};
	ti_rdma_desc_t d = {.vaddr = 0x500000010};
	ti_mem_handle_t mem, mem2;
	ti_data_element_t *e;

	check_case("pages side by side");
	TX_IS(tx->reg_phys_mem(x.w.ti, x.w.pd, adjacent, 2, TI_MEM_READ_WRITE, &d, &mem2),
		TI_SUCCESS);
	CHECK_EQ(d.vaddr, 0x500000010);
	tx_fill(x.local.at, 2 * PAGE, 8);
	e = tx_local(&x, TX_AREA / 2, 100);
	TX_IS(ti_rdma_set_remote(e, &d), TI_SUCCESS);
	TX_IS(tx->rdma_read(x.a.conn, e), TI_SUCCESS);
	tx_put(x.users, tx_one(x.acq, TI_SUCCESS));
	CHECK(!memcmp(x.local.at + TX_AREA / 2, x.local.at + 0x10, 100));
	check_case("pages anywhere");
	d.vaddr = 0;
	TX_IS(tx->reg_phys_mem(x.w.ti, x.w.pd, pages, 2, TI_MEM_READ_WRITE, &d, &mem), TI_SUCCESS);
	memset(file + 3 * PAGE, 'x', PAGE);
	memset(file + PAGE, 'y', PAGE);
	e = tx_local(&x, 0, 2 * PAGE);
	TX_IS(ti_rdma_set_remote(e, &d), TI_SUCCESS);
	TX_IS(tx->rdma_read(x.a.conn, e), TI_SUCCESS);
	tx_put(x.users, tx_one(x.acq, TI_SUCCESS));
	CHECK(x.local.at[0] == 'x' && x.local.at[PAGE] == 'y');
	TX_IS(tx->dereg_mem(mem), TI_SUCCESS);
	TX_IS(tx->dereg_mem(mem), TI_INVALID_HANDLE);
	TX_IS(tx->dereg_mem(mem2), TI_SUCCESS);
	adjacent[1] += 1;
	TX_IS(tx->reg_phys_mem(x.w.ti, x.w.pd, adjacent, 2, TI_MEM_READ, &d, &mem),
		TI_INVALID_ADDRESS);
	adjacent[0] = (uintptr_t)own + 2 * PAGE; /* private memory cannot be mapped twice */
	adjacent[1] = (uintptr_t)own;
	TX_IS(tx->reg_phys_mem(x.w.ti, x.w.pd, adjacent, 2, TI_MEM_READ, &d, &mem), TI_UNSUPPORTED);
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
	TX_IS(ti_mem_lkey(x.local.mem, &key), TI_SUCCESS);
	CHECK_EQ(key, x.local.desc.rkey);
	TX_IS(ti_mem_lkey(NULL, &key), TI_INVALID_HANDLE);
	TX_IS(tx->reg_virt_mem(x.w.ti, NULL, &byte, 1, TI_MEM_READ, &d, &mem), TI_INVALID_HANDLE);
	TX_IS(tx->reg_virt_mem(NULL, x.w.pd, &byte, 1, TI_MEM_READ, &d, &mem), TI_INVALID_HANDLE);
	TX_IS(tx->reg_virt_mem(x.w.ti, x.w.pd, NULL, 1, TI_MEM_READ, &d, &mem),
		TI_INVALID_PARAMETER);
	TX_IS(tx->reg_virt_mem(x.w.ti, x.w.pd, &byte, 0, TI_MEM_READ, &d, &mem),
		TI_INVALID_PARAMETER);
	TX_IS(tx->reg_virt_mem(x.w.ti, x.w.pd, &byte, 1, 9, &d, &mem), TI_INVALID_PARAMETER);
	TX_IS(tx->reg_virt_mem(x.w.ti, x.w.pd, &byte, 1, TI_MEM_READ, NULL, &mem),
		TI_INVALID_PARAMETER);
	TX_IS(tx->destroy_pd(x.w.pd), TI_RESOURCE_BUSY);
	TX_IS(tx->dereg_mem(NULL), TI_INVALID_HANDLE);
}

/* ---- a pool's buffers ---- */

/* Elements of an RDMA pool tell a peer where their buffers are, and the peer may use them. */
static void pool_of_targets(ti_res_pool_handle_t pool)
{
	ti_data_element_t *target = tx_get(pool, 1), *e;
	ti_rdma_desc_t *d = target->rdma_data_desc;

	tx_fill(x.local.at, TX_AREA, 21);
	CHECK_EQ(target->num_io_bufs, 2);
	e = tx_towards_desc(&x, 0, 100, d[0]);
	e->p_next_msg = tx_towards_desc(&x, 100, PAGE, d[1]);
	TX_IS(tx->rdma_write(x.p.conn, e), TI_SUCCESS);
	CHECK(tx_poll(x.pcq, 2) == e);
	TX_IS(e->status, TI_SUCCESS);
	TX_IS(e->p_next_msg->status, TI_SUCCESS);
	CHECK(!memcmp((void *)(uintptr_t)d[0].vaddr, x.local.at, 100));
	CHECK(!memcmp((void *)(uintptr_t)d[1].vaddr, x.local.at + 100, PAGE));
	tx_put(x.users, e);
	tx_put(pool, target);
	TX_IS(tx->res_pool_destroy(pool), TI_SUCCESS);
}

static void pools(void)
{
	uint32_t sizes[2] = {100, PAGE};
	ti_res_pool_handle_t pool;

	check_case("a pool of targets");
	TX_IS(tx->res_pool_create(x.w.ti, TI_RES_POOL_RDMA, 4, 2, sizes, 0, &pool), TI_SUCCESS);
	pool_of_targets(pool);
}

/* A pool may be older than the domain that it is registered in. */
static void early_pool(void)
{
	uint32_t sizes[2] = {100, PAGE};
	ti_res_pool_handle_t pool;
	ti_handle_t ti;
	ti_endpoint_handle_t ep;
	ti_pd_handle_t pd;
	ti_data_element_t *e;

	check_case("a pool that is older than its domain");
	TX_IS(tx->create_ti(&ti), TI_SUCCESS);
	TX_IS(tx->res_pool_create(ti, TI_RES_POOL_RDMA, 1, 2, sizes, 0, &pool), TI_SUCCESS);
	ep = tx_endpoint(ti, "127.0.0.1", 0);
	TX_IS(tx->create_pd(ti, ep, &pd), TI_SUCCESS);
	e = tx_get(pool, 1);
	CHECK(e->rdma_data_desc[0].rkey);
	CHECK_EQ(e->rdma_data_desc[1].rkey, e->rdma_data_desc[0].rkey);
	TX_IS(tx->destroy_ti(ti, NULL, NULL), TI_SUCCESS);
}

/* A peer's write into an element's buffer, by a connection in the domain w->pd. */
static void write_target(struct tx_world *w, ti_res_pool_handle_t targets, const char *text)
{
	ti_data_element_t *target = tx_get(targets, 1), *e;
	struct tx_end a, p;

	tx_defaults(&a, w, tx_cq(w, 64));
	p = a;
	tx_connect(&a, &p);
	e = tx_message(w, text, 4);
	TX_IS(ti_rdma_set_remote(e, target->rdma_data_desc), TI_SUCCESS);
	TX_IS(tx->rdma_write(a.conn, e), TI_SUCCESS);
	CHECK(tx_one(a.comp.h_send_cq, TI_SUCCESS) == e);
	CHECK(!memcmp((void *)(uintptr_t)target->rdma_data_desc->vaddr, text, 4));
	tx_put(w->pool, e);
	tx_put(targets, target);
	tx_disconnect(&a);
	tx_disconnect(&p);
	TX_IS(tx->destroy_cq(a.comp.h_send_cq), TI_SUCCESS);
}

/* Pools outlive domains: each time their keys are those of the one that is there. */
static void next_domain(void)
{
	uint32_t size = PAGE;
	ti_res_pool_handle_t targets;
	ti_pd_handle_t next;
	struct tx_world w;

	tx_begin(&w);
	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_RDMA, 1, 1, &size, 0, &targets), TI_SUCCESS);
	check_case("a pool's first domain");
	write_target(&w, targets, "one");
	TX_IS(tx->destroy_pd(w.pd), TI_SUCCESS);
	check_case("the next domain");
	TX_IS(tx->create_pd(w.ti, w.ep, &w.pd), TI_SUCCESS);
	write_target(&w, targets, "two");
	check_case("a domain that comes before the other one goes");
	TX_IS(tx->create_pd(w.ti, w.ep, &next), TI_SUCCESS);
	TX_IS(tx->destroy_pd(w.pd), TI_SUCCESS);
	w.pd = next;
	write_target(&w, targets, "3rd");
	tx_end(&w);
}

/* ---- what may be done with it; what may not ends a connection ---- */

static void wrong_rights(void)
{
	struct tx_area readable;
	ti_data_element_t *e, *m;

	tx_rdma_begin(&x, NULL);
	check_case("wrong rights");
	readable = tx_area(&x, TI_MEM_READ);
	e = tx_local(&x, 0, 8);
	TX_IS(ti_rdma_set_remote(e, &readable.desc), TI_SUCCESS);
	m = tx_message(&x.w, "never", 6);
	TX_IS(tx->rdma_write_send(x.a.conn, e, m), TI_SUCCESS);
	CHECK(tx_poll(x.acq, 2) == e);
	TX_IS(e->status, TI_INVALID_PERMISSION);
	TX_IS(m->status, TI_CANCELED);
	for (m = tx_poll(x.pcq, 8); m; m = m->p_next_msg)
		TX_IS(m->status, TI_CANCELED); /* among them none that was received */
	tx_rdma_end(&x);
	free(readable.at);
}

static void write_only(void)
{
	struct tx_area writable;
	ti_data_element_t *e;

	tx_rdma_begin(&x, NULL);
	check_case("write only");
	writable = tx_area(&x, TI_MEM_WRITE);
	tx_fill(x.local.at, TX_AREA, 11);
	e = tx_local(&x, 0, 100);
	TX_IS(ti_rdma_set_remote(e, &writable.desc), TI_SUCCESS);
	TX_IS(tx->rdma_write(x.a.conn, e), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == e);
	CHECK(!memcmp(x.local.at, writable.at, 100));
	TX_IS(tx->rdma_read(x.a.conn, e), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_INVALID_PERMISSION) == e);
	tx_rdma_end(&x);
	free(writable.at);
}

static void unregistered(void)
{
	static char bytes[64];
	ti_data_element_t *e;

	tx_rdma_begin(&x, NULL);
	check_case("unregistered memory");
	e = tx_local(&x, 0, 8);
	e->local_data_desc->vaddr = bytes;
	TX_IS(tx->msg_send(x.a.conn, e), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_INVALID_PERMISSION) == e);
	tx_rdma_end(&x);
}

/* Writes len bytes to there; what it must come to. */
static void write_to(ti_rdma_desc_t there, uint32_t len, ti_status_t want)
{
	ti_data_element_t *e = tx_towards_desc(&x, 0, len, there);

	TX_IS(tx->rdma_write(x.a.conn, e), TI_SUCCESS);
	CHECK(tx_one(x.acq, want) == e);
	tx_put(x.users, e);
}

/* Memory is registered to the byte, wherever it begins. */
static void odd(uint32_t before, uint32_t len, ti_status_t want)
{
	static char bytes[3 * PAGE];
	ti_rdma_desc_t d;
	ti_mem_handle_t mem;

	tx_rdma_begin(&x, NULL);
	check_case("an odd address, %u bytes from %d", len, -(int)before);
	memset(bytes, 0, sizeof bytes);
	tx_fill(x.local.at, TX_AREA, 22);
	TX_IS(tx->reg_virt_mem(x.w.ti, x.w.pd, bytes + 3, 5001, TI_MEM_READ_WRITE, &d, &mem),
		TI_SUCCESS);
	CHECK_EQ(d.vaddr, (uintptr_t)bytes + 3);
	d.vaddr -= before;
	write_to(d, len, want);
	CHECK_EQ(memcmp(bytes + 3, x.local.at, 5001) == 0, want == TI_SUCCESS);
	CHECK(!bytes[2] && !bytes[3 + 5001]);
	tx_rdma_end(&x);
}

/* A key is good in its own domain alone, whoever has it. */
static void other_domain(void)
{
	ti_rdma_desc_t d;
	ti_mem_handle_t mem;
	ti_pd_handle_t pd;

	tx_rdma_begin(&x, NULL);
	check_case("another domain's memory");
	TX_IS(tx->create_pd(x.w.ti, x.w.ep, &pd), TI_SUCCESS);
	TX_IS(tx->reg_virt_mem(x.w.ti, pd, x.remote.at, TX_AREA, TI_MEM_READ_WRITE, &d, &mem),
		TI_SUCCESS);
	write_to(d, 100, TI_INVALID_PERMISSION);
	CHECK(!*x.remote.at);
	tx_rdma_end(&x);
}

/* A peer that kept the descriptor of memory which is registered no more. */
static void kept_descriptor(void)
{
	tx_rdma_begin(&x, NULL);
	check_case("a descriptor of memory that was deregistered");
	*x.local.at = 'x';
	write_to(x.remote.desc, 1, TI_SUCCESS);
	TX_IS(tx->dereg_mem(x.remote.mem), TI_SUCCESS);
	*x.local.at = 'y';
	write_to(x.remote.desc, 1, TI_INVALID_PERMISSION);
	CHECK_EQ(*x.remote.at, 'x');
	tx_rdma_end(&x);
}

int main(void)
{
	tx_rdma_begin(&x, NULL);
	physical();
	registration();
	pools();
	early_pool();
	next_domain();
	tx_rdma_end(&x);
	wrong_rights();
	write_only();
	unregistered();
	odd(0, 5001, TI_SUCCESS);
	odd(0, 5002, TI_INVALID_PERMISSION);
	odd(1, 5001, TI_INVALID_PERMISSION);
	other_domain();
	kept_descriptor();
	return check_result();
}
