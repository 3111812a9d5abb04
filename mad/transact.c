// SPDX-License-Identifier: BSD-3-Clause
#include "mad/transact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "wire/rmpp.h"

enum { FIRST_BUCKETS = 64, SPARE_MAX = 4096 };

struct mad_send *mad_send_get(struct mad_agent *a)
{
	struct mad_send *s = spare_get(&a->port->layer->spare_sends, sizeof *s);

	if (s)
		*s = (struct mad_send){.agent = a};
	return s;
}

void mad_send_put(struct mad_layer *layer, struct mad_send *s)
{
	spare_put(&layer->spare_sends, s, SPARE_MAX);
}

static struct mad_send **bucket(const struct mad_layer *layer, uint64_t tid, uint8_t mgmt_class)
{
	return &layer->table[hash_mix(tid ^ (uint64_t)mgmt_class << 56) & (layer->buckets - 1)];
}

static void insert(struct mad_send *s)
{
	struct mad_send **at = bucket(s->agent->port->layer, s->tid, s->mgmt_class);

	s->next = *at;
	s->link = at;
	if (s->next)
		s->next->link = &s->next;
	*at = s;
}

/* Without memory it stays as it is, and its chains grow. */
static int grow(struct mad_layer *layer)
{
	unsigned old = layer->buckets, n = old ? 2 * old : FIRST_BUCKETS;
	struct mad_send **before = layer->table, **table = calloc(n, sizeof(struct mad_send *));

	if (!table)
		return old ? 0 : -ENOMEM;
	layer->table = table;
	layer->buckets = n;
	for (unsigned i = 0; i < old; i++)
		for (struct mad_send *s = before[i], *next; s; s = next) {
			next = s->next;
			insert(s);
		}
	free(before);
	return 0;
}

int mad_table_add(struct mad_send *s)
{
	struct mad_agent *a = s->agent;
	struct mad_layer *layer = a->port->layer;
	struct mad_hdr hdr;

	if (layer->n_sends >= layer->buckets && grow(layer))
		return -ENOMEM;
	mad_hdr_unpack(s->mad, &hdr);
	s->tid = hdr.tid;
	s->mgmt_class = hdr.mgmt_class;
	s->is_response = mad_is_response(&hdr);
	insert(s);
	layer->n_sends++;
	s->agent_next = a->sends;
	s->agent_link = &a->sends;
	if (s->agent_next)
		s->agent_next->agent_link = &s->agent_next;
	a->sends = s;
	return 0;
}

void mad_table_del(struct mad_send *s)
{
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	*s->agent_link = s->agent_next;
	if (s->agent_next)
		s->agent_next->agent_link = s->agent_link;
	s->agent->port->layer->n_sends--;
}

/* The first from s on that is like that. */
static struct mad_send *like(struct mad_send *s, uint64_t tid, uint8_t mgmt_class)
{
	while (s && (s->tid != tid || s->mgmt_class != mgmt_class))
		s = s->next;
	return s;
}

struct mad_send *mad_table_first(const struct mad_layer *layer, uint64_t tid, uint8_t mgmt_class)
{
	return layer->table ? like(*bucket(layer, tid, mgmt_class), tid, mgmt_class) : NULL;
}

struct mad_send *mad_table_next(const struct mad_send *s)
{
	return like(s->next, s->tid, s->mgmt_class);
}

/*
 * A request goes to any address of the peer, which may answer from another one: a response is
 * known by where it arrives.  What asks about a response must come from where that went.
 */
bool mad_fits_peer(const struct mad_send *s, const struct mad_addr *from, bool is_response)
{
	if (s->is_response == is_response)
		return false;
	return is_response ? mad_same_own(&s->addr, from, s->agent->port->lmc)
			   : mad_same_peer(&s->addr, from);
}

struct mad_send *mad_awaiting(
	const struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	/* The LIDs of directed routes may be permissive. */
	bool any_peer = hdr->mgmt_class == MAD_CLASS_SUBN_DR;
	struct mad_send *s = mad_table_first(a->port->layer, hdr->tid, hdr->mgmt_class);

	while (s && !(s->agent == a && s->response && (any_peer || mad_fits_peer(s, from, true))))
		s = mad_table_next(s);
	return s;
}

static bool same_file(const struct mad_agent *a, const struct mad_agent *b)
{
	return a == b || (a->file && a->file == b->file);
}

int mad_check_duplicate(
	const struct mad_agent *a, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	struct mad_hdr hdr;
	struct mad_send *s;
	bool response;

	if (!mad_registration_has_rmpp(&a->reg) && rmpp_is_active(mad))
		return 0;
	mad_hdr_unpack(mad, &hdr);
	response = mad_is_response(&hdr);
	s = mad_table_first(a->port->layer, hdr.tid, hdr.mgmt_class);
	for (; s; s = mad_table_next(s))
		if (same_file(s->agent, a) && s->is_response == response &&
			(!response || mad_same_peer(&s->addr, to)))
			return -EINVAL;
	return 0;
}

void mad_table_free(struct mad_layer *layer)
{
	spare_free(&layer->spare_sends);
	free(layer->table);
	layer->table = NULL;
	layer->buckets = 0;
}
