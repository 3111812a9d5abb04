// SPDX-License-Identifier: BSD-3-Clause
/* The log: thresholds, the default function, and the program's own. */
#include "rpma/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 1024, LEVELS = RPMA_LOG_LEVEL_DEBUG + 1 };

/* Independent words: relaxed order everywhere. */
static _Atomic int thresholds[RPMA_LOG_THRESHOLD_MAX] = {
	[RPMA_LOG_THRESHOLD] = RPMA_LOG_LEVEL_WARNING,
	[RPMA_LOG_THRESHOLD_AUX] = RPMA_LOG_DISABLED,
};
static _Atomic(rpma_log_function *) sink; /* NULL: the default */

static const struct {
	const char *name;
	int priority;
} levels[LEVELS] = {
	[RPMA_LOG_LEVEL_FATAL] = {"*FATAL*", LOG_CRIT},
	[RPMA_LOG_LEVEL_ERROR] = {"*ERROR*", LOG_ERR},
	[RPMA_LOG_LEVEL_WARNING] = {"*WARN*", LOG_WARNING},
	[RPMA_LOG_LEVEL_NOTICE] = {"*NOTE*", LOG_NOTICE},
	[RPMA_LOG_LEVEL_INFO] = {"*INFO*", LOG_INFO},
	[RPMA_LOG_LEVEL_DEBUG] = {"*DEBUG*", LOG_DEBUG},
};

static bool passes(enum rpma_log_level level, enum rpma_log_threshold threshold)
{
	return (int)level <= atomic_load_explicit(&thresholds[threshold], memory_order_relaxed);
}

/* ---- the default function ---- */

static void print(const char *level, const char *where, const char *text)
{
	char when[32] = "";
	struct timeval tv;
	struct tm tm;

	gettimeofday(&tv, NULL);
	if (localtime_r(&tv.tv_sec, &tm))
		strftime(when, sizeof when, "%b %d %H:%M:%S", &tm);
	fprintf(stderr, "%s.%06ld [%d] %-7s %s%s\n", when, (long)tv.tv_usec, (int)gettid(), level,
		where, text);
}

/* No openlog(): the program's name and options in syslog are its own. */
static void default_function(enum rpma_log_level level, const char *file, const char *function,
	int line, const char *text)
{
	char where[256] = "";

	if (file)
		snprintf(where, sizeof where, "%s: %d: %s: ", file, line, function);
	if (passes(level, RPMA_LOG_THRESHOLD_AUX))
		print(levels[level].name, where, text);
	syslog(LOG_LOCAL7 | levels[level].priority, "rpma: %-7s %s%s", levels[level].name, where,
		text);
}

/* ---- messages ---- */

static void pass_on(enum rpma_log_level level, const char *file, int line, const char *function,
	const char *text)
{
	rpma_log_function *fn = atomic_load_explicit(&sink, memory_order_relaxed);
	const char *base = strrchr(file, '/');

	file = base ? base + 1 : file;
	if (fn)
		fn(level, file, line, function, "%s", text);
	else
		default_function(level, file, function, line, text);
}

void log_message(enum rpma_log_level level, const char *file, int line, const char *function,
	const char *fmt, ...)
{
	int saved = errno;
	char text[TEXT_MAX];
	va_list ap;

	if (!passes(level, RPMA_LOG_THRESHOLD))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	pass_on(level, file, line, function, text);
	errno = saved;
}

int log_provider(const char *file, int line, const char *function, const char *call, int err)
{
	log_message(RPMA_LOG_LEVEL_ERROR, file, line, function, "%s failed: %s", call,
		strerror(err < 0 ? -err : err));
	return RPMA_E_PROVIDER;
}

/* ---- what the program sets ---- */

static bool is_threshold(enum rpma_log_threshold threshold)
{
	return (unsigned)threshold < RPMA_LOG_THRESHOLD_MAX;
}

int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level)
{
	if (!is_threshold(threshold) || (int)level < RPMA_LOG_DISABLED || (int)level >= LEVELS)
		return RPMA_E_INVAL;
	atomic_store_explicit(&thresholds[threshold], level, memory_order_relaxed);
	return 0;
}
RPMA_SINCE_0_10(rpma_log_set_threshold);

int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level *level)
{
	if (!is_threshold(threshold) || !level)
		return RPMA_E_INVAL;
	*level = atomic_load_explicit(&thresholds[threshold], memory_order_relaxed);
	return 0;
}
RPMA_SINCE_0_10(rpma_log_get_threshold);

int rpma_log_set_function(rpma_log_function *log_function)
{
	atomic_store_explicit(&sink, log_function, memory_order_relaxed);
	return 0;
}
RPMA_SINCE_0_10(rpma_log_set_function);
