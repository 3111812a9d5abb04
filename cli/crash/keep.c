// SPDX-License-Identifier: BSD-3-Clause
/* weft crash run: the process that keeps a journal while programs write it. */
#include "cli/crash/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/common/say.h"
#include "crash/journal.h"
#include "crash/keep.h"

enum {
	LOOK_AGAIN_MS = 20, /* before it is believed that nobody is left */
	MAPPED_MS = 100,    /* who maps it and has not our environment is not found by that */
};

/* ---- who may still write ---- */

/* False, too, if we may not read that: then it may not open our memory. */
static bool has_variable(const char *pid, const char *var)
{
	char path[64], *line = NULL;
	size_t size = 0;
	bool has = false;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!has && getdelim(&line, &size, '\0', f) > 0)
		has = !strcmp(line, var);
	free(line);
	fclose(f);
	return has;
}

/* A process that may open the journal, if it has not yet; 0: there is none. */
static pid_t find_writer(const char *var)
{
	DIR *dir = opendir("/proc");
	const struct dirent *e;
	pid_t found = 0;

	while (dir && !found && (e = readdir(dir))) {
		pid_t pid = atoi(e->d_name);

		if (pid > 0 && pid != getpid() && has_variable(e->d_name, var))
			found = pid;
	}
	if (dir)
		closedir(dir);
	return found;
}

static void nap(int ms)
{
	poll(NULL, 0, ms);
}

static void wait_for(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	if (pidfd < 0) {
		nap(LOOK_AGAIN_MS);
		return;
	}
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	close(pidfd);
}

/*
 * Nobody is left, nor is about to become a program.  One that was just forked or executed may have
 * been missed: hence the second look.
 */
static bool all_ended(const char *var)
{
	for (unsigned looks = 0; looks < 2; looks++) {
		pid_t pid = find_writer(var);

		if (pid) {
			wait_for(pidfd_open(pid, 0));
			return false;
		}
		nap(LOOK_AGAIN_MS);
	}
	return true;
}

static void keep_until_all_ended(struct journal_keep *k, int program, const char *var)
{
	int rc = -EBUSY;

	wait_for(program);
	while (rc == -EBUSY) {
		if (!all_ended(var))
			continue;
		/* Who begins to add now waits for us, and then keeps it himself. */
		if (flock(k->file, LOCK_EX | LOCK_NB)) {
			nap(LOOK_AGAIN_MS);
			continue;
		}
		rc = find_writer(var) ? -EBUSY : journal_keep_end(k);
		if (rc == -EBUSY) {
			flock(k->file, LOCK_UN);
			nap(MAPPED_MS);
		}
	}
}

/* ---- the process ---- */

/* Nothing of the caller's stays open, or is held up; what ends its programs does not end us. */
static int detach(int *tell)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), moved;

	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	prctl(PR_SET_NAME, "weft-journal");
	/* Either may be one of the first three, if the caller had closed that. */
	moved = fcntl(*tell, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	null = null < 0 ? null : fcntl(null, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (moved < 0 || null < 0 || chdir("/"))
		return -errno;
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	*tell = dup2(moved, STDERR_FILENO + 1);
	if (*tell < 0 || close_range(STDERR_FILENO + 2, ~0u, 0))
		return -errno;
	fcntl(*tell, F_SETFD, FD_CLOEXEC);
	return 0;
}

/* In the process that keeps it. */
static void keeper(const char *path, const char *var, pid_t program, int tell)
{
	struct journal_keep k = {-1, -1, 0};
	int rc = detach(&tell), pidfd = pidfd_open(program, 0);

	if (!rc)
		rc = pidfd < 0 ? -errno : journal_keep(&k, path);
	if (write(tell, &rc, sizeof rc) != sizeof rc || rc)
		_exit(EXIT_FAILED);
	close(tell);
	keep_until_all_ended(&k, pidfd, var);
	_exit(EXIT_OK);
}

/* Its parent, in a process group of its own, which leaves it to init. */
static void launch_keeper(const char *path, const char *var, pid_t program, int tell)
{
	pid_t pid;

	setpgid(0, 0);
	pid = fork();
	if (!pid)
		keeper(path, var, program, tell);
	_exit(pid < 0 ? EXIT_FAILED : EXIT_OK);
}

int crash_keep(const char *path)
{
	int tell[2], rc = -EIO;
	pid_t self = getpid(), pid;
	char *var;

	if (asprintf(&var, "%s=%s", JOURNAL_ENV, path) < 0)
		return -ENOMEM;
	if (pipe2(tell, O_CLOEXEC)) {
		free(var);
		return -errno;
	}
	pid = fork();
	if (!pid)
		launch_keeper(path, var, self, tell[1]);
	if (pid < 0)
		rc = -errno;
	close(tell[1]);
	free(var);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	/* Its end without a word is one, too. */
	if (pid > 0 && read(tell[0], &rc, sizeof rc) != sizeof rc)
		rc = -EIO;
	close(tell[0]);
	return rc;
}
