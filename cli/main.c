// SPDX-License-Identifier: BSD-3-Clause
#include <argp.h>

#include "cli/common/commands.h"
#include "cli/common/say.h"
#include "cli/crash/crash.h"
#include "cli/doctor.h"
#include "cli/env.h"
#include "cli/fault.h"
#include "cli/peercheck/peercheck.h"
#include "cli/run.h"
#include "cli/status.h"
#include "cli/topo.h"
#include "cli/up.h"

/* Takes the place of libc's, so it must be visible to it. */
__attribute__((visibility("default"))) const char *argp_program_version = "weft " WEFT_VERSION;

int main(int argc, char **argv)
{
	static const struct command list[] = {
		{"run", "run a program on Weft", cmd_run},
		{"env", "print what a shell needs to run programs on Weft", cmd_env},
		{"up", "start weftd, to stay", cmd_up},
		{"down", "stop weftd", cmd_down},
		{"status", "show what weftd serves", cmd_status},
		{"topo", "show a topology", cmd_topo},
		{"fault", "inject faults into RoCE packets", cmd_fault},
		{"crash", "find out what a power failure would leave of persistent memory",
			cmd_crash},
		{"peercheck", "check a client of the peer memory API", cmd_peercheck},
		{"doctor", "check this machine and this installation", cmd_doctor},
		{0},
	};
	static const char *const not_yet[] = {"top", "capture", "bench", NULL};
	static const struct commands commands = {.name = "weft",
		.doc = "Soft RDMA in user space: runs unmodified RDMA programs on any machine.\v",
		.see = "weft(1) and weft(7)",
		.list = list,
		.not_yet = not_yet};

	argp_err_exit_status = EXIT_USAGE;
	argv[0] = "weft";
	return commands_run(&commands, argc, argv);
}
