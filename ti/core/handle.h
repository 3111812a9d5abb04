/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles: index and generation, never addresses.  What a handle names stays valid while somebody
 * has a reference to it; a closed handle finds nothing any more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum handle_kind {
	HANDLE_SERVICE = 1,
	HANDLE_ENDPOINT,
	HANDLE_PD,
	HANDLE_CQ,
	HANDLE_CONN,
	HANDLE_MEM,
	HANDLE_POOL
};

/* The first member of every object with a handle. */
struct object {
	uint32_t index;
	unsigned forks;                    /* fork_count() of its process */
	void *handle;                      /* NULL: it has none */
	void (*release)(struct object *o); /* called when the last reference goes; frees it */
};

/*
 * Gives o a handle, and to the caller the reference that object_close() takes back.  0, -ENOMEM,
 * -ENFILE: there are too many.
 */
int object_open(struct object *o, enum handle_kind kind, void (*release)(struct object *o));

/* The object of that kind, with a reference; NULL: the handle is stale, foreign or NULL. */
void *object_get(const void *handle, enum handle_kind kind);

/*
 * As object_get(), with the object's lock in place of a reference: while it is held the handle is
 * not closed.  For small objects that are used often, as it costs half as much.
 */
void *object_lock(const void *handle, enum handle_kind kind);

/* The lock once more for who has a reference; the handle may be closed by now. */
void object_relock(struct object *o);

/* Drops the lock.  In a child, of the parent's: does nothing. */
void object_unlock(struct object *o);

/* Was the handle not closed yet?  For who has the lock: it stays so. */
bool object_is_open(const struct object *o);

/* One more reference for who has one, or the lock. */
void object_hold(struct object *o);

/* Gives a reference back; may release the object.  In a child, of the parent's: does nothing. */
void object_put(struct object *o);

/*
 * Makes the handle stale.  True for one caller, who then has the reference of object_open() to give
 * back; the object lives on while there are others.  Waits for who has the lock.
 */
bool object_close(struct object *o);

/* The same for who has the lock. */
bool object_close_locked(struct object *o);

/* After a fork: makes all handles of the parent stale; their objects are left alone. */
void handles_forked(void);
