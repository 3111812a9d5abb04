/* SPDX-License-Identifier: BSD-3-Clause */
/* What every command of weft ends with: its exit code, and its message. */
#pragma once

#include <argp.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOT_RUNNABLE = 126, EXIT_NO_CMD = 127 };

/*
 * Prints "weft: text" as one line to stderr, control characters escaped (base/text.h), and returns
 * EXIT_FAILED.
 */
int cli_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* argp_error(3) with control characters escaped. */
void cli_usage(struct argp_state *state, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Flushes stdout: EXIT_OK; if anything could not be written, says so and returns EXIT_FAILED. */
int cli_written(void);
