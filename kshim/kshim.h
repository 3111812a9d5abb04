/* SPDX-License-Identifier: BSD-3-Clause */
/* What the checker of clients sees of libweftkshim.so.0, which it finds by the name weft_kshim. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What a thread of the client does with a lock of its own. */
enum kshim_lock_use {
	KSHIM_LOCK_WAITS, /* another thread holds it */
	KSHIM_LOCK_TAKEN,
	KSHIM_LOCK_DROPPED,
	KSHIM_LOCK_AGAIN, /* it holds it already; the process ends */
};

/* What no client may do. */
enum kshim_wrong {
	KSHIM_STALE,  /* a call about what is not pinned, or mapped, or registered, any more */
	KSHIM_MEMORY, /* memory freed twice, never allocated, or written beyond its end */
};

/* Told in the thread that does it, which may wait in them. */
struct kshim_watch {
	void (*point)(const char *call, bool after); /* around each call that can fail */
	void (*lock)(const void *lock, const char *name, enum kshim_lock_use use);
	void (*freed)(const void *at, size_t n); /* of the client's memory */
	void (*wrong)(enum kshim_wrong which, const char *text);
};

struct kshim {
	/* Begins to tell; from now on memory of clients is guarded and not used again. */
	void (*watch)(const struct kshim_watch *w);
	long (*objects)(void); /* of the client's memory */
	long (*modules)(void); /* references to modules */
	/* The call that was to fail has been made. */
	bool (*failed)(void);
	/* Drivers as long ago: who is told that memory goes frees its tables. */
	void (*old_freeing)(bool old);
	/* Why at must not be touched, a constant: freed, behind an object's end; NULL: not known.
	 */
	const char *(*about)(const void *at);
};

extern const struct kshim weft_kshim;
