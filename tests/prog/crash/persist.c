// SPDX-License-Identifier: BSD-3-Clause
/*
 * FLUSH of type persistent: what becomes of a file, of persistent memory and of memory that is
 * neither; errors, a disk that is slow, and an owner that is stopped or dies.  This program's own
 * msync() stands before the kernel's: it tells when it was called and can fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/weft/verbs_ext.h"
#include "tests/lib/check.h"
#include "tests/lib/far_end.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

enum {
	FLUSH = IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | FLUSH,
	OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_ATOMIC_WRITE |
	      IBV_QP_EX_WITH_FLUSH,
	SKIP = 77,
	DIRTY_TRIES = 10,
	LEN = 40 << 20,
	PAGE = 4096,
	ACK_MS = 2 * 1074, /* vp_defaults(), with one retry */
};

/* ---- msync, as the libraries call it ---- */

static struct {
	atomic_int calls, fail, slow_ms, inside;
	atomic_int held;                 /* the next call waits until it is 0 */
	atomic_int order;                /* the owner's latest */
	atomic_ullong bytes, data, word; /* data and word: what stood there at the last call */
	const _Atomic uint64_t *watch_data, *watch_word;
} * disk;

__attribute__((visibility("default"))) int msync(void *addr, size_t len, int flags)
{
	if (!disk || flags != MS_SYNC)
		return syscall(SYS_msync, addr, len, flags);
	if (disk->watch_data) {
		atomic_store(&disk->data, atomic_load(disk->watch_data));
		atomic_store(&disk->word, atomic_load(disk->watch_word));
	}
	atomic_fetch_add(&disk->bytes, len);
	atomic_fetch_add(&disk->calls, 1);
	atomic_store(&disk->inside, 1);
	if (atomic_load(&disk->held))
		while (atomic_load(&disk->held))
			usleep(1000);
	else
		usleep(atomic_load(&disk->slow_ms) * 1000);
	atomic_store(&disk->inside, 0);
	if (atomic_load(&disk->fail)) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_msync, addr, len, flags);
}

static void forget_calls(void)
{
	disk->calls = 0;
	disk->bytes = 0;
}

/* ---- memory ---- */

enum memory { ANONYMOUS, ON_TMPFS, ON_DISK };

static int open_in(const char *dir, bool on_disk)
{
	char name[256];
	struct statfs fs;
	int fd;

	snprintf(name, sizeof name, "%s/weft-persist-XXXXXX", dir);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return -1;
	unlink(name);
	if (!fstatfs(fd, &fs) && on_disk == (fs.f_type != TMPFS_MAGIC))
		return fd;
	close(fd);
	return -1;
}

static int open_on_disk(void)
{
	static const char *const dirs[] = {".", "/var/tmp", "/tmp"};
	int fd = -1;

	for (unsigned i = 0; fd < 0 && i < sizeof dirs / sizeof *dirs; i++)
		fd = open_in(dirs[i], true);
	return fd;
}

static void *map(enum memory kind, size_t len)
{
	int fd = kind == ON_DISK    ? open_on_disk()
		 : kind == ON_TMPFS ? memfd_create("pmem", MFD_CLOEXEC)
				    : -1;
	int flags = kind == ANONYMOUS ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *p;

	if (kind != ANONYMOUS && (fd < 0 || ftruncate(fd, len)))
		die("a file of %zu bytes", len);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED)
		die("mmap");
	if (fd >= 0)
		close(fd);
	return p;
}

/* ---- ends ---- */

static struct ibv_qp *make_qp(struct vp_end *e)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = OPS,
	};

	return ibv_create_qp_ex(e->ctx, &init);
}

/* An end whose buffer is memory of that kind, which stays mapped. */
static void make_end(struct vp_end *e, struct ibv_context *ctx, enum memory kind, size_t len)
{
	struct vp_opts o = vp_defaults();

	o.len = PAGE;
	o.mr_access = o.qp_access = ALL;
	o.retry_cnt = 1; /* so that nobody is given up for two seconds, ACK_MS */
	vp_make(e, ctx, &o);
	CHECK_EQ(ibv_dereg_mr(e->mr), 0);
	CHECK_EQ(ibv_destroy_qp(e->qp), 0);
	e->qp = make_qp(e);
	e->buf = map(kind, len);
	e->len = len;
	e->mr = ibv_reg_mr(e->pd, e->buf, len, ALL);
	if (!e->qp || !e->mr)
		die("an end");
}

static void free_end(struct vp_end *e)
{
	munmap(e->buf, e->len);
	e->buf = NULL;
	e->len = 0;
	vp_free(e);
	ibv_close_device(e->ctx);
}

static void post_flush(
	struct vp_end *e, uint64_t id, const struct vp_addr *to, size_t off, size_t len)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(e->qp);

	ibv_wr_start(x);
	x->wr_id = id;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(x, to->rkey, to->addr + off, len, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	CHECK_EQ(ibv_wr_complete(x), 0);
}

static enum ibv_wc_status flush_typed(
	struct vp_end *e, const struct vp_addr *to, size_t off, size_t len, int type, int level)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(e->qp);
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	ibv_wr_start(x);
	x->wr_id = 9;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(x, to->rkey, to->addr + off, len, type, level);
	CHECK_EQ(ibv_wr_complete(x), 0);
	CHECK(vp_poll(e->scq, &wc, 3 * VP_DEADLINE_MS));
	CHECK_EQ(wc.wr_id, 9);
	if (wc.status == IBV_WC_SUCCESS)
		CHECK_EQ(wc.opcode, IBV_WC_FLUSH);
	return wc.status;
}

static enum ibv_wc_status flush(struct vp_end *e, const struct vp_addr *to, size_t off, size_t len)
{
	return flush_typed(e, to, off, len, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
}

static void write_there(struct vp_end *e, const struct vp_addr *to, size_t off, uint32_t len)
{
	struct ibv_wc wc;

	CHECK_EQ(vp_post_send(e, 3, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, len, to, off), 0);
	vp_want(e->scq, &wc, IBV_WC_SUCCESS, 3);
}

/* ---- the owner of the memory, another process ---- */

enum order { CONNECT = 1, DIRTY, WATCH, UNMAP, DEREG, POST_RECV, WEAK_QP, WEAK_MR, STATUS };

/* kB that the kernel would still have to write. */
static uint64_t dirty_kb(const void *at)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long start, kb, sum = 0;
	char line[512], perm[5];
	bool mine = false;

	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%lx-%*x %4s", &start, perm) == 2 && strchr(line, '-'))
			mine = start == (uintptr_t)at;
		else if (mine && (sscanf(line, "Shared_Dirty: %lu", &kb) == 1 ||
					 sscanf(line, "Private_Dirty: %lu", &kb) == 1))
			sum += kb;
	}
	if (f)
		fclose(f);
	return sum;
}

static void watch(struct vp_end *e, size_t data, size_t word)
{
	disk->watch_data = (_Atomic uint64_t *)(e->buf + data);
	disk->watch_word = (_Atomic uint64_t *)(e->buf + word);
}

static void connect_owner(struct vp_end *e, int fd)
{
	if (vp_get_state(e) != IBV_QPS_RESET)
		CHECK_EQ(vp_state(e, IBV_QPS_RESET), 0);
	vp_meet(e, fd);
}

static void re_register(struct vp_end *e, int access)
{
	CHECK_EQ(ibv_dereg_mr(e->mr), 0);
	e->mr = ibv_reg_mr(e->pd, e->buf, e->len, access);
	CHECK(e->mr);
}

static void *begin_owner(int fd, void *arg)
{
	static struct vp_end e;

	(void)fd;
	make_end(&e, vp_open(), *(enum memory *)arg, LEN);
	return &e;
}

static uint64_t do_order(struct vp_end *e, int fd, enum order order)
{
	static bool weak;
	uint64_t answer = 0;

	disk->order = order;
	switch (order) {
	case CONNECT:
		if (weak)
			re_register(e, ALL);
		weak = false;
		connect_owner(e, fd);
		break;
	case DIRTY:
		return dirty_kb(e->buf);
	case WATCH:
		watch(e, 0, PAGE);
		break;
	case UNMAP:
		munmap(e->buf + 4 * PAGE, PAGE);
		break;
	case DEREG:
		answer = ibv_dereg_mr(e->mr);
		e->mr = ibv_reg_mr(e->pd, e->buf, LEN, ALL);
		CHECK(e->mr);
		break;
	case POST_RECV:
		CHECK_EQ(vp_post_recv(e, 1, 0, 64), 0);
		break;
	case WEAK_QP:
		e->opts.qp_access = ALL & ~IBV_ACCESS_FLUSH_PERSISTENT;
		connect_owner(e, fd);
		e->opts.qp_access = ALL;
		break;
	case WEAK_MR:
		re_register(e, ALL & ~IBV_ACCESS_FLUSH_PERSISTENT);
		weak = true; /* until somebody connects anew */
		connect_owner(e, fd);
		break;
	case STATUS:
		return getpid();
	}
	return answer;
}

static void obey(void *e, int fd, const void *order, void *answer)
{
	*(uint64_t *)answer = do_order(e, fd, *(const uint64_t *)order);
}

static void end_owner(void *e)
{
	free_end(e);
}

static const struct far_kind owner = {
	.order = sizeof(uint64_t),
	.answer = sizeof(uint64_t),
	.begin = begin_owner,
	.obey = obey,
	.end = end_owner,
};

struct scene {
	struct vp_end me;
	struct vp_child owner;
	struct vp_addr there;
};

static void join_as(struct scene *s, enum order how)
{
	struct vp_addr mine;

	if (vp_get_state(&s->me) != IBV_QPS_RESET)
		CHECK_EQ(vp_state(&s->me, IBV_QPS_RESET), 0);
	mine = vp_addr(&s->me);
	far_tell(&s->owner, &owner, &(uint64_t){how});
	s->there = vp_swap(s->owner.fd, &mine);
	vp_connect(&s->me, &s->there);
	vp_hear(s->owner.fd);
}

static void begin(struct scene *s, enum memory kind)
{
	forget_calls();
	disk->fail = disk->slow_ms = disk->held = 0;
	disk->watch_data = NULL;
	s->owner = far_start(&owner, &kind);
	make_end(&s->me, vp_open(), ANONYMOUS, 1 << 20);
	memset(s->me.buf, 0x77, s->me.len);
	join_as(s, CONNECT);
}

static void end(struct scene *s)
{
	far_end(&s->owner);
	free_end(&s->me);
}

static uint64_t ask(struct scene *s, enum order what)
{
	return far_ask_word(&s->owner, &owner, what);
}

/* ---- the cases ---- */

static void a_file(void)
{
	uint64_t dirty = 0;
	struct scene s;
	pid_t pid;

	check_case("a file is written back, what was asked for of it, and only when asked");
	begin(&s, ON_DISK);
	/* The kernel writes back when it likes, too. */
	for (int i = 0; i < DIRTY_TRIES && !dirty; i++) {
		write_there(&s.me, &s.there, 100, 5000);
		dirty = ask(&s, DIRTY);
	}
	CHECK(dirty > 0);
	CHECK_EQ(flush_typed(&s.me, &s.there, 100, 5000, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE), 0);
	CHECK_EQ(disk->calls, 0);
	CHECK_EQ(flush(&s.me, &s.there, 100, 5000), IBV_WC_SUCCESS);
	CHECK_EQ(disk->calls, 1);
	CHECK_EQ(disk->bytes, 5100); /* whole pages */
	CHECK_EQ(ask(&s, DIRTY), 0);
	check_case("in pieces, if it is large; all of the region by the key alone");
	write_there(&s.me, &s.there, LEN - PAGE, PAGE);
	CHECK_EQ(flush_typed(&s.me, &s.there, 0, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR), 0);
	CHECK_EQ(disk->calls, 1 + 3);
	CHECK_EQ(disk->bytes, 5100 + LEN);
	CHECK_EQ(ask(&s, DIRTY), 0);
	CHECK_EQ(flush(&s.me, &s.there, 100, 0), IBV_WC_SUCCESS);
	CHECK_EQ(disk->calls, 4);
	check_case("weft status tells");
	pid = ask(&s, STATUS);
	CHECK_EQ(status_of(pid, "persistence", "file"), 1);
	CHECK_EQ(status_of(pid, "persistence", "volatile"), 0);
	CHECK_EQ(status_of(getpid(), "persistence", "volatile"), 1);
	CHECK(status_of(getpid(), "counters", "persistent_flushes") >= 2);
	end(&s);
}

/* A flush holds up what is behind it, and what is before it is there. */
static void the_order(void)
{
	uint64_t word = 0x1111111111111111;
	struct ibv_qp_ex *x;
	struct ibv_wc wc;
	struct scene s;

	check_case("write, flush, atomic write, flush: each after the other");
	begin(&s, ON_DISK);
	ask(&s, WATCH);
	disk->slow_ms = 50;
	x = ibv_qp_to_qp_ex(s.me.qp);
	ibv_wr_start(x);
	x->wr_flags = 0;
	ibv_wr_rdma_write(x, s.there.rkey, s.there.addr);
	ibv_wr_set_sge(x, s.me.mr->lkey, (uintptr_t)s.me.buf, 64);
	ibv_wr_flush(x, s.there.rkey, s.there.addr, 64, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	x->wr_flags = IBV_SEND_SIGNALED;
	x->wr_id = 4;
	ibv_wr_atomic_write(x, s.there.rkey, s.there.addr + PAGE, &word);
	CHECK_EQ(ibv_wr_complete(x), 0);
	vp_want(s.me.scq, &wc, IBV_WC_SUCCESS, 4);
	CHECK_EQ(disk->calls, 1);
	CHECK_EQ(disk->data, 0x7777777777777777);
	CHECK_EQ(disk->word, 0);
	CHECK_EQ(flush(&s.me, &s.there, PAGE, 8), IBV_WC_SUCCESS);
	CHECK_EQ(disk->word, word);
	end(&s);
}

static void refusals(void)
{
	struct vp_addr wrong;
	struct scene s;

	check_case("no right of the region, none of the queue pair, beyond the end, a wrong key");
	begin(&s, ON_DISK);
	join_as(&s, WEAK_QP);
	CHECK_EQ(flush(&s.me, &s.there, 0, 8), IBV_WC_REM_INV_REQ_ERR);
	join_as(&s, WEAK_MR);
	CHECK_EQ(flush(&s.me, &s.there, 0, 8), IBV_WC_REM_ACCESS_ERR);
	join_as(&s, CONNECT);
	CHECK_EQ(flush(&s.me, &s.there, LEN - 7, 8), IBV_WC_REM_ACCESS_ERR);
	join_as(&s, CONNECT);
	wrong = s.there;
	wrong.rkey++;
	CHECK_EQ(flush_typed(&s.me, &wrong, 0, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR),
		IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(disk->calls, 0);
	check_case("a disk that fails, and one that works again");
	join_as(&s, CONNECT);
	disk->fail = 1;
	CHECK_EQ(flush(&s.me, &s.there, 0, 8), IBV_WC_REM_OP_ERR);
	disk->fail = 0;
	join_as(&s, CONNECT);
	CHECK_EQ(flush(&s.me, &s.there, 0, 8), IBV_WC_SUCCESS);
	check_case("a hole");
	ask(&s, UNMAP);
	CHECK_EQ(flush(&s.me, &s.there, 0, 8 * PAGE), IBV_WC_REM_ACCESS_ERR);
	end(&s);
}

static void nothing_durable(enum memory kind, const char *what)
{
	struct scene s;
	pid_t pid;

	check_case("%s: flushes complete, and status tells what they are worth", what);
	begin(&s, kind);
	write_there(&s.me, &s.there, 0, PAGE);
	CHECK_EQ(flush(&s.me, &s.there, 0, PAGE), IBV_WC_SUCCESS);
	CHECK_EQ(disk->calls, 0);
	pid = ask(&s, STATUS);
	CHECK_EQ(status_of(pid, "persistence", "volatile"), 1);
	CHECK_EQ(status_of(pid, "persistence", "file"), 0);
	CHECK(status_of(getpid(), "counters", "volatile_flushes") >= 1);
	end(&s);
}

/* Two ends in this process, a writes to b. */
static struct vp_addr pair_own(struct vp_end *a, struct vp_end *b, enum memory kind)
{
	struct vp_addr to_a, to_b;

	forget_calls();
	disk->watch_data = NULL;
	make_end(a, vp_open(), kind, LEN);
	make_end(b, vp_open(), kind, LEN);
	to_a = vp_addr(a);
	to_b = vp_addr(b);
	vp_connect(a, &to_b);
	vp_connect(b, &to_a);
	return to_b;
}

static void pmem_own(void)
{
	struct vp_addr to_b;
	struct vp_end a, b;

	check_case("persistent memory of this process");
	to_b = pair_own(&a, &b, ON_TMPFS);
	write_there(&a, &to_b, 0, PAGE);
	CHECK_EQ(flush(&a, &to_b, 0, LEN), IBV_WC_SUCCESS);
	munmap(b.buf + 4 * PAGE, PAGE);
	CHECK_EQ(flush(&a, &to_b, 0, LEN), IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(disk->calls, 0);
	free_end(&a);
	free_end(&b);
}

static int pmem(void)
{
	struct scene s;
	pid_t pid;

	check_case("persistent memory, by libpmem");
	setenv("PMEM_IS_PMEM_FORCE", "1", 1); /* which it reads when it is loaded */
	begin(&s, ON_TMPFS);
	pid = ask(&s, STATUS);
	if (status_of(pid, "persistence", "pmem") != 1) {
		CHECK_EQ(status_of(pid, "persistence", "volatile"), 1);
		end(&s);
		printf("no libpmem here\n");
		return check_failures() ? check_result() : SKIP;
	}
	write_there(&s.me, &s.there, 0, PAGE);
	CHECK_EQ(flush(&s.me, &s.there, 0, PAGE), IBV_WC_SUCCESS);
	CHECK_EQ(flush_typed(&s.me, &s.there, 0, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR), 0);
	CHECK_EQ(disk->calls, 0);
	CHECK_EQ(status_of(getpid(), "counters", "persistent_flushes"), 2);
	ask(&s, UNMAP);
	CHECK_EQ(flush(&s.me, &s.there, 0, 8 * PAGE), IBV_WC_REM_ACCESS_ERR);
	end(&s);
	pmem_own();
	return check_result();
}

static void own_memory(void)
{
	uint64_t dirty = 0;
	struct vp_addr to_b;
	struct vp_end a, b;

	check_case("both ends in one process");
	to_b = pair_own(&a, &b, ON_DISK);
	for (int i = 0; i < DIRTY_TRIES && !dirty; i++) {
		write_there(&a, &to_b, 0, PAGE);
		dirty = dirty_kb(b.buf);
	}
	CHECK(dirty > 0);
	CHECK_EQ(flush(&a, &to_b, 0, LEN), IBV_WC_SUCCESS);
	CHECK_EQ(disk->calls, 3);
	CHECK_EQ(dirty_kb(b.buf), 0);
	disk->fail = 1;
	CHECK_EQ(flush(&a, &to_b, 0, 8), IBV_WC_REM_OP_ERR);
	disk->fail = 0;
	free_end(&a);
	free_end(&b);
}

/* The requester posts and looks no more; the owner, who posts the receive, goes on for it. */
static void by_the_owner(void)
{
	struct ibv_wc wc;
	struct scene s;

	check_case("a flush behind a message that had to wait");
	begin(&s, ON_DISK);
	CHECK_EQ(vp_post_send(&s.me, 1, IBV_WR_SEND, 0, 0, 8, &s.there, 0), 0);
	post_flush(&s.me, 2, &s.there, 0, 8);
	ask(&s, POST_RECV);
	for (int i = 0; i < VP_DEADLINE_MS && !disk->calls; i++)
		usleep(1000);
	CHECK_EQ(disk->calls, 1);
	vp_want(s.me.scq, &wc, IBV_WC_SUCCESS, 2);
	end(&s);
}

static void await_inside(void)
{
	for (int i = 0; i < VP_DEADLINE_MS && !disk->inside; i++)
		usleep(1000);
	CHECK_EQ(disk->inside, 1);
}

static void taken_away(void)
{
	struct ibv_wc wc = {0};
	struct scene s;

	check_case("the region goes while it is written back");
	begin(&s, ON_DISK);
	disk->slow_ms = 1000; /* of the pieces behind the first, which nobody wants any more */
	disk->held = 1;
	post_flush(&s.me, 2, &s.there, 0, LEN);
	await_inside();
	far_tell(&s.owner, &owner, &(uint64_t){DEREG});
	for (int i = 0; i < VP_DEADLINE_MS && disk->order != DEREG; i++)
		usleep(1000);
	await_sleep(s.owner.pid); /* in the call */
	disk->held = 0;
	CHECK_EQ(vp_hear(s.owner.fd), 0);
	CHECK(vp_poll(s.me.scq, &wc, VP_DEADLINE_MS));
	CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	CHECK_RANGE(disk->calls, 1, 2);
	disk->slow_ms = 0;
	join_as(&s, CONNECT);
	CHECK_EQ(flush(&s.me, &s.there, 0, 8), IBV_WC_SUCCESS);
	end(&s);
}

static void slow_disk(void)
{
	struct scene s;

	check_case("a disk that is slower than the ACK timeout");
	begin(&s, ON_DISK);
	disk->slow_ms = ACK_MS + 500;
	CHECK_EQ(flush(&s.me, &s.there, 0, 8), IBV_WC_SUCCESS);
	end(&s);
}

static void no_answer(void)
{
	struct ibv_wc wc = {0};
	struct scene s;

	check_case("the owner is stopped");
	begin(&s, ON_DISK);
	CHECK_EQ(flush(&s.me, &s.there, 0, 8), IBV_WC_SUCCESS);
	vp_stop(&s.owner);
	CHECK_EQ(flush(&s.me, &s.there, 0, 8), IBV_WC_RETRY_EXC_ERR);
	kill(s.owner.pid, SIGCONT);
	join_as(&s, CONNECT);
	CHECK_EQ(flush(&s.me, &s.there, 0, 8), IBV_WC_SUCCESS);
	check_case("the owner dies while the disk is busy");
	disk->slow_ms = 60000;
	post_flush(&s.me, 2, &s.there, 0, 8);
	await_inside();
	vp_kill_join(&s.owner);
	CHECK(vp_poll(s.me.scq, &wc, VP_DEADLINE_MS));
	CHECK_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
	free_end(&s.me);
}

static void capabilities(void)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_device_attr_ex attr;

	check_case("the device says so");
	CHECK_EQ(ibv_query_device_ex(ctx, NULL, &attr), 0);
	CHECK(attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_PERSISTENT);
	ibv_close_device(ctx);
}

/* persist [pmem]: the second, with libpmem forced to take any memory for persistent. */
int main(int argc, char **argv)
{
	int fd = open_on_disk();

	disk = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (disk == MAP_FAILED)
		die("mmap");
	if (argc > 1 && !strcmp(argv[1], "pmem"))
		return pmem();
	nothing_durable(ANONYMOUS, "anonymous memory");
	nothing_durable(ON_TMPFS, "tmpfs");
	if (fd < 0) {
		printf("no directory on a disk\n");
		return check_failures() ? check_result() : SKIP;
	}
	close(fd);
	a_file();
	the_order();
	refusals();
	own_memory();
	by_the_owner();
	taken_away();
	slow_disk();
	no_answer();
	capabilities();
	return check_result();
}
