// SPDX-License-Identifier: BSD-3-Clause
/*
 * peer_take [ROUNDS]: a client takes memory away that is registered: idle, under load, from another
 * thread, while the other process is stopped or killed.  Once its callback has returned nobody
 * touches the bytes, and requests end as documented.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/peer_device.h"
#include "tests/lib/verbs_pair.h"

enum {
	SIZE = 4 << 20,
	ROUNDS = 10000,
	LOADED = 40, /* unless ROUNDS are given */
	STOPS = 10,
	MARK = 0x5a,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
	      IBV_ACCESS_REMOTE_ATOMIC
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { FORKS = 20 }; /* each copies the page tables of a sanitizer's memory */
#else
enum { FORKS = 300 };
#endif

static int rounds = LOADED;

static void use_device(struct vp_end *e)
{
	e->mr = ibv_reg_mr(e->pd, peer_device.addr, SIZE, ALL);
	if (!e->mr)
		die("ibv_reg_mr of the device");
	e->buf = peer_device.addr;
}

static void drop_device(struct vp_end *e)
{
	CHECK_EQ(ibv_dereg_mr(e->mr), 0);
	e->mr = NULL;
	e->buf = NULL;
	CHECK_EQ(peer_device.puts, peer_device.gets);
	CHECK_EQ(peer_device.releases, peer_device.acquires);
	CHECK_EQ(peer_device.late, 0);
}

static void *take(void *arg)
{
	CHECK_EQ(peer_device_take(*(uint64_t *)arg), 0);
	return NULL;
}

static void take_in_thread(void)
{
	uint64_t context = peer_device.last;
	pthread_t t;

	if (pthread_create(&t, NULL, take, &context))
		die("pthread_create");
	pthread_join(t, NULL);
}

/* ---- what requests get ---- */

static void want_error(struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	CHECK(vp_poll(cq, &wc, VP_DEADLINE_MS));
	CHECK_EQ(wc.status, status);
}

enum use { LOCAL_USE, REMOTE_USE, RECEIVE_USE, USES };

/* b's memory is the device's, and dead. */
static void use_dead(struct vp_end *a, struct vp_end *b, enum use use, size_t len)
{
	const struct vp_addr to_a = vp_addr(a), to_b = vp_addr(b);

	check_case("use %d of %zu dead bytes", use, len);
	if (use == LOCAL_USE) {
		CHECK_EQ(vp_post_send(b, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, len, &to_a, 0),
			0);
		want_error(b->scq, IBV_WC_LOC_PROT_ERR);
	} else if (use == REMOTE_USE) {
		CHECK_EQ(vp_post_send(a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, len, &to_b, 0),
			0);
		want_error(a->scq, IBV_WC_REM_ACCESS_ERR);
	} else {
		CHECK_EQ(vp_post_send(a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, len, NULL, 0), 0);
		want_error(a->scq, IBV_WC_REM_OP_ERR);
		want_error(b->rcq, IBV_WC_LOC_PROT_ERR);
	}
}

/* Two ends in this process; b gets the device's memory instead of its own. */
static void make_pair(struct vp_end *a, struct vp_end *b)
{
	struct vp_opts o = vp_defaults();

	o.len = 1 << 20;
	vp_pair(a, b, &o);
	CHECK_EQ(ibv_dereg_mr(b->mr), 0);
	munmap(b->buf, b->len);
}

/* Another PD does not bring it back; another range does. */
static void rereg_dead(void)
{
	struct ibv_pd *other;
	struct vp_addr to;
	struct vp_end a, b;
	struct ibv_wc wc;

	check_case("ibv_rereg_mr of a dead region");
	make_pair(&a, &b);
	use_device(&b);
	CHECK_EQ(peer_device_take(peer_device.last), 0);
	other = ibv_alloc_pd(b.ctx);
	CHECK_EQ(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	CHECK_EQ(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_PD, b.pd, NULL, 0, 0), 0);
	use_dead(&a, &b, REMOTE_USE, 100);
	vp_reconnect(&a, &b);
	CHECK_EQ(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.buf, SIZE, 0), 0);
	CHECK_EQ(peer_device.unmaps, peer_device.maps - 1);
	to = vp_addr(&b);
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 100, &to, 0), 0);
	CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, 1));
	drop_device(&b);
	CHECK_EQ(ibv_dealloc_pd(other), 0);
	vp_pair_free(&a, &b);
}

static void completions(void)
{
	static const size_t lengths[] = {8, 100000};
	struct vp_end a, b;

	make_pair(&a, &b);
	for (int i = 0; i < USES * 2; i++) {
		use_device(&b);
		memset(peer_device.store, MARK, SIZE);
		vp_reconnect(&a, &b);
		if (i / 2 == RECEIVE_USE)
			CHECK_EQ(vp_post_recv(&b, 1, 0, lengths[i % 2]), 0);
		CHECK_EQ(peer_device_take(peer_device.last), 0);
		use_dead(&a, &b, i / 2, lengths[i % 2]);
		CHECK(pattern_all(peer_device.store, SIZE, MARK));
		drop_device(&b);
	}
	b.buf = NULL;
	vp_pair_free(&a, &b);
}

/* A window is of no use once the region under it is dead. */
static void window(void)
{
	struct vp_end a, b;
	struct ibv_mw *mw;
	struct ibv_mw_bind bind = {.wr_id = 7, .send_flags = IBV_SEND_SIGNALED};
	struct vp_addr to;
	struct ibv_wc wc;

	check_case("a window");
	make_pair(&a, &b);
	b.mr = ibv_reg_mr(b.pd, peer_device.addr, SIZE, ALL | IBV_ACCESS_MW_BIND);
	b.buf = peer_device.addr;
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	bind.bind_info = (struct ibv_mw_bind_info){.mr = b.mr,
		.addr = (uintptr_t)b.buf,
		.length = 4096,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	CHECK_EQ(ibv_bind_mw(b.qp, mw, &bind), 0);
	CHECK(vp_want(b.scq, &wc, IBV_WC_SUCCESS, 7));
	to = vp_addr(&b);
	to.rkey = mw->rkey;
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &to, 0), 0);
	CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, 1));
	CHECK_EQ(peer_device_take(peer_device.last), 0);
	CHECK_EQ(ibv_dereg_mr(b.mr), EBUSY);
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &to, 0), 0);
	want_error(a.scq, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	drop_device(&b);
	vp_pair_free(&a, &b);
}

/* ---- idle ---- */

static void idle(void)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	check_case("taken away idle");
	for (int i = 0; i < ROUNDS && !check_failures(); i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, peer_device.addr, SIZE, ALL);

		CHECK(mr != NULL);
		CHECK_EQ(peer_device_take(peer_device.last), 0);
		CHECK_EQ(peer_device.unmaps, peer_device.maps);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	CHECK_EQ(peer_device.releases, peer_device.acquires);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* Another thread takes it away before the registration has returned. */
static void while_registering(void)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	check_case("taken away while it is registered");
	for (int i = 0; i < 50; i++) {
		struct ibv_mr *mr;

		peer_device.fault = PEER_TAKEN_EARLY;
		mr = ibv_reg_mr(pd, peer_device.addr, SIZE, ALL);
		CHECK(mr != NULL);
		while (__atomic_load_n(&peer_device.puts, __ATOMIC_RELAXED) < peer_device.gets)
			usleep(100);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	CHECK_EQ(peer_device.releases, peer_device.acquires);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* ---- under load ---- */

/* Writes into the other's memory until that fails; tells how. */
static void write_on(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr peer;
	struct vp_end e;
	struct ibv_wc wc;

	(void)arg;
	o.len = SIZE;
	vp_make(&e, vp_open(), &o);
	memset(e.buf, 1, SIZE);
	while (vp_hear(fd)) {
		if (vp_get_state(&e) != IBV_QPS_RESET)
			CHECK_EQ(vp_state(&e, IBV_QPS_RESET), 0);
		peer = vp_meet(&e, fd);
		vp_sync(fd);
		do {
			CHECK_EQ(vp_post_send(&e, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, SIZE,
					 &peer, 0),
				0);
			if (!vp_poll(e.scq, &wc, VP_DEADLINE_MS))
				die("a request never ended");
		} while (wc.status == IBV_WC_SUCCESS);
		vp_tell(fd, wc.status);
	}
	vp_free(&e);
}

/* The load runs. */
static void begin(struct vp_end *e, int fd)
{
	use_device(e);
	memset(peer_device.store, 0, SIZE);
	if (vp_get_state(e) != IBV_QPS_RESET)
		CHECK_EQ(vp_state(e, IBV_QPS_RESET), 0);
	vp_tell(fd, 1);
	vp_meet(e, fd);
	vp_sync(fd);
	while (!*(volatile uint8_t *)peer_device.store)
		;
}

static void make_owner(struct vp_end *e)
{
	struct vp_opts o = vp_defaults();

	o.len = 0;
	vp_make(e, vp_open(), &o);
}

static void send_one(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_end e;
	struct ibv_wc wc;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	pattern_fill(e.buf, 1000, 3);
	vp_meet(&e, fd);
	vp_sync(fd);
	CHECK_EQ(vp_post_send(&e, 4, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 1000, NULL, 0), 0);
	CHECK(vp_want(e.scq, &wc, IBV_WC_SUCCESS, 4));
	vp_sync(fd);
	vp_free(&e);
}

/* What was not polled yet is in its place when the callback returns, and not put there later. */
static void arrived(void)
{
	struct vp_child c = vp_fork(send_one, NULL);
	struct vp_end e;
	struct ibv_wc wc;

	check_case("a message that has arrived");
	make_owner(&e);
	use_device(&e);
	memset(peer_device.store, 0, SIZE);
	vp_meet(&e, c.fd);
	CHECK_EQ(vp_post_recv(&e, 5, 0, 1000), 0);
	vp_sync(c.fd);
	vp_sync(c.fd);
	CHECK_EQ(peer_device_take(peer_device.last), 0);
	CHECK(pattern_filled(peer_device.store, 1000, 3));
	memset(peer_device.store, MARK, SIZE);
	CHECK(vp_want(e.rcq, &wc, IBV_WC_SUCCESS, 5));
	CHECK(pattern_all(peer_device.store, SIZE, MARK));
	drop_device(&e);
	vp_join(&c);
	vp_free(&e);
}

static void under_load(void)
{
	struct vp_child c = vp_fork(write_on, NULL);
	struct vp_end e;

	check_case("taken away under load");
	make_owner(&e);
	for (int i = 0; i < rounds && !check_failures(); i++) {
		begin(&e, c.fd);
		if (i % 2)
			take_in_thread();
		else
			CHECK_EQ(peer_device_take(peer_device.last), 0);
		memset(peer_device.store, MARK, SIZE);
		CHECK_EQ(vp_hear(c.fd), IBV_WC_REM_ACCESS_ERR);
		CHECK(pattern_all(peer_device.store, SIZE, MARK));
		drop_device(&e);
	}
	vp_tell(c.fd, 0);
	vp_join(&c);
	vp_free(&e);
}

/* ... for which nobody waits, wherever it was stopped. */
static void while_stopped(void)
{
	struct vp_child c = vp_fork(write_on, NULL);
	struct vp_end e;

	check_case("taken away while the other process is stopped");
	make_owner(&e);
	for (int i = 0; i < STOPS; i++) {
		begin(&e, c.fd);
		vp_stop(&c);
		CHECK_EQ(peer_device_take(peer_device.last), 0);
		memset(peer_device.store, MARK, SIZE);
		kill(c.pid, SIGCONT);
		CHECK_EQ(vp_hear(c.fd), IBV_WC_REM_ACCESS_ERR);
		CHECK(pattern_all(peer_device.store, SIZE, MARK));
		drop_device(&e);
	}
	vp_tell(c.fd, 0);
	vp_join(&c);
	vp_free(&e);
}

static void while_killed(void)
{
	struct vp_end e;

	check_case("taken away while the other process is killed");
	make_owner(&e);
	for (int i = 0; i < STOPS; i++) {
		struct vp_child c = vp_fork(write_on, NULL);

		begin(&e, c.fd);
		if (i % 2)
			vp_stop(&c);
		kill(c.pid, SIGKILL);
		CHECK_EQ(peer_device_take(peer_device.last), 0);
		memset(peer_device.store, MARK, SIZE);
		vp_kill_join(&c);
		CHECK(pattern_all(peer_device.store, SIZE, MARK));
		drop_device(&e);
	}
	vp_free(&e);
}

/* ---- the owner is stopped or killed, under load ---- */

static void own_on(int fd, void *arg)
{
	struct vp_end e;

	(void)arg;
	make_owner(&e);
	use_device(&e);
	vp_meet(&e, fd);
	vp_hear(fd);
	drop_device(&e);
	vp_free(&e);
}

static enum ibv_wc_status write_until(struct vp_end *e, const struct vp_addr *to, int count)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	for (int i = 0; i < count && wc.status == IBV_WC_SUCCESS; i++) {
		CHECK_EQ(vp_post_send(e, i, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, e->len, to, 0),
			0);
		if (!vp_poll(e->scq, &wc, 2 * VP_DEADLINE_MS))
			die("a request never ended");
	}
	return wc.status;
}

/* stopped: it goes on later, and what was under way does. */
static void owner_goes(bool stopped)
{
	struct vp_child c = vp_fork(own_on, NULL);
	struct vp_opts o = vp_defaults();
	struct vp_addr to;
	struct vp_end e;

	check_case("the owner is %s under load", stopped ? "stopped" : "killed");
	o.len = SIZE;
	if (!stopped)
		o.timeout = 14; /* half a second in all */
	vp_make(&e, vp_open(), &o);
	to = vp_meet(&e, c.fd);
	CHECK_EQ(write_until(&e, &to, 3), IBV_WC_SUCCESS);
	CHECK_EQ(vp_post_send(&e, 9, IBV_WR_RDMA_WRITE, 0, 0, SIZE, &to, 0), 0);
	if (stopped) {
		vp_stop(&c);
		usleep(1000);
		kill(c.pid, SIGCONT);
		CHECK_EQ(write_until(&e, &to, 3), IBV_WC_SUCCESS);
		vp_tell(c.fd, 1);
		vp_join(&c);
	} else {
		vp_kill_join(&c);
		CHECK_EQ(write_until(&e, &to, 3), IBV_WC_RETRY_EXC_ERR);
	}
	vp_free(&e);
}

/* ---- inside a copy ---- */

/* Taken away by the very function that is to reach it: that does not wait for itself. */
static void in_copy(void)
{
	struct vp_addr to;
	struct vp_end a, b;
	const size_t lengths[] = {8, 200000};

	check_case("taken away inside a copy");
	make_pair(&a, &b);
	for (int i = 0; i < 4; i++) {
		use_device(&b);
		vp_reconnect(&a, &b);
		to = vp_addr(&b);
		peer_device.inside_answer = -1;
		peer_device.take_in_copy = true;
		CHECK_EQ(vp_post_send(&a, 1, i / 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
				 IBV_SEND_SIGNALED, 0, lengths[i % 2], &to, 0),
			0);
		want_error(a.scq, IBV_WC_REM_ACCESS_ERR);
		CHECK_EQ(peer_device.inside_answer, 0);
		drop_device(&b);
	}
	b.buf = NULL;
	vp_pair_free(&a, &b);
}

/* ---- a forked child ---- */

/* A PD of the parent, and no daemon to be asked. */
static void without_fabric(struct ibv_pd *pd)
{
	const unsigned releases = peer_device.releases;
	const char *dir = getenv("WEFT_RUNTIME_DIR");
	char *kept = dir ? strdup(dir) : NULL;

	setenv("WEFT_RUNTIME_DIR", "/proc/none", 1);
	CHECK(ibv_reg_mr(pd, peer_device.addr, SIZE, ALL) == NULL);
	CHECK_EQ(peer_device.releases, releases + 1);
	if (kept)
		setenv("WEFT_RUNTIME_DIR", kept, 1);
	else
		unsetenv("WEFT_RUNTIME_DIR");
	free(kept);
}

static void child(struct ibv_mr *mr)
{
	const struct peer_device before = peer_device;
	struct ibv_context *ctx;
	struct ibv_mr *own;
	struct ibv_pd *pd = mr->pd;

	CHECK_EQ(peer_device_take(before.last), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(peer_device.unmaps, before.unmaps);
	CHECK_EQ(peer_device.releases, before.releases);
	without_fabric(pd);
	ctx = vp_open();
	pd = ibv_alloc_pd(ctx);
	own = ibv_reg_mr(pd, peer_device.addr, SIZE, ALL);
	CHECK(own != NULL);
	CHECK_EQ(peer_device_take(peer_device.last), 0);
	CHECK_EQ(peer_device.unmaps, before.unmaps + 2);
	CHECK_EQ(ibv_dereg_mr(own), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
	peer_device_close();
}

static void inherited(int fd, void *arg)
{
	(void)fd;
	child(arg);
}

static void fork_with_region(void)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, peer_device.addr, SIZE, ALL);
	struct vp_child c;

	check_case("a forked child");
	c = vp_fork(inherited, mr);
	vp_join(&c);
	CHECK_EQ(peer_device_take(peer_device.last), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(peer_device.releases, peer_device.acquires);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* Another process writes all the time; in no child the parent's threads were in a function. */
static void fork_under_load(void)
{
	struct vp_child c = vp_fork(write_on, NULL);
	struct vp_end e;
	int status;

	check_case("forks under load");
	make_owner(&e);
	begin(&e, c.fd);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(__atomic_load_n(&peer_device.inside, __ATOMIC_SEQ_CST));
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	CHECK_EQ(peer_device_take(peer_device.last), 0);
	CHECK_EQ(vp_hear(c.fd), IBV_WC_REM_ACCESS_ERR);
	drop_device(&e);
	vp_tell(c.fd, 0);
	vp_join(&c);
	vp_free(&e);
}

static void all_of(unsigned flags)
{
	if (!peer_device_open("device", SIZE, flags))
		die("the client was refused");
	completions();
	arrived();
	rereg_dead();
	window();
	idle();
	while_registering();
	under_load();
	while_stopped();
	while_killed();
	owner_goes(true);
	owner_goes(false);
	if (flags & PEER_DEVICE_WINDOW)
		in_copy();
	fork_under_load();
	fork_with_region();
	peer_device_close();
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	all_of(0);
	all_of(PEER_DEVICE_WINDOW);
	return check_result();
}
