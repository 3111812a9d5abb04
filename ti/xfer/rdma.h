/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA.  A request is an element with local buffers, that ti_rdma_set_remote() gave an address; or
 * an element of an RDMA pool, which has the address, followed by one with local buffers.
 */
#pragma once

#include "ti/xfer/connection.h"

/*
 * Checks, claims and prepares the request that *list begins with; *list moves behind it.  Under
 * sq_lock.
 */
ti_status_t rdma_claim(
	struct conn *c, ti_data_element_t **list, enum ibv_wr_opcode opcode, struct element **out);

/* The first remote address of a request. */
static inline ti_rdma_desc_t rdma_remote(const struct element *el)
{
	return el->lead ? el->lead->e.rdma_data_desc[0] : el->remote;
}

ti_status_t op_rdma_read(ti_conn_handle_t h_conn, ti_data_element_t *p_melist);
ti_status_t op_rdma_write(ti_conn_handle_t h_conn, ti_data_element_t *p_melist);
ti_status_t op_rdma_read_send(
	ti_conn_handle_t h_conn, ti_data_element_t *p_rdma_read_list, ti_data_element_t *p_msg);
ti_status_t op_rdma_write_send(
	ti_conn_handle_t h_conn, ti_data_element_t *p_rdma_write_list, ti_data_element_t *p_msg);
