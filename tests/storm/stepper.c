// SPDX-License-Identifier: BSD-3-Clause
#include "stepper.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* Waits for a stop of the agent; others' signals are passed on. */
static int wait_trap(struct agent *a, enum __ptrace_request how)
{
	int status;

	for (;;) {
		if (waitpid(a->pid, &status, __WALL) < 0)
			return -errno;
		if (!WIFSTOPPED(status))
			return -ECHILD;
		if (WSTOPSIG(status) == SIGTRAP && status >> 16 == 0)
			return 0;
		if (ptrace(how, a->pid, 0, status >> 16 ? 0 : WSTOPSIG(status)) < 0)
			return -errno;
	}
}

/* The second trap is an int3, which the kernel tells from a step. */
static bool is_breakpoint(struct agent *a)
{
	siginfo_t si;

	return ptrace(PTRACE_GETSIGINFO, a->pid, 0, &si) == 0 && si.si_code == SI_KERNEL;
}

int stepper_attach(struct agent *a)
{
#if defined(__x86_64__)
	return ptrace(PTRACE_SEIZE, a->pid, 0, 0) < 0 ? -errno : 0;
#else
	(void)a;
	return -ENOSYS;
#endif
}

void stepper_detach(struct agent *a)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, a->pid, 0, 0) == 0 && waitpid(a->pid, &status, __WALL) > 0)
		ptrace(PTRACE_DETACH, a->pid, 0, 0);
}

/*
 * Has us and the agent run on one CPU, or again on those of before.  A step takes two switches
 * between us: on one CPU some microseconds, across two that sleep in between, in a virtual machine,
 * a hundred.
 */
static void share_cpu(struct agent *a, bool share)
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
	sched_setaffinity(a->pid, sizeof one, share ? &one : &before);
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
	share_cpu(a, true);
	rc = step(a, n, behind);
	share_cpu(a, false);
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
