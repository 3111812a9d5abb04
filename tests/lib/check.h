/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks for test programs: each that fails prints a line and is counted; the rest goes on. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Names what the following checks of this thread are about; printed with each failure.  printf
 * style. */
void check_case(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Counts one check; prints if it failed. */
bool check_that(bool ok, const char *file, int line, const char *what);
bool check_equal(int64_t got, int64_t want, const char *file, int line, const char *what);

#define CHECK(cond)         check_that(cond, __FILE__, __LINE__, #cond)
#define CHECK_EQ(got, want) check_equal((int64_t)(got), (int64_t)(want), __FILE__, __LINE__, #got)
#define CHECK_RANGE(v, a, b)                                                                       \
	check_range((int64_t)(v), (int64_t)(a), (int64_t)(b), __FILE__, __LINE__, #v)

/* A call that must answer -1 and set errno to err. */
#define CHECK_FAILS(call, err)                                                                     \
	(errno = 0, check_fails((int64_t)(call), (err), __FILE__, __LINE__, #call))
bool check_fails(int64_t ret, int err, const char *file, int line, const char *what);

/* a <= v <= b */
bool check_range(int64_t v, int64_t a, int64_t b, const char *file, int line, const char *what);

/* The test cannot go on: prints the message, and errno's, and exits with 1. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Adds the failures of a child process that ended with this wait status. */
void check_child(int wait_status);

/* Failures so far in this process. */
unsigned check_failures(void);

/* Prints "N checks, N failed"; the exit code of the program. */
int check_result(void);

/* How many lines of that file have the text in them; 0 also if it cannot be opened. */
unsigned lines_with(const char *path, const char *text);

/* Milliseconds of CLOCK_MONOTONIC. */
double now_ms(void);

/*
 * Waits until thread tid, of this process or another one, sleeps and goes on sleeping; ends the
 * test if it does not.
 */
void await_sleep(pid_t tid);

/* Has this machine the address ::1? */
bool has_ipv6(void);
