// SPDX-License-Identifier: BSD-3-Clause
/* What sample_sendmsg and sample_msg_recv call for more than a message; not in the document. */
#include "sample.h"

#include <string.h>
#include <weft/ti.h>

/* Where memory is, and how much. */
struct avail {
	uint64_t vaddr;
	uint32_t rkey, size;
};

typedef ti_status_t (*bundle_t)(ti_conn_handle_t, ti_data_element_t *, ti_data_element_t *);

/* The user's memory while it is transferred. */
struct area {
	char *at;
	ti_rdma_desc_t desc;
	ti_mem_handle_t mem;
	ti_region_key_t lkey;
};

/* ---- messages of the two sides ---- */

static int say(struct sock *sk, struct avail *what)
{
	struct iovec iov = {what, sizeof *what};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return sample_sendmsg(sk, &msg, sizeof *what);
}

static int hear(struct sock *sk, struct avail *what)
{
	struct iovec iov = {what, sizeof *what};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int got, rc = sample_msg_recv(sk, &msg, sizeof *what, 0, 0, &got);

	return rc ? rc : got == sizeof *what ? 0 : -EPROTO;
}

/* ---- memory ---- */

static int open_area(struct ap_opt *p_conn, struct msghdr *msg, int size, struct area *a)
{
	a->at = msg->msg_iov->iov_base;
	if (size < 0 || (size_t)size > msg->msg_iov->iov_len)
		return -EFAULT;
	if (p_conn->ti_ops->reg_virt_mem(p_conn->h_ti, p_conn->conn_info.pdh, a->at, size,
		    TI_MEM_READ_WRITE, &a->desc, &a->mem) != TI_SUCCESS)
		return -ENOBUFS;
	return ti_mem_lkey(a->mem, &a->lkey) == TI_SUCCESS ? 0 : -ENOBUFS;
}

static void close_area(struct ap_opt *p_conn, struct area *a)
{
	p_conn->ti_ops->dereg_mem(a->mem);
}

/* ---- transfers ---- */

/* An element of that pool that wakes us when it is done; NULL: there is none. */
static ti_data_element_t *element(struct ap_opt *p_conn, ti_res_pool_handle_t pool)
{
	ti_pool_response_t r;

	if (p_conn->ti_ops->res_pool_get(pool, 1, FALSE, NULL, NULL, NULL, &r) != TI_SUCCESS)
		return NULL;
	((send_context_t *)r.p_element_list->p_context)->p_conn = p_conn;
	r.p_element_list->iodone = FALSE;
	r.p_element_list->msg_opt = TI_OPT_SIGNALED;
	return r.p_element_list;
}

/* Posts both and waits for both. */
static int both(struct ap_opt *p_conn, bundle_t op, ti_data_element_t *e, ti_data_element_t *p_msg)
{
	if (op(p_conn->h_conn, e, p_msg) != TI_SUCCESS)
		return -EPIPE;
	(void)wait_event_interruptible(&p_conn->send_waitq, e->iodone && p_msg->iodone);
	return e->status == TI_SUCCESS && p_msg->status == TI_SUCCESS ? 0 : -ENOTCONN;
}

static int prepared(struct ap_opt *p_conn, bundle_t op, ti_data_element_t *e,
	ti_data_element_t *p_msg, const ti_local_data_desc_t *local, const struct avail *remote,
	const struct avail *last)
{
	ti_rdma_desc_t there = {remote->vaddr, remote->rkey};

	*e->local_data_desc = *local;
	if (ti_rdma_set_remote(e, &there) != TI_SUCCESS)
		return -EPIPE;
	memcpy(p_msg->local_data_desc->vaddr, last, sizeof *last);
	p_msg->local_data_desc->byte_count = sizeof *last;
	p_msg->msg_opt |= TI_OPT_SOLICITED;
	return both(p_conn, op, e, p_msg);
}

/* Reads or writes, and says last when that is done. */
static int transfer(struct ap_opt *p_conn, bundle_t op, const ti_local_data_desc_t *local,
	const struct avail *remote, const struct avail *last)
{
	ti_res_pool_handle_t pool;
	ti_data_element_t *e, *p_msg = element(p_conn, p_conn->h_msg_pool);
	uint32_t none = 0;
	int rc = -ENOBUFS;

	if (!p_msg)
		return rc;
	if (p_conn->ti_ops->res_pool_create(p_conn->h_ti, TI_RES_POOL_MSG, 1, 1, &none,
		    sizeof(send_context_t), &pool) == TI_SUCCESS) {
		e = element(p_conn, pool);
		rc = prepared(p_conn, op, e, p_msg, local, remote, last);
		p_conn->ti_ops->res_pool_put(pool, e);
		p_conn->ti_ops->res_pool_destroy(pool);
	}
	p_conn->ti_ops->res_pool_put(p_conn->h_msg_pool, p_msg);
	return rc;
}

/* ---- the source ---- */

static int write_half(struct sock *sk, const struct area *a, uint32_t size)
{
	struct ap_opt *p_conn = sk->ap_opt;
	struct avail source = {a->desc.vaddr, a->desc.rkey, size}, sink, done = {0, 0, size};
	ti_local_data_desc_t rest;
	int rc = say(sk, &source);

	if (rc == 0)
		rc = hear(sk, &sink);
	if (rc)
		return rc;
	if (sink.size > size)
		return -EPROTO;
	if (sink.size == 0) /* it has no room */
		return -EMSGSIZE;
	rest = (ti_local_data_desc_t){a->at + (size - sink.size), a->lkey, sink.size};
	return transfer(p_conn, p_conn->ti_ops->rdma_write_send, &rest, &sink, &done);
}

int sample_rdma_write(struct sock *sk, struct msghdr *msg, int size)
{
	struct area a;
	int rc = open_area(sk->ap_opt, msg, size, &a);

	if (rc)
		return rc;
	rc = write_half(sk, &a, size);
	close_area(sk->ap_opt, &a);
	return rc;
}

/* ---- the sink ---- */

static int read_half(struct sock *sk, const struct area *a, const struct avail *source)
{
	struct ap_opt *p_conn = sk->ap_opt;
	uint32_t half = source->size / 2;
	struct avail sink = {a->desc.vaddr + half, a->desc.rkey, source->size - half}, done;
	ti_local_data_desc_t first = {a->at, a->lkey, half};
	int rc = transfer(p_conn, p_conn->ti_ops->rdma_read_send, &first, source, &sink);

	return rc ? rc : hear(sk, &done);
}

int sample_rdma_read(struct sock *sk, struct msghdr *msg, int size, int *addr_len)
{
	struct avail source, none = {0};
	struct area a;
	int rc = hear(sk, &source);

	if (rc)
		return rc;
	if (source.size < 2 || source.size > (uint32_t)size)
		return say(sk, &none) ? -ENOTCONN : -EMSGSIZE;
	rc = open_area(sk->ap_opt, msg, size, &a);
	if (rc)
		return rc;
	rc = read_half(sk, &a, &source);
	close_area(sk->ap_opt, &a);
	*addr_len = source.size;
	return rc;
}
