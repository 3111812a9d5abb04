/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that tests send: a pattern for each seed, in which a byte's place shows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The byte at position i of pattern seed. */
uint8_t pattern_byte(uint32_t seed, size_t i);
/* Fills with the pattern's first len bytes. */
void pattern_fill(uint8_t *p, size_t len, uint32_t seed);
/* How many bytes are the pattern's before the first that is not: len if all are. */
size_t pattern_match(const uint8_t *p, size_t len, uint32_t seed);
/* True if all len bytes are the pattern's. */
bool pattern_filled(const uint8_t *p, size_t len, uint32_t seed);
/* True if all bytes are c. */
bool pattern_all(const uint8_t *p, size_t len, uint8_t c);
