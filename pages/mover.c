// SPDX-License-Identifier: BSD-3-Clause
#include "pages/mover.h"

#include "pages/agent.h"
#include "pages/copy.h"

/* Most moves: one piece to one piece, in one step. */
static enum move_result self_run_one(struct move *m, struct sgl *src, struct sgl *dst)
{
	m->moved = src->left;
	copy_ordered(sgl_take_one(dst), sgl_take_one(src), m->moved);
	return MOVE_OK;
}

static enum move_result self_run(struct move *m)
{
	struct sgl *src = m->push ? m->local : m->remote;
	struct sgl *dst = m->push ? m->remote : m->local;
	bool large = src->left >= COPY_STREAM_MIN;

	if (src->left <= MOVE_STEP && sgl_is_one(src) && sgl_is_one(dst))
		return self_run_one(m, src, dst);
	while (src->left) {
		struct iovec *s = &src->v[src->at], *d = &dst->v[dst->at];
		uint64_t step = s->iov_len < d->iov_len ? s->iov_len : d->iov_len;
		enum move_result rc;

		if (step > MOVE_STEP)
			step = MOVE_STEP;
		(large ? copy_stream : copy_ordered)(d->iov_base, s->iov_base, step);
		sgl_consume(src, step);
		sgl_consume(dst, step);
		m->moved += step;
		rc = src->left && m->may_go_on ? m->may_go_on(m->arg) : MOVE_OK;
		if (rc != MOVE_OK)
			return rc;
	}
	return MOVE_OK;
}

enum move_result mover_run(struct move *m)
{
	m->moved = 0;
	m->calls = 0;
	if (!m->remote->left)
		return MOVE_OK;
	if (m->agent)
		return agent_run(m);
	return m->pid ? cma_run(m) : self_run(m);
}
