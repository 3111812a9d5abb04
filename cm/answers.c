// SPDX-License-Identifier: BSD-3-Clause
#include "cm/answers.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

/* In that time a requester has asked twice more. */
#define KEPT_NS (16 * NSEC_PER_SEC)

/* One request, one place: whichever has it later drives out the one before. */
static struct cm_answer *place(struct cm *cm, const uint8_t gid[16], uint32_t comm)
{
	return &cm->answers[hash_bytes(gid, MAD_GID, cm->salt ^ comm) % CM_ANSWERS];
}

/* Between our own nothing gets lost. */
void answer_keep(const struct cm_id *id, const struct cm_msg *m)
{
	struct cm *cm = id->cm;
	struct cm_answer *a = place(cm, id->addr.grh.remote, id->remote_comm);

	if (!id->remote_comm || cm->env.is_local(cm->env.arg, id->addr.grh.remote))
		return;
	a->until = cm_msg_pack(m, a->mad) ? 0 : cm->env.now(cm->env.arg) + KEPT_NS;
	a->remote_comm = id->remote_comm;
	a->tid = id->tid;
	memcpy(a->gid, id->addr.grh.remote, sizeof a->gid);
}

bool answer_again(struct cm *cm, const struct mad_addr *from, uint32_t remote_comm, uint64_t tid)
{
	const struct cm_answer *a = place(cm, from->grh.remote, remote_comm);

	if (a->until <= cm->env.now(cm->env.arg) || a->remote_comm != remote_comm ||
		a->tid != tid || memcmp(a->gid, from->grh.remote, sizeof a->gid) != 0)
		return false;
	cm->counts[CM_N_DUPLICATE]++;
	cm->counts[CM_N_SENT]++;
	(void)mad_post(&cm->agent, from, a->mad);
	return true;
}
