/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A command under `weft crash`; argv[0] is "weft crash check"; the result is the exit code. */
int crash_cmd_check(int argc, char **argv);
