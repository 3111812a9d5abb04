// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/locks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { HELD = 16, KINDS = 32, NAME = 64 };

struct held {
	const void *lock;
	const char *name;
};

static __thread struct held held[HELD];
static __thread unsigned held_now;
static __thread bool in_function;

static pthread_mutex_t kinds_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kind {
	char name[NAME];
	bool taken, over;
} kinds[KINDS];

static void mark(const char *name, bool over)
{
	unsigned i = 0;

	pthread_mutex_lock(&kinds_lock);
	while (i < KINDS && kinds[i].name[0] && strncmp(kinds[i].name, name, NAME - 1) != 0)
		i++;
	if (i < KINDS) {
		snprintf(kinds[i].name, NAME, "%s", name);
		kinds[i].over |= over;
		kinds[i].taken |= !over;
	}
	pthread_mutex_unlock(&kinds_lock);
}

static void take(const void *lock, const char *name)
{
	if (held_now < HELD)
		held[held_now++] = (struct held){lock, name};
	if (in_function)
		mark(name, false);
}

static void drop(const void *lock)
{
	for (unsigned i = held_now; i--;) {
		if (held[i].lock != lock)
			continue;
		held[i] = held[--held_now];
		return;
	}
}

void locks_use(const void *lock, const char *name, enum kshim_lock_use use)
{
	if (use == KSHIM_LOCK_TAKEN)
		take(lock, name);
	else if (use == KSHIM_LOCK_DROPPED)
		drop(lock);
}

void locks_in_function(bool in)
{
	in_function = in;
}

void locks_over_callback(void)
{
	for (unsigned i = 0; i < held_now; i++)
		mark(held[i].name, true);
}

const char *locks_both(void)
{
	for (unsigned i = 0; i < KINDS; i++)
		if (kinds[i].taken && kinds[i].over)
			return kinds[i].name;
	return NULL;
}
