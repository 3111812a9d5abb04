/* SPDX-License-Identifier: BSD-3-Clause */
/* Check of one program: what weft run would find of it. */
#pragma once

struct check;

/*
 * Looks at the program that the command cmd, up to NULL, starts (cli/common/program.h).  Fails
 * where it cannot be run, or not on Weft.  Runs nothing.
 */
void check_program(struct check *c, char **cmd);
