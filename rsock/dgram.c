// SPDX-License-Identifier: BSD-3-Clause
/*
 * Datagrams over UD.  Each rsocket has one queue pair, and an id that listens at its port: whoever
 * asks there (SIDR) learns the queue pair's number.  A datagram begins with a header that names
 * the sender's port; its address stands in the GRH, which the adapter makes.  So a receiver can
 * answer without asking.  What is known of a peer is asked for again after a second without a
 * word from it.
 */
#include "rsock/dgram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/ip.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "face/allowed.h"
#include "rsock/wait.h"

enum {
	GRH = sizeof(struct ibv_grh),
	MAX_PAYLOAD = 4096,
	BUF = 4160, /* GRH and payload, whole cache lines */
	MIN_SLOTS = 64,
	BUCKETS = 256,
	MAX_PEERS = 4096,
	HEADER_VERSION = 1,
	RESOLVE_MS = 2000,
	SIGNAL_EVERY = 16,
	QKEY = RDMA_UDP_QKEY,
	HOPS_AT = 20, /* of an IPv4 header in the GRH's place */
};

#define FRESH_NS NSEC_PER_SEC

struct header {
	uint8_t version, type;
	uint16_t port; /* of the sender, big-endian */
	uint32_t reserved;
};

/* A place that datagrams go to. */
struct dest {
	struct dest *next;
	struct sockaddr_storage addr;
	struct ibv_ah *ah; /* NULL: not known yet */
	uint32_t qpn;
	uint64_t fresh;        /* ns: until then it need not be asked for */
	struct rdma_cm_id *id; /* asking */
	bool doubted;          /* ... as another queue pair says that it is this one */
};

struct dgram {
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	uint8_t *mem;
	size_t mem_size;
	struct ibv_mr *mr;
	uint32_t n_rx, n_tx; /* buffers */
	uint32_t max_data;   /* of a datagram: what the port's MTU leaves */
	uint32_t inline_size;
	uint32_t posted, done; /* sends */
	struct dest *bucket[BUCKETS], *peer;
	struct sockaddr_storage peer_addr; /* of rconnect(), family 0: none */
	uint32_t n_dests, n_asked;
	struct ibv_wc *ready; /* ring of those that came, n_rx of them */
	uint64_t came, taken;
	uint64_t breaches; /* datagrams that were none of the protocol's */
};

/* ---- set-up ---- */

static int to_ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	int ret = ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR};
	if (!ret)
		ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!ret)
		ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return -ret;
}

static int post_buffer(struct dgram *d, uint32_t i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)d->mem + (size_t)i * BUF,
		.length = GRH + MAX_PAYLOAD,
		.lkey = d->mr->lkey,
	};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	return -ibv_post_recv(d->qp, &wr, &bad);
}

/* So many that `bytes` of datagrams of a quarter of the longest fit. */
static uint32_t buffers_for(int bytes, int most)
{
	uint32_t n = bytes / (BUF / 4);

	if (n < MIN_SLOTS)
		n = MIN_SLOTS;
	return n < (uint32_t)most ? n : (uint32_t)most;
}

static int make_memory(struct rsocket *s, struct dgram *d)
{
	d->n_rx = buffers_for(s->opt.rcvbuf, s->opt.rqsize);
	d->n_tx = buffers_for(s->opt.sndbuf, s->opt.sqsize);
	d->inline_size = s->opt.inline_size;
	d->mem_size = (size_t)(d->n_rx + d->n_tx) * BUF;
	d->mem =
		mmap(NULL, d->mem_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (d->mem == MAP_FAILED) {
		d->mem = NULL;
		return -ENOMEM;
	}
	d->ready = calloc(d->n_rx, sizeof *d->ready);
	if (!d->ready)
		return -ENOMEM;
	d->mr = ibv_reg_mr(d->pd, d->mem, d->mem_size, IBV_ACCESS_LOCAL_WRITE);
	return d->mr ? 0 : -errno;
}

static int make_queues(struct rsocket *s, struct dgram *d, struct ibv_context *verbs)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap =
			{
				.max_send_wr = d->n_tx,
				.max_recv_wr = d->n_rx,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = d->inline_size,
			},
	};

	s->cc = ibv_create_comp_channel(verbs);
	if (!s->cc || fcntl(s->cc->fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	s->recv_cq = ibv_create_cq(verbs, d->n_rx, NULL, s->cc, 0);
	s->send_cq = ibv_create_cq(verbs, d->n_tx, NULL, s->cc, 0);
	if (!s->recv_cq || !s->send_cq)
		return -errno;
	init.recv_cq = s->recv_cq;
	init.send_cq = s->send_cq;
	d->qp = ibv_create_qp(d->pd, &init);
	return d->qp ? to_ready(d->qp) : -errno;
}

static int read_mtu(struct dgram *d, struct ibv_context *verbs)
{
	struct ibv_port_attr port;
	uint32_t mtu;
	int ret = ibv_query_port(verbs, 1, &port);

	if (ret)
		return -ret;
	mtu = 128u << port.active_mtu;
	d->max_data = (mtu < MAX_PAYLOAD ? mtu : MAX_PAYLOAD) - sizeof(struct header);
	return 0;
}

static int open_device(struct rsocket *s)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct ibv_context *verbs = list ? list[0] : NULL;
	struct dgram *d = s->dg;
	int ret = 0;

	if (list)
		rdma_free_devices(list);
	if (!verbs)
		return -ENODEV;
	d->pd = ibv_alloc_pd(verbs);
	if (!d->pd)
		return -errno;
	ret = read_mtu(d, verbs);
	if (!ret)
		ret = make_memory(s, d);
	if (!ret)
		ret = make_queues(s, d, verbs);
	for (uint32_t i = 0; i < d->n_rx && !ret; i++)
		ret = post_buffer(d, i);
	return ret;
}

static void forget_asking(struct dgram *d, struct dest *t)
{
	if (!t->id)
		return;
	rdma_destroy_id(t->id);
	t->id = NULL;
	if (!t->ah)
		d->n_asked--;
}

void dgram_free(struct rsocket *s)
{
	struct dgram *d = s->dg;

	if (!d)
		return;
	for (int b = 0; b < BUCKETS; b++) {
		while (d->bucket[b]) {
			struct dest *t = d->bucket[b];

			d->bucket[b] = t->next;
			forget_asking(d, t);
			if (t->ah)
				ibv_destroy_ah(t->ah);
			free(t);
		}
	}
	if (d->qp)
		ibv_destroy_qp(d->qp);
	rs_free_cqs(s);
	if (d->mr)
		ibv_dereg_mr(d->mr);
	if (d->mem)
		munmap(d->mem, d->mem_size);
	if (d->pd)
		ibv_dealloc_pd(d->pd);
	free(d->ready);
	free(d);
	s->dg = NULL;
}

static int listen_at(struct rsocket *s, const struct sockaddr *addr)
{
	int on = 1;

	if (rdma_create_id(s->cm, &s->id, NULL, RDMA_PS_UDP))
		return -errno;
	if (s->opt.reuseaddr &&
		rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on))
		return -errno;
	if (s->opt.v6only &&
		rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on))
		return -errno;
	if (rdma_bind_addr(s->id, (struct sockaddr *)addr) || rdma_listen(s->id, 0))
		return -errno;
	return 0;
}

int dgram_bind(struct rsocket *s, const struct sockaddr *addr, socklen_t len)
{
	size_t want =
		s->family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	int ret;

	if (s->state != RS_IDLE || s->inherited || len < want)
		return -EINVAL;
	if (addr->sa_family != s->family)
		return -EAFNOSUPPORT;
	s->dg = calloc(1, sizeof *s->dg);
	if (!s->dg)
		return -ENOMEM;
	ret = open_device(s);
	if (!ret)
		ret = listen_at(s, addr);
	if (!ret) {
		s->state = RS_BOUND;
		return 0;
	}
	if (s->id)
		rdma_destroy_id(s->id);
	s->id = NULL;
	dgram_free(s);
	if (s->cc)
		ibv_destroy_comp_channel(s->cc);
	s->cc = NULL;
	return ret;
}

/* A port of the system's choice, for one that sends before it has any. */
static int bind_somewhere(struct rsocket *s)
{
	struct sockaddr_storage any = {.ss_family = s->family};

	return s->state == RS_IDLE ? dgram_bind(s, (struct sockaddr *)&any, sizeof any) : 0;
}

/* ---- addresses ---- */

static uint16_t *port_in(struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET ? &((struct sockaddr_in *)ss)->sin_port
					: &((struct sockaddr_in6 *)ss)->sin6_port;
}

/* Only what identifies it; -EINVAL, -EAFNOSUPPORT. */
static int normalize(const struct sockaddr *sa, socklen_t len, struct sockaddr_storage *ss)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof *ss);
	if (len < sizeof *sin)
		return -EINVAL;
	ss->ss_family = sa->sa_family;
	if (sa->sa_family == AF_INET) {
		sin->sin_addr = ((const struct sockaddr_in *)sa)->sin_addr;
		sin->sin_port = ((const struct sockaddr_in *)sa)->sin_port;
		return 0;
	}
	if (sa->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	if (len < sizeof *sin6)
		return -EINVAL;
	sin6->sin6_addr = ((const struct sockaddr_in6 *)sa)->sin6_addr;
	sin6->sin6_port = ((const struct sockaddr_in6 *)sa)->sin6_port;
	return 0;
}

static struct dest **bucket_of(struct dgram *d, const struct sockaddr_storage *ss)
{
	const uint8_t *p = (const uint8_t *)ss;
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < sizeof(struct sockaddr_in6); i++)
		h = (h ^ p[i]) * 16777619u;
	return &d->bucket[h % BUCKETS];
}

static struct dest *find(struct dgram *d, const struct sockaddr_storage *ss)
{
	struct dest *t = *bucket_of(d, ss);

	while (t && memcmp(&t->addr, ss, sizeof(struct sockaddr_in6)) != 0)
		t = t->next;
	return t;
}

static void forget(struct dgram *d, struct dest *t)
{
	struct dest **link = bucket_of(d, &t->addr);

	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	if (d->peer == t)
		d->peer = NULL;
	forget_asking(d, t);
	if (t->ah)
		ibv_destroy_ah(t->ah);
	d->n_dests--;
	free(t);
}

/* Makes room: the whole first bucket from a moving place that has any. */
static void forget_some(struct dgram *d)
{
	for (uint32_t b = 0; b < BUCKETS; b++) {
		struct dest **link = &d->bucket[(d->came + b) % BUCKETS];

		while (*link && d->n_dests >= MAX_PEERS)
			forget(d, *link);
	}
}

static struct dest *enter(struct dgram *d, const struct sockaddr_storage *ss)
{
	struct dest *t, **bucket = bucket_of(d, ss);

	if (d->n_dests >= MAX_PEERS)
		forget_some(d);
	t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->addr = *ss;
	t->next = *bucket;
	*bucket = t;
	d->n_dests++;
	return t;
}

/* ---- asking ---- */

static int ask(struct rsocket *s, struct dest *t)
{
	if (rdma_create_id(s->cm, &t->id, t, RDMA_PS_UDP))
		return -errno;
	if (!t->ah)
		s->dg->n_asked++;
	if (rdma_resolve_addr(t->id, NULL, (struct sockaddr *)&t->addr, RESOLVE_MS)) {
		int err = errno;

		forget_asking(s->dg, t);
		return -err;
	}
	return 0;
}

static void answered(
	struct rsocket *s, struct dest *t, const struct ibv_ah_attr *attr, uint32_t qpn)
{
	struct ibv_ah *ah = ibv_create_ah(s->dg->pd, (struct ibv_ah_attr *)attr);

	forget_asking(s->dg, t);
	if (!ah)
		return;
	if (t->ah)
		ibv_destroy_ah(t->ah);
	t->ah = ah;
	t->qpn = qpn;
	t->doubted = false;
	t->fresh = clock_ns() + FRESH_NS;
}

/* It cannot be reached: nobody is there, or nobody answers. */
static void refused(struct rsocket *s, struct dest *t, enum rdma_cm_event_type type, int status)
{
	bool answered = type == RDMA_CM_EVENT_REJECTED || status > 0, doubted = t->doubted;

	t->doubted = false;
	if (t->ah && !answered) { /* busy, perhaps */
		forget_asking(s->dg, t);
		t->fresh = clock_ns() + FRESH_NS;
		return;
	}
	if (!doubted) /* the program did send there */
		s->err = type == RDMA_CM_EVENT_ADDR_ERROR ? EHOSTUNREACH : ECONNREFUSED;
	forget(s->dg, t);
}

static void tell_number(struct rsocket *s, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {.qp_num = s->dg->qp->qp_num};

	(void)rdma_accept(id, &param);
	rdma_destroy_id(id);
}

static void on_event(struct rsocket *s, struct rdma_cm_event *e)
{
	enum rdma_cm_event_type type = e->event;
	struct rdma_ud_param ud = e->param.ud;
	struct rdma_cm_id *id = e->id;
	struct rdma_conn_param none = {0};
	struct dest *t = id->context;
	int err = 0, status = e->status;

	rdma_ack_cm_event(e);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		tell_number(s, id);
		return;
	}
	if (id == s->id || !t)
		return;
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = rdma_resolve_route(id, RESOLVE_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = rdma_connect(id, &none);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		answered(s, t, &ud.ah_attr, ud.qp_num);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		refused(s, t, type, status);
		break;
	default:
		break;
	}
	if (err)
		refused(s, t, RDMA_CM_EVENT_ADDR_ERROR, 0);
}

void dgram_events(struct rsocket *s)
{
	struct rdma_cm_event *e;
	bool any = false;

	while (s->dg && rdma_get_cm_event(s->cm, &e) == 0) {
		on_event(s, e);
		any = true;
	}
	if (any)
		sleepers_wake(s->sleepers);
}

/* ---- in ---- */

static const struct allowed kind = {
	.opcode = IBV_WC_RECV,
	.imm = ALLOWED_NO_IMM,
	.min_bytes = GRH + sizeof(struct header),
	.max_bytes = GRH + MAX_PAYLOAD,
};

/* The header of a datagram, NULL: it is none of ours. */
static const struct header *header_of(const struct dgram *d, const struct ibv_wc *wc)
{
	const struct header *h = (const void *)(d->mem + (size_t)wc->wr_id * BUF + GRH);

	if (!allowed_fits(&kind, wc) || !(wc->wc_flags & IBV_WC_GRH) ||
		h->version != HEADER_VERSION || !h->port)
		return NULL;
	return h;
}

/* Is it 1, 10, 100 and so on? */
static bool is_round(uint64_t n)
{
	while (n && n % 10 == 0)
		n /= 10;
	return n == 1;
}

static void tell_breach(struct rsocket *s, const struct ibv_wc *wc, const char *what)
{
	uint64_t n = ++s->dg->breaches;

	allowed_breach(s->dg->pd->context);
	if (is_round(n))
		log_line(LOG_LVL_INFO,
			"rsocket %d: a datagram from QP %#x is dropped: %s (the %llu. that is none "
			"of an rsocket's)",
			s->fd, wc->src_qp, what, (unsigned long long)n);
}

/* Who sent it: the address from the GRH. */
static void sender_of(
	const struct dgram *d, const struct ibv_wc *wc, uint16_t port, struct sockaddr_storage *ss)
{
	const uint8_t *grh = d->mem + (size_t)wc->wr_id * BUF;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof *ss);
	if (grh[0] >> 4 == 6) {
		sin6->sin6_family = AF_INET6;
		memcpy(&sin6->sin6_addr, grh + offsetof(struct ibv_grh, sgid), 16);
	} else {
		sin->sin_family = AF_INET;
		memcpy(&sin->sin_addr, grh + HOPS_AT + offsetof(struct iphdr, saddr), 4);
	}
	*port_in(ss) = port;
}

/*
 * Another queue pair says that it is a destination we know.  The peer may have made a new one, or
 * somebody lies: the CM of its host knows.
 */
static void doubt(struct rsocket *s, struct dest *t)
{
	if (!t->id)
		t->doubted = ask(s, t) == 0;
}

/* A word from a peer: how to answer it.  False: whether it is from there is being asked for. */
static bool learn(struct rsocket *s, struct ibv_wc *wc, const struct sockaddr_storage *from)
{
	struct dgram *d = s->dg;
	struct dest *t = find(d, from);
	struct ibv_grh *grh = (void *)(d->mem + (size_t)wc->wr_id * BUF);
	struct ibv_ah *ah;

	if (t && t->ah && t->qpn == wc->src_qp) {
		t->fresh = clock_coarse_ns() + FRESH_NS;
		return true;
	}
	if (t && t->ah) {
		doubt(s, t);
		return false;
	}
	if (!t)
		t = enter(d, from);
	ah = t ? ibv_create_ah_from_wc(d->pd, wc, grh, 1) : NULL;
	if (!ah)
		return true;
	forget_asking(d, t);
	t->ah = ah;
	t->qpn = wc->src_qp;
	t->fresh = clock_coarse_ns() + FRESH_NS;
	return true;
}

/* rconnect() has named somebody else. */
static bool is_elsewhere(const struct dgram *d, const struct sockaddr_storage *from)
{
	return d->peer_addr.ss_family &&
	       memcmp(&d->peer_addr, from, sizeof(struct sockaddr_in6)) != 0;
}

/* Is it for the program? */
static bool take(struct rsocket *s, struct ibv_wc *wc)
{
	struct dgram *d = s->dg;
	const struct header *h = header_of(d, wc);
	struct sockaddr_storage from;

	if (!h) {
		tell_breach(s, wc,
			allowed_fits(&kind, wc) ? "it has no header of an rsocket's"
						: allowed_not(&kind, 1, wc));
		return false;
	}
	sender_of(d, wc, h->port, &from);
	if (is_elsewhere(d, &from))
		return false;
	if (learn(s, wc, &from) || !d->peer_addr.ss_family)
		return true;
	tell_breach(s, wc, "it is not the queue pair of the port that it names");
	return false;
}

static void came(struct rsocket *s, struct ibv_wc *wc)
{
	struct dgram *d = s->dg;

	if (wc->status)
		return;
	if (take(s, wc))
		d->ready[d->came++ % d->n_rx] = *wc;
	else
		(void)post_buffer(d, wc->wr_id);
}

void dgram_progress(struct rsocket *s)
{
	struct dgram *d = s->dg;
	struct ibv_wc wc[16];
	uint64_t before;
	int n;

	if (!d)
		return;
	before = d->came;
	while ((n = ibv_poll_cq(s->recv_cq, 16, wc)) > 0)
		for (int i = 0; i < n; i++)
			came(s, &wc[i]);
	while (d->posted != d->done && (n = ibv_poll_cq(s->send_cq, 16, wc)) > 0)
		for (int i = 0; i < n; i++)
			d->done = (uint32_t)wc[i].wr_id + 1;
	if (before != d->came)
		sleepers_wake(s->sleepers);
}

bool dgram_readable(const struct rsocket *s)
{
	return s->dg && s->dg->came != s->dg->taken;
}

ssize_t dgram_take(
	struct rsocket *s, const struct iovec *iov, int n, bool peek, struct sockaddr_storage *from)
{
	struct dgram *d = s->dg;
	const struct ibv_wc *wc;
	const struct header *h;
	const uint8_t *p;
	size_t len, left;
	int ret = bind_somewhere(s);

	if (ret)
		return ret;
	if (!dgram_readable(s))
		return -EAGAIN;
	d = s->dg;
	wc = &d->ready[d->taken % d->n_rx];
	h = (const void *)(d->mem + (size_t)wc->wr_id * BUF + GRH);
	p = (const uint8_t *)(h + 1);
	len = left = wc->byte_len - GRH - sizeof *h;
	if (from)
		sender_of(d, wc, h->port, from);
	for (int i = 0; i < n && left; i++) {
		size_t part = iov[i].iov_len < left ? iov[i].iov_len : left;

		memcpy(iov[i].iov_base, p, part);
		p += part;
		left -= part;
	}
	if (!peek) {
		d->taken++;
		(void)post_buffer(d, wc->wr_id);
	}
	return len;
}

/* ---- out ---- */

bool dgram_writable(const struct rsocket *s)
{
	const struct dgram *d = s->dg;

	return !d || (d->posted - d->done < d->n_tx && !d->n_asked);
}

int dgram_connect(struct rsocket *s, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_storage ss;
	int ret;

	if (s->inherited)
		return -EINVAL;
	if (addr->sa_family == AF_UNSPEC) {
		if (s->dg)
			s->dg->peer_addr.ss_family = 0;
		return 0;
	}
	ret = normalize(addr, len, &ss);
	if (!ret && ss.ss_family != s->family)
		ret = -EAFNOSUPPORT;
	if (!ret)
		ret = bind_somewhere(s);
	if (!ret)
		s->dg->peer_addr = ss;
	return ret;
}

int dgram_peer(const struct rsocket *s, struct sockaddr_storage *peer)
{
	if (!s->dg || !s->dg->peer_addr.ss_family)
		return -ENOTCONN;
	*peer = s->dg->peer_addr;
	return 0;
}

/* The destination, which can be sent to at once: -EAGAIN, it is being asked for. */
static int look_up(struct rsocket *s, const struct sockaddr_storage *ss, struct dest **out)
{
	struct dgram *d = s->dg;
	struct dest *t = find(d, ss);
	int ret;

	if (!t)
		t = enter(d, ss);
	if (!t)
		return -ENOMEM;
	if (!t->id && (!t->ah || clock_coarse_ns() > t->fresh)) {
		ret = ask(s, t);
		if (ret) {
			if (!t->ah)
				forget(d, t);
			return ret;
		}
		dgram_events(s); /* the first steps need no time */
		t = find(d, ss);
		if (!t) {
			ret = s->err ? -s->err : -EHOSTUNREACH;
			s->err = 0;
			return ret;
		}
	}
	*out = t;
	return t->ah ? 0 : -EAGAIN;
}

static int post_datagram(struct dgram *d, struct dest *t, size_t len)
{
	uint8_t *buf = d->mem + (size_t)(d->n_rx + d->posted % d->n_tx) * BUF;
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = len, .lkey = d->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = d->posted,
			.opcode = IBV_WR_SEND,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.ud = {.ah = t->ah, .remote_qpn = t->qpn, .remote_qkey = QKEY},
		};
	int ret;

	if (len <= d->inline_size)
		wr.send_flags |= IBV_SEND_INLINE;
	if (d->posted % SIGNAL_EVERY == SIGNAL_EVERY - 1)
		wr.send_flags |= IBV_SEND_SIGNALED;
	ret = -ibv_post_send(d->qp, &wr, &bad);
	if (!ret)
		d->posted++;
	return ret;
}

ssize_t dgram_put(
	struct rsocket *s, const struct iovec *iov, int n, const struct sockaddr *to, socklen_t len)
{
	struct sockaddr_storage ss;
	struct header *h;
	struct dest *t;
	size_t total = 0;
	uint8_t *p;
	int ret = bind_somewhere(s);

	if (!ret && to)
		ret = normalize(to, len, &ss);
	else if (!ret)
		ret = dgram_peer(s, &ss) ? -EDESTADDRREQ : 0;
	if (ret)
		return ret;
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	if (total > s->dg->max_data)
		return -EMSGSIZE;
	if (s->dg->posted - s->dg->done >= s->dg->n_tx)
		return -EAGAIN;
	ret = look_up(s, &ss, &t);
	if (ret)
		return ret;
	h = (void *)(s->dg->mem + (size_t)(s->dg->n_rx + s->dg->posted % s->dg->n_tx) * BUF);
	*h = (struct header){.version = HEADER_VERSION, .port = rdma_get_src_port(s->id)};
	p = (uint8_t *)(h + 1);
	for (int i = 0; i < n; i++) {
		memcpy(p, iov[i].iov_base, iov[i].iov_len);
		p += iov[i].iov_len;
	}
	ret = post_datagram(s->dg, t, sizeof *h + total);
	return ret ? ret : (ssize_t)total;
}
