// SPDX-License-Identifier: BSD-3-Clause
#include "base/lock.h"

enum { SPINS = 100 };

static void futex(struct lock *l, int op, uint32_t val)
{
	syscall(SYS_futex, &l->word, op | FUTEX_PRIVATE_FLAG, val, NULL, NULL, 0);
}

void lock_wait(struct lock *l)
{
	for (int i = 0; i < SPINS; i++) {
		if (lock_try(l))
			return;
		cpu_relax();
	}
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		futex(l, FUTEX_WAIT, 2);
}

void lock_wake(struct lock *l)
{
	futex(l, FUTEX_WAKE, 1);
}
