/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments as fds: checked, mapped, and kept out of forked children. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 0 if fd is a memfd of that size, sealed against change of size and seals; else -EPROTO. */
int segment_check(int fd, uint64_t size);

/*
 * Checks fd and maps it whole, shared, read and write, DONTFORK, DONTDUMP, at a free place or,
 * if at is not NULL, in place of what is there.  Registered with rdv_note_mapping().  Logged.
 */
int segment_map(int fd, uint64_t size, void *at, void **base);
