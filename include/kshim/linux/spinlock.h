/* SPDX-License-Identifier: BSD-3-Clause */
/* Spinning locks: mutexes here, as nothing runs in an interrupt. */
#pragma once

#include <linux/mutex.h>

typedef struct mutex spinlock_t;

#define __SPIN_LOCK_UNLOCKED(name)          __MUTEX_INITIALIZER(name)
#define DEFINE_SPINLOCK(name)               spinlock_t name = __SPIN_LOCK_UNLOCKED(name)
#define spin_lock_init                      mutex_init
#define spin_lock                           mutex_lock
#define spin_unlock                         mutex_unlock
#define spin_trylock                        mutex_trylock
#define spin_lock_bh                        mutex_lock
#define spin_unlock_bh                      mutex_unlock
#define spin_lock_irq                       mutex_lock
#define spin_unlock_irq                     mutex_unlock
#define spin_lock_irqsave(lock, flags)      ((flags) = 0, mutex_lock(lock))
#define spin_unlock_irqrestore(lock, flags) ((void)(flags), mutex_unlock(lock))
