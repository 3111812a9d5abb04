// SPDX-License-Identifier: BSD-3-Clause
/*
 * Threads that make, use and end all that a service can have at random, while it ends under them,
 * processes fork and a peer is killed: nothing crashes, and each service has its end.
 *
 * ti_chaos [ROUNDS [SEED]].  What differs between runs of a seed is the timing.
 */
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tsan.h"
#include "tests/lib/check.h"
#include "tests/prog/ti/ti_chaos.h"
#include "tests/prog/ti/ti_watch.h"

enum {
	ROUNDS = 12,
	THREADS = 4,
	ACTS = 400, /* of each thread in a round */
	LIMIT_S = 90,
};

static pid_t peer;
static atomic_bool forked;

/* ---- other processes ---- */

/* In a child that has this thread alone: it begins anew. */
static _Noreturn void be_child(void)
{
	ti_handle_t own;

	alarm(LIMIT_S);
	if (tx->disconnect(chaos_conn(), NULL, NULL) != TI_INVALID_HANDLE ||
		tx->create_ti(&own) != TI_SUCCESS || tx->destroy_ti(own, NULL, NULL) != TI_SUCCESS)
		_exit(1);
	_exit(0);
}

/* Once in a round, for it is slow. */
static void fork_one(void)
{
#ifndef WEFT_TSAN /* does not let a child start threads */
	int status;
	pid_t pid;

	if (atomic_exchange(&forked, true))
		return;
	pid = fork();
	if (!pid)
		be_child();
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("fork");
	check_child(status);
#else
	(void)be_child;
#endif
}

static void peer_asked(ti_conn_request_t *req)
{
	ti_cq_handle_t cq = req->context;
	ti_comp_info_t comp = {.h_send_cq = cq, .h_recv_cq = cq};

	if (!req->status)
		(void)tx->accept(req, UINT32_MAX, &comp, NULL);
}

/* Accepts all that connect, and connects, until it is killed. */
static int be_peer(void)
{
	static struct tx_world w;
	ti_conn_attr_t attr = {.reliable = TRUE, .connect_request_timeout = CHAOS_TIMEOUT_MS};
	ti_conn_info_t info = {.conn_request_cb = peer_asked};
	ti_conn_handle_t h;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	tx_begin(&w);
	info.context = tx_cq(&w, 65536);
	info.pdh = w.pd;
	info.src_ep = tx_endpoint(w.ti, "127.0.0.1", CHAOS_PEER_PORT);
	if (tx->listen(w.ti, &attr, &info, NULL, &h))
		return 1;
	chaos_seed((unsigned)getpid());
	for (;; usleep(5000)) {
		info.src_ep = w.any;
		info.dst_ep = tx_endpoint(w.ti, "127.0.0.1", CHAOS_PORT + chance(CHAOS_PORTS));
		(void)tx->connect(w.ti, &attr, &info, NULL, &h);
		(void)tx->destroy_endpoint(info.dst_ep);
	}
}

static void start_peer(void)
{
	char *const argv[] = {"ti_chaos", "peer", NULL};
	extern char **environ;

	if (posix_spawn(&peer, "/proc/self/exe", NULL, NULL, argv, environ))
		die("posix_spawn");
}

static void end_peer(void)
{
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
}

/* ---- rounds ---- */

static void *run(void *arg)
{
	unsigned end_at = chance(4 * ACTS * THREADS); /* in a fourth of the rounds */

	(void)arg;
	for (unsigned i = 0; i < ACTS; i++) {
		chaos_act();
		if (!chance(100))
			fork_one();
		if (i == end_at)
			chaos_end();
		if (!chance(50))
			usleep(chance(20000));
	}
	return NULL;
}

static void round_of(unsigned n)
{
	pthread_t threads[THREADS];

	check_case("round %u", n);
	watch_phase("beginning a round");
	forked = false;
	chaos_begin();
	start_peer();
	watch_phase("acting");
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, NULL))
			die("pthread_create");
	usleep(chance(300000));
	end_peer();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	watch_phase("destroy_ti");
	chaos_end();
	chaos_await_end();
	watch_forget();
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : ROUNDS;
	unsigned seed;

	if (argc > 1 && !strcmp(argv[1], "peer"))
		return be_peer();
	setenv("WEFT_LOG", "error", 0);
	seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : (unsigned)getpid();
	chaos_seed(seed);
	printf("seed %u\n", seed);
	fflush(stdout);
	watch_start(LIMIT_S);
	for (unsigned i = 0; i < rounds; i++)
		round_of(i);
	return check_result();
}
