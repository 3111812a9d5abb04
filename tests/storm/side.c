// SPDX-License-Identifier: BSD-3-Clause
/* What an agent does with verbs. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "agent_side.h"

enum { CANARY = 0xa5, KIND_RECV = 1, HEAD = 4, POLL_MAX = 16, RECV_SIZE = 4096, SHORT_MS = 50 };

static const int all_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

void side_trap(struct side *s, enum trap_kind kind)
{
	if (s->trap != kind)
		return;
#if defined(__x86_64__)
	__asm__ __volatile__("int3" ::: "memory");
#endif
}

/* ---- objects ---- */

static int map_memory(struct side *s)
{
	size_t size = (size_t)AGENT_QPS * AREA_SIZE;

	s->map = mmap(NULL, size + 2 * CANARY_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->map == MAP_FAILED)
		return -ENOMEM;
	s->mem = s->map + CANARY_SIZE;
	memset(s->map, CANARY, CANARY_SIZE);
	memset(s->mem + size, CANARY, CANARY_SIZE);
	return 0;
}

static int open_device(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		return -ENODEV;
	s->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!s->ctx)
		return -errno;
	return ibv_query_gid(s->ctx, 1, 0, &s->gid) ? -EIO : 0;
}

int side_open(struct side *s)
{
	int rc = map_memory(s);

	if (!rc)
		rc = open_device(s);
	if (rc)
		return rc;
	s->pd = ibv_alloc_pd(s->ctx);
	s->channel = s->polls ? NULL : ibv_create_comp_channel(s->ctx);
	if (!s->pd || (!s->polls && !s->channel))
		return -errno;
	s->cq = ibv_create_cq(s->ctx, AGENT_QPS * 2 * AGENT_DEPTH, NULL, s->channel, 0);
	s->mr = ibv_reg_mr(s->pd, s->mem, (size_t)AGENT_QPS * AREA_SIZE, all_access);
	if (!s->cq || !s->mr)
		return -errno;
	for (unsigned i = 0; i < AGENT_QPS; i++)
		s->qp[i].area = s->mem + (size_t)i * AREA_SIZE;
	return s->channel ? -ibv_req_notify_cq(s->cq, 0) : 0;
}

/* ---- memory that comes and goes ---- */

static int dereg_lent(struct side *s)
{
	int rc = s->lent ? -ibv_dereg_mr(s->lent) : 0;

	s->lent = NULL;
	return rc;
}

static int reg_lent(struct side *s)
{
	s->lent = ibv_reg_mr(s->pd, s->lent_mem, LENT_SIZE, all_access);
	return s->lent ? 0 : -errno;
}

int side_lend(struct side *s, struct agent_addr *addr)
{
	int rc = dereg_lent(s);

	if (!s->lent_mem)
		s->lent_mem = mmap(NULL, LENT_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->lent_mem == MAP_FAILED)
		return -ENOMEM;
	if (!rc)
		rc = reg_lent(s);
	if (rc)
		return rc;
	addr->rkey = s->lent->rkey;
	addr->va = (uintptr_t)s->lent_mem - AREA_WRITE;
	return 0;
}

int side_take_back(struct side *s)
{
	int rc = dereg_lent(s);

	memset(s->lent_mem, CANARY, LENT_SIZE);
	return rc ? rc : reg_lent(s);
}

int side_intact(struct side *s)
{
	for (size_t i = 0; i < LENT_SIZE; i++)
		if (s->lent_mem[i] != CANARY)
			return -EILSEQ;
	return dereg_lent(s);
}

int side_close(struct side *s)
{
	int rc = dereg_lent(s);

	for (unsigned i = 0; i < AGENT_QPS; i++)
		rc |= side_destroy_qp(s, i);
	rc |= ibv_dereg_mr(s->mr);
	rc |= ibv_destroy_cq(s->cq);
	if (s->channel)
		rc |= ibv_destroy_comp_channel(s->channel);
	rc |= ibv_dealloc_pd(s->pd);
	return rc | ibv_close_device(s->ctx);
}

int side_destroy_qp(struct side *s, unsigned i)
{
	struct side_qp *q = &s->qp[i];
	int rc = q->qp ? -ibv_destroy_qp(q->qp) : 0;

	q->qp = NULL;
	memset(&q->n, 0, sizeof q->n);
	q->send_seq = q->recv_seq = 0;
	return rc;
}

int side_new_qp(struct side *s, unsigned i, struct agent_addr *addr)
{
	struct ibv_qp_init_attr init = {.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {AGENT_DEPTH, AGENT_DEPTH, 1, 1, 0}};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = all_access};
	struct side_qp *q = &s->qp[i];
	int rc = side_destroy_qp(s, i);

	if (rc)
		return rc;
	q->qp = ibv_create_qp(s->pd, &init);
	if (!q->qp)
		return -errno;
	memset(q->area, 0, AREA_SIZE);
	*addr = (struct agent_addr){
		.qpn = q->qp->qp_num, .rkey = s->mr->rkey, .va = (uintptr_t)q->area, .gid = s->gid};
	return -ibv_modify_qp(
		q->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int side_connect(
	struct side *s, unsigned i, const struct agent_addr *to, const struct agent_tuning *t)
{
	struct side_qp *q = &s->qp[i];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qpn,
		.max_dest_rd_atomic = 8,
		.min_rnr_timer = t->min_rnr_timer,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = to->gid}}};
	int rc;

	q->peer = *to;
	rc = ibv_modify_qp(q->qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc)
		return -rc;
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = t->timeout;
	attr.retry_cnt = t->retry_cnt;
	attr.rnr_retry = t->rnr_retry;
	attr.max_rd_atomic = 8;
	return -ibv_modify_qp(q->qp, &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* ---- posting ---- */

static uint64_t make_id(unsigned i, bool recv, uint32_t n)
{
	return (uint64_t)(i << 1 | (recv ? KIND_RECV : 0)) << 32 | n;
}

int side_post_recv(struct side *s, unsigned i, uint32_t count)
{
	struct side_qp *q = &s->qp[i];

	for (; count; count--) {
		uint32_t n = q->n.recv_posted;
		struct ibv_sge sge = {(uintptr_t)q->area + AREA_RECV + n % AGENT_DEPTH * RECV_SIZE,
			RECV_SIZE, s->mr->lkey};
		struct ibv_recv_wr *bad, wr = {
						 .wr_id = make_id(i, true, n),
						 .sg_list = &sge,
						 .num_sge = 1,
					 };
		int rc;

		side_trap(s, TRAP_POST_RECV);
		rc = ibv_post_recv(q->qp, &wr, &bad);
		side_trap(s, TRAP_POST_RECV);
		if (rc)
			return -rc;
		q->n.recv_posted++;
	}
	return 0;
}

/* Each message starts with its number; the bytes behind follow from it. */
static void fill(uint8_t *at, uint32_t seq, uint32_t len)
{
	memcpy(at, &seq, len < HEAD ? len : HEAD);
	for (uint32_t i = HEAD; i < len; i++)
		at[i] = seq + i;
}

static bool is_filled(const uint8_t *at, uint32_t seq, uint32_t len)
{
	if (memcmp(at, &seq, len < HEAD ? len : HEAD))
		return false;
	for (uint32_t i = HEAD; i < len; i++)
		if (at[i] != (uint8_t)(seq + i))
			return false;
	return true;
}

static int post_one(struct side *s, unsigned i, enum ibv_wr_opcode op, uint32_t len)
{
	struct side_qp *q = &s->qp[i];
	uint32_t slot = len <= AGENT_MSG / AGENT_DEPTH
				? q->n.posted % AGENT_DEPTH * (AGENT_MSG / AGENT_DEPTH)
				: 0;
	struct ibv_sge sge = {(uintptr_t)q->area + AREA_SEND + slot, len, s->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = make_id(i, false, q->n.posted),
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = op,
				 };
	int rc;

	if (op == IBV_WR_SEND)
		fill(q->area + AREA_SEND + slot, q->send_seq++, len);
	wr.wr.rdma.rkey = q->peer.rkey;
	wr.wr.rdma.remote_addr = q->peer.va + (op == IBV_WR_RDMA_READ ? AREA_READ : AREA_WRITE);
	if (op == IBV_WR_RDMA_READ) /* not over what is still being sent */
		sge.addr = (uintptr_t)q->area + AREA_WRITE;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = q->peer.va + AREA_ATOMIC;
		wr.wr.atomic.rkey = q->peer.rkey;
		wr.wr.atomic.compare_add = 1;
		sge.addr = (uintptr_t)q->area + AREA_RESULT;
		sge.length = 8;
	}
	side_trap(s, TRAP_POST_SEND);
	rc = ibv_post_send(q->qp, &wr, &bad);
	side_trap(s, TRAP_POST_SEND);
	if (!rc)
		q->n.posted++;
	return -rc;
}

int side_post(struct side *s, unsigned i, enum ibv_wr_opcode op, uint32_t len, uint32_t count)
{
	int rc = 0;

	for (; !rc && count; count--)
		rc = post_one(s, i, op, len);
	return rc;
}

/* ---- completions ---- */

static void take_send(struct side_qp *q, const struct ibv_wc *wc)
{
	uint32_t n = q->n.send_ok + q->n.send_bad;

	if ((uint32_t)wc->wr_id != n)
		q->n.wrong++;
	if (wc->status == IBV_WC_SUCCESS) {
		q->n.send_ok++;
	} else {
		if (!q->n.send_bad++)
			q->n.first_bad = wc->status;
	}
}

static void take_recv(struct side_qp *q, const struct ibv_wc *wc)
{
	uint32_t n = q->n.recv_ok + q->n.recv_bad;
	const uint8_t *at = q->area + AREA_RECV + (uint32_t)wc->wr_id % AGENT_DEPTH * RECV_SIZE;

	if ((uint32_t)wc->wr_id != n)
		q->n.wrong++;
	if (wc->status != IBV_WC_SUCCESS) {
		q->n.recv_bad++;
		return;
	}
	q->n.recv_ok++;
	if (wc->byte_len > RECV_SIZE || !is_filled(at, q->recv_seq++, wc->byte_len))
		q->n.wrong++;
}

int side_poll(struct side *s)
{
	struct ibv_wc wc[POLL_MAX];
	int n;

	side_trap(s, TRAP_POLL);
	n = ibv_poll_cq(s->cq, POLL_MAX, wc);
	side_trap(s, TRAP_POLL);
	for (int k = 0; k < n; k++) {
		uint32_t kind = wc[k].wr_id >> 32;
		struct side_qp *q = &s->qp[(kind >> 1) % AGENT_QPS];

		if (kind & KIND_RECV)
			take_recv(q, &wc[k]);
		else
			take_send(q, &wc[k]);
	}
	return n;
}

/* Sleeps until an event comes, or for that long; inside the library without a limit. */
static int sleep_on_channel(struct side *s, uint64_t ms)
{
	struct pollfd p = {.fd = s->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *ctx;
	int n = s->sleeps_inside && ms > SHORT_MS ? 1 : poll(&p, 1, ms);

	if (n <= 0)
		return n < 0 && errno != EINTR ? -errno : 0;
	if (ibv_get_cq_event(s->channel, &cq, &ctx))
		return -errno;
	ibv_ack_cq_events(cq, 1);
	return -ibv_req_notify_cq(s->cq, 0);
}

int side_take(struct side *s, bool (*done)(const struct side_qp *q, uint64_t arg),
	const struct side_qp *q, uint64_t arg, int timeout_ms)
{
	uint64_t end = now_ms() + timeout_ms;

	for (;;) {
		int n = side_poll(s);
		uint64_t now;

		if (n < 0)
			return -EIO;
		if (done(q, arg))
			return 0;
		if (n)
			continue;
		now = now_ms();
		if (now >= end)
			return -ETIMEDOUT;
		if (s->channel) {
			int rc = sleep_on_channel(s, end - now);

			if (rc)
				return rc;
		}
	}
}
