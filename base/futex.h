/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping on a word that several processes map.  The word tells, a wake-up is only a hint. */
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Sleeps while *word is value, at most ns (0: for ever).  Returns early at will; keeps errno. */
static inline void futex_wait_shared(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	const struct timespec ts = {.tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC};
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAIT, value, ns ? &ts : NULL, NULL, 0);
	errno = saved;
}

/* Wakes all that sleep on word; never blocks, keeps errno. */
static inline void futex_wake_shared(_Atomic uint32_t *word)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0);
	errno = saved;
}
