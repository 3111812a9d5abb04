/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of weftd's that its clients map: what is of one file, and pages of nodes, of all. */
#pragma once

#include <stddef.h>

struct fabric_page;

/*
 * Maps size bytes of a sealed memfd; prot as for mmap(2).  -EPROTO: it could shrink under us, or is
 * smaller; what mmap(2) answers.
 */
int shared_map(int fd, size_t size, int prot, void **base);

/*
 * The page of a node, read-only, mapped once whoever uses it; shared_drop_node_page() ends it.  One
 * caller at a time, of both.  -ENOMEM; as shared_map().
 */
int shared_node_page(int fd, const struct fabric_page **out);
void shared_drop_node_page(const struct fabric_page *page);
