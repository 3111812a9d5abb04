// SPDX-License-Identifier: BSD-3-Clause
#include "stepper.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* Waits for a stop of the thread; others' signals are passed on. */
static int wait_trap_of(pid_t tid, enum __ptrace_request how)
{
	int status;

	for (;;) {
		if (waitpid(tid, &status, __WALL) < 0)
			return -errno;
		if (!WIFSTOPPED(status))
			return -ECHILD;
		if (WSTOPSIG(status) == SIGTRAP && status >> 16 == 0)
			return 0;
		if (ptrace(how, tid, 0, status >> 16 ? 0 : WSTOPSIG(status)) < 0)
			return -errno;
	}
}

static int wait_trap(struct agent *a, enum __ptrace_request how)
{
	return wait_trap_of(a->pid, how);
}

/* The second trap is an int3, which the kernel tells from a step. */
static bool is_breakpoint(struct agent *a)
{
	siginfo_t si;

	return ptrace(PTRACE_GETSIGINFO, a->pid, 0, &si) == 0 && si.si_code == SI_KERNEL;
}

bool stepper_works(void)
{
#if defined(__x86_64__)
	return true;
#else
	return false;
#endif
}

int stepper_attach(struct agent *a)
{
	if (!stepper_works())
		return -ENOSYS;
	return ptrace(PTRACE_SEIZE, a->pid, 0, 0) < 0 ? -errno : 0;
}

void stepper_detach(struct agent *a)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, a->pid, 0, 0) == 0 && waitpid(a->pid, &status, __WALL) > 0)
		ptrace(PTRACE_DETACH, a->pid, 0, 0);
}

/*
 * Has us and the thread run on one CPU, or again on those of before.  A step takes two switches
 * between us: on one CPU some microseconds, across two that sleep in between, in a virtual machine,
 * a hundred.
 */
static void share_cpu(pid_t tid, bool share)
{
	static cpu_set_t before;
	cpu_set_t one;
	int cpu = sched_getcpu();

	if (share && sched_getaffinity(0, sizeof before, &before) < 0)
		CPU_ZERO(&before);
	if (cpu < 0 || !CPU_COUNT(&before))
		return;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(tid, sizeof one, share ? &one : &before);
	sched_setaffinity(0, sizeof one, share ? &one : &before);
}

static long step(struct agent *a, long n, bool *behind)
{
	for (long i = 0; i < n; i++) {
		int rc = ptrace(PTRACE_SINGLESTEP, a->pid, 0, 0) < 0
				 ? -errno
				 : wait_trap(a, PTRACE_SINGLESTEP);

		if (rc)
			return rc;
		*behind = is_breakpoint(a);
		if (*behind)
			return i;
	}
	return n;
}

long stepper_into(struct agent *a, long n, bool *behind)
{
	long rc = wait_trap(a, PTRACE_CONT);

	*behind = false;
	if (rc)
		return rc;
	share_cpu(a->pid, true);
	rc = step(a, n, behind);
	share_cpu(a->pid, false);
	return rc;
}

int stepper_go_on(struct agent *a, bool behind)
{
	if (ptrace(PTRACE_CONT, a->pid, 0, 0) < 0)
		return -errno;
	if (behind)
		return 0;
	if (wait_trap(a, PTRACE_CONT))
		return -ECHILD;
	return ptrace(PTRACE_CONT, a->pid, 0, 0) < 0 ? -errno : 0;
}

int stepper_begin(pid_t tid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0)
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) != tid ||
		!WIFSTOPPED(status))
		return -ECHILD;
	share_cpu(tid, true);
	return 0;
}

bool stepper_to_its_end(pid_t tid, long max)
{
	int rc = 0, status;

	for (long i = 0; i < max && !rc; i++)
		rc = ptrace(PTRACE_SINGLESTEP, tid, 0, 0) < 0
			     ? -errno
			     : wait_trap_of(tid, PTRACE_SINGLESTEP);
	share_cpu(tid, false);
	/* One that was killed in its stop: its process ends only once we have seen that. */
	if (rc == -ESRCH)
		waitpid(tid, &status, __WALL);
	else if (!rc)
		ptrace(PTRACE_DETACH, tid, 0, 0);
	return rc;
}
