// SPDX-License-Identifier: BSD-3-Clause
/* The operations vector, and the log's lines of each operation. */
#include "ti/ops.h"

#include "ti/conn/accept.h"
#include "ti/conn/connect.h"
#include "ti/conn/disconnect.h"
#include "ti/core/service.h"
#include "ti/core/trace.h"
#include "ti/dev/endpoint.h"
#include "ti/dev/pd.h"
#include "ti/event/events.h"
#include "ti/ioctl.h"
#include "ti/mem/mem.h"
#include "ti/mem/mem_phys.h"
#include "ti/mem/pool.h"
#include "ti/mem/pool_get.h"
#include "ti/xfer/atomic.h"
#include "ti/xfer/cq.h"
#include "ti/xfer/msg.h"
#include "ti/xfer/rdma.h"

/* ---- with lines in the log ---- */

static const void *handle_of(const ti_conn_request_t *req)
{
	return req ? req->conn_handle : NULL;
}

/* NAME_logged() is op_NAME() with a line before and behind it, where debug_svc() wants them. */
#define LOGGED(name, handle, params, args)                                                         \
	static ti_status_t name##_logged params                                                    \
	{                                                                                          \
		const void *of;                                                                    \
		ti_status_t st;                                                                    \
                                                                                                   \
		if (!trace_on())                                                                   \
			return op_##name args;                                                     \
		of = handle;                                                                       \
		trace_begin(#name, of);                                                            \
		st = op_##name args;                                                               \
		trace_end(#name, of, st);                                                          \
		return st;                                                                         \
	}

/* A device name that the vector has by then selects devices. */
static ti_status_t op_events_register(const void *p_context, ti_event_cb_t cb)
{
	return events_register(p_context, cb, ti_vector.link_dev_name);
}

LOGGED(events_register, p_context, (const void *p_context, ti_event_cb_t cb), (p_context, cb))
LOGGED(events_deregister, p_context, (const void *p_context, ti_event_cb_t cb), (p_context, cb))
LOGGED(create_ti, NULL, (ti_handle_t * ph), (ph))
LOGGED(destroy_ti, h, (ti_handle_t h, ti_context_cb_t cb, void *p_context), (h, cb, p_context))
LOGGED(debug_svc, h, (ti_handle_t h, ti_debug_level_t level), (h, level))
LOGGED(create_endpoint, h,
	(ti_handle_t h, ti_inet_addr_t *addr, ti_port_t port, ti_endpoint_handle_t *ph),
	(h, addr, port, ph))
LOGGED(destroy_endpoint, h, (ti_endpoint_handle_t h), (h))
LOGGED(create_pd, h, (ti_handle_t h, ti_endpoint_handle_t ep, ti_pd_handle_t *ph), (h, ep, ph))
LOGGED(destroy_pd, h, (ti_pd_handle_t h), (h))
LOGGED(create_cq, h, (ti_handle_t h, ti_pd_handle_t pd, uint32_t n, ti_cq_handle_t *ph),
	(h, pd, n, ph))
LOGGED(poll_cq, h, (ti_cq_handle_t h, ti_data_element_t **list), (h, list))
LOGGED(rearm_cq, h, (ti_cq_handle_t h), (h))
LOGGED(destroy_cq, h, (ti_cq_handle_t h), (h))
LOGGED(connect, h,
	(ti_handle_t h, ti_conn_attr_t *attr, ti_conn_info_t *info, ti_conn_request_t *req,
		ti_conn_handle_t *ph),
	(h, attr, info, req, ph))
LOGGED(accept, handle_of(req),
	(ti_conn_request_t * req, uint32_t max_rdma_size, ti_comp_info_t *comp,
		ti_data_element_t *list),
	(req, max_rdma_size, comp, list))
LOGGED(reject, handle_of(req), (ti_conn_request_t * req), (req))
LOGGED(listen, h,
	(ti_handle_t h, ti_conn_attr_t *attr, ti_conn_info_t *info, ti_conn_request_t *req,
		ti_conn_handle_t *ph),
	(h, attr, info, req, ph))
LOGGED(disconnect, h, (ti_conn_handle_t h, ti_context_cb_t cb, void *p_context), (h, cb, p_context))
LOGGED(reg_virt_mem, h,
	(ti_handle_t h, ti_pd_handle_t pd, void *at, uint32_t n, ti_access_t rights,
		ti_rdma_desc_t *desc, ti_mem_handle_t *ph),
	(h, pd, at, n, rights, desc, ph))
LOGGED(reg_phys_mem, h,
	(ti_handle_t h, ti_pd_handle_t pd, uint64_t *pages, uint32_t n, ti_access_t rights,
		ti_rdma_desc_t *desc, ti_mem_handle_t *ph),
	(h, pd, pages, n, rights, desc, ph))
LOGGED(dereg_mem, h, (ti_mem_handle_t h), (h))
LOGGED(res_pool_create, h,
	(ti_handle_t h, ti_res_pool_type_t type, uint32_t n, uint32_t bufs, uint32_t *sizes,
		uint32_t context_size, ti_res_pool_handle_t *ph),
	(h, type, n, bufs, sizes, context_size, ph))
LOGGED(res_pool_destroy, h, (ti_res_pool_handle_t h), (h))
LOGGED(res_pool_get, h,
	(ti_res_pool_handle_t h, uint32_t n, boolean_t partial, ti_res_pool_cb_t cb, void *context1,
		void *context2, ti_pool_response_t *resp),
	(h, n, partial, cb, context1, context2, resp))
LOGGED(res_pool_put, h, (ti_res_pool_handle_t h, ti_data_element_t *list), (h, list))
LOGGED(msg_send, h, (ti_conn_handle_t h, ti_data_element_t *list), (h, list))
LOGGED(msg_recv, h, (ti_conn_handle_t h, ti_data_element_t *list), (h, list))
LOGGED(rdma_read, h, (ti_conn_handle_t h, ti_data_element_t *list), (h, list))
LOGGED(rdma_write, h, (ti_conn_handle_t h, ti_data_element_t *list), (h, list))
LOGGED(rdma_read_send, h, (ti_conn_handle_t h, ti_data_element_t *list, ti_data_element_t *msg),
	(h, list, msg))
LOGGED(rdma_write_send, h, (ti_conn_handle_t h, ti_data_element_t *list, ti_data_element_t *msg),
	(h, list, msg))
LOGGED(atomic_op, h, (ti_conn_handle_t h, ti_atomic_op_t op, ti_data_element_t *list),
	(h, op, list))
LOGGED(io_ctl, h, (ti_handle_t h, ti_ioctl_t cmd, uint32_t *p_bytes, void *p_data),
	(h, cmd, p_bytes, p_data))

/* ---- the vector ---- */

static char transport_name[] = "Weft", link_name[] = "";

ti_ops_t ti_vector = {
	.transport_name = transport_name,
	.link_dev_name = link_name,
	.ti_status_2_str = ti_status_2_str,
	.events_register = events_register_logged,
	.events_deregister = events_deregister_logged,
	.create_ti = create_ti_logged,
	.destroy_ti = destroy_ti_logged,
	.debug_svc = debug_svc_logged,
	.create_endpoint = create_endpoint_logged,
	.destroy_endpoint = destroy_endpoint_logged,
	.create_pd = create_pd_logged,
	.destroy_pd = destroy_pd_logged,
	.create_cq = create_cq_logged,
	.poll_cq = poll_cq_logged,
	.rearm_cq = rearm_cq_logged,
	.destroy_cq = destroy_cq_logged,
	.connect = connect_logged,
	.accept = accept_logged,
	.reject = reject_logged,
	.listen = listen_logged,
	.disconnect = disconnect_logged,
	.reg_virt_mem = reg_virt_mem_logged,
	.reg_phys_mem = reg_phys_mem_logged,
	.dereg_mem = dereg_mem_logged,
	.res_pool_create = res_pool_create_logged,
	.res_pool_destroy = res_pool_destroy_logged,
	.res_pool_get = res_pool_get_logged,
	.res_pool_put = res_pool_put_logged,
	.msg_send = msg_send_logged,
	.msg_recv = msg_recv_logged,
	.rdma_read = rdma_read_logged,
	.rdma_write = rdma_write_logged,
	.rdma_read_send = rdma_read_send_logged,
	.rdma_write_send = rdma_write_send_logged,
	.atomic_op = atomic_op_logged,
	.io_ctl = io_ctl_logged,
};

ti_ops_t *ti_ops_get(void)
{
	return &ti_vector;
}
