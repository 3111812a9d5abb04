/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdint.h>

struct crash_state;
struct journal;

/* A command under `weft crash`; argv[0] is "weft crash images"; the result is the exit code. */
int crash_cmd_images(int argc, char **argv);

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
