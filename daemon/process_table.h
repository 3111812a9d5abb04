/* SPDX-License-Identifier: BSD-3-Clause */
/* All attached processes, by attach id and as a list. */
#pragma once

#include "daemon/server.h"

/* NULL if no such process is attached. */
struct process *process_find(const struct server *s, uint32_t id);

/* One with an id that no other has. */
void process_table_add(struct server *s, struct process *p);

void process_table_del(struct server *s, struct process *p);
