// SPDX-License-Identifier: BSD-3-Clause
#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct {
	char weft[PATH_MAX];
	char dir[PATH_MAX];
	unsigned failures;
	pid_t pid;
} world;

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void nap_us(unsigned us)
{
	const struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

bool check(bool ok, const char *fmt, ...)
{
	va_list ap;

	if (ok)
		return true;
	world.failures++;
	printf("FAIL: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	return false;
}

static unsigned each_daemon(int sig);

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

/* Ends our children, by pid; theirs become ours.  How many there were. */
static unsigned kill_children(void)
{
	FILE *f = fopen("/proc/thread-self/children", "re");
	unsigned n = 0;
	int pid;

	for (; f && fscanf(f, "%d", &pid) == 1; n++)
		kill(pid, SIGKILL);
	if (f)
		fclose(f);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return n;
}

/* However the test ends by itself: without a daemon of ours, and without the directory. */
static void clean_up(void)
{
	if (getpid() != world.pid)
		return;                                       /* a child that leaves by exit() */
	for (int calm = 0, i = 0; calm < 3 && i < 100; i++) { /* one may be starting just now */
		calm = kill_children() + each_daemon(SIGKILL) ? 0 : calm + 1;
		nftw(world.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
		nap_us(10000);
	}
}

/* By a time limit or the keyboard.  No allocator lock is ours: the test waits or sleeps. */
static void ended(int sig)
{
	clean_up();
	_exit(128 + sig);
}

void world_begin(const char *build)
{
	const char *tmp = getenv("TMPDIR");
	char log[PATH_MAX + 16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!realpath(build, world.dir))
		exit(99);
	snprintf(world.weft, sizeof world.weft, "%.*s/weft", PATH_MAX - 8, world.dir);
	snprintf(world.dir, sizeof world.dir, "%s/weft-storm-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(world.dir))
		exit(99);
	world.pid = getpid();
	atexit(clean_up);
	setenv("WEFT_RUNTIME_DIR", world.dir, 1);
	unsetenv("WEFT_FABRIC");
	unsetenv("WEFT_NODE");
	snprintf(log, sizeof log, "warn:%s/log", world.dir);
	setenv("WEFT_LOG", log, 1);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, ended);
	signal(SIGINT, ended);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Runs weft with up to two arguments; its output in buf.  The exit status or -1. */
static int run_weft(const char *arg1, const char *arg2, char *buf, size_t size)
{
	size_t used = 0;
	int pipe_fd[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(pipe_fd[1], 1);
		execl(world.weft, world.weft, arg1, arg2, (char *)NULL);
		_exit(127);
	}
	close(pipe_fd[1]);
	while (used < size - 1 && (n = read(pipe_fd[0], buf + used, size - 1 - used)) > 0)
		used += n;
	buf[used] = '\0';
	close(pipe_fd[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void world_up(void)
{
	char out[4096];

	if (run_weft("up", NULL, out, sizeof out)) {
		printf("cannot start weftd: %s\n", out);
		exit(99);
	}
}

static int number(json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

bool world_counts(struct counts *c)
{
	static char out[4 << 20];
	json_t *o, *n;

	if (run_weft("status", "--json", out, sizeof out))
		return false;
	o = json_loads(out, 0, NULL);
	n = json_object_get(o, "counts");
	*c = (struct counts){number(n, "processes"), number(n, "channels"), number(n, "leases"),
		number(n, "timers"), number(n, "fds"), number(o, "pid")};
	json_decref(o);
	return n != NULL;
}

bool world_empty(unsigned within_ms)
{
	uint64_t end = now_ns() + within_ms * 1000000ull;
	struct counts c = {0};

	do {
		if (world_counts(&c) && !c.processes && !c.channels && !c.leases && !c.timers &&
			!c.fds)
			return true;
		nap_us(20000);
	} while (now_ns() < end);
	return check(false,
		"weftd still has %d processes, %d channels, %d leases, %d timers, %d fds",
		c.processes, c.channels, c.leases, c.timers, c.fds);
}

/* Is pid a weftd, not a zombie, of our directory? */
static bool is_ours(const char *pid)
{
	char path[PATH_MAX], buf[65536], want[PATH_MAX + 32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%s/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, buf, 6);
	if (fd >= 0)
		close(fd);
	if (n != 6 || memcmp(buf, "weftd\n", 6))
		return false;
	snprintf(path, sizeof path, "/proc/%s/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, buf, sizeof buf);
	if (fd >= 0)
		close(fd);
	snprintf(want, sizeof want, "WEFT_RUNTIME_DIR=%s", world.dir);
	return n > 0 && memmem(buf, n, want, strlen(want));
}

/* Counts the weftd of our directory, or ends them by that signal. */
static unsigned each_daemon(int sig)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && is_ours(e->d_name)) {
			n++;
			if (sig)
				kill(atoi(e->d_name), sig);
		}
	if (d)
		closedir(d);
	return n;
}

void world_signal_daemons(int sig)
{
	each_daemon(sig);
}

unsigned world_daemons(void)
{
	return each_daemon(0);
}

unsigned world_reap(void)
{
	unsigned n = 0;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		check(!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL,
			"process %d died of signal %d", (int)pid, WTERMSIG(status));
		n++;
	}
	return n;
}

bool world_logged(const char *text)
{
	char path[PATH_MAX + 8], line[1024];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof path, "%s/log", world.dir);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof line, f))
		found = strstr(line, text);
	if (f)
		fclose(f);
	return found;
}

static void show_log(void)
{
	char path[PATH_MAX + 8], line[1024];
	FILE *f;

	snprintf(path, sizeof path, "%s/log", world.dir);
	f = fopen(path, "re");
	for (int n = 0; f && n < 50 && fgets(line, sizeof line, f); n++)
		printf("log: %s", line);
	if (f)
		fclose(f);
}

int world_end(void)
{
	struct counts c;
	char out[4096];

	if (world_counts(&c)) {
		run_weft("down", NULL, out, sizeof out);
		for (int i = 0; i < 100 && kill(c.pid, 0) == 0; i++) {
			world_reap();
			nap_us(10000);
		}
	}
	if (each_daemon(SIGKILL))
		nap_us(100000);
	world_reap();
	if (world.failures)
		show_log();
	printf("%s: %u failures\n", world.failures ? "FAILED" : "passed", world.failures);
	return world.failures ? 1 : 0;
}
