/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Does that library, loaded as WEFT_PEER_CLIENTS has it, register a peer client?  Tried in a
 * process of its own, for at most 5 s; libverbs is Weft's libibverbs.so.1, which it may need.
 * false: why (of n bytes) says what it did instead.
 */
bool peer_client_loads(const char *path, const char *libverbs, char *why, size_t n);
