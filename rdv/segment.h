/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments as fds: checked, mapped, and kept out of forked children. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct client;
struct proto_in;

/* 0 if fd is a memfd of that size, sealed against change of size and seals; else -EPROTO. */
int segment_check(int fd, uint64_t size);

/*
 * Checks fd and maps it whole, shared, read and write, DONTFORK, DONTDUMP, at a free place or,
 * if at is not NULL, in place of what is there.  Registered with rdv_note_mapping().  Logged.
 */
int segment_map(int fd, uint64_t size, void *at, void **base);

/*
 * Maps what weftd handed out in its reply to OP_ATTACH; takes the fds that are kept, closes the
 * others.  -EPROTO: not that; -ENOMEM, both logged.
 */
int segment_adopt(struct client *c, struct proto_in *in);

/* Undoes a first segment_adopt(), complete or not. */
void segment_discard(struct client *c);
