/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Lets a process keep the journal (crash/keep.h) until this one has ended, and all that have `path`
 * as JOURNAL_ENV in their environment.  The caller holds the file's lock (flock(2)) and goes on
 * holding it until it becomes the program, so that there is but one.  0 or a negative errno.
 */
int crash_keep(const char *path);
