// SPDX-License-Identifier: BSD-3-Clause
/* A handler may do here what no program's could: the process has nothing left but its report. */
#include "cli/peercheck/crash.h"

#include <execinfo.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/library.h"
#include "cli/peercheck/record.h"
#include "cli/peercheck/subject.h"
#include "cli/peercheck/watch.h"
#include "peermem/generation.h"

enum { STACK = 256 * 1024, NEAR_NULL = 65536, FRAMES = 32 };

/* It took the NULL that its generation passes for a table; a sanitizer, or itself, said so. */
static bool is_missing_table(const char *in, const siginfo_t *info)
{
	return in && strcmp(in, "get_pages") == 0 && !peer_generation()->table_at_pin &&
	       record_family() != FAMILY_NTH &&
	       (info->si_signo == SIGABRT ||
		       (info->si_signo == SIGSEGV && (uintptr_t)info->si_addr < NEAR_NULL));
}

static const char *about(const siginfo_t *info)
{
	static char text[96];
	const char *why = NULL;

	if (info->si_signo != SIGSEGV && info->si_signo != SIGBUS)
		return "";
	if (subject.kshim)
		why = subject.kshim->about(info->si_addr);
	if (!why)
		why = (uintptr_t)info->si_addr < NEAR_NULL ? "NULL" : "no memory of the CPU's";
	snprintf(text, sizeof text, " at %p: %s", info->si_addr, why);
	return text;
}

/* Inside a function of the client the device may have got what is wrong from there. */
bool crash_is_of_device(const char *in)
{
	void *frame[FRAMES];
	const int n = !in && subject.device_library ? backtrace(frame, FRAMES) : 0;

	for (int i = 0; i < n && !library_has(subject.loaded, frame[i]); i++)
		if (library_has(subject.device_library, frame[i]))
			return true;
	return false;
}

static void crashed(int sig, siginfo_t *info, void *context)
{
	const char *in = watch_function();

	(void)context;
	if (crash_is_of_device(in)) {
		record_error("its device ends the process by SIG%s", sigabbrev_np(sig));
		_exit(0);
	}
	if (is_missing_table(in, info))
		record_broken(6, "table", "get_pages uses a table, and got NULL");
	else
		record_seen(SEEN_CRASH, in, "SIG%s in %s%s", sigabbrev_np(sig),
			in ? in : "the client", about(info));
	_exit(0);
}

static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP};

void crash_begin(void)
{
	struct sigaction act = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	const stack_t stack = {.ss_sp = malloc(STACK), .ss_size = STACK};

	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &act, NULL);
}

void crash_of_thread(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
