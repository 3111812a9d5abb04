// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/verbs_pair.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/gid.h"
#include "tests/lib/check.h"

/* Both GIDs of a path are of one family. */
static uint8_t source_for(const union ibv_gid *dgid)
{
	return gid_is_ipv4(dgid->raw) ? VP_GID_INDEX : VP_GID_INDEX_IPV6;
}

struct vp_opts vp_defaults(void)
{
	return (struct vp_opts){
		.type = IBV_QPT_RC,
		.send_wr = 64,
		.recv_wr = 64,
		.sge = 4,
		.max_inline = 64,
		.cqe = 256,
		.len = 1 << 16,
		.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		.qp_access =
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		.timeout = 18, /* a second, eight times: a peer may have to wait for a CPU */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.path_mtu = IBV_MTU_1024,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
	};
}

struct ibv_context *vp_open(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *ctx = list && n ? ibv_open_device(list[0]) : NULL;

	if (!ctx)
		die("no device could be opened");
	ibv_free_device_list(list);
	return ctx;
}

static struct ibv_qp *make_qp(struct vp_end *e)
{
	const struct vp_opts *o = &e->opts;
	struct ibv_qp_init_attr init = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.qp_type = o->type,
		.srq = o->srq,
		.sq_sig_all = o->sig_all,
		.cap = {.max_send_wr = o->send_wr,
			.max_recv_wr = o->recv_wr,
			.max_send_sge = o->sge,
			.max_recv_sge = o->sge,
			.max_inline_data = o->max_inline},
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	if (!qp)
		die("ibv_create_qp");
	return qp;
}

static void make_buffer(struct vp_end *e)
{
	if (!e->len)
		return;
	e->buf = mmap(NULL, e->len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (e->buf == MAP_FAILED)
		die("mmap of %zu bytes", e->len);
	e->mr = ibv_reg_mr(e->pd, e->buf, e->len, e->opts.mr_access);
	if (!e->mr)
		die("ibv_reg_mr of %zu bytes", e->len);
}

void vp_make(struct vp_end *e, struct ibv_context *ctx, const struct vp_opts *o)
{
	struct ibv_comp_channel *on;

	*e = (struct vp_end){.ctx = ctx, .opts = *o, .len = o->len};
	e->pd = ibv_alloc_pd(ctx);
	if (!e->pd)
		die("ibv_alloc_pd");
	if (o->channel) {
		e->channel = ibv_create_comp_channel(ctx);
		if (!e->channel)
			die("ibv_create_comp_channel");
	}
	on = o->on ? o->on : e->channel;
	e->scq = ibv_create_cq(ctx, o->cqe, e, on, 0);
	e->rcq = o->one_cq ? e->scq : ibv_create_cq(ctx, o->cqe, e, on, 0);
	if (!e->scq || !e->rcq)
		die("ibv_create_cq");
	e->qp = make_qp(e);
	make_buffer(e);
}

struct ibv_qp *vp_extra_qp(struct vp_end *e)
{
	return make_qp(e);
}

void vp_free(struct vp_end *e)
{
	if (e->qp)
		CHECK_EQ(ibv_destroy_qp(e->qp), 0);
	if (e->mr)
		CHECK_EQ(ibv_dereg_mr(e->mr), 0);
	if (e->buf)
		munmap(e->buf, e->len);
	if (e->rcq != e->scq)
		CHECK_EQ(ibv_destroy_cq(e->rcq), 0);
	CHECK_EQ(ibv_destroy_cq(e->scq), 0);
	if (e->channel)
		CHECK_EQ(ibv_destroy_comp_channel(e->channel), 0);
	CHECK_EQ(ibv_dealloc_pd(e->pd), 0);
}

struct vp_addr vp_addr(const struct vp_end *e)
{
	struct vp_addr a = {
		.qpn = e->qp->qp_num,
		.psn = e->qp->qp_num & 0xffffff,
		.addr = (uintptr_t)e->buf,
		.rkey = e->mr ? e->mr->rkey : 0,
	};

	if (ibv_query_gid(e->ctx, 1, VP_GID_INDEX, &a.gid))
		die("ibv_query_gid");
	return a;
}

int vp_init(struct vp_end *e)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = e->opts.qp_access,
		.qkey = VP_QKEY,
	};

	return ibv_modify_qp(e->qp, &a,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(e->opts.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

int vp_rtr(struct vp_end *e, const struct vp_addr *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = e->opts.path_mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = e->opts.max_dest_rd_atomic,
		.min_rnr_timer = e->opts.min_rnr_timer,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = peer->gid,
				.sgid_index = source_for(&peer->gid),
				.hop_limit = 64}},
	};

	int path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (e->opts.type == IBV_QPT_UD)
		return vp_state(e, IBV_QPS_RTR);
	if (e->opts.type == IBV_QPT_UC)
		return ibv_modify_qp(e->qp, &a, IBV_QP_STATE | path);
	return ibv_modify_qp(
		e->qp, &a, IBV_QP_STATE | path | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int vp_rts(struct vp_end *e)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = e->qp->qp_num & 0xffffff,
		.timeout = e->opts.timeout,
		.retry_cnt = e->opts.retry_cnt,
		.rnr_retry = e->opts.rnr_retry,
		.max_rd_atomic = e->opts.max_rd_atomic,
	};

	if (e->opts.type != IBV_QPT_RC)
		return ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return ibv_modify_qp(e->qp, &a,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int vp_state(struct vp_end *e, enum ibv_qp_state to)
{
	struct ibv_qp_attr a = {.qp_state = to};

	return ibv_modify_qp(e->qp, &a, IBV_QP_STATE);
}

void vp_connect(struct vp_end *e, const struct vp_addr *peer)
{
	if (vp_init(e) || vp_rtr(e, peer) || vp_rts(e))
		die("QP %#x could not be connected to %#x", e->qp->qp_num, peer->qpn);
}

enum ibv_qp_state vp_get_state(struct vp_end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	if (ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init))
		die("ibv_query_qp");
	return a.qp_state;
}

static void connect_both(struct vp_end *a, struct vp_end *b)
{
	struct vp_addr to_a = vp_addr(a), to_b = vp_addr(b);

	if (vp_init(a) || vp_init(b) || vp_rtr(a, &to_b) || vp_rtr(b, &to_a) || vp_rts(a) ||
		vp_rts(b))
		die("the pair could not be connected");
}

void vp_pair(struct vp_end *a, struct vp_end *b, const struct vp_opts *o)
{
	vp_make(a, vp_open(), o);
	vp_make(b, vp_open(), o);
	connect_both(a, b);
}

void vp_pair_free(struct vp_end *a, struct vp_end *b)
{
	vp_free(a);
	vp_free(b);
	CHECK_EQ(ibv_close_device(a->ctx), 0);
	CHECK_EQ(ibv_close_device(b->ctx), 0);
}

void vp_reconnect(struct vp_end *a, struct vp_end *b)
{
	if (vp_state(a, IBV_QPS_RESET) || vp_state(b, IBV_QPS_RESET))
		die("to RESET");
	connect_both(a, b);
}

struct ibv_sge vp_sge(const struct vp_end *e, size_t off, uint32_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)e->buf + off, .length = len, .lkey = e->mr ? e->mr->lkey : 0};
}

int vp_post_recv(struct vp_end *e, uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = vp_sge(e, off, len);
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = len ? 1 : 0}, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

bool vp_is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

void vp_aim(struct ibv_send_wr *wr, uint64_t at, uint32_t rkey, uint64_t swap)
{
	if (vp_is_atomic(wr->opcode)) {
		wr->wr.atomic.remote_addr = at;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = 1;
		wr->wr.atomic.swap = swap;
	} else {
		wr->wr.rdma.remote_addr = at;
		wr->wr.rdma.rkey = rkey;
	}
}

int vp_post_send(struct vp_end *e, uint64_t id, enum ibv_wr_opcode op, unsigned flags, size_t off,
	uint32_t len, const struct vp_addr *peer, size_t peer_off)
{
	struct ibv_sge sge = vp_sge(e, off, len);
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.opcode = op,
		.send_flags = flags,
		.imm_data = htobe32((uint32_t)id)};
	struct ibv_send_wr *bad;

	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = peer->addr + peer_off;
		wr.wr.atomic.rkey = peer->rkey;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = id;
	} else if (peer) {
		wr.wr.rdma.remote_addr = peer->addr + peer_off;
		wr.wr.rdma.rkey = peer->rkey;
	}
	return ibv_post_send(e->qp, &wr, &bad);
}

int vp_post_ud(struct vp_end *e, uint64_t id, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
	size_t off, uint32_t len)
{
	struct ibv_sge sge = vp_sge(e, off, len);
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32((uint32_t)id),
		.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = qkey}};
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, &wr, &bad);
}

struct ibv_ah *vp_ah(struct vp_end *e, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = *gid, .sgid_index = source_for(gid), .hop_limit = 5}};

	return ibv_create_ah(e->pd, &attr);
}

bool vp_async(struct ibv_context *ctx, struct ibv_async_event *ev, int ms)
{
	struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1 && ibv_get_async_event(ctx, ev) == 0;
}

bool vp_poll(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	double end = now_ms() + ms;
	unsigned idle = 0;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc))) {
		if (now_ms() > end)
			return false;
		if (++idle > 200)
			usleep(100); /* two CPUs are shared by all */
	}
	return n == 1;
}

bool vp_want(struct ibv_cq *cq, struct ibv_wc *wc, enum ibv_wc_status status, uint64_t id)
{
	if (!CHECK(vp_poll(cq, wc, VP_DEADLINE_MS)))
		return false;
	return (int)CHECK_EQ(wc->status, status) & (int)CHECK_EQ(wc->wr_id, id);
}

void vp_overrun(struct vp_end *e, const struct vp_addr *to)
{
	for (int i = 0; i <= e->scq->cqe; i++)
		CHECK_EQ(vp_post_send(e, i, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, to, 0), 0);
}

enum ibv_wc_status vp_run(struct vp_end *e, struct ibv_send_wr *wr)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	struct ibv_send_wr *bad;

	CHECK_EQ(ibv_post_send(e->qp, wr, &bad), 0);
	CHECK(vp_poll(e->scq, &wc, VP_DEADLINE_MS));
	return wc.status;
}

void vp_quiet(struct ibv_cq *cq, int ms)
{
	struct ibv_wc wc;

	CHECK(!vp_poll(cq, &wc, ms));
}

struct vp_child vp_fork(void (*fn)(int fd, void *arg), void *arg)
{
	unsigned before = check_failures();
	pid_t parent = getpid();
	struct vp_child c;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		die("socketpair");
	c.pid = fork();
	if (c.pid < 0)
		die("fork");
	c.fd = sv[0];
	if (c.pid) {
		close(sv[1]);
		return c;
	}
	close(sv[0]);
	/* 0: the parent is in another pid namespace. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || (getppid() && getppid() != parent))
		_exit(1);
	fn(sv[1], arg);
	exit(check_failures() != before);
}

void vp_put(int fd, const void *p, size_t n)
{
	if (send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n)
		die("the other process has gone (send)");
}

void vp_get(int fd, void *p, size_t n)
{
	struct pollfd w = {.fd = fd, .events = POLLIN};
	ssize_t r;

	do
		r = poll(&w, 1, 3 * VP_DEADLINE_MS);
	while (r < 0 && errno == EINTR);
	if (r != 1)
		die("the other process does not answer");
	if (recv(fd, p, n, MSG_WAITALL) != (ssize_t)n)
		die("the other process has gone (recv)");
}

struct vp_addr vp_swap(int fd, const struct vp_addr *mine)
{
	struct vp_addr theirs;

	vp_put(fd, mine, sizeof *mine);
	vp_get(fd, &theirs, sizeof theirs);
	return theirs;
}

struct vp_addr vp_meet(struct vp_end *e, int fd)
{
	struct vp_addr mine = vp_addr(e), theirs = vp_swap(fd, &mine);

	vp_connect(e, &theirs);
	return theirs;
}

void vp_tell(int fd, uint64_t word)
{
	vp_put(fd, &word, sizeof word);
}

uint64_t vp_hear(int fd)
{
	uint64_t word;

	vp_get(fd, &word, sizeof word);
	return word;
}

void vp_sync(int fd)
{
	vp_tell(fd, 0x53594e43);
	CHECK_EQ(vp_hear(fd), 0x53594e43);
}

void vp_kill_join(struct vp_child *c)
{
	int status;

	kill(c->pid, SIGKILL);
	if (waitpid(c->pid, &status, 0) != c->pid)
		die("waitpid");
	close(c->fd);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

void vp_stop(const struct vp_child *c)
{
	int status;

	if (kill(c->pid, SIGSTOP) || waitpid(c->pid, &status, WUNTRACED) != c->pid)
		die("cannot stop the child");
	CHECK(WIFSTOPPED(status));
}

void vp_join(struct vp_child *c)
{
	int status;

	close(c->fd);
	if (waitpid(c->pid, &status, 0) != c->pid)
		die("waitpid");
	check_child(status);
}
