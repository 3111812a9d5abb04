// SPDX-License-Identifier: BSD-3-Clause
/*
 * librpma from several threads: each function that its predecessors did not allow there, on one
 * peer; and one connection that all write over.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/rpma_ends.h"

enum { THREADS = 4, ROUNDS = 6, WRITES = 100, LEN = 64, ALWAYS = RPMA_F_COMPLETION_ALWAYS };

static struct rpma_peer *peer;
static struct rp_pair shared;
static struct rpma_mr_local *shared_mr;
static struct rpma_mr_remote *shared_remote;
/* What is written stays as it is: another thread may execute the request later. */
static uint64_t from[WRITES + 1], to[THREADS];

/* ---- objects ---- */

static void connect_once(const char *port)
{
	struct rpma_ep *ep = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *active = NULL, *passive = NULL;

	CHECK_EQ(rpma_ep_listen(peer, RP_ADDR, port, &ep), 0);
	CHECK_EQ(rpma_conn_req_new(peer, RP_ADDR, port, NULL, &req), 0);
	CHECK_EQ(rpma_conn_req_delete(&req), 0);
	CHECK_EQ(rpma_conn_req_new(peer, RP_ADDR, port, NULL, &req), 0);
	CHECK_EQ(rpma_conn_req_connect(&req, NULL, &active), 0);
	passive = rp_answer(ep, NULL, NULL);
	rp_expect(active, RPMA_CONN_ESTABLISHED);
	rp_expect(passive, RPMA_CONN_ESTABLISHED);
	CHECK_EQ(rpma_conn_disconnect(active), 0);
	rp_expect(passive, RPMA_CONN_CLOSED);
	CHECK_EQ(rpma_conn_delete(&passive), 0);
	CHECK_EQ(rpma_conn_delete(&active), 0);
	CHECK_EQ(rpma_ep_shutdown(&ep), 0);
}

static void *make_and_delete(void *arg)
{
	struct ibv_context *ctx;
	struct rpma_mr_local *mr;
	struct rpma_srq *srq;
	char port[16], buf[LEN];

	snprintf(port, sizeof port, "%d", 7500 + (int)(intptr_t)arg);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(
			rpma_utils_get_ibv_context(RP_ADDR, RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx), 0);
		CHECK_EQ(rpma_mr_reg(peer, buf, LEN, RPMA_MR_USAGE_RECV, &mr), 0);
		CHECK_EQ(rpma_srq_new(peer, NULL, &srq), 0);
		CHECK_EQ(rpma_srq_recv(srq, mr, 0, LEN, NULL), 0);
		CHECK_EQ(rpma_srq_delete(&srq), 0);
		CHECK_EQ(rpma_mr_dereg(&mr), 0);
		CHECK_EQ(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR), 0);
		connect_once(port);
	}
	return NULL;
}

/* ---- one connection ---- */

/* Takes any thread's completions; every write has one. */
static void take_some(unsigned *got)
{
	struct ibv_wc wc[4];
	int n = 0;

	if (!rpma_cq_get_wc(rp_cq(shared.active), 4, wc, &n))
		for (int i = 0; i < n; i++)
			CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
	*got += n;
}

static void *write_some(void *arg)
{
	size_t at = (size_t)(intptr_t)arg * sizeof to[0];
	unsigned mine = 0;

	for (uint64_t i = 1; i <= WRITES; i++) {
		int ret;

		do {
			ret = i % 2 ? rpma_write(shared.active, shared_remote, at, shared_mr,
					      i * sizeof from[0], 8, ALWAYS, NULL)
				    : rpma_atomic_write(shared.active, shared_remote, at,
					      (char *)&from[i], ALWAYS, NULL);
			if (ret)
				take_some(&mine); /* full */
		} while (ret == RPMA_E_PROVIDER);
		CHECK_EQ(ret, 0);
	}
	return (void *)(uintptr_t)mine;
}

static void run_all(void *(*fn)(void *), unsigned *sum)
{
	pthread_t threads[THREADS];
	void *ret;

	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, fn, (void *)i))
			die("pthread_create");
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &ret);
		*sum += (unsigned)(uintptr_t)ret;
	}
}

int main(void)
{
	unsigned got = 0;
	double end;

	/* Full queues are errors that are expected here. */
	CHECK_EQ(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED), 0);
	peer = rp_peer();
	check_case("objects");
	run_all(make_and_delete, &got);
	CHECK_EQ(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED), 0);
	check_case("one connection");
	rp_pair(peer, NULL, &shared);
	for (uint64_t i = 0; i <= WRITES; i++)
		from[i] = i;
	CHECK_EQ(rpma_mr_reg(peer, from, sizeof from, RPMA_MR_USAGE_WRITE_SRC, &shared_mr), 0);
	{
		struct rpma_mr_local *dst;

		CHECK_EQ(rpma_mr_reg(peer, to, sizeof to, RPMA_MR_USAGE_WRITE_DST, &dst), 0);
		shared_remote = rp_remote(dst);
		run_all(write_some, &got);
		end = now_ms() + RP_WAIT_MS;
		while (got < THREADS * WRITES && now_ms() < end)
			take_some(&got);
		CHECK_EQ(got, THREADS * WRITES);
		for (int i = 0; i < THREADS; i++)
			CHECK_EQ(to[i], WRITES);
		CHECK_EQ(rpma_mr_dereg(&dst), 0);
	}
	CHECK_EQ(rpma_mr_remote_delete(&shared_remote), 0);
	CHECK_EQ(rpma_mr_dereg(&shared_mr), 0);
	rp_pair_end(&shared);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
	return check_result();
}
