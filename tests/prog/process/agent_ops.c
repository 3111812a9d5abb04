// SPDX-License-Identifier: BSD-3-Clause
/*
 * agent_ops HOW: all operations in all sizes between two processes, where the kernel lets neither
 * at the other's memory:
 *   seccomp   a filter refuses process_vm_*
 *   dumpable  both are another user's than root, and not dumpable
 *   pidns     one is in a pid namespace of its own
 *   forced    WEFT_MOVER=agent
 *   surprise  a filter comes when they are connected already
 * Everything must work, and the agents must have done it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 20 << 20, NOBODY = 65534, SKIP = 77, ROOM = 4096, RECV_AT = 10 << 20 };

enum how { SECCOMP, DUMPABLE, PIDNS, FORCED, SURPRISE, HOWS };

static const char *const hows[HOWS] = {"seccomp", "dumpable", "pidns", "forced", "surprise"};

static const uint32_t sizes[] = {
	1, 7, 8, 36, 4095, 4097, 65535, 65536, 65537, 200000, 1 << 20, (9 << 20) + 3};

enum { SIZES = sizeof sizes / sizeof *sizes };

struct part {
	enum how how;
	bool far;
	int sock; /* to the other process */
};

static void filter(void)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);

	if (!f || seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(process_vm_readv), 0) ||
		seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(process_vm_writev), 0) ||
		seccomp_load(f)) {
		printf("no seccomp here\n");
		exit(SKIP);
	}
	seccomp_release(f);
}

static void become_nobody(void)
{
	if (geteuid() == 0 && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
		die("setuid");
	if (prctl(PR_SET_DUMPABLE, 0))
		die("PR_SET_DUMPABLE");
}

static void set_scene(enum how how)
{
	if (how == SECCOMP)
		filter();
	if (how == DUMPABLE)
		become_nobody();
	if (how == FORCED)
		setenv("WEFT_MOVER", "agent", 1);
}

/* Waits for the other side, polling as a program does that expects completions. */
static void sync_polling(struct vp_end *e, int sock)
{
	struct ibv_wc wc;
	uint64_t word = 1;

	ssize_t n;

	vp_tell(sock, word);
	while ((n = recv(sock, &word, sizeof word, MSG_DONTWAIT)) != sizeof word) {
		if (n >= 0 || errno != EAGAIN)
			die("the other process has gone");
		CHECK_EQ(ibv_poll_cq(e->scq, 1, &wc), 0);
	}
}

/* ---- one operation, seen from the process that posts and from the other ---- */

struct item {
	enum ibv_wr_opcode op;
	uint32_t len, seed;
};

static bool takes_receive(const struct item *i)
{
	return i->op == IBV_WR_SEND || i->op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(const struct item *i)
{
	return i->op >= IBV_WR_ATOMIC_CMP_AND_SWP;
}

static void post(struct vp_end *e, const struct vp_addr *peer, int sock, const struct item *i)
{
	struct ibv_wc wc;

	memset(e->buf, 0xee, i->len + ROOM);
	if (i->op != IBV_WR_RDMA_READ && !is_atomic(i))
		pattern_fill(e->buf, i->len, i->seed);
	sync_polling(e, sock);
	CHECK_EQ(vp_post_send(e, i->seed, i->op, IBV_SEND_SIGNALED, 0, i->len, peer, RECV_AT), 0);
	vp_want(e->scq, &wc, IBV_WC_SUCCESS, i->seed);
	sync_polling(e, sock);
	if (i->op == IBV_WR_RDMA_READ)
		CHECK(pattern_filled(e->buf, i->len, i->seed));
	if (is_atomic(i))
		CHECK_EQ(*(uint64_t *)e->buf, 1);
	CHECK(pattern_all(e->buf + i->len, ROOM, 0xee));
	sync_polling(e, sock);
}

static void suffer(struct vp_end *e, int sock, const struct item *i)
{
	uint8_t *at = e->buf + RECV_AT;
	struct ibv_wc wc;

	memset(at - ROOM, 0xee, i->len + 2 * ROOM);
	if (i->op == IBV_WR_RDMA_READ)
		pattern_fill(at, i->len, i->seed);
	if (is_atomic(i))
		*(uint64_t *)at = 1;
	if (i->op == IBV_WR_SEND)
		CHECK_EQ(vp_post_recv(e, 1, RECV_AT, i->len), 0);
	if (i->op == IBV_WR_RDMA_WRITE_WITH_IMM)
		CHECK_EQ(vp_post_recv(e, 1, 0, 0), 0);
	sync_polling(e, sock);
	sync_polling(e, sock);
	if (takes_receive(i)) {
		vp_want(e->rcq, &wc, IBV_WC_SUCCESS, 1);
		CHECK_EQ(wc.byte_len, i->len);
	}
	if (is_atomic(i))
		CHECK_EQ(*(uint64_t *)at, i->op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 2 : i->seed);
	else
		CHECK(pattern_filled(at, i->len, i->seed));
	CHECK(pattern_all(at - ROOM, ROOM, 0xee));
	CHECK(pattern_all(at + i->len, ROOM, 0xee));
	sync_polling(e, sock);
}

static void one(struct vp_end *e, const struct part *p, const struct vp_addr *peer, bool posts,
	struct item i)
{
	check_case("%s, %s end %s: opcode %d of %u bytes", hows[p->how], p->far ? "far" : "near",
		posts ? "posts" : "takes", i.op, i.len);
	if (posts)
		post(e, peer, p->sock, &i);
	else
		suffer(e, p->sock, &i);
}

static void all_operations(
	struct vp_end *e, const struct part *p, const struct vp_addr *peer, bool posts)
{
	static const enum ibv_wr_opcode moves[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};

	for (unsigned k = 0; k < sizeof moves / sizeof *moves; k++)
		for (unsigned n = 0; n < SIZES; n++)
			one(e, p, peer, posts, (struct item){moves[k], sizes[n], 100 * k + n});
	one(e, p, peer, posts, (struct item){IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 7});
	one(e, p, peer, posts, (struct item){IBV_WR_ATOMIC_CMP_AND_SWP, 8, 8});
}

/* A sender that sleeps, and whose receive comes late: its queue is handed back to it. */
static void late_receive(struct vp_end *e, const struct part *p, const struct vp_addr *peer)
{
	struct ibv_wc wc;

	check_case("%s, %s end: a receive that comes late", hows[p->how], p->far ? "far" : "near");
	vp_sync(p->sock);
	if (p->far) {
		usleep(50 * 1000); /* the sender is parked by now, and asleep in vp_sync() */
		CHECK_EQ(vp_post_recv(e, 3, RECV_AT, 100000), 0);
		vp_want(e->rcq, &wc, IBV_WC_SUCCESS, 3);
		CHECK(pattern_filled(e->buf + RECV_AT, 100000, 5));
		vp_sync(p->sock);
		return;
	}
	pattern_fill(e->buf, 100000, 5);
	CHECK_EQ(vp_post_send(e, 4, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 100000, peer, 0), 0);
	vp_sync(p->sock);
	vp_want(e->scq, &wc, IBV_WC_SUCCESS, 4);
}

/* The sum of a counter over all processes, as weft status has it. */
static long counter(const char *name)
{
	char cmd[600], line[256], *weftd = getenv("WEFT_DAEMON"), *at;
	long sum = 0;
	FILE *f;

	snprintf(cmd, sizeof cmd, "%.*s status --json", (int)strlen(weftd) - 1, weftd);
	f = popen(cmd, "r");
	while (f && fgets(line, sizeof line, f)) {
		at = strstr(line, name);
		if (at && (at = strchr(at, ':')))
			sum += atol(at + 1);
	}
	if (f)
		pclose(f);
	return sum;
}

static bool mapped; /* peers may map memory, too */

/* The agents have moved the bytes, and nobody had to give up. */
static void check_counters(enum how how)
{
	check_case("%s: counters", hows[how]);
	if (mapped) {
		CHECK(counter("\"map_bytes\"") > 0);
	} else {
		CHECK(counter("\"agent_bytes\"") > 2 * (9 << 20));
		CHECK(counter("\"agent_served\"") > 0);
	}
	CHECK_EQ(counter("\"cma_bytes\""), 0);
	CHECK_EQ(counter("\"agent_late\""), 0);
}

static void run(int fd, void *arg)
{
	const struct part *p = arg;
	struct vp_opts o = vp_defaults();
	struct vp_addr peer;
	struct vp_end e;

	(void)fd;
	o.len = LEN;
	o.rnr_retry = 7;
	set_scene(p->how);
	vp_make(&e, vp_open(), &o);
	peer = vp_meet(&e, p->sock);
	vp_sync(p->sock);
	if (p->how == SURPRISE)
		filter();
	vp_sync(p->sock);
	all_operations(&e, p, &peer, !p->far);
	all_operations(&e, p, &peer, p->far);
	late_receive(&e, p, &peer);
	if (!p->far)
		check_counters(p->how);
	vp_sync(p->sock);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

/* Starts the near process, in a pid namespace of its own if need be. */
static struct vp_child start_near(struct part *p)
{
	if (p->how == PIDNS && unshare(CLONE_NEWPID)) {
		printf("no pid namespace here: %s\n", strerror(errno));
		exit(SKIP);
	}
	return vp_fork(run, p);
}

/* A runtime directory of that user. */
static void make_own_dir(char *dir)
{
	if (geteuid() != 0)
		return;
	if (!mkdtemp(dir) || chown(dir, NOBODY, NOBODY))
		die("%s", dir);
	setenv("WEFT_RUNTIME_DIR", dir, 1);
	if (access(getenv("WEFT_DAEMON"), X_OK))
		die("%s", getenv("WEFT_DAEMON"));
}

static void remove_own_dir(const char *dir)
{
	char cmd[700], *weftd = getenv("WEFT_DAEMON");

	if (geteuid() != 0)
		return;
	snprintf(cmd, sizeof cmd, "%.*s down >/dev/null; rm -r %s", (int)strlen(weftd) - 1, weftd,
		dir);
	CHECK_EQ(system(cmd), 0);
}

static void both(enum how how)
{
	char dir[] = "/tmp/weft-agent-XXXXXX";
	struct part near = {.how = how}, far = {.how = how, .far = true};
	struct vp_child n, f;
	int sv[2];

	if (how == DUMPABLE)
		make_own_dir(dir);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
		die("socketpair");
	near.sock = sv[0];
	far.sock = sv[1];
	f = vp_fork(run, &far);
	n = start_near(&near);
	close(sv[0]);
	close(sv[1]);
	vp_join(&n);
	vp_join(&f);
	if (how == DUMPABLE)
		remove_own_dir(dir);
}

/* The leak check of the address sanitizer needs ptrace. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

int main(int argc, char **argv)
{
	int how = 0;

	while (how < HOWS && (argc < 2 || strcmp(argv[1], hows[how])))
		how++;
	mapped = argc == 3 && !strcmp(argv[2], "mapped");
	if (how == HOWS || (argc != 2 && !mapped)) {
		fprintf(stderr,
			"usage: agent_ops seccomp|dumpable|pidns|forced|surprise [mapped]\n");
		return 2;
	}
	/* What is mapped needs no agent: both must go together, and the agent alone. */
	setenv("WEFT_SHARE", mapped ? "auto" : "never", 1);
	both(how);
	return check_result();
}
