// SPDX-License-Identifier: BSD-3-Clause
/*
 * A process forks while other threads of it get to know processes and forget them again: its
 * children live, and what is their parent's is closed in them.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { PEERS = 3, FORKS = 200 };

static struct vp_addr to[PEERS];
static struct ibv_context *ctx;
static _Atomic bool stop;

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.len = 4096;
	return o;
}

/* Is there, until it is told to end. */
static void stay(int fd, void *arg)
{
	struct vp_opts o = options();
	struct vp_addr mine;
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	mine = vp_addr(&e);
	vp_swap(fd, &mine);
	vp_hear(fd);
	vp_free(&e);
}

/* The last queue pair that leads to a process lets go of it. */
static void *come_and_go(void *arg)
{
	const struct vp_addr *peer = arg;
	struct vp_opts o = options();

	while (!atomic_load(&stop)) {
		struct vp_end e;

		vp_make(&e, ctx, &o);
		CHECK_EQ(vp_init(&e), 0);
		CHECK_EQ(vp_rtr(&e, peer), 0);
		vp_free(&e);
	}
	return NULL;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Of a child of ours. */
static int fds_of_child(void)
{
	pid_t pid = fork();
	int st;

	if (!pid)
		_exit(count_fds());
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
	return WEXITSTATUS(st);
}

static void descriptors(void)
{
	struct vp_opts o = options();
	struct vp_end e[PEERS];
	int before, own;

	check_case("descriptors");
	for (int i = 0; i < PEERS; i++)
		vp_make(&e[i], ctx, &o);
	before = fds_of_child();
	own = count_fds();
	for (int i = 0; i < PEERS; i++) {
		CHECK_EQ(vp_init(&e[i]), 0);
		CHECK_EQ(vp_rtr(&e[i], &to[i]), 0);
	}
	CHECK(count_fds() >= own + PEERS);
	CHECK_EQ(fds_of_child(), before);
	for (int i = 0; i < PEERS; i++)
		vp_free(&e[i]);
}

static void forks(void)
{
	pthread_t t[PEERS];

	check_case("forks");
	for (int i = 0; i < PEERS; i++)
		pthread_create(&t[i], NULL, come_and_go, &to[i]);
	for (int i = 0; i < FORKS && !check_failures(); i++) {
		pid_t pid = fork();
		int st;

		if (!pid)
			_exit(0);
		CHECK(waitpid(pid, &st, 0) == pid);
		CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < PEERS; i++)
		pthread_join(t[i], NULL);
}

int main(void)
{
	const struct vp_addr none = {.qpn = 0};
	struct vp_child c[PEERS];

	setenv("WEFT_SHARE", "never", 1);
	for (int i = 0; i < PEERS; i++) {
		c[i] = vp_fork(stay, NULL);
		to[i] = vp_swap(c[i].fd, &none);
	}
	ctx = vp_open();
	descriptors();
	forks();
	for (int i = 0; i < PEERS; i++) {
		vp_tell(c[i].fd, 0);
		vp_join(&c[i]);
	}
	CHECK_EQ(ibv_close_device(ctx), 0);
	return check_result();
}
