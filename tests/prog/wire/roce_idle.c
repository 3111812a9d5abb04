// SPDX-License-Identifier: BSD-3-Clause
/* Two programs whose queue pairs exchanged a message by packets, and do nothing: no thread wakes.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 64, SEND = 1, RECV = 2, WAIT_MS = 5000, SECONDS = 10 };

/* Not one of a sanitizer, which wakes ten times a second and has the program's name. */
static bool is_ours(const char *tid)
{
	char path[64], name[16] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%.16s/comm", tid);
	f = fopen(path, "r");
	if (f && !fgets(name, sizeof name, f))
		name[0] = '\0';
	if (f)
		fclose(f);
	return !strncmp(name, "weft-", 5);
}

/* How often the thread has slept. */
static unsigned long sleeps_of(const char *tid)
{
	char path[64], line[128];
	unsigned long n = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%.16s/status", tid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* All threads of the library. */
static unsigned long sleeps(unsigned *threads)
{
	DIR *d = opendir("/proc/self/task");
	unsigned long n = 0;
	struct dirent *e;

	if (!d)
		die("/proc/self/task");
	*threads = 0;
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.' || !is_ours(e->d_name))
			continue;
		n += sleeps_of(e->d_name);
		++*threads;
	}
	closedir(d);
	return n;
}

/* Is there a second without a wake-up, soon? */
static void falls_asleep(void)
{
	const struct timespec second = {.tv_sec = 1};
	unsigned threads, tries = 0;
	unsigned long before, after = sleeps(&threads);

	CHECK(threads > 0);
	do {
		before = after;
		nanosleep(&second, NULL);
		after = sleeps(&threads);
	} while (after != before && ++tries < SECONDS);
	CHECK_EQ(after, before);
}

static void talk(int fd)
{
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;
	struct vp_end e;

	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	CHECK_EQ(vp_post_recv(&e, RECV, 0, LEN), 0);
	vp_sync(fd);
	CHECK_EQ(vp_post_send(&e, SEND, IBV_WR_SEND, IBV_SEND_SIGNALED, LEN, LEN, NULL, 0), 0);
	CHECK(vp_poll(e.scq, &wc, WAIT_MS) && wc.status == IBV_WC_SUCCESS);
	if (e.rcq != e.scq)
		CHECK(vp_poll(e.rcq, &wc, WAIT_MS) && wc.status == IBV_WC_SUCCESS);
	vp_sync(fd);
	falls_asleep();
	vp_sync(fd);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

static void other(int fd, void *arg)
{
	(void)arg;
	talk(fd);
}

int main(void)
{
	struct vp_child child = vp_fork(other, NULL);

	talk(child.fd);
	vp_join(&child);
	return check_result();
}
