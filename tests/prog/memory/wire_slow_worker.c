// SPDX-License-Identifier: BSD-3-Clause
/*
 * A message by packets into memory that only functions reach, whose worker has no CPU for long: it
 * is kept until the worker comes.  UC, which does not send again, shows it.  (As RC, such a message
 * cost its sender a retry, and many of them the connection.)
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/howto/memory/toy.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 3000, SEED = 7, STOPPED_MS = 200 };
#define TOY_IOVA 0x5a5a00000000ull

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.type = IBV_QPT_UC;
	o.len = LEN;
	return o;
}

/* ---- the one that is sent to ---- */

static void receive(struct vp_end *e, struct toy *t, int fd, uint32_t seed)
{
	struct ibv_sge sge = {.addr = TOY_IOVA, .length = LEN, .lkey = t->key};
	struct ibv_recv_wr wr = {.wr_id = seed, .sg_list = &sge, .num_sge = 1}, *bad;
	uint8_t bytes[LEN];
	struct ibv_wc wc;

	CHECK_EQ(ibv_post_recv(e->qp, &wr, &bad), 0);
	vp_sync(fd);
	vp_want(e->rcq, &wc, IBV_WC_SUCCESS, seed);
	toy_get(t, 0, bytes, LEN);
	CHECK(pattern_filled(bytes, LEN, seed));
	vp_sync(fd);
}

static void run_far(int fd, void *arg)
{
	struct vp_opts o = options();
	static struct toy t;
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	CHECK_EQ(toy_reg(&t, e.pd, LEN, TOY_IOVA, o.mr_access), 0);
	vp_meet(&e, fd);
	vp_sync(fd);
	receive(&e, &t, fd, SEED);
	receive(&e, &t, fd, SEED + 1);
}

/* ---- its worker ---- */

static bool has_line(pid_t pid, const char *task, const char *file, const char *what)
{
	char path[300], line[300] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%s/%s", pid, task, file);
	f = fopen(path, "r");
	if (!f)
		return false;
	while (!strstr(line, what) && fgets(line, sizeof line, f))
		;
	fclose(f);
	return strstr(line, what);
}

/* The thread once it sleeps, 0 as long as it does not. */
static pid_t sleeping_worker(pid_t pid)
{
	char path[64];
	struct dirent *d;
	pid_t tid = 0;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !tid && (d = readdir(dir)))
		if (has_line(pid, d->d_name, "comm", "weft-worker") &&
			has_line(pid, d->d_name, "status", "State:\tS"))
			tid = atoi(d->d_name);
	if (dir)
		closedir(dir);
	return tid;
}

static void nap(unsigned ms)
{
	const struct timespec t = {.tv_nsec = ms * 1000000l};

	nanosleep(&t, NULL);
}

static pid_t stop_worker(pid_t pid)
{
	pid_t tid;
	int status;

	while (!(tid = sleeping_worker(pid)))
		nap(1);
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0) {
		printf("ptrace: %s\n", strerror(errno));
		exit(77);
	}
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) != tid)
		die("ptrace");
	return tid;
}

/* ---- the one that sends ---- */

static void send_one(struct vp_end *e, int fd, uint32_t seed)
{
	struct ibv_sge sge = vp_sge(e, 0, LEN);
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED};

	vp_sync(fd);
	pattern_fill(e->buf, LEN, seed);
	CHECK_EQ(vp_run(e, &wr), IBV_WC_SUCCESS);
}

int main(void)
{
	struct vp_child far = vp_fork(run_far, NULL);
	struct vp_opts o = options();
	struct vp_end e;
	pid_t worker;

	vp_make(&e, vp_open(), &o);
	vp_meet(&e, far.fd);
	vp_sync(far.fd);
	send_one(&e, far.fd, SEED); /* the worker is there from now on */
	vp_sync(far.fd);
	worker = stop_worker(far.pid);
	send_one(&e, far.fd, SEED + 1);
	nap(STOPPED_MS);
	CHECK_EQ(ptrace(PTRACE_DETACH, worker, 0, 0), 0);
	vp_sync(far.fd);
	vp_join(&far);
	vp_free(&e);
	return check_result();
}
