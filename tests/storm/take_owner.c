// SPDX-License-Identifier: BSD-3-Clause
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "take_storm.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/peer_device.h"

enum {
	RECEIVES = 4,
	PATIENCE = 120, /* looks whether somebody uses the memory */
	FEW_FILES = 12, /* of an attach, and of peers: not one for each take */
	MARK = 0x5a,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
	      IBV_ACCESS_REMOTE_ATOMIC
};

/* Where in a region's life its memory is taken away. */
enum kind {
	HERE,            /* live, by the thread that registers */
	THERE,           /* ... by another one */
	IN_COPY,         /* inside one of the client's own functions */
	REGISTERING,     /* in dma_map, by another thread: when it is live */
	IN_REGISTRATION, /* in dma_map itself: it fails */
	TWICE,           /* by two threads at once */
	WITH_DEREG,      /* while another thread deregisters it */
	WITH_REREG,      /* while it becomes another */
	TOO_LATE,        /* when it is gone */
};

struct owner {
	struct take_world *w;
	struct vp_end e; /* no queue pair of its own */
	struct ibv_qp *qp[TAKE_USERS];
	struct ibv_mr *mr[TAKE_REGIONS];
	uint64_t context[TAKE_REGIONS], seed;
	bool windows;
};

/* ---- the other thread ---- */

static struct {
	pthread_t thread;
	sem_t go, done;
	uint64_t context;
	bool end;
	int answer;
} taker;

static void *take_for_others(void *arg)
{
	(void)arg;
	for (;;) {
		while (sem_wait(&taker.go))
			;
		if (taker.end)
			return NULL;
		taker.answer = peer_device_take(taker.context);
		sem_post(&taker.done);
	}
}

static void start_taking(uint64_t context)
{
	taker.context = context;
	sem_post(&taker.go);
}

static void await_taken(void)
{
	while (sem_wait(&taker.done))
		;
	CHECK_EQ(taker.answer, 0);
}

/* ---- users ---- */

static struct vp_end end_of(struct owner *o, unsigned n)
{
	struct vp_end e = o->e;

	e.qp = o->qp[n];
	return e;
}

static uint8_t *store_of(unsigned i)
{
	return peer_device.store + (size_t)i * TAKE_BYTES;
}

static void *addr_of(unsigned i)
{
	return peer_device.addr + (size_t)i * TAKE_BYTES;
}

static void drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_LOC_PROT_ERR ||
			wc.status == IBV_WC_WR_FLUSH_ERR || wc.status == IBV_WC_RETRY_EXC_ERR ||
			wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_LOC_LEN_ERR);
}

/* Receives into whichever region is there; and a WRITE out of it. */
static void use_region(struct owner *o, struct vp_end *e, const struct take_user *u)
{
	const unsigned i = take_random(&o->seed) % TAKE_REGIONS;

	if (!o->mr[i])
		return;
	e->mr = o->mr[i];
	e->buf = addr_of(i);
	for (int k = 0; k < RECEIVES; k++)
		CHECK_EQ(vp_post_recv(e, 1, 0, TAKE_BYTES), 0);
	if (take_random(&o->seed) % 2)
		CHECK_EQ(vp_post_send(
				 e, 2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8192, &u->user, 0),
			0);
}

static void serve(struct owner *o, unsigned n)
{
	struct take_user *u = &o->w->user[n];
	struct vp_end e = end_of(o, n);

	if (atomic_load(&u->link) != LINK_WANTED)
		return;
	if (vp_get_state(&e) != IBV_QPS_RESET && vp_state(&e, IBV_QPS_RESET))
		die("to RESET");
	drain(o->e.scq);
	drain(o->e.rcq);
	/* It may have died meanwhile: then its successor will ask. */
	vp_connect(&e, &u->user);
	u->owner = vp_addr(&e);
	atomic_store(&u->link, LINK_READY);
	use_region(o, &e, u);
}

/* ---- regions ---- */

/* That nobody has written to it since it was taken away, and later: nobody calls its functions. */
static void check_untouched(unsigned i)
{
	CHECK(pattern_all(store_of(i), TAKE_BYTES, MARK));
	CHECK_EQ(peer_device.late, 0);
}

static void hide(struct owner *o, unsigned i)
{
	atomic_store(&o->w->region[i].rkey, 0);
}

static void end_region(struct owner *o, unsigned i)
{
	hide(o, i);
	CHECK_EQ(ibv_dereg_mr(o->mr[i]), 0);
	o->mr[i] = NULL;
}

static bool begin_region(struct owner *o, unsigned i, enum kind k)
{
	peer_device.fault = k == REGISTERING       ? PEER_TAKEN_EARLY
			    : k == IN_REGISTRATION ? PEER_TAKEN_INSIDE
						   : PEER_GOOD;
	o->mr[i] = ibv_reg_mr(o->e.pd, addr_of(i), TAKE_BYTES, ALL);
	if (!o->mr[i]) {
		CHECK_EQ(errno, EINVAL);
		CHECK(k == IN_REGISTRATION || k == REGISTERING);
		return false;
	}
	CHECK(k != IN_REGISTRATION);
	o->context[i] = peer_device.last;
	atomic_store(&o->w->region[i].addr, (uintptr_t)addr_of(i));
	atomic_store(&o->w->region[i].rkey, o->mr[i]->rkey);
	return true;
}

static uint64_t requests_done(const struct take_world *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < TAKE_USERS; i++)
		n += atomic_load(&w->user[i].done);
	return n;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
}

/* Somebody is in a function, or has used a region since; false: nobody will for a while. */
static bool await_use(const struct take_world *w)
{
	const uint64_t before = requests_done(w);

	for (int i = 0; i < PATIENCE; i++) {
		if (__atomic_load_n(&peer_device.inside, __ATOMIC_SEQ_CST))
			return true;
		if (requests_done(w) > before + 2)
			return true;
		if (i % 8 == 7)
			nap();
	}
	return false;
}

static void take_here(uint64_t context)
{
	CHECK_EQ(peer_device_take(context), 0);
}

static void take_in_copy(void)
{
	__atomic_store_n(&peer_device.take_in_copy, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < PATIENCE; i++) {
		if (!__atomic_load_n(&peer_device.take_in_copy, __ATOMIC_SEQ_CST))
			break;
		if (i % 8 == 7)
			nap();
	}
	__atomic_store_n(&peer_device.take_in_copy, false, __ATOMIC_SEQ_CST);
}

static void take_and_mark(struct owner *o, unsigned i, enum kind k)
{
	if (k == THERE || k == TWICE)
		start_taking(o->context[i]);
	if (k != THERE)
		take_here(o->context[i]);
	if (k == THERE || k == TWICE)
		await_taken();
	memset(store_of(i), MARK, TAKE_BYTES);
}

/* The context names what it was, or what it is. */
static void take_with_rereg(struct owner *o, unsigned i)
{
	start_taking(o->context[i]);
	if (ibv_rereg_mr(o->mr[i], IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL))
		CHECK_EQ(errno, EINVAL);
	await_taken();
	take_here(peer_device.last);
	take_here(o->context[i]);
	memset(store_of(i), MARK, TAKE_BYTES);
}

static void take(struct owner *o, unsigned i, enum kind k)
{
	if (k == IN_COPY)
		take_in_copy();
	if (k == WITH_DEREG) {
		start_taking(o->context[i]);
		end_region(o, i);
		await_taken();
		return;
	}
	if (k == TOO_LATE) {
		end_region(o, i);
		take_here(o->context[i]);
		return;
	}
	if (k == WITH_REREG)
		take_with_rereg(o, i);
	else
		take_and_mark(o, i, k);
}

static void note_time(struct take_world *w, uint64_t ns)
{
	uint64_t us = ns / NSEC_PER_USEC, seen = atomic_load(&w->longest_us);

	while (us > seen && !atomic_compare_exchange_weak(&w->longest_us, &seen, us))
		;
}

/* One region's memory goes, and comes again. */
static void cycle(struct owner *o)
{
	const unsigned i = take_random(&o->seed) % TAKE_REGIONS;
	const enum kind k = take_random(&o->seed) % TAKE_KINDS;
	bool used;

	check_case("taken away in kind %d, by %s", k, o->windows ? "functions" : "addresses");
	if (!o->mr[i] && !begin_region(o, i, HERE))
		return;
	used = await_use(o->w);
	if (k == REGISTERING || k == IN_REGISTRATION) {
		end_region(o, i);
		begin_region(o, i, k);
	} else {
		const uint64_t begun = clock_ns();

		take(o, i, k);
		if (k == HERE || k == THERE || k == TWICE) /* no deregistration beside */
			note_time(o->w, clock_ns() - begun);
		if (o->mr[i] && take_random(&o->seed) % 2)
			sched_yield();
		if (o->mr[i]) {
			check_untouched(i);
			end_region(o, i);
		}
	}
	atomic_fetch_add(&o->w->takes, 1);
	atomic_fetch_add(&o->w->used, used);
	atomic_fetch_add(&o->w->kinds[k], 1);
}

/* ---- its life ---- */

static unsigned open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void make(struct owner *o, uint64_t seed)
{
	const unsigned flags = seed % 2 ? PEER_DEVICE_WINDOW : 0;
	struct vp_opts opts = vp_defaults();

	if (!peer_device_open("device", TAKE_REGIONS * TAKE_BYTES, flags))
		die("the client was refused");
	o->windows = flags;
	sem_init(&taker.go, 0, 0);
	sem_init(&taker.done, 0, 0);
	if (pthread_create(&taker.thread, NULL, take_for_others, NULL))
		die("pthread_create");
	opts.len = 0;
	opts.timeout = 12;
	opts.retry_cnt = 1;
	vp_make(&o->e, vp_open(), &opts);
	o->qp[0] = o->e.qp;
	for (unsigned n = 1; n < TAKE_USERS; n++)
		o->qp[n] = vp_extra_qp(&o->e);
}

static void end(struct owner *o)
{
	for (unsigned i = 0; i < TAKE_REGIONS; i++)
		if (o->mr[i])
			end_region(o, i);
	CHECK_EQ(peer_device.puts, peer_device.gets);
	CHECK_EQ(peer_device.unmaps, peer_device.maps);
	CHECK_EQ(peer_device.releases, peer_device.acquires);
	CHECK_EQ(peer_device.late, 0);
	for (unsigned n = 1; n < TAKE_USERS; n++)
		CHECK_EQ(ibv_destroy_qp(o->qp[n]), 0);
	vp_free(&o->e);
	CHECK_EQ(ibv_close_device(o->e.ctx), 0);
	peer_device_close();
	taker.end = true;
	sem_post(&taker.go);
	pthread_join(taker.thread, NULL);
}

void take_owner(struct take_world *w, uint64_t seed)
{
	const unsigned files = open_files();
	struct owner o = {.w = w, .seed = seed};

	for (unsigned i = 0; i < TAKE_REGIONS; i++)
		hide(&o, i);
	make(&o, seed);
	while (!atomic_load(&w->stop) && !check_failures()) {
		for (unsigned n = 0; n < TAKE_USERS; n++)
			serve(&o, n);
		cycle(&o);
	}
	end(&o);
	CHECK(open_files() <= files + FEW_FILES);
}
