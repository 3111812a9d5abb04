// SPDX-License-Identifier: BSD-3-Clause
/*
 * Which attributes each transition of a QP takes: the table of ibv_modify_qp(3).  Either end of XRC
 * also takes what only its other half needs, as programs treat both like RC.
 */
#include "hca/queue/qp_table.h"

#include <errno.h>
#include <stdbool.h>

enum { STATES = IBV_QPS_ERR + 1 };

/* Columns of the table. */
enum column { UD, UC, RC, XRC_INI, XRC_TGT, COLUMNS };

struct transition {
	bool valid;
	uint8_t not_for; /* bit = column */
	int required[COLUMNS], optional[COLUMNS];
};

enum {
	CONNECTED_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	UD_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
	PATH = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	RESPONDS = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	RTR_OPTIONAL = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
	REQUESTS = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		   IBV_QP_MAX_QP_RD_ATOMIC,
	UD_ANY = IBV_QP_CUR_STATE | IBV_QP_QKEY,
	UC_ANY = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE,
	RC_ANY = UC_ANY | IBV_QP_MIN_RNR_TIMER,
	UC_SQD = IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
		 IBV_QP_PATH_MIG_STATE,
	INI_SQD = UC_SQD | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		  IBV_QP_MAX_QP_RD_ATOMIC,
	TGT_SQD = UC_SQD | IBV_QP_PORT | IBV_QP_TIMEOUT | RESPONDS,
};

#define ONLY_UD_UC (1 << RC | 1 << XRC_INI | 1 << XRC_TGT)
#define ALWAYS                                                                                     \
	{                                                                                          \
		.valid = true                                                                      \
	}

static const struct transition table[STATES][STATES] = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = ALWAYS,
			[IBV_QPS_INIT] = {true, 0,
				{UD_INIT, CONNECTED_INIT, CONNECTED_INIT, CONNECTED_INIT,
					CONNECTED_INIT},
				{0}},
		},
	[IBV_QPS_INIT] =
		{
			[IBV_QPS_RESET] = ALWAYS,
			[IBV_QPS_ERR] = ALWAYS,
			[IBV_QPS_INIT] = {true, 0, {0},
				{UD_INIT, CONNECTED_INIT, CONNECTED_INIT, CONNECTED_INIT,
					CONNECTED_INIT}},
			[IBV_QPS_RTR] = {true, 0, {0, PATH, PATH | RESPONDS, PATH, PATH | RESPONDS},
				{IBV_QP_PKEY_INDEX | IBV_QP_QKEY, RTR_OPTIONAL, RTR_OPTIONAL,
					RTR_OPTIONAL | RESPONDS, RTR_OPTIONAL}},
		},
	[IBV_QPS_RTR] =
		{
			[IBV_QPS_RESET] = ALWAYS,
			[IBV_QPS_ERR] = ALWAYS,
			[IBV_QPS_RTS] = {true, 0,
				{IBV_QP_SQ_PSN, IBV_QP_SQ_PSN, REQUESTS, REQUESTS,
					IBV_QP_TIMEOUT | IBV_QP_SQ_PSN},
				{UD_ANY, UC_ANY, RC_ANY, UC_ANY, RC_ANY | REQUESTS}},
		},
	[IBV_QPS_RTS] =
		{
			[IBV_QPS_RESET] = ALWAYS,
			[IBV_QPS_ERR] = ALWAYS,
			[IBV_QPS_RTS] = {true, 0, {0}, {UD_ANY, UC_ANY, RC_ANY, UC_ANY, RC_ANY}},
			[IBV_QPS_SQD] = {true, 0,
				{0}, {IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY}},
		},
	[IBV_QPS_SQD] =
		{
			[IBV_QPS_RESET] = ALWAYS,
			[IBV_QPS_ERR] = ALWAYS,
			[IBV_QPS_RTS] = {true, 0, {0}, {UD_ANY, UC_ANY, RC_ANY, UC_ANY, RC_ANY}},
			[IBV_QPS_SQD] = {true, 0,
				{0}, {IBV_QP_PKEY_INDEX | IBV_QP_QKEY, UC_SQD, INI_SQD | TGT_SQD, INI_SQD, TGT_SQD}},
		},
	[IBV_QPS_SQE] =
		{
			[IBV_QPS_RESET] = ALWAYS,
			[IBV_QPS_ERR] = ALWAYS,
			[IBV_QPS_RTS] = {true, ONLY_UD_UC, {0},
				{UD_ANY, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS}},
		},
	[IBV_QPS_ERR] =
		{
			[IBV_QPS_RESET] = ALWAYS,
			[IBV_QPS_ERR] = ALWAYS,
		},
};

static int column_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UD:
		return UD;
	case IBV_QPT_UC:
		return UC;
	case IBV_QPT_RC:
		return RC;
	case IBV_QPT_XRC_SEND:
		return XRC_INI;
	case IBV_QPT_XRC_RECV:
		return XRC_TGT;
	default:
		return -EINVAL;
	}
}

int qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
	int *required, int *optional)
{
	const struct transition *t;
	int column = column_of(type);

	if (column < 0 || (unsigned)from >= STATES || (unsigned)to >= STATES)
		return -EINVAL;
	t = &table[from][to];
	*required = t->required[column];
	*optional = t->optional[column];
	return t->valid && !(t->not_for & 1 << column) ? 0 : -EINVAL;
}
