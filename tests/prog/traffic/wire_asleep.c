// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program that waits in a sleep of its own while weftd is killed: its watcher comes to a new
 * weftd, which then steers its packets, and both ends go on; also where the first starts of one
 * fail.  Started with WEFT_WIRE=always.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/weftd_from_outside.h"

enum {
	LEN = 4096,
	KILLS = 3,
	WAIT_MS = 20000,
	IN_VAIN = 5, /* starts, one after the other; one call tries fewer */
};

static char starter[512];

/* weftd is started by a script, which counts that, and fails while a file is there. */
static void make_starter(void)
{
	const char *weftd = getenv("WEFT_DAEMON");
	char path[600];
	FILE *f;

	snprintf(path, sizeof path, "%s/start", getenv("WEFT_RUNTIME_DIR"));
	if (mkdir(path, 0700))
		die("mkdir");
	snprintf(starter, sizeof starter, "%.500s/weftd", path);
	f = fopen(starter, "w");
	if (!f)
		die("no script");
	fprintf(f,
		"#!/bin/sh\nprintf x >>'%s.calls'\n[ ! -e '%s.broken' ] || exit 1\nexec '%s' "
		"\"$@\"\n",
		starter, starter, weftd);
	fclose(f);
	snprintf(path, sizeof path, "ln -s '%.*s' '%.*s'", (int)strlen(weftd) - 1, weftd,
		(int)strlen(starter) - 1, starter);
	if (chmod(starter, 0700) || system(path) || setenv("WEFT_DAEMON", starter, 1))
		die("no starter");
}

static long starts(void)
{
	char path[600];
	struct stat st;

	snprintf(path, sizeof path, "%s.calls", starter);
	return stat(path, &st) ? 0 : st.st_size;
}

/* Nobody of the program calls us: its watcher alone tries, again and again. */
static void fail_starts(const char *broken)
{
	const double end = now_ms() + WAIT_MS;
	FILE *f = fopen(broken, "w");
	const long before = starts();

	if (!f)
		die("no file");
	fclose(f);
	weftd_kill(weftd_pid());
	while (starts() < before + IN_VAIN && now_ms() < end)
		usleep(10000);
	CHECK(starts() >= before + IN_VAIN);
	unlink(broken);
}

static void send_one(struct vp_end *a, struct vp_end *b, uint64_t id)
{
	struct ibv_wc wc;

	a->buf[0] = id;
	CHECK_EQ(vp_post_recv(b, id, 0, LEN), 0);
	CHECK_EQ(vp_post_send(a, id, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
	CHECK(vp_want(a->scq, &wc, IBV_WC_SUCCESS, id));
	CHECK(vp_want(b->rcq, &wc, IBV_WC_SUCCESS, id));
	CHECK_EQ(b->buf[0], (uint8_t)id);
}

/* weft status starts none; its path is weftd's but for the last letter. */
static bool has_come(void)
{
	return system("\"${WEFT_DAEMON%d}\" status --json 2>/dev/null | grep -q '\"waiting\": 0' "
		      "&& \"${WEFT_DAEMON%d}\" status --json | grep -q '\"index\": 1,'") == 0;
}

static void await_weftd(void)
{
	const double end = now_ms() + WAIT_MS;

	while (!has_come() && now_ms() < end)
		usleep(10000);
	CHECK(has_come());
}

int main(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;
	char broken[600];

	make_starter();
	snprintf(broken, sizeof broken, "%s.broken", starter);
	o.len = LEN;
	vp_pair(&a, &b, &o);
	send_one(&a, &b, 1);
	for (int i = 0; i < KILLS; i++) {
		weftd_kill(weftd_pid());
		await_weftd();
		send_one(&a, &b, 2 + i);
	}
	fail_starts(broken);
	await_weftd();
	send_one(&a, &b, 2 + KILLS);
	vp_pair_free(&a, &b);
	return check_result();
}
