/* SPDX-License-Identifier: BSD-3-Clause */
/* Text of others, where people read it. */
#pragma once

#include <stddef.h>

/*
 * Writes the len bytes at from into to, of size bytes, at least 1, so that a terminal shows them
 * and obeys nothing: control characters, and what is no UTF-8, become \xNN.  What does not fit is
 * left away; to ends with a NUL, and is UTF-8.  Returns its length.
 */
size_t text_escape(char *to, size_t size, const char *from, size_t len);
