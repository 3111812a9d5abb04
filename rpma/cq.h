/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues with a channel, their own or a shared one. */
#pragma once

#include "rpma/rpma.h"

struct rpma_cq {
	struct ibv_comp_channel *channel;
	bool shared; /* the channel is somebody else's */
	struct ibv_cq *cq;
};

/* Makes a channel, or destroys it (NULL: nothing).  PROVIDER. */
int channel_new(struct ibv_context *ctx, struct ibv_comp_channel **channel);
int channel_delete(struct ibv_comp_channel *channel);

/*
 * Makes an armed queue of that many entries (above INT_MAX: INT_MAX); shared: the channel to use,
 * NULL: one of its own.  NOMEM, PROVIDER.
 */
int cq_new(struct ibv_context *ctx, uint32_t size, struct ibv_comp_channel *shared,
	struct rpma_cq **cq_ptr);

/* Destroys it and its own channel; NULL: nothing.  PROVIDER, and it is gone all the same. */
int cq_delete(struct rpma_cq *cq);

/* Arms it again.  PROVIDER. */
int cq_arm(struct rpma_cq *cq);
