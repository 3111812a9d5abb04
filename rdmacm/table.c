// SPDX-License-Identifier: BSD-3-Clause
/* Which ids and channels this process has; telling a new weftd of them; fork. */
#include "rdmacm/table.h"

#include <stdlib.h>
#include <string.h>

#include "cm/cm.h"
#include "rdmacm/call.h"
#include "rdmacm/channel.h"
#include "rdmacm/device.h"
#include "rdmacm/event.h"
#include "rdmacm/mcast.h"
#include "rdmacm/ports.h"
#include "rdmacm/resolve.h"
#include "verbs/for_rdmacm.h"

enum { BUCKETS = 1 << 12 };

static struct {
	struct lock lock;
	struct ident *by_handle[BUCKETS];
	struct ident *idents;
	struct event_channel *channels;
	uint32_t last_handle;
} table;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct ident **bucket(uint32_t handle)
{
	return &table.by_handle[handle % BUCKETS];
}

/* ---- a new weftd ---- */

static struct cm_publish_call publish_call(const struct ident *id, uint8_t state)
{
	struct cm_publish_call call = {
		.handle = id->handle,
		.channel = channel_of(id),
		.flags = id->flags,
		.backlog = id->backlog,
		.local_comm = id->local_comm,
		.remote_comm = id->remote_comm,
		.qpn = id->qpn,
		.remote_qpn = id->peer.qpn,
		.remote_guid = id->peer_guid,
		.ps = id->id.ps,
		.state = state,
		.src = id->src,
		.dst = id->dst,
	};

	if (!id->has_port)
		call.src.port = 0;
	return call;
}

/*
 * What was under way through the old weftd is lost: says so to the program.  If the connection to
 * weftd broke and it is the old one, it knows the id.
 */
static int tell_lost(struct ident *id, channel_send send, void *conn)
{
	struct cm_publish_call call = publish_call(id, CM_ENDED);
	int ret;

	call.src.port = 0;
	ret = send(conn, OP_CM_PUBLISH, &call, sizeof call, -1);
	if (ret)
		return ret == -EEXIST ? 0 : ret;
	(void)ident_put_event(id, RDMA_CM_EVENT_UNREACHABLE, -ECONNRESET);
	id->state = ID_ENDED;
	return 0;
}

/* The route may have gone meanwhile: the program, which has no call under way, hears it here. */
static int ask_again(struct ident *id, channel_send send, void *conn)
{
	struct cm_resolve_call call = ident_resolve_call(id);
	int ret = send(conn, OP_CM_RESOLVE, &call, sizeof call, -1);

	if (!ret || ret == -EPIPE || ret == -ETIMEDOUT)
		return ret;
	id->asks = false;
	return ident_put_event(id, RDMA_CM_EVENT_ADDR_ERROR, ret);
}

static int publish_ident(struct ident *id, channel_send send, void *conn)
{
	const struct cm_id_call about = {.handle = id->handle};
	struct cm_publish_call call;
	bool again = id->state == ID_DISCONNECTING;
	uint8_t state = CM_IDLE;
	int ret;

	if (id->state == ID_CONNECTING || id->state == ID_ACCEPTING)
		return tell_lost(id, send, conn);
	if (id->state == ID_LISTEN)
		state = CM_LISTEN;
	else if (id->state == ID_CONNECTED || again)
		state = CM_ESTABLISHED;
	else if (id->state == ID_DISCONNECTED)
		state = CM_DREQ_RCVD;
	else if (!id->has_port)
		return 0;
	call = publish_call(id, state);
	if (state == CM_IDLE)
		call.local_comm = call.remote_comm = 0;
	id->known = true;
	ret = send(conn, OP_CM_PUBLISH, &call, sizeof call, -1);
	if (!ret && again)
		ret = send(conn, OP_CM_DISCONNECT, &about, sizeof about, -1);
	if (!ret && id->asks)
		ret = ask_again(id, send, conn);
	/* Another process took the port, or the like: this id alone is lost. */
	return ret == -EPIPE || ret == -ETIMEDOUT ? ret : 0;
}

static int publish(channel_send send, void *conn)
{
	int ret = 0;

	ports_forget();
	lock_take(&table.lock);
	for (struct event_channel *ch = table.channels; ch && !ret; ch = ch->next)
		ret = channel_publish(ch, send, conn);
	for (struct ident *id = table.idents; id && !ret; id = id->next)
		ret = publish_ident(id, send, conn);
	lock_drop(&table.lock);
	return ret;
}

/* What the parent's other threads held or waited for, nobody does here. */
static void ident_inherit(struct ident *id)
{
	id->inherited = true;
	atomic_store_explicit(&id->qp_lock.word, 0, memory_order_relaxed);
	pthread_mutex_init(&id->mutex, NULL);
	pthread_cond_init(&id->acked, NULL);
}

/* The parent's ids are not the child's; it may only destroy what it inherited. */
static void forked_child(void)
{
	ports_forked_child();
	for (struct ident *id = table.idents; id; id = id->next)
		ident_inherit(id);
	for (struct event_channel *ch = table.channels; ch; ch = ch->next) {
		ch->inherited = true;
		atomic_store_explicit(&ch->lock.word, 0, memory_order_relaxed);
	}
	memset(&table.by_handle, 0, sizeof table.by_handle);
	table.idents = NULL;
	table.channels = NULL;
	atomic_store_explicit(&table.lock.word, 0, memory_order_relaxed);
	device_forked_child();
}

static void set_up(void)
{
	pthread_atfork(NULL, NULL, forked_child);
	weft_cm_publish(publish);
}

/* ---- ids ---- */

struct ident *ident_new(
	struct rdma_event_channel *ch, void *context, enum rdma_port_space ps, uint32_t handle)
{
	struct ident *id = calloc(1, sizeof *id);

	pthread_once(&once, set_up);
	if (!id)
		return NULL;
	id->id.channel = ch;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
	if (id->id.qp_type == IBV_QPT_UD)
		id->flags |= CM_F_DATAGRAM;
	pthread_mutex_init(&id->mutex, NULL);
	pthread_cond_init(&id->acked, NULL);
	lock_take(&table.lock);
	if (!handle)
		handle = table.last_handle = (table.last_handle % (CM_HANDLE_PASSIVE - 1)) + 1;
	id->handle = handle;
	id->by_handle = *bucket(handle);
	*bucket(handle) = id;
	id->next = table.idents;
	if (id->next)
		id->next->prev = id;
	table.idents = id;
	lock_drop(&table.lock);
	return id;
}

void ident_remove(struct ident *id)
{
	struct ident **link = bucket(id->handle);

	lock_take(&table.lock);
	while (*link && *link != id)
		link = &(*link)->by_handle;
	if (*link) { /* else it was the parent's */
		*link = id->by_handle;
		if (id->prev)
			id->prev->next = id->next;
		else
			table.idents = id->next;
		if (id->next)
			id->next->prev = id->prev;
	}
	lock_drop(&table.lock);
}

void ident_free(struct ident *id)
{
	pthread_mutex_lock(&id->mutex);
	while (id->n_acked < id->n_events && !id->inherited)
		pthread_cond_wait(&id->acked, &id->mutex);
	pthread_mutex_unlock(&id->mutex);
	pthread_mutex_destroy(&id->mutex);
	pthread_cond_destroy(&id->acked);
	joins_free(id);
	rdma_freeaddrinfo(id->info);
	free(id->ep_qp_attr);
	free(id->connect);
	free(id);
}

struct ident *ident_count_event(uint32_t handle)
{
	struct ident *id;

	lock_take(&table.lock);
	id = *bucket(handle);
	while (id && id->handle != handle)
		id = id->by_handle;
	if (id) {
		pthread_mutex_lock(&id->mutex);
		id->n_events++;
		pthread_mutex_unlock(&id->mutex);
	}
	lock_drop(&table.lock);
	return id;
}

void ident_ack_event(struct ident *id)
{
	pthread_mutex_lock(&id->mutex);
	id->n_acked++;
	pthread_cond_broadcast(&id->acked);
	pthread_mutex_unlock(&id->mutex);
}

/* ---- channels ---- */

void channel_enter(struct event_channel *ch)
{
	pthread_once(&once, set_up);
	lock_take(&table.lock);
	ch->next = table.channels;
	if (ch->next)
		ch->next->prev = ch;
	table.channels = ch;
	lock_drop(&table.lock);
}

void channel_leave(struct event_channel *ch)
{
	lock_take(&table.lock);
	if (table.channels == ch || ch->prev) {
		if (ch->prev)
			ch->prev->next = ch->next;
		else
			table.channels = ch->next;
		if (ch->next)
			ch->next->prev = ch->prev;
	}
	lock_drop(&table.lock);
}
