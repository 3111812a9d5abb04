/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "daemon/server.h"

/*
 * The state of weftd as a JSON text, see weftd(8), in a memfd.  Returns the fd, the
 * caller's, or a negative errno; *size: bytes of text.
 */
int status_memfd(const struct server *s, uint64_t *size);

/* A text in a memfd, which is the caller's; -errno. */
int status_text_memfd(const char *text, size_t size);
