// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/far.h"

#include <errno.h>
#include <poll.h>

#include "base/at_open.h"
#include "base/lock.h"
#include "base/log.h"
#include "hca/obj/cq.h"
#include "hca/proc/peer.h"
#include "hca/run/near.h"
#include "hca/run/path.h"
#include "rdv/wire.h"

static AT_OPEN_DATA struct lock lock;
static AT_OPEN_DATA const struct far_ops *_Atomic registered[FAR_MAX];

AT_OPEN int far_register(const struct far_ops *ops)
{
	unsigned i = 0;

	lock_take(&lock);
	while (i < FAR_MAX && atomic_load_explicit(&registered[i], memory_order_relaxed))
		i++;
	if (i < FAR_MAX)
		atomic_store_explicit(&registered[i], ops, memory_order_release);
	lock_drop(&lock);
	return i < FAR_MAX ? 0 : -ENOSPC;
}

const struct far_ops *far_nth(unsigned i)
{
	return i < FAR_MAX ? atomic_load_explicit(&registered[i], memory_order_acquire) : NULL;
}

int far_route(struct seg_path *path)
{
	const struct far_ops *ops;
	int rc = -EHOSTUNREACH;

	for (unsigned i = 0; rc == -EHOSTUNREACH && (ops = far_nth(i)); i++)
		rc = ops->route(path);
	return rc;
}

static bool leads_here(const struct hca_qp *qp)
{
	uint32_t index;

	return path_find_gid(qp->me.qp->path.dgid, &index) == PATH_LOCAL;
}

/* The first that serves it, or otherwise. */
static const struct far_ops *who_reaches(const struct hca_qp *qp, const struct far_ops *otherwise)
{
	const struct far_ops *ops;

	for (unsigned i = 0; (ops = far_nth(i)); i++)
		if (ops->reaches(qp))
			return ops;
	return otherwise;
}

/* Is the number of another fabric?  Asked where near_ops, who find that out, are not to be asked.
 */
static bool is_elsewhere(const struct hca_qp *qp)
{
	return wire_mode() == WIRE_ALWAYS && qp_connects(qp) && leads_here(qp) &&
	       peer_elsewhere(qp->me.qp->dest_qpn);
}

static bool find_by(struct hca_qp *qp, const struct far_ops *far)
{
	atomic_store_explicit(&qp->far, far, memory_order_release);
	return far->find(qp);
}

/* Nobody of this fabric has it: is it to be had beside it? */
static bool find_beside(struct hca_qp *qp)
{
	struct seg_path *path = &qp->me.qp->path;
	const struct far_ops *far;

	path->beside = 1;
	far = who_reaches(qp, NULL);
	path->beside = far != NULL;
	if (!far)
		return false;
	path->interface = 0;
	return find_by(qp, far);
}

int far_find(struct hca_qp *qp, bool *found)
{
	struct seg_path *path = &qp->me.qp->path;
	bool here = !path->interface || leads_here(qp);
	const struct far_ops *far;

	near_note(qp, NEAR_NOT_SAID);
	if (is_elsewhere(qp)) {
		near_note(qp, NEAR_ELSEWHERE);
		*found = find_beside(qp);
		if (path->beside)
			return 0;
	}
	far = who_reaches(qp, here ? &near_ops : NULL);
	if (!far) {
		log_line(LOG_LVL_WARN,
			"QP %#x: its type, or what it receives from, is only for this host",
			qp->me.qpn);
		return -EHOSTUNREACH;
	}
	*found = find_by(qp, far);
	if (far == &near_ops && near_elsewhere(qp))
		*found = find_beside(qp);
	return 0;
}

void far_count(struct hca_qp *qp, int change)
{
	struct hca_cq *cqs[] = {qp->send_cq, qp->recv_cq};

	for (unsigned i = 0; i < sizeof cqs / sizeof *cqs; i++)
		if (cqs[i])
			atomic_fetch_add_explicit(
				&cqs[i]->far_qps, (uint32_t)change, memory_order_relaxed);
}

bool far_look_in(uint32_t times)
{
	const struct far_ops *ops;
	bool any = false;

	for (unsigned i = 0; (ops = far_nth(i)); i++)
		if (ops->look_in)
			any |= ops->look_in(times);
	return any;
}

unsigned far_sleep_on(struct pollfd *p, unsigned room)
{
	const struct far_ops *ops;
	unsigned n = 0;

	for (unsigned i = 0; (ops = far_nth(i)); i++)
		if (ops->sleep_on)
			n += ops->sleep_on(p + n, room - n);
	return n;
}

void far_awake(void)
{
	const struct far_ops *ops;

	for (unsigned i = 0; (ops = far_nth(i)); i++)
		if (ops->awake)
			ops->awake();
}

void far_forked_child(void)
{
	const struct far_ops *ops;

	atomic_store_explicit(&lock.word, 0, memory_order_relaxed);
	for (unsigned i = 0; (ops = far_nth(i)); i++)
		if (ops->forked_child)
			ops->forked_child();
}
