// SPDX-License-Identifier: BSD-3-Clause
/*
 * The log names the machine that did not answer, what is wrong with a path, and a kind of queue
 * pair or a group that leads to no other machine.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/xrc_ends.h"

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
	struct ibv_wc wc;
	struct vp_end e;

	o.timeout = TIMEOUT_4_MS;
	o.retry_cnt = 1;
	o.path_mtu = IBV_MTU_2048;
	vp_make(&e, vp_open(), &o);
	CHECK_EQ(inet_pton(AF_INET6, nobody, &to.gid), 1);
	vp_connect(&e, &to);
	CHECK_EQ(vp_post_send(&e, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
	vp_want(e.scq, &wc, IBV_WC_RETRY_EXC_ERR, 1);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

static void refuse(struct ibv_qp *qp)
{
	struct ibv_qp_attr now;
	struct ibv_qp_init_attr init;
	union ibv_gid gid;

	CHECK_EQ(inet_pton(AF_INET6, nobody, &gid), 1);
	CHECK_EQ(xrc_ready(qp, 0x1234, &gid), EHOSTUNREACH);
	CHECK_EQ(ibv_query_qp(qp, &now, IBV_QP_STATE, &init), 0);
	CHECK_EQ(now.qp_state, IBV_QPS_INIT);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
}

/* Both kinds; a domain can be had. */
static void ask_by_xrc(void)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_xrcd *xrcd = xrc_domain(ctx, -1, O_CREAT);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);

	if (!xrcd || !pd || !cq)
		die("set-up");
	refuse(xrc_initiator(pd, cq));
	refuse(xrc_target(xrcd));
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_xrcd(xrcd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* No packet of another host comes to a group of that scope. */
static void join_here_alone(void)
{
	const union ibv_gid here = {.raw = {0xff, 0x01, [15] = 0x42}};
	struct vp_opts o = vp_defaults();
	struct vp_end e;

	o.type = IBV_QPT_UD;
	vp_make(&e, vp_open(), &o);
	CHECK_EQ(vp_init(&e), 0);
	CHECK_EQ(ibv_attach_mcast(e.qp, &here, 0), 0);
	CHECK_EQ(ibv_detach_mcast(e.qp, &here, 0), 0);
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
	CHECK(tells(path, "RETRY_EXC_ERR", "does not carry the path MTU (1024)"));
	ask_by_xrc();
	CHECK_EQ(lines_with(path, "its type, or what it receives from, is only for this host"), 2);
	ask_for_too_much();
	CHECK(tells(path, "QP 0x", "path MTU is larger than what its links carry: 2048, not 1024"));
	CHECK(tells(path, "RETRY_EXC_ERR", "does not carry the path MTU, which is 2048, not 1024"));
	join_here_alone();
	CHECK(tells(path, "a multicast group is one of this host alone", "of scope 1"));
	unlink(path);
	close(fd);
	return check_result();
}
