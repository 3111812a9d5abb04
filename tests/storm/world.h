/* SPDX-License-Identifier: BSD-3-Clause */
/* What every test of this directory does first and last: its own weftd, and no trace of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* So long world_empty() may take where a machine is busy. */
enum { EMPTY_MS = 20000 };

struct counts {
	int processes, channels, leases, timers, fds;
	pid_t pid; /* of weftd */
};

/*
 * A runtime directory of our own, logs of all processes in it, ours to reap whatever is
 * orphaned.  build: the build directory.
 */
void world_begin(const char *build);

/* Starts weftd so that it stays. */
void world_up(void);

/* Asks weftd; false if it does not answer. */
bool world_counts(struct counts *c);

/* Waits until nothing is attached and weftd has as many fds as after its start: 0, or how long. */
bool world_empty(unsigned within_ms);

/* How many weftd processes serve our directory. */
unsigned world_daemons(void);

/* Sends each of them a signal. */
void world_signal_daemons(int sig);

/* Reaps what was orphaned and has ended; the number. */
unsigned world_reap(void);

/* True if some log holds that text. */
bool world_logged(const char *text);

/* Ends weftd, removes the directory; the exit status of the test: 1 after a failed check. */
int world_end(void);

/* Counts and reports a failure if ok is false. */
bool check(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

uint64_t now_ns(void);
void nap_us(unsigned us);
