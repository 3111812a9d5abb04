// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/qp1.h"

#include <errno.h>
#include <string.h>

#include "base/gid.h"
#include "daemon/wire.h"
#include "fabric/page.h"
#include "mad/dispatch.h"
#include "rdv/wire.h"
#include "wire/icrc.h"

enum {
	QKEY_QP1 = 0x80010000,
	PKEY_MEMBER = 0x8000,
	HEAD_LEN = ROCE_BTH_LEN + 8, /* BTH and DETH */
	PACKET_LEN = HEAD_LEN + MAD_SIZE + ROCE_ICRC_LEN,
};

static const char *const drop_names[QP1_DROP_COUNT] = {
	[QP1_DROP_MALFORMED] = "malformed",
	[QP1_DROP_PKEY] = "wrong_pkey",
	[QP1_DROP_QKEY] = "wrong_qkey",
	[QP1_DROP_LENGTH] = "wrong_length",
	[QP1_DROP_ICRC] = "wrong_icrc",
	[QP1_DROP_ADDRESS] = "wrong_address",
};

/* ---- addresses ---- */

static void to_gid(uint8_t gid[MAD_GID], bool ipv6, const uint8_t addr[16])
{
	memcpy(gid, addr, MAD_GID);
	if (!ipv6)
		gid_put_ipv4_prefix(gid);
}

static const struct fabric_port *gids(const struct qp1 *q)
{
	return &q->server->node->page->port[0];
}

/* Of our GIDs, or NULL. */
static const struct fabric_gid *own(const struct qp1 *q, const uint8_t gid[MAD_GID])
{
	const struct fabric_port *port = gids(q);

	for (uint32_t i = 0; i < port->n_gids && i < FABRIC_MAX_GIDS; i++)
		if (port->gid[i].type && memcmp(port->gid[i].raw, gid, MAD_GID) == 0)
			return &port->gid[i];
	return NULL;
}

/* GID 0 is there also without a network. */
static bool has_network(const struct qp1 *q)
{
	const struct fabric_port *port = gids(q);

	for (uint32_t i = 1; i < port->n_gids && i < FABRIC_MAX_GIDS; i++)
		if (port->gid[i].type && !gid_is_loopback(port->gid[i].raw))
			return true;
	return false;
}

/* ---- faults ---- */

void qp1_set_faults(struct qp1 *q, const struct fault_rules *rules)
{
	fault_start(&q->faults, rules);
}

/* How often the packet goes on; it may have another bit then. */
static unsigned times_of(struct qp1 *q, enum fault_way way, uint8_t *packet, size_t len)
{
	struct fault_how how;
	enum fault_act act = fault_on(&q->faults, way, packet, len, &how);

	if (act == FAULT_FLIP)
		packet[how.bit / 8] ^= 1u << how.bit % 8;
	q->faulted += act != FAULT_PASS && act != FAULT_HOLD;
	return act == FAULT_LOSE ? 0 : act == FAULT_TWICE ? 2 : 1;
}

/* ---- what comes ---- */

static bool is_whole_datagram(const struct roce_packet *p)
{
	return p->opcode == roce_opcode(ROCE_UD, ROCE_SEND, ROCE_ONLY, ROCE_DETH);
}

static bool has_good_icrc(const struct wire_handed *from, const uint8_t *packet, size_t len)
{
	struct icrc_path path = {
		.ipv6 = from->ipv6, .src_port = from->src_port, .dst_port = ROCE_PORT};
	uint16_t ident = from->ident;

	memcpy(path.src, from->src, sizeof path.src);
	memcpy(path.dst, from->dst, sizeof path.dst);
	return icrc_check(&path, packet, len, &ident);
}

/* QP1_DROP_COUNT: it is a MAD, *p, for us. */
static enum qp1_drop judge(const struct qp1 *q, const struct wire_handed *from,
	const struct mad_addr *addr, const uint8_t *packet, size_t len, struct roce_packet *p)
{
	if (roce_parse(packet, len, p) != ROCE_GOOD || !is_whole_datagram(p))
		return QP1_DROP_MALFORMED;
	if (p->payload_len != MAD_SIZE)
		return QP1_DROP_LENGTH;
	if ((p->pkey ^ ROCE_PKEY_DEFAULT) & ~PKEY_MEMBER)
		return QP1_DROP_PKEY;
	if (p->qkey != QKEY_QP1)
		return QP1_DROP_QKEY;
	if (!has_good_icrc(from, packet, len))
		return QP1_DROP_ICRC;
	/* What we send to ourselves does not come this way: somebody else claims to be us. */
	if (!own(q, addr->grh.local) || own(q, addr->grh.remote) ||
		gid_is_multicast(addr->grh.remote))
		return QP1_DROP_ADDRESS;
	return QP1_DROP_COUNT;
}

static void take(
	struct server *s, const struct wire_handed *from, const uint8_t *packet, size_t len)
{
	struct mad_addr addr = {.qp = 1, .has_grh = true, .qkey = QKEY_QP1};
	struct qp1 *q = s->qp1;
	struct roce_packet p;
	enum qp1_drop why;

	to_gid(addr.grh.local, from->ipv6, from->dst);
	to_gid(addr.grh.remote, from->ipv6, from->src);
	addr.grh.traffic_class = from->tos;
	mad_addr_by_ethernet(&addr);
	why = judge(q, from, &addr, packet, len, &p);
	if (why != QP1_DROP_COUNT) {
		q->drops[why]++;
		return;
	}
	addr.qpn = p.src_qpn;
	q->received++;
	mad_receive(q->port, &addr, p.payload);
	s->deliver(s);
}

static void on_packet(
	struct server *s, const struct wire_handed *from, const uint8_t *packet, size_t len)
{
	uint8_t changed[PACKET_LEN];
	unsigned times = 1;

	if (s->qp1->faults.rules.n && len <= sizeof changed) {
		memcpy(changed, packet, len);
		packet = changed;
		times = times_of(s->qp1, FAULT_IN, changed, len);
	}
	while (times--)
		take(s, from, packet, len);
}

void qp1_start(struct qp1 *q, struct server *s, struct mad_port *port)
{
	*q = (struct qp1){.server = s, .port = port};
	s->qp1 = q;
	wire_on_qp1(s, on_packet);
}

/* ---- the port ---- */

static int hold(struct qp1 *q)
{
	if (wire_mode() == WIRE_NEVER)
		return -EOPNOTSUPP;
	if (q->held)
		return 0;
	q->held = true; /* if it fails now, it is tried again */
	return wire_hold(q->server);
}

void qp1_open(struct qp1 *q)
{
	if (has_network(q))
		(void)hold(q);
}

void qp1_close(struct qp1 *q)
{
	if (!q->held)
		return;
	q->held = false;
	wire_release(q->server);
}

/* ---- what goes ---- */

/* The whole packet but its UDP header, from QP1 of path->src. */
static void build(struct qp1 *q, const struct icrc_path *path, const struct mad_addr *to,
	const uint8_t mad[MAD_SIZE], uint8_t packet[PACKET_LEN])
{
	const struct roce_packet p = {
		.opcode = roce_opcode(ROCE_UD, ROCE_SEND, ROCE_ONLY, ROCE_DETH),
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = to->qpn,
		.psn = q->psn,
		.qkey = to->qkey ? to->qkey : QKEY_QP1,
		.src_qpn = to->qp,
	};
	uint8_t head[ROCE_HEADERS_MAX];
	uint32_t crc;

	(void)roce_build(&p, head);
	q->psn = roce_psn_add(q->psn, 1);
	memcpy(packet, head, HEAD_LEN);
	memcpy(packet + HEAD_LEN, mad, MAD_SIZE);
	crc = icrc_begin(path, 0, PACKET_LEN, packet, HEAD_LEN);
	icrc_put(icrc_add(crc, mad, MAD_SIZE), packet + HEAD_LEN + MAD_SIZE);
}

static int send_packet(struct qp1 *q, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	bool ipv6 = !gid_is_ipv4(to->grh.remote);
	struct icrc_path path = {.ipv6 = ipv6, .src_port = ROCE_PORT, .dst_port = ROCE_PORT};
	const struct fabric_gid *from = own(q, to->grh.local);
	uint8_t packet[PACKET_LEN];
	struct wire_out out = {
		.ipv6 = ipv6, .tos = to->grh.traffic_class, .packet = packet, .len = PACKET_LEN};
	int ret = 0;

	if (!from || ipv6 == gid_is_ipv4(to->grh.local) || gid_is_multicast(to->grh.remote))
		return -EHOSTUNREACH;
	memcpy(path.src, to->grh.local, sizeof path.src);
	memcpy(path.dst, to->grh.remote, sizeof path.dst);
	build(q, &path, to, mad, packet);
	memcpy(out.src, path.src, sizeof out.src);
	memcpy(out.dst, path.dst, sizeof out.dst);
	if (gid_is_link_local(path.dst))
		out.ifindex = from->ifindex;
	for (unsigned n = times_of(q, FAULT_OUT, packet, PACKET_LEN); n && !ret; n--)
		ret = wire_send(q->server, &out);
	return ret;
}

int qp1_send(struct qp1 *q, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	int ret = hold(q);

	if (!ret)
		ret = send_packet(q, to, mad);
	if (ret)
		q->failed++;
	else
		q->sent++;
	return ret;
}

json_t *qp1_status(const struct qp1 *q)
{
	json_t *o = json_object();

	json_object_set_new(o, "sent", json_integer(q->sent));
	json_object_set_new(o, "received", json_integer(q->received));
	json_object_set_new(o, "not_sent", json_integer(q->failed));
	json_object_set_new(o, "faulted", json_integer(q->faulted));
	for (int i = 0; i < QP1_DROP_COUNT; i++)
		json_object_set_new(o, drop_names[i], json_integer(q->drops[i]));
	return o;
}
