// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/console_say.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

enum { PIECE = 512 };

void console_print(struct console *c, const char *fmt, ...)
{
	char text[PIECE];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n > 0)
		c->hooks.print(c->hooks.arg, text, n < PIECE ? n : PIECE - 1);
}

int console_fail(struct console *c, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->error, sizeof c->error, fmt, ap);
	va_end(ap);
	return err;
}

const char *console_shown(char buf[CONSOLE_SHOWN], struct slice s)
{
	text_escape(buf, CONSOLE_SHOWN, s.p, s.len);
	return buf;
}

const char *console_id(const struct console *c, uint32_t node)
{
	return c->topo->nodes[node].id;
}
