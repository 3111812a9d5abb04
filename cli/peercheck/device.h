/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Is that file a shared library of ELF, by its first bytes?  If not why says what it is, or why it
 * cannot be read.
 */
bool device_is_library(const char *client, char *why, size_t size);

/* The device that a client is for, by what its file names; NULL: it names none that is known. */
const char *device_of(const char *client);
