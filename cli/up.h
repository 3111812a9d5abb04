/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Commands; argv[0] is "weft NAME", for messages; the result is the exit code. */
int cmd_up(int argc, char **argv);
int cmd_down(int argc, char **argv);
