/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes as sysfs has them, one line of text each.  A number that is none counts as 0, as
 * programs know it of libibumad.  All return 0 or the -errno of opening or reading; *out is then
 * as it was.
 */
#pragma once

#include "umad/umad.h"

/* Attribute name of directory dir without its newline, cut at size - 1. */
int attr_text(const char *dir, const char *name, char *out, size_t size);

/* The number that it begins with: decimal, hexadecimal after 0x ("4: ACTIVE", "0x1", "100 Gb"). */
int attr_number(const char *dir, const char *name, unsigned *out);

/* xxxx:xxxx:xxxx:xxxx.  -EINVAL: fewer words. */
int attr_guid(const char *dir, const char *name, __be64 *out);

/* A GID, eight such words.  -EINVAL: fewer words. */
int attr_gid(const char *dir, const char *name, union umad_gid *out);
