// SPDX-License-Identifier: BSD-3-Clause
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "wire/roce.h"

enum { BTH_SOLICITED = 0x80, BTH_PAD_SHIFT = 4, BTH_VERSION_MASK = 0x0f };
enum { BTH_FECN = 0x80, BTH_BECN = 0x40, BTH_ACK_REQ = 0x80, BTH_AGAIN = 0x40 };
/* The bytes that have FECN and BECN, ACK_REQ and AGAIN. */
enum { BTH_MARKS = 4, BTH_HOW = 8 };

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof v);
	return be16toh(v);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return be32toh(v);
}

static uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | p[1] << 8 | p[2];
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return be64toh(v);
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof v);
	return p + sizeof v;
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof v);
	return p + sizeof v;
}

static void parse_bth(const uint8_t *h, struct roce_packet *p)
{
	p->opcode = h[0];
	p->solicited = h[1] & BTH_SOLICITED;
	p->pad = h[1] >> BTH_PAD_SHIFT & 3;
	p->pkey = get16(h + 2);
	p->fecn = h[BTH_MARKS] & BTH_FECN;
	p->becn = h[BTH_MARKS] & BTH_BECN;
	p->dest_qpn = get24(h + 5);
	p->ack_req = h[BTH_HOW] & BTH_ACK_REQ;
	p->again = h[BTH_HOW] & BTH_AGAIN;
	p->psn = get24(h + 9);
}

/* The headers that carry memory: those of WRITE, READ, FLUSH and atomics. */
static const uint8_t *parse_memory(const uint8_t *h, unsigned set, struct roce_packet *p)
{
	if (set & ROCE_FETH) {
		p->flush = get32(h);
		h += 4;
	}
	if (set & ROCE_RETH) {
		p->va = get64(h);
		p->rkey = get32(h + 8);
		p->length = get32(h + 12);
		h += 16;
	}
	if (set & ROCE_ATOMIC_ETH) {
		p->va = get64(h);
		p->rkey = get32(h + 8);
		p->swap_add = get64(h + 12);
		p->compare = get64(h + 20);
		h += 28;
	}
	return h;
}

static const uint8_t *parse_answer(const uint8_t *h, unsigned set, struct roce_packet *p)
{
	if (set & ROCE_AETH) {
		p->syndrome = h[0];
		p->msn = get24(h + 1);
		h += 4;
	}
	if (set & ROCE_ATOMIC_ACK_ETH) {
		p->old = get64(h);
		h += 8;
	}
	return h;
}

static const uint8_t *parse_headers(const uint8_t *h, unsigned set, struct roce_packet *p)
{
	if (set & ROCE_DETH) {
		p->qkey = get32(h);
		p->src_qpn = get24(h + 5);
		h += 8;
	}
	h = parse_answer(parse_memory(h, set, p), set, p);
	if (set & ROCE_IMM) {
		p->imm = get32(h);
		h += 4;
	}
	if (set & ROCE_IETH) {
		p->invalidate = get32(h);
		h += 4;
	}
	return set & ROCE_CNP_ETH ? h + 16 : h;
}

enum roce_fault roce_parse(const uint8_t *datagram, size_t len, struct roce_packet *p)
{
	const struct roce_op *op;
	size_t body;

	if (len < ROCE_BTH_LEN + ROCE_ICRC_LEN)
		return ROCE_TOO_SHORT;
	if (datagram[1] & BTH_VERSION_MASK)
		return ROCE_BAD_VERSION;
	op = roce_op(datagram[0]);
	if (!op->name)
		return ROCE_UNKNOWN_OPCODE;
	if (len < (size_t)op->head_len + ROCE_ICRC_LEN)
		return ROCE_TOO_SHORT;
	parse_bth(datagram, p);
	body = len - op->head_len - ROCE_ICRC_LEN;
	if (len % 4 || p->pad > body)
		return ROCE_BAD_LENGTH;
	p->op = op;
	p->payload = parse_headers(datagram + ROCE_BTH_LEN, op->headers, p);
	p->payload_len = body - p->pad;
	return ROCE_GOOD;
}

static uint8_t *build_bth(const struct roce_packet *p, uint8_t *h)
{
	h[0] = p->opcode;
	h[1] = (p->solicited ? BTH_SOLICITED : 0) | (p->pad & 3) << BTH_PAD_SHIFT;
	h[2] = p->pkey >> 8;
	h[3] = p->pkey;
	put32(h + 4, p->dest_qpn & ROCE_QPN_MASK);
	h[BTH_MARKS] = (p->fecn ? BTH_FECN : 0) | (p->becn ? BTH_BECN : 0);
	put32(h + 8, p->psn & ROCE_PSN_MASK);
	h[BTH_HOW] = (p->ack_req ? BTH_ACK_REQ : 0) | (p->again ? BTH_AGAIN : 0);
	return h + ROCE_BTH_LEN;
}

static uint8_t *build_memory(const struct roce_packet *p, unsigned set, uint8_t *h)
{
	if (set & ROCE_FETH)
		h = put32(h, p->flush);
	if (set & ROCE_RETH)
		h = put32(put32(put64(h, p->va), p->rkey), p->length);
	if (set & ROCE_ATOMIC_ETH)
		h = put64(put64(put32(put64(h, p->va), p->rkey), p->swap_add), p->compare);
	return h;
}

size_t roce_build(const struct roce_packet *p, uint8_t head[ROCE_HEADERS_MAX])
{
	unsigned set = roce_op(p->opcode)->headers;
	uint8_t *h = build_bth(p, head);

	if (set & ROCE_DETH)
		h = put32(put32(h, p->qkey), p->src_qpn & ROCE_QPN_MASK);
	h = build_memory(p, set, h);
	if (set & ROCE_AETH)
		h = put32(h, (uint32_t)p->syndrome << 24 | (p->msn & ROCE_PSN_MASK));
	if (set & ROCE_ATOMIC_ACK_ETH)
		h = put64(h, p->old);
	if (set & ROCE_IMM)
		h = put32(h, p->imm);
	if (set & ROCE_IETH)
		h = put32(h, p->invalidate);
	if (set & ROCE_CNP_ETH)
		h = memset(h, 0, 16), h += 16;
	return h - head;
}

uint32_t roce_peek_qpn(const uint8_t *datagram, size_t len)
{
	return len < ROCE_BTH_LEN + ROCE_ICRC_LEN ? 0 : get24(datagram + 5);
}

void roce_set_again(uint8_t *datagram)
{
	datagram[BTH_HOW] |= BTH_AGAIN;
}

bool roce_same(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	const size_t last = ROCE_BTH_LEN - 3; /* the PSN, and what follows the BTH */

	return a_len == b_len && a_len >= ROCE_BTH_LEN + ROCE_ICRC_LEN &&
	       !memcmp(a, b, BTH_MARKS) &&
	       !memcmp(a + BTH_MARKS + 1, b + BTH_MARKS + 1, BTH_HOW - BTH_MARKS - 1) &&
	       !memcmp(a + last, b + last, a_len - last - ROCE_ICRC_LEN);
}

int roce_print(const struct roce_packet *p, char *buf, size_t size)
{
	unsigned set = p->op->headers;
	char more[160] = "";

	if (set & ROCE_DETH)
		snprintf(more, sizeof more, " src=0x%x qkey=0x%x", p->src_qpn, p->qkey);
	else if (set & ROCE_RETH)
		snprintf(more, sizeof more, " va=0x%llx rkey=0x%x length=%u",
			(unsigned long long)p->va, p->rkey, p->length);
	else if (set & ROCE_ATOMIC_ETH)
		snprintf(more, sizeof more, " va=0x%llx rkey=0x%x swap_add=0x%llx compare=0x%llx",
			(unsigned long long)p->va, p->rkey, (unsigned long long)p->swap_add,
			(unsigned long long)p->compare);
	else if (set & ROCE_AETH)
		snprintf(more, sizeof more, " syndrome=0x%02x msn=%u", p->syndrome, p->msn);
	return snprintf(buf, size, "%s qpn=0x%x psn=%u%s%s%s%s bytes=%zu", p->op->name, p->dest_qpn,
		p->psn, p->ack_req ? " ack_req" : "", p->solicited ? " solicited" : "",
		p->again ? " again" : "", more, p->payload_len);
}

const char *roce_fault_text(enum roce_fault fault)
{
	static const char *const texts[ROCE_FAULTS] = {
		[ROCE_GOOD] = "good",
		[ROCE_TOO_SHORT] = "too short",
		[ROCE_BAD_VERSION] = "bad transport version",
		[ROCE_UNKNOWN_OPCODE] = "unknown opcode",
		[ROCE_BAD_LENGTH] = "bad length",
	};

	return fault < ROCE_FAULTS ? texts[fault] : "unknown";
}

uint16_t roce_source_port(uint32_t flow_label, uint32_t qpn, uint32_t remote_qpn)
{
	uint32_t fl = flow_label & 0xfffff;

	if (!fl) {
		uint64_t v = (uint64_t)qpn * remote_qpn;

		v ^= v >> 20;
		v ^= v >> 40;
		fl = v & 0xfffff;
	}
	return ((fl & 0x3fff) ^ (fl >> 14)) | 0xc000;
}
