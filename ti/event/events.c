// SPDX-License-Identifier: BSD-3-Clause
#include "ti/event/events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ti/conn/cm.h"
#include "ti/core/fork.h"
#include "ti/core/system.h"
#include "ti/event/netdev.h"

enum { NAME_SIZE = 16 };

/* In the order of registering, and of id. */
struct listener {
	struct job job; /* of its beginning */
	struct listener *next;
	uint64_t id;
	const void *context;
	ti_event_cb_t cb;
	char prefix[NAME_SIZE];
	bool begun;
	unsigned refs; /* calls that run, the job, the list */
	unsigned calls;
};

struct notice {
	struct job job;
	char *reason;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t returned; /* a callback */
	struct listener *list;
	uint64_t last_id;
	bool watching;
} events = {.lock = PTHREAD_MUTEX_INITIALIZER, .returned = PTHREAD_COND_INITIALIZER};

/* Callbacks of events that run in this thread. */
static _Thread_local unsigned depth __attribute__((tls_model("initial-exec")));

/* ---- telling ---- */

/* Under lock. */
static void put(struct listener *l)
{
	if (!--l->refs)
		free(l);
}

static bool has_prefix(const char *name, const struct listener *l)
{
	return name && !strncmp(name, l->prefix, strlen(l->prefix));
}

static bool wants(const struct listener *l, const char *name, const char *old_name)
{
	return !*l->prefix || has_prefix(name, l) || has_prefix(old_name, l);
}

/* Under lock, which is not held during the call. */
static void call(struct listener *l, ti_event_t event, const void *data)
{
	unsigned forks = fork_count();

	l->refs++;
	l->calls++;
	pthread_mutex_unlock(&events.lock);
	depth++;
	l->cb(event, data, l->context);
	fork_called_back(forks);
	depth -= forks == fork_count();
	pthread_mutex_lock(&events.lock);
	l->calls--;
	put(l);
	pthread_cond_broadcast(&events.returned);
}

/* The first one behind the one of that id. */
static struct listener *next_after(uint64_t id)
{
	struct listener *l = events.list;

	while (l && l->id <= id)
		l = l->next;
	return l;
}

void events_tell(ti_event_t event, const void *data, const char *name, const char *old_name)
{
	struct listener *l;
	uint64_t id = 0;

	pthread_mutex_lock(&events.lock);
	while ((l = next_after(id)) != NULL) {
		id = l->id;
		if (l->begun && wants(l, name, old_name))
			call(l, event, data);
	}
	pthread_mutex_unlock(&events.lock);
}

static bool is_listed(const struct listener *who)
{
	const struct listener *l = events.list;

	while (l && l != who)
		l = l->next;
	return l;
}

void events_tell_one(
	const struct listener *who, ti_event_t event, const void *data, const char *name)
{
	struct listener *l = (struct listener *)who;

	pthread_mutex_lock(&events.lock);
	if (is_listed(l) && wants(l, name, NULL))
		call(l, event, data);
	pthread_mutex_unlock(&events.lock);
}

void events_raise_here(ti_event_t event, const void *data)
{
	struct listener *l;
	uint64_t id = 0;

	pthread_mutex_lock(&events.lock);
	while ((l = next_after(id)) != NULL) {
		id = l->id;
		call(l, event, data);
	}
	pthread_mutex_unlock(&events.lock);
}

/* ---- a provider's end ---- */

static void run_notice(struct job *job)
{
	struct notice *n = (struct notice *)job;

	events_raise_here(TI_EVENT_PROTO_SHUTDOWN, n->reason);
	free(n->reason);
	free(n);
}

void events_notify(const ti_event_t event, const void *p_data, const void *p_context)
{
	struct notice *n;

	(void)p_context;
	if (event != TI_EVENT_PROTO_SHUTDOWN || system_start())
		return;
	n = calloc(1, sizeof *n);
	if (!n)
		return;
	n->job.run = run_notice;
	n->reason = p_data ? strdup(p_data) : NULL;
	system_post(&n->job);
}

/* ---- registering ---- */

/* Behind what was read before, so that what is read later changes what is told here. */
static void run_begin(struct job *job)
{
	struct listener *l = (struct listener *)job;

	netdev_each_online(l);
	pthread_mutex_lock(&events.lock);
	l->begun = true;
	put(l);
	pthread_mutex_unlock(&events.lock);
}

/* The watch of the kernel's messages begins with the first one that is registered. */
static ti_status_t start_watching(void)
{
	struct own_fd fd;
	bool watching;

	if (fork_watch() || system_start() || cm_start())
		return TI_INSUFFICIENT_RESOURCES;
	pthread_mutex_lock(&events.lock);
	if (!events.watching) {
		events.watching = !netdev_open(&fd);
		if (events.watching)
			cm_watch(&fd, netdev_read);
	}
	watching = events.watching && cm_watches();
	pthread_mutex_unlock(&events.lock);
	return watching ? TI_SUCCESS : TI_INSUFFICIENT_RESOURCES;
}

static struct listener *new_listener(const void *context, ti_event_cb_t cb, const char *prefix)
{
	struct listener *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->context = context;
	l->cb = cb;
	l->job.run = run_begin;
	l->refs = 2;
	if (prefix)
		strncpy(l->prefix, prefix, sizeof l->prefix - 1);
	return l;
}

ti_status_t events_register(const void *context, ti_event_cb_t cb, const char *prefix)
{
	struct listener *l, **end = &events.list;
	ti_status_t st;

	if (!cb)
		return TI_INVALID_PARAMETER;
	st = start_watching();
	if (st)
		return st;
	l = new_listener(context, cb, prefix);
	if (!l)
		return TI_INSUFFICIENT_MEMORY;
	pthread_mutex_lock(&events.lock);
	l->id = ++events.last_id;
	while (*end)
		end = &(*end)->next;
	*end = l;
	pthread_mutex_unlock(&events.lock);
	system_post(&l->job);
	return TI_SUCCESS;
}

/* Under lock; its callbacks have returned afterwards. */
static void await_calls(struct listener *l)
{
	(void)system_block();
	while (l->calls && !depth)
		pthread_cond_wait(&events.returned, &events.lock);
	system_unblock();
}

ti_status_t op_events_deregister(const void *p_Context, ti_event_cb_t Event_callback)
{
	struct listener *l, **at = &events.list;

	pthread_mutex_lock(&events.lock);
	while (*at && ((*at)->cb != Event_callback || (*at)->context != p_Context))
		at = &(*at)->next;
	l = *at;
	if (l) {
		*at = l->next;
		await_calls(l);
		put(l);
	}
	pthread_mutex_unlock(&events.lock);
	return l ? TI_SUCCESS : TI_FAILURE;
}

void events_forked(void)
{
	events.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	events.returned = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	events.list = NULL;
	events.watching = false;
	depth = 0;
	netdev_forked();
}
