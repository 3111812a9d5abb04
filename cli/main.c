// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"

/* Takes the place of libc's, so it must be visible to it. */
__attribute__((visibility("default"))) const char *argp_program_version = "weft " WEFT_VERSION;

int cli_fail(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	fputs("weft: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	return EXIT_FAILED;
}

int cli_written(void)
{
	int failed = fflush(stdout) ? errno : ferror(stdout) ? EIO : 0;

	clearerr(stdout);
	return failed ? cli_fail("cannot write to standard output: %s; make room, or write "
				 "elsewhere",
				strerror(failed))
		      : EXIT_OK;
}

int main(int argc, char **argv)
{
	static const struct command list[] = {
		{"run", "run a program on Weft", cmd_run},
		{"env", "print what a shell needs to run programs on Weft", cmd_env},
		{"up", "start weftd, to stay", cmd_up},
		{"down", "stop weftd", cmd_down},
		{"status", "show what weftd serves", cmd_status},
		{"crash", "find out what a power failure would leave of persistent memory",
			cmd_crash},
		{"doctor", "check this machine and this installation", cmd_doctor},
		{0},
	};
	static const char *const not_yet[] = {
		"topo", "top", "capture", "fault", "peercheck", "bench", NULL};
	static const struct commands commands = {.name = "weft",
		.doc = "Soft RDMA in user space: runs unmodified RDMA programs on any machine.\v",
		.see = "weft(1) and weft(7)",
		.list = list,
		.not_yet = not_yet};

	argp_err_exit_status = EXIT_USAGE;
	argv[0] = "weft";
	return commands_run(&commands, argc, argv);
}
