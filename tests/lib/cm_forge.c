// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/cm_forge.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "wire/icrc.h"

enum {
	QKEY_QP1 = 0x80010000,
	HEAD_LEN = ROCE_BTH_LEN + 8, /* BTH and DETH */
	PS_TCP = 0x0106,
	QPNS = 0x10000,
	TIMEOUT = 20,
	LONGEST = 31,
};

static const uint64_t first_guid = 0xdead000000000000;

void forger_open(struct forger *f, struct in_addr from, struct in_addr to)
{
	int probe = IP_PMTUDISC_DO; /* the identification is 0 then */
	socklen_t len = sizeof f->from;

	*f = (struct forger){.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
		.from = {.sin_family = AF_INET, .sin_addr = from},
		.to = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT), .sin_addr = to}};
	if (f->fd < 0 || setsockopt(f->fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe) ||
		bind(f->fd, (struct sockaddr *)&f->from, len) ||
		getsockname(f->fd, (struct sockaddr *)&f->from, &len))
		die("a forger's socket");
}

void forger_close(struct forger *f)
{
	close(f->fd);
}

void forge_packet(struct forger *f, uint8_t *packet, size_t len)
{
	struct icrc_path path = {.src_port = ntohs(f->from.sin_port), .dst_port = ROCE_PORT};
	size_t head = len < HEAD_LEN ? len : HEAD_LEN, whole = len + ROCE_ICRC_LEN;
	uint32_t crc;

	memcpy(path.src + 12, &f->from.sin_addr, 4);
	memcpy(path.dst + 12, &f->to.sin_addr, 4);
	crc = icrc_begin(&path, 0, whole, packet, head);
	icrc_put(icrc_add(crc, packet + head, len - head), packet + len);
	/* A refusal is told by who does not listen there just now. */
	while (sendto(f->fd, packet, whole, 0, (struct sockaddr *)&f->to, sizeof f->to) < 0)
		if (errno != EAGAIN && errno != ENOBUFS && errno != ECONNREFUSED)
			die("a forger's packet");
	f->sent++;
}

void forge_mad(struct forger *f, const uint8_t mad[MAD_SIZE])
{
	const struct roce_packet p = {
		.opcode = roce_opcode(ROCE_UD, ROCE_SEND, ROCE_ONLY, ROCE_DETH),
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = 1,
		.psn = f->psn++ & ROCE_PSN_MASK,
		.qkey = QKEY_QP1,
		.src_qpn = 1,
	};
	uint8_t packet[ROCE_HEADERS_MAX + MAD_SIZE + ROCE_ICRC_LEN];

	(void)roce_build(&p, packet);
	memcpy(packet + HEAD_LEN, mad, MAD_SIZE);
	forge_packet(f, packet, HEAD_LEN + MAD_SIZE);
}

void forge(struct forger *f, const struct cm_msg *m)
{
	uint8_t mad[MAD_SIZE];

	if (cm_msg_pack(m, mad))
		die("no such message");
	forge_mad(f, mad);
}

struct cm_msg forged_req(const struct forger *f, uint32_t comm, uint16_t port)
{
	struct cm_msg m = {.hdr = {.attr = CM_REQ, .tid = 77ull << 32 | comm}};
	struct cm_ip_hdr ip = {.ip_version = 4, .src_port = comm % QPNS};

	m.req.local_comm_id = comm;
	m.req.service_id = (uint64_t)PS_TCP << 16 | port;
	m.req.ca_guid = first_guid + comm;
	m.req.qpn = QPNS + comm % QPNS;
	m.req.remote_timeout = m.req.local_timeout = TIMEOUT;
	m.req.primary.ack_timeout = LONGEST;
	memcpy(ip.src + 12, &f->from.sin_addr, 4);
	memcpy(ip.dst + 12, &f->to.sin_addr, 4);
	cm_ip_hdr_pack(&ip, m.req.priv);
	return m;
}
