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
}

/* ---- what processes ask ---- */

_Static_assert(PROTO_CM_CALL_LEAST == offsetof(struct cm_call, priv) &&
		       PROTO_CM_CALL_MOST == sizeof(struct cm_call),
	"the table of rdv/proto.c");

/* A struct cm_call of exactly the length that it says; what the table wants was looked at. */
static const struct cm_call *call_of(const struct proto_in *in)
{
	const struct cm_call *call = (const struct cm_call *)in->payload.bytes;

	if (call->param.priv_len > CM_PRIV_MAX || in->len != cm_call_size(call))
		return NULL;
	return call;
}

static int act(struct cm_requests *k, uint32_t owner, const struct proto_in *in, struct reply *r)
{
	const struct cm_call *call = call_of(in);
	uint16_t port = 0;
	int ret;

	if (!call)
		return -EINVAL;
	switch (in->head.op) {
	case OP_CM_BIND:
		ret = cm_bind(&k->cm, owner, call, &port);
		r->payload.cm_bound.port = port;
		return ret;
	case OP_CM_LISTEN:
		return cm_listen(&k->cm, owner, call);
	case OP_CM_CONNECT:
		ret = cm_connect(&k->cm, owner, call, &r->payload.cm_connecting.comm_id, &port);
		r->payload.cm_connecting.port = port;
		return ret;
	case OP_CM_ACCEPT:
		return cm_accept(&k->cm, owner, call);
	case OP_CM_READY:
		return cm_ready(&k->cm, owner, call);
	case OP_CM_REJECT:
		return cm_reject(&k->cm, owner, call);
	case OP_CM_NOTIFY:
		return cm_notify(&k->cm, owner, call);
	case OP_CM_DISCONNECT:
		return cm_disconnect(&k->cm, owner, call);
	case OP_CM_MIGRATE:
		return cm_migrate(&k->cm, owner, call);
	case OP_CM_DESTROY:
		return cm_destroy(&k->cm, owner, call->handle);
	default:
		return cm_publish(&k->cm, owner, call);
	}
}

/* What is queued about an id follows it to its new channel, or ends with it. */
static void follow(struct cm_requests *k, uint32_t owner, const struct proto_in *in)
{
	const struct cm_call *call = call_of(in);

	if (call && in->head.op == OP_CM_MIGRATE)
		channels_move(k->channels, owner, call->handle, call->channel);
	/* One way: nothing is queued about it, as its owner knows. */
	if (call && in->head.op == OP_CM_DESTROY && in->head.cookie)
		channels_purge(k->channels, owner, call->handle);
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
	int ret;

	if (in->head.op == OP_CM_LEND)
		return lend(k, owner, r);
	ret = act(k, owner, in, r);
	if (!ret)
		follow(k, owner, in);
	return ret;
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
}

void cm_requests_counts(const struct cm_requests *k, json_t *o)
{
	for (int i = 0; i < CM_N_COUNT; i++)
		json_object_set_new(o, cm_count_name(i), json_integer(k->cm.counts[i]));
}
