// SPDX-License-Identifier: BSD-3-Clause
#include "face/sleeper.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/eventfd.h>

#include "base/lock.h"
#include "base/own_fd.h"

static _Thread_local struct own_fd mine __attribute__((tls_model("initial-exec"))) = OWN_FD_NONE;
static pthread_key_t key; /* for its destructor alone */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

static void thread_ends(void *arg)
{
	own_fd_close(arg);
}

/* The parent's thread waits with the same eventfd. */
static void forked_child(void)
{
	own_fd_close(&mine);
}

static void set_up(void)
{
	have_key = pthread_key_create(&key, thread_ends) == 0;
	pthread_atfork(NULL, NULL, forked_child);
}

/* Nothing is called in a library that is there no more. */
__attribute__((destructor)) static void unload(void)
{
	if (have_key)
		pthread_key_delete(key);
}

int sleeper_fd(void)
{
	if (single_threaded())
		return -1;
	if (own_fd_ok(&mine))
		return mine.fd;
	pthread_once(&once, set_up);
	mine = own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (mine.fd >= 0)
		pthread_setspecific(key, &mine);
	return mine.fd;
}

void sleeper_drain(int fd)
{
	eventfd_t n;

	if (fd >= 0)
		(void)eventfd_read(fd, &n);
}

void sleeper_enter(struct sleeper **list, struct sleeper *me)
{
	me->next = *list;
	me->link = list;
	if (me->next)
		me->next->link = &me->next;
	*list = me;
}

void sleeper_leave(struct sleeper *me)
{
	*me->link = me->next;
	if (me->next)
		me->next->link = me->link;
}

void sleepers_wake(const struct sleeper *list)
{
	int own = list ? mine.fd : -1;

	for (const struct sleeper *t = list; t; t = t->next)
		if (t->fd >= 0 && t->fd != own)
			(void)eventfd_write(t->fd, 1);
}
