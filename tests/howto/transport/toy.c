// SPDX-License-Identifier: BSD-3-Clause
#include "tests/howto/transport/toy.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "hca/exec/fail.h"
#include "hca/exec/flush.h"
#include "hca/exec/range.h"
#include "hca/exec/respond.h"
#include "hca/exec/way.h"
#include "hca/proc/proc.h"
#include "hca/run/far.h"
#include "hca/seg/token.h"

enum {
	PIECE = 1024, /* of a message, in one packet */
	WINDOW = 4,   /* requests that are sent before the first of them is answered */
	LOOK_MS = 1,
	RNR_NS = NSEC_PER_MSEC,
	RNR_FOREVER = 7,
	NUMBERS = 1 << 24, /* of messages: as PSNs, but each connection begins with 0 */
	INTERFACE = 0x70f, /* no network interface has this number */
};

/* ASK goes to a responder, the others to a requester. */
enum kind { ASK, ACK, RNR, AGAIN, NAK };

struct packet {
	uint8_t kind, opcode, status, first, last, solicited;
	uint16_t n;
	uint32_t to, from;
	uint32_t number; /* of the message */
	uint32_t imm, rkey;
	uint64_t raddr, length, offset;
	uint8_t bytes[PIECE];
};

enum { HEADER = offsetof(struct packet, bytes) };

/* A QP of ours. */
struct joined {
	struct joined *next;
	struct hca_qp *qp;
	bool listed;
	/* the requester: under the QP's token */
	uint32_t base;   /* the first request of this connection */
	uint32_t send;   /* the request to be sent next; sq_head is the one to be completed next */
	uint64_t offset; /* so much of it is sent */
	unsigned tries;
	bool rewound;
	/* what its answers said */
	_Atomic uint32_t acked;    /* requests below were carried out */
	_Atomic uint32_t refused;  /* the one at acked: with this status */
	_Atomic uint64_t again_ns; /* it is to be sent again, then */
	_Atomic bool counts;       /* ... which is one of rnr_retry tries */
	/* the responder: under toy.lock */
	struct respond in;
	bool begun;
	_Atomic uint32_t expected;
	struct packet owed; /* the last answer, if it did not leave yet */
	bool owes;
};

static struct {
	pthread_mutex_t lock;
	struct joined *first;
	pthread_t thread;
	int fd;
	_Atomic bool open;
	_Atomic unsigned count[TOY_COUNTERS];
} toy = {.lock = PTHREAD_MUTEX_INITIALIZER};

unsigned toy_count(enum toy_counter which)
{
	return atomic_load(&toy.count[which]);
}

static bool put(const struct packet *p)
{
	if (send(toy.fd, p, HEADER + p->n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	atomic_fetch_add(&toy.count[TOY_FULL], 1);
	return errno != EAGAIN; /* the other process has ended: what is sent is lost */
}

/* ---- the requester's half ---- */

static const struct seg_qp *seg_of(const struct joined *j)
{
	return j->qp->me.qp;
}

static uint32_t head_of(const struct joined *j)
{
	return atomic_load_explicit(&seg_of(j)->sq_head, memory_order_acquire);
}

static uint32_t number_of(const struct joined *j, uint32_t pos)
{
	return (pos - j->base) % NUMBERS;
}

/* The next piece of the request in p.  False: the memory that it names is not there. */
static bool cut_piece(const struct joined *j, struct work *w, struct packet *p)
{
	uint64_t left = w->length - j->offset;
	struct payload src;
	struct held held;
	struct sgl part;

	if (!range_source(w, &src, &held) || !src.way->here)
		return false;
	p->n = left < PIECE ? left : PIECE;
	p->first = !j->offset;
	p->last = p->n == left;
	p->offset = j->offset;
	sgl_consume(&src.l, j->offset);
	sgl_head(&src.l, p->n, &part);
	sgl_gather(&part, p->bytes);
	return true;
}

/* What is wrong with the request is told when all before it are through. */
static void fail_in_turn(struct joined *j, struct work *w, enum ibv_wc_status status)
{
	if (w->pos == head_of(j))
		work_fail(w, status);
}

/* True if all of the request was sent. */
static bool send_request(struct joined *j, struct work *w)
{
	struct packet p = {.kind = ASK, .to = seg_of(j)->dest_qpn, .from = j->qp->me.qpn};
	bool known = work_read(w, j->send);

	if (!known || (w->op->kind != OP_SEND && w->op->kind != OP_WRITE)) {
		fail_in_turn(j, w, IBV_WC_LOC_QP_OP_ERR);
		return false;
	}
	p.opcode = end_wqe(w->req, w->pos)->opcode;
	p.number = number_of(j, w->pos);
	p.solicited = !!(w->flags & IBV_SEND_SOLICITED);
	p.imm = w->imm;
	p.rkey = w->rkey;
	p.raddr = w->raddr;
	p.length = w->length;
	while (!p.last) {
		if (!cut_piece(j, w, &p)) {
			fail_in_turn(j, w, IBV_WC_LOC_PROT_ERR);
			return false;
		}
		if (!put(&p))
			return false;
		atomic_fetch_add(&toy.count[TOY_PIECES], 1);
		j->offset += p.n;
	}
	return true;
}

/* The head came back: it is sent again, and all behind it.  False: not now, or it failed. */
static bool begin_again(struct joined *j, struct work *w)
{
	uint64_t due = atomic_load(&j->again_ns);

	if (!due)
		return true;
	if (!j->rewound) {
		j->rewound = true;
		j->send = head_of(j);
		j->offset = 0;
		j->tries += atomic_load(&j->counts);
	}
	if (j->tries > seg_of(j)->rnr_retry && seg_of(j)->rnr_retry != RNR_FOREVER) {
		if (work_read(w, head_of(j)))
			work_fail(w, IBV_WC_RNR_RETRY_EXC_ERR);
		return false;
	}
	if (clock_ns() < due)
		return false;
	j->rewound = false;
	atomic_store(&j->again_ns, 0);
	return true;
}

/* Completes what was answered.  False: the last answer was a refusal. */
static bool complete(struct joined *j, struct work *w)
{
	uint32_t refused, acked = atomic_load(&j->acked);

	while (head_of(j) != acked) {
		if (work_read(w, head_of(j)))
			work_succeed(w);
		j->tries = 0;
	}
	refused = atomic_load(&j->refused);
	if (refused && work_read(w, acked))
		work_fail(w, refused);
	return !refused;
}

static void note_ahead(const struct joined *j)
{
	unsigned ahead = j->send - head_of(j);

	if (ahead > atomic_load(&toy.count[TOY_AHEAD]))
		atomic_store(&toy.count[TOY_AHEAD], ahead);
}

static void run_queue(struct joined *j, struct exec *x)
{
	const struct end *me = &j->qp->me;
	struct work w = {.x = x, .req = me};

	if (sends_flush(me))
		qp_flush(x, me, true);
	if (end_state(me) != IBV_QPS_RTS || !complete(j, &w) || !begin_again(j, &w))
		return;
	while (j->send != atomic_load_explicit(&me->qp->sq_tail, memory_order_acquire) &&
		j->send - head_of(j) < WINDOW && send_request(j, &w)) {
		j->send++;
		j->offset = 0;
		note_ahead(j);
	}
}

static void run_out(struct hca_qp *qp)
{
	struct joined *j = qp->away;
	struct exec *x = exec_self();

	if (!j || !x)
		return; /* the thread will */
	slot_enter(x->slot, qp->me.view.attach, qp->me.view.attach);
	if (token_take(&qp->me.qp->token, x->owner))
		do
			run_queue(j, x);
		while (token_drop(&qp->me.qp->token, x->owner) == TOKEN_KICKED);
	slot_leave(x->slot);
}

/* An answer.  Those that make no sense are dropped. */
static void hear(struct joined *j, const struct packet *p)
{
	uint32_t acked = atomic_load(&j->acked);
	uint32_t done = (p->number - number_of(j, acked) + (p->kind == ACK)) % NUMBERS;

	if (done > WINDOW)
		return;
	atomic_store(&j->acked, acked + done);
	if (p->kind == NAK)
		atomic_store(&j->refused, p->status ? p->status : IBV_WC_REM_OP_ERR);
	if (p->kind != RNR && p->kind != AGAIN)
		return;
	atomic_fetch_add(&toy.count[TOY_RNRS], p->kind == RNR);
	atomic_store(&j->counts, p->kind == RNR);
	atomic_store(&j->again_ns, clock_ns() + RNR_NS);
}

/* ---- the responder's half ---- */

/* A later answer says all that an ACK does. */
static void owe(struct joined *j, const struct packet *to, enum kind kind, uint8_t status)
{
	if (j->owes && j->owed.kind != ACK)
		return;
	j->owes = true;
	j->owed = (struct packet){.kind = kind,
		.status = status,
		.to = to->from,
		.from = to->to,
		.number = to->number};
}

static void answer(struct joined *j, const struct packet *p, struct verdict v)
{
	switch (v.answer) {
	case ANSWER_OK:
		owe(j, p, ACK, 0);
		return;
	case ANSWER_RNR:
		owe(j, p, RNR, 0);
		return;
	case ANSWER_BUSY:
		owe(j, p, AGAIN, 0);
		return;
	case ANSWER_LATER: /* the toy has no such thread */
		owe(j, p, NAK, IBV_WC_REM_OP_ERR);
		return;
	case ANSWER_NOT_READY: /* it has no timers, either */
		owe(j, p, NAK, IBV_WC_RETRY_EXC_ERR);
		return;
	case ANSWER_NAK:
		owe(j, p, NAK, v.status);
		return;
	}
}

static struct verdict take_piece(struct joined *j, struct exec *x, const struct packet *p)
{
	const struct request rq = {.opcode = p->opcode,
		.from_qpn = p->from,
		.psn = p->number,
		.rkey = p->rkey,
		.raddr = p->raddr,
		.length = p->length};
	const struct last_piece last = {.imm = p->imm, .solicited = p->solicited};
	struct verdict v = {.answer = ANSWER_OK};

	if (p->first)
		v = respond_begin(&j->in, x, &j->qp->me, &rq);
	if (v.answer == ANSWER_OK)
		v = respond_place(&j->in, x, p->offset, p->bytes, p->n);
	if (v.answer == ANSWER_OK && p->last)
		v = respond_end(&j->in, x, &last);
	return v;
}

/* A piece of a request.  Those behind one that was turned down come again. */
static void serve(struct joined *j, struct exec *x, const struct packet *p)
{
	uint32_t expected = atomic_load(&j->expected);
	struct verdict v;

	if (p->number != expected || (!p->first && !j->begun))
		return;
	v = take_piece(j, x, p);
	j->begun = v.answer == ANSWER_OK && !p->last;
	if (v.answer == ANSWER_OK && p->last)
		atomic_store(&j->expected, (expected + 1) % NUMBERS);
	if (v.answer != ANSWER_OK || p->last)
		answer(j, p, v);
}

/* ---- the thread ---- */

static struct joined *find_joined(uint32_t qpn)
{
	struct joined *j = toy.first;

	while (j && j->qp->me.qpn != qpn)
		j = j->next;
	return j;
}

static void take(const struct packet *p, struct exec *x)
{
	struct joined *j = find_joined(p->to);
	const struct packet not_yet = {
		.kind = AGAIN, .to = p->from, .from = p->to, .number = p->number};

	if (p->kind == ASK && j)
		serve(j, x, p);
	else if (p->kind == ASK && p->first)
		put(&not_yet); /* it comes to RTR, or was destroyed */
	else if (j)
		hear(j, p);
}

static void look_after(struct joined *j)
{
	if (j->owes && put(&j->owed))
		j->owes = false;
	run_out(j->qp);
}

static bool is_whole(const struct packet *p, ssize_t got)
{
	return got >= HEADER && p->n <= PIECE && got == HEADER + p->n;
}

static void *run_toy(void *arg)
{
	struct packet p;
	ssize_t got;

	while (atomic_load(&toy.open)) {
		struct pollfd in = {.fd = toy.fd, .events = POLLIN};
		struct exec *x;

		poll(&in, 1, LOOK_MS);
		x = exec_self();
		pthread_mutex_lock(&toy.lock);
		while (x && (got = recv(toy.fd, &p, sizeof p, MSG_DONTWAIT)) > 0)
			if (is_whole(&p, got))
				take(&p, x);
		for (struct joined *j = toy.first; j; j = j->next)
			look_after(j);
		pthread_mutex_unlock(&toy.lock);
	}
	return arg;
}

/* ---- the far end of a QP ---- */

const uint8_t toy_gid[16] = {0x20, 0x01, 0x0d, 0xb8, [12] = 't', 'o', 'y'};

static int route(struct seg_path *path)
{
	if (!atomic_load(&toy.open) || memcmp(path->dgid, toy_gid, sizeof toy_gid))
		return -EHOSTUNREACH;
	path->interface = INTERFACE;
	path->mtu = IBV_MTU_1024;
	return 0;
}

static bool reaches(const struct hca_qp *qp)
{
	return qp->me.qp->path.interface == INTERFACE && qp->init.qp_type == IBV_QPT_RC && !qp->srq;
}

static bool find(struct hca_qp *qp)
{
	struct joined *j = calloc(1, sizeof *j);

	if (!j)
		return false;
	j->qp = qp;
	j->base = j->send = head_of(j);
	atomic_store(&j->acked, j->base);
	pthread_mutex_lock(&toy.lock);
	j->next = toy.first;
	toy.first = j;
	j->listed = true;
	qp->away = j;
	pthread_mutex_unlock(&toy.lock);
	return true;
}

/* The thread does all that has to be done later, but for this. */
static bool look(struct hca_qp *qp)
{
	return !qp->away && end_state(&qp->me) == IBV_QPS_RTR && !find(qp);
}

static void run_in(struct hca_qp *qp)
{
	(void)qp; /* who found no receive asks again */
}

static enum run_end work(struct exec *x, struct hca_qp *qp, unsigned direction)
{
	(void)x;
	(void)direction;
	run_out(qp);
	return RUN_IDLE;
}

static void unlist(struct joined *j)
{
	struct joined **at = &toy.first;

	while (*at && *at != j)
		at = &(*at)->next;
	if (*at)
		*at = j->next;
	j->listed = false;
}

/* One in ERR still answers. */
static void stop(struct hca_qp *qp)
{
	struct joined *j = qp->away;

	if (!j || end_state(&qp->me) == IBV_QPS_ERR)
		return;
	pthread_mutex_lock(&toy.lock);
	unlist(j);
	pthread_mutex_unlock(&toy.lock);
}

static void forget(struct hca_qp *qp, bool live)
{
	(void)live;
	free(qp->away);
	qp->away = NULL;
}

static void psn(const struct hca_qp *qp, uint32_t *sent, uint32_t *expected)
{
	const struct joined *j = qp->away;

	*sent = qp->me.qp->sq_psn + (j ? number_of(j, head_of(j)) : 0);
	*expected = qp->me.qp->rq_psn + (j ? atomic_load(&j->expected) : 0);
}

static const struct far_ops toy_far = {
	.name = "toy",
	.route = route,
	.reaches = reaches,
	.find = find,
	.posted = run_out,
	.run_out = run_out,
	.run_in = run_in,
	.work = work,
	.look = look,
	.stop = stop,
	.forget = forget,
	.psn = psn,
};

int toy_open(int fd)
{
	int rc = far_register(&toy_far);

	if (rc)
		return rc;
	toy.fd = fd;
	atomic_store(&toy.open, true);
	rc = pthread_create(&toy.thread, NULL, run_toy, NULL);
	if (rc)
		atomic_store(&toy.open, false);
	return -rc;
}

void toy_close(void)
{
	atomic_store(&toy.open, false);
	pthread_join(toy.thread, NULL);
}
