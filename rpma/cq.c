// SPDX-License-Identifier: BSD-3-Clause
/* Completion queues: waiting, and taking completions. */
#include "rpma/cq.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "include/weft/verbs_ext.h"
#include "rpma/log.h"

int channel_new(struct ibv_context *ctx, struct ibv_comp_channel **channel)
{
	*channel = ibv_create_comp_channel(ctx);
	return *channel ? 0 : PROVIDER_FAILED("ibv_create_comp_channel()", errno);
}

int channel_delete(struct ibv_comp_channel *channel)
{
	int err = channel ? ibv_destroy_comp_channel(channel) : 0;

	return err ? PROVIDER_FAILED("ibv_destroy_comp_channel()", err) : 0;
}

int cq_arm(struct rpma_cq *cq)
{
	int err = ibv_req_notify_cq(cq->cq, 0);

	return err ? PROVIDER_FAILED("ibv_req_notify_cq()", err) : 0;
}

int cq_delete(struct rpma_cq *cq)
{
	int ret = 0, err;

	if (!cq)
		return 0;
	err = cq->cq ? ibv_destroy_cq(cq->cq) : 0;
	if (err)
		ret = PROVIDER_FAILED("ibv_destroy_cq()", err);
	if (!cq->shared && channel_delete(cq->channel))
		ret = RPMA_E_PROVIDER;
	free(cq);
	return ret;
}

int cq_new(struct ibv_context *ctx, uint32_t size, struct ibv_comp_channel *shared,
	struct rpma_cq **cq_ptr)
{
	int cqe = size > INT_MAX ? INT_MAX : (int)size;
	struct rpma_cq *cq = calloc(1, sizeof *cq);
	int ret = 0;

	if (!cq)
		return RPMA_E_NOMEM;
	cq->channel = shared;
	cq->shared = shared;
	if (!shared)
		ret = channel_new(ctx, &cq->channel);
	if (!ret) {
		cq->cq = ibv_create_cq(ctx, cqe, NULL, cq->channel, 0);
		ret = cq->cq ? cq_arm(cq) : PROVIDER_FAILED("ibv_create_cq()", errno);
	}
	if (ret)
		(void)cq_delete(cq);
	else
		*cq_ptr = cq;
	return ret;
}

int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd)
{
	if (!cq || !fd)
		return RPMA_E_INVAL;
	*fd = cq->channel->fd;
	return 0;
}
RPMA_SINCE_0_10(rpma_cq_get_fd);

int rpma_cq_wait(struct rpma_cq *cq)
{
	struct ibv_cq *fired;
	void *context;

	if (!cq)
		return RPMA_E_INVAL;
	if (cq->shared)
		return RPMA_E_SHARED_CHANNEL;
	if (ibv_get_cq_event(cq->channel, &fired, &context))
		return RPMA_E_NO_COMPLETION;
	ibv_ack_cq_events(fired, 1);
	return cq_arm(cq);
}
RPMA_SINCE_0_10(rpma_cq_wait);

/* Programs know a flush as the read that it is where adapters have no FLUSH. */
static void rename_flushes(struct ibv_wc *wc, int n)
{
	for (int i = 0; i < n; i++)
		if (wc[i].status == IBV_WC_SUCCESS && wc[i].opcode == IBV_WC_FLUSH)
			wc[i].opcode = IBV_WC_RDMA_READ;
}

int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc, int *num_entries_got)
{
	int n;

	if (!cq || !wc || num_entries < 1 || (num_entries > 1 && !num_entries_got))
		return RPMA_E_INVAL;
	n = ibv_poll_cq(cq->cq, num_entries, wc);
	if (n == 0)
		return RPMA_E_NO_COMPLETION;
	if (n < 0)
		return PROVIDER_FAILED("ibv_poll_cq()", n);
	if (n > num_entries) {
		LOG_ERROR("ibv_poll_cq() returned %d of %d", n, num_entries);
		return RPMA_E_UNKNOWN;
	}
	rename_flushes(wc, n);
	if (num_entries_got)
		*num_entries_got = n;
	return 0;
}
RPMA_SINCE_0_11(rpma_cq_get_wc);
