// SPDX-License-Identifier: BSD-3-Clause
#include "pages/mover.h"

#include "base/atomic.h"

void copy_ordered(void *to, const void *from, uint64_t len)
{
	uint64_t tail = len < 8 ? 0 : 8;

	memmove(to, from, len - tail);
	if (!tail)
		return;
	atomic_thread_fence(memory_order_release);
	memcpy((char *)to + len - 8, (const char *)from + len - 8, 8);
}

static enum move_result self_run(struct move *m)
{
	struct sgl *src = m->push ? m->local : m->remote;
	struct sgl *dst = m->push ? m->remote : m->local;

	while (src->left) {
		struct iovec *s = &src->v[src->at], *d = &dst->v[dst->at];
		uint64_t step = s->iov_len < d->iov_len ? s->iov_len : d->iov_len;

		if (step > MOVE_STEP)
			step = MOVE_STEP;
		copy_ordered(d->iov_base, s->iov_base, step);
		sgl_consume(src, step);
		sgl_consume(dst, step);
		m->moved += step;
		if (src->left && m->still_valid && !m->still_valid(m->arg))
			return MOVE_STOPPED;
	}
	return MOVE_OK;
}

enum move_result mover_run(struct move *m)
{
	m->moved = 0;
	m->calls = 0;
	if (!m->local->left)
		return MOVE_OK;
	return m->pid ? cma_run(m) : self_run(m);
}
