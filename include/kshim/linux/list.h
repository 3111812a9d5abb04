/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings of entries. */
#pragma once

#include <linux/kernel.h>
#include <linux/types.h>

#define LIST_HEAD_INIT(name)                                                                       \
	{                                                                                          \
		&(name), &(name)                                                                   \
	}
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)

static inline void INIT_LIST_HEAD(struct list_head *l)
{
	l->next = l->prev = l;
}

static inline void kshim_list_put(
	struct list_head *e, struct list_head *prev, struct list_head *next)
{
	e->prev = prev;
	e->next = next;
	prev->next = next->prev = e;
}

static inline void list_add(struct list_head *e, struct list_head *head)
{
	kshim_list_put(e, head, head->next);
}

static inline void list_add_tail(struct list_head *e, struct list_head *head)
{
	kshim_list_put(e, head->prev, head);
}

static inline void list_del(struct list_head *e)
{
	e->prev->next = e->next;
	e->next->prev = e->prev;
	e->next = e->prev = NULL;
}

static inline void list_del_init(struct list_head *e)
{
	list_del(e);
	INIT_LIST_HEAD(e);
}

static inline int list_empty(const struct list_head *head)
{
	return head->next == head;
}

#define list_entry(at, type, of)         container_of(at, type, of)
#define list_first_entry(head, type, of) list_entry((head)->next, type, of)
#define list_for_each(at, head)          for (at = (head)->next; at != (head); at = at->next)
#define list_for_each_safe(at, then, head)                                                         \
	for (at = (head)->next, then = at->next; at != (head); at = then, then = at->next)
#define list_for_each_entry(e, head, of)                                                           \
	for (e = list_entry((head)->next, __typeof__(*e), of); &e->of != (head);                   \
		e = list_entry(e->of.next, __typeof__(*e), of))
#define list_for_each_entry_safe(e, then, head, of)                                                \
	for (e = list_entry((head)->next, __typeof__(*e), of),                                     \
	    then = list_entry(e->of.next, __typeof__(*e), of);                                     \
		&e->of != (head); e = then, then = list_entry(then->of.next, __typeof__(*e), of))
