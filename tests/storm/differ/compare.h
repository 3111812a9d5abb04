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
/* Fails the test if nothing has completed since then, for too long. */
void compare_patience(struct end *e, uint64_t since);
/* Both ends are through: nothing more comes, and all datagrams must be there. */
void compare_arrived(struct end *e);
/* Is a datagram to come still, and may it be under way, if both have been through since then? */
bool compare_awaits(struct end *e, uint64_t since);
/* Both ends are through: is memory as it must be? */
void compare_memory(struct end *e);

/* ---- for the model of a round that broke off (broken.c) ---- */

/* The first request of ours, from *at on, of that lane and poster that completes; false: none. */
bool compare_next_send(const struct end *e, unsigned lane, unsigned poster, uint32_t *at);
/* The same of messages of the other end. */
bool compare_next_recv(const struct end *e, unsigned lane, unsigned poster, uint32_t *at);
/* Is it carried out, as far as the plan goes? */
bool compare_takes_place(const struct end *e, unsigned index);
/* What a request carries, or finds; the caller frees it. */
uint8_t *compare_bytes(struct end *e, const struct request *q);
/* Puts into the shadow what a request did here: of ours, and of the other end. */
void compare_apply(struct end *e, const struct request *q);
/* The same bytes, into `to` instead of the shadow. */
void compare_apply_to(struct end *e, const struct request *q, uint8_t *to);
/* Fails the test if memory is not as the shadow says. */
void compare_shadow(struct end *e);
/* A completion that is not what it should be; index: of the request in the round, or -1. */
void compare_wrong(struct end *e, const struct ibv_wc *wc, unsigned lane, const char *kind,
	int index, enum ibv_wc_status status, const char *what) __attribute__((noreturn));
