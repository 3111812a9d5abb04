// SPDX-License-Identifier: BSD-3-Clause
/* weftd takes in no process whose death it would not see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "daemon/process.h"

static int refusal; /* what epoll answers; 0: as always */

int __real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (!refusal || op != EPOLL_CTL_ADD)
		return __real_epoll_ctl(epfd, op, fd, event);
	errno = refusal;
	return -1;
}

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* With what it took in, to the end. */
static struct server *server_new(void)
{
	static struct server servers[5];
	static unsigned n;
	struct server *s = &servers[n++];

	s->epfd = epoll_create1(EPOLL_CLOEXEC);
	s->epoch = 1;
	return s;
}

static void created(void **state)
{
	struct server *s = server_new();
	int pidfd = pidfd_open(getpid(), 0), before = open_fds();
	struct process *p;

	(void)state;
	refusal = ENOSPC;
	assert_int_equal(process_create(s, getpid(), pidfd, &p), -ENOSPC);
	assert_int_equal(s->n_processes, 0);
	assert_null(s->processes);
	assert_int_equal(open_fds(), before);
	refusal = 0;
	assert_int_equal(process_create(s, getpid(), pidfd, &p), 0);
	assert_ptr_equal(process_find(s, p->id), p);
	assert_int_equal(s->n_processes, 1);
}

static int adopt(struct server *s, const struct process *p, int pidfd, struct process **again)
{
	return process_adopt(s, p->id, getpid(), pidfd, p->seg_fd, p->async_fd, p->arena_fd, again);
}

/* Its descriptors are still the caller's then. */
static void adopted(void **state)
{
	struct server *old = server_new(), *s = server_new();
	int pidfd = pidfd_open(getpid(), 0), before;
	struct process *p, *again;

	(void)state;
	assert_int_equal(process_create(old, getpid(), -1, &p), 0);
	before = open_fds();
	refusal = ENOMEM;
	assert_int_equal(adopt(s, p, pidfd, &again), -ENOMEM);
	assert_null(process_find(s, p->id));
	assert_int_equal(open_fds(), before);
	refusal = 0;
	assert_int_equal(adopt(s, p, pidfd, &again), 0);
	assert_ptr_equal(process_find(s, p->id), again);
}

/* Of a process that came with another version of Weft, nothing is kept. */
static void refused_of_another_version(void **state)
{
	struct server *old = server_new(), *s = server_new();
	int pidfd = pidfd_open(getpid(), 0), before;
	struct process *p, *again;

	(void)state;
	assert_int_equal(process_create(old, getpid(), -1, &p), 0);
	before = open_fds();
	p->seg->hdr.version++;
	assert_int_equal(adopt(s, p, pidfd, &again), -EPROTO);
	assert_null(process_find(s, p->id));
	assert_int_equal(s->n_processes, 0);
	assert_int_equal(open_fds(), before);
	p->seg->hdr.version--;
	assert_int_equal(adopt(s, p, pidfd, &again), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(created), cmocka_unit_test(adopted),
		cmocka_unit_test(refused_of_another_version)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
