// SPDX-License-Identifier: BSD-3-Clause
/* Which attributes each transition of a QP takes: the table of ibv_modify_qp(3). */
#include <errno.h>
#include <stdbool.h>

#include "hca/qp_state.h"

enum { STATES = IBV_QPS_ERR + 1 };

struct transition {
	bool valid;
	int required, optional;
};

static const struct transition rc[STATES][STATES] = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {.valid = true},
			[IBV_QPS_INIT] = {true,
				IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
		},
	[IBV_QPS_INIT] =
		{
			[IBV_QPS_RESET] = {.valid = true},
			[IBV_QPS_ERR] = {.valid = true},
			[IBV_QPS_INIT] = {true, 0,
				IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
			[IBV_QPS_RTR] = {true,
				IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
				IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
		},
	[IBV_QPS_RTR] =
		{
			[IBV_QPS_RESET] = {.valid = true},
			[IBV_QPS_ERR] = {.valid = true},
			[IBV_QPS_RTS] = {true,
				IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
				IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
					IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
		},
	[IBV_QPS_RTS] =
		{
			[IBV_QPS_RESET] = {.valid = true},
			[IBV_QPS_ERR] = {.valid = true},
			[IBV_QPS_RTS] = {true, 0,
				IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH |
					IBV_QP_PATH_MIG_STATE | IBV_QP_MIN_RNR_TIMER},
			[IBV_QPS_SQD] = {true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
		},
	[IBV_QPS_SQD] =
		{
			[IBV_QPS_RESET] = {.valid = true},
			[IBV_QPS_ERR] = {.valid = true},
			[IBV_QPS_RTS] = {true, 0,
				IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
					IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
			[IBV_QPS_SQD] = {true, 0,
				IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH |
					IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
					IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
		},
	[IBV_QPS_ERR] =
		{
			[IBV_QPS_RESET] = {.valid = true},
			[IBV_QPS_ERR] = {.valid = true},
		},
};

int qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
	int *required, int *optional)
{
	const struct transition *t;

	if (type != IBV_QPT_RC || (unsigned)from >= STATES || (unsigned)to >= STATES)
		return -EINVAL;
	t = &rc[from][to];
	*required = t->required;
	*optional = t->optional;
	return t->valid ? 0 : -EINVAL;
}
