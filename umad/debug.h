/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libibumad says on stderr: dumps that a program asks for, and, from umad_debug(1) on, what
 * its calls do.  All else goes to base/log.h.
 */
#pragma once

/* Writes "ibwarn: [pid] fn: text" to stderr, the form that users of the diags know; keeps errno. */
void debug_say(const char *fn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same, from umad_debug(1) on. */
void debug_trace(const char *fn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
