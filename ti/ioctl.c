// SPDX-License-Identifier: BSD-3-Clause
#include "ti/ioctl.h"

#include <string.h>

#include "ti/dev/endpoint.h"
#include "ti/xfer/connection.h"

/* ---- what a connection is ---- */

static uint32_t shown_state(enum conn_state state)
{
	static const uint8_t shown[] = {
		[CONN_NEW] = TI_CONN_CONNECTING,
		[CONN_LISTENING] = TI_CONN_LISTENING,
		[CONN_CONNECTING] = TI_CONN_CONNECTING,
		[CONN_ASKED] = TI_CONN_REQUESTED,
		[CONN_ACCEPTING] = TI_CONN_ACCEPTING,
		[CONN_LIVE] = TI_CONN_ESTABLISHED,
		[CONN_BROKEN] = TI_CONN_BROKEN,
		[CONN_FAILED] = TI_CONN_BROKEN,
		[CONN_CLOSING] = TI_CONN_CLOSING,
	};

	return shown[state];
}

static uint64_t count_of(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static void fill_counts(const struct conn *c, ti_conn_profile_t *p)
{
	const struct counts *n = &c->counts;

	p->sends = count_of(&n->elements[XFER_SEND]);
	p->recvs = count_of(&n->elements[XFER_RECV]);
	p->rdmas = count_of(&n->elements[XFER_RDMA]);
	p->sent_bytes = count_of(&n->bytes[XFER_SEND]);
	p->received_bytes = count_of(&n->bytes[XFER_RECV]);
	p->rdma_bytes = count_of(&n->bytes[XFER_RDMA]);
	p->errors = count_of(&n->errors);
	p->posted = flow_open(&c->in) + flow_open(&c->out);
}

static void fill_sizes(const struct conn *c, ti_conn_profile_t *p)
{
	const ti_conn_attr_t *a = &c->attr;

	p->reliable = a->reliable;
	p->max_transfer_depth = a->max_transfer_depth;
	p->max_transfer_buffers = a->max_transfer_buffers;
	p->max_transfer_size = a->max_transfer_size;
	p->max_recv_depth = a->max_recv_depth;
	p->max_recv_buffers = a->max_recv_buffers;
	p->max_recv_size = a->max_recv_size;
	p->max_rdma_depth = a->max_rdma_depth;
	p->max_rdma_size =
		a->max_rdma_size < c->rdma_max || !c->bound ? a->max_rdma_size : c->rdma_max;
}

static void fill(struct conn *c, ti_conn_profile_t *p)
{
	enum conn_state state;

	pthread_mutex_lock(&c->lock);
	state = conn_state(c);
	p->state = state == CONN_FAILED && c->result == TI_TIMEOUT ? (uint32_t)TI_CONN_TIMED_OUT
								   : shown_state(state);
	if (c->id) {
		endpoint_show(rdma_get_local_addr(c->id), &p->local_addr, &p->local_port);
		endpoint_show(rdma_get_peer_addr(c->id), &p->remote_addr, &p->remote_port);
	}
	fill_sizes(c, p);
	fill_counts(c, p);
	pthread_mutex_unlock(&c->lock);
}

static ti_status_t get_profile(struct service *ti, uint32_t *p_bytes, ti_conn_profile_t *profile)
{
	ti_conn_profile_t p = {.conn = profile->conn};
	struct conn *c = member_get(ti, p.conn, HANDLE_CONN);

	if (!c)
		return TI_INVALID_HANDLE;
	fill(c, &p);
	conn_put(c);
	*profile = p;
	*p_bytes = sizeof p;
	return TI_SUCCESS;
}

/* ---- switches ---- */

static ti_status_t set_switch(struct service *ti, uint32_t bit, uint32_t on)
{
	if (on > 1)
		return TI_INVALID_SETTING;
	if (on)
		atomic_fetch_or_explicit(&ti->switches, bit, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&ti->switches, ~bit, memory_order_relaxed);
	return TI_SUCCESS;
}

static ti_status_t set(struct service *ti, int cmd, uint32_t value)
{
	switch (cmd) {
	case TI_SET_ADDR_ORDER:
		return set_switch(ti, TI_HOST_ORDER, value);
	case TI_SET_BLOCKING_GET:
		return set_switch(ti, TI_BLOCKING_GET, value);
	case TI_SET_PENDING:
		return set_switch(ti, TI_TELL_PENDING, value);
	case TI_SET_RDMA_PIECE:
		atomic_store_explicit(&ti->rdma_piece, value, memory_order_relaxed);
		return TI_SUCCESS;
	default:
		return TI_UNSUPPORTED;
	}
}

static ti_status_t control(struct service *ti, ti_ioctl_t cmd, uint32_t *p_bytes, void *p_data)
{
	uint32_t need = cmd == TI_GET_CONN_PROFILE ? sizeof(ti_conn_profile_t) : sizeof(uint32_t);
	uint32_t value;

	if (!p_bytes || !p_data)
		return TI_INVALID_SETTING;
	if (*p_bytes < need) {
		*p_bytes = need;
		return TI_INVALID_SETTING;
	}
	if (cmd == TI_GET_CONN_PROFILE)
		return get_profile(ti, p_bytes, p_data);
	memcpy(&value, p_data, sizeof value);
	return set(ti, cmd, value);
}

ti_status_t op_io_ctl(ti_handle_t h_ti, ti_ioctl_t cmd, uint32_t *p_bytes, void *p_data)
{
	struct service *ti = service_get(h_ti);
	ti_status_t st;

	if (!ti)
		return TI_INVALID_HANDLE;
	st = control(ti, cmd, p_bytes, p_data);
	service_put(ti);
	return st;
}
