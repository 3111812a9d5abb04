// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/fake_hca.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rdv/rdv.h"

enum { MAX_EVENTS = 16 };

struct hca_pd {
	int unused;
};

struct hca_mr {
	int unused;
};

struct hca_cq {
	int polls;
};

struct hca_channel {
	int fd;
};

struct hca_qp {
	enum ibv_qp_state state;
};

struct hca_srq {
	struct ibv_srq_attr attr;
};

struct hca_xrcd {
	int unused;
};

/* Events in order; the fd counts them. */
struct queue {
	int fd, n;
	enum ibv_event_type type[MAX_EVENTS];
	void *cookie[MAX_EVENTS];
};

struct fabric_page fake_page = {
	.version = 1,
	.device = "weft0",
	.node_guid = 0x1122334455667788,
	.n_ports = 1,
	.port[0] =
		{
			.cap_mask = PORT_CAP_CM,
			.state = IBV_PORT_ACTIVE,
			.phys_state = 5,
			.max_mtu = IBV_MTU_4096,
			.active_mtu = IBV_MTU_4096,
			.link_layer = IBV_LINK_LAYER_ETHERNET,
			.active_width = 2,
			.active_speed = 32,
			.vl_cap = 4,
			.n_gids = 3,
			.n_pkeys = 1,
			.gid =
				{
					[0] = {.raw = {0xfe, 0x80, [15] = 1},
						.type = IBV_GID_TYPE_ROCE_V2},
					[2] = {.raw = {[10] = 0xff, 0xff, 127, 0, 0, 1},
						.type = IBV_GID_TYPE_ROCE_V2,
						.ifindex = 1,
						.ifname = "lo"},
				},
			.pkey = {0xffff},
		},
};
int fake_error;
struct fake_mr_call fake_mr;
void *fake_last_cookie;
int fake_live_objects;

static struct queue async_queue = {.fd = -1}, comp_queue = {.fd = -1};

static int take_error(void)
{
	int rc = fake_error;

	fake_error = 0;
	return rc;
}

static int make(void *out, size_t size)
{
	int rc = take_error();

	if (rc)
		return rc;
	*(void **)out = calloc(1, size);
	fake_live_objects++;
	return 0;
}

static int unmake(void *object)
{
	int rc = take_error();

	if (rc)
		return rc;
	free(object);
	fake_live_objects--;
	return 0;
}

static int queue_fd(struct queue *q)
{
	if (q->fd < 0)
		q->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	return q->fd;
}

static void push(struct queue *q, enum ibv_event_type type, void *cookie)
{
	q->type[q->n] = type;
	q->cookie[q->n++] = cookie;
	eventfd_write(queue_fd(q), 1);
}

static int pop(struct queue *q, enum ibv_event_type *type, void **cookie)
{
	eventfd_t one;

	if (eventfd_read(queue_fd(q), &one))
		return -errno;
	*type = q->type[0];
	*cookie = q->cookie[0];
	q->n--;
	memmove(q->type, q->type + 1, sizeof(q->type) - sizeof(*q->type));
	memmove(q->cookie, q->cookie + 1, sizeof(q->cookie) - sizeof(*q->cookie));
	return 0;
}

void fake_raise_async(enum ibv_event_type type, void *cookie)
{
	push(&async_queue, type, cookie);
}

void fake_raise_comp(void *cookie)
{
	push(&comp_queue, 0, cookie);
}

int hca_open(const struct fabric_page **page)
{
	*page = &fake_page;
	return take_error();
}

int roce_start(void)
{
	return 0;
}

void hca_query_device(const struct fabric_page *page, struct ibv_device_attr_ex *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->orig_attr.node_guid = page->node_guid;
	attr->orig_attr.phys_port_cnt = page->n_ports;
	attr->phys_port_cnt_ex = page->n_ports;
}

uint64_t hca_clock_ns(void)
{
	return 1;
}

int hca_async_fd(void)
{
	return queue_fd(&async_queue);
}

int hca_async_get(enum ibv_event_type *type, void **cookie)
{
	return pop(&async_queue, type, cookie);
}

int hca_pd_alloc(struct hca_pd **pd)
{
	return make(pd, sizeof(**pd));
}

int hca_pd_free(struct hca_pd *pd)
{
	return unmake(pd);
}

uint32_t hca_pd_handle(const struct hca_pd *pd)
{
	(void)pd;
	return 7;
}

int hca_mr_reg(struct hca_pd *pd, void *addr, uint64_t length, uint64_t iova, unsigned access,
	struct hca_mr **mr)
{
	(void)pd;
	fake_mr = (struct fake_mr_call){addr, length, iova, access};
	return make(mr, sizeof(**mr));
}

int hca_mr_dereg(struct hca_mr *mr)
{
	return unmake(mr);
}

uint32_t hca_mr_key(const struct hca_mr *mr)
{
	(void)mr;
	return 0x1234;
}

int hca_channel_create(struct hca_channel **ch)
{
	return make(ch, sizeof(**ch));
}

int hca_channel_destroy(struct hca_channel *ch)
{
	return unmake(ch);
}

int hca_channel_fd(const struct hca_channel *ch)
{
	(void)ch;
	return queue_fd(&comp_queue);
}

int hca_channel_get(struct hca_channel *ch, void **cookie)
{
	enum ibv_event_type type;

	(void)ch;
	return pop(&comp_queue, &type, cookie);
}

int hca_cq_create(
	int *cqe, struct hca_channel *channel, unsigned flags, void *cookie, struct hca_cq **cq)
{
	(void)channel, (void)flags;
	fake_last_cookie = cookie;
	*cqe = *cqe < 64 ? 64 : *cqe;
	return make(cq, sizeof(**cq));
}

int hca_cq_close(struct hca_cq *cq)
{
	(void)cq;
	return take_error();
}

void hca_cq_free(struct hca_cq *cq)
{
	unmake(cq);
}

int hca_cq_poll(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int rc = take_error();

	(void)n;
	if (rc)
		return rc;
	wc->wr_id = ++cq->polls;
	return 1;
}

int hca_cq_poll_one(struct hca_cq *cq, struct ibv_wc *wc, struct hca_wc_more *more)
{
	*more = (struct hca_wc_more){.stamp_ns = hca_clock_ns()};
	return hca_cq_poll(cq, 1, wc);
}

int hca_cq_resize(struct hca_cq *cq, int *cqe)
{
	(void)cq, (void)cqe;
	return take_error();
}

int hca_cq_moderate(struct hca_cq *cq, uint16_t count, uint16_t period_us)
{
	(void)cq, (void)count, (void)period_us;
	return take_error();
}

int hca_cq_arm(struct hca_cq *cq, bool solicited_only)
{
	(void)cq, (void)solicited_only;
	return take_error();
}

int hca_qp_create(struct hca_pd *pd, struct ibv_qp_init_attr *init,
	const struct hca_qp_parts *parts, void *cookie, struct hca_qp **qp)
{
	(void)pd, (void)parts;
	fake_last_cookie = cookie;
	init->cap.max_send_sge = HCA_MAX_SGE;
	return make(qp, sizeof(**qp));
}

int hca_qp_destroy(struct hca_qp *qp)
{
	return unmake(qp);
}

uint32_t hca_qp_num(const struct hca_qp *qp)
{
	(void)qp;
	return 0x11;
}

enum ibv_qp_state hca_qp_state(const struct hca_qp *qp)
{
	return qp->state;
}

int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	int rc = take_error();

	if (!rc && mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return rc;
}

int hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = qp->state;
	return take_error();
}

int hca_post_send(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int rc = take_error();

	(void)qp;
	if (rc)
		*bad = wr;
	return rc;
}

int hca_post_recv(struct hca_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int rc = take_error();

	(void)qp;
	if (rc)
		*bad = wr;
	return rc;
}

int hca_qp_open(struct hca_xrcd *xrcd, uint32_t qpn, struct hca_qp **qp)
{
	(void)xrcd, (void)qpn;
	return make(qp, sizeof(**qp));
}

int hca_xrcd_open(int fd, int oflag, struct hca_xrcd **xrcd)
{
	(void)fd, (void)oflag;
	return make(xrcd, sizeof(**xrcd));
}

int hca_xrcd_close(struct hca_xrcd *xrcd)
{
	return unmake(xrcd);
}

int hca_mcast_attach(struct hca_qp *qp, const union ibv_gid *gid)
{
	(void)qp, (void)gid;
	return take_error();
}

int hca_mcast_detach(struct hca_qp *qp, const union ibv_gid *gid)
{
	(void)qp, (void)gid;
	return take_error();
}

int hca_ah_create(struct hca_pd *pd, const struct ibv_ah_attr *attr, struct hca_ah **ah)
{
	int rc = make(ah, sizeof(**ah));

	(void)pd;
	if (!rc)
		(*ah)->attr = *attr;
	return rc;
}

void hca_ah_destroy(struct hca_ah *ah)
{
	unmake(ah);
}

int hca_srq_create(struct hca_pd *pd, struct ibv_srq_attr *attr, const struct hca_srq_parts *parts,
	void *cookie, struct hca_srq **srq)
{
	int rc = make(srq, sizeof(**srq));

	(void)pd, (void)parts;
	fake_last_cookie = cookie;
	if (!rc)
		(*srq)->attr = *attr;
	return rc;
}

int hca_srq_ops(struct hca_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad)
{
	(void)srq;
	*bad = wr;
	return take_error();
}

int hca_srq_destroy(struct hca_srq *srq)
{
	return unmake(srq);
}

uint32_t hca_srq_num(const struct hca_srq *srq)
{
	(void)srq;
	return 0x22;
}

int hca_srq_modify(struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	int rc = take_error();

	if (!rc && mask & IBV_SRQ_LIMIT)
		srq->attr.srq_limit = attr->srq_limit;
	return rc;
}

void hca_srq_query(struct hca_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = srq->attr;
}

int hca_post_srq_recv(struct hca_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int rc = take_error();

	(void)srq;
	if (rc)
		*bad = wr;
	return rc;
}

/* Objects that the tests of the ABI do not look into. */
struct hca_mw {
	int unused;
};

struct hca_dm {
	int unused;
};

int hca_pd_get(uint32_t handle, struct hca_pd **pd)
{
	(void)handle, (void)pd;
	return -ENOENT;
}

void hca_pd_put(struct hca_pd *pd)
{
	(void)pd;
}

int hca_mr_rereg(struct hca_mr *mr, int flags, struct hca_pd *pd, void *addr, uint64_t length,
	unsigned access)
{
	(void)mr, (void)flags, (void)pd, (void)addr, (void)length, (void)access;
	return take_error();
}

int hca_mr_null(struct hca_pd *pd, struct hca_mr **mr)
{
	(void)pd;
	return make(mr, sizeof(**mr));
}

int hca_mr_from_fd(struct hca_pd *pd, int fd, uint64_t offset, uint64_t length, uint64_t iova,
	unsigned access, struct hca_mr **mr)
{
	(void)pd, (void)fd, (void)offset, (void)length, (void)iova, (void)access;
	return make(mr, sizeof(**mr));
}

int hca_mr_get(struct hca_pd *pd, uint32_t key, struct hca_mr **mr)
{
	(void)pd, (void)key, (void)mr;
	return -ENOENT;
}

void hca_mr_put(struct hca_mr *mr)
{
	unmake(mr);
}

int hca_mr_advise(struct hca_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	const struct ibv_sge *sge, uint32_t n)
{
	(void)pd, (void)advice, (void)flags, (void)sge, (void)n;
	return take_error();
}

int hca_mw_alloc(struct hca_pd *pd, enum ibv_mw_type type, struct hca_mw **mw)
{
	(void)pd, (void)type;
	return make(mw, sizeof(**mw));
}

int hca_mw_dealloc(struct hca_mw *mw)
{
	return unmake(mw);
}

uint32_t hca_mw_key(const struct hca_mw *mw)
{
	(void)mw;
	return 0x1200;
}

int hca_dm_alloc(uint64_t size, uint32_t log_align, struct hca_dm **dm)
{
	(void)size, (void)log_align;
	return make(dm, sizeof(**dm));
}

int hca_dm_free(struct hca_dm *dm)
{
	return unmake(dm);
}

uint32_t hca_dm_handle(const struct hca_dm *dm)
{
	(void)dm;
	return 1;
}

int hca_dm_write(struct hca_dm *dm, uint64_t offset, const void *from, uint64_t length)
{
	(void)dm, (void)offset, (void)from, (void)length;
	return take_error();
}

int hca_dm_read(struct hca_dm *dm, uint64_t offset, void *to, uint64_t length)
{
	(void)dm, (void)offset, (void)to, (void)length;
	return take_error();
}

int hca_dm_reg(struct hca_pd *pd, struct hca_dm *dm, uint64_t offset, uint64_t length,
	unsigned access, struct hca_mr **mr)
{
	(void)pd, (void)dm, (void)offset, (void)length, (void)access;
	return make(mr, sizeof(**mr));
}

int hca_dm_import(struct hca_card *card, uint32_t handle, struct hca_dm **dm)
{
	(void)card, (void)handle, (void)dm;
	return -ENOENT;
}

int hca_card_import(int fd, struct hca_card **card)
{
	(void)fd, (void)card;
	return -EINVAL;
}

void hca_card_put(struct hca_card *card)
{
	(void)card;
}

void hca_dm_put(struct hca_dm *dm)
{
	unmake(dm);
}

int hca_cmd_fd(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

bool hca_cmd_fd_is_ours(int fd)
{
	(void)fd;
	return false;
}

void hca_send_start(struct hca_qp *qp)
{
	(void)qp;
}

int hca_send_put(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	(void)qp, (void)wr;
	return take_error();
}

int hca_send_commit(struct hca_qp *qp)
{
	(void)qp;
	return take_error();
}

void hca_send_abort(struct hca_qp *qp)
{
	(void)qp;
}

int rdv_revive(void)
{
	return 0;
}
