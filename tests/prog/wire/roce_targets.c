// SPDX-License-Identifier: BSD-3-Clause
/*
 * Targets that never call us answer RDMA READs, WRITEs and atomics: asleep in poll(2), computing on
 * all CPUs, looking at their memory alone, forked, or gone from ibv_get_cq_event by longjmp(); and
 * those which exit right after their last receive have acknowledged it.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	LEN = 5000,
	OURS = 8192,
	COUNTER = 16384,
	FLAG = 16392,
	READS = 20,
	EXITS = 20,
	SEED = 5,
	LOOK_US = 2000,
	PAUSE_US = 5000
};

/* What a target does while it is read from. */
enum habit { SLEEPS, COMPUTES, LOOKS, FORKED, CHILD_ENDED, JUMPED, HABITS };

static const char *const habits[] = {"asleep", "computing on all CPUs", "looking at its memory",
	"with a child", "after its child's end", "after a jump out of its sleep"};

static struct {
	atomic_bool over;
} * shared;

static void compute(void)
{
	while (!atomic_load_explicit(&shared->over, memory_order_relaxed))
		;
}

/* Ends with us. */
static pid_t start(void (*work)(void))
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	work();
	_exit(0);
}

static void await_end(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
}

static void compute_everywhere(void)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pid_t pids[cpus];

	for (int i = 0; i < cpus; i++)
		pids[i] = start(compute);
	compute();
	for (int i = 0; i < cpus; i++)
		await_end(pids[i]);
}

static void sleep_on(void)
{
	pause();
}

static void nothing(void)
{
}

static void look(const struct vp_end *e)
{
	const _Atomic uint64_t *flag = (const _Atomic uint64_t *)(e->buf + FLAG);

	while (!atomic_load_explicit(flag, memory_order_acquire))
		;
}

static sigjmp_buf awake;

static void jump(int sig)
{
	(void)sig;
	siglongjmp(awake, 1);
}

struct sleeper {
	pthread_t thread;
	pid_t tid;
};

/* In poll(2) without an end: it holds no lock of ours, and nothing here wakes it but the signal. */
static bool sleeps_for_good(pid_t tid)
{
	unsigned long arg[3] = {0};
	char path[64];
	long call = -1;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)tid);
	f = fopen(path, "re");
	if (!f)
		die("%s", path);
	if (fscanf(f, "%ld %lx %lx %lx", &call, &arg[0], &arg[1], &arg[2]) != 4)
		call = -1; /* it runs */
	fclose(f);
#ifdef SYS_poll
	if (call == SYS_poll)
		return (int)arg[2] == -1;
#endif
	return call == SYS_ppoll && !arg[2];
}

static void *wake(void *arg)
{
	const struct sleeper *s = arg;

	while (!sleeps_for_good(s->tid))
		usleep(LOOK_US);
	CHECK_EQ(pthread_kill(s->thread, SIGUSR1), 0);
	return NULL;
}

/* Leaves its sleep as no call of ours may see, and calls once more. */
static void jump_out(struct vp_end *e)
{
	const struct sigaction act = {.sa_handler = jump};
	static struct sleeper sleeper;
	static pthread_t waker;
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;

	sleeper = (struct sleeper){pthread_self(), gettid()};
	sigaction(SIGUSR1, &act, NULL);
	CHECK_EQ(ibv_req_notify_cq(e->rcq, 0), 0);
	if (!sigsetjmp(awake, 1)) {
		CHECK_EQ(pthread_create(&waker, NULL, wake, &sleeper), 0);
		CHECK(!ibv_get_cq_event(e->channel, &cq, &context)); /* nothing comes */
	}
	CHECK_EQ(pthread_join(waker, NULL), 0);
	CHECK_EQ(ibv_poll_cq(e->rcq, 1, &wc), 0);
}

static void live(struct vp_end *e, int fd, enum habit habit)
{
	pid_t pid = habit == FORKED ? start(sleep_on) : 0;

	if (habit == CHILD_ENDED)
		await_end(start(nothing));
	if (habit == JUMPED)
		jump_out(e);
	vp_tell(fd, habit);
	if (habit == COMPUTES)
		compute_everywhere();
	else if (habit == LOOKS)
		look(e);
	vp_hear(fd); /* asleep in poll(2), until the client has all that it wants */
	if (pid) {
		kill(pid, SIGKILL);
		await_end(pid);
	}
}

static void target(int fd, void *arg)
{
	enum habit habit = *(enum habit *)arg;
	struct vp_opts o = vp_defaults();
	struct vp_end e;

	o.channel = habit == JUMPED;
	vp_make(&e, vp_open(), &o);
	pattern_fill(e.buf, LEN, SEED);
	vp_meet(&e, fd);
	live(&e, fd, habit);
	CHECK_EQ(vp_get_state(&e), IBV_QPS_RTS); /* a call: what was placed, we see */
	CHECK(pattern_filled(e.buf + OURS, LEN, SEED + 1));
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

static void request(struct vp_end *e, const struct vp_addr *to, enum ibv_wr_opcode op, size_t from,
	uint32_t len, size_t there)
{
	struct ibv_wc wc;

	CHECK_EQ(vp_post_send(e, op, op, IBV_SEND_SIGNALED, from, len, to, there), 0);
	vp_want(e->scq, &wc, IBV_WC_SUCCESS, op);
}

static void ask(struct vp_end *e, const struct vp_addr *to, unsigned pause_us)
{
	for (unsigned i = 0; i < READS; i++) {
		memset(e->buf, 0, LEN);
		usleep(pause_us); /* the watcher goes back to sleep */
		request(e, to, IBV_WR_RDMA_READ, 0, LEN, 0);
		CHECK(pattern_filled(e->buf, LEN, SEED));
		request(e, to, IBV_WR_ATOMIC_FETCH_AND_ADD, COUNTER, 8, COUNTER);
		CHECK_EQ(*(uint64_t *)(e->buf + COUNTER), i);
	}
	pattern_fill(e->buf, LEN, SEED + 1);
	request(e, to, IBV_WR_RDMA_WRITE, 0, LEN, OURS);
	request(e, to, IBV_WR_RDMA_WRITE, 0, 8, FLAG);
}

static void with_habit(enum habit habit)
{
	struct vp_child child;
	struct vp_opts o = vp_defaults();
	struct vp_addr to;
	struct vp_end e;

	check_case("%s", habits[habit]);
	atomic_store(&shared->over, false);
	child = vp_fork(target, &habit);
	vp_make(&e, vp_open(), &o);
	to = vp_meet(&e, child.fd);
	CHECK_EQ(vp_hear(child.fd), habit);
	ask(&e, &to, habit == JUMPED ? PAUSE_US : 0);
	atomic_store(&shared->over, true);
	vp_tell(child.fd, 0);
	vp_join(&child);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

/* ---- the exit after the last receive ---- */

static void take_and_exit(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	CHECK_EQ(vp_post_recv(&e, 1, 0, LEN), 0);
	vp_sync(fd);
	vp_want(e.rcq, &wc, IBV_WC_SUCCESS, 1);
	exit(check_failures() != 0);
}

static void send_to_exiting(void)
{
	struct vp_child child = vp_fork(take_and_exit, NULL);
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;
	struct vp_end e;

	vp_make(&e, vp_open(), &o);
	vp_meet(&e, child.fd);
	vp_sync(child.fd);
	CHECK_EQ(vp_post_send(&e, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
	vp_want(e.scq, &wc, IBV_WC_SUCCESS, 1);
	vp_join(&child);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

/* Without the device open: each client and target is a process that begins. */
static void in_process(void (*run)(int fd, void *arg), void *arg)
{
	struct vp_child child = vp_fork(run, arg);

	vp_join(&child);
}

static void client(int fd, void *arg)
{
	(void)fd;
	with_habit(*(enum habit *)arg);
}

static void exits(int fd, void *arg)
{
	(void)fd;
	(void)arg;
	for (unsigned i = 0; i < EXITS; i++) {
		check_case("exit %u", i);
		send_to_exiting();
	}
}

int main(void)
{
	shared = mmap(
		NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	for (enum habit habit = 0; habit < HABITS; habit++)
		in_process(client, &habit);
	in_process(exits, NULL);
	return check_result();
}
