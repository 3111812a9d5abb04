// SPDX-License-Identifier: BSD-3-Clause
/* weft crash: starting programs under the simulator, and ending a journal. */
#include "cli/crash/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/common/commands.h"
#include "cli/common/launch.h"
#include "cli/common/say.h"
#include "cli/crash/check.h"
#include "cli/crash/image.h"
#include "cli/crash/keep.h"
#include "cli/crash/number.h"
#include "cli/crash/open.h"
#include "cli/crash/show.h"

enum { KEY_SIZE = 256, KEY_ADD, KEY_ALL, MIB = 1 << 20, DEFAULT_MIB = 64, MAX_MIB = 1 << 20 };

/*
 * Until this process ends or becomes a program nobody else begins or ends to keep the journal, so
 * that what is written into its file is not written over.
 */
static int lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc;

	if (fd < 0)
		return EXIT_OK; /* to open it fails, too, and says so */
	do
		rc = flock(fd, LOCK_EX);
	while (rc && errno == EINTR);
	return rc ? cli_fail("cannot lock %s: %s; choose another place", path, strerror(errno))
		  : EXIT_OK;
}

static int open_to_change(struct journal *j, const char *path)
{
	int rc = lock(path);

	return rc ? rc : crash_open(j, path, true);
}

/* ---- run ---- */

struct run {
	struct program program;
	const char *journal;
	uint64_t mib;
	bool add, all;
};

static error_t parse_run(int key, char *arg, struct argp_state *state)
{
	struct run *run = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &run->program;
		return 0;
	case 'j':
		run->journal = arg;
		return 0;
	case KEY_SIZE:
		run->mib = crash_number(state, arg, MAX_MIB);
		if (!run->mib)
			cli_usage(state, "a journal has at least 1 MiB");
		return 0;
	case KEY_ADD:
		run->add = true;
		return 0;
	case KEY_ALL:
		run->all = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* It was made for a program that could not be started; another one may use it already. */
static void remove_unused(const char *path)
{
	struct journal j;
	bool unused;

	if (journal_open(&j, path, false))
		return;
	unused = !journal_count(&j);
	journal_close(&j);
	if (unused)
		unlink(path);
}

static int create(const struct run *run)
{
	int rc = journal_create(run->journal, run->mib * MIB);

	if (rc == -EEXIST)
		return cli_fail("%s exists; remove it, or add to it with --add", run->journal);
	if (rc)
		return cli_fail("cannot make %s of %llu MiB: %s; choose another place or --size",
			run->journal, (unsigned long long)run->mib, strerror(-rc));
	return EXIT_OK;
}

/* Sees to it that the journal is live. */
static int begin(const char *path)
{
	struct journal j;
	int rc = open_to_change(&j, path);

	if (rc)
		return rc;
	if (journal_ended(&j))
		rc = cli_fail(
			"%s has ended: it is full, or the power failed; begin a new one", path);
	journal_close(&j);
	if (rc || journal_is_live(&j.live))
		return rc;
	rc = crash_keep(path);
	return rc ? cli_fail("cannot keep %s in memory: %s; make room for it, or choose a smaller "
			     "--size",
			    path, strerror(-rc))
		  : EXIT_OK;
}

/* Becomes the program; returns only if that fails. */
static int become(struct run *run)
{
	char path[PATH_MAX];
	int rc;

	if (!realpath(run->journal, path))
		return cli_fail("cannot find %s: %s; give the file that weft crash run made",
			run->journal, strerror(errno));
	rc = begin(path);
	if (rc)
		return rc;
	setenv(JOURNAL_ENV, path, 1);
	if (run->all)
		setenv(CRASH_REGIONS_ENV, "all", 1);
	run->program.launch.crash = true;
	return launch_exec(&run->program.launch, run->program.cmd);
}

static int cmd_run_crash(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"journal", 'j', "FILE", 0, "the journal (default: weft-crash.journal)", 0},
		{"size", KEY_SIZE, "MIB", 0, "how large it is (default: 64)", 0},
		{"add", KEY_ADD, NULL, 0, "add to a journal that is there", 0},
		{"all-regions", KEY_ALL, NULL, 0,
			"all memory that peers may write counts as persistent, not just shared "
			"files and what is registered for persistent flushes",
			0},
		{0}};
	static const struct argp_child children[] = {{&program_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {.options = options,
		.parser = parse_run,
		.args_doc = "[--] PROGRAM [ARGUMENT...]",
		.doc = "Runs a program on Weft, and notes what its peers write into its persistent "
		       "memory.",
		.children = children};
	struct run run = {.journal = "weft-crash.journal", .mib = DEFAULT_MIB};
	int rc;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &run);
	rc = run.add ? EXIT_OK : create(&run);
	if (rc)
		return rc;
	rc = become(&run);
	if (!run.add)
		remove_unused(run.journal);
	return rc;
}

/* ---- now, mark ---- */

static int cmd_now(int argc, char **argv)
{
	static const struct argp argp = {.args_doc = "JOURNAL",
		.doc = "The power fails now: what happens later counts no more."};
	struct journal j;
	int rc, arg;

	argp_parse(&argp, argc, argv, ARGP_NO_ARGS, &arg, NULL);
	if (arg != argc - 1) {
		cli_fail("weft crash now takes the journal alone; see --help");
		return EXIT_USAGE;
	}
	rc = open_to_change(&j, argv[arg]);
	if (rc)
		return rc;
	atomic_fetch_or_explicit(&j.head->flags, JOURNAL_STOPPED, memory_order_acq_rel);
	printf("the power failed after record %llu\n", (unsigned long long)journal_count(&j));
	journal_close(&j);
	return cli_written();
}

static int cmd_mark(int argc, char **argv)
{
	static const struct argp argp = {.args_doc = "JOURNAL TEXT",
		.doc = "Notes a text, of which the recovery check is told."};
	struct journal j;
	int rc, arg;

	argp_parse(&argp, argc, argv, ARGP_NO_ARGS, &arg, NULL);
	if (arg != argc - 2) {
		cli_fail("weft crash mark takes the journal and a text; see --help");
		return EXIT_USAGE;
	}
	rc = open_to_change(&j, argv[arg]);
	if (rc)
		return rc;
	rc = journal_mark(&j, argv[arg + 1]);
	journal_close(&j);
	if (rc == -EINVAL)
		return cli_fail("a mark has 1 to %d bytes; shorten it", JOURNAL_TEXT_MAX);
	return rc ? cli_fail("the journal has ended; begin a new one") : EXIT_OK;
}

/* ---- the command ---- */

int cmd_crash(int argc, char **argv)
{
	static const struct command list[] = {
		{"run", "run a program and keep a journal", cmd_run_crash},
		{"now", "let the power fail now", cmd_now},
		{"mark", "note a text in the journal", cmd_mark},
		{"show", "print the journal", crash_cmd_show},
		{"images", "write out what may be left after a crash", crash_cmd_images},
		{"check", "run a recovery check on what may be left", crash_cmd_check},
		{0},
	};
	static const struct commands commands = {.name = "weft crash",
		.doc = "Simulates power failures of machines with remote persistent memory.\v",
		.see = "weft-crash(1)",
		.list = list};

	return commands_run(&commands, argc, argv);
}
