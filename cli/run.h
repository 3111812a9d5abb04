/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A command; argv[0] is "weft run", for messages; the result is the exit code. */
int cmd_run(int argc, char **argv);
