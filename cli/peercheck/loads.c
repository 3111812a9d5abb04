// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/loads.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/library.h"
#include "peermem/registry.h"

enum { PATIENCE_S = 5, SAID_MAX = 512 };

/* ---- the process that loads it ---- */

static int to_parent;

__attribute__((format(printf, 1, 2), noreturn)) static void say(const char *fmt, ...)
{
	char text[SAID_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	n = n < SAID_MAX ? n : SAID_MAX - 1;
	_exit(write(to_parent, text, (size_t)n) == n ? 1 : 2);
}

static void be_quiet(void)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
}

static int start(void *library)
{
	void *symbol = library_own(library, "init_module");
	int (*init)(void) = (int (*)(void))symbol;

	return init ? init() : 0;
}

/* The loader says first which file it means. */
static const char *without_path(const char *error, const char *path)
{
	const size_t n = strlen(path);

	return strncmp(error, path, n) == 0 && !strncmp(error + n, ": ", 2) ? error + n + 2 : error;
}

__attribute__((noreturn)) static void load(const char *path, const char *libverbs)
{
	void *library;
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	alarm(PATIENCE_S);
	be_quiet();
	dlopen(libverbs, RTLD_NOW | RTLD_GLOBAL); /* what it lacks then, the next answer says */
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		say("%s", without_path(dlerror(), path));
	rc = start(library);
	if (rc)
		say("its init_module answers %d", rc);
	if (!peer_registry_any())
		say("it registers no peer client");
	_exit(0);
}

/* ---- this one ---- */

static void wait_for(pid_t pid, int *status)
{
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
}

static bool judge(int status, ssize_t said, char *why, size_t n)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(why, n, "it has not loaded in %d s", PATIENCE_S);
	else if (WIFSIGNALED(status))
		snprintf(why, n, "it ends by SIG%s when it is loaded",
			sigabbrev_np(WTERMSIG(status)));
	else if (WEXITSTATUS(status) && said <= 0)
		snprintf(why, n, "it ends the process, with exit code %d", WEXITSTATUS(status));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

bool peer_client_loads(const char *path, const char *libverbs, char *why, size_t n)
{
	int fd[2], status = 0;
	ssize_t said;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC)) {
		snprintf(why, n, "not tried: %s", strerror(errno));
		return false;
	}
	pid = fork();
	if (pid == 0) {
		to_parent = fd[1];
		load(path, libverbs);
	}
	close(fd[1]);
	said = pid > 0 ? read(fd[0], why, n - 1) : -1;
	why[said > 0 ? said : 0] = 0;
	close(fd[0]);
	if (pid > 0)
		wait_for(pid, &status);
	else
		snprintf(why, n, "not tried: %s", strerror(errno));
	return pid > 0 && judge(status, said, why, n);
}
