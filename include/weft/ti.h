/* SPDX-License-Identifier: BSD-3-Clause */
/* Extensions of libweftti to <sdp_ti.h>: weft_ti(3). */
#ifndef WEFT_TI_H
#define WEFT_TI_H

#include <sdp_ti.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The vector that providers are given; the same on each call. */
ti_ops_t *ti_ops_get(void);

/* ---- protocol providers that are loaded later ---- */

typedef void (*ti_provider_cb_t)(ti_ops_t *ops, ti_event_cb_t ti_event_notify);

/*
 * Calls add() now, and remove() with the same arguments at the end of the process or when
 * ti_provider_remove() is called with the same pair.  TI_INVALID_PARAMETER: add is NULL, or the
 * pair is there already; TI_INSUFFICIENT_MEMORY.
 */
ti_status_t ti_provider_add(ti_provider_cb_t add, ti_provider_cb_t remove);

/* TI_NOT_FOUND: no such pair. */
ti_status_t ti_provider_remove(ti_provider_cb_t add, ti_provider_cb_t remove);

/* ---- memory ---- */

/*
 * The local key of a region, for ti_local_data_desc_t.  On weft0 it is the remote one; on other
 * adapters it may not be.  TI_INVALID_HANDLE; TI_INVALID_PARAMETER: p_lkey is NULL.
 */
ti_status_t ti_mem_lkey(ti_mem_handle_t h_mem, ti_region_key_t *p_lkey);

/*
 * Lets an element with local buffers carry the remote address of its next RDMA or atomic request,
 * in place of an element of an RDMA pool before it.  It is forgotten when the element goes back to
 * its pool.  TI_INVALID_PARAMETER: not such an element, or in use.
 */
ti_status_t ti_rdma_set_remote(ti_data_element_t *p_element, const ti_rdma_desc_t *p_remote);

/* ---- io_ctl() commands ---- */

/* *p_bytes: 4; p_data: a uint32_t.  They hold for the service, for what is called afterwards. */
#define TI_SET_ADDR_ORDER   ((ti_ioctl_t)0x5701) /* 1: IPv4 addresses in host order; 0 */
#define TI_SET_BLOCKING_GET ((ti_ioctl_t)0x5702) /* 1: res_pool_get() without callback waits; 0 */
#define TI_SET_PENDING      ((ti_ioctl_t)0x5703) /* 1: TI_PENDING where others are ahead; 0 */
#define TI_SET_RDMA_PIECE   ((ti_ioctl_t)0x5704) /* bytes per request; 0: the adapter's maximum */

enum ti_conn_state {
	TI_CONN_LISTENING,
	TI_CONN_CONNECTING, /* connect(), not answered yet */
	TI_CONN_REQUESTED,  /* accept() or reject() may be called */
	TI_CONN_ACCEPTING,
	TI_CONN_ESTABLISHED,
	TI_CONN_BROKEN,    /* by the peer or an error; disconnect() is left */
	TI_CONN_TIMED_OUT, /* accept() and reject() give TI_TIMEOUT */
	TI_CONN_CLOSING
};

/* TI_GET_CONN_PROFILE: conn is read, all else is written; *p_bytes: its size. */
typedef struct _ti_conn_profile {
	ti_conn_handle_t conn;
	uint32_t state; /* enum ti_conn_state */
	boolean_t reliable;
	ti_inet_addr_t local_addr, remote_addr; /* in network order */
	ti_port_t local_port, remote_port;
	/* as granted */
	uint32_t max_transfer_depth, max_transfer_buffers, max_transfer_size;
	uint32_t max_recv_depth, max_recv_buffers, max_recv_size;
	uint32_t max_rdma_depth, max_rdma_size;
	/* elements that completed, and their bytes */
	uint64_t sends, recvs, rdmas, sent_bytes, received_bytes, rdma_bytes;
	uint64_t errors; /* elements that completed with an error */
	uint32_t posted; /* elements that are posted now */
} ti_conn_profile_t;

#ifdef __cplusplus
}
#endif

#endif
