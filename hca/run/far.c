// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/far.h"

#include <errno.h>

#include "base/lock.h"
#include "base/log.h"
#include "hca/run/near.h"

static struct lock lock;
static const struct far_ops *_Atomic registered[FAR_MAX];

int far_register(const struct far_ops *ops)
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

	for (unsigned i = 0; (ops = far_nth(i)); i++)
		if (!ops->route(path))
			return 0;
	return -EHOSTUNREACH;
}

int far_choose(struct hca_qp *qp)
{
	const struct far_ops *far = qp->me.qp->path.interface ? NULL : &near_ops, *ops;

	for (unsigned i = 0; (ops = far_nth(i)); i++)
		if (ops->reaches(qp)) {
			far = ops;
			break;
		}
	if (!far) {
		log_line(LOG_LVL_WARN,
			"QP %#x: its type, or what it receives from, is only for this host",
			qp->me.qpn);
		return -EHOSTUNREACH;
	}
	atomic_store_explicit(&qp->far, far, memory_order_release);
	return 0;
}
