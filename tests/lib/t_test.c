// SPDX-License-Identifier: BSD-3-Clause
/* The test helpers themselves: that a test can fail, skip, crash, hang and leave things behind. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t.h"

static void echo(int in, int out, void *arg)
{
	int v;

	(void)arg;
	t_hear(in, &v, sizeof v);
	v++;
	t_tell(out, &v, sizeof v);
}

static void hang(int in, int out, void *arg)
{
	(void)in;
	(void)out;
	(void)arg;
	pause();
}

static void check_children(void)
{
	struct t_child c;
	unsigned fds = t_fds();
	int v = 41;

	t_fork(&c, echo, NULL);
	t_tell(c.to, &v, sizeof v);
	t_hear(c.from, &v, sizeof v);
	T_EQUAL(v, 42);
	T_EQUAL(t_wait(&c), 0);
	t_fork(&c, hang, NULL);
	t_stop(&c);
	t_continue(&c);
	T_SYS(kill(c.pid, SIGTERM));
	T_EQUAL(t_wait(&c), 128 + SIGTERM);
	t_exec(&c, (char *[]){"true", NULL});
	T_EQUAL(t_wait(&c), 0);
	t_same_fds(fds);
}

/* What main() does as a test under test: by name. */
static int act(const char *what)
{
	struct t_child c;

	t_start(1);
	if (!strcmp(what, "fail"))
		T_CHECK(1 + 1 == 3);
	if (!strcmp(what, "unequal"))
		T_EQUAL(1, 2);
	if (!strcmp(what, "skip"))
		t_skip("no such thing here");
	if (!strcmp(what, "crash"))
		raise(SIGKILL);
	if (!strcmp(what, "hang"))
		pause();
	if (!strcmp(what, "leak")) {
		unsigned fds = t_fds();

		T_SYS(open("/dev/null", O_RDONLY | O_CLOEXEC));
		t_same_fds(fds);
	}
	if (!strcmp(what, "leave")) { /* a grandchild in a session of its own, and a file */
		T_SYS(close(T_SYS(openat(AT_FDCWD, "/dev/null", O_RDONLY))));
		T_SYS(chdir(t_dir()));
		T_SYS(close(T_SYS(open("left", O_CREAT | O_WRONLY, 0600))));
		t_fork(&c, hang, NULL);
		if (!T_SYS(fork())) {
			setsid();
			pause();
		}
		printf("%s\n", t_dir());
	}
	return 0;
}

static int run(const char *what, char *out, size_t size)
{
	struct t_child c;
	ssize_t n;

	t_exec(&c, (char *[]){"/proc/self/exe", (char *)what, NULL});
	memset(out, 0, size);
	while (size > 1 && (n = read(c.from, out, size - 1)) > 0) {
		out += n;
		size -= n;
	}
	return t_wait(&c);
}

static bool is_gone(void *path)
{
	struct stat st;

	return stat(path, &st) < 0 && errno == ENOENT;
}

int main(int argc, char **argv)
{
	char out[256];

	if (argc > 1)
		return act(argv[1]);
	t_start(20);
	T_CHECK(!strcmp(getenv("WEFT_RUNTIME_DIR"), t_dir()));
	check_children();
	T_EQUAL(run("pass", out, sizeof out), 0);
	T_EQUAL(run("fail", out, sizeof out), 1);
	T_EQUAL(run("unequal", out, sizeof out), 1);
	T_EQUAL(run("leak", out, sizeof out), 1);
	T_EQUAL(run("skip", out, sizeof out), T_SKIP);
	T_EQUAL(run("crash", out, sizeof out), 128 + SIGKILL);
	T_EQUAL(run("hang", out, sizeof out), 1);
	T_EQUAL(run("leave", out, sizeof out), 0);
	out[strcspn(out, "\n")] = 0;
	T_CHECK(out[0] == '/' && is_gone(out));
	return 0;
}
