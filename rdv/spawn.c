// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "crash/journal.h"

enum {
	STACK_SIZE = 64 << 10,
	READY_FD = 3,
	LOCK_POLL_NS = 2 * NSEC_PER_MSEC,
	/* One that ends is noticed at once; one that takes so long waits for a CPU. */
	START_MS = 30000,
};

extern char **environ;

/* clone(3) by the name that sanitizers do not take for a fork(). */
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);

/* What the two short-lived children, which share our memory, need; all prepared before. */
struct launch {
	char path[PATH_MAX];
	char *argv[8];
	char **envp;
	int null_fd, pipe_fd; /* our ends */
	char *stack;          /* of both children, half each */
	int err;              /* of execve */
	bool privileged;      /* we run with privileges of our file */
};

static bool executable(const char *path)
{
	return access(path, X_OK) == 0;
}

/* Tries <directory of this library>/<rel>. */
static bool beside_library(char *path, size_t size, const char *rel)
{
	char real[PATH_MAX];
	Dl_info info;
	char *slash;

	if (!dladdr((void *)spawn_or_connect, &info) || !realpath(info.dli_fname, real))
		return false;
	slash = strrchr(real, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return (size_t)snprintf(path, size, "%s/%s", real, rel) < size && executable(path);
}

static int find_weftd(char *path, size_t size)
{
	const char *named = secure_getenv("WEFT_DAEMON");

	if (named && *named) {
		if ((size_t)snprintf(path, size, "%s", named) < size && executable(path))
			return 0;
		log_line(
			LOG_LVL_ERROR, "cannot execute WEFT_DAEMON=%s; correct or unset it", named);
		return -ENOENT;
	}
	if (beside_library(path, size, "../weftd") || beside_library(path, size, "weftd"))
		return 0;
	snprintf(path, size, "%s", WEFT_DAEMON_PATH);
	if (executable(path))
		return 0;
	log_line(LOG_LVL_ERROR,
		"no weftd beside the library nor at %s; install it or name it by WEFT_DAEMON",
		path);
	return -ENOENT;
}

/* Is it the program's alone? */
static bool is_not_for_weftd(const char *var)
{
	return !strncmp(var, "LD_PRELOAD=", 11) ||
	       !strncmp(var, JOURNAL_ENV "=", sizeof JOURNAL_ENV);
}

/*
 * The environment without LD_PRELOAD: weftd wants none of the program's interposers.  Without the
 * journal, too, for who has that is waited for.  Of a program with privileges of its file it gets
 * nothing, for others chose it, and weftd need not see that.
 */
static char **daemon_env(bool privileged)
{
	size_t n = 0, k = 0;
	char **env;

	while (!privileged && environ && environ[n])
		n++;
	env = malloc((n + 1) * sizeof *env);
	if (!env)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (!is_not_for_weftd(environ[i]))
			env[k++] = environ[i];
	env[k] = NULL;
	return env;
}

/*
 * The children run in our memory as if they were the calling thread: system calls only, and
 * nothing that an interposer or a sanitizer would keep books about.
 */
#define IN_CHILD __attribute__((no_sanitize("thread")))

/*
 * weftd serves the user that we act as, and him alone: a real uid of another would let that one end
 * it, and groups of our file are not the user's.
 */
IN_CHILD static bool become_user(void)
{
	uid_t uid = syscall(SYS_geteuid);
	gid_t gid = syscall(SYS_getgid);

	return !syscall(SYS_setresgid, gid, gid, gid) && !syscall(SYS_setresuid, uid, uid, uid);
}

/* In the second child.  All signals are blocked; weftd unblocks them. */
IN_CHILD static int exec_weftd(void *arg)
{
	struct launch *l = arg;
	/* Out of the way first: either may lie where the other, or stdio, has to go. */
	int ready = syscall(SYS_fcntl, l->pipe_fd, F_DUPFD, READY_FD + 1);
	int null = syscall(SYS_fcntl, l->null_fd, F_DUPFD, READY_FD + 1);
	bool placed = ready >= 0 && null >= 0 && (!l->privileged || become_user());

	for (int fd = 0; fd < READY_FD; fd++)
		placed = placed && syscall(SYS_dup3, null, fd, 0) == fd;
	if (placed && syscall(SYS_dup3, ready, READY_FD, 0) == READY_FD) {
		syscall(SYS_close_range, READY_FD + 1, ~0u, 0);
		syscall(SYS_execve, l->path, l->argv, l->envp);
	}
	l->err = errno;
	syscall(SYS_exit_group, 127);
	return 0;
}

/*
 * In the first child, which makes the second an orphan in a process group of its own, that of no
 * terminal's foreground.  Not in a session of its own: where the scheduler groups by session
 * (sched_autogroup), one that wakes for an instant at a time beside busy programs was seen to wait
 * for seconds.
 */
IN_CHILD static int detach(void *arg)
{
	struct launch *l = arg;

	syscall(SYS_setpgid, 0, 0);
	if (__clone(exec_weftd, l->stack + STACK_SIZE / 2, CLONE_VM | CLONE_VFORK, l) < 0)
		l->err = errno;
	syscall(SYS_exit_group, 0);
	return 0;
}

/*
 * Runs the children.  An exit signal of 0 keeps the first out of the program's SIGCHLD and
 * wait(-1).  The calling thread is held until execve is done, so the stack may go then.
 */
static int run_children(struct launch *l)
{
	sigset_t all, old;
	int pid;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pid = __clone(detach, l->stack + STACK_SIZE, CLONE_VM | CLONE_VFORK, l);
	if (pid < 0)
		l->err = errno;
	else
		while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -l->err;
}

static int launch(struct launch *l)
{
	int ret = -ENOMEM;

	l->privileged = getauxval(AT_SECURE);
	l->envp = daemon_env(l->privileged);
	l->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	l->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (l->null_fd < 0)
		ret = -errno;
	else if (l->envp && l->stack != MAP_FAILED)
		ret = run_children(l);
	if (l->stack != MAP_FAILED)
		munmap(l->stack, STACK_SIZE);
	if (l->null_fd >= 0)
		close(l->null_fd);
	free(l->envp);
	return ret;
}

enum { REASON_SIZE = PATH_MAX + 512, START_TRIES = 3 };

/*
 * Reads what weftd has to say about its start: "ok", or the reason why not, or nothing if it
 * ended without a word (-EPIPE).  What there is to log stands in reason then.
 */
static int await_ready(int fd, const char *path, char *reason)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	char line[256];
	ssize_t n;
	int err;

	do {
		n = poll(&pfd, 1, START_MS);
	} while (n < 0 && errno == EINTR);
	if (n == 0) {
		snprintf(reason, REASON_SIZE, "%s did not become ready within %d s", path,
			START_MS / 1000);
		return -ETIMEDOUT;
	}
	do {
		n = read(fd, line, sizeof line - 1);
	} while (n < 0 && errno == EINTR);
	line[n > 0 ? n : 0] = '\0';
	if (strcmp(line, "ok") == 0)
		return 0;
	snprintf(reason, REASON_SIZE, "%s could not start: %s", path,
		*line ? line + strspn(line, READY_ERROR_CHARS)
		      : "it ended without a word; run it with --foreground to see why");
	if (!*line)
		return -EPIPE;
	err = atoi(line);
	return err == EMFILE || err == ENFILE || err == ENOMEM ? -err : -ENOTCONN;
}

static int start(const struct rdv_paths *p, bool stay, char *reason)
{
	struct launch l = {.argv = {"weftd", "--fabric", (char *)p->fabric, "--ready-fd", "3",
				   stay ? "--stay" : NULL}};
	int pipe_fds[2];
	int ret = find_weftd(l.path, sizeof l.path);

	if (ret)
		return ret;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
		ret = -errno;
		snprintf(reason, REASON_SIZE, "cannot start %s: no pipe: %s", l.path,
			strerror(-ret));
		return ret;
	}
	l.pipe_fd = pipe_fds[1];
	ret = launch(&l);
	close(pipe_fds[1]);
	if (ret)
		snprintf(reason, REASON_SIZE, "cannot run %s: %s", l.path, strerror(-ret));
	else
		ret = await_ready(pipe_fds[0], l.path, reason);
	close(pipe_fds[0]);
	return ret;
}

/* Takes the start-up lock; another process that starts weftd holds it for a moment. */
static int lock_startup(const struct rdv_paths *p)
{
	uint64_t until = clock_ns() + (uint64_t)(START_MS + PROTO_TIMEOUT_MS) * NSEC_PER_MSEC;
	int fd = rdv_open_file(p, "lock");

	if (fd < 0) {
		log_line(LOG_LVL_ERROR, "cannot open %s/%s.lock: %s", p->dir, p->name,
			strerror(-fd));
		return fd;
	}
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (clock_ns() > until) {
			log_line(LOG_LVL_ERROR,
				"another process holds %s/%s.lock; end it or remove the file",
				p->dir, p->name);
			close(fd);
			return -ETIMEDOUT;
		}
		nanosleep(&(struct timespec){.tv_nsec = LOCK_POLL_NS}, NULL);
	}
	return fd;
}

/*
 * Does a weftd live that does not listen yet, or no more?  Whoever started it may be dead, and with
 * it the start-up lock that said so.
 */
static bool another_lives(const struct rdv_paths *p)
{
	int fd = rdv_open_file(p, "epoch");
	bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return held;
}

/* With the start-up lock held: one that is about to listen is waited for. */
static int connect_again(struct conn *c, const struct rdv_paths *p)
{
	uint64_t until = clock_ns() + 2 * NSEC_PER_SEC;
	int ret = conn_open(c, p);

	while (ret == -ENOTCONN && clock_ns() < until && another_lives(p)) {
		nanosleep(&(struct timespec){.tv_nsec = LOCK_POLL_NS}, NULL);
		ret = conn_open(c, p);
	}
	return ret;
}

/*
 * Another process may be quicker, or its weftd become reachable only while ours gives up.  One that
 * ended without a word may have been killed: another is started.
 */
static int start_or_find(struct conn *c, const struct rdv_paths *p, bool stay)
{
	char reason[REASON_SIZE] = "";
	int ret = -EPIPE;

	for (unsigned i = 0; ret == -EPIPE && i < START_TRIES; i++) {
		*reason = '\0';
		ret = start(p, stay, reason);
		if (conn_open(c, p) == 0)
			return 0;
	}
	if (*reason)
		log_line(LOG_LVL_ERROR, "%s", reason);
	return ret && ret != -EPIPE ? ret : -ENOTCONN;
}

int spawn_or_connect(struct conn *c, const struct rdv_paths *p, bool stay)
{
	int ret = conn_open(c, p);
	int lock_fd;

	if (ret != -ENOTCONN)
		return ret;
	lock_fd = lock_startup(p);
	if (lock_fd < 0)
		return lock_fd;
	ret = connect_again(c, p);
	if (ret == -ENOTCONN)
		ret = start_or_find(c, p, stay);
	flock(lock_fd, LOCK_UN); /* a child forked meanwhile may have the fd, too */
	close(lock_fd);
	return ret;
}
