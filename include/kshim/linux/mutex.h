/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks that one thread holds.  One that a thread holds already ends the program. */
#pragma once

#include <linux/types.h>
#include <pthread.h>

struct mutex {
	pthread_mutex_t m;
};

#define __MUTEX_INITIALIZER(name)                                                                  \
	{                                                                                          \
		PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP                                            \
	}
#define DEFINE_MUTEX(name)             struct mutex name = __MUTEX_INITIALIZER(name)
#define mutex_init(lock)               kshim_mutex_init(lock)
#define mutex_lock(lock)               kshim_mutex_lock(lock, #lock)
#define mutex_trylock(lock)            kshim_mutex_trylock(lock, #lock)
#define mutex_lock_interruptible(lock) (mutex_lock(lock), 0)
#define mutex_unlock(lock)             kshim_mutex_unlock(lock)
#define mutex_destroy(lock)            ((void)(lock))

/* What these call; what names the lock for the checker. */
void kshim_mutex_init(struct mutex *lock);
void kshim_mutex_lock(struct mutex *lock, const char *what);
int kshim_mutex_trylock(struct mutex *lock, const char *what); /* 1: it is held now */
void kshim_mutex_unlock(struct mutex *lock);
