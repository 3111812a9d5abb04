// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/peer_stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/process.h"
#include "fabric/tree.h"
#include "peermem/stats.h"

/* A process could name more and more: of those that ended the last ones are kept. */
enum { NAMES_MAX = 256, NAME_ROOM = 64, VERSION_ROOM = 16 };

/* What all clients of a name counted. */
struct peer_total {
	char name[NAME_ROOM], version[VERSION_ROOM];
	uint32_t processes;         /* that live and have one */
	const struct process *last; /* of those; the client may have come there several times */
	uint64_t count[PEER_STATS];
	struct peer_total *next; /* in the order in which they came */
};

/* ---- gathering ---- */

/* A copy that is terminated, with a ? for what is not printable; false: it is no name of a file. */
static bool read_text(char *to, const char *from, size_t room)
{
	memcpy(to, from, room - 1); /* what is checked can change there no more */
	to[room - 1] = '\0';
	to[strcspn(to, "/")] = '\0';
	for (char *c = to; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return to[strspn(to, " ")] && strcmp(to, ".") && strcmp(to, "..");
}

/* Of so many names one goes that no living process has, the oldest.  False: there is none. */
static bool make_room(struct peer_total **list)
{
	struct peer_total **at = list, *gone;

	while (*at && (*at)->processes)
		at = &(*at)->next;
	gone = *at;
	if (!gone)
		return false;
	*at = gone->next;
	free(gone);
	return true;
}

static struct peer_total *find(struct peer_total **list, const char *name)
{
	struct peer_total **at = list;
	unsigned n = 0;

	for (; *at; at = &(*at)->next, n++)
		if (!strcmp((*at)->name, name))
			return *at;
	if (n >= NAMES_MAX) {
		if (!make_room(list))
			return NULL;
		for (at = list; *at; at = &(*at)->next)
			;
	}
	*at = calloc(1, sizeof **at);
	if (*at)
		strcpy((*at)->name, name);
	return *at;
}

static void count_process(struct peer_total *t, const struct process *p)
{
	t->processes += p != t->last;
	t->last = p;
}

/* A kernel deregisters what a process leaves behind: n[gone] comes up to n[come]. */
static void end_left(uint64_t n[PEER_STATS])
{
	static const struct {
		enum peer_stat come, gone;
	} pairs[] = {{PEER_ALLOC_MRS, PEER_DEALLOC_MRS}, {PEER_REG_PAGES, PEER_DEREG_PAGES},
		{PEER_REG_BYTES, PEER_DEREG_BYTES}};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		if (n[pairs[i].gone] < n[pairs[i].come])
			n[pairs[i].gone] = n[pairs[i].come];
}

/* Of a process that lives; NULL: of one that has ended. */
static void add_entry(
	struct peer_total **list, const struct seg_peer *p, const struct process *living)
{
	uint64_t counted[PEER_STATS];
	struct peer_total *t;
	char name[NAME_ROOM];

	if (!atomic_load_explicit(&p->shown, memory_order_acquire) ||
		!read_text(name, p->name, sizeof name))
		return;
	t = find(list, name);
	if (!t)
		return;
	read_text(t->version, p->version, sizeof t->version);
	if (living)
		count_process(t, living);
	for (int i = 0; i < PEER_STATS; i++)
		counted[i] = atomic_load_explicit(&p->count[i], memory_order_relaxed);
	if (!living)
		end_left(counted);
	for (int i = 0; i < PEER_STATS; i++)
		t->count[i] += counted[i];
}

static void add_process(struct peer_total **list, const struct process *p, bool lives)
{
	for (int i = 0; i < SEG_PEERS; i++)
		add_entry(list, &p->seg->peer[i], lives ? p : NULL);
}

static void copy_total(struct peer_total **list, const struct peer_total *from)
{
	struct peer_total *t = find(list, from->name);
	struct peer_total *next;

	if (!t)
		return;
	next = t->next;
	*t = *from;
	t->next = next;
}

static struct peer_total *gather(const struct server *s)
{
	struct peer_total *all = NULL;

	for (const struct peer_total *t = s->ended_peers; t; t = t->next)
		copy_total(&all, t);
	for (const struct process *p = s->processes; p; p = p->next)
		add_process(&all, p, true);
	return all;
}

static void drop(struct peer_total *list)
{
	while (list) {
		struct peer_total *next = list->next;

		free(list);
		list = next;
	}
}

void peer_stats_keep(struct server *s, const struct process *p)
{
	add_process(&s->ended_peers, p, false);
}

/* ---- showing ---- */

static json_t *one(const struct peer_total *t)
{
	json_t *o = json_object();

	json_object_set_new(o, "name", json_string(t->name));
	json_object_set_new(o, "version", json_string(t->version));
	json_object_set_new(o, "processes", json_integer(t->processes));
	for (int i = 0; i < PEER_STATS; i++)
		json_object_set_new(
			o, peer_stat_name(i + 1), json_integer((json_int_t)t->count[i]));
	return o;
}

json_t *peer_stats_status(const struct server *s)
{
	struct peer_total *all = gather(s);
	json_t *a = json_array();

	for (const struct peer_total *t = all; t; t = t->next)
		json_array_append_new(a, one(t));
	drop(all);
	return a;
}

static void write_client(struct tree *t, const struct peer_total *c)
{
	const struct tree_path dir = tree_path("sys/kernel/mm/memory_peers/%s", c->name);

	tree_dir(t, dir.s);
	for (int i = 0; i < PEER_KERNEL_STATS; i++)
		tree_put(t, tree_path("%s/%s", dir.s, peer_stat_name(i + 1)).s, "%" PRIu64 "\n",
			c->count[i]);
	tree_put(t, tree_path("%s/%s", dir.s, peer_stat_name(0)).s, "%s\n", c->version);
}

/* What libraries look for to know whether GPU memory can be registered. */
static void write_module(struct tree *t, const char *module, const char *version)
{
	tree_dir(t, "sys/module");
	tree_dir(t, tree_path("sys/module/%s", module).s);
	tree_put(t, tree_path("sys/module/%s/version", module).s, "%s\n", version);
}

static void write_all(struct tree *t, const struct peer_total *all)
{
	tree_dir(t, "sys");
	tree_dir(t, "sys/kernel");
	tree_dir(t, "sys/kernel/mm");
	tree_dir(t, "sys/kernel/mm/memory_peers");
	for (const struct peer_total *c = all; c; c = c->next) {
		write_client(t, c);
		if (strcmp(c->name, "nv_mem"))
			continue;
		write_module(t, "nvidia_peermem", c->version);
		write_module(t, "nv_peer_mem", c->version);
	}
}

void peer_stats_write(const struct server *s)
{
	struct peer_total *all = gather(s);
	char name[sizeof s->paths.name + 8];
	struct tree t;
	int ret;

	if (!all)
		return;
	snprintf(name, sizeof name, "%s.tree", s->paths.name);
	ret = tree_open(&t, s->paths.dir_fd, name);
	if (!ret) {
		write_all(&t, all);
		ret = tree_close(&t);
	}
	if (ret)
		log_line(LOG_LVL_WARN, "cannot write peer clients in %s/%s: %s", s->paths.dir, name,
			strerror(-ret));
	drop(all);
}
