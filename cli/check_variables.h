/* SPDX-License-Identifier: BSD-3-Clause */
/* Check of the environment: variables of Weft that do not exist, or whose value has no meaning. */
#pragma once

struct check;

/*
 * Warns of the first that is wrong.  What is found of the runtime directory is
 * check_runtime_dir()'s, of the names of fabric and node check_weftd_runs()'s; names of files are
 * checked by who reads them.
 */
void check_variables(struct check *c);
