/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* weft fault: argv as for main(); the exit code. */
int cmd_fault(int argc, char **argv);
