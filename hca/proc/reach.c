// SPDX-License-Identifier: BSD-3-Clause
#include "hca/proc/reach.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"

/* On ourselves, which nothing but a filter of system calls forbids. */
static bool calls_work(void)
{
	char a = 1, b = 0;
	struct iovec from = {&a, 1}, to = {&b, 1};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 &&
	       process_vm_writev(getpid(), &from, 1, &to, 1, 0) == 1;
}

static bool is_privileged(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	return syscall(SYS_capget, &head, data) == 0 && data[0].effective & 1u << CAP_SYS_PTRACE;
}

/* 0 where there is no Yama. */
static int yama_scope(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (f && fscanf(f, "%d", &scope) != 1)
		scope = 0;
	if (f)
		fclose(f);
	return scope;
}

uint32_t reach_find_out(void)
{
	const char *mover = secure_getenv("WEFT_MOVER");
	int saved = errno;
	uint32_t flags = 0;

	if (mover && *mover && strcmp(mover, "cma") && strcmp(mover, "agent"))
		log_line(LOG_LVL_WARN, "WEFT_MOVER=%.40s is neither cma nor agent, and is ignored",
			mover);
	if (mover && strcmp(mover, "cma") == 0)
		return REACH_CALLS | REACH_ALLOWS | REACH_NEVER_AGENT;
	if ((!mover || strcmp(mover, "agent") != 0) && calls_work())
		flags |= REACH_CALLS;
	if (is_privileged())
		flags |= REACH_PRIVILEGED;
	if (prctl(PR_GET_DUMPABLE) == 1 && yama_scope() == 0)
		flags |= REACH_ALLOWS;
	errno = saved;
	return flags;
}

bool reach_by_cma(uint32_t from, uint32_t to, bool same_pid_ns)
{
	if (from & REACH_NEVER_AGENT)
		return true;
	return from & REACH_CALLS && same_pid_ns && (to & REACH_ALLOWS || from & REACH_PRIVILEGED);
}
