// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/loads.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/library.h"
#include "cli/peercheck/keeper.h"
#include "peermem/registry.h"

enum { PATIENCE_S = 5, LOOK_MS = 100 };

/* What the process that loads them leaves for the one that started it. */
struct said {
	unsigned loaded; /* so many did */
	char why[512];   /* the next one did not; "": the process ended there */
};

struct loading {
	char *const *path;
	unsigned n;
	const char *libverbs;
	struct said *said;
};

/* ---- the process that loads them ---- */

__attribute__((format(printf, 2, 3), noreturn)) static void say(
	struct said *to, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to->why, sizeof to->why, fmt, ap);
	va_end(ap);
	_exit(1);
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

/* The loader says first which file it means. */
static const char *without_path(const char *error, const char *path)
{
	const size_t n = strlen(path);

	return strncmp(error, path, n) == 0 && !strncmp(error + n, ": ", 2) ? error + n + 2 : error;
}

static void load_one(const char *path, struct said *said)
{
	const unsigned before = peer_registry_count();
	void *library;
	int rc;

	alarm(PATIENCE_S);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		say(said, "%s", without_path(dlerror(), path));
	rc = library_init(library);
	if (rc)
		say(said, "its init_module answers %d%s", rc,
			before ? ", beside those before it" : "");
	if (peer_registry_count() == before)
		say(said, "it registers no peer client%s",
			before ? ", or one whose name is taken" : "");
}

static void load(void *arg)
{
	const struct loading *l = arg;
	const pid_t me = getpid();

	signal(SIGALRM, SIG_DFL);
	be_quiet();
	dlopen(l->libverbs, RTLD_NOW | RTLD_GLOBAL); /* what it lacks then, the next answer says */
	for (unsigned i = 0; i < l->n; i++) {
		load_one(l->path[i], l->said);
		if (getpid() != me)
			_exit(0); /* what it forked, and did not end */
		l->said->loaded++;
	}
	_exit(0);
}

/* ---- this one ---- */

/* A library may stop the alarm, or the keeper. */
static int wait_for(struct keeper *k, unsigned n)
{
	const uint64_t until = clock_ns() + (n + 1) * PATIENCE_S * NSEC_PER_SEC;
	unsigned left;

	while (keeper_look(k) == KEEPER_WORKS && clock_ns() < until)
		poll(&(struct pollfd){.fd = k->pidfd, .events = POLLIN}, 1, LOOK_MS);
	return keeper_end(k, &left);
}

static void judge(int status, const struct said *said, char *why, size_t n)
{
	if (said->why[0])
		snprintf(why, n, "%.*s", (int)sizeof said->why - 1, said->why);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(why, n, "it has not loaded in %d s", PATIENCE_S);
	else if (WIFSIGNALED(status))
		snprintf(why, n, "it ends by SIG%s when it is loaded",
			sigabbrev_np(WTERMSIG(status)));
	else
		snprintf(why, n, "it ends the process, with exit code %d", WEXITSTATUS(status));
}

unsigned peer_clients_load(
	char *const *path, unsigned n, const char *libverbs, char *why, size_t size)
{
	struct said *said =
		mmap(NULL, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct loading loading = {path, n, libverbs, said};
	struct keeper keeper;
	unsigned loaded = 0;
	int status;

	if (said == MAP_FAILED || !keeper_start(&keeper, load, &loading)) {
		snprintf(why, size, "not tried: %s", strerror(errno));
	} else {
		status = wait_for(&keeper, n);
		loaded = said->loaded < n ? said->loaded : n;
		if (loaded < n)
			judge(status, said, why, size);
	}
	if (said != MAP_FAILED)
		munmap(said, sizeof *said);
	return loaded;
}
