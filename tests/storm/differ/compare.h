/* SPDX-License-Identifier: BSD-3-Clause */
/* The model: what a round must have done, and whether it did. */
#pragma once

#include "end.h"

/* Puts into memory and shadow what the requests of the round that comes find there. */
void compare_prepare(struct end *e);
/* A completion came: it must be the next one of its lane. */
void compare_completion(struct end *e, const struct ibv_wc *wc, bool is_send);
/*
 * How many completions of the round are still to come, and the first of them in words.  Datagrams
 * are not waited for: some may be lost while weftd starts anew.
 */
unsigned compare_missing(struct end *e, char *text, size_t size);
/* Both ends are through: nothing more comes, and all datagrams must be there. */
void compare_arrived(struct end *e);
/* Both ends are through: is memory as it must be? */
void compare_memory(struct end *e);
