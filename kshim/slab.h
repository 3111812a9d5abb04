/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of clients; the functions themselves are those of <linux/slab.h>. */
#pragma once

#include <stddef.h>

/* Objects that were allocated and not freed. */
long slab_objects(void);

/* Why at must not be touched, a constant: freed, behind an object's end; NULL: not known. */
const char *slab_about(const void *at);

/* For the shim's devices: as kzalloc(), kfree(), but not counted, never failing by request. */
void *slab_quiet_alloc(size_t n);
void slab_quiet_free(void *p);
