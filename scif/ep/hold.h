/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages that a window, or a handle of scif_pin_pages(), stands for.  They are mapped a second time,
 * where that can be, and are used there: so what the program does to its own mapping of them
 * (munmap, mmap over it, mremap) changes nothing.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/share.h"

struct hold {
	_Atomic uint32_t refs;
	uint32_t forks; /* of the process that holds them */
	uint8_t *addr;  /* where the program has them, or had */
	uint8_t *at;    /* where we use them: the same if they are not held */
	size_t len;
	int prot;                 /* SCIF_PROT_* */
	bool shared;              /* held as the shared memory that they are, not by an export */
	struct weft_share *share; /* exported, so that peers can map them; NULL: not yet */
	bool imported;            /* another process exports them: addr is NULL */
	struct weft_share_handle handle;
};

/*
 * Holds [addr, addr+len), whole pages, if that can be; one reference.  -ENOMEM, -EFAULT: it is not
 * all there.
 */
int hold_new(struct ibv_context *verbs, uint8_t *addr, size_t len, int prot, struct hold **out);
/* The same where there is no connection, and so no device that it must be: by any. */
int hold_by_any(void *addr, size_t len, int prot, struct hold **out);
/* The same for what another process exports: -EOPNOTSUPP if it cannot be mapped. */
int hold_import(struct ibv_context *verbs, const struct weft_share_handle *handle, size_t len,
	int prot, struct hold **out);
void hold_get(struct hold *h);
/* The last one lets the pages go; peers that have them mapped keep them.  h may be NULL. */
void hold_put(struct hold *h);

/* Do they stay, whatever the program unmaps? */
static inline bool hold_kept(const struct hold *h)
{
	return h->at != h->addr;
}

/* Is it of this process?  A forked child has what its parent held, but not the pages. */
bool hold_ours(const struct hold *h);
/* In a forked child. */
void hold_forked(void);

/* Makes sure that peers can map them; what weft_share_export() answered. */
int hold_export(struct hold *h, struct ibv_context *verbs);
/* The same by any device. */
int hold_export_by_any(struct hold *h);
