// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/grh.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <netinet/ip.h>
#include <string.h>

#include "base/gid.h"

enum {
	ROCE_HEADERS = 12 + 8, /* BTH, DETH */
	ICRC_BYTES = 4,
	UDP_HEADER = 8,
	DEFAULT_HOPS = 64,
	TCLASS_SHIFT = 20,
	IPV4_AT = SEG_GRH_BYTES - sizeof(struct iphdr),
};

/* Of 16-bit words, not folded. */
static uint32_t ip_sum(const struct iphdr *ip)
{
	uint16_t word[sizeof *ip / sizeof(uint16_t)];
	uint32_t sum = 0;

	memcpy(word, ip, sizeof word);
	for (unsigned i = 0; i < sizeof word / sizeof *word; i++)
		sum += word[i];
	return sum;
}

static uint16_t ip_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static void make_ipv4(
	struct grh *g, const uint8_t *sgid, const uint8_t *dgid, uint8_t tos, uint8_t hops)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = tos,
		.frag_off = htobe16(IP_DF),
		.ttl = hops,
		.protocol = IPPROTO_UDP,
	};

	memcpy(&ip.saddr, sgid + 12, 4);
	memcpy(&ip.daddr, dgid + 12, 4);
	g->sum = ip_sum(&ip);
	memset(g->bytes, 0, sizeof g->bytes);
	memcpy(g->bytes + IPV4_AT, &ip, sizeof ip);
}

void grh_make(struct grh *g, const uint8_t *sgid, const uint8_t *dgid, uint32_t flow, uint8_t hops)
{
	struct ibv_grh grh = {.next_hdr = IPPROTO_UDP};

	hops = hops ? hops : DEFAULT_HOPS;
	g->of = 0;
	g->ipv4 = gid_is_ipv4(sgid) && gid_is_ipv4(dgid);
	if (g->ipv4) {
		make_ipv4(g, sgid, dgid, flow >> TCLASS_SHIFT, hops);
		return;
	}
	grh.version_tclass_flow = htobe32(6u << 28 | (flow & 0xfffffff));
	grh.hop_limit = hops;
	memcpy(grh.sgid.raw, sgid, sizeof grh.sgid.raw);
	memcpy(grh.dgid.raw, dgid, sizeof grh.dgid.raw);
	_Static_assert(sizeof grh == SEG_GRH_BYTES, "a GRH");
	memcpy(g->bytes, &grh, sizeof grh);
}

/* Bytes of the UDP datagram that the message would be. */
static uint16_t udp_length(size_t payload, bool has_imm)
{
	size_t padded = (payload + 3) & ~(size_t)3;

	return UDP_HEADER + ROCE_HEADERS + (has_imm ? 4 : 0) + padded + ICRC_BYTES;
}

void grh_set_length(struct grh *g, uint32_t payload, bool has_imm)
{
	uint16_t len = udp_length(payload, has_imm), sum;

	g->of = grh_message(payload, has_imm);
	if (!g->ipv4) {
		len = htobe16(len);
		memcpy(g->bytes + offsetof(struct ibv_grh, paylen), &len, sizeof len);
		return;
	}
	len = htobe16(sizeof(struct iphdr) + len);
	sum = ip_fold(g->sum + len);
	memcpy(g->bytes + IPV4_AT + offsetof(struct iphdr, tot_len), &len, sizeof len);
	memcpy(g->bytes + IPV4_AT + offsetof(struct iphdr, check), &sum, sizeof sum);
}
