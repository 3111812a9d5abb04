// SPDX-License-Identifier: BSD-3-Clause
#include "tests/prog/rdv/help.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "hca/seg/seg.h"
#include "rdv/admin.h"
#include "rdv/claim.h"
#include "rdv/rdv.h"
#include "tests/lib/kill_and_wait.h"
#include "tests/prog/rdv/wire_kid.h"

enum { CHANNELS = 8, ORDER_FD = 3, REPLY_FD = 4, EVENT_WAIT_MS = 20000, BECOMES_S = 20 };

struct order_msg {
	int order;
	long arg, arg2;
};

void check_failed(const char *file, int line, const char *cond)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, cond);
	exit(1);
}

void check_eq(const char *file, int line, const char *what, long a, long b)
{
	if (a == b)
		return;
	fprintf(stderr, "%s:%d: %s is %ld, not %ld\n", file, line, what, a, b);
	exit(1);
}

bool logged(const char *text)
{
	char *line = NULL;
	size_t room = 0;
	bool found = false;
	FILE *f = fopen(log_path, "re");

	while (f && !found && getline(&line, &room, f) > 0)
		found = strstr(line, text);
	free(line);
	if (f)
		fclose(f);
	return found;
}

double seconds(void)
{
	return clock_ns() / 1e9;
}

static int channel_fds[CHANNELS];
static struct seg *found_seg;

static long attach(void)
{
	const struct rdv_attach *at;

	return rdv_attach(&at);
}

static const struct rdv_attach *attachment(void)
{
	const struct rdv_attach *at;

	return rdv_attach(&at) == 0 ? at : NULL;
}

static long lease(void)
{
	uint32_t first;
	int ret = rdv_lease_qpns(&first);

	return ret ? ret : (long)first;
}

static long find(uint32_t qpn)
{
	struct rdv_peer peer;
	int ret = rdv_find_qpn(qpn, &peer);

	if (ret)
		return ret;
	if (found_seg)
		rdv_unmap_segment(found_seg);
	ret = rdv_map_segment(peer.seg_fd, &found_seg);
	if (!ret && found_seg->hdr.attach != peer.attach_id)
		ret = -EBADMSG;
	close(peer.seg_fd);
	close(peer.async_fd);
	if (peer.arena_fd >= 0)
		close(peer.arena_fd);
	if (peer.pidfd >= 0)
		close(peer.pidfd);
	return ret ? ret : (long)peer.attach_id;
}

static long add_channel(long id)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
	long ret = rdv_add_channel(id, fd);

	if (ret)
		close(fd);
	else
		channel_fds[id] = fd;
	return ret;
}

static long read_event(long id, long ms)
{
	const struct rdv_attach *at = attachment();
	struct pollfd pfd = {.fd = id ? channel_fds[id] : at->async_fd, .events = POLLIN};
	uint64_t one;

	if (poll(&pfd, 1, ms ? ms : EVENT_WAIT_MS) != 1)
		return -EAGAIN;
	return read(pfd.fd, &one, sizeof one) == sizeof one ? 0 : -errno;
}

static long set_limit(int which, rlim_t soft, bool hard)
{
	struct rlimit rl;

	getrlimit(which, &rl);
	rl.rlim_cur = soft;
	if (hard)
		rl.rlim_max = soft;
	return setrlimit(which, &rl) < 0 ? -errno : 0;
}

static long close_claim(long qpn)
{
	const int fds_max = 65536;
	long n = 0;

	for (int fd = REPLY_FD + 1; fd < fds_max; fd++)
		if (claim_is(fd, qpn / CLAIM_QPNS))
			n += !close(fd);
	return n;
}

static long close_fds(void)
{
	return syscall(SYS_close_range, REPLY_FD + 1, ~0u, 0);
}

static long revive(void)
{
	int ret = rdv_revive();

	if (ret)
		return ret;
	return fcntl(attachment()->async_fd, F_GETFD) < 0 ? -errno : 0;
}

/* The child goes on obeying; the parent only waits for its end, whatever that is. */
static long fork_off(void)
{
	pid_t pid = fork();

	if (pid > 0)
		for (;;)
			pause();
	prctl(PR_SET_PDEATHSIG, 0);
	return getpid();
}

static long obey(const struct order_msg *m)
{
	switch (m->order) {
	case DO_ATTACH:
		return attach();
	case ASK_ID:
		return attachment() ? (long)attachment()->attach_id : -1;
	case ASK_HUB:
		return attachment() ? (long)attachment()->hub_id : -1;
	case DO_LEASE:
		return lease();
	case DO_FIND:
		return find(m->arg);
	case DO_FIND_DEAD:
		return found_seg && atomic_load(&found_seg->hdr.dead);
	case DO_CHANNEL:
		return add_channel(m->arg);
	case DO_READ:
		return read_event(m->arg, m->arg2);
	case DO_FIRE:
		return rdv_fire(m->arg, m->arg2);
	case DO_CLOSE_FDS:
		return close_fds();
	case DO_CLOSE_CLAIM:
		return close_claim(m->arg);
	case DO_CHECK:
		return rdv_check();
	case DO_REVIVE:
		return revive();
	case DO_FORK:
		return fork_off();
	case DO_EXEC:
		execlp("sleep", "sleep", "30", (char *)NULL);
		_exit(1);
	case DO_LIMIT_FSIZE:
		return set_limit(RLIMIT_FSIZE, 0, true);
	case DO_LIMIT_FDS:
		return set_limit(RLIMIT_NOFILE, m->arg, false);
	case DO_SETUID:
		log_enabled(LOG_LVL_ERROR); /* opens the log while it may */
		return setgid(m->arg) < 0 || setuid(m->arg) < 0 ? -errno : 0;
	case DO_NEWNET:
		log_enabled(LOG_LVL_ERROR);
		return unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET) ? -errno : 0;
	case ASK_EPOCH:
		return rdv_epoch();
	case DO_JOIN:
		return wire_kid_join();
	case DO_PACKET:
		return wire_kid_packet(m->arg, m->arg2);
	case DO_COUNT:
		return wire_kid_count(m->arg, m->arg2);
	case DO_HAND:
		return wire_kid_hand(m->arg);
	default:
		exit(0);
	}
}

static void kid_main(int orders, int replies)
{
	struct order_msg m;
	long result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	orders = fcntl(orders, F_DUPFD, 10);
	replies = fcntl(replies, F_DUPFD, 10);
	dup2(orders, ORDER_FD);
	dup2(replies, REPLY_FD);
	syscall(SYS_close_range, REPLY_FD + 1, ~0u, 0);
	fcntl(ORDER_FD, F_SETFD, FD_CLOEXEC);
	fcntl(REPLY_FD, F_SETFD, FD_CLOEXEC);
	while (read(ORDER_FD, &m, sizeof m) == sizeof m) {
		result = obey(&m);
		if (write(REPLY_FD, &result, sizeof result) < 0)
			break;
	}
	_exit(0);
}

struct kid kid_start(void)
{
	int to[2], from[2];
	struct kid k;

	CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
	k.pid = fork();
	CHECK(k.pid >= 0);
	if (k.pid == 0)
		kid_main(to[0], from[1]);
	close(to[0]);
	close(from[1]);
	k.to = to[1];
	k.from = from[0];
	return k;
}

void kid_send(struct kid *k, enum order o, long arg, long arg2)
{
	struct order_msg m = {.order = o, .arg = arg, .arg2 = arg2};

	CHECK(write(k->to, &m, sizeof m) == sizeof m);
}

long kid_reply(struct kid *k)
{
	long result;

	CHECK(read(k->from, &result, sizeof result) == sizeof result);
	return result;
}

long kid_do(struct kid *k, enum order o, long arg, long arg2)
{
	kid_send(k, o, arg, arg2);
	return kid_reply(k);
}

void kid_end(struct kid *k, int sig)
{
	if (sig)
		kill(k->pid, sig);
	close(k->to);
	close(k->from);
	waitpid(k->pid, NULL, 0);
}

long status_of(const char *fabric, const char *path)
{
	char group[32], *dot;
	char *text = NULL;
	json_t *o;
	long n = -1;

	snprintf(group, sizeof group, "%s", path);
	dot = strchr(group, '.');
	*dot = '\0';
	if (rdv_status_json(fabric, &text))
		return -1;
	o = json_loads(text, 0, NULL);
	free(text);
	if (json_object_get(json_object_get(o, group), dot + 1))
		n = json_integer_value(json_object_get(json_object_get(o, group), dot + 1));
	json_decref(o);
	return n;
}

bool status_becomes(const char *fabric, const char *path, long want)
{
	double end = seconds() + BECOMES_S;
	long n;

	while ((n = status_of(fabric, path)) != want && seconds() < end)
		usleep(10000);
	if (n != want)
		fprintf(stderr, "%s is %ld, not %ld\n", path, n, want);
	return n == want;
}

bool has_gid(const char *fabric, const char *gid)
{
	char *text = NULL;
	bool has = false;
	json_t *o, *g;
	size_t i;

	if (rdv_status_json(fabric, &text))
		return false;
	o = json_loads(text, 0, NULL);
	free(text);
	json_array_foreach(json_object_get(o, "gids"), i, g) has |=
		!strcmp(json_string_value(json_object_get(g, "gid")), gid);
	json_decref(o);
	return has;
}

bool all_zero(const char *fabric)
{
	return status_becomes(fabric, "counts.processes", 0) &&
	       status_becomes(fabric, "counts.channels", 0) &&
	       status_becomes(fabric, "counts.leases", 0) &&
	       status_becomes(fabric, "counts.timers", 0) &&
	       status_becomes(fabric, "counts.fds", 0);
}

pid_t weftd_pid(const char *fabric)
{
	int32_t pid = 0;

	return rdv_ping(fabric, &pid) ? 0 : pid;
}

void weftd_kill(const char *fabric)
{
	pid_t pid = weftd_pid(fabric);

	CHECK(pid > 0 && kill_and_wait(pid));
}
