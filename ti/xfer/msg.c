// SPDX-License-Identifier: BSD-3-Clause
/* Messages. */
#include "ti/xfer/msg.h"

#include "ti/xfer/break.h"
#include "ti/xfer/drain.h"
#include "ti/xfer/post.h"

/* ---- sending ---- */

/* Under sq_lock. */
static ti_status_t send_list(struct conn *c, ti_data_element_t *list)
{
	ti_data_element_t *next;
	bool all = true;
	uint32_t n;
	ti_status_t st;

	if (conn_state(c) != CONN_LIVE)
		return TI_INVALID_OPERATION;
	st = post_claim_messages(c, list, XFER_SEND, &n);
	if (st)
		return st;
	if (!post_has_room(c, n)) {
		post_unclaim(list, n);
		return TI_INSUFFICIENT_RESOURCES;
	}
	for (; n > 0; n--, list = next) {
		next = list->p_next_msg; /* the element may come back before post_send() does */
		all &= post_send(c, (struct element *)list);
	}
	return all || !service_has(c->m.ti, TI_TELL_PENDING) ? TI_SUCCESS : TI_PENDING;
}

ti_status_t op_msg_send(ti_conn_handle_t h_conn, ti_data_element_t *p_delist)
{
	struct conn *c = conn_get(h_conn);
	ti_status_t st;

	if (!c)
		return TI_INVALID_HANDLE;
	lock_take(&c->sq_lock);
	st = send_list(c, p_delist);
	lock_drop(&c->sq_lock);
	conn_put(c);
	return st;
}

/* ---- receiving ---- */

/*
 * Posts n elements.  The adapter refuses one only if something is very wrong: then that and those
 * behind it come back at once, and the connection breaks.
 */
static ti_data_element_t *post_list(struct conn *c, ti_data_element_t *list, uint32_t n)
{
	ti_data_element_t *next;

	for (; n > 0; n--, list = next) {
		next = list->p_next_msg;
		if (post_recv(c, (struct element *)list)) {
			atomic_fetch_add_explicit(&c->in.posted, n, memory_order_relaxed);
			return list;
		}
	}
	return NULL;
}

static void give_back(struct conn *c, ti_data_element_t *list)
{
	ti_data_element_t *next;

	drain_lock(c);
	for (; list; list = next) {
		next = list->p_next_msg;
		drain_finish(c, (struct element *)list, TI_ERROR);
	}
	conn_break(c,
		TI_ERROR); /* under the locks: the end waits for them before the queue pair goes */
	drain_unlock(c);
}

/* Under rq_lock; *rest: what the adapter refused. */
static ti_status_t recv_list(struct conn *c, ti_data_element_t *list, ti_data_element_t **rest)
{
	uint32_t n;
	ti_status_t st = post_claim_messages(c, list, XFER_RECV, &n);

	if (st)
		return st;
	if (flow_open(&c->in) + n > c->attr.max_recv_depth) {
		post_unclaim(list, n);
		return TI_INSUFFICIENT_RESOURCES;
	}
	*rest = post_list(c, list, n);
	return TI_SUCCESS;
}

ti_status_t msg_post_first(struct conn *c, ti_data_element_t *list, bool *taken)
{
	ti_data_element_t *rest = NULL;
	ti_status_t st;

	lock_take(&c->rq_lock);
	st = recv_list(c, list, &rest);
	lock_drop(&c->rq_lock);
	*taken = !st;
	if (rest)
		give_back(c, rest);
	return rest ? TI_INSUFFICIENT_RESOURCES : st;
}

ti_status_t op_msg_recv(ti_conn_handle_t h_conn, ti_data_element_t *p_delist)
{
	struct conn *c = conn_get(h_conn);
	ti_data_element_t *rest = NULL;
	ti_status_t st = TI_INVALID_OPERATION;

	if (!c)
		return TI_INVALID_HANDLE;
	lock_take(&c->rq_lock);
	if (conn_state(c) == CONN_LIVE)
		st = recv_list(c, p_delist, &rest);
	lock_drop(&c->rq_lock);
	if (rest)
		give_back(c, rest);
	if (rest)
		conn_try_finish(c); /* its end may have waited for these alone */
	conn_put(c);
	return st;
}
