// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

static const char *const level_names[] = {"fatal", "error", "warn", "info", "debug"};
enum { HIGH_FD = 512 };

static _Atomic enum log_level threshold = LOG_LVL_WARN;

/* Does nobody know of WEFT_LOG=info yet? */
static _Atomic bool to_be_told = true;

/*
 * Each library of ours has this file, and a process has several of them: all of their dynamic
 * symbol tables have this name, so that they use the first of them, and the hint comes once.  In a
 * section of its own, or AddressSanitizer takes them for different variables of one name.
 */
__attribute__((visibility("default"), section(".bss.weft_log"))) _Atomic bool weft_log_hinted;

static struct {
	int fd;
	bool is_file; /* then fd is that file as long as it is these: */
	dev_t dev;
	ino_t ino;
} sink = {.fd = STDERR_FILENO};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static int parse_level(const char *s, size_t n)
{
	for (int i = LOG_LVL_ERROR; i <= LOG_LVL_DEBUG; i++)
		if (strlen(level_names[i]) == n && memcmp(level_names[i], s, n) == 0)
			return i;
	return -1;
}

/* A link is followed if we made it, or the system did (/dev/stderr); others may want us to. */
static int open_to_append(const char *file)
{
	const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY;
	int fd = open(file, flags | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd >= 0 || errno != ELOOP || lstat(file, &st))
		return fd;
	if (st.st_uid == geteuid() || st.st_uid == 0)
		return open(file, flags, 0600);
	errno = ELOOP;
	return -1;
}

/*
 * Lines go to that file.  Its fd is a high one: programs that close all they know of, and count
 * on the low numbers, get them.  0 or -errno.
 */
static int open_file(const char *file)
{
	int fd = open_to_append(file), high;
	struct stat st;

	if (fd < 0)
		return -errno;
	high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD); /* fails where ulimit -n is low */
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (fstat(fd, &st)) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	sink.fd = fd;
	sink.is_file = true;
	sink.dev = st.st_dev;
	sink.ino = st.st_ino;
	return 0;
}

/* The program may have closed our fd, and that number be a file of its own by now. */
static bool still_ours(void)
{
	struct stat st;

	if (!sink.is_file)
		return true;
	return !fstat(sink.fd, &st) && st.st_dev == sink.dev && st.st_ino == sink.ino;
}

static int pending(int sig)
{
	sigset_t set;

	return !sigpending(&set) && sigismember(&set, sig) == 1;
}

/*
 * Where ulimit -f bites or a reader is gone, the line is lost, not the program: SIGXFSZ and
 * SIGPIPE would end it.
 */
static void write_line(const char *line, size_t n)
{
	const struct timespec now = {0};
	sigset_t block, ours, old;
	bool sent = false;

	sigemptyset(&block);
	sigaddset(&block, SIGXFSZ);
	sigaddset(&block, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &block, &old);
	sigemptyset(&ours);
	if (!pending(SIGXFSZ))
		sigaddset(&ours, SIGXFSZ);
	if (!pending(SIGPIPE))
		sigaddset(&ours, SIGPIPE);
	if (still_ours())
		sent = write(sink.fd, line, n) >= 0;
	if (!sent && (errno == EFBIG || errno == EPIPE))
		sigtimedwait(&ours, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void write_text(enum log_level level, const char *fmt, va_list ap)
{
	char text[1024], line[1024];
	int n = vsnprintf(text, sizeof text, fmt, ap);
	size_t at =
		snprintf(line, sizeof line, "weft[%d]: %s: ", (int)getpid(), level_names[level]);

	n = n < 0 ? 0 : n < (int)sizeof text ? n : (int)sizeof text - 1;
	at += text_escape(line + at, sizeof line - at - 1, text, n);
	line[at++] = '\n';
	write_line(line, at);
}

/* For what is wrong with WEFT_LOG itself: whatever the level, to stderr. */
static void __attribute__((format(printf, 1, 2))) warn_of_spec(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_text(LOG_LVL_WARN, fmt, ap);
	va_end(ap);
}

static void setup_from_env(void)
{
	const char *spec = secure_getenv("WEFT_LOG");
	size_t n = spec ? strcspn(spec, ":") : 0;
	int level, rc = 0, saved = errno;

	if (!spec || !*spec)
		return;
	atomic_store_explicit(&to_be_told, false, memory_order_relaxed);
	level = parse_level(spec, n);
	if (level >= 0)
		threshold = level;
	else
		warn_of_spec(
			"WEFT_LOG: no level '%.*s'; use error, warn, info or debug", (int)n, spec);
	if (spec[n] && spec[n + 1])
		rc = open_file(spec + n + 1);
	if (rc)
		warn_of_spec("WEFT_LOG: cannot open '%s': %s; lines go to the standard error",
			spec + n + 1, strerror(-rc));
	errno = saved;
}

void log_set_level(enum log_level level)
{
	pthread_once(&once, setup_from_env);
	atomic_store_explicit(&to_be_told, false, memory_order_relaxed);
	atomic_store_explicit(&threshold, level, memory_order_relaxed);
}

int log_enabled(enum log_level level)
{
	pthread_once(&once, setup_from_env);
	return level <= atomic_load_explicit(&threshold, memory_order_relaxed);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (log_enabled(level)) {
		va_start(ap, fmt);
		write_text(level, fmt, ap);
		va_end(ap);
	}
	errno = saved;
}

int log_refusals(void)
{
	if (log_enabled(LOG_LVL_INFO))
		return 1;
	if (atomic_load_explicit(&to_be_told, memory_order_relaxed) &&
		atomic_exchange_explicit(&to_be_told, false, memory_order_relaxed) &&
		!atomic_exchange_explicit(&weft_log_hinted, true, memory_order_relaxed))
		log_line(LOG_LVL_WARN,
			"something was refused, or failed; WEFT_LOG=info says what, and why");
	return 0;
}

static void write_refusal(const char *fmt, va_list ap)
{
	int saved = errno;

	if (log_refusals())
		write_text(LOG_LVL_INFO, fmt, ap);
	errno = saved;
}

void log_refusal(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_refusal(fmt, ap);
	va_end(ap);
}

int log_refused(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_refusal(fmt, ap);
	va_end(ap);
	return err;
}

int log_busy(const char *call, const char *used_by)
{
	log_refusal("%s refused: %s", call, used_by);
	return -EBUSY;
}
