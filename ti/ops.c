// SPDX-License-Identifier: BSD-3-Clause
/* The operations vector. */
#include "ti/ops.h"

#include "ti/atomic.h"
#include "ti/conn.h"
#include "ti/events.h"
#include "ti/ioctl.h"
#include "ti/mem.h"
#include "ti/msg.h"
#include "ti/pool.h"
#include "ti/rdma.h"

static char name[] = "Weft", link_name[] = "";

ti_ops_t ti_vector = {
	.transport_name = name,
	.link_dev_name = link_name,
	.ti_status_2_str = ti_status_2_str,
	.events_register = op_events_register,
	.events_deregister = op_events_deregister,
	.create_ti = op_create_ti,
	.destroy_ti = op_destroy_ti,
	.debug_svc = op_debug_svc,
	.create_endpoint = op_create_endpoint,
	.destroy_endpoint = op_destroy_endpoint,
	.create_pd = op_create_pd,
	.destroy_pd = op_destroy_pd,
	.create_cq = op_create_cq,
	.poll_cq = op_poll_cq,
	.rearm_cq = op_rearm_cq,
	.destroy_cq = op_destroy_cq,
	.connect = op_connect,
	.accept = op_accept,
	.reject = op_reject,
	.listen = op_listen,
	.disconnect = op_disconnect,
	.reg_virt_mem = op_reg_virt_mem,
	.reg_phys_mem = op_reg_phys_mem,
	.dereg_mem = op_dereg_mem,
	.res_pool_create = op_res_pool_create,
	.res_pool_destroy = op_res_pool_destroy,
	.res_pool_get = op_res_pool_get,
	.res_pool_put = op_res_pool_put,
	.msg_send = op_msg_send,
	.msg_recv = op_msg_recv,
	.rdma_read = op_rdma_read,
	.rdma_write = op_rdma_write,
	.rdma_read_send = op_rdma_read_send,
	.rdma_write_send = op_rdma_write_send,
	.atomic_op = op_atomic_op,
	.io_ctl = op_io_ctl,
};

ti_ops_t *ti_ops_get(void)
{
	return &ti_vector;
}
