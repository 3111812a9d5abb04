// SPDX-License-Identifier: BSD-3-Clause
#include "roce/proto/requester.h"

#include <errno.h>
#include <stdlib.h>

#include "roce/proto/answers.h"

enum { FILL_MAX = 16 }; /* packets */

int rc_req_start(struct rc_requester *q, const struct rc_req_config *conf,
	const struct rc_req_ops *ops, void *arg)
{
	int err;

	*q = (struct rc_requester){.ops = ops, .arg = arg, .conf = *conf};
	if (!conf->entries || conf->entries & (conf->entries - 1) || !conf->mtu)
		return -EINVAL;
	err = reads_start(&q->reads, conf->max_reads);
	q->entries = calloc(conf->entries, sizeof *q->entries);
	if (err || !q->entries) {
		rc_req_end(q);
		return -ENOMEM;
	}
	q->una = q->acked = q->next = q->end = q->sent = q->recover = conf->psn & ROCE_PSN_MASK;
	q->retries = conf->retry_cnt;
	q->rnr_tries = conf->rnr_retry;
	window_start(&q->window, conf->mtu);
	return 0;
}

void rc_req_end(struct rc_requester *q)
{
	reads_end(&q->reads);
	free(q->entries);
	q->entries = NULL;
	q->dead = true;
}

/* PSNs for the next entry, if it is posted and there is a slot for it. */
static bool begin_entry(struct rc_requester *q)
{
	struct rc_entry *e = req_entry(q, q->tail);

	if (q->tail - q->head == q->conf.entries || !q->ops->request(q->arg, q->tail, &e->r))
		return false;
	e->psn = q->end;
	e->packets = e->r.act == ROCE_SEND || e->r.act == ROCE_WRITE || e->r.act == ROCE_READ
			     ? roce_packets(e->r.length, q->conf.mtu)
			     : 1;
	q->end = roce_psn_add(q->end, e->packets);
	q->at = q->tail++;
	return true;
}

static int opcode_of(const struct rc_requester *q, const struct rc_request *r, int place)
{
	unsigned set = 0;

	if (r->act == ROCE_WRITE && place & ROCE_FIRST)
		set |= ROCE_RETH;
	if (place & ROCE_LAST && r->has_imm)
		set |= ROCE_IMM;
	if (place & ROCE_LAST && r->has_inv)
		set |= ROCE_IETH;
	return roce_opcode(q->conf.unreliable ? ROCE_UC : ROCE_RC, r->act, place, set);
}

static struct roce_packet head_of(
	const struct rc_requester *q, const struct rc_entry *e, int opcode, uint32_t psn)
{
	return (struct roce_packet){
		.op = roce_op(opcode),
		.opcode = opcode,
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = q->conf.dest_qpn,
		.psn = psn,
		.again = q->other_is_weft && roce_psn_diff(q->sent, psn) > 0,
		.va = e->r.va,
		.rkey = e->r.rkey,
		.length = e->r.length,
		.imm = e->r.imm,
		.invalidate = e->r.imm,
		.flush = e->r.flush,
		.swap_add = e->r.swap_add,
		.compare = e->r.compare,
	};
}

/* One packet of a SEND or WRITE. */
static bool send_data(struct rc_requester *q, uint32_t number, uint32_t psn, bool ack_req)
{
	const struct rc_entry *e = req_entry(q, number);
	uint32_t i = (psn - e->psn) & ROCE_PSN_MASK;
	int place = (i == 0 ? ROCE_FIRST : 0) | (i + 1 == e->packets ? ROCE_LAST : 0);
	struct roce_packet head = head_of(q, e, opcode_of(q, &e->r, place), psn);
	uint64_t offset = (uint64_t)i * q->conf.mtu;
	uint64_t left = e->r.length - offset;

	head.payload_len = left < q->conf.mtu ? left : q->conf.mtu;
	head.pad = -head.payload_len & 3;
	head.solicited = place & ROCE_LAST && e->r.solicited;
	head.ack_req = !q->conf.unreliable && (ack_req || place & ROCE_LAST);
	return q->ops->send(q->arg, &head, number, offset, head.payload_len);
}

static bool send_ask(
	struct rc_requester *q, const struct rc_read *read, uint32_t psn, uint32_t packets)
{
	const struct rc_entry *e = req_entry(q, read->entry);
	static const uint16_t headers[] = {
		[ROCE_READ] = ROCE_RETH,
		[ROCE_COMPARE_SWAP] = ROCE_ATOMIC_ETH,
		[ROCE_FETCH_ADD] = ROCE_ATOMIC_ETH,
		[ROCE_FLUSH] = ROCE_FETH | ROCE_RETH,
		[ROCE_ATOMIC_WRITE] = ROCE_RETH,
	};
	struct roce_packet head =
		head_of(q, e, roce_opcode(ROCE_RC, e->r.act, ROCE_ONLY, headers[e->r.act]), psn);
	uint64_t offset = (uint64_t)((psn - e->psn) & ROCE_PSN_MASK) * q->conf.mtu;
	uint64_t left = e->r.length - offset, most = (uint64_t)packets * q->conf.mtu;

	if (e->r.act == ROCE_READ) {
		head.va += offset;
		head.length = left < most ? left : most;
	}
	head.ack_req = true;
	head.payload_len = e->r.act == ROCE_ATOMIC_WRITE ? 8 : 0;
	return q->ops->send(q->arg, &head, read->entry, 0, head.payload_len);
}

/* One response that is missing keeps back `una`, but not what is asked for behind it. */
static uint32_t under_way(struct rc_requester *q)
{
	return roce_psn_diff(q->next, q->una) - reads_came_from(&q->reads, q->una);
}

/* How many packets more may be under way; one at least where none is. */
static uint32_t room_in_window(struct rc_requester *q)
{
	uint32_t n = under_way(q);

	if (q->conf.unreliable)
		return WINDOW_MAX;
	return n < q->window.psns ? q->window.psns - n : n == 0;
}

/*
 * How many packets of a READ are asked for at once.  The parts of an entry are always the same
 * ones: the responder knows a request that it has seen by where it begins, and what it covers.
 */
static uint32_t read_part(const struct rc_requester *q)
{
	uint32_t part = q->window.limit / 4;

	return part > READ_PACKETS_MAX ? READ_PACKETS_MAX : part ? part : 1;
}

/* A part of a READ, or another request whose answer carries data. */
static bool send_read(struct rc_requester *q, uint64_t now, uint32_t room)
{
	const struct rc_entry *e = req_entry(q, q->at);
	uint32_t left = roce_psn_diff(entry_end(e), q->next), part = read_part(q);
	struct rc_read read = {
		.entry = q->at,
		.psn = q->next,
		.packets = left < part ? left : part,
		.offset = (uint64_t)((q->next - e->psn) & ROCE_PSN_MASK) * q->conf.mtu,
		.asked = now,
		.again = roce_psn_diff(q->sent, q->next) > 0,
		.resent = q->resent,
	};

	/* half of it beyond the window, so that one that was made smaller does not halve the rate
	 */
	if (q->reads.count == q->reads.room || (room < read.packets / 2 && under_way(q)))
		return false;
	if (!send_ask(q, &read, read.psn, read.packets))
		return false;
	*reads_add(&q->reads) = read;
	q->next = roce_psn_add(q->next, read.packets);
	return true;
}

/* A packet now and then asks for an acknowledgement, so that the window moves on. */
static bool wants_ack(struct rc_requester *q, uint32_t room)
{
	if (++q->since_ack_req < q->window.psns / 4 && room > 1)
		return false;
	q->since_ack_req = 0;
	return true;
}

static void time_it(struct rc_requester *q, uint32_t psn, uint64_t now)
{
	if (!q->timed_at) {
		q->timed_psn = psn;
		q->timed_at = now;
	}
}

static bool send_plain(struct rc_requester *q, uint64_t now, uint32_t room)
{
	const struct rc_entry *e = req_entry(q, q->at);
	bool last = roce_psn_add(q->next, 1) == entry_end(e);
	bool ack_req = wants_ack(q, room) || last;

	if (!send_data(q, q->at, q->next, ack_req))
		return false;
	if (ack_req)
		time_it(q, q->next, now);
	q->next = roce_psn_add(q->next, 1);
	if (q->conf.unreliable)
		q->acked = q->una = q->next;
	return true;
}

/* Moves to the entry of `next`; false: there is nothing to send. */
static bool find_entry(struct rc_requester *q)
{
	const struct rc_entry *e;

	if (q->next == q->end)
		return begin_entry(q);
	e = req_entry(q, q->at);
	while (roce_psn_diff(q->next, entry_end(e)) >= 0)
		e = req_entry(q, ++q->at);
	return true;
}

static bool fence_holds(struct rc_requester *q)
{
	const struct rc_entry *e = req_entry(q, q->at);

	return e->r.fence && q->next == e->psn && q->reads.count;
}

static bool send_one(struct rc_requester *q, uint64_t now)
{
	uint32_t room = room_in_window(q);

	if (!room || !find_entry(q) || fence_holds(q))
		return false;
	if (req_answered_by_data(req_entry(q, q->at)->r.act)) {
		if (!send_read(q, now, room))
			return false;
	} else if (!send_plain(q, now, room)) {
		return false;
	}
	if (roce_psn_diff(q->next, q->sent) > 0)
		q->sent = q->next;
	if (!q->asked)
		q->asked = q->progress = now;
	if (q->conf.unreliable)
		req_settle(q, now);
	return true;
}

/* Asks anew for what is missing of a read.  False: there was no room. */
static bool ask_again(struct rc_requester *q, struct rc_read *read, uint64_t now)
{
	uint32_t packets, psn = read_hole(read, &packets);

	read->asked = now;
	read->again = true;
	return send_ask(q, read, psn, packets);
}

static bool resend_oldest(struct rc_requester *q, uint64_t now)
{
	struct rc_read *read = reads_find(&q->reads, q->una);

	if (read)
		return ask_again(q, read, now);
	return send_data(q, req_entry_of(q, q->una), q->una, true);
}

void rc_req_run(struct rc_requester *q, uint64_t now)
{
	if (q->unsent && !q->dead && !q->rnr_until)
		q->unsent = !resend_oldest(q, now);
	while (!q->dead && !q->failing && !q->rnr_until && send_one(q, now))
		;
}

uint32_t req_entry_of(struct rc_requester *q, uint32_t psn)
{
	uint32_t number = q->head;

	while (number + 1 != q->tail && roce_psn_diff(psn, entry_end(req_entry(q, number))) >= 0)
		number++;
	return number;
}

bool req_ask_missing(
	struct rc_requester *q, struct rc_read *read, uint32_t from, uint32_t end, uint64_t now)
{
	uint32_t packets;
	bool any = false;

	while ((from = read_missing(read, from, end, &packets)) < end) {
		q->resent++;
		send_ask(q, read, roce_psn_add(read->psn, from), packets);
		from += packets;
		any = true;
	}
	if (!any)
		return false;
	read->asked = now;
	read->chased = end;
	read->again = true;
	return true;
}

void req_resend_oldest(struct rc_requester *q, uint64_t now)
{
	q->resent++;
	q->unsent = !resend_oldest(q, now);
}

/* So many at once: twice as many for each that was missing right behind. */
static uint32_t fill_at(struct rc_requester *q, uint32_t psn)
{
	uint32_t n = psn == q->filled && q->fill ? 2 * q->fill : 1;

	return n <= FILL_MAX ? n : 0;
}

bool req_fill(struct rc_requester *q, uint32_t psn)
{
	uint32_t n = fill_at(q, psn), left = n;

	q->other_keeps &= n > 0;
	if (!q->other_keeps || reads_find(&q->reads, psn))
		return false;
	for (; left && roce_psn_diff(psn, q->next) < 0; left--, psn = roce_psn_add(psn, 1)) {
		uint32_t entry = req_entry_of(q, psn);

		if (req_answered_by_data(req_entry(q, entry)->r.act) ||
			!send_data(q, entry, psn, true))
			break;
		q->resent++;
	}
	q->filled = psn;
	q->fill = n;
	q->timed_at = 0;
	return left < n;
}

void req_go_back(struct rc_requester *q, uint32_t psn, uint64_t now)
{
	struct rc_read *read;

	if (roce_psn_diff(psn, q->una) < 0)
		psn = q->una;
	read = reads_find(&q->reads, psn);
	q->timed_at = 0;
	q->went_back = q->unsent = false;
	if (read && (read->got || read->psn != psn)) {
		if (!read_complete(read)) {
			q->resent++;
			ask_again(q, read, now);
		}
		psn = roce_psn_add(read->psn, read->packets);
	}
	if (roce_psn_diff(psn, q->next) >= 0)
		return;
	q->resent += roce_psn_diff(q->next, psn);
	reads_cut(&q->reads, psn);
	q->next = psn;
	q->at = q->head;
}
