// SPDX-License-Identifier: BSD-3-Clause
/*
 * Memory that a program shares by an object of its own, a sealed memfd or a System V segment: peers
 * map that object, and nothing of the owner's memory is moved.  What could become shorter under a
 * peer is copied.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hca/seg/seg.h"
#include "pages/backing.h"
#include "tests/lib/check.h"
#include "tests/lib/far_end.h"
#include "tests/lib/pattern.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/weftd_from_outside.h"

enum {
	PAGE = 4096,
	SIZE = 40 * PAGE,
	SKIP = 3 * PAGE, /* of the object, before what is registered */
	ADDS = 3000,
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_ATOMIC
};

/* ---- the peer, which does what it is told ---- */

enum { WRITE, READ, ADD, FLOOD, HOLDS, COUNTER, REGISTER };

struct order {
	uint64_t what, addr, rkey, len, seed;
};

static const char *const counters[] = {"cma_ops", "map_bytes", "map_atomics"};

static enum ibv_wc_status post(
	struct vp_end *e, enum ibv_wr_opcode op, const struct order *o, uint32_t len)
{
	struct ibv_sge sge = vp_sge(e, 0, len);
	struct ibv_send_wr wr = {
		.opcode = op, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = o->addr;
		wr.wr.atomic.rkey = o->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = o->addr;
		wr.wr.rdma.rkey = o->rkey;
	}
	return vp_run(e, &wr);
}

static uint64_t do_order(struct vp_end *e, const struct order *o)
{
	enum ibv_wc_status st = IBV_WC_SUCCESS;

	switch (o->what) {
	case WRITE:
		pattern_fill(e->buf, o->len, o->seed);
		return post(e, IBV_WR_RDMA_WRITE, o, o->len);
	case READ:
		memset(e->buf, 0, o->len);
		st = post(e, IBV_WR_RDMA_READ, o, o->len);
		return pattern_filled(e->buf, o->len, o->seed) ? st : IBV_WC_FATAL_ERR;
	case ADD:
		for (uint64_t i = 0; !st && i < o->len; i++)
			st = post(e, IBV_WR_ATOMIC_FETCH_AND_ADD, o, 8);
		return st;
	case FLOOD:
		while (!st)
			st = post(e, IBV_WR_RDMA_WRITE, o, o->len);
		return st;
	case HOLDS:
		return lines_with("/proc/self/maps", o->seed ? "/SYSV" : "/memfd:object");
	case COUNTER:
		return status_of(getpid(), "counters", counters[o->seed]);
	case REGISTER:
		return ibv_dereg_mr(ibv_reg_mr(e->pd, e->buf, PAGE, IBV_ACCESS_LOCAL_WRITE));
	}
	return 0;
}

static void obey(void *e, int fd, const void *order, void *answer)
{
	(void)fd;
	*(uint64_t *)answer = do_order(e, order);
}

static void unheard(void *e, const void *answer)
{
	(void)e;
	check_case("the owner has died");
	CHECK_EQ(*(const uint64_t *)answer, IBV_WC_RETRY_EXC_ERR);
}

static void *open_peer(int fd, void *arg)
{
	struct vp_opts opts = vp_defaults();
	static struct vp_end e;

	(void)arg;
	/* It outlives an owner that is killed. */
	prctl(PR_SET_PDEATHSIG, 0);
	opts.len = SIZE;
	opts.timeout = 16; /* a quarter of a second, eight times */
	vp_make(&e, vp_open(), &opts);
	vp_meet(&e, fd);
	return &e;
}

static void close_peer(void *e)
{
	vp_free(e);
}

static const struct far_kind peer = {
	.order = sizeof(struct order),
	.answer = sizeof(uint64_t),
	.begin = open_peer,
	.obey = obey,
	.unheard = unheard,
	.end = close_peer,
};

/* ---- the owner ---- */

struct owner {
	struct vp_child peer;
	struct vp_end e;
	struct ibv_mr *mr;
	uint8_t *p;
	int fd; /* of a memfd, or -1 */
};

static uint64_t order(struct owner *w, int what, const void *at, uint64_t len, uint64_t seed)
{
	/* Those without an address come when there is no region any more, too. */
	struct order o = {what, (uintptr_t)at, at ? w->mr->rkey : 0, len, seed};
	uint64_t answer = 0;

	far_tell(&w->peer, &peer, &o);
	if (what != FLOOD) /* which ends when it cannot go on */
		far_hear(&w->peer, &peer, &answer);
	return answer;
}

static void begin(struct owner *w)
{
	struct vp_opts opts = vp_defaults();

	opts.len = PAGE;
	opts.mr_access = IBV_ACCESS_LOCAL_WRITE; /* nothing that could be mapped */
	*w = (struct owner){.peer = far_start(&peer, NULL), .fd = -1};
	vp_make(&w->e, vp_open(), &opts);
	vp_meet(&w->e, w->peer.fd);
}

static void end(struct owner *w)
{
	far_end(&w->peer);
	vp_free(&w->e);
}

static uint8_t *map(int fd, off_t offset)
{
	uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void new_memfd(struct owner *w, int seals)
{
	w->fd = memfd_create("object", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (w->fd < 0 || ftruncate(w->fd, SKIP + SIZE) || fcntl(w->fd, F_ADD_SEALS, seals))
		die("memfd");
	w->p = map(w->fd, SKIP);
}

static void new_sysv(struct owner *w)
{
	int id = shmget(IPC_PRIVATE, SKIP + SIZE, IPC_CREAT | 0600);
	uint8_t *p = shmat(id, NULL, 0);

	if (p == (void *)-1 || shmctl(id, IPC_RMID, NULL))
		die("shmat");
	w->p = p + SKIP;
}

static struct ibv_mr *reg(struct owner *w, void *p, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(w->e.pd, p, len, RIGHTS);

	if (!mr)
		die("reg_mr");
	return mr;
}

static void shares(int regions, int objects)
{
	CHECK_EQ(share_count("regions"), regions);
	CHECK_EQ(share_count("shared_objects"), objects);
	CHECK_EQ(share_count("bytes"), 0);
	CHECK_EQ(share_count("conversions"), 0);
}

/* Writes, reads and adds; the owner adds to the same word meanwhile. */
static void operate(struct owner *w, uint8_t *p, size_t len)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)p;
	struct order o = {ADD, (uintptr_t)p, w->mr->rkey, ADDS, 0};

	memset(w->p, 0, SIZE);
	CHECK_EQ(order(w, WRITE, p + 7, len - 7, 1), IBV_WC_SUCCESS);
	CHECK(pattern_filled(p + 7, len - 7, 1) && pattern_all(p, 7, 0));
	pattern_fill(p, len, 2);
	CHECK_EQ(order(w, READ, p, len, 2), IBV_WC_SUCCESS);
	atomic_store(word, 0);
	far_tell(&w->peer, &peer, &o);
	for (int i = 0; i < ADDS; i++)
		atomic_fetch_add(word, 1);
	CHECK_EQ(vp_hear(w->peer.fd), IBV_WC_SUCCESS);
	CHECK_EQ(atomic_load(word), 2 * ADDS);
}

static void all_mapped(struct owner *w, bool sysv)
{
	check_case("mapped, not copied");
	CHECK_EQ(order(w, COUNTER, NULL, 0, 0), 0);
	CHECK_RANGE(order(w, COUNTER, NULL, 0, 1), SIZE, INT64_MAX);
	CHECK_EQ(order(w, COUNTER, NULL, 0, 2), ADDS);
	CHECK_RANGE(order(w, HOLDS, NULL, 0, sysv), 1, 1);
	check_case("let go of");
	CHECK_EQ(ibv_dereg_mr(w->mr), 0);
	shares(0, 0);
	CHECK_EQ(order(w, REGISTER, NULL, 0, 0), 0);
	CHECK_EQ(order(w, HOLDS, NULL, 0, sysv), 0);
}

static void a_memfd(int fd, void *arg)
{
	struct owner w;
	uint8_t *q;

	(void)fd;
	(void)arg;
	check_case("a memfd");
	begin(&w);
	new_memfd(&w, F_SEAL_SHRINK);
	w.mr = reg(&w, w.p + 8, SIZE - 16);
	shares(1, 1);
	CHECK_EQ(share_count("shared_bytes"), SIZE);
	operate(&w, w.p + 8, SIZE - 16);
	q = map(w.fd, SKIP);
	CHECK(!memcmp(w.p, q, SIZE));
	all_mapped(&w, false);
	check_case("it has grown");
	CHECK_EQ(ftruncate(w.fd, SKIP + 2 * SIZE), 0);
	munmap(q, SIZE);
	munmap(w.p, SIZE);
	w.p = map(w.fd, SKIP + SIZE);
	w.mr = reg(&w, w.p, SIZE);
	shares(1, 1);
	operate(&w, w.p, SIZE);
	CHECK_EQ(order(&w, COUNTER, NULL, 0, 0), 0);
	CHECK_EQ(ibv_dereg_mr(w.mr), 0);
	check_case("the seals are the program's again");
	CHECK_EQ(order(&w, REGISTER, NULL, 0, 0), 0);
	munmap(w.p, SIZE);
	CHECK_EQ(fcntl(w.fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	end(&w);
}

static void a_segment(int fd, void *arg)
{
	struct owner w;

	(void)fd;
	(void)arg;
	check_case("System V memory");
	begin(&w);
	new_sysv(&w);
	w.mr = reg(&w, w.p, SIZE);
	shares(1, 1);
	operate(&w, w.p, SIZE);
	all_mapped(&w, true);
	end(&w);
}

/* Several regions on one object, at several addresses; each has its own end. */
static void several(int fd, void *arg)
{
	struct ibv_mr *part, *alias;
	struct owner w;
	uint8_t *q;

	(void)fd;
	(void)arg;
	check_case("regions that overlap");
	begin(&w);
	new_memfd(&w, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	q = map(w.fd, SKIP);
	part = reg(&w, w.p + 5 * PAGE, 2 * PAGE);
	alias = reg(&w, q, SIZE);
	w.mr = reg(&w, w.p, SIZE);
	shares(3, 1);
	operate(&w, w.p, SIZE);
	CHECK_EQ(ibv_dereg_mr(w.mr), 0);
	shares(2, 1);
	w.mr = part;
	CHECK_EQ(order(&w, WRITE, w.p + 5 * PAGE, PAGE, 3), IBV_WC_SUCCESS);
	CHECK(pattern_filled(q + 5 * PAGE, PAGE, 3));
	check_case("atomics by copies send it back");
	w.mr = ibv_reg_mr_iova(w.e.pd, w.p + 5 * PAGE + 4, 100, 0x1000, RIGHTS);
	CHECK(w.mr && !ibv_dereg_mr(w.mr));
	shares(1, 1);
	w.mr = part;
	CHECK_EQ(order(&w, WRITE, w.p + 6 * PAGE, PAGE, 4), IBV_WC_SUCCESS);
	CHECK(pattern_filled(q + 6 * PAGE, PAGE, 4));
	CHECK_EQ(ibv_dereg_mr(part), 0);
	check_case("memory that is registered goes away");
	munmap(w.p, SIZE);
	w.p = q;
	w.mr = alias;
	munmap(q + 7 * PAGE, PAGE);
	CHECK_EQ(order(&w, WRITE, q, SIZE, 5), IBV_WC_SUCCESS);
	q = map(w.fd, SKIP);
	CHECK(pattern_filled(q, SIZE, 5));
	CHECK_EQ(ibv_dereg_mr(alias), 0);
	shares(0, 0);
	CHECK_EQ(order(&w, COUNTER, NULL, 0, 1) > 0, 1);
	end(&w);
}

static void while_in_use(int fd, void *arg)
{
	struct owner w;
	pid_t pid;
	int st;

	(void)fd;
	(void)arg;
	begin(&w);
	new_memfd(&w, F_SEAL_SHRINK);
	w.mr = reg(&w, w.p, SIZE);
	check_case("a child shares it, as it does without us");
	pid = fork();
	if (!pid) {
		memset(w.p, 9, PAGE);
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	CHECK(pattern_all(w.p, PAGE, 9));
	shares(1, 1);
	operate(&w, w.p, SIZE);
	check_case("deregistered while a peer writes");
	order(&w, FLOOD, w.p, SIZE, 0);
	usleep(20 * 1000);
	CHECK_EQ(ibv_dereg_mr(w.mr), 0);
	pattern_fill(w.p, SIZE, 6);
	CHECK_EQ(vp_hear(w.peer.fd), IBV_WC_REM_ACCESS_ERR);
	CHECK(pattern_filled(w.p, SIZE, 6));
	CHECK_EQ(order(&w, COUNTER, NULL, 0, 0), 0);
	end(&w);
}

/* What is found to be no such memory, and served all the same. */
static void refused(int fd, void *arg)
{
	struct owner w;

	(void)fd;
	(void)arg;
	check_case("a memfd without seals");
	begin(&w);
	new_memfd(&w, 0);
	w.mr = reg(&w, w.p, SIZE);
	shares(0, 0);
	CHECK_EQ(share_count("memfd"), 1);
	CHECK_EQ(order(&w, WRITE, w.p, SIZE, 1), IBV_WC_SUCCESS);
	CHECK(pattern_filled(w.p, SIZE, 1));
	CHECK_EQ(order(&w, HOLDS, NULL, 0, 0), 0);
	CHECK_EQ(ibv_dereg_mr(w.mr), 0);
	check_case("it could be sealed afterwards");
	CHECK_EQ(fcntl(w.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE), 0);
	w.mr = reg(&w, w.p, SIZE);
	CHECK_EQ(share_count("memfd"), 2);
	CHECK_EQ(ibv_dereg_mr(w.mr), 0);
	close(w.fd);
	munmap(w.p, SIZE);
	check_case("truncated");
	new_memfd(&w, 0);
	w.mr = reg(&w, w.p, SIZE);
	CHECK_EQ(ftruncate(w.fd, 0), 0);
	CHECK_EQ(order(&w, WRITE, w.p, SIZE, 1), IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dereg_mr(w.mr), 0);
	end(&w);
}

/* Can it be opened by its address? */
static bool has_map_files(uint8_t *p)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", (unsigned long)p,
		(unsigned long)p + SIZE);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void without_fd(int fd, void *arg)
{
	struct owner w;
	bool privileged;

	(void)fd;
	(void)arg;
	check_case("closed before it was registered");
	begin(&w);
	new_memfd(&w, F_SEAL_SHRINK);
	close(w.fd);
	privileged = has_map_files(w.p);
	w.mr = reg(&w, w.p, SIZE);
	shares(privileged, privileged);
	CHECK_EQ(share_count("no_descriptor"), !privileged);
	CHECK_EQ(order(&w, WRITE, w.p, SIZE, 1), IBV_WC_SUCCESS);
	CHECK(pattern_filled(w.p, SIZE, 1));
	CHECK_EQ(ibv_dereg_mr(w.mr), 0);
	munmap(w.p, SIZE);
	check_case("closed afterwards");
	new_memfd(&w, F_SEAL_SHRINK);
	w.mr = reg(&w, w.p, SIZE);
	close(w.fd);
	shares(1, 1);
	operate(&w, w.p, SIZE);
	CHECK_EQ(ibv_dereg_mr(w.mr), 0);
	end(&w);
}

/* A new weftd is told of it. */
static void weftd_restarts(int fd, void *arg)
{
	struct owner w;

	(void)fd;
	(void)arg;
	check_case("weftd restarts");
	begin(&w);
	new_memfd(&w, F_SEAL_SHRINK);
	w.mr = reg(&w, w.p, SIZE);
	weftd_down();
	CHECK_EQ(ibv_destroy_comp_channel(ibv_create_comp_channel(w.e.ctx)), 0);
	operate(&w, w.p, SIZE);
	all_mapped(&w, false);
	end(&w);
}

/* It was killed: what a peer needs of it comes a little later. */
static void weftd_dies(int fd, void *arg)
{
	struct owner w;
	struct order o = {.what = ADD, .len = 3};
	uint64_t answer;
	struct ibv_wc wc;

	(void)fd;
	(void)arg;
	check_case("the first atomics, just when weftd was killed");
	begin(&w);
	new_memfd(&w, F_SEAL_SHRINK);
	w.mr = reg(&w, w.p, SIZE);
	o.addr = (uintptr_t)w.p;
	o.rkey = w.mr->rkey;
	weftd_kill(weftd_pid());
	far_tell(&w.peer, &peer, &o);
	/* As a program does that expects something. */
	while (recv(w.peer.fd, &answer, sizeof answer, MSG_DONTWAIT) < 0)
		CHECK_EQ(ibv_poll_cq(w.e.rcq, 1, &wc), 0);
	CHECK_EQ(answer, IBV_WC_SUCCESS);
	CHECK_EQ(*(uint64_t *)w.p, 3);
	CHECK_EQ(ibv_dereg_mr(w.mr), 0);
	end(&w);
}

/* Our segment, as peers see it. */
static struct seg *own_segment(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct seg *found = NULL;
	unsigned long at;
	char line[512];

	while (f && !found && fgets(line, sizeof line, f))
		if (strstr(line, "weft-segment") && sscanf(line, "%lx", &at) == 1 &&
			((struct seg *)at)->hdr.pid == getpid())
			found = (struct seg *)at;
	if (!f || !found)
		die("segment");
	fclose(f);
	return found;
}

/* Who scribbles over what it says of its memory harms no peer. */
static void liar(int fd, void *arg)
{
	struct seg_backing *r;
	struct seg_mr *entry;
	struct owner w;

	(void)fd;
	(void)arg;
	check_case("no such segment");
	begin(&w);
	new_memfd(&w, F_SEAL_SHRINK);
	w.mr = reg(&w, w.p, SIZE);
	entry = seg_mr_of(own_segment(), w.mr->rkey);
	r = &own_segment()->backing[entry->backing % SEG_BACKINGS];
	r->kind = BACKING_SYSV;
	r->shmid = -1;
	CHECK_EQ(order(&w, WRITE, w.p, SIZE, 1), IBV_WC_SUCCESS);
	CHECK(pattern_filled(w.p, SIZE, 1));
	CHECK_EQ(order(&w, COUNTER, NULL, 0, 1), 0);
	r->kind = BACKING_MEMFD;
	check_case("places that are not there");
	for (int i = 0; i < 64; i += 7) {
		entry->offset = (1ull << i) + SKIP + SIZE;
		CHECK_EQ(order(&w, WRITE, w.p, PAGE, i), IBV_WC_SUCCESS);
		CHECK(pattern_filled(w.p, PAGE, i));
	}
	entry->offset = SKIP;
	for (int i = 0; i < 32; i += 5) {
		entry->backing = 1u << i;
		CHECK_EQ(order(&w, WRITE, w.p, PAGE, i), IBV_WC_SUCCESS);
		CHECK(pattern_filled(w.p, PAGE, i));
	}
	check_case("taken away while it is used");
	entry->backing = atomic_load(&r->id);
	for (int i = 0; i < 20; i++) {
		uint32_t id = atomic_exchange(&r->id, 0);

		CHECK_EQ(order(&w, REGISTER, NULL, 0, 0), 0);
		CHECK_EQ(order(&w, WRITE, w.p, PAGE, i), IBV_WC_SUCCESS);
		atomic_store(&r->id, id);
		CHECK_EQ(order(&w, READ, w.p, PAGE, i), IBV_WC_SUCCESS);
	}
	check_case("atomics are never served by copies then");
	entry->offset = 1ull << 40;
	CHECK_EQ(order(&w, ADD, w.p, 1, 0), IBV_WC_REM_OP_ERR);
	entry->offset = SKIP;
	CHECK_EQ(ibv_dereg_mr(w.mr), 0);
	end(&w);
}

/* A region behind the descriptor itself. */
static void by_descriptor(int fd, void *arg)
{
	struct owner w;

	(void)fd;
	(void)arg;
	check_case("reg_dmabuf_mr");
	begin(&w);
	new_memfd(&w, F_SEAL_SHRINK);
	w.mr = ibv_reg_dmabuf_mr(w.e.pd, SKIP, SIZE, (uintptr_t)w.p, w.fd, RIGHTS);
	if (!w.mr)
		die("reg_dmabuf_mr");
	shares(1, 1);
	operate(&w, w.p, SIZE);
	all_mapped(&w, false);
	end(&w);
}

static void killed_owner(int fd, void *arg)
{
	struct owner w;

	(void)arg;
	begin(&w);
	new_memfd(&w, F_SEAL_SHRINK);
	w.mr = reg(&w, w.p, SIZE);
	operate(&w, w.p, SIZE);
	vp_tell(fd, w.peer.pid);
	order(&w, FLOOD, w.p, SIZE, 0);
	vp_tell(fd, 0);
	pause();
}

/* Its peer becomes a child of ours. */
static void owner_dies(void)
{
	struct vp_child c;
	pid_t peer_pid;
	int st;

	check_case("the owner is killed");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		die("prctl");
	c = vp_fork(killed_owner, NULL);
	peer_pid = vp_hear(c.fd);
	vp_hear(c.fd);
	usleep(20 * 1000);
	vp_kill_join(&c);
	CHECK_EQ(waitpid(peer_pid, &st, 0), peer_pid);
	check_child(st);
}

static void never(int fd, void *arg)
{
	struct owner w;

	(void)fd;
	(void)arg;
	check_case("WEFT_SHARE=never");
	setenv("WEFT_SHARE", "never", 1);
	begin(&w);
	new_memfd(&w, F_SEAL_SHRINK);
	w.mr = reg(&w, w.p, SIZE);
	shares(0, 0);
	CHECK_EQ(order(&w, WRITE, w.p, SIZE, 1), IBV_WC_SUCCESS);
	CHECK(pattern_filled(w.p, SIZE, 1));
	CHECK_EQ(ibv_dereg_mr(w.mr), 0);
	end(&w);
}

int main(void)
{
	void (*parts[])(int fd, void *arg) = {a_memfd, a_segment, several, while_in_use, refused,
		without_fd, by_descriptor, weftd_restarts, weftd_dies, liar, never};

	setenv("WEFT_SHARE", "auto", 1);
	for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
		struct vp_child c = vp_fork(parts[i], NULL);

		vp_join(&c);
	}
	owner_dies();
	return check_result();
}
