// SPDX-License-Identifier: BSD-3-Clause
#include "tests/prog/ti/ti_watch.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "ti/core/service.h"
#include "ti/xfer/connection.h"

enum { CONNS = 512, SERVICES = 64 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t next;
	const char *phase;
	unsigned turn, limit_s;
	struct service *services[SERVICES];
	struct conn *conns[CONNS];
	unsigned n_services, n_conns;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .next = PTHREAD_COND_INITIALIZER};

/* ---- telling ---- */

static const char *const kinds[] = {[HANDLE_ENDPOINT] = "endpoint",
	[HANDLE_PD] = "domain",
	[HANDLE_CQ] = "queue",
	[HANDLE_CONN] = "connection",
	[HANDLE_MEM] = "region",
	[HANDLE_POOL] = "pool"};

static const char *const states[] = {[CONN_NEW] = "new",
	[CONN_LISTENING] = "listening: disconnect()",
	[CONN_CONNECTING] = "connecting: the peer's answer",
	[CONN_ASKED] = "asked: accept() or reject()",
	[CONN_ACCEPTING] = "accepting: the peer",
	[CONN_LIVE] = "live: disconnect()",
	[CONN_BROKEN] = "broken: disconnect()",
	[CONN_FAILED] = "failed: disconnect()"};

static const char *end_of(const struct conn *c)
{
	if (!c->pd)
		return NULL;
	if (c->finishing)
		return "its finish job";
	if (c->may_finish)
		return "its completions";
	return c->accepting ? "a thread in accept()" : "its close job";
}

static void tell_conn(const struct conn *c)
{
	const char *why = conn_state(c) == CONN_CLOSING ? end_of(c) : states[conn_state(c)];

	if (why)
		fprintf(stderr,
			"  connection %p waits for: %s (%u in, %u out, %u events, bound %d, mute "
			"%d)\n",
			c->m.obj.handle, why, flow_open(&c->in), flow_open(&c->out), c->events,
			c->bound, c->mute);
}

static void tell_service(const struct service *ti)
{
	if (ti->closing && !ti->stays && !ti->members)
		return;
	fprintf(stderr, "service %p: closing %d, waits for %u connections or calls\n",
		ti->obj.handle, ti->closing, ti->stays);
	for (const struct member *m = ti->members; m; m = m->next)
		fprintf(stderr, "  has %s %p\n", kinds[m->kind], m->obj.handle);
}

static void tell_file(const char *task, const char *name)
{
	char path[300], line[256] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%s/%s", task, name);
	f = fopen(path, "r");
	if (f && fgets(line, sizeof line, f))
		line[strcspn(line, "\n")] = '\0';
	if (f)
		fclose(f);
	fprintf(stderr, " %s", line);
}

/* Each with the system call, and its arguments, that it is in. */
static void tell_threads(void)
{
	DIR *d = opendir("/proc/self/task");

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		if (e->d_name[0] == '.')
			continue;
		fprintf(stderr, "  thread %s", e->d_name);
		tell_file(e->d_name, "comm");
		tell_file(e->d_name, "wchan");
		tell_file(e->d_name, "syscall");
		fputc('\n', stderr);
	}
	if (d)
		closedir(d);
}

/* Without the library's locks: who has one may be what all wait for. */
static void tell(void)
{
	fprintf(stderr, "FAIL no end within %u s: %s\n", watch.limit_s, watch.phase);
	for (unsigned i = 0; i < watch.n_services; i++)
		tell_service(watch.services[i]);
	for (unsigned i = 0; i < watch.n_conns; i++)
		tell_conn(watch.conns[i]);
	tell_threads();
}

/* ---- looking ---- */

static void *run(void *arg)
{
	struct timespec until;
	unsigned turn;
	int late = 0;

	(void)arg;
	pthread_mutex_lock(&watch.lock);
	for (;; late = 0) {
		turn = watch.turn;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += watch.limit_s;
		while (turn == watch.turn && !late)
			late = pthread_cond_timedwait(&watch.next, &watch.lock, &until);
		if (turn == watch.turn) {
			tell();
			_exit(1);
		}
	}
	return NULL;
}

void watch_start(unsigned limit_s)
{
	pthread_t thread;

	watch.limit_s = limit_s;
	watch.phase = "beginning";
	if (!thread_start(&thread, "watch", THREAD_SMALL, run, NULL))
		pthread_detach(thread);
}

void watch_phase(const char *what)
{
	pthread_mutex_lock(&watch.lock);
	watch.phase = what;
	watch.turn++;
	pthread_cond_signal(&watch.next);
	pthread_mutex_unlock(&watch.lock);
}

void watch_service(ti_handle_t h)
{
	struct service *ti = service_get(h);

	pthread_mutex_lock(&watch.lock);
	if (ti && watch.n_services < SERVICES) {
		watch.services[watch.n_services++] = ti;
		ti = NULL;
	}
	pthread_mutex_unlock(&watch.lock);
	if (ti)
		service_put(ti);
}

void watch_conn(ti_conn_handle_t h)
{
	struct conn *c = conn_get(h);

	pthread_mutex_lock(&watch.lock);
	if (c && watch.n_conns < CONNS) {
		watch.conns[watch.n_conns++] = c;
		c = NULL;
	}
	pthread_mutex_unlock(&watch.lock);
	if (c)
		conn_put(c);
}

void watch_forget(void)
{
	pthread_mutex_lock(&watch.lock);
	while (watch.n_conns)
		conn_put(watch.conns[--watch.n_conns]);
	while (watch.n_services)
		service_put(watch.services[--watch.n_services]);
	pthread_mutex_unlock(&watch.lock);
}
