/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory.  Under weft peercheck each object has guard pages, and none is given out twice. */
#pragma once

#include <linux/types.h>

#define GFP_KERNEL   0u
#define GFP_ATOMIC   1u
#define GFP_NOWAIT   2u
#define GFP_USER     4u
#define __GFP_NOWARN 8u
#define __GFP_NOFAIL 16u
#define __GFP_ZERO   32u

/* n bytes, of which kzalloc's are 0; NULL: none left.  kfree() takes NULL too. */
void *kmalloc(size_t n, gfp_t flags);
void *kzalloc(size_t n, gfp_t flags);
void *kcalloc(size_t n, size_t size, gfp_t flags);
void *kmalloc_array(size_t n, size_t size, gfp_t flags);
void *krealloc(const void *p, size_t n, gfp_t flags);
char *kstrdup(const char *s, gfp_t flags);
void kfree(const void *p);

#define kmalloc_node(n, flags, node) kmalloc(n, flags)
#define kzalloc_node(n, flags, node) kzalloc(n, flags)
#define kvmalloc                     kmalloc
#define kvzalloc                     kzalloc
#define kvmalloc_array               kmalloc_array
#define kvfree                       kfree
#define vmalloc(n)                   kmalloc(n, GFP_KERNEL)
#define vzalloc(n)                   kzalloc(n, GFP_KERNEL)
#define vfree                        kfree
#define kfree_sensitive              kfree
