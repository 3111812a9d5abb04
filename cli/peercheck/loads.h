/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stddef.h>

/*
 * Do these n libraries, loaded one after the other as WEFT_PEER_CLIENTS has them, register peer
 * clients, each at least one?  Tried in a process of its own, for at most 5 s each; libverbs is
 * Weft's libibverbs.so.1, which they may need.  n: they do; else the index of the first that does
 * not, and why (of size bytes) says what it did instead.
 */
unsigned peer_clients_load(
	char *const *path, unsigned n, const char *libverbs, char *why, size_t size);
