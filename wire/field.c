// SPDX-License-Identifier: BSD-3-Clause
#include "wire/field.h"

#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_bytes(const struct wire_field *f)
{
	return f->bits > 64;
}

static uint64_t load(const struct wire_field *f, const void *in)
{
	const uint8_t *p = (const uint8_t *)in + f->off;
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (f->size) {
	case 1:
		return *p;
	case 2:
		memcpy(&u16, p, 2);
		return u16;
	case 4:
		memcpy(&u32, p, 4);
		return u32;
	default:
		memcpy(&u64, p, 8);
		return u64;
	}
}

static void store(const struct wire_field *f, uint64_t value, void *out)
{
	uint8_t *p = (uint8_t *)out + f->off;
	uint32_t u32 = value;
	uint16_t u16 = value;

	switch (f->size) {
	case 1:
		*p = value;
		break;
	case 2:
		memcpy(p, &u16, 2);
		break;
	case 4:
		memcpy(p, &u32, 4);
		break;
	default:
		memcpy(p, &value, 8);
	}
}

static void put_bits(uint8_t *msg, unsigned bit, unsigned bits, uint64_t value)
{
	/* From the last byte that the field touches back to its first. */
	for (unsigned end = bit + bits; bits;) {
		unsigned low = 8 - (end - 1) % 8 - 1; /* bits below ours in that byte */
		unsigned n = 8 - low < bits ? 8 - low : bits;
		uint8_t mask = ((1u << n) - 1) << low;

		msg[(end - 1) / 8] = (msg[(end - 1) / 8] & ~mask) | (value << low & mask);
		value >>= n;
		end -= n;
		bits -= n;
	}
}

static uint64_t get_bits(const uint8_t *msg, unsigned bit, unsigned bits)
{
	uint64_t value = 0;

	while (bits) {
		unsigned room = 8 - bit % 8;
		unsigned n = room < bits ? room : bits;

		value = value << n | ((msg[bit / 8] >> (room - n)) & ((1u << n) - 1));
		bit += n;
		bits -= n;
	}
	return value;
}

/* Most fields are whole numbers at whole bytes: for them a loop over bits would cost the most. */
static void put(uint8_t *msg, unsigned bit, unsigned bits, uint64_t value)
{
	uint8_t *p = msg + bit / 8;
	uint16_t be16 = htobe16(value);
	uint32_t be32 = htobe32(value);
	uint64_t be64 = htobe64(value);

	switch (bit % 8 ? 0 : bits) {
	case 8:
		*p = value;
		break;
	case 16:
		memcpy(p, &be16, sizeof be16);
		break;
	case 32:
		memcpy(p, &be32, sizeof be32);
		break;
	case 64:
		memcpy(p, &be64, sizeof be64);
		break;
	default:
		put_bits(msg, bit, bits, value);
	}
}

static uint64_t get(const uint8_t *msg, unsigned bit, unsigned bits)
{
	const uint8_t *p = msg + bit / 8;
	uint16_t be16;
	uint32_t be32;
	uint64_t be64;

	switch (bit % 8 ? 0 : bits) {
	case 8:
		return *p;
	case 16:
		memcpy(&be16, p, sizeof be16);
		return be16toh(be16);
	case 32:
		memcpy(&be32, p, sizeof be32);
		return be32toh(be32);
	case 64:
		memcpy(&be64, p, sizeof be64);
		return be64toh(be64);
	default:
		return get_bits(msg, bit, bits);
	}
}

void wire_pack(const struct wire_format *f, const void *in, uint8_t *msg)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct wire_field *x = &f->fields[i];

		if (is_bytes(x))
			memcpy(msg + x->bit / 8, (const uint8_t *)in + x->off, x->size);
		else
			put(msg, x->bit, x->bits, load(x, in));
	}
}

void wire_unpack(const struct wire_format *f, const uint8_t *msg, void *out)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct wire_field *x = &f->fields[i];

		if (is_bytes(x))
			memcpy((uint8_t *)out + x->off, msg + x->bit / 8, x->size);
		else
			store(x, get(msg, x->bit, x->bits), out);
	}
}

struct text {
	char *buf;
	size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *fmt, ...)
{
	size_t room = t->len < t->size ? t->size - t->len : 0;
	va_list ap;

	va_start(ap, fmt);
	t->len += vsnprintf(room ? t->buf + t->len : NULL, room, fmt, ap);
	va_end(ap);
}

/* Bytes without the zeros at their end. */
static void add_bytes(struct text *t, const struct wire_field *f, const uint8_t *p)
{
	size_t n = f->size;

	while (n && !p[n - 1])
		n--;
	if (!n)
		return;
	add(t, " %s=", f->name);
	for (size_t i = 0; i < n; i++)
		add(t, "%02x", p[i]);
}

size_t wire_print(const struct wire_format *f, const void *in, char *buf, size_t size)
{
	struct text t = {buf, size, 0};

	if (size)
		buf[0] = '\0';
	add(&t, "%s", f->name);
	for (size_t i = 0; i < f->n; i++) {
		const struct wire_field *x = &f->fields[i];

		if (is_bytes(x))
			add_bytes(&t, x, (const uint8_t *)in + x->off);
		else if (load(x, in))
			add(&t, " %s=%#" PRIx64, x->name, load(x, in));
	}
	return t.len;
}
