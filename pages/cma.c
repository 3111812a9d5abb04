// SPDX-License-Identifier: BSD-3-Clause
/* Cross-memory attach: the kernel copies between two processes, page by page. */
#include <errno.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"
#include "pages/mover.h"

enum { TAIL_BYTES = 64 };

/*
 * Describes the next want bytes of l in out.  If tail, the last 64 of them get a piece of their
 * own: the kernel copies pieces in order, so those become visible last.
 */
static unsigned next_pieces(const struct sgl *l, uint64_t want, bool tail, struct iovec *out)
{
	uint64_t body = tail && want > TAIL_BYTES ? want - TAIL_BYTES : want;
	unsigned n = 0;

	for (unsigned i = l->at; want; i++) {
		char *base = l->v[i].iov_base;
		uint64_t len = l->v[i].iov_len;

		while (len && want) {
			uint64_t room = body ? body : want;
			uint64_t step = len < room ? len : room;

			out[n].iov_base = base;
			out[n++].iov_len = step;
			base += step;
			len -= step;
			want -= step;
			body -= body ? step : 0;
		}
	}
	return n;
}

/* After EFAULT with nothing moved: whose memory is missing?  Tries our own by itself. */
static enum move_result blame(const struct move *m)
{
	char byte;
	struct iovec probe = {.iov_base = &byte, .iov_len = 1};
	struct iovec mine = {.iov_base = m->local->v[m->local->at].iov_base, .iov_len = 1};
	int saved = errno;
	ssize_t n = process_vm_readv(getpid(), &probe, 1, &mine, 1, 0);

	if (n == 1 && !m->push)
		n = process_vm_writev(getpid(), &probe, 1, &mine, 1, 0);
	errno = saved;
	return n == 1 ? MOVE_FAULT_REMOTE : MOVE_FAULT_LOCAL;
}

/* Once per process: every request to that peer will fail alike. */
static void tell_refused(int pid, int err)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set_explicit(&told, memory_order_relaxed))
		log_line(LOG_LVL_ERROR,
			"the kernel refuses copies to and from process %d (process_vm_writev: %s); "
			"allow process_vm_readv and process_vm_writev in the seccomp profile, or "
			"run "
			"both programs as the same user and dumpable; weft doctor tells more",
			pid, strerror(err));
}

static enum move_result failed(const struct move *m, int err)
{
	switch (err) {
	case EFAULT:
		return blame(m);
	case ESRCH:
		return MOVE_GONE;
	default:
		tell_refused(m->pid, err);
		return MOVE_REFUSED;
	}
}

static ssize_t step_once(struct move *m, uint64_t step, bool last)
{
	struct iovec l[SGL_MAX + 1], r[SGL_MAX + 1];
	unsigned nl = next_pieces(m->local, step, false, l);
	unsigned nr = next_pieces(m->remote, step, last && m->push, r);

	if (last && !m->push)
		nl = next_pieces(m->local, step, true, l);
	m->calls++;
	return m->push ? process_vm_writev(m->pid, l, nl, r, nr, 0)
		       : process_vm_readv(m->pid, l, nl, r, nr, 0);
}

enum move_result cma_run(struct move *m)
{
	int saved = errno;

	while (m->local->left) {
		uint64_t left = m->local->left;
		uint64_t step = left > MOVE_STEP ? MOVE_STEP : left;
		ssize_t n = step_once(m, step, step == left);

		if (n <= 0) {
			int err = n < 0 ? errno : EFAULT;

			errno = saved;
			return failed(m, err);
		}
		sgl_consume(m->local, n);
		sgl_consume(m->remote, n);
		m->moved += n;
		if (m->local->left && m->still_valid && !m->still_valid(m->arg))
			return MOVE_STOPPED;
	}
	return MOVE_OK;
}
