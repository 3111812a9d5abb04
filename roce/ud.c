// SPDX-License-Identifier: BSD-3-Clause
#include "roce/ud.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "hca/proc/proc.h"
#include "hca/run/arrive.h"
#include "hca/run/far.h"
#include "hca/run/grh.h"
#include "hca/run/path.h"
#include "pages/iov.h"
#include "roce/beside.h"
#include "roce/faults.h"
#include "roce/join.h"
#include "roce/mcast.h"
#include "roce/rx.h"
#include "roce/watch.h"

enum {
	TAIL_MAX = 3 + ROCE_ICRC_LEN,
	PAYLOAD_MAX = 4096,
	WHOLE_MAX = ROCE_HEADERS_MAX + PAYLOAD_MAX + TAIL_MAX,
	PIECES = SGL_MAX + 2,
};

/* What struct hca_qp.away of a UD QP points to: it listens; its CQs are looked after as well. */
static char listens, looks;

/* ---- out ---- */

static struct roce_packet head_of(const struct leaving *d)
{
	uint8_t opcode =
		roce_opcode(ROCE_UD, ROCE_SEND, ROCE_ONLY, ROCE_DETH | (d->has_imm ? ROCE_IMM : 0));

	return (struct roce_packet){
		.op = roce_op(opcode),
		.opcode = opcode,
		.solicited = d->solicited,
		.pad = -d->length & 3,
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = d->dest_qpn,
		.psn = d->psn & ROCE_PSN_MASK,
		.qkey = d->qkey,
		.src_qpn = d->src_qpn,
		.imm = be32toh(d->imm),
		.payload_len = d->length,
	};
}

/* Headers, payload, padding and ICRC; how many pieces. */
static unsigned build(const struct tx_path *path, const struct leaving *d, uint8_t *head,
	uint8_t tail[TAIL_MAX], struct iovec piece[PIECES])
{
	struct roce_packet p = head_of(d);
	size_t head_len = roce_build(&p, head), tail_len = p.pad + ROCE_ICRC_LEN;
	uint32_t crc = icrc_begin(&path->addr, 0, head_len + d->length + tail_len, head, head_len);
	unsigned n = 1;

	piece[0] = (struct iovec){head, head_len};
	for (unsigned i = 0; i < d->n_pieces; i++) {
		piece[n++] = d->piece[i];
		crc = icrc_add(crc, d->piece[i].iov_base, d->piece[i].iov_len);
	}
	memset(tail, 0, p.pad);
	icrc_put(icrc_add(crc, tail, p.pad), tail + p.pad);
	piece[n++] = (struct iovec){tail, tail_len};
	return n;
}

static void send_with_faults(
	struct exec *x, const struct tx_path *path, const struct iovec *piece, unsigned n)
{
	uint8_t packet[WHOLE_MAX], *to = packet;

	for (unsigned i = 0; i < n; i++)
		to = mempcpy(to, piece[i].iov_base, piece[i].iov_len);
	faults_out(x, path, packet, to - packet);
}

/* Its program sends to others, and so expects answers: when it polls, it looks for them. */
static void note_sender(struct hca_qp *qp)
{
	void *away = &listens;

	if (atomic_load_explicit(&qp->away, memory_order_relaxed) == &listens &&
		atomic_compare_exchange_strong(&qp->away, &away, (void *)&looks))
		far_count(qp, 1);
}

static int send_one(struct exec *x, const struct seg_path *to, const struct leaving *d)
{
	uint8_t head[ROCE_HEADERS_MAX], tail[TAIL_MAX];
	struct iovec piece[PIECES];
	struct tx_path path;
	unsigned n;

	if (d->length > PAYLOAD_MAX || d->n_pieces > SGL_MAX) {
		count_add(x, CTR_WIRE_TOO_LONG, 1);
		return 0;
	}
	tx_path_of(&path, to, d->dest_qpn);
	n = build(&path, d, head, tail, piece);
	note_sender(d->from);
	if (!faults_set())
		return tx_now(x, &path, piece, n);
	send_with_faults(x, &path, piece, n);
	return 0;
}

/* ---- in ---- */

static void gid_of(bool ipv6, const uint8_t *addr, uint8_t gid[16])
{
	memcpy(gid, addr, 16);
	if (!ipv6) {
		memset(gid, 0, 10);
		memset(gid + 10, 0xff, 2);
	}
}

static void count_arrival(struct exec *x, enum arrived how)
{
	static const enum seg_counter why[] = {[ARRIVED_TYPE] = CTR_WIRE_DROP_TYPE,
		[ARRIVED_STATE] = CTR_WIRE_DROP_STATE,
		[ARRIVED_LENGTH] = CTR_WIRE_DROP_LENGTH};

	if (how != ARRIVED && how != ARRIVED_NO_QP)
		count_add(x, why[how], 1);
}

bool ud_take(struct exec *x, const struct roce_packet *p, const struct roce_from *from)
{
	uint8_t sgid[16], dgid[16];
	struct arrival a = {.from_qpn = p->src_qpn,
		.qkey = p->qkey,
		.imm = htobe32(p->imm),
		.has_imm = p->op->headers & ROCE_IMM,
		.solicited = p->solicited,
		.length = p->payload_len,
		.bytes = p->payload};
	enum arrived how;
	struct grh grh;
	uint32_t index;
	int kind;

	gid_of(from->ipv6, from->src, sgid);
	gid_of(from->ipv6, from->dst, dgid);
	kind = path_find_gid(dgid, &index);
	if (kind < 0 || (kind == PATH_GROUP) != (p->dest_qpn == ROCE_QPN_MASK)) {
		count_add(x, CTR_WIRE_DROP_ADDRESS, 1);
		return true;
	}
	grh_make(&grh, sgid, dgid, (uint32_t)from->tos << PATH_TCLASS_SHIFT, from->ttl);
	a.grh = grh_of(&grh, a.length, a.has_imm);
	a.ipv4 = grh.ipv4;
	if (kind == PATH_GROUP) {
		count_add(x, CTR_WIRE_MCAST_CAME, 1);
		arrive_at_group(x, dgid, &a);
		return true;
	}
	how = arrive_here(x, p->dest_qpn, &a);
	count_arrival(x, how);
	return how != ARRIVED_NO_QP;
}

/* ---- who listens ---- */

/* Has this host an address that others may reach, or is WEFT_WIRE=always? */
static bool is_worthwhile(void)
{
	const struct fabric_port *port = &proc_at()->fabric->port[0];

	if (wire_mode() == WIRE_ALWAYS)
		return true;
	for (uint32_t i = 0; wire_mode() == WIRE_AUTO && i < port->n_gids && i < FABRIC_MAX_GIDS;
		i++)
		if (*port->gid[i].ifname && strcmp(port->gid[i].ifname, "lo"))
			return true;
	return false;
}

/* For datagrams of other machines, and of other fabrics of this one.  False: for none. */
static bool opens_doors(const struct hca_qp *qp)
{
	bool wire = is_worthwhile() && !join_wire();

	return (wire_mode() != WIRE_NEVER && !beside_listen(qp->me.qpn)) || wire;
}

static void attend(struct hca_qp *qp, bool takes)
{
	void *away = atomic_load(&qp->away);

	if (!takes) {
		away = atomic_exchange(&qp->away, NULL);
		if (away)
			rx_listen(-1);
		if (away == &looks)
			far_count(qp, -1);
		return;
	}
	if (away || !opens_doors(qp) || watch_start())
		return;
	atomic_store(&qp->away, (void *)&listens);
	rx_listen(1);
	watch_wake();
}

static void join(const uint8_t mgid[16], bool joins)
{
	if (joins && (!is_worthwhile() || join_wire() || watch_start()))
		return;
	mcast_join(mgid, joins);
	if (joins)
		watch_wake(); /* it has another socket to sleep on */
}

const struct datagram_ops ud_ops = {
	.beside = true, .send = send_one, .listen = attend, .join = join};
