/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks that many may hold for reading. */
#pragma once

#include <linux/types.h>
#include <pthread.h>

struct rw_semaphore {
	pthread_rwlock_t l;
};

#define DECLARE_RWSEM(name) struct rw_semaphore name = {PTHREAD_RWLOCK_INITIALIZER}
#define init_rwsem(sem)     ((void)pthread_rwlock_init(&(sem)->l, NULL))
#define down_read(sem)      ((void)pthread_rwlock_rdlock(&(sem)->l))
#define down_write(sem)     ((void)pthread_rwlock_wrlock(&(sem)->l))
#define up_read(sem)        ((void)pthread_rwlock_unlock(&(sem)->l))
#define up_write(sem)       ((void)pthread_rwlock_unlock(&(sem)->l))
