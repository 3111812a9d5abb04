// SPDX-License-Identifier: BSD-3-Clause
/*
 * usage: two_fabrics fabric|dir|user|netns
 *
 * Two processes of one host whose fabrics are not the same, as programs meet that exchange GID and
 * number by themselves.  Those of one user (another WEFT_FABRIC; another runtime directory) are
 * connected, by packets; those of two users, or of two network namespaces of which each knows but
 * its own loopback, are refused, and told why.  Nobody ever talks to itself.  Run where UDP port
 * 4791 is nobody's, with any WEFT_WIRE.
 */
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/weftd_from_outside.h"
#include "tests/lib/xrc_ends.h"

enum { LEN = 1 << 16, GRH = 40, OTHER_USER = 20021, QUIET_MS = 100, MANY = 300, UD_TRIES = 200 };

enum how { FABRIC, DIR, USER, NETNS };

static const char *const names[] = {"fabric", "dir", "user", "netns"};

static enum how how;
static char log_file[264], dir[256];

/* ---- in another fabric ---- */

/* A copy of weftd that the other user may run, though the build may lie where only root can go. */
static void copy_weftd(void)
{
	char command[1024], path[300];

	snprintf(path, sizeof path, "%s/weftd", dir);
	snprintf(command, sizeof command, "cp '%s' '%s' && chmod 755 '%s'", getenv("WEFT_DAEMON"),
		path, path);
	if (system(command) || setenv("WEFT_DAEMON", path, 1))
		die("no copy of weftd");
}

static void loopback_up(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r))
		die("lo is down");
	close(fd);
}

static void own_netns(void)
{
	if (unshare(CLONE_NEWNET)) {
		puts("no network namespace to be had");
		exit(77);
	}
	loopback_up();
}

/* This process goes to another fabric than its parent's, before it opens the device. */
static void leave_fabric(void)
{
	char own[300];

	snprintf(own, sizeof own, "%s/own", dir);
	if (how == FABRIC)
		setenv("WEFT_FABRIC", "b", 1);
	if (how == NETNS)
		own_netns();
	if (how != DIR && how != USER)
		return;
	if (how == USER && (setgid(OTHER_USER) || setuid(OTHER_USER)))
		die("no other user");
	if (mkdir(own, 0700) && errno != EEXIST)
		die("%s", own);
	unsetenv("WEFT_RUNTIME_DIR");
	setenv("XDG_RUNTIME_DIR", own, 1);
}

static bool is_connected(void)
{
	return how == FABRIC || how == DIR;
}

/* ---- both ends: 0 begins, 1 is the other fabric's ---- */

static struct vp_end e;
static struct vp_addr peer;

static void told(const char *text)
{
	if (!CHECK(lines_with(log_file, text)))
		fprintf(stderr, "not in the log: %s\n", text);
}

static void make(enum ibv_qp_type type)
{
	struct vp_opts o = vp_defaults();

	o.type = type;
	o.len = LEN;
	if (!is_connected()) {
		o.timeout = 10; /* 4 ms */
		o.retry_cnt = 1;
	}
	vp_make(&e, vp_open(), &o);
}

static void end(void)
{
	struct ibv_context *ctx = e.ctx;

	vp_free(&e);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* What our own program sends must never come back to it. */
static void nothing_came(void)
{
	vp_quiet(e.rcq, 0);
	CHECK(e.buf[0] == 0 && e.buf[LEN / 2] == 0);
}

/* Both send one message, of which each gets the other's. */
static void send_both(int me, uint32_t len, enum ibv_wr_opcode op, int fd)
{
	struct ibv_wc wc;

	check_case("%s, type %d, SEND of %u, end %d", names[how], e.opts.type, len, me);
	pattern_fill(e.buf + LEN / 4, len, 10 + me);
	CHECK_EQ(vp_post_recv(&e, 1, 0, LEN / 4), 0);
	vp_sync(fd);
	CHECK_EQ(vp_post_send(&e, 2, op, IBV_SEND_SIGNALED, LEN / 4, len, &peer, LEN / 2), 0);
	vp_want(e.scq, &wc, IBV_WC_SUCCESS, 2);
	if (vp_want(e.rcq, &wc, IBV_WC_SUCCESS, 1)) {
		size_t at = op == IBV_WR_SEND ? 0 : LEN / 2;

		CHECK(pattern_filled(e.buf + at, len, 10 + !me));
		CHECK_EQ(wc.src_qp, e.opts.type == IBV_QPT_UD ? peer.qpn : wc.src_qp);
	}
	vp_sync(fd);
}

/* The one reads and writes the other's memory. */
static void one_sided(int me, int fd)
{
	struct ibv_wc wc;

	check_case("%s, one-sided, end %d", names[how], me);
	memset(e.buf, 0, LEN);
	pattern_fill(e.buf + LEN / 2, LEN / 8, 20 + me);
	vp_sync(fd);
	if (me == 0) {
		CHECK_EQ(vp_post_send(&e, 3, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, LEN / 8, &peer,
				 LEN / 2),
			0);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, 3);
		CHECK(pattern_filled(e.buf, LEN / 8, 21));
		CHECK_EQ(vp_post_send(&e, 4, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, LEN / 2, LEN / 8,
				 &peer, LEN / 4),
			0);
		CHECK_EQ(vp_post_send(&e, 5, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_SIGNALED, 8, 8,
				 &peer, 0),
			0);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, 4);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, 5);
	}
	vp_sync(fd);
	if (me == 1) {
		CHECK(pattern_filled(e.buf + LEN / 4, LEN / 8, 20));
		CHECK_EQ(e.buf[0], 1);
	}
	vp_sync(fd);
}

static void meet(int me, int fd)
{
	check_case("%s, connecting, end %d", names[how], me);
	peer = vp_meet(&e, fd);
	vp_sync(fd);
}

static void connected(enum ibv_qp_type type, int me, int fd)
{
	make(type);
	meet(me, fd);
	for (int i = 0; i < 3; i++) {
		send_both(me, 64, IBV_WR_SEND, fd);
		send_both(me, LEN / 8, IBV_WR_SEND, fd);
		send_both(me, LEN / 8, IBV_WR_RDMA_WRITE_WITH_IMM, fd);
	}
	if (type == IBV_QPT_RC)
		one_sided(me, fd);
	end();
}

/* A request of each kind ends as one to nobody; of UC it is lost. */
static void refused(enum ibv_qp_type type, enum ibv_wr_opcode op, int me, int fd)
{
	struct ibv_wc wc;

	make(type);
	meet(me, fd);
	check_case("%s, type %d, opcode %d, end %d", names[how], type, op, me);
	pattern_fill(e.buf + LEN / 4, 64, 10 + me);
	CHECK_EQ(vp_post_recv(&e, 1, 0, 64), 0);
	CHECK_EQ(vp_post_send(&e, 2, op, IBV_SEND_SIGNALED, LEN / 4, 64, &peer, LEN / 2), 0);
	vp_want(e.scq, &wc, type == IBV_QPT_RC ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS, 2);
	if (type == IBV_QPT_RC)
		vp_want(e.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 1);
	nothing_came();
	CHECK_EQ(vp_get_state(&e), type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_RTS);
	vp_sync(fd);
	end();
}

/* The line that explains it, and whose the number is. */
static void explained(int me)
{
	char text[160];

	snprintf(text, sizeof text,
		"no QP %#x in this fabric: is the peer of another user, fabric or runtime "
		"directory?",
		peer.qpn);
	told(text);
	if (how != USER)
		return;
	snprintf(text, sizeof text, "It is of user %u.", me ? 0 : OTHER_USER);
	told(text);
	snprintf(text, sizeof text, "fabric \"default\" of user %u (weftd ", me ? 0 : OTHER_USER);
	told(text);
}

/* ---- datagrams ---- */

static void await_datagram(int me, int fd, struct ibv_ah *ah)
{
	struct ibv_wc wc;
	bool came = false;

	/* What was sent before the other end listened is lost, as ever. */
	for (int i = 0; i < UD_TRIES && !came; i++) {
		CHECK_EQ(vp_post_ud(&e, 2, ah, peer.qpn, VP_QKEY, LEN / 4, 64), 0);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, 2);
		came = vp_poll(e.rcq, &wc, 20);
	}
	if (CHECK(came)) {
		CHECK_EQ(wc.src_qp, peer.qpn);
		CHECK(pattern_filled(e.buf + GRH, 64, 10 + !me));
	}
	/* ... of which the last one helps the other end, too */
	vp_post_ud(&e, 2, ah, peer.qpn, VP_QKEY, LEN / 4, 64);
	vp_want(e.scq, &wc, IBV_WC_SUCCESS, 2);
	vp_sync(fd);
}

static void datagrams(int me, int fd, bool heard)
{
	struct vp_addr mine;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	make(IBV_QPT_UD);
	check_case("%s, datagrams, end %d", names[how], me);
	mine = vp_addr(&e);
	vp_connect(&e, &mine);
	pattern_fill(e.buf + LEN / 4, 64, 10 + me);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(vp_post_recv(&e, 1, 0, GRH + 64), 0);
	peer = vp_swap(fd, &mine);
	ah = vp_ah(&e, &peer.gid);
	if (heard) {
		await_datagram(me, fd, ah);
	} else {
		CHECK_EQ(vp_post_ud(&e, 2, ah, peer.qpn, VP_QKEY, LEN / 4, 64), 0);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, 2);
		vp_sync(fd);
		vp_quiet(e.rcq, QUIET_MS);
	}
	vp_sync(fd);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	end();
}

/* ---- XRC, which goes by no packets: never connected, and told so ---- */

static void xrc(int me, int fd)
{
	struct ibv_xrcd *domain;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct {
		uint32_t qpn, srqn;
		union ibv_gid gid;
	} mine, theirs;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 2,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;

	make(IBV_QPT_RC);
	check_case("%s, XRC, end %d", names[how], me);
	domain = xrc_domain(e.ctx, -1, O_CREAT);
	srq = xrc_srq(e.pd, domain, e.rcq);
	qp = me ? xrc_target(domain) : xrc_initiator(e.pd, e.scq);
	mine.qpn = qp->qp_num;
	CHECK_EQ(ibv_get_srq_num(srq, &mine.srqn), 0);
	mine.gid = vp_addr(&e).gid;
	vp_put(fd, &mine, sizeof mine);
	vp_get(fd, &theirs, sizeof theirs);
	xrc_connect(qp, theirs.qpn, &theirs.gid);
	vp_sync(fd);
	if (!me) {
		sge = vp_sge(&e, 0, 64);
		wr.opcode = IBV_WR_SEND;
		wr.qp_type.xrc.remote_srqn = theirs.srqn;
		CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
		vp_want(e.scq, &wc, IBV_WC_RETRY_EXC_ERR, 2);
		peer.qpn = theirs.qpn;
		explained(me);
	}
	vp_quiet(e.rcq, 0);
	vp_sync(fd);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_close_xrcd(domain), 0);
	end();
}

/* ---- what becomes of connections ---- */

static void stream(int me, int n, int fd)
{
	struct ibv_wc wc;

	for (int i = 0; i < n; i++) {
		if (me) {
			CHECK_EQ(vp_post_recv(&e, i, 0, LEN / 4), 0);
			vp_want(e.rcq, &wc, IBV_WC_SUCCESS, i);
			CHECK(pattern_filled(e.buf, 4000, i));
		} else {
			pattern_fill(e.buf, 4000, i);
			CHECK_EQ(vp_post_send(
					 &e, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 4000, &peer, 0),
				0);
			vp_want(e.scq, &wc, IBV_WC_SUCCESS, i);
		}
	}
	vp_sync(fd);
}

/* Both weftds die, and are started anew; nobody's program notices. */
static void without_weftd(int me, int fd)
{
	make(IBV_QPT_RC);
	meet(me, fd);
	check_case("%s, weftd killed, end %d", names[how], me);
	stream(me, MANY, fd);
	weftd_kill(weftd_pid());
	vp_sync(fd);
	stream(me, MANY, fd);
	end();
}

/* The program closes all it does not know, and opens files of its own instead. */
static void closed(int me, int fd)
{
	enum { FILES = 100 };
	int file[FILES];
	struct stat st;

	make(IBV_QPT_RC);
	meet(me, fd);
	check_case("%s, all closed, end %d", names[how], me);
	stream(me, 10, fd);
	if (me) {
		for (int i = 3; i < 4096; i++)
			if (i != fd)
				close(i);
		for (int i = 0; i < FILES; i++)
			file[i] = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	}
	vp_sync(fd);
	stream(me, MANY, fd);
	for (int i = 0; me && i < FILES; i++) {
		CHECK(fstat(file[i], &st) || st.st_size == 0);
		close(file[i]);
	}
	end();
}

/* ---- another user who holds what he can ---- */

enum { CLAIM = 1024, HELD_MAX = 1 << 13 };

static int hold_one(uint32_t qpn)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int n = snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "weft-qpn/%u", qpn / CLAIM);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !connect(fd, (struct sockaddr *)&to,
			       offsetof(struct sockaddr_un, sun_path) + 1 + n))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Connections that nobody has taken fill the queues of both claims; until they are closed. */
static void hold_all(int fd, void *arg)
{
	const struct rlimit many = {2 * HELD_MAX + 100, 2 * HELD_MAX + 100};
	const uint32_t *qpn = arg;
	struct pollfd first = {.events = POLLIN};
	int held;

	if (setrlimit(RLIMIT_NOFILE, &many) || setgid(OTHER_USER) || setuid(OTHER_USER))
		die("no other user with many files");
	for (int i = 0; i < 2; i++) {
		int n = 0;

		while (n < HELD_MAX && (held = hold_one(qpn[i])) >= 0) {
			if (!n++ && !i)
				first.fd = held;
		}
		CHECK(n > 0 && n < HELD_MAX);
	}
	vp_sync(fd);
	CHECK_EQ(poll(&first, 1, 20000), 1);
	CHECK(first.revents & POLLHUP);
	vp_sync(fd);
}

/* Two fabrics connect all the same, while he goes on holding what they have not closed. */
static void queues_full(int me, int fd)
{
	struct vp_child stranger;
	uint32_t qpn[2];

	if (geteuid() != 0)
		return;
	make(IBV_QPT_RC);
	check_case("%s, queues of connections are full, end %d", names[how], me);
	qpn[0] = e.qp->qp_num;
	vp_put(fd, &qpn[0], sizeof qpn[0]);
	vp_get(fd, &qpn[1], sizeof qpn[1]);
	if (!me) {
		stranger = vp_fork(hold_all, qpn);
		vp_sync(stranger.fd);
	}
	vp_sync(fd);
	meet(me, fd);
	stream(me, 10, fd);
	told("as many others as there is room for wait to be connected");
	if (!me) {
		vp_sync(stranger.fd);
		vp_join(&stranger);
	}
	vp_sync(fd);
	end();
}

/* ---- and beside a child ---- */

/* A child of one end uses nothing of its parent's, and the connection goes on beside it. */
static void forked(int me, int fd)
{
	int status = -1;
	pid_t pid;

	make(IBV_QPT_RC);
	meet(me, fd);
	check_case("%s, a child, end %d", names[how], me);
	stream(me, 10, fd);
	pid = fork();
	if (!pid) {
		make(IBV_QPT_RC);
		_exit(check_failures() != 0);
	}
	stream(me, MANY, fd);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	stream(me, 10, fd);
	end();
}

/* The other one dies. */
static void left_alone(struct vp_child *kid)
{
	struct ibv_wc wc;

	make(IBV_QPT_RC);
	e.opts.timeout = 12;
	e.opts.retry_cnt = 1;
	meet(0, kid->fd);
	check_case("%s, alone", names[how]);
	vp_kill_join(kid);
	CHECK_EQ(vp_post_send(&e, 7, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &peer, 0), 0);
	vp_want(e.scq, &wc, IBV_WC_RETRY_EXC_ERR, 7);
	told("of another fabric of this user, ends in IBV_WC_RETRY_EXC_ERR: nothing came from "
	     "there");
	end();
}

static void run(int me, int fd)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE};
	const char *wire = getenv("WEFT_WIRE");

	if (!is_connected()) {
		for (int i = 0; i < 2; i++)
			refused(IBV_QPT_RC, ops[i], me, fd);
		explained(me);
		for (int i = 0; i < 2; i++)
			refused(IBV_QPT_UC, ops[i], me, fd);
		datagrams(me, fd, false);
		xrc(me, fd);
		return;
	}
	if (how == FABRIC && wire && !strcmp(wire, "auto")) /* it is the same with any */
		queues_full(me, fd);                        /* first: nobody listens yet */
	connected(IBV_QPT_RC, me, fd);
	connected(IBV_QPT_UC, me, fd);
	if (!wire || strcmp(wire, "never")) /* then who only listens need not hear */
		datagrams(me, fd, true);
	xrc(me, fd);
	if (how != FABRIC)
		return;
	without_weftd(me, fd);
	closed(me, fd);
	forked(me, fd);
}

static void other_end(int fd, void *arg)
{
	(void)arg;
	leave_fabric();
	run(1, fd);
	if (!is_connected())
		return;
	make(IBV_QPT_RC);
	meet(1, fd);
	vp_hear(fd); /* never comes */
}

static void set_up(const char *name)
{
	static char spec[300];

	for (how = FABRIC; strcmp(name, names[how]); how++)
		if (how == NETNS)
			die("usage: two_fabrics fabric|dir|user|netns");
	snprintf(dir, sizeof dir, "%s/two", getenv("WEFT_RUNTIME_DIR"));
	if (how == USER)
		strcpy(dir, "/tmp/two_fabrics.XXXXXX");
	if (how == USER ? !mkdtemp(dir) : mkdir(dir, 0700))
		die("%s", dir);
	chmod(dir, how == USER ? 0777 : 0700);
	snprintf(log_file, sizeof log_file, "%s/log", dir);
	close(open(log_file, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
	chmod(log_file, 0666);
	snprintf(spec, sizeof spec, "info:%s", log_file);
	setenv("WEFT_LOG", spec, 1);
	setenv("WEFT_IDLE_EXIT", "0.5", 1);
}

int main(int argc, char **argv)
{
	struct vp_child kid;
	char command[300];

	set_up(argc == 2 ? argv[1] : "");
	if (how == USER && geteuid() != 0) {
		puts("not root, who alone is two users");
		return 77;
	}
	if (how == USER)
		copy_weftd();
	if (how == NETNS)
		own_netns();
	kid = vp_fork(other_end, NULL);
	run(0, kid.fd);
	if (is_connected())
		left_alone(&kid);
	else
		vp_join(&kid);
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	if (how == USER && system(command))
		die("%s", dir);
	return check_result();
}
