// SPDX-License-Identifier: BSD-3-Clause
/*
 * Which threads call a DMA window's functions: none of the program's that posts or polls, but with
 * WEFT_DMA_ANY_THREAD the one that posts, and then the request is done when ibv_post_send returns.
 */
#define PEER_MEM_GENERATION E
#include "include/rdma/peer_mem.h"
#include "include/weft/peer.h"

#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 65536, BYTES = 5000 };

static uint8_t store[LEN];
static uint8_t *claimed;
static uint64_t bus;
static unsigned window_flags;
static struct scatterlist entry;
static invalidate_peer_memory invalidate;
static _Atomic unsigned here, elsewhere; /* calls in the thread of main(), and in others */

static void note_thread(void)
{
	++*(gettid() == getpid() ? &here : &elsewhere);
}

static int copy_to(void *priv, uint64_t off, const void *src, size_t n)
{
	(void)priv;
	note_thread();
	memcpy(store + off, src, n);
	return 0;
}

static int copy_from(void *priv, uint64_t off, void *dst, size_t n)
{
	(void)priv;
	note_thread();
	memcpy(dst, store + off, n);
	return 0;
}

static const struct weft_dma_ops ops = {
	.size = sizeof ops, .copy_to = copy_to, .copy_from = copy_from};

static int acquire(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **context)
{
	(void)size, (void)private_data, (void)peer_name, (void)context;
	return addr == (uintptr_t)claimed;
}

static int get_pages(unsigned long addr, size_t size, int write, int force, struct sg_table *table,
	void *context, u64 core_context)
{
	(void)addr, (void)size, (void)write, (void)force, (void)table, (void)context;
	(void)core_context;
	bus = 0;
	return weft_dma_window_add(&bus, LEN, window_flags, &ops, NULL);
}

static int dma_map(
	struct sg_table *table, void *context, struct device *device, int dmasync, int *nmap)
{
	(void)context, (void)device, (void)dmasync;
	entry = (struct scatterlist){.dma_address = bus, .dma_length = LEN};
	table->sgl = &entry;
	table->nents = 1;
	*nmap = 1;
	return 0;
}

static int dma_unmap(struct sg_table *table, void *context, struct device *device)
{
	(void)table, (void)context, (void)device;
	CHECK_EQ(weft_dma_window_del(bus), 0);
	return 0;
}

static void put_pages(struct sg_table *table, void *context)
{
	(void)table, (void)context;
}

static const struct peer_memory_client client = {.name = "threads",
	.version = "1",
	.acquire = acquire,
	.get_pages = get_pages,
	.dma_map = dma_map,
	.dma_unmap = dma_unmap,
	.put_pages = put_pages};

/* Requests of a, whose buffer is the client's, to b, whose is not; and of b to a. */
static void request(struct vp_end *from, struct vp_end *to, enum ibv_wr_opcode op, bool any)
{
	const struct vp_addr peer = vp_addr(to);
	struct ibv_wc wc;

	check_case("opcode %d, flags %u", op, window_flags);
	here = elsewhere = 0;
	CHECK_EQ(vp_post_send(from, 7, op, IBV_SEND_SIGNALED, 0, BYTES, &peer, 0), 0);
	if (any)
		CHECK_EQ(ibv_poll_cq(from->scq, 1, &wc), 1);
	else
		vp_want(from->scq, &wc, IBV_WC_SUCCESS, 7);
	CHECK_EQ(here > 0, any);
	CHECK_EQ(elsewhere > 0, !any);
}

static void with(unsigned flags)
{
	struct vp_opts o = vp_defaults();
	const bool any = flags & WEFT_DMA_ANY_THREAD;
	struct vp_end a, b;
	struct ibv_mr *plain;

	window_flags = flags;
	o.len = LEN;
	vp_pair(&a, &b, &o);
	plain = a.mr;
	claimed = a.buf;
	a.mr = ibv_reg_mr(a.pd, a.buf, LEN, o.mr_access);
	claimed = NULL;
	if (!a.mr)
		die("memory of the client");
	pattern_fill(store, BYTES, 1);
	request(&a, &b, IBV_WR_RDMA_WRITE, any);
	CHECK(pattern_filled(b.buf, BYTES, 1));
	pattern_fill(b.buf, BYTES, 2);
	request(&a, &b, IBV_WR_RDMA_READ, any);
	CHECK(pattern_filled(store, BYTES, 2));
	pattern_fill(b.buf, BYTES, 3);
	request(&b, &a, IBV_WR_RDMA_WRITE, any);
	CHECK(pattern_filled(store, BYTES, 3));
	request(&b, &a, IBV_WR_RDMA_READ, any);
	CHECK_EQ(ibv_dereg_mr(a.mr), 0);
	a.mr = plain;
	vp_pair_free(&a, &b);
}

int main(void)
{
	void *handle = ib_register_peer_memory_client(&client, &invalidate);

	CHECK(handle != NULL);
	with(0);
	with(WEFT_DMA_ANY_THREAD);
	with(0);
	ib_unregister_peer_memory_client(handle);
	return check_result();
}
