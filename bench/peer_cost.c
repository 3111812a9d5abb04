// SPDX-License-Identifier: BSD-3-Clause
/*
 * peer_cost: what peer clients cost, medians, interleaved.
 *   reg_ns           ibv_reg_mr of one page without clients
 *   reg_declined_ns  the same with three that decline
 *   take_ns          a client's callback for an idle region of 1 MiB
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PEER_MEM_GENERATION E
#include "base/clock.h"
#include "bench/median.h"
#include "include/rdma/peer_mem.h"

enum { ROUNDS = 200, EACH = 100, CLIENTS = 3, SIZE = 1 << 20 };

static uint8_t *device;
static struct scatterlist entry;
static invalidate_peer_memory invalidate;
static u64 context_now;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int decline(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **context)
{
	(void)addr;
	(void)size;
	(void)private_data;
	(void)peer_name;
	(void)context;
	return 0;
}

static int claim(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **context)
{
	(void)size;
	(void)private_data;
	(void)peer_name;
	(void)context;
	return addr == (uintptr_t)device;
}

static int get_pages(unsigned long addr, size_t size, int write, int force, struct sg_table *table,
	void *client_context, u64 core_context)
{
	(void)write;
	(void)force;
	(void)client_context;
	entry.dma_address = addr;
	entry.dma_length = size;
	table->sgl = &entry;
	table->nents = 1;
	context_now = core_context;
	return 0;
}

static int dma_map(
	struct sg_table *table, void *context, struct device *dma_device, int dmasync, int *nmap)
{
	(void)table;
	(void)context;
	(void)dma_device;
	(void)dmasync;
	*nmap = 1;
	return 0;
}

static int dma_unmap(struct sg_table *table, void *context, struct device *dma_device)
{
	(void)table;
	(void)context;
	(void)dma_device;
	return 0;
}

static void put_pages(struct sg_table *table, void *context)
{
	(void)table;
	(void)context;
}

static void *client(const char *name, bool claims)
{
	struct peer_memory_client c = {.version = "1",
		.acquire = claims ? claim : decline,
		.get_pages = get_pages,
		.dma_map = dma_map,
		.dma_unmap = dma_unmap,
		.put_pages = put_pages};
	void *handle;

	snprintf(c.name, sizeof c.name, "%s", name);
	handle = ib_register_peer_memory_client(&c, &invalidate);
	if (!handle)
		die("ib_register_peer_memory_client");
	return handle;
}

/* Nanoseconds of one registration, the mean of some. */
static double reg(struct ibv_pd *pd, void *page)
{
	struct ibv_mr *mr[EACH];
	uint64_t begin = clock_ns(), end;

	for (int i = 0; i < EACH; i++) {
		mr[i] = ibv_reg_mr(pd, page, 4096, 0);
		if (!mr[i])
			die("ibv_reg_mr");
	}
	end = clock_ns();
	for (int i = 0; i < EACH; i++)
		ibv_dereg_mr(mr[i]);
	return (double)(end - begin) / EACH;
}

static double reg_declined(struct ibv_pd *pd, void *page)
{
	static const char *const names[CLIENTS] = {"a", "b", "c"};
	void *handle[CLIENTS];
	double ns;

	for (int i = 0; i < CLIENTS; i++)
		handle[i] = client(names[i], false);
	ns = reg(pd, page);
	for (int i = 0; i < CLIENTS; i++)
		ib_unregister_peer_memory_client(handle[i]);
	return ns;
}

static double take(struct ibv_pd *pd, void *handle)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, device, SIZE, IBV_ACCESS_LOCAL_WRITE);
	uint64_t begin, end;

	if (!mr)
		die("ibv_reg_mr of the client");
	begin = clock_ns();
	invalidate(handle, context_now);
	end = clock_ns();
	ibv_dereg_mr(mr);
	return (double)(end - begin);
}

int main(void)
{
	static double plain[ROUNDS], declined[ROUNDS], taken[ROUNDS];
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *handle;

	device = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!pd || page == MAP_FAILED || device == MAP_FAILED)
		die("setup");
	for (int i = 0; i < ROUNDS; i++) {
		plain[i] = reg(pd, page);
		declined[i] = reg_declined(pd, page);
	}
	handle = client("device", true);
	for (int i = 0; i < ROUNDS; i++)
		taken[i] = take(pd, handle);
	ib_unregister_peer_memory_client(handle);
	printf("reg_ns %.0f\nreg_declined_ns %.0f\ntake_ns %.0f\n", median(plain, ROUNDS),
		median(declined, ROUNDS), median(taken, ROUNDS));
	return 0;
}
