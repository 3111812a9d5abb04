// SPDX-License-Identifier: BSD-3-Clause
/*
 * <weft/share.h> between two processes: what one exports the other maps, and both see what either
 * writes; closing, revoking, the death of either side, forks, and bad arguments.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/weft/share.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/share_peer.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/weftd_from_outside.h"

enum { PAGE = 4096, PAGES = 40, LEN = PAGES * PAGE, RW = PROT_READ | PROT_WRITE };
enum { RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static struct ibv_context *ctx;

static uint8_t *fresh(size_t len)
{
	uint8_t *p = mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* The memory of an export that ended goes back with the next call. */
static int64_t bytes_shared(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t *p = fresh(PAGE);

	ibv_dereg_mr(ibv_reg_mr(pd, p, PAGE, IBV_ACCESS_LOCAL_WRITE));
	ibv_dealloc_pd(pd);
	munmap(p, PAGE);
	return share_count("bytes");
}

static bool all_back(void *arg)
{
	(void)arg;
	return bytes_shared() == 0 && share_count("exports") == 0;
}

/* weftd tells of a death a little later. */
static bool soon(bool (*cond)(void *arg))
{
	for (int i = 0; i < 2000; i++) {
		if (cond(NULL))
			return true;
		usleep(10000);
	}
	return false;
}

/* ---- the parts ---- */

static void both_ways(const struct vp_child *c)
{
	uint8_t *p = fresh(LEN), *q, *r;
	struct weft_share_handle h;
	struct weft_share *s;

	check_case("both ways");
	memset(p, 1, LEN);
	s = weft_share_export(ctx, p, LEN, RW, &h);
	CHECK(s != NULL);
	CHECK_EQ(share_count("exports"), 1);
	CHECK(pattern_all(p, LEN, 1));
	q = share_peer_maps(c, &h, 0, LEN);
	CHECK(share_peer_sees(c, q, LEN, 1));
	share_peer_fills(c, q, LEN, 2);
	CHECK(pattern_all(p, LEN, 2));
	memset(p, 3, LEN);
	CHECK(share_peer_sees(c, q, LEN, 3));

	check_case("a part, a second time");
	r = share_peer_maps(c, &h, 4 * PAGE, 2 * PAGE);
	share_peer_fills(c, r, 2 * PAGE, 4);
	CHECK(pattern_all(p + 4 * PAGE, 2 * PAGE, 4));
	CHECK(pattern_all(p, 4 * PAGE, 3));
	CHECK_EQ(share_peer_unmaps(c, r, 2 * PAGE), 0);
	CHECK_EQ(share_peer_unmaps(c, r, 2 * PAGE), EINVAL);

	check_case("a hole in a mapping");
	CHECK_EQ(share_peer_unmaps(c, q + PAGE, PAGE), 0);
	CHECK(share_peer_sees(c, q, PAGE, 3));
	share_peer_fills(c, q + 2 * PAGE, PAGE, 5);
	CHECK(pattern_all(p + 2 * PAGE, PAGE, 5));

	check_case("closed, while it is mapped");
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(share_peer_error(c, &h, 0, PAGE, PROT_READ), ESTALE);
	share_peer_fills(c, q + 3 * PAGE, PAGE, 6);
	CHECK(pattern_all(p + 3 * PAGE, PAGE, 6));
	CHECK_EQ(bytes_shared(), LEN);
	CHECK_EQ(share_peer_unmaps(c, q, LEN), 0);
	CHECK_EQ(bytes_shared(), 0);
	CHECK_EQ(share_count("exports"), 0);
	CHECK(pattern_all(p + 3 * PAGE, PAGE, 6));
	munmap(p, LEN);
}

static void owner_frees(const struct vp_child *c)
{
	uint8_t *p = fresh(LEN), *q;
	struct weft_share_handle h, again;
	struct weft_share *s, *t;

	check_case("the owner frees the memory");
	memset(p, 1, LEN);
	s = weft_share_export(ctx, p, LEN, RW, &h);
	q = share_peer_maps(c, &h, 0, LEN);
	munmap(p, LEN);
	CHECK(share_peer_sees(c, q, LEN, 1));
	CHECK(mmap(p, LEN, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
	CHECK(pattern_all(p, LEN, 0));
	t = weft_share_export(ctx, p, LEN, RW, &again);
	CHECK(!t && errno == EBUSY);
	share_peer_fills(c, q, LEN, 9);
	CHECK(pattern_all(p, LEN, 0));
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(share_peer_unmaps(c, q, LEN), 0);
	t = weft_share_export(ctx, p, LEN, RW, &again);
	CHECK(t != NULL);
	CHECK(pattern_all(p, LEN, 0));
	CHECK_EQ(weft_share_close(t), 0);
	munmap(p, LEN);
}

static void revoked(const struct vp_child *c)
{
	uint8_t *p = fresh(LEN), *q;
	struct weft_share_handle h, again;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;
	struct weft_share *s;

	check_case("revoked");
	memset(p, 1, LEN);
	mr = ibv_reg_mr(pd, p, LEN, RIGHTS);
	s = weft_share_export(ctx, p, LEN, RW, &h);
	q = share_peer_maps(c, &h, 0, LEN);
	share_peer_fills(c, q, LEN, 2);
	CHECK_EQ(weft_share_revoke(s), 0);
	CHECK(pattern_all(p, LEN, 2));
	CHECK_EQ(share_peer_error(c, &h, 0, PAGE, PROT_READ), ESTALE);
	share_peer_fills(c, q, LEN, 3);
	CHECK(pattern_all(p, LEN, 2));
	memset(p, 4, LEN);
	CHECK(share_peer_sees(c, q, LEN, 3));
	check_case("in quarantine");
	CHECK(!weft_share_export(ctx, p, LEN, RW, &again) && errno == EBUSY);
	CHECK_RANGE(share_count("quarantine"), 1, INT64_MAX);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(pd, p, LEN, RIGHTS); /* copied */
	CHECK_EQ(share_count("regions"), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(share_peer_unmaps(c, q, LEN), 0);
	s = weft_share_export(ctx, p, LEN, RW, &again);
	CHECK(s != NULL);
	CHECK(pattern_all(p, LEN, 4));
	q = share_peer_maps(c, &again, 0, LEN);
	CHECK(share_peer_sees(c, q, LEN, 4));
	CHECK_EQ(share_peer_unmaps(c, q, LEN), 0);
	CHECK_EQ(weft_share_revoke(s), 0);
	CHECK_EQ(bytes_shared(), 0);
	ibv_dealloc_pd(pd);
	munmap(p, LEN);
}

static void placed(const struct vp_child *c)
{
	uint8_t *p = fresh(LEN), *hole;
	struct weft_share_handle h;
	struct weft_share *s = weft_share_export(ctx, p, LEN, RW, &h);
	int error;

	check_case("at a place");
	/* Where nothing is. */
	hole = share_peer_maps(c, &h, 0, LEN);
	CHECK_EQ(share_peer_unmaps(c, hole, LEN), 0);
	CHECK(share_peer_places(c, &h, 0, LEN, WEFT_SHARE_NOREPLACE, hole, &error) == hole);
	CHECK(!share_peer_places(c, &h, 0, LEN, WEFT_SHARE_NOREPLACE, hole, &error));
	CHECK_EQ(error, EEXIST);
	CHECK(!share_peer_places(
		c, &h, 0, LEN, WEFT_SHARE_NOREPLACE | WEFT_SHARE_FIXED, hole, &error));
	CHECK_EQ(error, EEXIST);
	CHECK(share_peer_places(c, &h, PAGE, PAGE, WEFT_SHARE_FIXED, hole, &error) == hole);
	p[PAGE] = 7;
	CHECK(share_peer_sees(c, hole, 1, 7));
	CHECK_EQ(share_peer_unmaps(c, hole, LEN), 0);
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(bytes_shared(), 0);
	munmap(p, LEN);
}

static void own_mapping(void)
{
	uint8_t *p = fresh(LEN), *q;
	struct weft_share_handle h;
	struct weft_share *s = weft_share_export(ctx, p, LEN, RW, &h);

	check_case("one's own");
	q = weft_share_map(ctx, &h, PAGE, PAGE, RW, 0, NULL);
	CHECK(q != NULL);
	p[PAGE + 5] = 6;
	CHECK_EQ(q[5], 6);
	q[6] = 8;
	CHECK_EQ(p[PAGE + 6], 8);
	munmap(p + PAGE, PAGE);
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(bytes_shared(), LEN);
	CHECK_EQ(q[5], 6);
	q[5] = 1;
	CHECK_EQ(weft_share_unmap(q, PAGE), 0);
	CHECK_EQ(bytes_shared(), 0);
	munmap(p, LEN);
}

static void wrong(const struct vp_child *c)
{
	uint8_t *p = fresh(LEN), *shared, here[2 * PAGE];
	struct weft_share_handle h, bad = {.raw = {1}};
	struct weft_share *s;
	int fd;

	check_case("bad arguments");
	CHECK(!weft_share_export(ctx, p + 1, PAGE, RW, &h) && errno == EINVAL);
	CHECK(!weft_share_export(ctx, p, 100, RW, &h) && errno == EINVAL);
	CHECK(!weft_share_export(ctx, p, 0, RW, &h) && errno == EINVAL);
	CHECK(!weft_share_export(ctx, p, -(size_t)PAGE, RW, &h) && errno == EINVAL);
	CHECK(!weft_share_export(ctx, p, PAGE, PROT_WRITE, &h) && errno == EINVAL);
	CHECK(!weft_share_export(NULL, p, PAGE, RW, &h) && errno == EINVAL);
	munmap(p + LEN - PAGE, PAGE);
	CHECK(!weft_share_export(ctx, p, LEN, RW, &h) && errno == EFAULT);
	mprotect(p + PAGE, PAGE, PROT_NONE);
	CHECK(!weft_share_export(ctx, p + PAGE, PAGE, RW, &h) && errno == EFAULT);
	mprotect(p + PAGE, PAGE, RW);
	CHECK_EQ(weft_share_unmap(p, PAGE), EINVAL);
	CHECK_EQ(weft_share_close(NULL), EINVAL);
	CHECK_EQ(weft_share_revoke(NULL), EINVAL);

	check_case("memory that cannot be shared");
	shared = mmap(NULL, LEN, RW | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(!weft_share_export(ctx, shared, LEN, RW, &h) && errno == EOPNOTSUPP);
	munmap(shared, LEN);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	shared = mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0);
	close(fd);
	CHECK(!weft_share_export(ctx, shared, PAGE, RW, &h) && errno == EOPNOTSUPP);
	munmap(shared, PAGE);
	CHECK(!weft_share_export(
		      ctx, (void *)(((uintptr_t)here + PAGE) & -(uintptr_t)PAGE), PAGE, RW, &h) &&
		errno == EOPNOTSUPP);

	check_case("what a peer may not");
	s = weft_share_export(ctx, p, 4 * PAGE, PROT_READ, &h);
	CHECK(s != NULL);
	CHECK_EQ(share_peer_error(c, &h, 0, PAGE, RW), EACCES);
	CHECK_EQ(share_peer_error(c, &h, 0, 5 * PAGE, PROT_READ), ENXIO);
	CHECK_EQ(share_peer_error(c, &h, 4 * PAGE, PAGE, PROT_READ), ENXIO);
	CHECK_EQ(share_peer_error(c, &h, UINT64_MAX - PAGE + 1, PAGE, PROT_READ), EINVAL);
	CHECK_EQ(share_peer_error(c, &h, 1, PAGE, PROT_READ), EINVAL);
	CHECK_EQ(share_peer_error(c, &h, 0, 0, PROT_READ), EINVAL);
	CHECK_EQ(share_peer_error(c, &h, 0, PAGE, PROT_EXEC), EINVAL);
	CHECK_EQ(share_peer_error(c, &bad, 0, PAGE, PROT_READ), EINVAL);
	for (unsigned i = 0; i < sizeof h.raw; i++) { /* whatever somebody makes of a handle */
		bool no_handle = i < 4 || (i >= 12 && i < 16); /* the magic, what must be 0 */

		bad = h;
		bad.raw[i] ^= 0x5a;
		CHECK_EQ(
			share_peer_error(c, &bad, 0, PAGE, PROT_READ), no_handle ? EINVAL : ESTALE);
	}
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(share_peer_error(c, &h, 0, PAGE, PROT_READ), ESTALE);
	munmap(p, LEN);
}

static void forked(const struct vp_child *c)
{
	uint8_t *p = fresh(LEN), *q;
	struct weft_share_handle h;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;
	struct weft_share *s;
	pid_t pid;
	int st;

	check_case("fork of the owner");
	memset(p, 1, LEN);
	mr = ibv_reg_mr(pd, p + PAGE, LEN - PAGE, RIGHTS);
	s = weft_share_export(ctx, p, LEN / 2, RW, &h);
	q = share_peer_maps(c, &h, 0, LEN / 2);
	pid = fork();
	if (!pid) {
		memset(p, 2, LEN);
		_exit(!pattern_all(p, LEN, 2));
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st) && WEXITSTATUS(st) == 0);
	CHECK(pattern_all(p, LEN, 1));
	CHECK(share_peer_sees(c, q, LEN / 2, 1));
	share_peer_fills(c, q, LEN / 2, 3);
	CHECK(pattern_all(p, LEN / 2, 3));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	share_peer_fills(c, q, LEN / 2, 4);
	CHECK(pattern_all(p, LEN / 2, 4));
	CHECK_EQ(share_peer_unmaps(c, q, LEN / 2), 0);
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(bytes_shared(), 0);
	ibv_dealloc_pd(pd);
	munmap(p, LEN);
}

/* By a thread whose stack ends where that memory begins. */
static void *fork_and_write(void *arg)
{
	uint8_t *p = arg;
	pid_t pid = fork();
	int st;

	if (!pid) {
		memset(p, 2, LEN);
		_exit(!pattern_all(p, LEN, 2));
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st) && WEXITSTATUS(st) == 0);
	CHECK(pattern_all(p, LEN, 1));
	return NULL;
}

static void forked_below(const struct vp_child *c)
{
	enum { STACK = 256 * PAGE };
	uint8_t *stack = fresh(STACK + LEN), *p = stack + STACK, *q;
	struct weft_share_handle h;
	struct weft_share *s;
	pthread_attr_t attr;
	pthread_t thread;

	check_case("fork by a thread next to what is shared");
	memset(p, 1, LEN);
	s = weft_share_export(ctx, p, LEN, RW, &h);
	q = share_peer_maps(c, &h, 0, LEN);
	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstack(&attr, stack, STACK), 0);
	CHECK_EQ(pthread_create(&thread, &attr, fork_and_write, p), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	CHECK_EQ(share_peer_unmaps(c, q, LEN), 0);
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(bytes_shared(), 0);
	munmap(stack, STACK + LEN);
}

static void *write_on(void *arg)
{
	uint64_t *words = arg, *stop = words + LEN / sizeof *words - 1;
	uint64_t n = 0;

	/* Words that nobody else writes; the last one says when to end. */
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		n++;
		for (size_t i = 0; i < LEN / sizeof *words - 1; i += 64)
			words[i] += 1;
	}
	return (void *)(uintptr_t)n;
}

/* Exported and closed while a thread of the owner writes: no write is lost. */
static void beside_threads(const struct vp_child *c)
{
	uint64_t *p = (uint64_t *)fresh(LEN), lost = 0;
	struct weft_share_handle h;
	pthread_t t;
	void *n;

	check_case("beside a thread that writes");
	if (pthread_create(&t, NULL, write_on, p))
		die("pthread_create");
	for (int i = 0; i < 100; i++) {
		struct weft_share *s = weft_share_export(ctx, p, LEN, RW, &h);
		uint8_t *q;

		CHECK(s != NULL);
		q = share_peer_maps(c, &h, 0, LEN);
		/* Words that the thread does not write. */
		share_peer_fills(c, q + 8 + 512 * (i % 8), 8, i + 1);
		CHECK(pattern_all((uint8_t *)p + 8 + 512 * (i % 8), 8, i + 1));
		CHECK_EQ(i % 2 ? weft_share_revoke(s) : weft_share_close(s), 0);
		CHECK_EQ(share_peer_unmaps(c, q, LEN), 0);
	}
	__atomic_store_n(&p[LEN / sizeof *p - 1], 1, __ATOMIC_RELAXED);
	pthread_join(t, &n);
	for (size_t i = 0; i < LEN / sizeof *p - 1; i += 64)
		lost += p[i] != (uintptr_t)n;
	CHECK_EQ(lost, 0);
	CHECK_EQ(bytes_shared(), 0);
	munmap(p, LEN);
}

static void deaths(void)
{
	struct vp_child c = share_peer();
	uint8_t *p = fresh(LEN), *q;
	struct weft_share_handle h;
	struct weft_share *s = weft_share_export(ctx, p, LEN, RW, &h);

	check_case("the peer is killed");
	q = share_peer_maps(&c, &h, 0, LEN);
	share_peer_fills(&c, q, LEN, 4);
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(bytes_shared(), LEN);
	vp_kill_join(&c);
	CHECK(soon(all_back));
	CHECK(pattern_all(p, LEN, 4));
	munmap(p, LEN);
}

static void owner_process(int fd, void *arg)
{
	uint8_t *p = fresh(LEN);
	struct weft_share_handle h;

	(void)arg;
	memset(p, 5, LEN);
	if (!weft_share_export(vp_open(), p, LEN, RW, &h))
		die("export");
	if (write(fd, &h, sizeof h) != sizeof h)
		die("write");
	vp_hear(fd);
}

static bool is_stale(void *arg)
{
	static struct weft_share_handle h;
	void *q;

	if (arg)
		h = *(struct weft_share_handle *)arg;
	q = weft_share_map(ctx, &h, 0, PAGE, PROT_READ, 0, NULL);
	if (q)
		weft_share_unmap(q, PAGE);
	return !q && errno == ESTALE;
}

static void owner_dies(void)
{
	struct vp_child c = vp_fork(owner_process, NULL);
	struct weft_share_handle h;
	uint8_t *q;

	check_case("the owner is killed");
	if (read(c.fd, &h, sizeof h) != sizeof h)
		die("read");
	q = weft_share_map(ctx, &h, 0, LEN, RW, 0, NULL);
	CHECK(q && pattern_all(q, LEN, 5));
	CHECK(!is_stale(&h));
	vp_kill_join(&c);
	memset(q, 6, LEN);
	CHECK(pattern_all(q, LEN, 6));
	CHECK(soon(is_stale));
	CHECK_EQ(weft_share_unmap(q, LEN), 0);
}

static void without_weftd(int fd, void *arg)
{
	uint8_t *p = fresh(LEN);
	struct weft_share_handle h;
	struct vp_child c;

	(void)fd;
	(void)arg;
	check_case("weftd does not run");
	ctx = vp_open();
	setenv("WEFT_AUTOSTART", "0", 1);
	c = share_peer();
	CHECK(weft_share_export(ctx, p, LEN, RW, &h) != NULL);
	CHECK_EQ(share_peer_unmaps(&c, NULL, PAGE), EINVAL); /* so it has opened the device */
	weftd_down();
	CHECK_EQ(share_peer_error(&c, &h, 0, PAGE, PROT_READ), ENOTCONN);
	share_peer_ends(&c);
	munmap(p, LEN);
}

static void owner(int fd, void *arg)
{
	struct vp_child c = share_peer();

	(void)fd;
	(void)arg;
	ctx = vp_open();
	both_ways(&c);
	owner_frees(&c);
	revoked(&c);
	placed(&c);
	own_mapping();
	wrong(&c);
	forked(&c);
	forked_below(&c);
	beside_threads(&c);
	share_peer_ends(&c);
	deaths();
	owner_dies();
}

static void never(int fd, void *arg)
{
	struct weft_share_handle h;
	uint8_t *p = fresh(LEN);

	(void)fd;
	(void)arg;
	check_case("WEFT_SHARE=never");
	CHECK(!weft_share_export(vp_open(), p, LEN, RW, &h) && errno == EOPNOTSUPP);
}

int main(void)
{
	static const char *const modes[] = {"auto", "always"};
	struct vp_child c;

	if (!weft_share_there()) {
		printf("this libibverbs has no <weft/share.h>\n");
		return 1;
	}
	for (int i = 0; i < 2; i++) {
		setenv("WEFT_SHARE", modes[i], 1);
		c = vp_fork(owner, NULL);
		vp_join(&c);
	}
	c = vp_fork(without_weftd, NULL);
	vp_join(&c);
	setenv("WEFT_SHARE", "never", 1);
	c = vp_fork(never, NULL);
	vp_join(&c);
	return check_result();
}
