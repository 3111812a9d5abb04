// SPDX-License-Identifier: BSD-3-Clause
/*
 * What is not mapped, and the name under which weft status counts it.  Registration succeeds all
 * the same, and the memory stays what it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

enum {
	PAGE = 4096,
	LEN = 16 * PAGE,
	LW = IBV_ACCESS_LOCAL_WRITE,
	RW = IBV_ACCESS_REMOTE_WRITE,
	RR = IBV_ACCESS_REMOTE_READ,
	RA = IBV_ACCESS_REMOTE_ATOMIC,
	RIGHTS = LW | RW | RR
};
#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static struct ibv_context *ctx;
static struct ibv_pd *pd;

static uint8_t *get(size_t len, int flags)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		flags & MAP_SHARED ? flags | MAP_ANONYMOUS : flags | MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Registers, and sees that it was refused for that reason (NULL: that it was mapped). */
static struct ibv_mr *reg(void *p, size_t len, int rights, const char *why)
{
	int64_t before = why ? share_count(why) : 0, regions = share_count("regions");
	struct ibv_mr *mr = ibv_reg_mr(pd, p, len, rights);

	if (!mr)
		die("reg_mr");
	if (why)
		CHECK_EQ(share_count(why), before + 1);
	CHECK_EQ(share_count("regions"), regions + !why);
	return mr;
}

static void try(const char *name, void *p, size_t len, int rights, const char *why)
{
	struct ibv_mr *mr;

	check_case("%s", name);
	mr = reg(p, len, rights, why);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
}

/* ---- kinds of memory ---- */

/* Old kernels do not tell which kind it is. */
static const char *shared_kind(const char *name)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	uint64_t query[13] = {sizeof query, 0x10}; /* the next area from 0 on */
	bool tells =
		fd >= 0 && !ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'f', 17, sizeof query), query);

	if (fd >= 0)
		close(fd);
	return tells ? name : "not_private";
}

/* Who waits for missing pages of it would not see those that a peer maps. */
static void watched_memfd(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	int fd = memfd_create("watched", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct uffdio_register r = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	uint8_t *p;

	if (uffd < 0 || fd < 0 || ftruncate(fd, LEN) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		die("userfaultfd, memfd");
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r.range = (struct uffdio_range){.start = (uintptr_t)p + PAGE, .len = PAGE};
	if (ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &r))
		die("userfaultfd");
	try("a memfd that a userfaultfd watches", p, LEN, RIGHTS, "userfaultfd");
	close(uffd);
	munmap(p, LEN);
	close(fd);
}

static void files(void)
{
	char path[] = "/tmp/weft-map-XXXXXX";
	int fd = mkstemp(path), id;
	uint8_t *p;

	unlink(path);
	if (fd < 0 || ftruncate(fd, LEN))
		die("file");
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	try("a shared file", p, LEN, RIGHTS, shared_kind("file"));
	munmap(p, LEN);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	try("a private file", p, LEN, RIGHTS, shared_kind("file"));
	CHECK_EQ(ftruncate(fd, 0), 0);
	try("a truncated file", p, LEN, RIGHTS, shared_kind("file"));
	munmap(p, LEN);
	close(fd);
	p = get(LEN, MAP_SHARED);
	try("shared memory", p, LEN, RIGHTS, shared_kind("shared_anonymous"));
	munmap(p, LEN);
	fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, LEN))
		die("memfd");
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	try("a memfd that can be truncated", p, LEN, RIGHTS, "memfd");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		die("F_SEAL_SHRINK");
	try("a memfd that cannot", p, LEN, RIGHTS, NULL);
	try("and an odd part of it", p + 100, 3 * PAGE, RIGHTS, NULL);
	mprotect(p + PAGE, PAGE, PROT_READ);
	try("a part of it is not writable", p, LEN, RR, "rights");
	munmap(p, LEN);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	try("a private memfd", p, LEN, RIGHTS, shared_kind("memfd"));
	munmap(p, LEN);
	p = mmap(NULL, 2 * LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	try("beyond its end", p + PAGE, LEN, RIGHTS, "not_private");
	munmap(p, 2 * LEN);
	close(fd);
	id = shmget(IPC_PRIVATE, LEN, IPC_CREAT | 0600);
	p = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	try("System V memory", p, LEN, RIGHTS, NULL);
	watched_memfd();
	shmdt(p);
}

static void attributes(void)
{
	uint8_t *p = get(LEN, 0);
	int keyed;

	CHECK_EQ(madvise(p, LEN, MADV_WIPEONFORK), 0);
	try("wipe on fork", p, LEN, RIGHTS, "attributes");
	CHECK_EQ(madvise(p, LEN, MADV_KEEPONFORK), 0);
	mprotect(p + PAGE, PAGE, PROT_READ);
	try("not writable", p, LEN, RR, "rights");
	mprotect(p, LEN, PROT_READ | PROT_WRITE | PROT_EXEC);
	try("executable", p, LEN, RIGHTS, "rights");
	mprotect(p, LEN, PROT_READ | PROT_WRITE);
	try("ordinary again", p, LEN, RIGHTS, NULL);
	keyed = pkey_alloc(0, 0);
	if (keyed > 0 && pkey_mprotect(p, LEN, PROT_READ | PROT_WRITE, keyed) == 0)
		try("a protection key", p, LEN, RIGHTS, "attributes");
	munmap(p, LEN);
	p = get(LEN, 0);
	if (syscall(SYS_mseal, p, LEN, 0) == 0)
		try("sealed", p, LEN, RIGHTS, "attributes");
	p = get(2 << 20, MAP_HUGETLB);
	if (p) {
		try("hugetlb", p, 2 << 20, RIGHTS, "hugetlb");
		munmap(p, 2 << 20);
	}
}

static void stacks(void)
{
	uint8_t mine[3 * PAGE];

	memset(mine, 3, sizeof mine);
	try("the stack", mine, sizeof mine, RIGHTS, "stack");
	CHECK(pattern_all(mine, sizeof mine, 3));
	try("errno", &errno, sizeof errno, RIGHTS, "stack");
}

static void *on_own_stack(void *arg)
{
	uint8_t mine[40 * PAGE];

	(void)arg;
	memset(mine, 4, sizeof mine);
	/* A page of it that lies far from what is in use. */
	try("a thread's stack", mine + 20 * PAGE, 100, RIGHTS, "stack");
	CHECK(pattern_all(mine, sizeof mine, 4));
	return NULL;
}

static void userfaults(void)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	uint8_t *p = get(LEN, 0);
	struct uffdio_register r = {
		.range = {.start = (uintptr_t)p, .len = LEN}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &r))
		die("userfaultfd");
	try("another userfaultfd", p, LEN, RIGHTS, "userfaultfd");
	close(fd);
	try("none any more", p, LEN, RIGHTS, NULL);
	munmap(p, LEN);
}

static void uring(void)
{
	struct io_uring_params params = {0};
	uint8_t *p = get(LEN, 0), *q = get(LEN, 0);
	struct iovec v = {.iov_base = p, .iov_len = LEN};
	int fd = syscall(SYS_io_uring_setup, 8, &params);

	if (fd >= 0 && syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS, &v, 1) == 0) {
		try("io_uring buffers", p, LEN, RIGHTS, "pinned");
		try("beside io_uring buffers", q, LEN, RIGHTS, "pinned");
	}
	if (fd >= 0)
		close(fd);
	munmap(p, LEN);
	munmap(q, LEN);
}

/* ---- rights, sizes, policy ---- */

static void rights(void)
{
	uint8_t *p = get(LEN, 0);
	struct ibv_mr *mr;

	try("no remote right", p, LEN, LW, "no_remote_right");
	try("one is enough", p, LEN, RR, NULL);
	check_case("atomics beside words");
	CHECK_EQ(share_count("unaligned_atomics"), 0);
	mr = ibv_reg_mr_iova(pd, p + 4, 1000, 0x1000, LW | RA);
	CHECK_EQ(share_count("unaligned_atomics"), 1);
	CHECK(mr && !ibv_dereg_mr(mr));
	munmap(p, LEN);
}

static void too_much(void)
{
	size_t len = 65ull << 20;
	uint8_t *p = get(len, MAP_NORESERVE), *q[5];
	struct ibv_mr *mr[5];

	try("too large", p, len, RIGHTS, "too_large");
	check_case("the budget");
	for (int i = 0; i < 5; i++) {
		q[i] = get(60 << 20, MAP_NORESERVE);
		mr[i] = reg(q[i], 60 << 20, RIGHTS, i < 4 ? NULL : "budget");
	}
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
		munmap(q[i], 60 << 20);
	}
	CHECK_EQ(share_count("bytes"), 0);
	munmap(p, len);
}

/* Regions that nobody uses do not pay for their conversion. */
static void hardly_used(void)
{
	uint8_t *p = get(LEN, 0);

	for (int i = 0; i < 20; i++)
		ibv_dereg_mr(ibv_reg_mr(pd, p, LEN, RIGHTS));
	try("hardly used", p, LEN, RIGHTS, "hardly_used");
	munmap(p, LEN);
}

static void mixed_atomics(void)
{
	uint8_t *p = get(LEN, 0);
	struct ibv_mr *first, *second;

	check_case("the same words by copies, then mapped");
	first = ibv_reg_mr_iova(pd, p + 4, 1000, 0x1000, LW | RA);
	second = reg(p, LEN, LW | RA, "mixed_atomics");
	CHECK_EQ(ibv_dereg_mr(second), 0);
	second = reg(p + 2000, 96, LW | RA, NULL); /* other words */
	CHECK_EQ(ibv_dereg_mr(second), 0);
	CHECK_EQ(ibv_dereg_mr(first), 0);
	check_case("mapped, then by copies");
	second = reg(p, LEN, LW | RA, NULL);
	memset(p, 6, LEN);
	first = ibv_reg_mr_iova(pd, p + 4, 1000, 0x1000, LW | RA);
	CHECK_EQ(share_count("regions"), 0);
	CHECK_EQ(share_count("bytes"), 0);
	CHECK(pattern_all(p, LEN, 6));
	CHECK_EQ(ibv_dereg_mr(first), 0);
	CHECK_EQ(ibv_dereg_mr(second), 0);
	munmap(p, LEN);
}

/* ---- limits of the process ---- */

static void limits(void)
{
	struct rlimit old, low = {.rlim_cur = 0};
	uint8_t *p = get(LEN, 0);
	struct ibv_mr *mr;

	getrlimit(RLIMIT_FSIZE, &old);
	low.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &low);
	memset(p, 8, LEN);
	try("ulimit -f 0", p, LEN, RIGHTS, NULL); /* no file grows */
	setrlimit(RLIMIT_FSIZE, &old);
	CHECK(pattern_all(p, LEN, 8));
	check_case("no way back under ulimit -d");
	mr = reg(p, LEN, RIGHTS, NULL);
	getrlimit(RLIMIT_DATA, &old);
	low.rlim_max = old.rlim_max;
	low.rlim_cur = PAGE; /* 0 would mean the hard limit */
	setrlimit(RLIMIT_DATA, &low);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	setrlimit(RLIMIT_DATA, &old);
	CHECK_EQ(share_count("left_behind"), 1);
	CHECK(pattern_all(p, LEN, 8));
	mr = reg(p, LEN, RIGHTS, NULL);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(share_count("left_behind"), 1);
	CHECK(pattern_all(p, LEN, 8));
	CHECK_EQ(madvise(p, LEN, MADV_DONTNEED), 0);
	CHECK(pattern_all(p, LEN, 0));
	munmap(p, LEN);
}

/* The attributes that conversion keeps. */
static void kept(void)
{
	uint8_t *p = get(LEN, 0);
	struct ibv_mr *mr;
	pid_t pid;
	int st;

	CHECK_EQ(madvise(p, LEN, MADV_DONTFORK), 0);
	mr = reg(p, LEN, RIGHTS, NULL);
	for (int i = 0; i < 2; i++) {
		check_case("DONTFORK is kept, %s", i ? "back again" : "there");
		pid = fork();
		if (!pid) /* is it mapped? */
			_exit(madvise(p, LEN, MADV_NORMAL) == 0);
		CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st) && WEXITSTATUS(st) == 0);
		if (!i)
			CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	munmap(p, LEN);
}

static void *sleeper(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void with_threads(void)
{
	uint8_t *p = get(LEN, 0);
	pthread_t t;
	bool full = can_hold_off();

	if (pthread_create(&t, NULL, on_own_stack, NULL) || pthread_join(t, NULL))
		die("pthread_create");
	if (pthread_create(&t, NULL, sleeper, NULL))
		die("pthread_create");
	if (full) {
		try("other threads, which can be held off", p + 16, LEN - 100, RIGHTS, NULL);
	} else if (strcmp(getenv("WEFT_SHARE"), "always")) {
		try("other threads", p, LEN, RIGHTS, "threads");
	} else {
		try("other threads, whole pages", p, LEN, RIGHTS, NULL);
		try("other threads, a part of a page", p, LEN - 100, RIGHTS, "edge_page");
	}
	munmap(p, LEN);
}

/* ---- each part in a process of its own ---- */

static void part(int fd, void *arg)
{
	void (*const *parts)(void) = arg;

	(void)fd;
	ctx = vp_open();
	pd = ibv_alloc_pd(ctx);
	if (!pd)
		die("alloc_pd");
	for (; *parts; parts++)
		(*parts)();
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
}

static void run(const char *mode, void (**parts)(void))
{
	struct vp_child c;

	setenv("WEFT_SHARE", mode, 1);
	c = vp_fork(part, parts);
	vp_join(&c);
}

int main(void)
{
	void (*kinds[])(void) = {files, attributes, stacks, userfaults, rights, NULL};
	/* By itself: the kernel lets go of the buffers later. */
	void (*pinned[])(void) = {uring, NULL};
	void (*amounts[])(void) = {too_much, NULL};
	void (*policy[])(void) = {hardly_used, NULL};
	void (*atomics[])(void) = {mixed_atomics, kept, limits, NULL};
	void (*threads[])(void) = {with_threads, NULL};
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (uffd < 0) { /* as in many containers */
		perror("no userfaultfd here");
		return 77;
	}
	close(uffd);
	run("always", kinds);
	run("always", pinned);
	run("auto", amounts);
	run("auto", policy);
	run("always", atomics);
	run("auto", threads);
	run("always", threads);
	return check_result();
}
