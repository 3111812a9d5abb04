// SPDX-License-Identifier: BSD-3-Clause
/* Attaching, finding each other, dying. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdv/admin.h"
#include "rdv/claim.h"
#include "rdv/rdv.h"
#include "tests/prog/rdv/help.h"

enum { KIDS = 3, QPN_BLOCK = 256 };

static int attach_detach(void)
{
	struct kid a = kid_start(), b = kid_start();
	long id, qpn;

	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), 0);
	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), 0);
	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), 0);
	id = kid_do(&a, ASK_ID, 0, 0);
	CHECK(id > 0 && id < 1 << 24 && id != kid_do(&b, ASK_ID, 0, 0));
	CHECK_EQ(status_of(NULL, "counts.processes"), 2);
	qpn = kid_do(&a, DO_LEASE, 0, 0);
	CHECK(qpn >= QPN_BLOCK && qpn % QPN_BLOCK == 0);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), id);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn + QPN_BLOCK - 1, 0), id);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn ^ 0x800000, 0), -EADDRNOTAVAIL);
	CHECK_EQ(kid_do(&b, DO_FIND, 0, 0), -ENOENT);
	kid_end(&a, 0);
	CHECK(status_becomes(NULL, "counts.processes", 1));
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), -ENOENT);
	CHECK_EQ(kid_do(&b, DO_FIND_DEAD, 0, 0), 1);
	kid_end(&b, 0);
	CHECK(all_zero(NULL));
	return 0;
}

static int channels(void)
{
	struct kid a = kid_start(), b = kid_start();
	long id;

	id = kid_do(&a, ASK_ID, 0, 0);
	CHECK_EQ(kid_do(&a, DO_CHANNEL, 1, 0), 0);
	CHECK_EQ(kid_do(&a, DO_CHANNEL, 2, 0), 0);
	CHECK_EQ(kid_do(&a, DO_CHANNEL, 2, 0), -EINVAL);
	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), 0);
	CHECK_EQ(kid_do(&b, DO_FIRE, id, 2), 0);
	CHECK_EQ(kid_do(&a, DO_READ, 2, 0), 0);
	CHECK_EQ(kid_do(&a, DO_READ, 2, 500), -EAGAIN);
	CHECK_EQ(kid_do(&b, DO_FIRE, id, 0), 0);
	CHECK_EQ(kid_do(&a, DO_READ, 0, 0), 0);
	CHECK_EQ(status_of(NULL, "counts.channels"), 2);
	kid_end(&a, SIGKILL);
	kid_end(&b, SIGKILL);
	CHECK(all_zero(NULL));
	return 0;
}

static int kill_client(void)
{
	struct kid a = kid_start(), b = kid_start();
	long qpn = kid_do(&a, DO_LEASE, 0, 0), again;

	CHECK(qpn > 0);
	CHECK_EQ(kid_do(&a, DO_CHANNEL, 1, 0), 0);
	CHECK(kid_do(&b, DO_FIND, qpn, 0) > 0);
	CHECK_EQ(kid_do(&b, DO_FIND_DEAD, 0, 0), 0);
	kid_end(&a, SIGKILL);
	CHECK(status_becomes(NULL, "counts.leases", 0));
	CHECK_EQ(kid_do(&b, DO_FIND_DEAD, 0, 0), 1);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), -ENOENT);
	again = kid_do(&b, DO_LEASE, 0, 0);
	CHECK(again > 0 && again != qpn);
	kid_end(&b, SIGKILL);
	CHECK(all_zero(NULL));
	return 0;
}

/* The child holds the parent's socket: only the pidfd tells. */
static int fork_parent_killed(void)
{
	struct kid a = kid_start();
	long id = kid_do(&a, ASK_ID, 0, 0), child, epoch;

	CHECK(id > 0 && kid_do(&a, DO_LEASE, 0, 0) > 0);
	epoch = kid_do(&a, ASK_EPOCH, 0, 0);
	child = kid_do(&a, DO_FORK, 0, 0);
	CHECK(child > 0 && child != a.pid);
	CHECK_EQ(kill(a.pid, SIGKILL), 0);
	waitpid(a.pid, NULL, 0);
	CHECK(all_zero(NULL));
	CHECK(kid_do(&a, ASK_EPOCH, 0, 0) > epoch);
	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), 0);
	CHECK(kid_do(&a, ASK_ID, 0, 0) != id);
	CHECK(kid_do(&a, DO_LEASE, 0, 0) > 0);
	kid_send(&a, DO_EXIT, 0, 0);
	CHECK(all_zero(NULL));
	close(a.to);
	close(a.from);
	return 0;
}

static int forked_child(void)
{
	const struct rdv_attach *at;
	uint32_t id, *words, first;
	int status;
	pid_t pid;

	CHECK_EQ(rdv_attach(&at), 0);
	CHECK_EQ(rdv_lease_qpns(&first), 0);
	id = at->attach_id;
	words = (uint32_t *)at->seg;
	CHECK(words[0] != 0);
	pid = fork();
	if (pid == 0) {
		CHECK_EQ(words[0], 0);
		words[0] = 1; /* the child's alone */
		CHECK_EQ(rdv_attach(&at), 0);
		CHECK(at->attach_id != id && (uint32_t *)at->seg != words);
		CHECK_EQ(rdv_return_qpns(first), -ENOENT);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	CHECK(words[0] > 1);
	CHECK_EQ(rdv_attach(&at), 0);
	CHECK_EQ(at->attach_id, id);
	CHECK_EQ(rdv_return_qpns(first), 0);
	return 0;
}

/* execve keeps the pid, but nothing of the program that was attached. */
static int exec_is_death(void)
{
	struct kid a = kid_start();

	CHECK(kid_do(&a, DO_LEASE, 0, 0) > 0);
	kid_send(&a, DO_EXEC, 0, 0);
	CHECK(all_zero(NULL));
	CHECK_EQ(kill(a.pid, 0), 0);
	kid_end(&a, SIGKILL);
	return 0;
}

static int weftd_killed(void)
{
	long id[KIDS], qpn[KIDS], hub;
	struct kid k[KIDS];
	pid_t old, new;

	for (int i = 0; i < KIDS; i++) {
		k[i] = kid_start();
		id[i] = kid_do(&k[i], ASK_ID, 0, 0);
		qpn[i] = kid_do(&k[i], DO_LEASE, 0, 0);
		CHECK(id[i] > 0 && qpn[i] > 0);
		CHECK_EQ(kid_do(&k[i], DO_CHANNEL, 1, 0), 0);
	}
	hub = kid_do(&k[0], ASK_HUB, 0, 0);
	old = weftd_pid(NULL);
	CHECK(old > 0);
	CHECK_EQ(kill(old, SIGKILL), 0);
	for (int i = 0; i < KIDS; i++) /* each comes back with its own next call */
		CHECK_EQ(kid_do(&k[i], DO_FIND, qpn[i], 0), id[i]);
	new = weftd_pid(NULL);
	CHECK(new > 0 && new != old);
	for (int i = 0; i < KIDS; i++) {
		struct kid *next = &k[(i + 1) % KIDS];

		CHECK_EQ(kid_do(&k[i], ASK_ID, 0, 0), id[i]);
		CHECK(kid_do(&k[i], ASK_HUB, 0, 0) != hub);
		CHECK_EQ(kid_do(next, DO_FIND, qpn[i], 0), id[i]);
		CHECK_EQ(kid_do(next, DO_FIRE, id[i], 1), 0);
		CHECK_EQ(kid_do(&k[i], DO_READ, 1, 0), 0);
		for (int blocks = 0; blocks < CLAIM_QPNS / RDV_QPN_BLOCK; blocks++)
			CHECK(kid_do(&k[i], DO_LEASE, 0, 0) > 0);
	}
	CHECK_EQ(status_of(NULL, "counts.leases"), 2 * KIDS);
	CHECK_EQ(status_of(NULL, "counts.channels"), KIDS);
	for (int i = 0; i < KIDS; i++)
		kid_end(&k[i], SIGKILL);
	CHECK(all_zero(NULL));
	return 0;
}

/* One-way messages find the way back, too: a sleeper relies on them. */
static int weftd_killed_then_fire(void)
{
	struct kid a = kid_start(), b = kid_start();
	long id = kid_do(&a, ASK_ID, 0, 0);

	CHECK_EQ(kid_do(&a, DO_CHANNEL, 1, 0), 0);
	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), 0);
	weftd_kill(NULL);
	CHECK(kid_do(&a, DO_LEASE, 0, 0) > 0);
	CHECK_EQ(kid_do(&b, DO_FIRE, id, 1), 0);
	CHECK_EQ(kid_do(&a, DO_READ, 1, 0), 0);
	kid_end(&a, 0);
	kid_end(&b, 0);
	return 0;
}

/* Who looks after weftd is found through its successor, without a call of its own. */
static int weftd_killed_then_found(void)
{
	struct kid a = kid_start(), b = kid_start();
	long id = kid_do(&a, ASK_ID, 0, 0), qpn = kid_do(&a, DO_LEASE, 0, 0);
	pid_t pid = weftd_pid(NULL);

	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), 0);
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
	CHECK_EQ(weftd_pid(NULL), pid);
	weftd_kill(NULL);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), -ENOENT); /* starts the next */
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), id);
	weftd_kill(NULL);
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0); /* starts the next */
	CHECK(weftd_pid(NULL) > 0);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), id);
	kid_end(&a, 0);
	kid_end(&b, 0);
	return 0;
}

/* One that was told to go is not started again by those who only look. */
static int weftd_down_then_found(void)
{
	struct kid a = kid_start(), b = kid_start();
	long id = kid_do(&a, ASK_ID, 0, 0), qpn = kid_do(&a, DO_LEASE, 0, 0);

	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), 0);
	CHECK_EQ(rdv_shutdown(NULL), 0);
	/* Its sockets close one after the other. */
	for (int i = 0; i < 1000 && kid_do(&a, DO_CHECK, 0, 0) == 0; i++)
		usleep(1000);
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), -EAGAIN);
	CHECK_EQ(weftd_pid(NULL), 0);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), -ENOENT);
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), id);
	kid_end(&a, 0);
	kid_end(&b, 0);
	return 0;
}

static int closed_fds(void)
{
	struct kid a = kid_start(), b = kid_start();
	long id = kid_do(&a, ASK_ID, 0, 0), qpn = kid_do(&a, DO_LEASE, 0, 0);

	CHECK(id > 0 && qpn > 0);
	CHECK_EQ(kid_do(&a, DO_CLOSE_FDS, 0, 0), 0);
	usleep(100000);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), id);
	CHECK_EQ(kid_do(&a, DO_FIND, qpn, 0), id);
	CHECK_EQ(kid_do(&a, ASK_ID, 0, 0), id);
	CHECK_EQ(kid_do(&b, DO_FIRE, id, 0), 0);
	CHECK_EQ(kid_do(&a, DO_READ, 0, 0), 0);
	kid_end(&a, 0);
	kid_end(&b, 0);
	CHECK(all_zero(NULL));
	return 0;
}

/* As a program that becomes a daemon between finding its device and opening it. */
static int revived_fds(void)
{
	struct kid a = kid_start(), b = kid_start();
	long id = kid_do(&a, ASK_ID, 0, 0);

	CHECK(id > 0);
	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), 0);
	CHECK_EQ(kid_do(&a, DO_REVIVE, 0, 0), 0);
	CHECK_EQ(kid_do(&a, DO_CLOSE_FDS, 0, 0), 0);
	CHECK_EQ(kid_do(&a, DO_REVIVE, 0, 0), 0);
	CHECK_EQ(kid_do(&a, ASK_ID, 0, 0), id);
	CHECK_EQ(kid_do(&b, DO_FIRE, id, 0), 0);
	CHECK_EQ(kid_do(&a, DO_READ, 0, 0), 0);
	kid_end(&a, 0);
	kid_end(&b, 0);
	CHECK(all_zero(NULL));
	return 0;
}

static void *call_often(void *arg)
{
	uint32_t first;

	for (int i = 0; i < 200; i++) {
		int ret = rdv_lease_qpns(&first);

		if (!ret)
			ret = rdv_return_qpns(first);
		if (ret) {
			fprintf(stderr, "call %d failed: %s\n", i, strerror(-ret));
			return arg;
		}
		usleep(1000);
	}
	return NULL;
}

static int threads_and_restarts(void)
{
	const struct rdv_attach *at;
	pthread_t t[4];
	void *failed;

	CHECK_EQ(rdv_attach(&at), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, call_often, t), 0);
	for (int i = 0; i < 3; i++) {
		pid_t pid;

		usleep(50000);
		pid = weftd_pid(NULL);
		if (pid > 0)
			kill(pid, SIGKILL);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &failed);
		CHECK(!failed);
	}
	CHECK_EQ(status_of(NULL, "counts.leases"), 0);
	CHECK_EQ(status_of(NULL, "counts.processes"), 1);
	return 0;
}

const struct test_case life_cases[] = {
	{"attach_detach", attach_detach},
	{"channels", channels},
	{"kill_client", kill_client},
	{"fork_parent_killed", fork_parent_killed},
	{"forked_child", forked_child},
	{"exec_is_death", exec_is_death},
	{"weftd_killed", weftd_killed},
	{"weftd_killed_then_fire", weftd_killed_then_fire},
	{"weftd_killed_then_found", weftd_killed_then_found},
	{"weftd_down_then_found", weftd_down_then_found},
	{"closed_fds", closed_fds},
	{"revived_fds", revived_fds},
	{"threads_and_restarts", threads_and_restarts},
	{NULL, NULL},
};
