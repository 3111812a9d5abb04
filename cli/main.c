// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/commands.h"

/* Takes the place of libc's, so it must be visible to it. */
__attribute__((visibility("default"))) const char *argp_program_version = "weft " WEFT_VERSION;

enum { MESSAGE = 8192 };

static void __attribute__((format(printf, 2, 0)))
form(char line[MESSAGE], const char *fmt, va_list ap)
{
	char text[MESSAGE];
	int n = vsnprintf(text, sizeof text, fmt, ap);

	n = n < 0 ? 0 : n < MESSAGE ? n : MESSAGE - 1;
	text_escape(line, MESSAGE, text, n);
}

int cli_fail(const char *fmt, ...)
{
	char line[MESSAGE];
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	form(line, fmt, ap);
	va_end(ap);
	fprintf(stderr, "weft: %s\n", line);
	return EXIT_FAILED;
}

void cli_usage(struct argp_state *state, const char *fmt, ...)
{
	char line[MESSAGE];
	va_list ap;

	va_start(ap, fmt);
	form(line, fmt, ap);
	va_end(ap);
	argp_error(state, "%s", line);
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
