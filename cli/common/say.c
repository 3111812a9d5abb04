// SPDX-License-Identifier: BSD-3-Clause
#include "cli/common/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { MESSAGE = 8192 };

static void __attribute__((format(printf, 2, 0)))
form(char line[MESSAGE], const char *fmt, va_list ap)
{
	char text[MESSAGE];
	int n = vsnprintf(text, sizeof text, fmt, ap);

	n = n < 0 ? 0 : n < MESSAGE ? n : MESSAGE - 1;
	text_escape(line, MESSAGE, text, n);
}

int cli_fail(const char *fmt, ...)
{
	char line[MESSAGE];
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	form(line, fmt, ap);
	va_end(ap);
	fprintf(stderr, "weft: %s\n", line);
	return EXIT_FAILED;
}

void cli_usage(struct argp_state *state, const char *fmt, ...)
{
	char line[MESSAGE];
	va_list ap;

	va_start(ap, fmt);
	form(line, fmt, ap);
	va_end(ap);
	argp_error(state, "%s", line);
}

int cli_written(void)
{
	int failed = fflush(stdout) ? errno : ferror(stdout) ? EIO : 0;

	clearerr(stdout);
	return failed ? cli_fail("cannot write to standard output: %s; make room, or write "
				 "elsewhere",
				strerror(failed))
		      : EXIT_OK;
}
