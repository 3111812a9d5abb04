// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/cm_requests.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "fabric/page.h"

struct orphan {
	struct orphan *next;
	uint32_t owner, handle;
};

/* ---- what the communication manager asks ---- */

static void on_event(void *arg, uint32_t owner, uint32_t channel, struct cm_event *e, size_t len)
{
	struct cm_requests *k = arg;

	channels_put(k->channels, owner, channel, e, len);
}

static bool is_local(void *arg, const uint8_t gid[MAD_GID])
{
	const struct cm_requests *k = arg;

	return mad_service_is_local(k->mads, gid);
}

static uint32_t random_word(void *arg)
{
	struct cm_requests *k = arg;
	const size_t size = sizeof k->randoms;

	if (!k->n_randoms && getrandom(k->randoms, size, GRND_NONBLOCK) == (ssize_t)size)
		k->n_randoms = size / sizeof k->randoms[0];
	return k->n_randoms ? k->randoms[--k->n_randoms] : (uint32_t)clock_ns();
}

int cm_requests_start(struct cm_requests *k, struct server *s, struct mad_port *port)
{
	k->cm.env = (struct cm_env){
		.event = on_event,
		.is_local = is_local,
		.now = mad_service_now,
		.random = random_word,
		.arg = k,
	};
	k->cm.ca_guid = be64toh(s->node->page->node_guid);
	k->cm.epoch = s->epoch;
	k->cm.took_over = s->took_over;
	resolver_start(&k->resolver, s, k->channels);
	return cm_init(&k->cm, port);
}

/* ---- requests that nobody will see ---- */

void cm_requests_drop(struct cm_requests *k, uint32_t owner, const struct cm_event *e)
{
	struct orphan *o;

	if (!e->listen_handle)
		return;
	o = malloc(sizeof *o);
	if (!o)
		return;
	*o = (struct orphan){k->orphans, owner, e->handle};
	k->orphans = o;
}

void cm_requests_run(struct cm_requests *k)
{
	cm_run(&k->cm);
	while (k->orphans) {
		struct orphan *o = k->orphans;

		k->orphans = o->next;
		cm_destroy(&k->cm, o->owner, o->handle);
		free(o);
	}
	resolver_run(&k->resolver);
}

uint64_t cm_requests_next(const struct cm_requests *k)
{
	uint64_t a = cm_next(&k->cm), b = resolver_next(&k->resolver);

	return !a || (b && b < a) ? b : a;
}

bool cm_requests_any(const struct cm_requests *k)
{
	return cm_any(&k->cm) || k->resolver.n;
}

void cm_requests_owner_gone(struct cm_requests *k, uint32_t owner)
{
	cm_owner_gone(&k->cm, owner);
	resolver_owner_gone(&k->resolver, owner);
}

/* ---- what processes ask ---- */

#define HAS_DATA(type, size, member)                                                               \
	_Static_assert(size == offsetof(struct type, priv) &&                                      \
			       size##_LEN == offsetof(struct type, member) &&                      \
			       sizeof(struct type) == size + PROTO_CM_PRIVATE,                     \
		"the table of rdv/proto.c")
#define HAS_NONE(type, size) _Static_assert(size == sizeof(struct type), "the table of rdv/proto.c")

HAS_NONE(cm_id_call, PROTO_CM_ID);
HAS_NONE(cm_bind_call, PROTO_CM_BIND);
HAS_NONE(cm_resolve_call, PROTO_CM_RESOLVE);
HAS_NONE(cm_listen_call, PROTO_CM_LISTEN);
HAS_DATA(cm_connect_call, PROTO_CM_CONNECT, param.priv_len);
HAS_DATA(cm_accept_call, PROTO_CM_ACCEPT, param.priv_len);
HAS_DATA(cm_reject_call, PROTO_CM_REJECT, priv_len);
HAS_NONE(cm_migrate_call, PROTO_CM_MIGRATE);
HAS_NONE(cm_publish_call, PROTO_CM_PUBLISH);

static int bind_id(struct cm *cm, uint32_t owner, const void *call, struct reply *r)
{
	uint16_t port = 0;
	int ret = cm_bind(cm, owner, call, &port);

	r->payload.cm_bound.port = port;
	return ret;
}

static int connect_id(struct cm *cm, uint32_t owner, const void *call, struct reply *r)
{
	uint16_t port = 0;
	int ret = cm_connect(cm, owner, call, &r->payload.cm_connecting.comm_id, &port);

	r->payload.cm_connecting.port = port;
	return ret;
}

/* What is queued about an id follows it to its new channel. */
static int migrate(struct cm_requests *k, uint32_t owner, const struct cm_migrate_call *call)
{
	int ret = cm_migrate(&k->cm, owner, call->handle, call->channel);

	if (!ret)
		channels_move(k->channels, owner, call->handle, call->channel);
	resolver_migrate(&k->resolver, owner, call->handle, call->channel);
	return ret;
}

/* What is queued about an id ends with it; if it is one way nothing is, as its owner knows. */
static int destroy(struct cm_requests *k, uint32_t owner, uint32_t handle, bool one_way)
{
	int ret = cm_destroy(&k->cm, owner, handle);

	resolver_forget(&k->resolver, owner, handle);
	if (!ret && !one_way)
		channels_purge(k->channels, owner, handle);
	return ret;
}

static int lend(struct cm_requests *k, uint32_t owner, struct reply *r)
{
	uint16_t first = 0;
	int ret = cm_lend(&k->cm, owner, &first);

	r->payload.cm_loan = (struct proto_cm_loan){.first = first, .count = CM_LOAN};
	return ret;
}

int cm_requests_do(
	struct cm_requests *k, uint32_t owner, const struct proto_in *in, struct reply *r)
{
	const void *call = in->payload.bytes;
	uint32_t handle = ((const struct cm_id_call *)call)->handle;

	switch (in->head.op) {
	case OP_CM_LEND:
		return lend(k, owner, r);
	case OP_CM_RESOLVE:
		return resolver_ask(&k->resolver, owner, call);
	case OP_CM_BIND:
		return bind_id(&k->cm, owner, call, r);
	case OP_CM_LISTEN:
		qp1_open(&k->mads->qp1);
		return cm_listen(&k->cm, owner, call);
	case OP_CM_CONNECT:
		return connect_id(&k->cm, owner, call, r);
	case OP_CM_ACCEPT:
		return cm_accept(&k->cm, owner, call);
	case OP_CM_READY:
		return cm_ready(&k->cm, owner, handle);
	case OP_CM_REJECT:
		return cm_reject(&k->cm, owner, call);
	case OP_CM_NOTIFY:
		return cm_notify(&k->cm, owner, handle);
	case OP_CM_DISCONNECT:
		return cm_disconnect(&k->cm, owner, handle);
	case OP_CM_MIGRATE:
		return migrate(k, owner, call);
	case OP_CM_DESTROY:
		return destroy(k, owner, handle, !in->head.cookie);
	case OP_CM_PUBLISH:
		if (((const struct cm_publish_call *)call)->state != CM_IDLE)
			qp1_open(&k->mads->qp1);
		return cm_publish(&k->cm, owner, call);
	default:
		return -EINVAL;
	}
}

static unsigned listeners(const struct cm *cm)
{
	unsigned n = 0;

	for (const struct cm_id *id = cm->ids; id; id = id->next)
		n += id->state == CM_LISTEN;
	return n;
}

void cm_requests_status(const struct cm_requests *k, json_t *o)
{
	json_object_set_new(o, "ids", json_integer(k->cm.n_ids));
	json_object_set_new(o, "listeners", json_integer(listeners(&k->cm)));
	resolver_status(&k->resolver, o);
}

void cm_requests_counts(const struct cm_requests *k, json_t *o)
{
	for (int i = 0; i < CM_N_COUNT; i++)
		json_object_set_new(o, cm_count_name(i), json_integer(k->cm.counts[i]));
}
