/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A client that was compiled for a sanitizer needs its runtime, which must come first in a process:
 * becomes this program once more, with that preloaded.  self: its file.  0: nothing is to be done;
 * else an exit code, after printing why.
 */
int sanitizer_preload(const char *client, const char *self, char **argv);
