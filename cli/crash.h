/* SPDX-License-Identifier: BSD-3-Clause */
/* What the commands under `weft crash` share. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "cli/cli.h"
#include "crash/search.h"

/* Further commands; argv[0] is "weft crash NAME". */
int crash_cmd_show(int argc, char **argv);
int crash_cmd_images(int argc, char **argv);
int crash_cmd_check(int argc, char **argv);

/*
 * Opens a journal, or prints why not and returns EXIT_FAILED; to read it, only if it is all as it
 * was written.
 */
int crash_open(struct journal *j, const char *path, bool writable);

/*
 * Lets a process keep the journal (crash/keep.h) until this one has ended, and all that have `path`
 * as JOURNAL_ENV in their environment.  The caller holds the file's lock (flock(2)) and goes on
 * holding it until it becomes the program, so that there is but one.  0 or a negative errno.
 */
int crash_keep(const char *path);

/* Parses a number from 0 to max, or ends the program with a usage error. */
uint64_t crash_number(struct argp_state *state, const char *text, uint64_t max);
/* The same from 1 on. */
uint64_t crash_positive(struct argp_state *state, const char *text, uint64_t max);

/* ---- crash_show.c ---- */

/* "RDMA WRITE of 64 bytes at +0x40, ..." */
void crash_describe(FILE *to, const struct crash_state *s, const struct journal_record *r);
json_t *crash_describe_json(
	const struct crash_state *s, const struct journal_record *r, uint64_t index);

/* ---- crash_image.c ---- */

/*
 * Writes the image with those pending words kept to `where`: a file, or a directory with a file
 * region-N for each if there are several regions.  0 or -errno.
 */
int crash_write_image(const struct crash_state *s, const uint8_t *keep, const char *where);

/* Removes it again. */
void crash_remove_image(const char *where);

/* Writes the texts of the first n marks, a line each.  0 or -errno. */
int crash_write_marks(const struct journal *j, uint64_t n, const char *path);

/*
 * Runs a shell command in which each {} is the image `where`; what it prints goes to the file
 * `output`.  Its exit status, 128 + signal, -ETIME if it took longer than that, another -errno.
 */
int crash_run_check(const char *command, const char *where, const char *output, unsigned seconds);
/* Ends the check that runs, if one does; for a handler of signals. */
void crash_end_check(void);
