// SPDX-License-Identifier: BSD-3-Clause
#include "umad/debug.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "umad/umad.h"

enum { LINE_MAX_TEXT = 512 };

static _Atomic int debug_level;

int umad_debug(int level)
{
	if (level >= 0)
		atomic_store_explicit(&debug_level, level, memory_order_relaxed);
	return atomic_load_explicit(&debug_level, memory_order_relaxed);
}

static void say(const char *fn, const char *fmt, va_list ap)
{
	char text[LINE_MAX_TEXT];
	int err = errno;

	vsnprintf(text, sizeof text, fmt, ap);
	fprintf(stderr, "ibwarn: [%d] %s: %s\n", getpid(), fn, text);
	errno = err;
}

void debug_say(const char *fn, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fn, fmt, ap);
	va_end(ap);
}

void debug_trace(const char *fn, const char *fmt, ...)
{
	va_list ap;

	if (umad_debug(-1) < 1)
		return;
	va_start(ap, fmt);
	say(fn, fmt, ap);
	va_end(ap);
}
