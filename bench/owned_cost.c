// SPDX-License-Identifier: BSD-3-Clause
/*
 * owned_cost KIND WHAT SIZE COUNT: microseconds that one RDMA write or read (WHAT) of SIZE bytes of
 * another process's memory takes, the median over SAMPLES of the mean of COUNT; above SMALL bytes
 * DEPTH are in flight.  WHAT may be memcpy, too: the same bytes within the process.  KIND:
 *   plain   ordinary memory (WEFT_MOVER=agent has it copied by agents)
 *   direct  of a client that never takes it away
 *   owned   of one that may, in a DMA window whose functions are memcpy()
 *   both    the requester's memory is such, too
 *   beside  ordinary memory, in processes that have a region of such, too
 */
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEER_MEM_GENERATION E
#include "base/clock.h"
#include "bench/pin.h"
#include "include/rdma/peer_mem.h"
#include "include/weft/peer.h"

enum { SIZE = 1 << 20, SMALL = 4096, DEPTH = 8, SAMPLES = 9, GID = 1 };

static struct scatterlist entry;
static invalidate_peer_memory invalidate;
static uint8_t *memory, *claimed;
static bool windows;
static uint64_t bus;

static void need(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

/* ---- the client ---- */

static int copy_to(void *priv, uint64_t off, const void *src, size_t n)
{
	memcpy((uint8_t *)priv + off, src, n);
	return 0;
}

static int copy_from(void *priv, uint64_t off, void *dst, size_t n)
{
	memcpy(dst, (uint8_t *)priv + off, n);
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
	(void)write, (void)force, (void)context, (void)core_context;
	entry.dma_address = windows ? bus : addr;
	entry.dma_length = size;
	table->sgl = &entry;
	table->nents = 1;
	return 0;
}

static int dma_map(
	struct sg_table *table, void *context, struct device *device, int dmasync, int *nmap)
{
	(void)table, (void)context, (void)device, (void)dmasync;
	*nmap = 1;
	return 0;
}

static int dma_unmap(struct sg_table *table, void *context, struct device *device)
{
	(void)table, (void)context, (void)device;
	return 0;
}

static void put_pages(struct sg_table *table, void *context)
{
	(void)table, (void)context;
}

static void add_client(void)
{
	const struct peer_memory_client c = {.name = "bench",
		.version = "1",
		.acquire = acquire,
		.get_pages = get_pages,
		.dma_map = dma_map,
		.dma_unmap = dma_unmap,
		.put_pages = put_pages};

	if (windows)
		need(!weft_dma_window_add(&bus, SIZE, 0, &ops, claimed), "weft_dma_window_add");
	need(ib_register_peer_memory_client(&c, windows ? &invalidate : NULL), "the client");
}

/* ---- an end ---- */

struct addr {
	uint32_t qpn, rkey;
	uint64_t at;
};

static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_port_attr port;
static union ibv_gid gid;
static struct addr peer;
static int sock;

static void make(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	need(pd, "weft0");
	cq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	mr = ibv_reg_mr(pd, memory, SIZE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (claimed && claimed != memory)
		need(ibv_reg_mr(pd, claimed, SIZE, IBV_ACCESS_LOCAL_WRITE), "the memory beside");
	need(cq && qp && mr && !ibv_query_gid(ctx, 1, GID, &gid) && !ibv_query_port(ctx, 1, &port),
		"queue pair and memory");
}

static void meet(void)
{
	struct addr mine = {qp->qp_num, mr->rkey, (uintptr_t)memory};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

	need(write(sock, &mine, sizeof mine) == sizeof mine &&
			read(sock, &peer, sizeof peer) == sizeof peer,
		"socket");
	need(!ibv_modify_qp(
		     qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		"INIT");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = port.active_mtu,
		.dest_qp_num = peer.qpn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = gid, .sgid_index = GID, .hop_limit = 1}}};
	need(!ibv_modify_qp(qp, &a,
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		"RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16};
	need(!ibv_modify_qp(qp, &a,
		     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		"RTS");
	need(write(sock, "", 1) == 1 && read(sock, &(char){0}, 1) == 1, "socket");
}

/* ---- measuring ---- */

static void post(enum ibv_wr_opcode op, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)memory, len, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = op,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = {peer.at, peer.rkey}},
			   *bad;

	need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void reap(void)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc))
		;
	if (wc.status) {
		fprintf(stderr, "request: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
}

/* Nanoseconds of count requests, depth in flight. */
static double run(enum ibv_wr_opcode op, uint32_t len, unsigned count, unsigned depth)
{
	uint64_t begin = clock_ns();
	unsigned posted = 0;

	for (unsigned done = 0; done < count; done++) {
		while (posted < count && posted - done < depth) {
			post(op, len);
			posted++;
		}
		reap();
	}
	return (double)(clock_ns() - begin);
}

static int less(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Nanoseconds of count copies within the process. */
static double copy(uint32_t len, unsigned count)
{
	static uint8_t to[SIZE];
	uint64_t begin = clock_ns();

	for (unsigned n = 0; n < count; n++) {
		memcpy(to, memory, len);
		__asm__ volatile("" ::: "memory");
	}
	return (double)(clock_ns() - begin);
}

static double once(const char *what, uint32_t len, unsigned count)
{
	const unsigned depth = len > SMALL ? DEPTH : 1;

	if (!strcmp(what, "memcpy"))
		return copy(len, count);
	return run(strcmp(what, "read") ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, len, count, depth);
}

static void measure(const char *what, uint32_t len, unsigned count)
{
	double v[SAMPLES];

	once(what, len, count / 4 + 1);
	for (int i = 0; i < SAMPLES; i++)
		v[i] = once(what, len, count) / count;
	qsort(v, SAMPLES, sizeof *v, less);
	printf("%.3f\n", v[SAMPLES / 2] / 1000);
}

static uint8_t *new_memory(void)
{
	uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	need(p != MAP_FAILED, "mmap");
	memset(p, 1, SIZE);
	return p;
}

/* Makes the client of that kind, if this end has one. */
static void claim(const char *kind, bool far)
{
	const bool beside = !strcmp(kind, "beside"), direct = !strcmp(kind, "direct");

	if (!strcmp(kind, "plain") || (!far && !beside && strcmp(kind, "both")))
		return;
	claimed = beside ? new_memory() : memory;
	windows = !direct;
	add_client();
}

int main(int argc, char **argv)
{
	const uint32_t size = argc == 5 ? atoi(argv[3]) : 0;
	int pair[2];
	pid_t child;
	bool far;

	need(size > 0 && size <= SIZE,
		"usage: owned_cost plain|direct|owned|both|beside write|read|memcpy SIZE COUNT");
	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	child = fork();
	far = child == 0;
	sock = pair[far];
	pin(far);
	if (far)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	memory = new_memory();
	claim(argv[1], far);
	make();
	meet();
	if (!far)
		measure(argv[2], size, atoi(argv[4]));
	else
		pause();
	kill(child, SIGKILL);
	return 0;
}
