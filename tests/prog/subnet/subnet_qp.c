// SPDX-License-Identifier: BSD-3-Clause
/* A queue pair on a node of a simulated subnet: made, but nobody can be reached yet. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

/* 0, or the number of the step that failed. */
static int make(struct ibv_context *context, struct ibv_qp **qp)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_pd *pd = ibv_alloc_pd(context);

	attr.send_cq = attr.recv_cq = ibv_create_cq(context, 2, NULL, NULL, 0);
	if (!pd || !attr.send_cq)
		return 2;
	*qp = ibv_create_qp(pd, &attr);
	if (!*qp)
		return 3;
	return ibv_modify_qp(*qp, &init,
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
		       ? 4
		       : 0;
}

int main(void)
{
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 17,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = 1, .port_num = 1}};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_qp *qp;
	int step = context ? make(context, &qp) : 1;
	int rc = step ? 0
		      : ibv_modify_qp(qp, &rtr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER);

	if (rc == EHOSTUNREACH)
		return 0;
	fprintf(stderr, "step %d: %d (%s)\n", step, rc, strerror(rc));
	return 1;
}
