// SPDX-License-Identifier: BSD-3-Clause
/* Cross-memory attach: the kernel copies between two processes, page by page. */
#include <errno.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"
#include "pages/cpu.h"
#include "pages/cut.h"
#include "pages/mover.h"

/* Does the order of stores alone keep pieces in order?  Else the kernel's work for each does. */
static const bool stores_in_order =
#if defined(__x86_64__)
	true;
#else
	false;
#endif

/* Describes the next want bytes of l in out, cut where c says; returns the number of pieces. */
static unsigned next_pieces(
	const struct sgl *l, uint64_t want, const struct cuts *c, struct iovec *out)
{
	uint64_t at = 0;
	unsigned n = 0, cut = 0;

	for (unsigned i = l->at; at < want; i++) {
		char *base = l->v[i].iov_base;
		uint64_t len = l->v[i].iov_len;

		while (len && at < want) {
			uint64_t stop = cut < c->n ? c->at[cut] : want;
			uint64_t step = len < stop - at ? len : stop - at;

			out[n].iov_base = base;
			out[n++].iov_len = step;
			base += step;
			len -= step;
			at += step;
			cut += at == stop;
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

/* The address after the last byte of l. */
static uint64_t end_of(const struct sgl *l)
{
	return (uintptr_t)l->v[l->n - 1].iov_base + l->v[l->n - 1].iov_len;
}

/* The list of this process is cut: a piece of the peer's costs five times as much (measured). */
static ssize_t step_once(struct move *m, uint64_t step, bool last)
{
	static const struct cuts none;
	uint64_t end = end_of(m->push ? m->remote : m->local);
	struct cuts c = last ? cuts_before(end, step, cpu_can(CPU_SHORT_STRINGS)) : none;
	struct iovec l[SGL_MAX + CUTS], r[SGL_MAX + CUTS];
	unsigned nl = next_pieces(m->local, step, &c, l);
	unsigned nr = next_pieces(m->remote, step, stores_in_order ? &none : &c, r);

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
		enum move_result rc;

		if (n <= 0) {
			int err = n < 0 ? errno : EFAULT;

			errno = saved;
			return failed(m, err);
		}
		sgl_consume(m->local, n);
		sgl_consume(m->remote, n);
		m->moved += n;
		rc = m->local->left && m->may_go_on ? m->may_go_on(m->arg) : MOVE_OK;
		if (rc != MOVE_OK)
			return rc;
	}
	return MOVE_OK;
}
