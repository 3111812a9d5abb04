/* SPDX-License-Identifier: BSD-3-Clause */
/* Check of the environment: variables of Weft that do not exist, or whose value has no meaning. */
#pragma once

struct check;

/* Warns of the first that is wrong.  Who reads a rule, a level or a name says more of it itself. */
void check_variables(struct check *c);
