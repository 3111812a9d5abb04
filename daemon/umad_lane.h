/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of a umad file: who sends, and what is left to do when a process has died. */
#pragma once

#include "daemon/umad_file.h"

/*
 * A lane for the process at the other end of c, whose end ends it.  *fd: its memory, the caller's.
 * -EMFILE: the file, or c of it, has as many as it can have; -ENOMEM and what memfd_create(2)
 * answers.
 */
int ulane_make(struct ufile *f, struct session *c, struct ulane **out, int *fd);

/* The same file: NULL if it has none of that number. */
struct ulane *ulane_find(const struct ufile *f, uint32_t number);

/*
 * Its process has died, or does not want it any more: what it had sent goes out, transactions that
 * it never sent are struck out, its claim on the bell is nobody's.
 */
void ulane_end(struct ulane *l);

/* The same of all lanes of a connection. */
void ulanes_gone(struct session *c);
