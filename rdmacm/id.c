// SPDX-License-Identifier: BSD-3-Clause
/* Ids: creation, options, migration, end. */
#include "rdmacm/rdmacm.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "rdmacm/call.h"
#include "rdmacm/channel.h"
#include "rdmacm/device.h"
#include "rdmacm/ports.h"
#include "rdmacm/table.h"
#include "verbs/for_rdmacm.h"

static bool known_port_space(enum rdma_port_space ps)
{
	return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB || ps == RDMA_PS_IB;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
	enum rdma_port_space ps)
{
	struct event_channel *own = NULL;
	const struct device *dev;
	struct ident *id;
	int ret = device_get(&dev);

	if (!ret && !known_port_space(ps))
		ret = log_refused(-EPROTONOSUPPORT,
			"rdma_create_id refused: there is no port space %#x (RDMA_PS_TCP, "
			"RDMA_PS_UDP)",
			ps);
	if (!ret && !channel)
		ret = channel_create(&own);
	if (ret)
		return fail(ret);
	id = ident_new(channel ? channel : &own->ch, context, ps, 0);
	if (!id) {
		if (own)
			channel_destroy(own);
		return fail(ENOMEM);
	}
	id->sync = !channel;
	*out = &id->id;
	return 0;
}

static bool of_ident(const struct cm_event *e, const void *arg)
{
	const struct ident *id = arg;

	return e->handle == id->handle || e->listen_handle == id->handle;
}

/* Does weftd know it? */
static bool is_published(const struct ident *id)
{
	return id->known || id->handle & CM_HANDLE_PASSIVE;
}

/*
 * Need nobody wait until weftd has forgotten it?  Its port is not for others, and no event comes:
 * the next would be the end of its time of waiting, which began after our rdma_disconnect().
 */
static bool ends_quietly(const struct ident *id)
{
	/* Else another thread may be taking an event that tells of the peer. */
	if (id->state != ID_ENDED || !id->left_at)
		return false;
	return (id->loan || id->handle & CM_HANDLE_PASSIVE) &&
	       clock_ns() - id->left_at <
		       (uint64_t)cm_timewait_ms(id->peer.ack_timeout) * NSEC_PER_MSEC / 2;
}

int rdma_destroy_id(struct rdma_cm_id *rdma_id)
{
	struct ident *id = to_ident(rdma_id);
	struct event_channel *ch = to_channel(rdma_id->channel);
	int ret = 0;

	ident_remove(id);
	if (is_published(id))
		ret = ends_quietly(id) ? tell_about(OP_CM_DESTROY, id->handle)
				       : call_about(OP_CM_DESTROY, id->handle);
	if (id->loan)
		port_give_back(id->src.port, id->loan);
	channel_sift(ch, NULL, of_ident, id);
	if (rdma_id->event)
		rdma_ack_cm_event(rdma_id->event);
	if (id->sync)
		channel_destroy(ch);
	ident_free(id);
	return result(ret);
}

/* ---- moving to another channel ---- */

int rdma_migrate_id(struct rdma_cm_id *rdma_id, struct rdma_event_channel *channel)
{
	struct ident *id = to_ident(rdma_id);
	struct event_channel *from = to_channel(rdma_id->channel), *to;
	bool was_sync = id->sync;
	struct cm_migrate_call call;
	int ret = 0;

	if (id->sync && !channel)
		return fail(EINVAL);
	if (channel)
		to = to_channel(channel);
	else
		ret = channel_create(&to);
	if (ret)
		return fail(ret);
	call = (struct cm_migrate_call){.handle = id->handle, .channel = to->id};
	if (is_published(id))
		ret = weft_cm_call(OP_CM_MIGRATE, &call, sizeof call, NULL);
	if (ret) {
		if (!channel)
			channel_destroy(to);
		return fail(ret);
	}
	channel_sift(from, to, of_ident, id);
	rdma_id->channel = &to->ch;
	id->sync = !channel;
	if (was_sync) {
		if (rdma_id->event) {
			rdma_ack_cm_event(rdma_id->event);
			rdma_id->event = NULL;
		}
		channel_destroy(from);
	}
	return 0;
}

/* ---- options ---- */

static int refuse_option(const char *why)
{
	return log_refused(-EINVAL, "rdma_set_option refused: %s", why);
}

static int get_flag(const void *optval, size_t optlen, uint32_t flag, uint32_t *flags)
{
	int on;

	if (optlen != sizeof on)
		return refuse_option("its value is an int");
	memcpy(&on, optval, sizeof on);
	*flags = on ? *flags | flag : *flags & ~flag;
	return 0;
}

static int set_id_option(struct ident *id, int optname, const void *optval, size_t optlen)
{
	switch (optname) {
	case RDMA_OPTION_ID_TOS:
		if (optlen != 1)
			return refuse_option("the value of RDMA_OPTION_ID_TOS is one byte");
		id->tos = *(const uint8_t *)optval;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		if (id->state != ID_IDLE)
			return refuse_option("RDMA_OPTION_ID_REUSEADDR is for an id that is new");
		return get_flag(optval, optlen, CM_F_REUSEADDR, &id->flags);
	case RDMA_OPTION_ID_AFONLY:
		if (id->state != ID_IDLE)
			return refuse_option("RDMA_OPTION_ID_AFONLY is for an id that is new");
		return get_flag(optval, optlen, CM_F_AFONLY, &id->flags);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (optlen != 1 || *(const uint8_t *)optval > 31 || id->id.qp_type != IBV_QPT_RC)
			return refuse_option("RDMA_OPTION_ID_ACK_TIMEOUT is a byte up to 31, of an "
					     "id whose QP is of type RC");
		id->ack_timeout = *(const uint8_t *)optval;
		return 0;
	default:
		return log_refused(-ENOSYS,
			"rdma_set_option refused: there is no option %d of "
			"RDMA_OPTION_ID",
			optname);
	}
}

int rdma_set_option(struct rdma_cm_id *rdma_id, int level, int optname, void *optval, size_t optlen)
{
	if (level == RDMA_OPTION_ID)
		return result(set_id_option(to_ident(rdma_id), optname, optval, optlen));
	/* The path of an InfiniBand subnet; ours is an Ethernet. */
	if (level == RDMA_OPTION_IB)
		return fail(EOPNOTSUPP);
	return fail(log_refused(ENOSYS, "rdma_set_option refused: there is no level %d", level));
}
