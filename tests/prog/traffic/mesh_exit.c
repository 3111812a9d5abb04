// SPDX-License-Identifier: BSD-3-Clause
/*
 * A mesh of processes, as collective libraries have it: a queue pair and a CQ to each of the
 * others, all CQs on one channel that does not block, poll(2) and then one event.  In each round
 * each sends to all and waits for all; after its last receive it exits at once, some way or other.
 * What a program has seen as received is a success for its sender, whatever becomes of the
 * receiver; no message is lost, nobody stands still, and none is readable without an event.
 *
 * usage: mesh_exit [RUNS [SEED]]     how each run goes is drawn from SEED
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/by_packet.h"
#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"
#include "tests/storm/differ/rnd.h"

enum {
	RANKS_MAX = 4,
	RUNS = 30,
	DEPTH_MAX = 4,
	ROUNDS_MAX = 24,
	LEN_MAX = 16 << 10,
	RUN_MS = 20000,
	ACK_CODE = 16, /* 268 ms, eight times */
	RECV_WR = 1 << 16,
};

enum ending { BY_EXIT_NOW, BY_EXIT, BY_KILL, BY_CLOSING, ENDINGS };

static const char *const ending_names[] = {"_exit()", "exit()", "kill -9", "closing all"};

/* How a run goes. */
struct plan {
	unsigned ranks, rounds, depth;
	uint32_t len;
	enum ibv_wr_opcode op;
	bool two_threads; /* one takes completions, the other posts and waits */
	bool main_posts;  /* ... receives, too */
	bool taker_leaves;
	bool hasty; /* the last sends are not waited for */
	bool eager; /* the first do not wait for the other end to be connected */
	enum ending ending;
};

/* What the ranks know of each other beside messages. */
static struct board {
	struct vp_addr addr[RANKS_MAX][RANKS_MAX]; /* of the first one's queue pair for the other */
	_Atomic unsigned made, connected;
	_Atomic unsigned got[RANKS_MAX]
			    [RANKS_MAX]; /* messages that the program has seen, of whom */
	_Atomic unsigned sent[RANKS_MAX][RANKS_MAX];
	_Atomic unsigned done[RANKS_MAX];  /* ranks that have all: 1 */
	_Atomic unsigned lies, lost, bare; /* errors of what was received, others, no event */
} * board;

static struct plan plan;
static unsigned me, failed_before; /* rank; failures of earlier runs */

/* ---- a rank ---- */

static struct vp_end end[RANKS_MAX];
static struct ibv_comp_channel *channel;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static unsigned got[RANKS_MAX], sent[RANKS_MAX];
static int stop[2]; /* a pipe that ends the thread that takes completions */

static void post_recv(unsigned from, unsigned slot)
{
	if (vp_post_recv(&end[from], RECV_WR + slot, (size_t)slot * LEN_MAX, LEN_MAX))
		die("ibv_post_recv");
}

static void post_send(unsigned to, unsigned round)
{
	bool imm = plan.op == IBV_WR_RDMA_WRITE_WITH_IMM;
	size_t off = (size_t)(DEPTH_MAX + 1) * LEN_MAX;

	if (vp_post_send(&end[to], round, plan.op, IBV_SEND_SIGNALED, (size_t)DEPTH_MAX * LEN_MAX,
		    plan.len, imm ? &board->addr[to][me] : NULL, off))
		die("ibv_post_send");
}

/* A send of ours has failed. */
static void failed(unsigned to, unsigned round, enum ibv_wc_status status)
{
	bool received = atomic_load(&board->got[to][me]) > round;

	fprintf(stderr, "rank %u: message %u to rank %u, which %s: %s\n", me, round, to,
		received ? "has received it" : "has not", ibv_wc_status_str(status));
	atomic_fetch_add(received ? &board->lies : &board->lost, 1);
}

static void completion(unsigned peer, const struct ibv_wc *wc)
{
	if (wc->wr_id < RECV_WR) {
		if (wc->status)
			failed(peer, (unsigned)wc->wr_id, wc->status);
		sent[peer]++;
		atomic_store(&board->sent[me][peer], sent[peer]);
		return;
	}
	if (wc->status) {
		fprintf(stderr, "rank %u: a receive from rank %u: %s\n", me, peer,
			ibv_wc_status_str(wc->status));
		atomic_fetch_add(&board->lost, 1);
	}
	got[peer]++;
	atomic_store(&board->got[me][peer], got[peer]);
}

static bool has_all(unsigned rounds)
{
	for (unsigned i = 0; i < plan.ranks; i++)
		if (i != me && (got[i] < rounds || (sent[i] < rounds &&
							   !(plan.hasty && rounds == plan.rounds))))
			return false;
	return true;
}

static void close_all(void)
{
	struct ibv_context *ctx = channel->context;

	for (unsigned i = 0; i < plan.ranks; i++)
		if (i != me)
			vp_free(&end[i]);
	CHECK_EQ(ibv_destroy_comp_channel(channel), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
	exit(check_failures() != failed_before);
}

static void leave(void)
{
	atomic_store(&board->done[me], 1);
	if (plan.ending == BY_KILL)
		kill(getpid(), SIGKILL);
	if (plan.ending == BY_EXIT)
		exit(0);
	_exit(0);
}

/* One event, and what has completed in its CQ. */
static void take_event(void)
{
	struct ibv_cq *cq;
	void *context;
	struct ibv_wc wc;
	unsigned peer;

	if (ibv_get_cq_event(channel, &cq, &context)) {
		atomic_fetch_add(&board->bare, 1);
		return;
	}
	peer = (unsigned)((struct vp_end *)context - end);
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		die("ibv_req_notify_cq");
	while (ibv_poll_cq(cq, 1, &wc) == 1) {
		pthread_mutex_lock(&lock);
		completion(peer, &wc);
		if (plan.taker_leaves && has_all(plan.rounds))
			leave();
		pthread_cond_broadcast(&more);
		pthread_mutex_unlock(&lock);
		if (wc.wr_id >= RECV_WR && !wc.status && !plan.main_posts)
			post_recv(peer, (unsigned)wc.wr_id - RECV_WR);
	}
}

static void *take_all(void *arg)
{
	struct pollfd p[] = {
		{.fd = channel->fd, .events = POLLIN}, {.fd = stop[0], .events = POLLIN}};

	(void)arg;
	for (;;) {
		if (poll(p, 2, -1) < 1)
			continue;
		if (p[1].revents)
			return NULL;
		take_event();
	}
}

static void await(unsigned rounds)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	pthread_mutex_lock(&lock);
	while (!has_all(rounds)) {
		if (plan.two_threads) {
			pthread_cond_wait(&more, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		if (poll(&p, 1, -1) == 1)
			take_event();
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
}

static void meet(_Atomic unsigned *count)
{
	atomic_fetch_add(count, 1);
	while (atomic_load(count) < plan.ranks)
		usleep(100);
}

static void make(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();

	o.one_cq = true;
	o.timeout = ACK_CODE;
	o.len = (size_t)(DEPTH_MAX + 2) * LEN_MAX;
	channel = ibv_create_comp_channel(ctx);
	if (!channel || fcntl(channel->fd, F_SETFL, O_NONBLOCK))
		die("a channel");
	o.on = channel;
	for (unsigned i = 0; i < plan.ranks; i++) {
		if (i == me)
			continue;
		vp_make(&end[i], ctx, &o);
		board->addr[me][i] = vp_addr(&end[i]);
	}
}

/* Receives are there before the other end can send. */
static void connect_all(void)
{
	meet(&board->made);
	for (unsigned i = 0; i < plan.ranks; i++) {
		if (i == me)
			continue;
		CHECK_EQ(vp_init(&end[i]), 0);
		for (unsigned k = 0; k < plan.depth && !plan.main_posts; k++)
			post_recv(i, k);
		CHECK_EQ(ibv_req_notify_cq(end[i].scq, 0), 0);
		CHECK_EQ(vp_rtr(&end[i], &board->addr[i][me]), 0);
		CHECK_EQ(vp_rts(&end[i]), 0);
	}
	if (!plan.eager)
		meet(&board->connected);
}

static void rank(void)
{
	pthread_t thread;

	if (pipe(stop))
		die("pipe");
	make();
	connect_all();
	if (plan.two_threads && pthread_create(&thread, NULL, take_all, NULL))
		die("pthread_create");
	for (unsigned round = 0; round < plan.rounds; round++) {
		for (unsigned i = 1; i < plan.ranks; i++)
			post_send((me + i) % plan.ranks, round);
		for (unsigned i = 1; i < plan.ranks && plan.main_posts; i++)
			post_recv((me + i) % plan.ranks, round % plan.depth);
		await(round + 1);
	}
	if (plan.ending == BY_CLOSING && plan.two_threads) {
		CHECK_EQ(write(stop[1], "", 1), 1);
		pthread_join(thread, NULL);
	}
	if (plan.ending == BY_CLOSING)
		close_all();
	leave();
}

/* ---- the test ---- */

/* Somebody else carries out what is posted, later: an agent, or the worker where functions reach.
 */
static bool by_others(void)
{
	const char *mover = getenv("WEFT_MOVER");

	return getenv("WEFT_PEER_CLIENTS") || (mover && !strcmp(mover, "agent"));
}

static void draw(struct rnd *r)
{
	static const uint32_t lens[] = {8, 64, 4096, LEN_MAX};
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM};

	plan = (struct plan){
		.ranks = rnd_range(r, 3, RANKS_MAX),
		.rounds = rnd_range(r, 1, ROUNDS_MAX),
		.depth = rnd_range(r, 1, DEPTH_MAX),
		.len = lens[rnd_below(r, 4)],
		.op = ops[rnd_below(r, 2)],
		.two_threads = rnd_once_in(r, 2),
		.ending = rnd_below(r, ENDINGS),
		.eager = rnd_once_in(r, 2),
	};
	plan.main_posts = plan.two_threads && rnd_once_in(r, 2);
	plan.taker_leaves = plan.two_threads && rnd_once_in(r, 2);
	if (by_packet()) { /* whose acknowledgement ends with its process */
		plan.ending = plan.ending & 1 ? BY_EXIT : BY_CLOSING;
		plan.taker_leaves = false;
		return;
	}
	/*
	 * What finds no receive is lost with its sender, as with an adapter; and what waits for
	 * others.
	 */
	plan.hasty = !plan.taker_leaves && !plan.main_posts && plan.depth > 1 && !by_others();
}

static void tell_standstill(const pid_t *pid)
{
	for (unsigned i = 0; i < plan.ranks; i++) {
		fprintf(stderr, "rank %u (process %d%s):", i, (int)pid[i],
			board->done[i] ? ", through" : "");
		for (unsigned k = 0; k < plan.ranks; k++)
			if (k != i)
				fprintf(stderr, "  to %u %u done, of it %u", k, board->sent[i][k],
					board->got[i][k]);
		fprintf(stderr, "\n");
	}
	if (getenv("MESH_KEEP"))
		pause();
}

static bool ended_well(unsigned i, int status)
{
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

	if (plan.ending == BY_KILL ? killed : WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	fprintf(stderr, "rank %u ended with wait status %#x\n", i, (unsigned)status);
	return false;
}

/* Waits for all ranks, and ends those that stand still. */
static void join(const pid_t *pid)
{
	double until = now_ms() + RUN_MS;
	int status;
	bool all = true;

	for (unsigned i = 0; i < plan.ranks; i++) {
		while (waitpid(pid[i], &status, WNOHANG) == 0) {
			if (now_ms() > until && all) {
				all = false;
				tell_standstill(pid);
			}
			if (!all)
				kill(pid[i], SIGKILL);
			usleep(200);
		}
		if (all)
			CHECK(ended_well(i, status));
	}
	CHECK(all);
}

static void run(unsigned n, struct rnd *r)
{
	pid_t pid[RANKS_MAX];

	draw(r);
	check_case("run %u: %u ranks, %u rounds, %u receives, %u bytes, opcode %d, %s, %s", n,
		plan.ranks, plan.rounds, plan.depth, plan.len, plan.op,
		plan.two_threads ? "two threads" : "one thread", ending_names[plan.ending]);
	memset(board, 0, sizeof *board);
	for (me = 0; me < plan.ranks; me++) {
		pid[me] = fork();
		if (pid[me] < 0)
			die("fork");
		if (!pid[me]) {
			failed_before = check_failures();
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			rank();
		}
	}
	join(pid);
	CHECK_EQ(board->lies, 0);
	CHECK_EQ(board->lost, 0);
	CHECK_EQ(board->bare, 0);
}

int main(int argc, char **argv)
{
	unsigned runs = argc > 1 ? (unsigned)atoi(argv[1]) : RUNS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	struct rnd r = rnd_of(seed, 0, 0, 0);

	board = mmap(
		NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		die("mmap");
	for (unsigned i = 0; i < runs; i++)
		run(i, &r);
	return check_result();
}
