// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct record *mine;
static enum family family_of_mine;
static _Atomic unsigned threads;
static __thread unsigned char thread, depth;

void record_use(struct record *r, enum family family)
{
	mine = r;
	family_of_mine = family;
}

struct record *record_mine(void)
{
	return mine;
}

enum family record_family(void)
{
	return family_of_mine;
}

static unsigned begin(const char *fmt, va_list args)
{
	const unsigned i = atomic_fetch_add_explicit(&mine->calls, 1, memory_order_relaxed);

	if (!thread)
		thread = (unsigned char)(atomic_fetch_add_explicit(
						 &threads, 1, memory_order_relaxed) +
					 1);
	if (i >= RECORD_CALLS)
		return i;
	mine->call[i].thread = thread;
	mine->call[i].depth = depth;
	vsnprintf(mine->call[i].text, RECORD_TEXT, fmt, args);
	return i;
}

unsigned record_begin(const char *fmt, ...)
{
	va_list args;
	unsigned i;

	va_start(args, fmt);
	i = begin(fmt, args);
	va_end(args);
	depth++;
	return i;
}

void record_end(unsigned call, const char *fmt, ...)
{
	va_list args;
	size_t at;

	depth--;
	if (call >= RECORD_CALLS)
		return;
	at = strlen(mine->call[call].text);
	va_start(args, fmt);
	vsnprintf(mine->call[call].text + at, RECORD_TEXT - at, fmt, args);
	va_end(args);
}

void record_note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	begin(fmt, args);
	va_end(args);
}

static bool is_first(unsigned rule)
{
	unsigned none = 0;

	return atomic_compare_exchange_strong_explicit(
		&mine->rule, &none, rule, memory_order_acq_rel, memory_order_acquire);
}

void record_broken(unsigned rule, const char *sign, const char *fmt, ...)
{
	va_list args;

	if (!is_first(rule_in_family(family_of_mine, rule)))
		return;
	va_start(args, fmt);
	vsnprintf(mine->text, sizeof mine->text, fmt, args);
	va_end(args);
	snprintf(mine->sign, sizeof mine->sign, "%s", sign);
}

void record_seen(enum seen what, const char *in, const char *fmt, ...)
{
	static const char *const names[] = {
		"crash", "hang", "stale", "memory", "pinned", "objects", "modules"};
	const bool by_function = what <= SEEN_MEMORY && what != SEEN_HANG;
	va_list args;

	if (!is_first(rule_broken(family_of_mine, what, in)))
		return;
	va_start(args, fmt);
	vsnprintf(mine->text, sizeof mine->text, fmt, args);
	va_end(args);
	snprintf(mine->sign, sizeof mine->sign, "%s%s%s", names[what], by_function ? " in " : "",
		by_function && in ? in : "");
}

void record_fork(const char *in, const char *more)
{
	char sign[sizeof mine->sign];

	snprintf(sign, sizeof sign, "fork in %s", in);
	record_broken(22, sign, "it forks in %s", in);
	if (strcmp(mine->sign, sign) == 0 &&
		strlen(mine->text) < strlen("it forks in ") + strlen(in) + strlen(more))
		snprintf(mine->text, sizeof mine->text, "it forks in %s%s", in, more);
}

void record_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(mine->text, sizeof mine->text, fmt, args);
	va_end(args);
	mine->error = true;
}

void record_skip(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(mine->skipped, sizeof mine->skipped, fmt, args);
	va_end(args);
}
