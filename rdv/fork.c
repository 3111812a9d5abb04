// SPDX-License-Identifier: BSD-3-Clause
/*
 * fork: the child has none of the parent's segments (DONTFORK).  Where they were it gets empty
 * private pages, so that what is left of the parent's objects reads as RESET and empty, and it
 * attaches anew with its first control call.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/at_open.h"
#include "base/sparse.h"
#include "rdv/client.h"
#include "rdv/fork.h"
#include "rdv/grow.h"
#include "rdv/lease.h"
#include "rdv/wire.h"

struct range {
	void *base;
	size_t len;
};

/* Under maps_lock: every place that holds a segment. */
static AT_OPEN_DATA struct range *maps;
static AT_OPEN_DATA size_t n_maps, maps_room;
static AT_OPEN_DATA struct lock maps_lock;
static AT_OPEN_DATA pid_t watched_pid;

static size_t find_map(const void *base)
{
	size_t i = 0;

	while (i < n_maps && maps[i].base != base)
		i++;
	return i;
}

void rdv_note_mapping(void *base, size_t len)
{
	size_t i;

	lock_take(&maps_lock);
	i = find_map(base);
	/* Without memory for the note, a child that uses what it must not faults: no worse. */
	if (i < n_maps || !grow((void **)&maps, &maps_room, n_maps, sizeof *maps)) {
		maps[i] = (struct range){base, len};
		n_maps += i == n_maps;
	}
	lock_drop(&maps_lock);
}

void rdv_forget_mapping(void *base)
{
	size_t i;

	lock_take(&maps_lock);
	i = find_map(base);
	if (i < n_maps)
		maps[i] = maps[--n_maps];
	lock_drop(&maps_lock);
}

/* The hole that DONTFORK left; what was mapped there since, in this child, stays. */
static void fill_hole(const struct range *r)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;

	/* Strict overcommit refuses that much writable memory; then reads at least work. */
	if (mmap(r->base, r->len, sparse_prot(), flags, -1, 0) == MAP_FAILED && errno == ENOMEM)
		(void)!mmap(r->base, r->len, PROT_READ, flags, -1, 0);
}

static void drop_connection(void)
{
	struct client *c = &client;

	conn_close(&c->conn);
	wire_forget();
	own_fd_close(&c->seg_fd);
	own_fd_close(&c->async_fd);
	own_fd_close(&c->arena_fd);
	memset(&c->att, 0, sizeof c->att);
	c->channels.n = 0;
	c->backings.n = 0;
	leases_forget();
	c->told = false;
	if (atomic_exchange(&c->attached, false))
		atomic_fetch_add(&c->epoch, 1);
}

static void unlock_all(void)
{
	atomic_store(&maps_lock.word, 0);
	atomic_store(&client.post_lock.word, 0);
	atomic_store(&client.lock.word, 0);
}

void rdv_forked_child(void)
{
	if (watched_pid == getpid())
		return;
	watched_pid = getpid();
	unlock_all();
	drop_connection();
	for (size_t i = 0; i < n_maps; i++)
		fill_hole(&maps[i]);
}

static void before_fork(void)
{
	lock_take(&client.lock);
	lock_take(&client.post_lock);
	lock_take(&maps_lock);
}

static void after_fork_parent(void)
{
	lock_drop(&maps_lock);
	lock_drop(&client.post_lock);
	lock_drop(&client.lock);
}

int fork_watch(void)
{
	static AT_OPEN_DATA bool done;
	int ret;

	if (done)
		return 0;
	watched_pid = getpid();
	ret = pthread_atfork(before_fork, after_fork_parent, rdv_forked_child);
	done = ret == 0;
	return -ret;
}
