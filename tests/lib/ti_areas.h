/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connected ends with memory for RDMA, and elements that name parts of it. */
#pragma once

#include "tests/lib/ti_ends.h"

enum { TX_AREA = 1 << 20, TX_RECEIVES = 8 };

/* TX_AREA bytes of zeros that are registered. */
struct tx_area {
	char *at;
	ti_rdma_desc_t desc;
	ti_mem_handle_t mem;
};

struct tx_rdma {
	struct tx_world w;
	struct tx_end a, p; /* p has posted TX_RECEIVES of w.pool */
	ti_cq_handle_t acq, pcq;
	ti_res_pool_handle_t remotes, users; /* RDMA elements; messages with buffers of ours */
	struct tx_area local, remote;        /* for reading and writing */
};

/* Connects, with these attributes (NULL: those of tx_defaults()). */
void tx_rdma_begin(struct tx_rdma *x, const ti_conn_attr_t *attr);
/* The pools and areas alone, of x->w. */
void tx_rdma_areas(struct tx_rdma *x);
void tx_rdma_end(struct tx_rdma *x);

/* One more; its memory is the caller's to free. */
struct tx_area tx_area(const struct tx_rdma *x, ti_access_t rights);

/* An element of users with len bytes at offset of the local area. */
ti_data_element_t *tx_local(const struct tx_rdma *x, uint32_t offset, uint32_t len);
/* The same, towards that remote address; towards that offset of the remote area. */
ti_data_element_t *tx_towards_desc(
	const struct tx_rdma *x, uint32_t offset, uint32_t len, ti_rdma_desc_t there);
ti_data_element_t *tx_towards(
	const struct tx_rdma *x, uint32_t offset, uint32_t len, uint32_t there);

/* Bytes that depend on the seed. */
void tx_fill(char *at, uint32_t len, unsigned seed);
