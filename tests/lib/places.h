/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests between two processes whose bytes lie in ordinary memory or in that of a fake GPU, at
 * addresses that no load or store reaches.  Each process has a side; of one request one posts, the
 * other takes it, and each looks at its own bytes.
 */
#pragma once

#include "include/weft/peercheck.h"
#include "include/weft/verbs_ext.h"
#include "tests/lib/verbs_pair.h"

/* The bytes of a request lie at PLACES_AT of its place, with PLACES_EDGE others on both sides. */
enum { PLACES_LEN = 512 << 10, PLACES_AT = 65000, PLACES_EDGE = 64 };

enum place { PLAIN, GPU, PLACES };

extern const char *const place_names[PLACES];

struct side {
	struct vp_end e;
	const struct weft_peer_device *device;
	uint64_t gpu;
	struct ibv_mr *gpu_mr;
	struct ibv_srq *srq; /* where receives are posted; NULL: to e.qp */
	struct vp_addr peer;
	uint64_t peer_gpu;
	uint32_t peer_gpu_key, peer_srqn;
	int sock;
	bool posts;
};

/* Makes the end and the GPU's memory; what cannot be ends the test.  opts.len is PLACES_LEN. */
void places_make(struct side *s, const struct vp_opts *o);
/* Frees all of it; checks that nothing is pinned. */
void places_free(struct side *s);
/* Connects e.qp with the other process's, and exchanges where memory lies. */
void places_meet(struct side *s);
/* Exchanges the latter alone. */
void places_tell(struct side *s);

/* ---- bytes, wherever they lie ---- */

void places_set(struct side *s, enum place p, size_t off, const void *from, size_t n);
void places_get(struct side *s, enum place p, size_t off, void *to, size_t n);
/* len bytes, of that pattern if seed is not NULL, between others. */
void places_prepare(struct side *s, enum place p, size_t len, const uint32_t *seed);
/* They are of that pattern, from skip on, and the others are as they were. */
void places_check(struct side *s, enum place p, size_t skip, size_t len, uint32_t seed);
struct ibv_sge places_sge(const struct side *s, enum place p, uint32_t len);

/* ---- one request ---- */

struct item {
	enum ibv_wr_opcode op;
	enum place from, to; /* of the one that posts, of the other */
	uint32_t len, seed;
};

/* Posts it, as that of the side that posts: what ibv_post_send() answered. */
int places_post(struct side *s, const struct item *i);
/* Posts a receive for len bytes, wr_id 1: what the call answered. */
int places_post_receive(struct side *s, enum place p, uint32_t len);
/*
 * All of it, in both processes: prepares, posts or receives, and checks.  PLAIN to PLAIN is left
 * out.
 */
void places_one(struct side *s, struct item i);
/* The same with each of the sizes, from each place to each. */
void places_sizes(
	struct side *s, enum ibv_wr_opcode op, const uint32_t *sizes, unsigned n, uint32_t seed);

/* Runs it in both processes, of which this one posts first. */
void places_both(void (*run)(struct side *s));
