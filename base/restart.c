// SPDX-License-Identifier: BSD-3-Clause
#include "base/restart.h"

#include <signal.h>
#include <stddef.h>

/* Raised by what a thread itself does: they interrupt no wait, and sanitizers handle them. */
static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL ||
	       sig == SIGTRAP || sig == SIGABRT || sig == SIGSYS;
}

bool restart_after_signal(void)
{
	struct sigaction sa;

	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (!is_fault(sig) && sigaction(sig, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL &&
			sa.sa_handler != SIG_IGN && !(sa.sa_flags & SA_RESTART))
			return false;
	return true;
}
