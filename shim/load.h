/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries of ours that the shim is not linked with: it loads them when a program needs them. */
#pragma once

/*
 * What function symbol of a library returns, which is a const table: of the library of that name
 * that the program has loaded.  NULL: it has none, or another's.  Keeps errno.
 */
const void *load_found(const char *library, const char *symbol);

/*
 * The same, and else of the one that lies beside the shim, or where the loader finds one, which
 * stays loaded from now on.  NULL, and a line in the log that says why: there is none of ours.
 */
const void *load_table(const char *library, const char *symbol);
