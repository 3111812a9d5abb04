/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log: one line per message, to stderr or to the file of WEFT_LOG=level[:file].  Levels:
 * error, warn (default), info, debug; below them fatal, whose lines always come.  Refusals that
 * surface to the program as a bare errno or completion status say here, in words, why.
 */
#pragma once

enum log_level { LOG_LVL_FATAL, LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_DEBUG };

/*
 * Writes one line "weft[pid]: level: text" if level is enabled, by a single write(2), with control
 * characters escaped (base/text.h); keeps errno; safe from several threads.  Not for signal
 * handlers.
 */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * For refusals and errors: why, as log_line() at info.  Where WEFT_LOG is not set and no level was,
 * the first of a process, its children by fork included, is one line instead, which names
 * WEFT_LOG=info.
 */
void log_refusal(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same; gives err, for whoever returns it. */
int log_refused(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* call would take away what others still use: says by log_refusal() what they are.  -EBUSY. */
int log_busy(const char *call, const char *used_by);

/*
 * True if log_refusal() would write what it is given.  For those to whom the reason is work: else
 * it has written that first line, if it was due.
 */
int log_refusals(void);

/* From now on lines up to that level are written, whatever WEFT_LOG says. */
void log_set_level(enum log_level level);

/* True if a line of that level would be written. */
int log_enabled(enum log_level level);
