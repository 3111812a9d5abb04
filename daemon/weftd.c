// SPDX-License-Identifier: BSD-3-Clause
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "daemon/server.h"
#include "daemon/startup.h"
#include "rdv/spawn.h"

enum { EXIT_USAGE = 2, WHY_MAX = 512 };

struct options {
	const char *fabric;
	bool stay, foreground;
	int ready_fd; /* -1: none */
};

/* Takes the place of libc's, so it must be visible to it. */
__attribute__((visibility("default"))) const char *argp_program_version = "weftd " WEFT_VERSION;

static const struct argp_option option_list[] = {
	{"fabric", 'F', "NAME", 0, "Serve fabric NAME (default: $WEFT_FABRIC, else \"default\")",
		0},
	{"stay", 's', NULL, 0, "Stay when nothing is attached", 0},
	{"foreground", 'f', NULL, 0, "Stay in the foreground and log to stderr", 0},
	{"ready-fd", 'R', "FD", OPTION_HIDDEN, "Say \"ok\" or the reason of failure there", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'F':
		if (!rdv_fabric_name_ok(arg))
			argp_error(state,
				"bad fabric name \"%s\"; use 1 to %d letters, digits, "
				"'_', '.', '-'",
				arg, FABRIC_NAME_MAX);
		o->fabric = arg;
		return 0;
	case 's':
		o->stay = true;
		return 0;
	case 'f':
		o->foreground = true;
		return 0;
	case 'R':
		o->ready_fd = atoi(arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp parser = {
	option_list,
	parse_option,
	NULL,
	"The daemon of a Weft fabric.  Programs start it when they need it.",
	NULL,
	NULL,
	NULL,
};

static void complain(const char *why)
{
	char line[4 * WHY_MAX];

	text_escape(line, sizeof line, why, strlen(why));
	fprintf(stderr, "weftd: %s\n", line);
}

/* In the process that a person started: waits for the word of the one that goes on. */
static int relay(int fd)
{
	char line[WHY_MAX];
	ssize_t n = read(fd, line, sizeof line - 1);

	line[n > 0 ? n : 0] = '\0';
	if (strcmp(line, "ok") == 0)
		return 0;
	complain(*line ? line + strspn(line, READY_ERROR_CHARS) : "ended without a word");
	return 1;
}

/*
 * Returns in a child of its own process group, which no terminal's signals reach; why not of its
 * own session, rdv/spawn.c says.  The parent ends when the child is ready or failed.
 */
static int detach(struct options *o)
{
	int fds[2], null;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	switch (fork()) {
	case -1:
		return -errno;
	case 0:
		break;
	default:
		close(fds[1]);
		_exit(relay(fds[0]));
	}
	close(fds[0]);
	o->ready_fd = fds[1];
	setpgid(0, 0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3 && null >= 0; i++)
		dup2(null, i);
	if (null > 2)
		close(null);
	return 0;
}

/* How the start went, in the form that rdv/spawn.h says. */
static void tell(const struct options *o, int err, const char *why)
{
	if (o->ready_fd >= 0) {
		if (err)
			dprintf(o->ready_fd, "%d %s", -err, why);
		else
			(void)!write(o->ready_fd, "ok", strlen("ok"));
		close(o->ready_fd);
	} else if (err) {
		complain(why);
	}
}

static int serve(const struct options *o)
{
	static struct server server;
	char why[WHY_MAX] = "";
	int ret;

	server.stay = o->stay;
	(void)log_enabled(LOG_LVL_ERROR); /* opens it now: status counts what fds come later */
	ret = server_start(&server, o->fabric, why, sizeof why);
	tell(o, ret, *why ? why : strerror(-ret));
	if (ret)
		return EXIT_FAILURE;
	ret = server_run(&server);
	if (ret)
		log_line(LOG_LVL_ERROR, "event loop failed: %s", strerror(-ret));
	server_end(&server);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct options o = {.ready_fd = -1};

	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&parser, argc, argv, ARGP_NO_ARGS, NULL, &o);
	if (o.ready_fd >= 0 && fcntl(o.ready_fd, F_SETFD, FD_CLOEXEC) < 0)
		o.ready_fd = -1;
	if (!o.foreground && o.ready_fd < 0 && detach(&o) < 0) {
		fprintf(stderr, "weftd: cannot fork: %s; run it with --foreground\n",
			strerror(errno));
		return EXIT_FAILURE;
	}
	return serve(&o);
}
