/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A command; argv[0] is "weft topo", for messages; the result is the exit code. */
int cmd_topo(int argc, char **argv);
