/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A command; argv[0] is "weft env", for messages; the result is the exit code. */
int cmd_env(int argc, char **argv);
