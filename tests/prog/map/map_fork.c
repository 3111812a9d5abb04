// SPDX-License-Identifier: BSD-3-Clause
/*
 * A forked child has its own copy of memory that is mapped by peers, as it was at the fork: what
 * it writes the parent does not see, and what peers write it does not see.  With one thread and
 * with several, which go on allocating meanwhile.  So too if the child is slow to copy what stayed
 * in the arena, and the parent takes that back.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/weft/share.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

enum { PAGE = 4096, SIZE = 64 * PAGE, FORKS = 60, BLOCKS = 50, SLOW_MS = 300 };

static _Atomic bool stop;

/*
 * gcc 12's address sanitizer forks with its allocator's locks as other threads hold them, so that
 * a child may wait for ever in malloc(); there the thread lets go of the allocator for a fork.
 */
#ifdef __SANITIZE_ADDRESS__
enum { FORK_BETWEEN_CALLS = true };
#else
enum { FORK_BETWEEN_CALLS = false };
#endif
static pthread_mutex_t allocating = PTHREAD_MUTEX_INITIALIZER;

static void allocator_enter(void)
{
	if (FORK_BETWEEN_CALLS)
		pthread_mutex_lock(&allocating);
}

static void allocator_leave(void)
{
	if (FORK_BETWEEN_CALLS)
		pthread_mutex_unlock(&allocating);
}

/* A peer that writes all over the memory, until it is told to end. */
static void peer(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr to;
	struct vp_end e;
	struct ibv_wc wc;
	uint64_t n = 0;

	(void)arg;
	o.len = SIZE;
	vp_make(&e, vp_open(), &o);
	to = vp_meet(&e, fd);
	while (vp_hear(fd)) {
		for (int i = 0; i < 20; i++) {
			memset(e.buf, n++, SIZE);
			CHECK_EQ(vp_post_send(&e, n, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, SIZE,
					 &to, 0),
				0);
			vp_want(e.scq, &wc, IBV_WC_SUCCESS, n);
		}
		vp_tell(fd, 0);
	}
	vp_free(&e);
}

static void *allocate(void *arg)
{
	void *block[BLOCKS] = {0};

	while (!atomic_load(&stop))
		for (int i = 0; i < BLOCKS; i++) {
			allocator_enter();
			free(block[i]);
			block[i] = malloc(1 + i * 97);
			allocator_leave();
			memset(block[i], i, 1 + i * 97);
		}
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	return arg;
}

/* In the child: 0 if all is as it must be. */
static int child(uint8_t *buf, uint8_t *heap)
{
	void *block[BLOCKS];

	/* The peer goes on writing; the first half of our copy must not move. */
	uint8_t *copy = malloc(SIZE);

	memcpy(copy, buf, SIZE);
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(1 + i * 333);
		memset(block[i], 0xee, 1 + i * 333);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	usleep(2000);
	if (memcmp(copy, buf, SIZE))
		return 1;
	if (!pattern_all(heap, 1000, 7))
		return 2;
	memset(buf, 0xc1, SIZE);
	memset(heap, 0xc1, 1000);
	if (madvise(buf, SIZE, MADV_DONTNEED) || !pattern_all(buf, SIZE, 0))
		return 3;
	usleep(2000);
	return pattern_all(buf, SIZE, 0) ? 0 : 4;
}

static void part(int fd, void *arg)
{
	bool threads = *(bool *)arg;
	struct vp_child c = vp_fork(peer, NULL);
	struct vp_opts o = vp_defaults();
	struct ibv_mr *heap_mr;
	int64_t regions, want;
	uint8_t *heap;
	struct vp_end e;
	pthread_t t;

	(void)fd;
	check_case("fork with %s", threads ? "threads" : "one thread");
	o.len = SIZE;
	vp_make(&e, vp_open(), &o);
	heap = malloc(1000);
	memset(heap, 7, 1000);
	heap_mr = ibv_reg_mr(e.pd, heap, 1000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	vp_meet(&e, c.fd);
	if (threads && pthread_create(&t, NULL, allocate, NULL))
		die("pthread_create");
	for (int i = 0; i < FORKS; i++) {
		pid_t pid;
		int st;

		vp_tell(c.fd, 1);
		allocator_enter();
		pid = fork();
		if (!pid)
			_exit(child(e.buf, heap));
		allocator_leave();
		CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
		CHECK_EQ(WEXITSTATUS(st), 0);
		CHECK(pattern_all(heap, 1000, 7));
		vp_hear(c.fd);
		CHECK(pattern_all(e.buf, SIZE, 20 * i + 19));
	}
	/*
	 * A part of a page is converted only if system calls into it can be held off.  Where the
	 * peer got no CPU in the middle of a write, at a fork, a region is copied from then on.
	 */
	want = threads && !can_hold_off() ? 1 : 2;
	regions = share_count("regions");
	CHECK_RANGE(regions, want - share_count("peer_stopped"), want);
	vp_tell(c.fd, 0);
	atomic_store(&stop, true);
	if (threads)
		pthread_join(t, NULL);
	vp_join(&c);
	CHECK_EQ(ibv_dereg_mr(heap_mr), 0);
	free(heap);
	vp_free(&e);
}

/* ---- a child that is slow to copy ---- */

static int taken_back[2] = {-1, -1}; /* a pipe: the parent says that it has taken its pages back */

/* Runs in a child before the library's handler does, for it was registered before that one. */
static void wait_for_parent(void)
{
	struct pollfd p = {.fd = taken_back[0], .events = POLLIN};

	if (p.fd >= 0)
		poll(&p, 1, SLOW_MS);
}

static void slow_child(int fd, void *arg)
{
	struct ibv_context *ctx;
	struct weft_share_handle h;
	struct weft_share *s;
	uint8_t *p;
	pid_t pid;
	int st;

	(void)fd;
	(void)arg;
	check_case("a child that is slow to copy");
	pthread_atfork(NULL, NULL, wait_for_parent);
	ctx = vp_open();
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 7, SIZE);
	s = weft_share_export(ctx, p, SIZE, PROT_READ | PROT_WRITE, &h);
	CHECK(s != NULL);
	CHECK_EQ(pipe(taken_back), 0);
	pid = fork();
	if (!pid)
		_exit(!pattern_all(p, SIZE, 7));
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(write(taken_back[1], "", 1), 1);
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
	CHECK_EQ(WEXITSTATUS(st), 0);
	CHECK(pattern_all(p, SIZE, 7));
	CHECK_EQ(ibv_close_device(ctx), 0);
}

int main(void)
{
	bool threads[] = {false, true};
	struct vp_child slow;

	setenv("WEFT_SHARE", "always", 1);
	slow = vp_fork(slow_child, NULL);
	vp_join(&slow);
	for (int i = 0; i < 2; i++) {
		struct vp_child c = vp_fork(part, &threads[i]);

		vp_join(&c);
	}
	return check_result();
}
