// SPDX-License-Identifier: BSD-3-Clause
/*
 * walk SIZE STEP: one pass of RDMA WRITEs of STEP bytes through a region of SIZE bytes of another
 * process, 16 in flight, from a source of SIZE bytes; prints the microseconds of a pass, the median
 * of PASSES.  An ordinary verbs program; both processes are pinned, and every page was written
 * before.
 */
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/median.h"

enum { PASSES = 7, DEPTH = 16, PAGE = 4096, GID_INDEX = 1 };

struct end {
	struct ibv_context *context;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory;
};

/* What the two ends tell each other. */
struct hello {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t qpn, rkey;
};

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void open_end(struct end *e, size_t size, int rights)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {DEPTH, 1, 1, 1, 0},
	};
	struct ibv_pd *pd;

	need(list && list[0], "no device");
	e->context = ibv_open_device(list[0]);
	need(e->context != NULL, "ibv_open_device");
	pd = ibv_alloc_pd(e->context);
	e->cq = ibv_create_cq(e->context, DEPTH, NULL, NULL, 0);
	need(pd && e->cq, "ibv_create_cq");
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(pd, &init);
	e->memory = aligned_alloc(PAGE, size);
	need(e->qp && e->memory, "ibv_create_qp");
	memset(e->memory, 1, size);
	e->mr = ibv_reg_mr(pd, e->memory, size, rights);
	need(e->mr != NULL, "ibv_reg_mr");
}

static void modify(struct end *e, struct ibv_qp_attr attr, int mask)
{
	need(ibv_modify_qp(e->qp, &attr, mask | IBV_QP_STATE) == 0, "ibv_modify_qp");
}

static void to_rts(struct end *e, const struct hello *peer)
{
	modify(e,
		(struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
			.port_num = 1,
			.qp_access_flags = IBV_ACCESS_REMOTE_WRITE},
		IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(e,
		(struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = peer->qpn,
			.max_dest_rd_atomic = 1,
			.min_rnr_timer = 12,
			.ah_attr = {.is_global = 1,
				.port_num = 1,
				.grh = {.dgid = peer->gid,
					.sgid_index = GID_INDEX,
					.hop_limit = 64}}},
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(e,
		(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.max_rd_atomic = 1},
		IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC);
}

static void meet(struct end *e, int sock, struct hello *peer)
{
	struct hello mine = {
		.addr = (uintptr_t)e->memory, .qpn = e->qp->qp_num, .rkey = e->mr->rkey};
	char byte = 0;

	need(ibv_query_gid(e->context, 1, GID_INDEX, &mine.gid) == 0, "ibv_query_gid");
	need(write(sock, &mine, sizeof mine) == sizeof mine, "write");
	need(read(sock, peer, sizeof *peer) == sizeof *peer, "the other process");
	to_rts(e, peer);
	need(write(sock, &byte, 1) == 1, "write");
	need(read(sock, &byte, 1) == 1, "the other process");
}

static void post(struct end *e, const struct hello *peer, size_t at, size_t step)
{
	struct ibv_sge sge = {(uintptr_t)e->memory + at, step, e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {peer->addr + at, peer->rkey}};

	need(ibv_post_send(e->qp, &wr, &bad) == 0, "ibv_post_send");
}

static double pass(struct end *e, const struct hello *peer, size_t size, size_t step)
{
	size_t posted = 0, done = 0;
	uint64_t begin = clock_ns();
	struct ibv_wc wc;

	while (done < size) {
		if (posted < size && posted - done < DEPTH * step) {
			post(e, peer, posted, step);
			posted += step;
			continue;
		}
		while (ibv_poll_cq(e->cq, 1, &wc) == 1) {
			need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
			done += step;
		}
	}
	return (clock_ns() - begin) / (double)NSEC_PER_USEC;
}

int main(int argc, char **argv)
{
	size_t size = argc == 3 ? strtoull(argv[1], NULL, 0) : 0;
	size_t step = argc == 3 ? strtoull(argv[2], NULL, 0) : 0;
	double us[PASSES];
	struct hello peer;
	struct end e;
	int socks[2];
	bool active;

	if (!step || !size || size % step) {
		fprintf(stderr, "usage: walk SIZE STEP (a whole number of steps)\n");
		return 2;
	}
	need(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks) == 0, "socketpair");
	active = fork() != 0;
	if (!active)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(socks[active]);
	pin(!active);
	open_end(&e, size, active ? 0 : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	meet(&e, socks[!active], &peer);
	if (!active) {
		char byte;

		return read(socks[1], &byte, 1) < 0; /* until the other end has gone */
	}
	for (int i = 0; i < PASSES; i++)
		us[i] = pass(&e, &peer, size, step);
	printf("%.4f\n", median(us, PASSES));
	return 0;
}
