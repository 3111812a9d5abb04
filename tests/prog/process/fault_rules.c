// SPDX-License-Identifier: BSD-3-Clause
/*
 * weft fault, and processes that run: rules reach all of them and those to come, or one; a weftd
 * that is started anew has them again; what is wrong with a rule is named.
 */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

static char said[8192];

static int weft(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Runs weft, which lies beside weftd; its exit code, and in said what it printed. */
static int weft(const char *format, ...)
{
	const char *weftd = getenv("WEFT_DAEMON");
	char command[4096];
	va_list args;
	size_t n;
	FILE *f;
	int status;

	n = snprintf(command, sizeof command, "%.*s ", (int)strlen(weftd) - 1, weftd);
	va_start(args, format);
	n += vsnprintf(command + n, sizeof command - n, format, args);
	va_end(args);
	snprintf(command + n, sizeof command - n, " 2>&1");
	f = popen(command, "re");
	if (!f)
		die("popen");
	n = fread(said, 1, sizeof said - 1, f);
	said[n] = '\0';
	status = pclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool says(const char *what)
{
	if (strstr(said, what))
		return true;
	fprintf(stderr, "no '%s' in:\n%s", what, said);
	return false;
}

static bool is(const char *got, const char *want)
{
	if (!strcmp(got, want))
		return true;
	fprintf(stderr, "not '%s' but:\n%s", want, got);
	return false;
}

/* What weft fault list says of one process. */
static const char *rules_of(pid_t pid)
{
	static char rules[8192];
	char *end;

	CHECK_EQ(weft("fault list -p %d", (int)pid), 0);
	strcpy(rules, said);
	end = strchr(rules, '\n');
	return end ? end + 1 : "";
}

static void wrong_use(void)
{
	check_case("wrong use");
	CHECK_EQ(weft("fault set drop 'drop; drop often'"), 2);
	CHECK(says("argument 2, column 12, 'often'"));
	CHECK_EQ(weft("fault set drop in 10%%"), 2);
	CHECK(says("a rule is one argument"));
	CHECK_EQ(weft("fault set"), 2);
	CHECK_EQ(weft("fault set ';'"), 2);
	CHECK_EQ(weft("fault list x"), 2);
	CHECK_EQ(weft("fault set -p 0 drop"), 2);
	CHECK_EQ(weft("fault drop"), 2);
}

static void nobody_there(void)
{
	check_case("no weftd");
	CHECK_EQ(weft("fault list"), 1);
	CHECK(says("no weftd serves"));
	CHECK_EQ(weft("fault set drop"), 1);
}

/* A process with an open device, until its pipe ends. */
static void live(int ready, int until)
{
	char c;

	vp_open();
	if (write(ready, "", 1) != 1)
		_exit(1);
	while (read(until, &c, 1) == 1)
		/* a control call, which finds a weftd that is new */
		ibv_destroy_comp_channel(ibv_create_comp_channel(vp_open()));
	_exit(0);
}

static pid_t child_of(int until[2])
{
	int ready[2];
	char c;
	pid_t pid;

	if (pipe(ready) || pipe(until) || (pid = fork()) < 0)
		die("fork");
	if (!pid) {
		close(until[1]);
		live(ready[1], until[0]);
	}
	close(until[0]);
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		die("child");
	close(ready[0]);
	return pid;
}

static void all_and_one(pid_t child)
{
	check_case("all, and those to come");
	CHECK(is(rules_of(getpid()),
		"  1 drop in 1%                              seen 0, done 0\n"));
	CHECK(is(rules_of(child), "  1 drop in 1%                              seen 0, done 0\n"));
	CHECK_EQ(weft("fault list"), 0);
	CHECK(says("of all processes: drop in 1%;"));
	check_case("one");
	CHECK_EQ(weft("fault set -p %d 'delay 5ms, opcode=ud' 'seed=3;drop'", (int)child), 0);
	CHECK(says("these faults happen to 1 process of fabric"));
	CHECK(is(rules_of(child), "  1 delay 5ms opcode=ud                     seen 0, done 0\n"
				  "  2 drop                                    seen 0, done 0\n"));
	CHECK(is(rules_of(getpid()),
		"  1 drop in 1%                              seen 0, done 0\n"));
	CHECK_EQ(weft("fault set -p 1 drop"), 1);
	CHECK(says("process 1 has no device"));
	CHECK_EQ(weft("status"), 0);
	CHECK(says("1 drop in 1% seen 0 done 0"));
}

static bool lists(pid_t pid)
{
	return !weft("fault list -p %d", (int)pid);
}

/* What of a fabric's rules an earlier weftd knew is found in the processes. */
static void weftd_anew(struct ibv_context *ctx, int child_pipe, pid_t child)
{
	check_case("a new weftd");
	CHECK_EQ(weft("down"), 0);
	CHECK_EQ(weft("up"), 0);
	if (write(child_pipe, "", 1) != 1)
		die("child's pipe");
	CHECK_EQ(ibv_destroy_comp_channel(ibv_create_comp_channel(ctx)), 0);
	for (int ms = 0; ms < 10000 && !(lists(child) && lists(getpid())); ms += 10)
		usleep(10000);
	CHECK_EQ(weft("fault list"), 0);
	CHECK(says("of all processes: drop in 1%;"));
	CHECK(says("2 drop"));
	CHECK(is(rules_of(getpid()),
		"  1 drop in 1%                              seen 0, done 0\n"));
}

static void cleared(pid_t child)
{
	check_case("cleared");
	CHECK_EQ(weft("fault clear -p %d", (int)child), 0);
	CHECK(is(rules_of(child), ""));
	CHECK_EQ(weft("fault clear"), 0);
	CHECK(says("no faults happen to 2 processes"));
	CHECK(is(rules_of(getpid()), ""));
	CHECK_EQ(weft("fault list"), 0);
	CHECK(is(said, "of all processes: none\n"));
}

/* In a child: starts process 1 of a pid namespace, and tells which it is outside. */
static void contain(int told, int ready, int until)
{
	pid_t pid;
	int status;

	if (unshare(CLONE_NEWPID))
		_exit(77);
	pid = fork();
	if (!pid)
		live(ready, until);
	if (pid < 0 || write(told, &pid, sizeof pid) != sizeof pid)
		_exit(1);
	close(ready);
	_exit(waitpid(pid, &status, 0) == pid ? status : 1);
}

/* The pid outside of a process that is 1 in its own namespace, once it has a device; 0: there may
 * be no such namespace. */
static pid_t contained(int until[2], pid_t *child)
{
	int told[2], ready[2];
	pid_t pid = 0;
	char c;

	if (pipe(told) || pipe(ready) || pipe(until) || (*child = fork()) < 0)
		die("fork");
	if (!*child) {
		close(until[1]);
		contain(told[1], ready[1], until[0]);
	}
	close(until[0]);
	close(told[1]);
	close(ready[1]);
	if (read(told[0], &pid, sizeof pid) == sizeof pid && read(ready[0], &c, 1) != 1)
		die("process 1");
	close(told[0]);
	close(ready[0]);
	return pid;
}

/* A process of a container is found by its pid outside, and by the one that it knows itself. */
static void of_another_namespace(void)
{
	int until[2], status;
	pid_t child, pid = contained(until, &child);

	check_case("a pid namespace");
	if (pid) {
		CHECK_EQ(weft("fault set -p %d drop", (int)pid), 0);
		CHECK(says("these faults happen to 1 process of fabric"));
		CHECK(is(rules_of(pid),
			"  1 drop                                    seen 0, done 0\n"));
		CHECK(is(rules_of(getpid()), ""));
		CHECK_EQ(weft("fault set -p 1 duplicate"), 0);
		CHECK(says("these faults happen to 1 process of fabric"));
		CHECK(is(rules_of(pid),
			"  1 duplicate                               seen 0, done 0\n"));
		CHECK_EQ(weft("fault clear -p %d", (int)pid), 0);
		CHECK(is(rules_of(pid), ""));
	} else {
		fprintf(stderr, "no pid namespace may be made; not tried in one\n");
	}
	close(until[1]);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(WEXITSTATUS(status), pid ? 0 : 77);
}

int main(void)
{
	struct ibv_context *ctx;
	int until[2], status;
	pid_t child;

	wrong_use();
	nobody_there();
	ctx = vp_open();
	CHECK_EQ(weft("fault set 'drop in 1%%'"), 0);
	CHECK(says("these faults happen to 1 process of fabric 'default', and those to come"));
	child = child_of(until);
	all_and_one(child);
	weftd_anew(ctx, until[1], child);
	cleared(child);
	close(until[1]);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	of_another_namespace();
	CHECK_EQ(ibv_close_device(ctx), 0);
	return check_result();
}
