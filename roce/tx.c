// SPDX-License-Identifier: BSD-3-Clause
#include "roce/tx.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/gid.h"
#include "base/log.h"
#include "rdv/claim.h"
#include "roce/beside.h"
#include "roce/faults.h"
#include "roce/join.h"
#include "roce/port/keeper.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum {
	MESSAGES = 64,
	PACKETS = 256,
	PIECES = 4096,
	RUN_PACKETS = 64, /* of one message: the kernel cuts no more */
	RUN_BYTES = 65000,
	RUN_PIECES = 900, /* of UIO_MAXIOV */
	RUN_HEADERS = 32, /* what links carry beside `most`, with IP's and UDP's headers */
	TAIL_MAX = 8,     /* padding and ICRC */
	SMALL = 128,      /* payload that is copied behind its headers: fewer pieces */
	OWN_MAX = ROCE_HEADERS_MAX + SMALL + TAIL_MAX, /* of one packet */
	OWN_BYTES = PACKETS * OWN_MAX,
	MEMORY_ALIGN = 64,
	CONTROL_ROOM = 128,
	DEFAULT_TTL = 64,
	UDP_OVER_IPV4 = 28,
	PAYLOAD_MAX = 4096,
	WHOLE_MAX = ROCE_HEADERS_MAX + PAYLOAD_MAX + TAIL_MAX,
};

/* A run of packets of one size, but for the last one. */
struct run {
	const struct tx_path *path;
	unsigned packets;
	size_t bytes, size; /* of all; of the first */
	bool closed;
	union {
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} to;
	struct wire_handed head; /* of one to a process on this host, past the network */
	_Alignas(struct cmsghdr) char control[CONTROL_ROOM];
};

static struct {
	struct mmsghdr msg[MESSAGES];
	struct run run[MESSAGES];
	struct iovec piece[PIECES];
	/* headers, copied payload, ends: what adjoins is one piece */
	uint8_t own[OWN_BYTES];
	size_t n_own;
	_Alignas(MEMORY_ALIGN) uint8_t memory[TX_MEMORY_BYTES];
	size_t used; /* of memory, which only tx_memory() gives anew */
	unsigned n_msg, n_piece, n_packet;
	unsigned finished, sent; /* messages */
	bool waits;              /* what was not sent yet is a copy: nothing more is taken */
	bool never_runs;         /* this kernel, or the device, cuts no messages */
	uint8_t *copies;
} tx;

/* ---- paths ---- */

void tx_path_of(struct tx_path *p, const struct seg_path *path, uint32_t dest_qpn)
{
	memset(p, 0, sizeof *p);
	p->addr.ipv6 = !gid_is_ipv4(path->dgid);
	memcpy(p->addr.src, path->sgid, sizeof p->addr.src);
	memcpy(p->addr.dst, path->dgid, sizeof p->addr.dst);
	if (!p->addr.ipv6) {
		memset(p->addr.src, 0, 12);
		memset(p->addr.dst, 0, 12);
	}
	p->addr.src_port = p->addr.dst_port = ROCE_PORT;
	if (p->addr.ipv6 && (gid_is_link_local(path->dgid) || gid_is_multicast(path->dgid)))
		p->interface = path->interface;
	p->claim = path->beside ? dest_qpn / CLAIM_QPNS : 0;
	p->tos = path->flow >> PATH_TCLASS_SHIFT;
	p->ttl = path->hop_limit ? path->hop_limit : DEFAULT_TTL;
	p->most = seg_mtu_bytes(path->mtu);
}

/* ---- control messages ---- */

static struct cmsghdr *add_control(
	struct msghdr *m, int level, int type, const void *value, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((char *)m->msg_control + m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), value, len);
	m->msg_controllen += CMSG_SPACE(len);
	return c;
}

/* Of such the kernel has another usual TTL: 1. */
static bool is_multicast(const struct icrc_path *addr)
{
	return addr->ipv6 ? addr->dst[0] == 0xff : addr->dst[12] >> 4 == 0xe;
}

static void address_ipv4(struct msghdr *m, struct run *r)
{
	struct in_pktinfo info = {0};
	int tos = r->path->tos, ttl = r->path->ttl;

	r->to.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};
	memcpy(&r->to.in.sin_addr, r->path->addr.dst + 12, 4);
	memcpy(&info.ipi_spec_dst, r->path->addr.src + 12, 4);
	m->msg_namelen = sizeof r->to.in;
	add_control(m, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
	if (tos)
		add_control(m, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
	if (ttl != DEFAULT_TTL || is_multicast(&r->path->addr))
		add_control(m, IPPROTO_IP, IP_TTL, &ttl, sizeof ttl);
}

static void address_ipv6(struct msghdr *m, struct run *r)
{
	struct in6_pktinfo info = {.ipi6_ifindex = r->path->interface};
	int tclass = r->path->tos, hops = r->path->ttl;

	r->to.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
		.sin6_port = htons(ROCE_PORT),
		.sin6_scope_id = r->path->interface};
	memcpy(&r->to.in6.sin6_addr, r->path->addr.dst, 16);
	memcpy(&info.ipi6_addr, r->path->addr.src, 16);
	m->msg_namelen = sizeof r->to.in6;
	add_control(m, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
	if (tclass)
		add_control(m, IPPROTO_IPV6, IPV6_TCLASS, &tclass, sizeof tclass);
	if (hops != DEFAULT_TTL || is_multicast(&r->path->addr))
		add_control(m, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof hops);
}

/* To a process on this host there are no headers of IP and UDP, which others make. */
static void address_beside(struct msghdr *m, struct run *r)
{
	const struct icrc_path *a = &r->path->addr;

	m->msg_name = NULL;
	m->msg_namelen = 0;
	r->head =
		(struct wire_handed){.src_port = a->src_port, .tos = r->path->tos, .ipv6 = a->ipv6};
	memcpy(r->head.src, a->src, sizeof r->head.src);
	memcpy(r->head.dst, a->dst, sizeof r->head.dst);
}

/* An empty message to where path leads; its pieces will be at iov. */
static void begin(struct msghdr *m, struct run *r, const struct tx_path *path, struct iovec *iov)
{
	r->path = path;
	r->packets = 0;
	r->bytes = r->size = 0;
	r->closed = false;
	m->msg_name = &r->to;
	m->msg_control = r->control;
	m->msg_controllen = 0;
	m->msg_flags = 0;
	m->msg_iov = iov;
	m->msg_iovlen = 0;
	if (path->claim)
		address_beside(m, r);
	else if (path->addr.ipv6)
		address_ipv6(m, r);
	else
		address_ipv4(m, r);
}

/* ---- runs ---- */

static void add_piece(void *at, size_t len)
{
	struct msghdr *m = &tx.msg[tx.n_msg - 1].msg_hdr;
	struct iovec *last = m->msg_iovlen ? &m->msg_iov[m->msg_iovlen - 1] : NULL;

	if (last && (uint8_t *)last->iov_base + last->iov_len == at) {
		last->iov_len += len;
		return;
	}
	m->msg_iov[m->msg_iovlen++] = (struct iovec){.iov_base = at, .iov_len = len};
	tx.n_piece++;
}

static struct run *begin_run(const struct tx_path *path)
{
	struct run *r = &tx.run[tx.n_msg];

	begin(&tx.msg[tx.n_msg++].msg_hdr, r, path, &tx.piece[tx.n_piece]);
	if (path->claim)
		add_piece(&r->head, sizeof r->head);
	return r;
}

/* Is it of that size, or as the last one smaller, and has room? */
static bool fits_run(const struct run *r, size_t bytes)
{
	return !r->closed && bytes <= r->size && r->size <= (size_t)r->path->most + RUN_HEADERS &&
	       r->packets < RUN_PACKETS && r->bytes + bytes <= RUN_BYTES && !tx.never_runs;
}

/* The run that a packet of so many bytes in n pieces goes on with, or a new one. */
static struct run *run_for(const struct tx_path *path, size_t bytes, unsigned n)
{
	struct run *r = tx.n_msg ? &tx.run[tx.n_msg - 1] : NULL;

	if (r && r->path == path && fits_run(r, bytes) &&
		tx.msg[tx.n_msg - 1].msg_hdr.msg_iovlen + n + 2 <= RUN_PIECES)
		return r;
	return begin_run(path);
}

/* So many bytes of our own, written already, are the message's next. */
static void add_own(size_t len)
{
	add_piece(tx.own + tx.n_own, len);
	tx.n_own += len;
}

static void count_packet(struct run *r, size_t bytes)
{
	if (!r->packets++)
		r->size = bytes;
	else if (bytes < r->size)
		r->closed = true;
	r->bytes += bytes;
}

bool tx_has_room(void)
{
	return !tx.waits;
}

static bool make_room(struct exec *x, unsigned pieces)
{
	if (tx.waits)
		return false;
	if (tx.n_packet == PACKETS || tx.n_msg == MESSAGES || tx.n_piece + pieces > PIECES)
		return tx_flush(x);
	return true;
}

/* A whole packet in one piece. */
static void build_whole(const struct tx_path *path, const struct roce_packet *head,
	const struct iovec *piece, unsigned n, uint8_t packet[WHOLE_MAX])
{
	size_t head_len = roce_build(head, packet), len = head_len;
	size_t bytes = len + head->payload_len + head->pad + ROCE_ICRC_LEN;
	uint32_t crc;

	for (unsigned i = 0; i < n; i++) {
		memcpy(packet + len, piece[i].iov_base, piece[i].iov_len);
		len += piece[i].iov_len;
	}
	memset(packet + len, 0, head->pad);
	len += head->pad;
	crc = icrc_begin(&path->addr, 0, bytes, packet, head_len);
	icrc_put(icrc_add(crc, packet + head_len, len - head_len), packet + len);
}

/*
 * Do the rules of faults let the packet go as any other, whose headers are written already?  Else
 * it was taken, and is theirs.
 */
static bool passes_faults(struct exec *x, const struct tx_path *path,
	const struct roce_packet *head, size_t bytes, const struct iovec *piece, unsigned n)
{
	uint8_t packet[WHOLE_MAX];
	struct fault_how how;
	enum fault_act act = faults_ask(tx.own + tx.n_own, bytes, &how);

	if (act == FAULT_PASS)
		return true;
	/* behind those that were taken before */
	if (act == FAULT_LOSE || head->payload_len > PAYLOAD_MAX || !tx_flush(x))
		return false;
	build_whole(path, head, piece, n, packet);
	faults_out_as(x, path, packet, bytes, act, &how);
	return false;
}

static uint32_t add_payload(uint32_t crc, const struct iovec *piece, unsigned n, bool small)
{
	for (unsigned i = 0; i < n; i++) {
		void *at = piece[i].iov_base;
		size_t len = piece[i].iov_len;

		if (small)
			at = memcpy(tx.own + tx.n_own, at, len);
		crc = icrc_add(crc, at, len);
		if (small)
			add_own(len);
		else
			add_piece(at, len);
	}
	return crc;
}

bool tx_put(struct exec *x, const struct tx_path *path, const struct roce_packet *head,
	const struct iovec *piece, unsigned n)
{
	size_t head_len, bytes, tail_len = head->pad + ROCE_ICRC_LEN;
	struct run *r;
	uint8_t *own;
	uint32_t crc;

	if (!make_room(x, n + 3))
		return false;
	own = tx.own + tx.n_own;
	head_len = roce_build(head, own);
	bytes = head_len + head->payload_len + tail_len;
	if (faults_set() && !passes_faults(x, path, head, bytes, piece, n))
		return true;
	tx.n_packet++;
	r = run_for(path, bytes, n);
	crc = icrc_begin(&path->addr, r->packets, bytes, own, head_len);
	add_own(head_len);
	crc = add_payload(crc, piece, n, head->payload_len <= SMALL);
	own = tx.own + tx.n_own;
	memset(own, 0, head->pad);
	icrc_put(icrc_add(crc, own, head->pad), own + head->pad);
	add_own(tail_len);
	count_packet(r, bytes);
	return true;
}

void *tx_memory(struct exec *x, size_t n)
{
	void *at;

	if (tx.waits)
		return NULL;
	if (tx.used + n > TX_MEMORY_BYTES) {
		if (!tx_flush(x))
			return NULL;
		tx.used = 0;
	}
	at = tx.memory + tx.used;
	tx.used += (n + MEMORY_ALIGN - 1) & -MEMORY_ALIGN;
	return at;
}

/* ---- sending ---- */

static int family_of(unsigned i)
{
	return tx.run[i].path->addr.ipv6 ? KEEPER_IPV6 : KEEPER_IPV4;
}

bool tx_waits(int family)
{
	return tx.waits && family_of(tx.sent) == family;
}

/* All up to that message get no more packets. */
static void finish_runs(unsigned end)
{
	for (; tx.finished < end; tx.finished++) {
		struct run *r = &tx.run[tx.finished];
		uint16_t size = r->size;

		if (r->path->claim)
			r->head.segment = r->packets > 1 ? size : 0;
		else if (r->packets > 1)
			add_control(&tx.msg[tx.finished].msg_hdr, SOL_UDP, UDP_SEGMENT, &size,
				sizeof size);
	}
}

static void begin_anew(void)
{
	tx.n_msg = tx.n_piece = tx.n_packet = tx.finished = tx.sent = 0;
	tx.n_own = 0;
	tx.waits = false;
	free(tx.copies);
	tx.copies = NULL;
}

/* What is left is copied, for its memory may change or go.  What cannot be copied is lost. */
static void keep_rest(void)
{
	size_t total = 0;
	uint8_t *to;

	if (tx.waits)
		return;
	for (unsigned i = tx.sent; i < tx.n_msg; i++)
		total += tx.run[i].bytes + (tx.run[i].path->claim ? sizeof tx.run[i].head : 0);
	to = tx.copies = malloc(total);
	if (!to) {
		begin_anew();
		return;
	}
	for (unsigned i = tx.sent; i < tx.n_msg; i++) {
		struct msghdr *m = &tx.msg[i].msg_hdr;
		uint8_t *from = to;

		for (size_t k = 0; k < m->msg_iovlen; k++)
			to = mempcpy(to, m->msg_iov[k].iov_base, m->msg_iov[k].iov_len);
		m->msg_iov[0] = (struct iovec){.iov_base = from, .iov_len = to - from};
		m->msg_iovlen = 1;
	}
	tx.waits = true;
}

/* The message is lost, as on a wire; what it means is counted, and said once. */
static void lose(struct exec *x, int error)
{
	static bool told_size, told;
	struct run *r = &tx.run[tx.sent];

	if (error == EMSGSIZE) {
		count_add(x, CTR_WIRE_TOO_LONG, r->packets);
		if (!told_size)
			log_line(LOG_LVL_WARN,
				"a packet of %zu bytes is longer than its path takes",
				r->size + UDP_OVER_IPV4);
		told_size = true;
	} else if ((error == EIO || error == EINVAL) && r->packets > 1) {
		tx.never_runs = true;
		log_line(
			LOG_LVL_INFO, "the kernel does not cut UDP messages: packets leave singly");
	} else if (!told) {
		log_line(LOG_LVL_WARN, "a RoCE packet was not sent: %s", strerror(error));
		told = true;
	}
	count_add(x, CTR_WIRE_NOT_SENT, r->packets);
	tx.sent++;
}

static void count_sent(struct exec *x, unsigned n)
{
	uint64_t packets = 0, bytes = 0;

	for (unsigned i = tx.sent; i < tx.sent + n; i++) {
		packets += tx.run[i].packets;
		bytes += tx.run[i].bytes;
	}
	count_add(x, CTR_WIRE_SENT, packets);
	count_add(x, CTR_WIRE_SENT_BYTES, bytes);
	tx.sent += n;
}

/* Neither sendmmsg(3) nor sendmsg(3), which is the quicker one: no thread is to be cancelled here.
 */
static int send_now(int fd, struct mmsghdr *m, unsigned n)
{
	const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;

	if (n > 1)
		return (int)syscall(SYS_sendmmsg, fd, m, n, flags);
	return syscall(SYS_sendmsg, fd, &m->msg_hdr, flags) < 0 ? -1 : 1;
}

static void lose_quietly(struct exec *x)
{
	count_add(x, CTR_WIRE_NOT_SENT, tx.run[tx.sent].packets);
	tx.sent++;
}

/* A process that does not read keeps up nobody: what is more than it has room for is lost. */
static void send_beside(struct exec *x)
{
	if (beside_send(tx.run[tx.sent].path->claim, &tx.msg[tx.sent].msg_hdr))
		count_sent(x, 1);
	else
		lose_quietly(x);
}

/* Sends those in a row, before `last`, that go by one socket.  False: it is full. */
static bool send_some(struct exec *x, const struct rdv_wire *wire, unsigned last)
{
	int family = family_of(tx.sent), n;
	unsigned end = tx.sent + 1;

	while (end < last && family_of(end) == family && !tx.run[end].path->claim)
		end++;
	n = wire->fd[family] < 0 ? (errno = ENETUNREACH, -1)
				 : send_now(wire->fd[family], &tx.msg[tx.sent], end - tx.sent);
	if (n > 0)
		count_sent(x, n);
	else if (n < 0 && errno == EAGAIN)
		return false;
	else if (n < 0 && errno != EINTR)
		lose(x, errno);
	return true;
}

static bool send_next(struct exec *x, const struct rdv_wire *wire, unsigned last)
{
	if (tx.run[tx.sent].path->claim)
		send_beside(x);
	else if (wire)
		return send_some(x, wire, last);
	else
		lose_quietly(x);
	return true;
}

/* False: the kernel has no room. */
static bool send_up_to(struct exec *x, unsigned end)
{
	const struct rdv_wire *wire = join_sockets();
	int saved = errno;
	bool room = true;

	finish_runs(end);
	while (room && tx.sent < end)
		room = send_next(x, wire, end);
	if (!room) {
		count_add(x, CTR_WIRE_FULL, 1);
		finish_runs(tx.n_msg);
		keep_rest();
	}
	errno = saved;
	return room;
}

bool tx_flush(struct exec *x)
{
	if (!tx.n_msg)
		return true;
	if (!send_up_to(x, tx.n_msg))
		return !tx.waits;
	begin_anew();
	return true;
}

bool tx_flush_most(struct exec *x)
{
	const struct run *last = tx.n_msg ? &tx.run[tx.n_msg - 1] : NULL;

	if (tx.waits || !last || !fits_run(last, last->size))
		return tx_flush(x);
	return send_up_to(x, tx.n_msg - 1) || !tx.waits;
}

static int send_one(const struct tx_path *path, struct msghdr *m)
{
	const struct rdv_wire *wire = join_sockets();
	int fd = wire ? wire->fd[path->addr.ipv6 ? KEEPER_IPV6 : KEEPER_IPV4] : -1;

	errno = ENETUNREACH;
	if (fd < 0)
		return -1;
	return (int)syscall(SYS_sendmsg, fd, m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The same past the network. */
static int send_one_beside(const struct tx_path *path, struct run *r, struct msghdr *m)
{
	struct iovec all[TX_PIECES_MAX + 3] = {{&r->head, sizeof r->head}};
	size_t bytes = 0;

	errno = EMSGSIZE;
	if (m->msg_iovlen > TX_PIECES_MAX + 2)
		return -1;
	for (size_t i = 0; i < m->msg_iovlen; i++) {
		all[i + 1] = m->msg_iov[i];
		bytes += m->msg_iov[i].iov_len;
	}
	m->msg_iov = all;
	m->msg_iovlen++;
	errno = EPIPE;
	return beside_send(path->claim, m) ? (int)bytes : -1;
}

int tx_now(struct exec *x, const struct tx_path *path, const struct iovec *piece, unsigned n)
{
	int saved = errno, sent;
	struct msghdr m;
	struct run r;

	begin(&m, &r, path, (struct iovec *)piece);
	m.msg_iovlen = n;
	sent = path->claim ? send_one_beside(path, &r, &m) : send_one(path, &m);
	if (sent < 0 && errno == EAGAIN) {
		count_add(x, CTR_WIRE_FULL, 1);
		errno = saved;
		return -EAGAIN;
	}
	count_add(x, sent < 0 ? CTR_WIRE_NOT_SENT : CTR_WIRE_SENT, 1);
	if (sent < 0 && errno == EMSGSIZE)
		count_add(x, CTR_WIRE_TOO_LONG, 1);
	if (sent > 0)
		count_add(x, CTR_WIRE_SENT_BYTES, sent);
	if (sent > 0 && is_multicast(&path->addr))
		count_add(x, CTR_WIRE_MCAST_SENT, 1);
	errno = saved;
	return 0;
}

void tx_forked_child(void)
{
	begin_anew();
}
