// SPDX-License-Identifier: BSD-3-Clause
#include "cli/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

void check_set(struct check *c, enum check_result result, const char *remedy, const char *fmt, ...)
{
	char text[sizeof c->text];
	va_list ap;

	c->result = result;
	snprintf(c->remedy, sizeof c->remedy, "%s", remedy ? remedy : "");
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	text_escape(c->text, sizeof c->text, text, strlen(text));
}
