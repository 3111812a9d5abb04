// SPDX-License-Identifier: BSD-3-Clause
#include "roce/rx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/at_open.h"
#include "roce/ask.h"
#include "roce/beside.h"
#include "roce/congestion.h"
#include "roce/engine.h"
#include "roce/faults.h"
#include "roce/hand.h"
#include "roce/join.h"
#include "roce/mcast.h"
#include "roce/port/keeper.h"
#include "roce/serve.h"
#include "wire/icrc.h"

enum {
	MESSAGES = 8,
	MESSAGE_BYTES = 65536,
	LARGE = 16 << 10, /* after so much, more is likely to be there */
	LOOKS_PER_OTHER = 32,
	NO_FAMILY = -1,      /* the socket of a multicast group */
	PKEY_INDEX = 0x7fff, /* without the bit that says how full its member is */
};

static struct {
	uint8_t *bytes; /* MESSAGES of MESSAGE_BYTES */
	struct mmsghdr msg[MESSAGES];
	struct iovec piece[MESSAGES];
	struct sockaddr_in6 from[MESSAGES];
	_Alignas(struct cmsghdr) char control[MESSAGES][ROCE_CONTROL_ROOM];
	bool full; /* the last look found several */
	unsigned looks;
	uint32_t lost[KEEPER_FDS];
} rx;

static AT_OPEN_DATA rx_datagram_fn datagram;

static _Atomic unsigned listeners;

void rx_take_datagrams(rx_datagram_fn take)
{
	datagram = take;
}

void rx_listen(int change)
{
	atomic_fetch_add_explicit(&listeners, (unsigned)change, memory_order_relaxed);
}

void rx_forked_child(void)
{
	atomic_store_explicit(&listeners, 0, memory_order_relaxed);
}

static bool is_wanted(int family)
{
	return flow_count(family) || atomic_load_explicit(&listeners, memory_order_relaxed);
}

/* ---- one packet ---- */

static void drop(struct exec *x, enum seg_counter why)
{
	count_add(x, why, 1);
}

static bool is_whole(struct exec *x, const struct roce_from *from, const uint8_t *bytes, size_t n,
	unsigned index, struct roce_packet *p)
{
	static const enum seg_counter why[ROCE_FAULTS] = {
		[ROCE_TOO_SHORT] = CTR_WIRE_DROP_LENGTH,
		[ROCE_BAD_VERSION] = CTR_WIRE_DROP_VERSION,
		[ROCE_UNKNOWN_OPCODE] = CTR_WIRE_DROP_OPCODE,
		[ROCE_BAD_LENGTH] = CTR_WIRE_DROP_LENGTH,
	};
	enum roce_fault fault = roce_parse(bytes, n, p);
	struct icrc_path path = {
		.ipv6 = from->ipv6, .src_port = from->src_port, .dst_port = ROCE_PORT};
	uint16_t id = index;

	if (fault != ROCE_GOOD) {
		drop(x, why[fault]);
		return false;
	}
	memcpy(path.src, from->src, sizeof path.src);
	memcpy(path.dst, from->dst, sizeof path.dst);
	if (!icrc_check(&path, bytes, n, &id)) {
		drop(x, CTR_WIRE_DROP_ICRC);
		return false;
	}
	if ((p->pkey & PKEY_INDEX) != (ROCE_PKEY_DEFAULT & PKEY_INDEX)) {
		drop(x, CTR_WIRE_DROP_PKEY);
		return false;
	}
	return true;
}

/* Only from the address of its path, and to ours. */
static bool is_from(const struct flow *f, const struct roce_from *from)
{
	const struct icrc_path *path = &f->path.addr;

	return path->ipv6 == from->ipv6 && !memcmp(path->dst, from->src, sizeof path->dst) &&
	       !memcmp(path->src, from->dst, sizeof path->src);
}

static bool fits_type(const struct flow *f, const struct roce_packet *p)
{
	unsigned transport = p->opcode & ROCE_TRANSPORT_MASK;

	return transport == ROCE_CN || transport == (f->unreliable ? ROCE_UC : ROCE_RC);
}

static bool is_of_peer(const struct flow *f, struct exec *x, uint16_t port)
{
	switch (origin_of(&f->origin, port)) {
	case ORIGIN_FORGED:
		drop(x, CTR_WIRE_DROP_PORT);
		return false;
	case ORIGIN_OTHER:
		count_add(x, CTR_WIRE_OTHER_PORT, 1);
		return true;
	default:
		return true;
	}
}

static void fits_in(struct flow *f, uint16_t port)
{
	if (f->origin.weft)
		return;
	origin_fits(&f->origin, port, f->unreliable);
	if (f->origin.weft)
		flow_meets_weft(f);
}

static void answer(struct flow *f, struct exec *x, const struct roce_from *from,
	const struct roce_packet *p, const uint8_t *bytes, size_t n, uint64_t now)
{
	uint32_t una, acked;

	if (!ask_enter(f, x)) {
		drop(x, CTR_WIRE_DROP_BUSY);
		return;
	}
	una = f->req.una;
	acked = f->req.acked;
	ask_answer(f, p, bytes, n, now);
	if (f->req.una != una || f->req.acked != acked)
		fits_in(f, from->src_port);
	engine_touch(f, FLOW_ANSWERED);
}

static void ask(struct flow *f, struct exec *x, const struct roce_from *from,
	const struct roce_packet *p, const uint8_t *bytes, size_t n, uint64_t now)
{
	uint32_t expected = f->resp.expected;

	ask_leave(x);
	serve_packet(f, x, p, bytes, n, now);
	if (p->psn == expected && f->resp.expected != expected)
		fits_in(f, from->src_port);
	engine_touch(f, FLOW_ASKED);
}

static void to_flow(struct flow *f, struct exec *x, const struct roce_from *from,
	const struct roce_packet *p, const uint8_t *bytes, size_t n, uint64_t now)
{
	if (!fits_type(f, p)) {
		drop(x, CTR_WIRE_DROP_TYPE);
		return;
	}
	if (!is_from(f, from) || from->beside != (f->path.claim > 0)) {
		drop(x, CTR_WIRE_DROP_ADDRESS);
		return;
	}
	if (!is_of_peer(f, x, from->src_port))
		return;
	if (congestion_note(f, x, from->tos, p, now))
		return;
	if (roce_is_response(p->op))
		answer(f, x, from, p, bytes, n, now);
	else
		ask(f, x, from, p, bytes, n, now);
}

void rx_accept(struct exec *x, const struct roce_from *from, const uint8_t *bytes, size_t n,
	unsigned index, uint64_t now)
{
	struct roce_packet p;
	struct flow *f;

	if (!is_whole(x, from, bytes, n, index, &p))
		return;
	if ((p.opcode & ROCE_TRANSPORT_MASK) == ROCE_UD) {
		ask_leave(x);
		if (!datagram || !datagram(x, &p, from))
			hand_over(x, from, p.dest_qpn, bytes, n);
		return;
	}
	f = flow_find(p.dest_qpn);
	if (f)
		to_flow(f, x, from, &p, bytes, n, now);
	else
		hand_over(x, from, p.dest_qpn, bytes, n);
}

void rx_packet(struct exec *x, const struct roce_from *from, const uint8_t *bytes, size_t n,
	unsigned index, uint64_t now)
{
	if (!faults_set() || !faults_in(x, from, bytes, n, index, now))
		rx_accept(x, from, bytes, n, index, now);
}

/* ---- reading ---- */

static bool prepare(unsigned n)
{
	if (!rx.bytes)
		rx.bytes = malloc((size_t)MESSAGES * MESSAGE_BYTES);
	for (unsigned i = 0; i < n && rx.bytes; i++) {
		struct msghdr *m = &rx.msg[i].msg_hdr;

		rx.piece[i] = (struct iovec){
			.iov_base = rx.bytes + (size_t)i * MESSAGE_BYTES, .iov_len = MESSAGE_BYTES};
		m->msg_iov = &rx.piece[i];
		m->msg_iovlen = 1;
		m->msg_name = &rx.from[i];
		m->msg_namelen = sizeof rx.from[i];
		m->msg_control = rx.control[i];
		m->msg_controllen = sizeof rx.control[i];
	}
	return rx.bytes;
}

static void note_lost(struct exec *x, int family, uint32_t lost)
{
	int32_t more = family == NO_FAMILY ? 0 : (int32_t)(lost - rx.lost[family]);

	if (!more)
		return;
	if (more > 0) /* else it is another socket */
		count_add(x, CTR_WIRE_DROP_FULL, (uint32_t)more);
	rx.lost[family] = lost;
}

static void take(struct exec *x, int family, unsigned i, uint64_t now)
{
	struct msghdr *m = &rx.msg[i].msg_hdr;
	size_t left = rx.msg[i].msg_len, step;
	const uint8_t *bytes = rx.piece[i].iov_base;
	struct roce_from from;

	if (!roce_socket_from(m, &from) || m->msg_flags & MSG_TRUNC) {
		drop(x, CTR_WIRE_DROP_LENGTH);
		return;
	}
	note_lost(x, family, from.lost);
	count_add(x, CTR_WIRE_CAME_BYTES, left);
	for (unsigned k = 0; left; k++, bytes += step, left -= step) {
		step = from.segment && from.segment < left ? from.segment : left;
		count_add(x, CTR_WIRE_CAME, 1);
		rx_packet(x, &from, bytes, step, k, now);
	}
}

/* Neither recvmmsg(3) nor recvmsg(3), which is the quicker one: no thread is to be cancelled here.
 */
static int read_one(int fd)
{
	ssize_t n = syscall(SYS_recvmsg, fd, &rx.msg[0].msg_hdr, MSG_DONTWAIT);

	rx.msg[0].msg_len = n > 0 ? n : 0;
	return n >= 0;
}

/* Up to max messages of a socket.  How many there were. */
static unsigned read_some(struct exec *x, int fd, int family, unsigned max, uint64_t now)
{
	int n;

	if (!prepare(max))
		return 0;
	n = max == 1 ? read_one(fd)
		     : (int)syscall(SYS_recvmmsg, fd, rx.msg, max, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		take(x, family, i, now);
	return n > 0 ? n : 0;
}

static bool look_at(struct exec *x, int fd, int family, uint64_t now)
{
	unsigned n = read_some(x, fd, family, rx.full ? MESSAGES : 1, now);

	if (n == 1 && !rx.full && rx.msg[0].msg_len >= LARGE)
		n += read_some(x, fd, family, MESSAGES, now);
	rx.full = n > 1;
	return n;
}

static bool look_at_groups(struct exec *x, uint64_t now)
{
	int fd[MESSAGES];
	unsigned n = mcast_ready(fd, MESSAGES);
	bool came = false;

	for (unsigned i = 0; i < n; i++)
		came |= read_some(x, fd[i], NO_FAMILY, MESSAGES, now);
	return came;
}

static bool look_at_sockets(struct exec *x, const struct rdv_wire *wire, bool all, uint64_t now)
{
	bool came = false;

	for (int family = 0; family < KEEPER_FDS; family++)
		if (wire->fd[family] >= 0 && (all || is_wanted(family)))
			came |= look_at(x, wire->fd[family], family, now);
	if (mcast_fd() >= 0)
		came |= look_at_groups(x, now);
	if (all)
		came |= hand_look(x, wire->hand, now);
	return came;
}

bool rx_look(struct exec *x, uint64_t now)
{
	const struct rdv_wire *wire = join_sockets();
	bool all = ++rx.looks % LOOKS_PER_OTHER == 0, came = false;
	int saved = errno;

	if (wire)
		came = look_at_sockets(x, wire, all, now);
	if (beside_any() || all)
		came |= beside_look(x, rx_packet, now);
	errno = saved;
	return came;
}
