// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/far.h"

#include <errno.h>

#include "base/lock.h"
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

void far_choose(struct hca_qp *qp)
{
	const struct far_ops *ops, *far = &near_ops;

	for (unsigned i = 0; i < FAR_MAX; i++) {
		ops = atomic_load_explicit(&registered[i], memory_order_acquire);
		if (!ops)
			break;
		if (ops->reaches(qp)) {
			far = ops;
			break;
		}
	}
	atomic_store_explicit(&qp->far, far, memory_order_release);
}
