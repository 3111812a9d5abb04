// SPDX-License-Identifier: BSD-3-Clause
#include "roce/congestion.h"

#include "base/clock.h"
#include "roce/proto/answers.h"
#include "roce/tx.h"

enum { ECN_MASK = 3, ECN_MARKED = 3, CNP_NS = 50 * NSEC_PER_USEC };

static void notify(struct flow *f, struct exec *x, uint64_t now)
{
	struct roce_packet head = {
		.opcode = ROCE_CN | 1,
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = f->resp.conf.dest_qpn,
		.becn = true,
	};

	if (now - f->cnp_ns < CNP_NS || !tx_put(x, &f->path, &head, NULL, 0))
		return;
	f->cnp_ns = now;
	count_add(x, CTR_WIRE_CNPS_SENT, 1);
}

bool congestion_note(
	struct flow *f, struct exec *x, uint8_t tos, const struct roce_packet *p, uint64_t now)
{
	if ((tos & ECN_MASK) == ECN_MARKED && p->op->act != ROCE_CNP)
		notify(f, x, now);
	if (p->op->act != ROCE_CNP)
		return false;
	count_add(x, CTR_WIRE_CNPS_CAME, 1);
	if (f->asks)
		rc_req_congested(&f->req);
	return true;
}
