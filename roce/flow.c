// SPDX-License-Identifier: BSD-3-Clause
#include "roce/flow.h"

#include <stdlib.h>

#include "hca/run/worker.h"
#include "roce/port/keeper.h"

enum { TABLE = 1024 };

static struct flow *table[TABLE];
static unsigned count[KEEPER_FDS];

static struct rc_resp_config responder_of(const struct seg_qp *s)
{
	return (struct rc_resp_config){
		.unreliable = atomic_load_explicit(&s->type, memory_order_relaxed) == IBV_QPT_UC,
		.mtu = seg_mtu_bytes(s->mtu),
		.dest_qpn = s->dest_qpn,
		.psn = s->rq_psn,
		.max_reads = s->max_dest_rd_atomic,
		.min_rnr_timer = s->rnr_timer,
	};
}

struct flow *flow_new(struct hca_qp *qp)
{
	struct rc_resp_config conf = responder_of(qp->me.qp);
	struct flow *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->qp = qp;
	f->qpn = qp->me.qpn;
	f->unreliable = conf.unreliable;
	f->replies = true;
	tx_path_of(&f->path, &qp->me.qp->path, conf.dest_qpn);
	if (rc_resp_start(&f->resp, &conf, NULL, f)) {
		free(f);
		return NULL;
	}
	return f;
}

void flow_free(struct flow *f)
{
	kept_clear(&f->kept);
	kept_clear(&f->late);
	if (f->asks)
		rc_req_end(&f->req);
	rc_resp_end(&f->resp);
	free(f);
}

void flow_meets_weft(struct flow *f)
{
	f->origin.weft = f->resp.weft = f->req.other_is_weft = true;
}

void flow_for_worker(struct flow *f, unsigned direction)
{
	f->for_worker = true;
	worker_add(f->qp, direction);
}

void flow_count_up(struct flow *f, struct exec *x)
{
	static const enum seg_counter names[FLOW_COUNTS] = {CTR_WIRE_RESENT, CTR_WIRE_PROBES,
		CTR_WIRE_TIMEOUTS, CTR_WIRE_NAKS, CTR_WIRE_RNR_NAKS, CTR_WIRE_DUPLICATES,
		CTR_WIRE_OUT_OF_SEQUENCE, CTR_WIRE_RNR_SENT, CTR_WIRE_DROP_AHEAD};
	const uint64_t now[FLOW_COUNTS] = {f->req.resent, f->req.probes, f->req.timeouts,
		f->req.nak_psn, f->req.rnr_naks, f->resp.duplicates, f->resp.out_of_sequence,
		f->resp.rnr_naks, f->resp.ahead.passed};

	for (unsigned i = 0; i < FLOW_COUNTS; i++)
		if (now[i] != f->told[i]) {
			/* one that was started anew counts from 0 */
			count_add(x, names[i], now[i] - (now[i] < f->told[i] ? 0 : f->told[i]));
			f->told[i] = now[i];
		}
}

static int family_of(const struct flow *f)
{
	return f->path.addr.ipv6 ? KEEPER_IPV6 : KEEPER_IPV4;
}

void flow_add(struct flow *f)
{
	struct flow **at = &table[f->qpn % TABLE];

	f->next = *at;
	*at = f;
	count[family_of(f)]++;
}

void flow_del(struct flow *f)
{
	struct flow **at = &table[f->qpn % TABLE];

	while (*at && *at != f)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = f->next;
	count[family_of(f)]--;
}

struct flow *flow_find(uint32_t qpn)
{
	struct flow *f = table[qpn % TABLE];

	while (f && f->qpn != qpn)
		f = f->next;
	return f;
}

unsigned flow_count(int family)
{
	return count[family];
}

void flow_each(void (*visit)(struct flow *f, void *arg), void *arg)
{
	for (unsigned i = 0; i < TABLE; i++)
		for (struct flow *f = table[i]; f; f = f->next)
			visit(f, arg);
}

void flow_forked_child(void)
{
	for (unsigned i = 0; i < TABLE; i++)
		table[i] = NULL;
	for (unsigned i = 0; i < KEEPER_FDS; i++)
		count[i] = 0;
}
