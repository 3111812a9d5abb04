// SPDX-License-Identifier: BSD-3-Clause
#include <assert.h>
#include <string.h>

#ifdef WEFT_HAVE_ISAL
#include <isa-l/crc.h>
#else
#include <libdeflate.h>
#endif

#include "wire/icrc.h"

enum {
	LRH_LEN = 8,
	IPV4_LEN = 20,
	IPV6_LEN = 40,
	UDP_LEN = 8,
	PSEUDO_MAX = LRH_LEN + IPV6_LEN + UDP_LEN,
	BTH_RESERVED = 4, /* FECN, BECN and six reserved bits */
	DONT_FRAGMENT = 0x40,
	PROTO_UDP = 17,
};

static const uint32_t POLY = 0xedb88320; /* reflected: bit 31 is the coefficient of x^0 */

uint32_t icrc_add(uint32_t crc, const void *bytes, size_t n)
{
#ifdef WEFT_HAVE_ISAL
	return crc32_gzip_refl(crc, bytes, n);
#else
	return libdeflate_crc32(crc, bytes, n);
#endif
}

static uint8_t *put16(uint8_t *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
	return p + 2;
}

static uint8_t *pseudo_ipv4(const struct icrc_path *path, uint16_t id, size_t udp_len, uint8_t *p)
{
	*p++ = 0x45;
	*p++ = 0xff; /* TOS */
	p = put16(put16(p, IPV4_LEN + udp_len), id);
	*p++ = DONT_FRAGMENT;
	*p++ = 0;
	*p++ = 0xff; /* TTL */
	*p++ = PROTO_UDP;
	p = put16(p, 0xffff); /* header checksum */
	memcpy(p, path->src + 12, 4);
	memcpy(p + 4, path->dst + 12, 4);
	return p + 8;
}

static uint8_t *pseudo_ipv6(const struct icrc_path *path, size_t udp_len, uint8_t *p)
{
	memset(p, 0xff, 4); /* traffic class and flow label */
	*p = 0x6f;
	p = put16(p + 4, udp_len);
	*p++ = PROTO_UDP;
	*p++ = 0xff; /* hop limit */
	memcpy(p, path->src, 16);
	memcpy(p + 16, path->dst, 16);
	return p + 32;
}

uint32_t icrc_begin(const struct icrc_path *path, uint16_t ip_id, size_t udp_payload,
	const uint8_t *head, size_t head_len)
{
	uint8_t buf[PSEUDO_MAX + ROCE_HEADERS_MAX], *p = buf + LRH_LEN;
	size_t udp_len = UDP_LEN + udp_payload;

	assert(head_len >= ROCE_BTH_LEN && head_len <= ROCE_HEADERS_MAX);
	memset(buf, 0xff, LRH_LEN);
	p = path->ipv6 ? pseudo_ipv6(path, udp_len, p) : pseudo_ipv4(path, ip_id, udp_len, p);
	p = put16(put16(put16(p, path->src_port), path->dst_port), udp_len);
	p = put16(p, 0xffff); /* UDP checksum */
	memcpy(p, head, head_len);
	p[BTH_RESERVED] = 0xff;
	return icrc_add(0, buf, p + head_len - buf);
}

void icrc_put(uint32_t crc, uint8_t out[ROCE_ICRC_LEN])
{
	for (int i = 0; i < ROCE_ICRC_LEN; i++)
		out[i] = crc >> 8 * i;
}

static uint32_t icrc_get(const uint8_t *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

/* a * b mod P, of reflected polynomials. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t bit = 0x80000000; bit; bit >>= 1) {
		if (a & bit)
			product ^= b;
		b = b & 1 ? b >> 1 ^ POLY : b >> 1;
	}
	return product;
}

/* x^-(8 * 2^i) mod P: each is the square of the one before. */
static const uint32_t shrinks[] = {
	0x6567cb95,
	0xd7125358,
	0x5b358fd3,
	0x2e9bb40b,
	0x12a59a49,
	0x8df9403d,
	0x5139de12,
	0xba340226,
	0x29c45641,
	0x12fbc105,
	0xecd30c55,
	0x3755ebd8,
	0x24ee460c,
	0x23783fcf,
	0x479933fc,
	0xa39442a5,
	0x9ea0056d,
};

/* x^-(8 * bytes) mod P, of up to 2^17 - 1 bytes. */
static uint32_t shrink(size_t bytes)
{
	uint32_t result = 0x80000000;

	for (int i = 0; bytes; i++, bytes >>= 1)
		if (bytes & 1)
			result = multiply(result, shrinks[i]);
	return result;
}

bool icrc_solve_id(uint32_t difference, size_t behind, uint16_t *id)
{
	/* the CRC of m(x) and n zero bytes is m(x) * x^(8n + 32) */
	uint32_t m = multiply(difference, shrink(behind + 4));

	if (m & 0xffff)
		return false;
	*id = (m >> 16 & 0xff) << 8 | m >> 24;
	return true;
}

bool icrc_check(const struct icrc_path *path, const uint8_t *datagram, size_t len, uint16_t *id)
{
	size_t covered = len - ROCE_ICRC_LEN;
	size_t head = covered < ROCE_HEADERS_MAX ? covered : ROCE_HEADERS_MAX;
	uint32_t want = icrc_get(datagram + covered), got;
	uint16_t difference;

	got = icrc_begin(path, *id, len, datagram, head);
	got = icrc_add(got, datagram + head, covered - head);
	if (got == want)
		return true;
	/* behind the identification: the rest of the IP header, UDP, and what is covered */
	if (path->ipv6 || !icrc_solve_id(got ^ want, IPV4_LEN - 6 + UDP_LEN + covered, &difference))
		return false;
	*id ^= difference;
	return true;
}
