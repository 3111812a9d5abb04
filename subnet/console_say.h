/* SPDX-License-Identifier: BSD-3-Clause */
/* What a console says, to its owner or as an error. */
#pragma once

#include "subnet/console.h"
#include "topo/lex.h"

enum { CONSOLE_SHOWN = 160 };

/* Output, at most 511 bytes of it. */
void console_print(struct console *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Notes the error and returns err. */
int console_fail(struct console *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Bytes of a line as a message may have them, cut off where they are too many; buf. */
const char *console_shown(char buf[CONSOLE_SHOWN], struct slice s);

/* The id of a node. */
const char *console_id(const struct console *c, uint32_t node);
