// SPDX-License-Identifier: BSD-3-Clause
/* The supervisor of a test, checks, waiting. */
#include "t.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[64];

const char *t_dir(void)
{
	return dir;
}

uint64_t t_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

bool t_until(bool (*cond)(void *arg), void *arg, unsigned ms)
{
	uint64_t end = t_ms() + ms;

	while (!cond(arg)) {
		if (t_ms() >= end)
			return false;
		poll(NULL, 0, 1);
	}
	return true;
}

/* ---- the supervisor ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static pid_t parent_of(pid_t pid)
{
	char path[32], text[512], *at;
	FILE *f;
	size_t n;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	at = strrchr(text, ')'); /* the name before it may hold anything */
	return at ? atoi(at + 4) : 0;
}

/* Kills our children, by pid; theirs become ours (we are their reaper).  True if there was one. */
static bool kill_children(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool any = false;

	while (d && (e = readdir(d))) {
		pid_t pid = atoi(e->d_name);

		if (pid > 0 && parent_of(pid) == getpid()) {
			kill(pid, SIGKILL);
			any = true;
		}
	}
	if (d)
		closedir(d);
	while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
		;
	return any;
}

static volatile sig_atomic_t told_to_end;

static void tell_to_end(int sig)
{
	told_to_end = sig;
}

static int supervise(pid_t test, unsigned seconds)
{
	uint64_t end = t_ms() + seconds * 1000ull;
	int status = 0;

	while (waitpid(test, &status, WNOHANG) == 0) {
		if (t_ms() > end || told_to_end) {
			fprintf(stderr,
				told_to_end ? "the test was told to end\n"
					    : "the test takes longer than %u s\n",
				seconds);
			kill(test, SIGKILL);
			waitpid(test, NULL, 0);
			return 1;
		}
		poll(NULL, 0, 2);
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "the test was ended by signal %d\n", WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

void t_start(unsigned seconds)
{
	pid_t test;
	int rc;

	strcpy(dir, "/tmp/weft-test-XXXXXX");
	if (!mkdtemp(dir))
		T_FAIL("mkdtemp %s: %s", dir, strerror(errno));
	setenv("WEFT_RUNTIME_DIR", dir, 1);
	setenv("WEFT_WIRE", "never", 0); /* UDP port 4791 is one for all */
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	test = T_SYS(fork());
	if (!test) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	signal(SIGTERM, tell_to_end);
	signal(SIGINT, tell_to_end);
	rc = supervise(test, seconds);
	while (kill_children())
		poll(NULL, 0, 1);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	exit(rc);
}

/* ---- checks ---- */

void t_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("skipped: ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	exit(T_SKIP);
}

void t_fail_at(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s:%d: ", file, line);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

void t_equal_at(const char *file, int line, const char *what, int64_t got, int64_t want)
{
	if (got != want)
		t_fail_at(
			file, line, "%s is %lld, not %lld", what, (long long)got, (long long)want);
}

void t_ok_at(const char *file, int line, const char *what, int64_t rc)
{
	if (rc < 0)
		t_fail_at(file, line, "%s: %s", what, strerror(-rc));
}

/* ---- file descriptors ---- */

/* Calls each for all of ours, but the one that reads the list. */
static unsigned each_fd(void (*each)(int fd))
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	unsigned n = 0;

	if (!d)
		T_FAIL("opendir /proc/self/fd: %s", strerror(errno));
	while ((e = readdir(d))) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] == '.' || fd == dirfd(d))
			continue;
		n++;
		if (each)
			each(fd);
	}
	closedir(d);
	return n;
}

static void print_fd(int fd)
{
	char path[32], target[256];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof target - 1);
	if (n > 0)
		fprintf(stderr, "fd %d: %.*s\n", fd, (int)n, target);
}

unsigned t_fds(void)
{
	return each_fd(NULL);
}

void t_same_fds(unsigned before)
{
	unsigned now = t_fds();

	if (now == before)
		return;
	each_fd(print_fd);
	T_FAIL("%u file descriptors are open, not %u", now, before);
}
