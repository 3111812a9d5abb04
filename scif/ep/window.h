/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registered address space of one side: windows, sorted by offset.  No I/O but by
 * window_drop(); the caller locks.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scif/ep/hold.h"

enum { MAX_WINDOWS = 65536 };

struct window {
	uint64_t off, len;
	int prot;
	bool closed;   /* unregistered, its offsets stay taken */
	bool told;     /* ours, closed: the peer said that it uses it still */
	uint32_t refs; /* RMAs and signals under way */
	/* ours */
	struct hold *hold; /* a reference */
	struct ibv_mr *mr;
	bool released; /* the peer said that it does not use it */
	/* the peer's */
	uint32_t rkey;
	bool has_handle;
	struct weft_share_handle handle;
};

struct windows {
	struct window **list;
	size_t count, room;
	size_t closed; /* of them, counted by who closes */
};

/* Adds w, which it owns from then on.  -EADDRINUSE, -ENOMEM, also beyond MAX_WINDOWS. */
int windows_add(struct windows *s, struct window *w);
/* Takes w out; the caller owns it again. */
void windows_remove(struct windows *s, struct window *w);
/* The window that begins at off, closed or not; NULL. */
struct window *windows_at(struct windows *s, uint64_t off);
/* The window that holds off, closed or not; NULL. */
struct window *windows_holding(struct windows *s, uint64_t off);
/* The first window, closed or not, of [off, off + len); NULL. */
struct window *windows_hit(struct windows *s, uint64_t off, uint64_t len);
/* Number of windows before the first one that ends beyond off. */
size_t windows_rank(const struct windows *s, uint64_t off);

/*
 * Is [off, off + len) covered by open windows that adjoin, all with the bits of prot?  -ENXIO,
 * -EACCES.
 */
int windows_check(struct windows *s, int64_t off, uint64_t len, int prot);
/* Adds n to the references of the windows that [off, off + len) covers. */
void windows_ref(struct windows *s, uint64_t off, uint64_t len, int n);

/*
 * A free place for len bytes: the hint or what follows it, else from a fixed base on.  Depends on
 * the windows alone, so that equal calls on two endpoints give equal places.  -ENOMEM.
 */
int64_t windows_place(struct windows *s, uint64_t hint, uint64_t len);

/* Frees all; drop is called for each window first, if not NULL. */
void windows_free(struct windows *s, void (*drop)(struct window *w));

/* Ends the registration of one of our windows, and lets its pages go. */
void window_drop(struct window *w);
