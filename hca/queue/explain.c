// SPDX-License-Identifier: BSD-3-Clause
#include "hca/queue/explain.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/gid.h"
#include "base/log.h"
#include "hca/exec/resolve.h"
#include "hca/obj/qp.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/run/far.h"
#include "hca/run/near.h"
#include "hca/seg/opcode.h"
#include "rdv/claim.h"
#include "rdv/fabrics.h"

enum { WHY = 400, WHO = 96, TEN = 10 };

static const char *const status_names[EXPLAIN_STATUSES] = {
	[IBV_WC_SUCCESS] = "IBV_WC_SUCCESS",
	[IBV_WC_LOC_LEN_ERR] = "IBV_WC_LOC_LEN_ERR",
	[IBV_WC_LOC_QP_OP_ERR] = "IBV_WC_LOC_QP_OP_ERR",
	[IBV_WC_LOC_PROT_ERR] = "IBV_WC_LOC_PROT_ERR",
	[IBV_WC_WR_FLUSH_ERR] = "IBV_WC_WR_FLUSH_ERR",
	[IBV_WC_MW_BIND_ERR] = "IBV_WC_MW_BIND_ERR",
	[IBV_WC_LOC_ACCESS_ERR] = "IBV_WC_LOC_ACCESS_ERR",
	[IBV_WC_REM_INV_REQ_ERR] = "IBV_WC_REM_INV_REQ_ERR",
	[IBV_WC_REM_ACCESS_ERR] = "IBV_WC_REM_ACCESS_ERR",
	[IBV_WC_REM_OP_ERR] = "IBV_WC_REM_OP_ERR",
	[IBV_WC_RETRY_EXC_ERR] = "IBV_WC_RETRY_EXC_ERR",
	[IBV_WC_RNR_RETRY_EXC_ERR] = "IBV_WC_RNR_RETRY_EXC_ERR",
};

static const char *const state_names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

static const char *status_name(unsigned status)
{
	return status < EXPLAIN_STATUSES && status_names[status] ? status_names[status]
								 : "an error of no name";
}

static const char *state_name(uint32_t state)
{
	return state < sizeof state_names / sizeof *state_names ? state_names[state] : "no state";
}

static const char *op_name(unsigned opcode)
{
	const char *name = op_of(opcode)->name;

	return name ? name : "request of no known kind";
}

/* Is this one to be told?  Every tenfold of it is counted aloud. */
static bool first_of(const struct hca_qp *qp, _Atomic uint32_t *seen, const char *what)
{
	uint32_t n = atomic_fetch_add_explicit(seen, 1, memory_order_relaxed) + 1, power = TEN;

	while (power < n && power <= UINT32_MAX / TEN)
		power *= TEN;
	if (n == power)
		log_line(LOG_LVL_INFO, "QP %#x: %s, %u times by now", qp->me.qpn, what, n);
	return n == 1;
}

/* ---- who ---- */

static void who(char *to, size_t size, const struct view *v)
{
	const struct seg_header *h = &v->seg->hdr;

	snprintf(to, size, "process %d (%.*s)", v->pid ? v->pid : (int)getpid(),
		(int)sizeof h->comm, h->comm);
}

/* The other end is a QP of another machine, whose address this is.  False: it is none. */
static bool host_of(const struct hca_qp *qp, char to[WHO])
{
	return qp->me.qp->path.interface && gid_text(qp->me.qp->path.dgid, to);
}

/* ---- keys ---- */

static const struct {
	unsigned bit;
	const char *name;
} rights[] = {
	{IBV_ACCESS_LOCAL_WRITE, "LOCAL_WRITE"},
	{IBV_ACCESS_REMOTE_WRITE, "REMOTE_WRITE"},
	{IBV_ACCESS_REMOTE_READ, "REMOTE_READ"},
	{IBV_ACCESS_REMOTE_ATOMIC, "REMOTE_ATOMIC"},
	{IBV_ACCESS_FLUSH_GLOBAL, "FLUSH_GLOBAL"},
	{IBV_ACCESS_FLUSH_PERSISTENT, "FLUSH_PERSISTENT"},
};

/* The first right of need that is not in have; "" if there is none. */
static const char *missing(unsigned need, unsigned have)
{
	for (unsigned i = 0; i < sizeof rights / sizeof *rights; i++)
		if (need & ~have & rights[i].bit)
			return rights[i].name;
	return "";
}

/* Why that key does not cover that range; false if it does, now. */
static bool key_fault(const struct view *v, uint32_t pd, uint32_t key, uint64_t addr, uint64_t len,
	unsigned need, char why[WHY])
{
	const struct seg_mr *mr = seg_mr_of(v->seg, key);
	uint64_t iova = mr->iova, length = mr->length;

	if (!mr_has_key(mr, key))
		snprintf(why, WHY, "there is no region or window with the key %#x", key);
	else if (mr->pd != pd)
		snprintf(why, WHY, "the key %#x is of another protection domain than the QP", key);
	else if (*missing(need, mr->access))
		snprintf(why, WHY, "the key %#x does not give the right %s", key,
			missing(need, mr->access));
	else if (addr < iova || addr - iova > length || len > length - (addr - iova))
		snprintf(why, WHY,
			"[%#" PRIx64 ", +%" PRIu64 ") is not within the key %#x, which is for "
			"[%#" PRIx64 ", +%" PRIu64 ")",
			addr, len, key, iova, length);
	else
		return false;
	return true;
}

/* Do only functions of a peer client reach what that key is for? */
static bool is_owned(const struct view *v, uint32_t key)
{
	const struct seg_mr *mr = seg_mr_of(v->seg, key);

	return mr_has_key(mr, key) && mr->flags & MR_OWNED;
}

static uint64_t length_of(const struct hca_qp *qp, const struct seg_wqe *w)
{
	uint64_t len = 0;

	if (w->flags & WQE_INLINE)
		return w->inline_len;
	for (unsigned i = 0; i < w->num_sge && i < qp->max_sge; i++)
		len += w->sge[i].length;
	return len;
}

static void why_local(const struct hca_qp *qp, const struct seg_wqe *w, char why[WHY])
{
	unsigned need = op_of(w->opcode)->traits & OP_SINK ? IBV_ACCESS_LOCAL_WRITE : 0;
	bool owned = false;

	for (unsigned i = 0; i < w->num_sge && i < qp->max_sge; i++)
		if (w->sge[i].length && key_fault(&qp->me.view, qp->me.pd, w->sge[i].lkey,
						w->sge[i].addr, w->sge[i].length, need, why))
			return;
	for (unsigned i = 0; i < w->num_sge && i < qp->max_sge; i++)
		owned |= w->sge[i].length && is_owned(&qp->me.view, w->sge[i].lkey);
	snprintf(why, WHY, "its own memory could not be reached: %s",
		owned ? "a function of its peer client failed"
		      : "was it unmapped, or a key taken back since?");
}

static void why_remote(
	const struct hca_qp *qp, const struct end *peer, const struct seg_wqe *w, char why[WHY])
{
	unsigned need = op_rights(op_of(w->opcode), w->flush);
	uint64_t len = length_of(qp, w);

	if (op_of(w->opcode)->kind == OP_FLUSH)
		len = flush_is_whole(w->flush) ? 0 : w->range_len;
	if (!peer)
		snprintf(why, WHY, "the responder refused the key %#x at %#" PRIx64, w->rkey,
			w->raddr);
	else if (key_fault(&peer->view, peer->pd, w->rkey, w->raddr, len, need, why))
		return;
	else if (is_owned(&peer->view, w->rkey))
		snprintf(why, WHY,
			"a function of the peer client that the memory at %#" PRIx64
			" is of failed",
			w->raddr);
	else
		snprintf(why, WHY,
			"the key %#x at %#" PRIx64 " was refused, and is in order by now, or its "
			"memory is gone, or it is a window of another QP",
			w->rkey, w->raddr);
}

/* ---- the other statuses ---- */

static void why_invalid(const struct end *peer, const struct seg_wqe *w, char why[WHY])
{
	const struct op *op = op_of(w->opcode);
	unsigned need = op_rights(op, w->flush);

	if (peer && *missing(need, peer->qp->access))
		snprintf(why, WHY, "the QP there does not allow %s (qp_access_flags)",
			missing(need, peer->qp->access));
	else if ((op->kind == OP_ATOMIC || op->kind == OP_ATOMIC_WRITE) &&
		 w->raddr % sizeof(uint64_t))
		snprintf(why, WHY, "the address %#" PRIx64 " is not a multiple of 8", w->raddr);
	else if (op->traits & OP_RD_ATOMIC && peer && !peer->qp->max_dest_rd_atomic)
		snprintf(why, WHY, "max_dest_rd_atomic of the QP there is 0");
	else if (op->takes_recv && !need)
		snprintf(why, WHY,
			"the receive there is shorter than the message, or the key to "
			"invalidate is none");
	else
		snprintf(why, WHY,
			"the responder found the request invalid: do qp_access_flags and "
			"max_dest_rd_atomic of the QP there allow it?");
}

/* No process of this fabric has it: most likely one of another has, and which ones are there? */
static void why_not_here(uint32_t qpn, char why[WHY])
{
	uint64_t ours = be64toh(proc_at()->fabric->node_guid);
	struct rdv_fabric all[RDV_FABRICS_MAX];
	size_t n = rdv_fabrics_find(all, ours);
	char whose[32] = "", others[WHY / 2];
	uid_t uid;

	if (claim_owner(qpn / CLAIM_QPNS, &uid) && uid != geteuid())
		snprintf(whose, sizeof whose, " It is of user %u.", (unsigned)uid);
	rdv_fabrics_text(others, sizeof others, all, n);
	snprintf(why, WHY,
		"no QP %#x in this fabric: is the peer of another user, fabric or runtime "
		"directory?%s %s%s",
		qpn, whose, n ? "Here live, too: " : "No other fabric lives here", others);
}

static void why_nobody(const struct hca_qp *qp, char why[WHY])
{
	if (qp->me.qp->path.beside)
		snprintf(why, WHY,
			"nothing came from there: the process is gone or stopped, its QP was "
			"destroyed, or is connected to another QP or address than ours");
	else if (atomic_load_explicit(&qp->meant, memory_order_relaxed) == NEAR_NOT_MEANT)
		snprintf(why, WHY,
			"the QP with that number is connected to another address than ours, or "
			"ours to another than its own");
	else
		why_not_here(qp->me.qp->dest_qpn, why);
}

/* Nobody answered. */
static void why_retry(const struct hca_qp *qp, const struct end *peer, char why[WHY])
{
	const struct seg_qp *q;
	char host[WHO];

	if (!peer && !near_elsewhere(qp) && host_of(qp, host) &&
		qp->me.qp->mtu > qp->me.qp->path.mtu) {
		snprintf(why, WHY,
			"nothing came from there: the link of this host does not carry the path "
			"MTU, which is %u, not %u",
			seg_mtu_bytes(qp->me.qp->mtu), seg_mtu_bytes(qp->me.qp->path.mtu));
		return;
	}
	if (!peer && !near_elsewhere(qp) && host_of(qp, host)) {
		snprintf(why, WHY,
			"nothing came from there: the host, its UDP port 4791, the QP or its "
			"process is gone or stopped, a link on the way does not carry the path MTU "
			"(%u), or the QP is connected to another address than ours",
			seg_mtu_bytes(qp->me.qp->mtu));
		return;
	}
	if (!peer) {
		why_nobody(qp, why);
		return;
	}
	q = peer->qp;
	if (view_dead(&peer->view) || (peer->view.pid && view_died(&peer->view)))
		snprintf(why, WHY, "the process is dead");
	else if (end_stale(peer))
		snprintf(why, WHY, "the QP was reset or destroyed");
	else if (!end_receives(peer))
		snprintf(why, WHY, "the QP is in state %s, not RTR", state_name(end_state(peer)));
	else if (q->dest_qpn != qp->me.qpn)
		snprintf(why, WHY, "the QP is connected to QP %#x", q->dest_qpn);
	else if (q->rq_psn != qp->me.qp->sq_psn)
		snprintf(why, WHY, "the QP expects PSN %#x, and ours is %#x", q->rq_psn,
			qp->me.qp->sq_psn);
	else if (peer->view.pid && view_stopped(&peer->view))
		snprintf(why, WHY, "the process is stopped");
	else
		snprintf(why, WHY, "the QP was not ready for it in time, and is by now");
}

static void why_of(
	struct hca_qp *qp, const struct end *peer, const struct seg_wqe *w, char why[WHY])
{
	switch (w->status) {
	case IBV_WC_LOC_PROT_ERR:
		why_local(qp, w, why);
		break;
	case IBV_WC_LOC_LEN_ERR:
		snprintf(why, WHY, "%" PRIu64 " bytes is no length for it", length_of(qp, w));
		break;
	case IBV_WC_LOC_QP_OP_ERR:
		if (qp->me.type == IBV_QPT_UD)
			snprintf(why, WHY,
				"the address handle is of another protection domain than the QP");
		else
			snprintf(why, WHY,
				"the QP cannot do it: max_rd_atomic is %u, or the key to "
				"invalidate is none",
				qp->me.qp->max_rd_atomic);
		break;
	case IBV_WC_MW_BIND_ERR:
		snprintf(why, WHY, "the window, its region, the range or the rights do not fit");
		break;
	case IBV_WC_REM_ACCESS_ERR:
		why_remote(qp, peer, w, why);
		break;
	case IBV_WC_REM_INV_REQ_ERR:
		why_invalid(peer, w, why);
		break;
	case IBV_WC_REM_OP_ERR:
		snprintf(why, WHY, "%s",
			op_of(w->opcode)->takes_recv
				? "the memory of the receive there is not as it was posted"
				: "the memory there could not be reached");
		break;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		snprintf(why, WHY, "no receive was posted there within %u retries (rnr_retry)",
			qp->me.qp->rnr_retry);
		break;
	case IBV_WC_RETRY_EXC_ERR:
		why_retry(qp, peer, why);
		break;
	case IBV_WC_WR_FLUSH_ERR:
		snprintf(why, WHY, "the QP is in ERR, and takes nothing more");
		break;
	default:
		snprintf(why, WHY, "no reason is known");
	}
}

/* ---- completions ---- */

/*
 * Is anybody to be told?  What an ordinary end brings, and a queue that is full for a while, is no
 * reason to speak to those who did not ask.
 */
static bool to_tell(bool ordinary)
{
	return ordinary ? log_enabled(LOG_LVL_INFO) : log_refusals();
}

static void tell_send(struct hca_qp *qp, const struct end *peer, const struct seg_wqe *w)
{
	char to[WHO] = "no known process", why[WHY];

	if (peer)
		who(to, sizeof to, &peer->view);
	else if (qp->me.qp->path.beside)
		snprintf(to, sizeof to, "another fabric of this user");
	else
		host_of(qp, to);
	why_of(qp, peer, w, why);
	log_line(LOG_LVL_INFO,
		"QP %#x: wr_id %#" PRIx64 ", %s of %" PRIu64
		" bytes to QP %#x of %s, ends in %s: %s",
		qp->me.qpn, w->wr_id, op_name(w->opcode), length_of(qp, w),
		peer ? peer->qpn : qp->me.qp->dest_qpn, to, status_name(w->status), why);
}

void explain_send(struct hca_qp *qp, const struct seg_wqe *w)
{
	struct exec *x;
	unsigned status = w->status;

	explain_fault(qp);
	if (!to_tell(status == IBV_WC_WR_FLUSH_ERR))
		return;
	status = status < EXPLAIN_STATUSES ? status : 0;
	if (!first_of(qp, &qp->ended[status], status_name(status)))
		return;
	x = exec_self();
	if (!x)
		return;
	/* The other end stays as long as somebody may be using it. */
	slot_enter(x->slot, qp->me.view.attach, qp->me.view.attach);
	tell_send(qp, far_end(qp), w);
	slot_leave(x->slot);
}

static const char *why_receive(unsigned status)
{
	switch (status) {
	case IBV_WC_WR_FLUSH_ERR:
		return "the QP is in ERR, and receives nothing more";
	case IBV_WC_LOC_LEN_ERR:
		return "the message is longer than the receive";
	case IBV_WC_LOC_PROT_ERR:
		return "a key of the receive does not cover its buffer, with the right "
		       "LOCAL_WRITE, or a function of its peer client failed";
	default:
		return "no reason is known";
	}
}

void explain_recv(struct hca_qp *qp, const struct ibv_wc *wc)
{
	unsigned status = wc->status;

	explain_fault(qp);
	if (!qp || !to_tell(status == IBV_WC_WR_FLUSH_ERR))
		return;
	status = status < EXPLAIN_STATUSES ? status : 0;
	if (first_of(qp, &qp->ended[status], status_name(status)))
		log_line(LOG_LVL_INFO, "QP %#x: wr_id %#" PRIx64 ", a receive, ends in %s: %s",
			qp->me.qpn, wc->wr_id, status_name(status), why_receive(status));
}

void explain_rxq(const struct ibv_wc *wc)
{
	struct exec *x = to_tell(wc->status == IBV_WC_WR_FLUSH_ERR) ? exec_self() : NULL;
	struct view us = {.seg = proc_seg()};
	int64_t index = x ? view_find_qpn(&us, wc->qp_num) : -ENOENT;

	if (index < 0)
		return;
	explain_recv(table_enter_qp(x, index), wc);
	slot_leave(x->slot);
}

/* ---- at the responder ---- */

void explain_fault(struct hca_qp *qp)
{
	struct seg_fault *f = qp ? &qp->me.qp->fault : NULL;
	uint32_t gen = qp ? end_gen(&qp->me) + 1 : 0;
	char why[WHY];

	if (!f || atomic_load_explicit(&f->gen, memory_order_acquire) != gen || !log_refusals())
		return;
	if (f->status != IBV_WC_REM_ACCESS_ERR && *missing(f->need, qp->me.qp->access))
		snprintf(why, sizeof why, "the QP does not allow %s (qp_access_flags)",
			missing(f->need, qp->me.qp->access));
	else if (f->status != IBV_WC_REM_ACCESS_ERR)
		snprintf(why, sizeof why, "it is invalid here");
	else if (!key_fault(&qp->me.view, qp->me.pd, f->rkey, f->raddr, f->length, f->need, why))
		snprintf(why, sizeof why,
			is_owned(&qp->me.view, f->rkey)
				? "a function of the peer client with the key %#x failed"
				: "the key %#x was in order only later, or is a window's",
			f->rkey);
	/* Once; several threads may come by. */
	if (atomic_exchange_explicit(&f->gen, 0, memory_order_relaxed) != gen)
		return;
	log_line(LOG_LVL_INFO,
		"QP %#x goes to ERR: QP %#x of process %d (%.*s) asked for %s of %" PRIu64
		" bytes at %#" PRIx64 ", which gave it %s: %s",
		qp->me.qpn, f->from_qpn, f->from_pid, (int)sizeof f->comm, f->comm,
		op_name(f->opcode), f->length, f->raddr, status_name(f->status), why);
}

void explain_event(uint32_t index)
{
	struct exec *x = log_refusals() ? exec_self() : NULL;

	if (!x)
		return;
	explain_fault(table_enter_qp(x, index));
	slot_leave(x->slot);
}

void explain_overrun(struct hca_cq *cq)
{
	uint32_t resizes = atomic_load_explicit(&cq->s->resizes, memory_order_relaxed);

	if (!log_refusals() || atomic_exchange_explicit(&cq->explained, true, memory_order_relaxed))
		return;
	log_refusal("a CQ of %u entries is lost: more completions came than it has room for, and "
		    "ibv_poll_cq fails from now on; create it larger, or poll it sooner",
		cq->s->place[resizes & 1].limit);
}

/* ---- posts that are refused ---- */

static void why_not_sent(const struct hca_qp *qp, const struct ibv_send_wr *wr, char why[WHY])
{
	const struct op *op = op_of(wr->opcode);
	uint32_t state = end_state(&qp->me);
	uint64_t len = 0;

	for (int i = 0; i < wr->num_sge && (uint32_t)wr->num_sge <= qp->max_sge; i++)
		len += wr->sg_list[i].length;
	if (state < IBV_QPS_RTS)
		snprintf(why, WHY, "the QP is in state %s, not RTS", state_name(state));
	else if (!op_exists(op))
		snprintf(why, WHY, "there is no opcode %u", wr->opcode);
	else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->max_sge)
		snprintf(why, WHY, "it has %d SGEs, and max_send_sge is %u", wr->num_sge,
			qp->max_sge);
	else if (wr->send_flags & IBV_SEND_INLINE && !op_may_be_inline(op))
		snprintf(why, WHY, "a request of that kind cannot be inline");
	else if (wr->send_flags & IBV_SEND_INLINE && len > qp->max_inline)
		snprintf(why, WHY, "it has %" PRIu64 " inline bytes, and max_inline_data is %u",
			len, qp->max_inline);
	else if (qp->me.type == IBV_QPT_UD && !wr->wr.ud.ah)
		snprintf(why, WHY, "a datagram needs an address handle");
	else
		snprintf(why, WHY, "a QP of that type has no such request, or no such flags");
}

void explain_post_send(struct hca_qp *qp, const struct ibv_send_wr *wr, int rc)
{
	char why[WHY];

	if (!to_tell(rc == -ENOMEM) ||
		!first_of(qp, &qp->refused[rc == -ENOMEM], "posts were refused"))
		return;
	if (rc == -ENOMEM)
		snprintf(why, sizeof why,
			"the send queue is full: of its %u requests none was polled, or all after "
			"it are without IBV_SEND_SIGNALED",
			qp->sq_depth);
	else
		why_not_sent(qp, wr, why);
	log_line(LOG_LVL_INFO, "QP %#x: wr_id %#" PRIx64 ", %s, is refused (%s): %s", qp->me.qpn,
		wr->wr_id, op_name(wr->opcode), strerror(-rc), why);
}

void explain_post_recv(struct hca_qp *qp, const struct ibv_recv_wr *wr, int rc)
{
	if (!to_tell(rc == -ENOMEM) ||
		!first_of(qp, &qp->refused[rc == -ENOMEM], "posts were refused"))
		return;
	if (qp->srq)
		log_line(LOG_LVL_INFO,
			"QP %#x: wr_id %#" PRIx64 ", a receive, is refused (%s): the QP takes its "
			"receives from an SRQ; post them there, by ibv_post_srq_recv",
			qp->me.qpn, wr->wr_id, strerror(-rc));
	else if (rc == -ENOMEM)
		log_line(LOG_LVL_INFO,
			"QP %#x: wr_id %#" PRIx64 ", a receive, is refused (%s): all %u are posted",
			qp->me.qpn, wr->wr_id, strerror(-rc), qp->rq_depth);
	else
		log_line(LOG_LVL_INFO,
			"QP %#x: wr_id %#" PRIx64
			", a receive of %d SGEs, is refused (%s): the QP is in state %s, and its "
			"max_recv_sge is %u",
			qp->me.qpn, wr->wr_id, wr->num_sge, strerror(-rc),
			state_name(end_state(&qp->me)), qp->rq_max_sge);
}

/* ---- the end ---- */

void explain_end(struct hca_qp *qp)
{
	if (!log_enabled(LOG_LVL_INFO))
		return;
	explain_fault(qp);
	for (unsigned i = 0; i < EXPLAIN_STATUSES; i++) {
		uint32_t n = atomic_exchange_explicit(&qp->ended[i], 0, memory_order_relaxed);

		if (n > 1)
			log_line(LOG_LVL_INFO, "QP %#x: %u completions in all ended in %s",
				qp->me.qpn, n, status_name(i));
	}
	atomic_store_explicit(&qp->refused[0], 0, memory_order_relaxed);
	atomic_store_explicit(&qp->refused[1], 0, memory_order_relaxed);
}
