// SPDX-License-Identifier: BSD-3-Clause
/* What the system refuses, and how much there may be of everything. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

static void limit(int what, rlim_t n)
{
	struct rlimit r = {n, n};

	if (setrlimit(what, &r))
		die("setrlimit");
}

/* Sends itself something through a new pair. */
static void works(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;
	struct ibv_wc wc;

	vp_pair(&a, &b, &o);
	CHECK_EQ(vp_post_recv(&b, 1, 0, 8), 0);
	CHECK_EQ(vp_post_send(&a, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 2);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1);
	vp_pair_free(&a, &b);
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Too few descriptors: an error, not a crash; and with more it works. */
static void no_descriptors(int fd, void *arg)
{
	struct rlimit all;
	int worked = 0, n;

	(void)fd, (void)arg;
	getrlimit(RLIMIT_NOFILE, &all);
	n = count_fds();
	for (int room = 0; room < 40; room++) {
		struct rlimit r = {n + room, all.rlim_max};
		struct ibv_device **list;
		struct ibv_context *ctx = NULL;

		check_case("room for %d descriptors", room);
		if (setrlimit(RLIMIT_NOFILE, &r))
			die("setrlimit");
		errno = 0;
		list = ibv_get_device_list(NULL);
		if (list && list[0])
			ctx = ibv_open_device(list[0]);
		if (!ctx)
			CHECK(errno != 0);
		if (list)
			ibv_free_device_list(list);
		if (ctx) {
			struct ibv_comp_channel *ch[64];
			int k = 0;

			worked++;
			errno = 0;
			while (k < 64 && (ch[k] = ibv_create_comp_channel(ctx)))
				k++;
			if (k < 64)
				CHECK_EQ(errno, EMFILE);
			while (k)
				CHECK_EQ(ibv_destroy_comp_channel(ch[--k]), 0);
			CHECK_EQ(ibv_close_device(ctx), 0);
		}
	}
	CHECK(worked > 0);
	setrlimit(RLIMIT_NOFILE, &all);
	check_case("with all descriptors again");
	works();
}

/* Nor does weftd get more, which is started by whoever needs it first. */
static void no_descriptors_for_weftd(int fd, void *arg)
{
	char dir[256];
	struct ibv_device **list;

	(void)fd;
	check_case("weftd under ulimit -n %d", *(int *)arg);
	snprintf(dir, sizeof dir, "%s/of-%d", getenv("WEFT_RUNTIME_DIR"), *(int *)arg);
	CHECK_EQ(mkdir(dir, 0700), 0);
	setenv("WEFT_RUNTIME_DIR", dir, 1);
	setenv("WEFT_IDLE_EXIT", "1", 1);
	limit(RLIMIT_NOFILE, *(int *)arg);
	errno = 0;
	list = ibv_get_device_list(NULL);
	if (list)
		ibv_free_device_list(list);
	else
		CHECK_EQ(errno, EMFILE);
}

static void no_file_size(int fd, void *arg)
{
	(void)fd, (void)arg;
	check_case("ulimit -f 0");
	limit(RLIMIT_FSIZE, 0);
	works();
}

static void no_memlock(int fd, void *arg)
{
	(void)fd, (void)arg;
	check_case("ulimit -l 0");
	limit(RLIMIT_MEMLOCK, 0);
	works();
}

/* The segment needs 16 GiB of address space: without, an error that says so. */
static void no_address_space(int fd, void *arg)
{
	struct ibv_device **list;

	(void)fd, (void)arg;
	check_case("ulimit -v 4 GiB");
	limit(RLIMIT_AS, 4ull << 30);
	errno = 0;
	list = ibv_get_device_list(NULL);
	if (list && list[0]) {
		CHECK(!ibv_open_device(list[0]));
		CHECK_EQ(errno, ENOMEM);
		ibv_free_device_list(list);
	} else {
		CHECK(errno == ENOMEM || list);
	}
}

/* Whoever starts weftd passes the limit on: what that lacks is lacked here. */
static void no_address_space_for_weftd(int fd, void *arg)
{
	rlim_t gib = *(rlim_t *)arg;
	char dir[256];

	(void)fd;
	check_case("weftd under ulimit -v %llu GiB", (unsigned long long)gib);
	snprintf(dir, sizeof dir, "%s/gib-%llu", getenv("WEFT_RUNTIME_DIR"),
		(unsigned long long)gib);
	CHECK_EQ(mkdir(dir, 0700), 0);
	setenv("WEFT_RUNTIME_DIR", dir, 1);
	setenv("WEFT_IDLE_EXIT", "1", 1);
	limit(RLIMIT_AS, gib << 30);
	errno = 0;
	CHECK(!ibv_get_device_list(NULL));
	CHECK_EQ(errno, ENOMEM);
}

static void in_child(void (*fn)(int fd, void *arg))
{
	struct vp_child c = vp_fork(fn, NULL);

	vp_join(&c);
}

/* ---- many of each ---- */

static size_t resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	size_t size = 0, resident = 0;

	if (f && fscanf(f, "%zu %zu", &size, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * 4;
}

static void many_cqs(int fd, void *arg)
{
	enum { N = 10000 };
	struct ibv_context *ctx = vp_open();
	struct ibv_cq **cq = calloc(N, sizeof(struct ibv_cq *));

	(void)fd, (void)arg;
	check_case("%d CQs", N);
	for (int i = 0; i < N; i++) {
		cq[i] = ibv_create_cq(ctx, 1, NULL, NULL, 0);
		if (!cq[i])
			die("CQ number %d", i);
	}
	for (int i = 0; i < N; i++)
		CHECK_EQ(ibv_destroy_cq(cq[i]), 0);
	free(cq);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

static void many_qps(int fd, void *arg)
{
	enum { N = 65600, KIB_EACH = 24 };
	struct vp_opts o = vp_defaults();
	struct ibv_qp **qp = calloc(N, sizeof(struct ibv_qp *));
	size_t before;
	double since;
	struct vp_end e;

	(void)fd, (void)arg;
	check_case("%d QPs", N);
	o.send_wr = o.recv_wr = o.sge = 1;
	o.max_inline = 0;
	vp_make(&e, vp_open(), &o);
	before = resident_kib();
	since = now_ms();
	for (int i = 0; i < N; i++)
		qp[i] = vp_extra_qp(&e);
	printf("%d QPs: %.1f us and %.1f KiB each\n", N, (now_ms() - since) * 1e3 / N,
		(double)(resident_kib() - before) / N);
	CHECK_RANGE(now_ms() - since, 0, 20000);
	CHECK_RANGE((resident_kib() - before) / N, 0, KIB_EACH);
	{ /* the first and the last talk to each other */
		struct vp_end a = e, b = e;
		struct vp_addr to_a, to_b;
		struct ibv_wc wc;

		a.qp = qp[0];
		b.qp = qp[N - 1];
		to_a = vp_addr(&a);
		to_b = vp_addr(&b);
		vp_connect(&a, &to_b);
		vp_connect(&b, &to_a);
		CHECK_EQ(vp_post_recv(&b, 1, 0, 8), 0);
		CHECK_EQ(vp_post_send(&a, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 64, 8, NULL, 0), 0);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, 2);
		vp_want(e.rcq, &wc, IBV_WC_SUCCESS, 1);
	}
	since = now_ms();
	for (int i = 0; i < N; i++)
		CHECK_EQ(ibv_destroy_qp(qp[i]), 0);
	printf("destroyed: %.1f us each\n", (now_ms() - since) * 1e3 / N);
	CHECK_RANGE(now_ms() - since, 0, 20000);
	vp_free(&e);
	ibv_close_device(e.ctx);
	free(qp);
}

/* ---- many processes, each connected to each ---- */

enum { PROCESSES = 30 };

static void member(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct ibv_qp *qp[PROCESSES];
	int me = (int)(intptr_t)arg, left = PROCESSES;
	struct vp_end e;
	struct ibv_wc wc;

	check_case("all to all, process %d", me);
	o.cqe = 4 * PROCESSES;
	vp_make(&e, vp_open(), &o);
	for (int i = 0; i < PROCESSES; i++) {
		struct vp_end x = e;
		struct vp_addr mine;

		qp[i] = x.qp = vp_extra_qp(&e);
		mine = vp_addr(&x);
		if (send(fd, &mine, sizeof mine, 0) != sizeof mine)
			die("send");
	}
	for (int i = 0; i < PROCESSES; i++) {
		struct vp_end x = e;
		struct vp_addr peer;

		if (recv(fd, &peer, sizeof peer, MSG_WAITALL) != sizeof peer)
			die("recv");
		x.qp = qp[i];
		vp_connect(&x, &peer);
		CHECK_EQ(vp_post_recv(&x, i, (size_t)i * 64, 64), 0);
	}
	vp_sync(fd);
	for (int i = 0; i < PROCESSES; i++) {
		struct vp_end x = e;

		x.qp = qp[i];
		pattern_fill(e.buf + 8192, 64, me * PROCESSES + i);
		CHECK_EQ(vp_post_send(&x, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 8192, 64, NULL, 0), 0);
		if (!vp_want(e.scq, &wc, IBV_WC_SUCCESS, i))
			break;
	}
	for (; left; left--) {
		if (!CHECK(vp_poll(e.rcq, &wc, VP_DEADLINE_MS)))
			break;
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK(pattern_filled(
			e.buf + wc.wr_id * 64, 64, (uint32_t)wc.wr_id * PROCESSES + me));
	}
	vp_sync(fd);
	for (int i = 0; i < PROCESSES; i++)
		CHECK_EQ(ibv_destroy_qp(qp[i]), 0);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void all_to_all(void)
{
	static struct vp_addr addr[PROCESSES][PROCESSES];
	struct vp_child c[PROCESSES];

	check_case("%d processes, all to all", PROCESSES);
	for (int i = 0; i < PROCESSES; i++)
		c[i] = vp_fork(member, (void *)(intptr_t)i);
	for (int i = 0; i < PROCESSES; i++)
		for (int k = 0; k < PROCESSES; k++)
			if (recv(c[i].fd, &addr[i][k], sizeof addr[i][k], MSG_WAITALL) !=
				sizeof addr[i][k])
				die("recv");
	for (int i = 0; i < PROCESSES; i++)
		for (int k = 0; k < PROCESSES; k++)
			if (send(c[i].fd, &addr[k][i], sizeof addr[k][i], 0) != sizeof addr[k][i])
				die("send");
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < PROCESSES; i++)
			vp_hear(c[i].fd);
		for (int i = 0; i < PROCESSES; i++)
			vp_tell(c[i].fd, 0x53594e43);
	}
	for (int i = 0; i < PROCESSES; i++)
		vp_join(&c[i]);
}

/* Sanitizers need more address space than this test leaves. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LIMITS_SPACE = false };
#else
enum { LIMITS_SPACE = true };
#endif

int main(void)
{
	in_child(no_descriptors);
	for (int n = 8; n < 26; n++) {
		struct vp_child c = vp_fork(no_descriptors_for_weftd, &n);

		vp_join(&c);
	}
	in_child(no_file_size);
	in_child(no_memlock);
	if (LIMITS_SPACE)
		in_child(no_address_space);
	for (rlim_t gib = 1; LIMITS_SPACE && gib < 32; gib += 10) {
		struct vp_child c = vp_fork(no_address_space_for_weftd, &gib);

		vp_join(&c);
	}
	in_child(many_cqs);
	in_child(many_qps);
	all_to_all();
	return check_result();
}
