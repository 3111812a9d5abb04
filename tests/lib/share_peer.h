/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that maps what is exported by <weft/share.h>, as it is told. */
#pragma once

#include "include/weft/share.h"
#include "tests/lib/verbs_pair.h"

struct vp_child share_peer(void);
void share_peer_ends(struct vp_child *c);

/* Where it has mapped that, for reading and writing. */
uint8_t *share_peer_maps(const struct vp_child *c, const struct weft_share_handle *h,
	uint64_t offset, size_t length);
/* errno of mapping it with those rights. */
int share_peer_error(const struct vp_child *c, const struct weft_share_handle *h, uint64_t offset,
	size_t length, int prot);
/* The same with flags, at that place; NULL and the reason in *error. */
uint8_t *share_peer_places(const struct vp_child *c, const struct weft_share_handle *h,
	uint64_t offset, size_t length, int flags, uint8_t *at, int *error);
void share_peer_fills(const struct vp_child *c, uint8_t *at, size_t length, uint8_t value);
/* Is every byte there that value? */
bool share_peer_sees(const struct vp_child *c, uint8_t *at, size_t length, uint8_t value);
/* What weft_share_unmap() returns. */
int share_peer_unmaps(const struct vp_child *c, uint8_t *at, size_t length);
