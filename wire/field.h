/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Formats as tables: where in a message, counted in bits from its first byte, a member of a C
 * struct lies.  Numbers are big endian on the wire and in host order in the struct; a field of
 * more than 64 bits is an array of bytes.  Pure functions.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct wire_field {
	const char *name;
	uint16_t bit;  /* of its first, most significant bit */
	uint16_t bits; /* up to 64, or a multiple of 8 */
	uint16_t off;  /* of the struct's member */
	uint16_t size; /* of the member: 1, 2, 4, 8, or bits / 8 */
};

struct wire_format {
	const char *name;
	const struct wire_field *fields;
	size_t n;
};

/* A field that starts `bit` bits into byte `byte`. */
#define WIRE_FIELD(type, member, byte, bit, bits)                                                  \
	{                                                                                          \
#member, (byte)*8 + (bit), bits, offsetof(type, member),                           \
			sizeof(((type *)0)->member)                                                \
	}

/* A format that an array of fields makes. */
#define WIRE_FORMAT(name, fields)                                                                  \
	{                                                                                          \
		name, fields, sizeof fields / sizeof fields[0]                                     \
	}

/* Writes the fields of *in to msg; other bits of msg stay as they are. */
void wire_pack(const struct wire_format *f, const void *in, uint8_t *msg);

/* Reads the fields of msg into *out; other members of *out stay as they are. */
void wire_unpack(const struct wire_format *f, const uint8_t *msg, void *out);

/*
 * Writes "NAME field=value ..." to buf, cut off at size; fields that are 0 are left out.
 * Returns the length that it wanted to write.
 */
size_t wire_print(const struct wire_format *f, const void *in, char *buf, size_t size);
