// SPDX-License-Identifier: BSD-3-Clause
/*
 * Memory is registered and deregistered again and again while threads of the program write it,
 * and while a peer sends into it through another region that is never mapped: no write may be
 * lost.  Argument: rounds.  With OLD_KERNEL in the environment as on that kernel, which protects
 * only pages that are there (tests/lib/old_kernel.c).
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

enum { PAGE = 4096, PAGES = 96, SIZE = PAGES * PAGE, WRITERS = 2, ROUNDS = 1000 };
enum { MESSAGE = 24 * 1024, DEPTH = 8, SWEEPS = 10 };

static int rounds = ROUNDS;
static _Atomic bool stop;

/* A thread that counts in words of its own all over the memory, and sees whether they go on. */
struct writer {
	pthread_t thread;
	uint64_t *mem;
	int id;
	_Atomic uint64_t sweeps;
	unsigned lost;
};

static void *write_on(void *arg)
{
	struct writer *w = arg;
	uint64_t v = 0;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		for (size_t i = w->id; i < SIZE / sizeof *w->mem; i += 64) {
			volatile uint64_t *word = &w->mem[i];

			w->lost += *word != v;
			*word = v + 1;
		}
		w->sweeps = ++v;
	}
	for (size_t i = w->id; i < SIZE / sizeof *w->mem; i += 64)
		w->lost += w->mem[i] != v;
	return NULL;
}

static void start(struct writer *w, void *mem)
{
	atomic_store(&stop, false);
	for (int i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){.mem = mem, .id = i};
		if (pthread_create(&w[i].thread, NULL, write_on, &w[i]))
			die("pthread_create");
	}
}

/* Each has written all of its words so often that changes fell into it. */
static bool wrote_enough(const struct writer *w)
{
	for (int i = 0; i < WRITERS; i++)
		if (w[i].sweeps < SWEEPS)
			return false;
	return true;
}

static void finish(struct writer *w)
{
	atomic_store(&stop, true);
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(w[i].thread, NULL);
		CHECK_EQ(w[i].lost, 0);
	}
}

static void *fresh(void)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* Ranges that begin and end anywhere, several at once, nested and overlapping. */
static void threads_write(int fd, void *arg)
{
	const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_context *ctx = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct writer w[WRITERS];
	uint8_t *mem = fresh();
	/* Else whole pages alone are converted. */
	size_t unit = can_hold_off() ? 1 : PAGE;

	(void)fd;
	(void)arg;
	check_case("threads write");
	start(w, mem);
	srand(7);
	for (int i = 0; i < rounds || !wrote_enough(w); i++) {
		struct ibv_mr *mr[3];

		for (int k = 0; k < 3; k++) {
			size_t off = rand() % (SIZE - PAGE) / unit * unit;
			size_t len = rand() % (SIZE - off) / unit * unit + unit;

			mr[k] = ibv_reg_mr(pd, mem + off, len, rights);
			if (!mr[k])
				die("reg_mr");
			/* A one CPU machine must let them write too. */
			if (i % 16 == 0)
				sched_yield();
		}
		for (int k = 0; k < 3; k++)
			if (ibv_dereg_mr(mr[(k + i) % 3]))
				die("dereg_mr");
	}
	finish(w);
	CHECK_RANGE(share_count("conversions"), rounds / 2, INT64_MAX);
	CHECK_EQ(share_count("bytes"), 0);
	CHECK_EQ(share_count("left_behind"), 0);
	check_case("zero pages after all");
	CHECK_EQ(madvise(mem, SIZE, MADV_DONTNEED), 0);
	CHECK(pattern_all(mem, SIZE, 0));
	munmap(mem, SIZE);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
}

/* A thread that writes each word of what it is given, once. */
struct first {
	_Atomic(uint64_t *) mem;
	_Atomic int written;
};

static void *write_first(void *arg)
{
	struct first *f = arg;

	for (int i = 1; i <= rounds; i++) {
		uint64_t *mem;

		while (!(mem = atomic_exchange(&f->mem, NULL)))
			sched_yield();
		for (size_t k = 0; k < SIZE / sizeof *mem; k += PAGE / sizeof *mem)
			*(volatile uint64_t *)&mem[k] = i;
		atomic_store(&f->written, i);
	}
	return NULL;
}

/* The pages of memory that is registered are not there before a thread writes them. */
static void first_writes(int fd, void *arg)
{
	const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_context *ctx = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct first f = {.written = 0};
	pthread_t thread;
	int lost = 0;

	(void)fd;
	(void)arg;
	check_case("first writes");
	if (pthread_create(&thread, NULL, write_first, &f))
		die("pthread_create");
	for (int i = 1; i <= rounds; i++) {
		uint64_t *mem = fresh();
		struct ibv_mr *mr;

		atomic_store(&f.mem, mem);
		mr = ibv_reg_mr(pd, mem, SIZE, rights);
		while (atomic_load(&f.written) != i)
			sched_yield();
		for (size_t k = 0; k < SIZE / sizeof *mem; k += PAGE / sizeof *mem)
			lost += mem[k] != (uint64_t)i;
		if (!mr || ibv_dereg_mr(mr))
			die("reg_mr");
		munmap(mem, SIZE);
	}
	pthread_join(thread, NULL);
	CHECK_EQ(lost, 0);
	CHECK_RANGE(share_count("conversions"), rounds / 2, INT64_MAX);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
}

/* Sends what is too large for rings: straight into the other's memory by system calls. */
static void sender(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_end e;
	struct ibv_wc wc;
	uint64_t n = 0;

	(void)arg;
	o.len = MESSAGE;
	o.rnr_retry = 7;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	while (vp_hear(fd)) {
		memset(e.buf, ++n, MESSAGE);
		CHECK_EQ(vp_post_send(&e, n, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, MESSAGE, NULL, 0),
			0);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, n);
		vp_tell(fd, n);
	}
	vp_free(&e);
}

/* A region that is never mapped. */
struct unmapped {
	unsigned access; /* beside local writes */
	bool all;        /* of memory */
};

/* The sender's partner: such a region (arg), under others that come and go. */
static void peer_sends(int fd, void *arg)
{
	const struct unmapped *u = arg;
	const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct vp_child c = vp_fork(sender, NULL);
	struct vp_opts o = vp_defaults();
	struct vp_end e;
	struct ibv_wc wc;
	int bad = 0;

	(void)fd;
	check_case("a peer sends, access %#x%s", u->access, u->all ? ", all of memory" : "");
	o.len = SIZE;
	o.mr_access = IBV_ACCESS_LOCAL_WRITE | u->access;
	vp_make(&e, vp_open(), &o);
	if (u->all) {
		CHECK_EQ(ibv_dereg_mr(e.mr), 0);
		e.mr = ibv_reg_mr(e.pd, NULL, SIZE_MAX, o.mr_access);
		CHECK(e.mr != NULL);
	}
	vp_meet(&e, c.fd);
	for (int i = 1; i <= rounds / 2; i++) {
		size_t off = PAGE * (i % 8) + i % 100;
		struct ibv_mr *mr;

		vp_post_recv(&e, i, off, MESSAGE);
		vp_tell(c.fd, 1);
		do {
			mr = ibv_reg_mr(e.pd, e.buf + off + i % 5000, MESSAGE, rights);
			if (!mr || ibv_dereg_mr(mr))
				die("reg_mr");
		} while (ibv_poll_cq(e.rcq, 1, &wc) == 0);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		bad += !pattern_all(e.buf + off, MESSAGE, vp_hear(c.fd));
		memset(e.buf + off, 0, MESSAGE);
	}
	vp_tell(c.fd, 0);
	CHECK_EQ(bad, 0);
	CHECK_RANGE(share_count("conversions"), rounds / 2, INT64_MAX);
	vp_join(&c);
	vp_free(&e);
}

int main(int argc, char **argv)
{
	static const struct unmapped regions[] = {
		{0}, {IBV_ACCESS_ON_DEMAND}, {IBV_ACCESS_ON_DEMAND, true}};
	struct vp_child c;

	if (argc > 1)
		rounds = atoi(argv[1]);
	setenv("WEFT_SHARE", "always", 1);
	c = vp_fork(threads_write, NULL);
	vp_join(&c);
	c = vp_fork(first_writes, NULL);
	vp_join(&c);
	for (unsigned i = 0; i < sizeof regions / sizeof *regions; i++) {
		c = vp_fork(peer_sends, (void *)&regions[i]);
		vp_join(&c);
	}
	return check_result();
}
