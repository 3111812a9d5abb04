// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/other_end.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "hca/proc/peer.h"
#include "hca/seg/token.h"

enum { FIND_AGAIN_NS = NSEC_PER_MSEC, FIND_TRIES = 50 };

int qp_prepare_channels(struct peer *process, const struct end *e)
{
	int rc = 0;

	if (e->send_cq.cq)
		rc = peer_prepare_channel(process, e->send_cq.cq->channel);
	if (!rc && e->recv_cq.cq)
		rc = peer_prepare_channel(process, e->recv_cq.cq->channel);
	return rc;
}

/* Takes process, with its reference, as the other end. */
static int take_peer(struct hca_qp *qp, struct peer *process, uint32_t index)
{
	struct end *e = malloc(sizeof *e);
	int rc = e ? end_init(e, &process->view, index) : -ENOMEM;

	if (!rc)
		rc = qp_prepare_channels(process, e);
	if (!rc && qp->process && qp->process != process) {
		log_line(LOG_LVL_WARN, "QP %#x: its peer %#x moved to another process", qp->me.qpn,
			e->qpn);
		rc = -EPROTO;
	}
	if (rc) {
		free(e);
		peer_put(process);
		return rc;
	}
	e->next = qp->ends;
	qp->ends = e;
	qp->process = process;
	qp->me.qp->peer_attach = process->view.attach;
	atomic_store_explicit(&qp->peer, e, memory_order_seq_cst);
	return 0;
}

static int find_peer(struct hca_qp *qp)
{
	struct peer *process;
	uint32_t index;
	int rc = peer_find(qp->me.qp->dest_qpn, &process, &index);

	qp->next_find_ns = clock_coarse_ns() + FIND_AGAIN_NS;
	return rc ? rc : take_peer(qp, process, index);
}

void qp_find_peer(struct hca_qp *qp)
{
	if (qp_connects(qp) && clock_coarse_ns() >= qp->next_find_ns)
		find_peer(qp);
}

void qp_await_peer(struct hca_qp *qp)
{
	const struct timespec nap = {.tv_nsec = FIND_AGAIN_NS};
	int saved = errno;

	for (int i = 0; find_peer(qp) == -ENOENT && i < FIND_TRIES; i++)
		nanosleep(&nap, NULL);
	errno = saved;
}

void qp_forget_peer(struct hca_qp *qp)
{
	struct end *e = qp->ends;

	atomic_store_explicit(&qp->peer, NULL, memory_order_release);
	qp->ends = NULL;
	while (e) {
		struct end *next = e->next;

		free(e);
		if (qp->process)
			peer_put(qp->process);
		e = next;
	}
	qp->process = NULL;
}

bool qp_bury_peer(struct hca_qp *qp)
{
	struct end *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
	struct seg_qp *s = qp->me.qp;

	if (!peer || !peer->view.pid || !view_died(&peer->view))
		return false;
	token_force(&s->token, peer->view.attach);
	token_force(&s->rq_token, peer->view.attach);
	token_force(&qp->me.view.seg->hdr.atomic_token, peer->view.attach);
	return true;
}
