// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/process_table.h"

#include "daemon/process.h"

static struct process **bucket(struct server *s, uint32_t id)
{
	return &s->by_number[id % ATTACH_NUMBERS];
}

struct process *process_find(const struct server *s, uint32_t id)
{
	struct process *p = s->by_number[id % ATTACH_NUMBERS];

	while (p && p->id != id)
		p = p->chain;
	return p;
}

void process_table_add(struct server *s, struct process *p)
{
	p->chain = *bucket(s, p->id);
	*bucket(s, p->id) = p;
	p->next = s->processes;
	if (p->next)
		p->next->prev = p;
	s->processes = p;
	s->n_processes++;
}

void process_table_del(struct server *s, struct process *p)
{
	struct process **link = bucket(s, p->id);

	while (*link != p)
		link = &(*link)->chain;
	*link = p->chain;
	if (p->prev)
		p->prev->next = p->next;
	else
		s->processes = p->next;
	if (p->next)
		p->next->prev = p->prev;
	s->n_processes--;
}
