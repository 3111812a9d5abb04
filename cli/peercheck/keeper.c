// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TELL_MS = 20, TELLS = 250, LIST = 4096 };

static _Atomic pid_t keepers[KEEPERS];
static bool takes_strays; /* they come to this process */

/* ---- what is left ---- */

static bool is_keeper(pid_t pid)
{
	for (unsigned i = 0; i < KEEPERS; i++)
		if (atomic_load_explicit(&keepers[i], memory_order_relaxed) == pid)
			return true;
	return false;
}

bool keeper_has_children(void)
{
	siginfo_t info;

	return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) || errno != ECHILD;
}

/* Children of this thread, which is the only one; as text, and maybe not all. */
static char *list_children(char *to)
{
	const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, to, LIST - 1);
	char *end;

	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = '\0';
	end = strrchr(to, ' '); /* behind each of them */
	if (end)
		end[1] = '\0';
	return to;
}

static unsigned end_stray(pid_t pid)
{
	return !is_keeper(pid) && !kill(pid, SIGKILL) && waitpid(pid, NULL, __WALL) == pid;
}

/* Children that are no keepers, and theirs, which come to us as soon as they have none; how many.
 */
static unsigned end_strays(void)
{
	unsigned all = 0, now = keeper_has_children();
	char list[LIST];

	while (now) {
		now = 0;
		for (char *at = list_children(list), *end; *at; at = end + (*end == ' '))
			now += end_stray((pid_t)strtol(at, &end, 10));
		all += now;
	}
	return all;
}

/* ---- the keeper ---- */

static void wait_for_signal(pid_t parent, bool *to_end)
{
	siginfo_t info = {0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	if (sigwaitinfo(&set, &info) == SIGTERM && info.si_pid == parent)
		*to_end = true;
	if (getppid() != parent)
		*to_end = true;
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

__attribute__((noreturn)) static void keep(pid_t pid, pid_t parent, struct kept *kept)
{
	bool to_end = getppid() != parent;
	int status = 0;

	while (!to_end && !has_ended(pid))
		wait_for_signal(parent, &to_end);
	if (kill(-pid, SIGKILL)) /* its number is its group's until we wait for it */
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	atomic_store_explicit(&kept->status, status, memory_order_relaxed);
	atomic_store_explicit(&kept->left, end_strays(), memory_order_relaxed);
	_exit(0);
}

static void take_signals_as_before(const sigset_t *mask)
{
	static const int ours[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act;

	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (!sigaction(ours[i], NULL, &act) && act.sa_handler != SIG_IGN)
			signal(ours[i], SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
}

/* In between: what it does with all signals blocked. */
__attribute__((noreturn)) static void be_keeper(
	pid_t parent, struct kept *kept, const sigset_t *mask, void (*work)(void *arg), void *arg)
{
	const pid_t me = getpid();
	pid_t pid;

	memset(keepers, 0, sizeof keepers);
	(void)setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid < 0)
		_exit(1);
	if (pid > 0) {
		(void)setpgid(pid, pid); /* as it does itself: whoever is first */
		atomic_store_explicit(&kept->pid, pid, memory_order_relaxed);
		keep(pid, parent, kept);
	}
	(void)setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != me)
		_exit(1);
	munmap(kept, sizeof *kept);
	take_signals_as_before(mask);
	work(arg);
	_exit(0);
}

/* ---- who starts them ---- */

static void note(pid_t was, pid_t is)
{
	for (unsigned i = 0; i < KEEPERS; i++)
		if (atomic_compare_exchange_strong_explicit(&keepers[i], &(pid_t){was}, is,
			    memory_order_relaxed, memory_order_relaxed))
			return;
}

/* Each time: what it was told before may have been lost among what others told it. */
static void tell_to_end(pid_t pid)
{
	kill(pid, SIGTERM);
	kill(pid, SIGCONT);
}

static void end(pid_t pid)
{
	for (unsigned i = 0; i < TELLS && !has_ended(pid); i++) {
		tell_to_end(pid);
		poll(NULL, 0, i ? TELL_MS : 1);
	}
	if (!has_ended(pid))
		kill(pid, SIGKILL);
}

static void end_all(int sig)
{
	pid_t pid;

	for (unsigned i = 0; i < KEEPERS; i++) {
		pid = atomic_load_explicit(&keepers[i], memory_order_relaxed);
		if (pid)
			tell_to_end(pid);
	}
	for (unsigned i = 0; i < KEEPERS; i++) {
		pid = atomic_exchange_explicit(&keepers[i], 0, memory_order_relaxed);
		if (pid)
			end(pid);
	}
	if (takes_strays)
		end_strays();
	signal(sig, SIG_DFL);
	raise(sig);
}

void keeper_begin(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act = {.sa_handler = end_all}, was;

	sigfillset(&act.sa_mask);
	signal(SIGCHLD, SIG_DFL);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (!sigaction(ends[i], NULL, &was) && was.sa_handler == SIG_DFL)
			sigaction(ends[i], &act, NULL);
	takes_strays = !keeper_has_children() && !prctl(PR_SET_CHILD_SUBREAPER, 1);
}

bool keeper_start(struct keeper *k, void (*work)(void *arg), void *arg)
{
	const pid_t me = getpid();
	sigset_t all, mask;
	struct kept *kept =
		mmap(NULL, sizeof *kept, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*k = (struct keeper){.pidfd = -1};
	if (kept == MAP_FAILED)
		return false;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	k->pid = fork();
	if (k->pid == 0)
		be_keeper(me, kept, &mask, work, arg);
	if (k->pid > 0) {
		k->kept = kept;
		k->pidfd = (int)syscall(SYS_pidfd_open, k->pid, 0);
		note(0, k->pid);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (k->pid < 0)
		munmap(kept, sizeof *kept);
	return k->pid > 0;
}

enum keeper_state keeper_look(const struct keeper *k)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)k->pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) ||
		!info.si_pid)
		return KEEPER_WORKS;
	if (info.si_code == CLD_STOPPED)
		return KEEPER_STOPPED;
	return info.si_code == CLD_EXITED ? KEEPER_DONE : KEEPER_KILLED;
}

int keeper_end(struct keeper *k, unsigned *left)
{
	int status = 0, of_keeper = 0;

	end(k->pid);
	note(k->pid, 0); /* while the number is its */
	waitpid(k->pid, &of_keeper, 0);
	if (WIFSIGNALED(of_keeper) && takes_strays)
		end_strays();
	status = atomic_load_explicit(&k->kept->status, memory_order_relaxed);
	*left = atomic_load_explicit(&k->kept->left, memory_order_relaxed);
	munmap(k->kept, sizeof *k->kept);
	if (k->pidfd >= 0)
		close(k->pidfd);
	*k = (struct keeper){.pidfd = -1};
	return status;
}
