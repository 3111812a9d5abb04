// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/lease.h"

#include <errno.h>
#include <inttypes.h>

#include "base/draw.h"
#include "base/log.h"
#include "rdv/claim.h"
#include "rdv/client.h"
#include "rdv/grow.h"

enum {
	CLAIM_BLOCKS = CLAIM_QPNS / RDV_QPN_BLOCK,
	ALL_BLOCKS = (1 << CLAIM_BLOCKS) - 1,
};

/* The numbers of a claim, of which blocks are given out. */
struct lease {
	uint32_t first;
	uint32_t used;  /* bit i: block i */
	bool unclaimed; /* it never had a claim */
	struct own_fd claim;
};

/* Under the lock of control calls. */
static struct {
	struct lease *at;
	size_t n, room;
} leases;

/* Another duplicate, where ours was closed behind our back. */
static void keep_claim(struct lease *l, struct proto_in *in)
{
	if (!own_fd_ok(&l->claim))
		l->claim = own_fd(proto_take_fd(in, 0));
	proto_close(in);
}

/* The lease that number is of, or NULL. */
static struct lease *lease_of(uint32_t qpn)
{
	for (size_t i = 0; i < leases.n; i++)
		if (leases.at[i].first == qpn / CLAIM_QPNS * CLAIM_QPNS)
			return &leases.at[i];
	return NULL;
}

static int send_lease(struct conn *conn, struct lease *l)
{
	const struct proto_block call = {
		.first_qpn = l->first, .flags = l->unclaimed ? PROTO_UNCLAIMED : 0};
	struct proto_out out = proto_call(OP_CLAIM, &call);
	struct proto_in in;
	int ret;

	out.fds = &l->claim.fd;
	out.n_fds = own_fd_ok(&l->claim);
	ret = conn_call(conn, &out, &in);
	if (!ret)
		keep_claim(l, &in);
	if (ret == -EEXIST) {
		log_line(LOG_LVL_ERROR,
			"QP numbers from %#" PRIx32
			" were leased to another process while weftd was "
			"down; peers cannot reach them",
			l->first);
		ret = 0;
	}
	return ret;
}

int leases_publish(struct conn *conn)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < leases.n; i++)
		ret = send_lease(conn, &leases.at[i]);
	return ret;
}

void leases_forget(void)
{
	while (leases.n)
		own_fd_close(&leases.at[--leases.n].claim);
}

static int lease_more(void)
{
	struct proto_out out = proto_call(OP_LEASE, NULL);
	struct proto_in in;
	int ret = grow((void **)&leases.at, &leases.room, leases.n, sizeof *leases.at);

	if (!ret)
		ret = client_call(&out, &in);
	if (ret)
		return ret;
	leases.at[leases.n++] = (struct lease){.first = in.payload.block.first_qpn,
		.unclaimed = in.payload.block.flags & PROTO_UNCLAIMED,
		.claim = own_fd(proto_take_fd(&in, 0))};
	proto_close(&in);
	return 0;
}

/* One of its blocks that are left, which one is drawn. */
static uint32_t draw_block(struct lease *l)
{
	uint32_t i = draw_below(CLAIM_BLOCKS);

	while (l->used >> i & 1)
		i = (i + 1) % CLAIM_BLOCKS;
	l->used |= 1u << i;
	return l->first + i * RDV_QPN_BLOCK;
}

static int lease(uint32_t *first)
{
	size_t i = 0;
	int ret = 0;

	while (i < leases.n && leases.at[i].used == ALL_BLOCKS)
		i++;
	if (i == leases.n)
		ret = lease_more();
	if (!ret)
		*first = draw_block(&leases.at[i]);
	return ret;
}

int rdv_lease_qpns(uint32_t *first)
{
	int cancel = client_enter();

	return client_leave(cancel, lease(first));
}

/* Gives the block back; the last one of its claim with that. */
static int give_back(uint32_t first)
{
	const struct proto_block call = {.first_qpn = first / CLAIM_QPNS * CLAIM_QPNS};
	uint32_t bit = 1u << first % CLAIM_QPNS / RDV_QPN_BLOCK;
	struct lease *l = lease_of(first);

	if (!l || first % RDV_QPN_BLOCK || !(l->used & bit))
		return -ENOENT;
	l->used &= ~bit;
	if (l->used)
		return 0;
	own_fd_close(&l->claim);
	*l = leases.at[--leases.n];
	return client_undo(OP_RETURN, &call);
}

int rdv_return_qpns(uint32_t first)
{
	int cancel = client_enter();

	return client_leave(cancel, give_back(first));
}

static int own_claim(uint32_t qpn)
{
	struct lease *l = lease_of(qpn);
	int ret = 0;

	if (!l || l->unclaimed)
		return -ENOENT;
	if (!own_fd_ok(&l->claim))
		ret = client_ensure();
	if (!ret && !own_fd_ok(&l->claim))
		ret = send_lease(&client.conn, l);
	if (!ret && !own_fd_ok(&l->claim))
		ret = -ENOENT;
	return ret ? ret : l->claim.fd;
}

int rdv_own_claim(uint32_t qpn)
{
	int cancel = client_enter();

	return client_leave(cancel, own_claim(qpn));
}

bool rdv_claims_whole(void)
{
	bool whole = true;
	int saved = errno;

	if (!lock_try(&client.lock))
		return true;
	for (size_t i = 0; i < leases.n; i++)
		whole &= leases.at[i].unclaimed || own_fd_ok(&leases.at[i].claim);
	lock_drop(&client.lock);
	errno = saved;
	return whole;
}
