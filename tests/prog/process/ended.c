// SPDX-License-Identifier: BSD-3-Clause
/*
 * weft status names what the last 64 processes that ended had counted and were refused, however
 * they ended, and whatever they had written into their segments.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/seg/seg.h"
#include "tests/lib/check.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

enum { KEPT = 64, LEN = 1 << 16, BECOMES_MS = 15000 };

/* ---- processes that end ---- */

/* A request that is refused at home, and regions that no peer may map. */
static void be_refused(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;
	struct vp_addr to_b;
	struct ibv_wc wc;

	o.len = LEN;
	o.mr_access = IBV_ACCESS_LOCAL_WRITE;
	vp_pair(&a, &b, &o);
	to_b = vp_addr(&b);
	a.mr->lkey ^= 0x100000;
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, &to_b, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_LOC_PROT_ERR, 1);
}

static void refused(int fd, void *arg)
{
	(void)fd;
	(void)arg;
	be_refused();
}

static void opens(int fd, void *arg)
{
	(void)fd;
	(void)arg;
	vp_open();
}

/* Says that it is done, and waits to be killed. */
static void be_killed(int fd)
{
	if (check_failures())
		exit(1);
	vp_tell(fd, 1);
	for (;;)
		pause();
}

static void killed(int fd, void *arg)
{
	(void)arg;
	be_refused();
	be_killed(fd);
}

/* The segment that weftd made for this process. */
static struct seg *own_segment(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct seg *own = NULL;
	char line[512], rights[5];
	unsigned long at;

	while (f && !own && fgets(line, sizeof line, f)) {
		if (!strstr(line, "weft-segment") ||
			sscanf(line, "%lx-%*x %4s", &at, rights) != 2 || rights[1] != 'w')
			continue;
		own = (struct seg *)at;
		own = own->hdr.pid == getpid() ? own : NULL;
	}
	if (f)
		fclose(f);
	return own;
}

/* All that it has counted is nonsense, and so is how much of it there is. */
static void scribbles(int fd, void *arg)
{
	struct seg *seg;

	(void)arg;
	be_refused();
	seg = own_segment();
	if (CHECK(seg != NULL)) {
		memset((void *)seg->counters, 0xff, sizeof seg->counters);
		memset((void *)seg->hdr.not_mapped, 0xff, sizeof seg->hdr.not_mapped);
		memset(seg->hdr.comm, 0xff, sizeof seg->hdr.comm);
		atomic_store(&seg->hdr.slots_used, ~0u);
	}
	be_killed(fd);
}

static pid_t end(void (*fn)(int, void *))
{
	struct vp_child c = vp_fork(fn, NULL);

	vp_join(&c);
	return c.pid;
}

static pid_t end_by_kill(void (*fn)(int, void *))
{
	struct vp_child c = vp_fork(fn, NULL);

	vp_hear(c.fd);
	vp_kill_join(&c);
	return c.pid;
}

/* ---- what is told of them ---- */

/* Until weftd has seen that the process is gone. */
static void await_named(pid_t pid)
{
	double late = now_ms() + BECOMES_MS;

	while (status_of_ended(pid, NULL, NULL) < 0 && now_ms() < late)
		usleep(5000);
	CHECK(status_of_ended(pid, NULL, NULL) >= 0);
}

static void await_gone(pid_t pid)
{
	double late = now_ms() + BECOMES_MS;

	while (status_of_ended(pid, NULL, NULL) >= 0 && now_ms() < late)
		usleep(5000);
	CHECK_EQ(status_of_ended(pid, NULL, NULL), -1);
}

static void await_rows(int n)
{
	double late = now_ms() + BECOMES_MS;

	while (status_ended_rows() != n && now_ms() < late)
		usleep(5000);
	CHECK_EQ(status_ended_rows(), n);
}

static void has_refusals(pid_t pid)
{
	CHECK_EQ(status_of_ended(pid, "counters", "err_loc_prot"), 1);
	CHECK_EQ(status_of_ended(pid, "counters", "err_rnr"), 0);
	CHECK(status_of_ended(pid, "not_mapped", "no_remote_right") > 0);
}

int main(void)
{
	pid_t first, last, wild;

	setenv("WEFT_IDLE_EXIT", "600", 1);
	setenv("WEFT_SHARE", "auto", 1);
	check_case("one that ended");
	first = end(refused);
	await_named(first);
	has_refusals(first);

	check_case("one that was killed");
	last = end_by_kill(killed);
	await_named(last);
	has_refusals(last);

	check_case("one that wrote nonsense");
	wild = end_by_kill(scribbles);
	await_named(wild);
	CHECK(status_of_ended(wild, "counters", "err_rnr") != 0);
	has_refusals(first);
	has_refusals(last);

	check_case("64 are kept");
	for (int i = 3; i < KEPT; i++)
		end(opens);
	await_rows(KEPT);
	has_refusals(first);
	end(opens);
	await_gone(first);
	await_rows(KEPT);
	has_refusals(last);
	return check_result();
}
