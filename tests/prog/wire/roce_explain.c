// SPDX-License-Identifier: BSD-3-Clause
/* The log names the machine that did not answer, and what is wrong with a path. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 8, TIMEOUT_4_MS = 10 };

static const char nobody[] = "::ffff:198.51.100.77"; /* of the link, but no host has it */

static void ask_nobody(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr to = {.qpn = 0x1234};
	struct ibv_wc wc;
	struct vp_end e;

	o.timeout = TIMEOUT_4_MS;
	o.retry_cnt = 1;
	vp_make(&e, vp_open(), &o);
	CHECK_EQ(inet_pton(AF_INET6, nobody, &to.gid), 1);
	vp_connect(&e, &to);
	CHECK_EQ(vp_post_send(&e, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
	vp_want(e.scq, &wc, IBV_WC_RETRY_EXC_ERR, 1);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

/* Frames of that link are of 1500 bytes: 1024 of a message. */
static void ask_for_too_much(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr to = {.qpn = 0x1234};
	struct vp_end e;

	o.path_mtu = IBV_MTU_2048;
	vp_make(&e, vp_open(), &o);
	CHECK_EQ(inet_pton(AF_INET6, nobody, &to.gid), 1);
	CHECK_EQ(vp_init(&e), 0);
	CHECK_EQ(vp_rtr(&e, &to), EINVAL);
	CHECK_EQ(vp_get_state(&e), IBV_QPS_INIT);
	e.opts.path_mtu = IBV_MTU_1024;
	CHECK_EQ(vp_rtr(&e, &to), 0);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

/* Is there a line of the log with both? */
static bool tells(const char *path, const char *what, const char *who)
{
	FILE *f = fopen(path, "re");
	char line[512];
	bool found = false;

	if (!f)
		die("no log");
	while (!found && fgets(line, sizeof line, f))
		found = strstr(line, what) && strstr(line, who);
	fclose(f);
	return found;
}

int main(void)
{
	char path[] = "/tmp/weft-explain-XXXXXX", setting[64];
	int fd = mkstemp(path);

	if (fd < 0)
		die("mkstemp");
	snprintf(setting, sizeof setting, "info:%s", path);
	CHECK_EQ(setenv("WEFT_LOG", setting, 1), 0);
	ask_nobody();
	CHECK(tells(path, "RETRY_EXC_ERR", " of 198.51.100.77, ends in"));
	CHECK(tells(path, "RETRY_EXC_ERR", "nothing came from there"));
	ask_for_too_much();
	CHECK(tells(path, "QP 0x", "path MTU is larger than what its links carry"));
	unlink(path);
	close(fd);
	return check_result();
}
