// SPDX-License-Identifier: BSD-3-Clause
/* Addresses and ports of the IP-based port spaces: who has which, who listens. */
#include "cm/ports.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "cm/held.h"
#include "cm/id.h"
#include "cm/tables.h"

/* All values of enum rdma_port_space, which belongs to a layer above. */
enum { PS_IPOIB = 0x0002, PS_TCP = 0x0106, PS_UDP = 0x0111, PS_IB = 0x013f };

static struct cm_id *id_of_bind(struct cm_bind *b)
{
	return (struct cm_id *)((char *)b - offsetof(struct cm_id, bind));
}

static struct cm_bind **bucket(struct cm *cm, uint16_t ps, uint16_t port)
{
	return &cm->binds[(port ^ ps * 0x9e37u) % CM_BUCKETS];
}

static bool is_any(const struct cm_addr *a)
{
	static const uint8_t any4[16] = {[10] = 0xff, [11] = 0xff}, any6[16];

	return memcmp(a->gid, a->family == 4 ? any4 : any6, 16) == 0;
}

/* Does an address that is "any" cover those of that family? */
static bool covers(const struct cm_bind *b, uint8_t family)
{
	return b->addr.family == family || (b->addr.family == 6 && !(b->flags & CM_F_AFONLY));
}

static bool conflict(const struct cm_bind *a, const struct cm_bind *b)
{
	bool listening = id_of_bind((struct cm_bind *)a)->state == CM_LISTEN ||
			 id_of_bind((struct cm_bind *)b)->state == CM_LISTEN;

	if (a->ps != b->ps || a->addr.port != b->addr.port)
		return false;
	if (a->flags & b->flags & CM_F_REUSEADDR && !listening)
		return false;
	if (is_any(&a->addr) || is_any(&b->addr))
		return covers(a, b->addr.family) || covers(b, a->addr.family);
	return memcmp(a->addr.gid, b->addr.gid, sizeof a->addr.gid) == 0;
}

static bool is_free(struct cm *cm, const struct cm_bind *b)
{
	for (struct cm_bind *o = *bucket(cm, b->ps, b->addr.port); o; o = o->next)
		if (o != b && conflict(o, b))
			return false;
	return true;
}

/* ---- ports that are lent ---- */

static uint32_t borrower(const struct cm *cm, uint16_t port)
{
	unsigned i = port - CM_EPHEMERAL_FIRST;

	return port >= CM_EPHEMERAL_FIRST && i < CM_EPHEMERAL_COUNT ? cm->borrower[i / CM_LOAN] : 0;
}

static const uint16_t spaces[] = {PS_TCP, PS_UDP, PS_IPOIB, PS_IB};

/* Is no id of any port space bound there? */
static bool is_unused(struct cm *cm, uint16_t port)
{
	for (unsigned i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
		for (const struct cm_bind *b = *bucket(cm, spaces[i], port); b; b = b->next)
			if (b->addr.port == port)
				return false;
	return true;
}

static bool can_lend(struct cm *cm, uint32_t block)
{
	bool can = !cm->borrower[block];

	for (int i = 0; can && i < CM_LOAN; i++)
		can = is_unused(cm, CM_EPHEMERAL_FIRST + block * CM_LOAN + i);
	return can;
}

int cm_lend(struct cm *cm, uint32_t owner, uint16_t *first)
{
	if (!cm->next_loan)
		cm->next_loan = cm->env.random(cm->env.arg) % CM_LOANS + 1;
	for (int i = 0; i < CM_LOANS; i++) {
		uint32_t block = cm->next_loan++ % CM_LOANS;

		if (!can_lend(cm, block))
			continue;
		cm->borrower[block] = owner;
		*first = CM_EPHEMERAL_FIRST + block * CM_LOAN;
		return 0;
	}
	return -EADDRNOTAVAIL;
}

void loans_end(struct cm *cm, uint32_t owner)
{
	for (int i = 0; i < CM_LOANS; i++)
		if (cm->borrower[i] == owner)
			cm->borrower[i] = 0;
}

/* ---- binding ---- */

static int choose_port(struct cm *cm, struct cm_bind *b)
{
	if (!cm->next_port)
		cm->next_port = cm->env.random(cm->env.arg) % CM_EPHEMERAL_COUNT + 1;
	for (int i = 0; i < CM_EPHEMERAL_COUNT; i++) {
		b->addr.port = CM_EPHEMERAL_FIRST + cm->next_port % CM_EPHEMERAL_COUNT;
		cm->next_port++;
		if (!borrower(cm, b->addr.port) && is_free(cm, b))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

int bind_take(struct cm_id *id, uint16_t ps, const struct cm_addr *addr, uint32_t flags)
{
	uint32_t to = borrower(id->cm, addr->port);
	struct cm_bind *b = &id->bind, **list;
	int ret = 0;

	*b = (struct cm_bind){.ps = ps, .addr = *addr, .flags = flags};
	if (!addr->port)
		ret = choose_port(id->cm, b);
	else if (!is_free(id->cm, b) || (to && to != id->owner))
		ret = -EADDRINUSE;
	if (ret)
		return ret;
	list = bucket(id->cm, ps, b->addr.port);
	b->next = *list;
	b->bound = true;
	*list = b;
	return 0;
}

void bind_release(struct cm_id *id)
{
	struct cm_bind **link = bucket(id->cm, id->bind.ps, id->bind.addr.port);

	if (!id->bind.bound)
		return;
	while (*link != &id->bind)
		link = &(*link)->next;
	*link = id->bind.next;
	id->bind.bound = false;
}

static bool valid(const struct cm_addr *a)
{
	return a->family == 4 || a->family == 6;
}

int cm_bind(struct cm *cm, uint32_t owner, const struct cm_bind_call *call, uint16_t *port)
{
	struct cm_id *id = id_find(cm, owner, call->handle);
	bool made = !id;
	int ret;

	if (!valid(&call->src) || call->handle & CM_HANDLE_PASSIVE)
		return -EINVAL;
	/* Which of the ports lent to it are in use only the owner knows. */
	if (borrower(cm, call->src.port) && !(call->flags & CM_F_LENT))
		return -EADDRINUSE;
	if (!id)
		id = id_new(cm, owner, call->handle, call->channel);
	if (!id)
		return -ENOMEM;
	if (id->state != CM_IDLE || id->bind.bound)
		return -EINVAL;
	ret = bind_take(id, call->ps, &call->src, call->flags);
	if (ret) {
		if (made)
			id_free(id);
		return ret;
	}
	id->ps = call->ps;
	id->src = id->bind.addr;
	*port = id->bind.addr.port;
	return 0;
}

int cm_listen(struct cm *cm, uint32_t owner, const struct cm_listen_call *call)
{
	struct cm_id *id = id_find(cm, owner, call->handle);
	bool all = call->backlog <= 0 || call->backlog > CM_BACKLOG_MAX;

	if (!id || !id->bind.bound)
		return -EINVAL;
	if (id->state != CM_IDLE && id->state != CM_LISTEN)
		return -EINVAL;
	id->state = CM_LISTEN; /* what REUSEADDR let pass does not pass any more */
	if (!is_free(cm, &id->bind)) {
		id->state = CM_IDLE;
		return -EADDRINUSE;
	}
	id->channel = call->channel;
	id->flags = call->flags;
	id->backlog = all ? CM_BACKLOG_MAX : call->backlog;
	cm_try_held(cm, id->bind.ps, id->bind.addr.port);
	return 0;
}

bool cm_port_is_bound(struct cm *cm, uint16_t port)
{
	for (unsigned i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
		for (struct cm_bind *b = *bucket(cm, spaces[i], port); b; b = b->next)
			if (b->addr.port == port && (id_of_bind(b)->state == CM_IDLE ||
							    id_of_bind(b)->state == CM_LISTEN))
				return true;
	return false;
}

uint64_t cm_service_id(uint16_t ps, uint16_t port)
{
	return (uint64_t)ps << 16 | port;
}

struct cm_id *cm_find_listener(struct cm *cm, uint16_t ps, const struct cm_addr *dst, bool *near)
{
	struct cm_id *found = NULL;

	*near = false;
	for (struct cm_bind *b = *bucket(cm, ps, dst->port); b; b = b->next) {
		struct cm_id *id = id_of_bind(b);

		if (b->ps != ps || b->addr.port != dst->port || id->state != CM_LISTEN)
			continue;
		*near = true;
		if (!is_any(&b->addr) && memcmp(b->addr.gid, dst->gid, sizeof dst->gid) == 0)
			return id;
		if (is_any(&b->addr) && covers(b, dst->family))
			found = id;
	}
	return found;
}
