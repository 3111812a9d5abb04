// SPDX-License-Identifier: BSD-3-Clause
#include "cm/peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct cm_peer {
	struct cm_peer *next, **link;
	uint8_t gid[16];
	uint32_t half_open;
};

static struct cm_peer *new_peer(struct cm *cm, struct cm_peer **bucket, const uint8_t gid[16])
{
	struct cm_peer *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	memcpy(p->gid, gid, sizeof p->gid);
	p->next = *bucket;
	p->link = bucket;
	if (p->next)
		p->next->link = &p->next;
	*bucket = p;
	cm->n_peers++;
	return p;
}

int peer_admit(struct cm *cm, const uint8_t gid[16], struct cm_peer **peer)
{
	struct cm_peer **bucket = &cm->peers[hash_bytes(gid, MAD_GID, cm->salt) % CM_PEER_BUCKETS];
	struct cm_peer *p = *bucket;

	*peer = NULL;
	if (cm->env.is_local(cm->env.arg, gid))
		return 0;
	while (p && memcmp(p->gid, gid, sizeof p->gid) != 0)
		p = p->next;
	if (!p)
		p = new_peer(cm, bucket, gid);
	if (!p)
		return -ENOMEM;
	if (p->half_open >= CM_HALF_OPEN_MAX)
		return -EBUSY;
	p->half_open++;
	*peer = p;
	return 0;
}

void peer_let_go(struct cm *cm, struct cm_peer *p)
{
	if (!p || --p->half_open)
		return;
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	cm->n_peers--;
	free(p);
}
