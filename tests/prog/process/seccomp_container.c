// SPDX-License-Identifier: BSD-3-Clause
/*
 * Under system call filters as containers have them.  The first is the part of a common default
 * profile that could matter: everything works.  The second refuses process_vm_*: everything works
 * too, by the agents, and the log says so once for each peer.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum filter { DEFAULT_PROFILE, NO_PROCESS_VM };

enum { RING_MAX = 4096 };

static void refuse(const int *calls, unsigned n)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);

	if (!f)
		die("seccomp_init");
	for (unsigned i = 0; i < n; i++)
		if (seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), calls[i], 0))
			die("seccomp_rule_add %d", calls[i]);
	if (seccomp_load(f)) {
		fprintf(stderr, "no seccomp here\n");
		exit(77);
	}
	seccomp_release(f);
}

static void install(enum filter filter)
{
	static const int profile[] = {SCMP_SYS(userfaultfd), SCMP_SYS(io_uring_setup),
		SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register), SCMP_SYS(ptrace),
		SCMP_SYS(perf_event_open), SCMP_SYS(bpf), SCMP_SYS(kcmp), SCMP_SYS(add_key),
		SCMP_SYS(keyctl), SCMP_SYS(request_key), SCMP_SYS(mount), SCMP_SYS(setns),
		SCMP_SYS(unshare), SCMP_SYS(open_by_handle_at), SCMP_SYS(move_pages),
		SCMP_SYS(mbind), SCMP_SYS(set_mempolicy)};
	static const int process_vm[] = {SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev)};

	refuse(profile, sizeof profile / sizeof *profile);
	if (filter == NO_PROCESS_VM)
		refuse(process_vm, sizeof process_vm / sizeof *process_vm);
}

/* What is sent: some of it travels in rings, the rest needs a mover. */
static const struct {
	enum ibv_wr_opcode op;
	uint32_t len;
} steps[] = {
	{IBV_WR_SEND, 0},
	{IBV_WR_SEND, 36},
	{IBV_WR_SEND, 37},
	{IBV_WR_SEND, RING_MAX},
	{IBV_WR_SEND, RING_MAX + 1},
	{IBV_WR_SEND, 1 << 20},
	{IBV_WR_RDMA_WRITE, 8},
	{IBV_WR_RDMA_WRITE, 1 << 20},
	{IBV_WR_RDMA_READ, 8},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, 8},
};

enum { STEPS = sizeof steps / sizeof *steps };

struct part {
	enum filter filter;
	bool far;
};

/* Both sides go through the same steps, connected anew after each. */
static void run(int fd, void *arg)
{
	const struct part *part = arg;
	struct vp_opts o = vp_defaults();
	struct vp_end e;

	o.len = 2 << 20;
	install(part->filter);
	vp_make(&e, vp_open(), &o);
	for (uint32_t i = 0; i < STEPS; i++) {
		bool sends = steps[i].op == IBV_WR_SEND;
		struct vp_addr mine = vp_addr(&e), peer = vp_swap(fd, &mine);
		struct ibv_wc wc;

		check_case("filter %d, opcode %d of %u bytes, %s end", part->filter, steps[i].op,
			steps[i].len, part->far ? "far" : "near");
		vp_connect(&e, &peer);
		if (part->far && sends)
			CHECK_EQ(vp_post_recv(&e, 1, 0, steps[i].len), 0);
		vp_sync(fd);
		if (!part->far) {
			pattern_fill(e.buf, steps[i].len, i);
			CHECK_EQ(vp_post_send(&e, 2, steps[i].op, IBV_SEND_SIGNALED, 0,
					 steps[i].len, &peer, 0),
				0);
			vp_want(e.scq, &wc, IBV_WC_SUCCESS, 2);
		}
		vp_sync(fd);
		if (part->far && sends) {
			vp_want(e.rcq, &wc, IBV_WC_SUCCESS, 1);
			CHECK(pattern_filled(e.buf, steps[i].len, i));
		}
		if (part->far && steps[i].op == IBV_WR_RDMA_WRITE)
			CHECK(pattern_filled(e.buf, steps[i].len, i));
		vp_sync(fd);
		CHECK_EQ(vp_state(&e, IBV_QPS_RESET), 0);
	}
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void near_logged(int fd, void *arg)
{
	struct part part = {NO_PROCESS_VM, false};
	char path[] = "/tmp/weft-seccomp-XXXXXX";
	int saved = dup(2), file = mkstemp(path);

	(void)arg;
	dup2(file, 2);
	setenv("WEFT_LOG", "info", 1);
	run(fd, &part);
	dup2(saved, 2);
	check_case("the log tells of it, once for each time the peer was connected to");
	CHECK_EQ(lines_with(path, "process_vm"), STEPS);
	CHECK_EQ(lines_with(path, "FAIL"), 0);
	unlink(path);
}

static void near_plain(int fd, void *arg)
{
	struct part part = {DEFAULT_PROFILE, false};

	(void)arg;
	run(fd, &part);
}

static void far_end(int fd, void *arg)
{
	struct part part = {*(enum filter *)arg, true};

	run(fd, &part);
}

/* Two filtered children; we carry their words, so that both start without a device. */
static void both(enum filter filter)
{
	struct vp_child n = vp_fork(filter == NO_PROCESS_VM ? near_logged : near_plain, NULL);
	struct vp_child f = vp_fork(far_end, &filter);

	for (uint32_t i = 0; i < STEPS; i++) {
		struct vp_addr x, y;

		if (recv(n.fd, &x, sizeof x, MSG_WAITALL) != sizeof x ||
			recv(f.fd, &y, sizeof y, MSG_WAITALL) != sizeof y ||
			send(n.fd, &y, sizeof y, 0) != sizeof y ||
			send(f.fd, &x, sizeof x, 0) != sizeof x)
			break;
		for (int k = 0; k < 3; k++) {
			uint64_t a = vp_hear(n.fd), b = vp_hear(f.fd);

			vp_tell(n.fd, b);
			vp_tell(f.fd, a);
		}
	}
	check_case("filter %d", filter);
	vp_join(&n);
	vp_join(&f);
}

/* The leak check of the address sanitizer needs ptrace. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

int main(void)
{
	both(DEFAULT_PROFILE);
	setenv("WEFT_SHARE", "never", 1); /* mapped pages need no such call */
	both(NO_PROCESS_VM);
	return check_result();
}
