// SPDX-License-Identifier: BSD-3-Clause
/* How weftd starts and leaves. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdv/admin.h"
#include "rdv/paths.h"
#include "rdv/rdv.h"
#include "tests/prog/rdv/help.h"

static int autostart_off(void)
{
	const struct rdv_attach *at;

	setenv("WEFT_AUTOSTART", "0", 1);
	CHECK_EQ(rdv_attach(&at), -ENOTCONN);
	CHECK(logged("run: weft up"));
	CHECK_EQ(weftd_pid(NULL), 0);
	CHECK_EQ(rdv_start(NULL, true, NULL), 0);
	CHECK_EQ(rdv_attach(&at), 0);
	return 0;
}

static int no_executable(void)
{
	const struct rdv_attach *at;

	setenv("WEFT_DAEMON", "/nonexistent/weftd", 1);
	CHECK_EQ(rdv_attach(&at), -ENOENT);
	CHECK(logged("WEFT_DAEMON=/nonexistent/weftd"));
	setenv("WEFT_DAEMON", "/bin/false", 1);
	CHECK(rdv_attach(&at) < 0);
	CHECK(logged("ended without a word"));
	return 0;
}

/* A script that is started in place of weftd, which is $WEFTD there. */
static void replace_weftd(const char *script)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/in_place_of_weftd", run_dir);
	f = fopen(path, "we");
	CHECK(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	fclose(f);
	CHECK_EQ(chmod(path, 0700), 0);
	setenv("WEFTD", getenv("WEFT_DAEMON"), 1);
	setenv("WEFT_DAEMON", path, 1);
}

/* Another one is started for a weftd that is killed as it starts. */
static int killed_at_start(void)
{
	const struct rdv_attach *at;

	replace_weftd("[ -e $0.once ] && exec $WEFTD \"$@\"\n: >$0.once\nkill -9 $$");
	CHECK_EQ(rdv_attach(&at), 0);
	CHECK(!logged("ended without a word"));
	return 0;
}

/* A machine that is busy lets it start late: who started it waits, and so do others. */
static int slow_start(void)
{
	const struct rdv_attach *at;
	int status = -1;
	pid_t pid;

	replace_weftd("sleep 6\nexec $WEFTD \"$@\"");
	pid = fork();
	if (pid == 0)
		_exit(rdv_attach(&at) ? 1 : 0);
	CHECK_EQ(rdv_attach(&at), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(weftd_pid(NULL) > 0, 1);
	return 0;
}

static volatile sig_atomic_t sigchld_seen;

static void on_sigchld(int sig)
{
	(void)sig;
	sigchld_seen = 1;
}

/* Neither a signal nor wait() shows the program that it has started something. */
static int autostart_unseen(void)
{
	const struct rdv_attach *at;
	char path[64], target[64] = "";
	double t = seconds();
	sigset_t before, after;
	pid_t pid;

	memset(&before, 0, sizeof before); /* the C library fills in part of it */
	memset(&after, 0, sizeof after);
	signal(SIGCHLD, on_sigchld);
	sigprocmask(SIG_SETMASK, NULL, &before);
	CHECK_EQ(rdv_attach(&at), 0);
	CHECK(seconds() - t < 4.5); /* not after the time of a call */
	sigprocmask(SIG_SETMASK, NULL, &after);
	CHECK(memcmp(&before, &after, sizeof before) == 0);
	CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
	CHECK_EQ(errno, ECHILD);
	pid = weftd_pid(NULL);
	CHECK(getpgid(pid) != getpgid(0) && getpgid(pid) > 0);
	snprintf(path, sizeof path, "/proc/%d/fd/1", pid);
	CHECK(readlink(path, target, sizeof target - 1) > 0);
	CHECK(strcmp(target, "/dev/null") == 0);
	CHECK(!sigchld_seen);
	return 0;
}

/* A pipe on our stdout ends when we end, not when weftd does. */
static int autostart_keeps_no_fd(void)
{
	const struct rdv_attach *at;
	int fds[2];
	char c;
	pid_t pid;

	CHECK_EQ(pipe(fds), 0); /* deliberately not CLOEXEC */
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], 1);
		close(fds[0]);
		_exit(rdv_attach(&at) ? 1 : 0);
	}
	close(fds[1]);
	CHECK_EQ(read(fds[0], &c, 1), 0);
	waitpid(pid, NULL, 0);
	CHECK(weftd_pid(NULL) > 0);
	return 0;
}

static int start_race(void)
{
	struct kid k[8];
	long hub;

	for (int i = 0; i < 8; i++)
		k[i] = kid_start();
	for (int i = 0; i < 8; i++)
		kid_send(&k[i], DO_ATTACH, 0, 0);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(kid_reply(&k[i]), 0);
	hub = kid_do(&k[0], ASK_HUB, 0, 0);
	for (int i = 1; i < 8; i++)
		CHECK_EQ(kid_do(&k[i], ASK_HUB, 0, 0), hub);
	CHECK_EQ(status_of(NULL, "counts.processes"), 8);
	for (int i = 0; i < 8; i++)
		kid_end(&k[i], SIGKILL);
	CHECK(all_zero(NULL));
	return 0;
}

static int two_fabrics(void)
{
	struct kid a, b;
	long qpn;

	setenv("WEFT_FABRIC", "a", 1);
	a = kid_start();
	setenv("WEFT_FABRIC", "b", 1);
	b = kid_start();
	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), 0);
	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), 0);
	CHECK(weftd_pid("a") > 0 && weftd_pid("b") > 0 && weftd_pid("a") != weftd_pid("b"));
	CHECK_EQ(weftd_pid("default"), 0);
	qpn = kid_do(&a, DO_LEASE, 0, 0);
	CHECK(qpn > 0);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), -EADDRNOTAVAIL);
	CHECK_EQ(status_of("a", "counts.processes"), 1);
	kid_end(&a, 0);
	kid_end(&b, 0);
	return 0;
}

static int bad_names(void)
{
	const struct rdv_attach *at;

	CHECK_EQ(rdv_ping("../x", NULL), -EINVAL);
	setenv("WEFT_FABRIC", "no/good", 1);
	CHECK_EQ(rdv_attach(&at), -EINVAL);
	CHECK(logged("bad fabric name"));
	setenv("WEFT_FABRIC", "default", 1);
	setenv("WEFT_NODE", "nowhere", 1);
	CHECK_EQ(rdv_attach(&at), -ENODEV);
	CHECK(logged("has no node \"nowhere\""));
	return 0;
}

static int idle_exit(void)
{
	struct kid a;
	double t;

	setenv("WEFT_IDLE_EXIT", "0.5", 1);
	a = kid_start();
	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), 0);
	usleep(1000000);
	CHECK(weftd_pid(NULL) > 0);
	kid_end(&a, 0);
	t = seconds();
	while (weftd_pid(NULL) > 0 && seconds() - t < 20)
		usleep(10000);
	CHECK(seconds() - t < 20);
	CHECK_EQ(rdv_ping(NULL, NULL), -ENOTCONN);
	return 0;
}

static int idle_nonsense(void)
{
	static const char *const bad[] = {"abc", "-1", "1e300", "nan", "3x"};
	char text[64];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		setenv("WEFT_IDLE_EXIT", bad[i], 1);
		CHECK_EQ(rdv_start(NULL, false, NULL), 0);
		CHECK_EQ(rdv_shutdown(NULL), 0);
		snprintf(text, sizeof text, "WEFT_IDLE_EXIT=%s is no number", bad[i]);
		CHECK(logged(text));
	}
	return 0;
}

/* Who cannot reach it must be told how to end it. */
static int socket_removed(void)
{
	char text[64];
	struct rdv_paths p;
	struct sockaddr_un addr;
	int32_t pid;

	CHECK_EQ(rdv_start(NULL, false, &pid), 0);
	CHECK_EQ(rdv_paths_open(&p, NULL), 0);
	rdv_sock_addr(&p, &addr);
	CHECK_EQ(unlink(addr.sun_path), 0);
	rdv_paths_close(&p);
	CHECK_EQ(rdv_start(NULL, false, NULL), -ENOTCONN);
	snprintf(text, sizeof text, "its socket is gone; end it with: kill %d", (int)pid);
	CHECK(logged(text));
	CHECK_EQ(kill(pid, SIGTERM), 0);
	return 0;
}

static int stay(void)
{
	int32_t pid = 0, same = 0;

	setenv("WEFT_IDLE_EXIT", "0.3", 1);
	CHECK_EQ(rdv_shutdown(NULL), -ENOTCONN);
	/* It leaves in between, or before we reach it, if we have to wait for a CPU. */
	for (int i = 0; i < 10 && !(pid > 0 && pid == same); i++) {
		rdv_shutdown(NULL);
		if (rdv_start(NULL, false, &pid) || rdv_start(NULL, true, &same))
			pid = 0;
	}
	CHECK(pid > 0 && pid == same);
	usleep(800000);
	CHECK_EQ(weftd_pid(NULL), pid);
	CHECK_EQ(rdv_shutdown(NULL), 0);
	CHECK_EQ(rdv_ping(NULL, NULL), -ENOTCONN);
	return 0;
}

static long cpu_ticks(pid_t pid)
{
	long utime = 0, stime = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "re");
	CHECK(f && fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &utime,
			   &stime) == 2);
	fclose(f);
	return utime + stime;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their shadows count too */
enum { OWN_KIB = 512 };

/*
 * What is the process's alone.  Pages of libc and of the program are the page cache's; how many of
 * them a fault maps is up to the kernel.
 */
static long own_kib(pid_t pid)
{
	char path[64], line[256];
	long own = 0, kib;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "RssAnon: %ld", &kib) == 1 ||
			sscanf(line, "RssShmem: %ld", &kib) == 1)
			own += kib;
	fclose(f);
	return own;
}
#endif

/* Soon; what it has to do first takes longer if it has to wait for a CPU. */
static bool falls_asleep(pid_t pid)
{
	bool asleep = false;
	long before;

	for (int i = 0; i < 10 && !asleep; i++) {
		before = cpu_ticks(pid);
		usleep(1500000);
		asleep = cpu_ticks(pid) - before <= 1;
	}
	return asleep;
}

/* Idle means asleep: little memory after a second, no ticks. */
static int costs_nothing(void)
{
	struct kid a;
	pid_t pid;

	unsetenv("MALLOC_PERTURB_"); /* with it calloc() writes to all that it gives */
	a = kid_start();
	CHECK(kid_do(&a, DO_LEASE, 0, 0) > 0);
	pid = weftd_pid(NULL);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	for (int i = 0; own_kib(pid) >= OWN_KIB && i < 100; i++)
		usleep(100000);
	CHECK(own_kib(pid) > 0 && own_kib(pid) < OWN_KIB);
#endif
	CHECK(falls_asleep(pid));
	kid_end(&a, 0);
	return 0;
}

const struct test_case start_cases[] = {
	{"autostart_off", autostart_off},
	{"no_executable", no_executable},
	{"killed_at_start", killed_at_start},
	{"autostart_unseen", autostart_unseen},
	{"autostart_keeps_no_fd", autostart_keeps_no_fd},
	{"slow_start", slow_start},
	{"start_race", start_race},
	{"two_fabrics", two_fabrics},
	{"bad_names", bad_names},
	{"idle_exit", idle_exit},
	{"idle_nonsense", idle_nonsense},
	{"socket_removed", socket_removed},
	{"stay", stay},
	{"costs_nothing", costs_nothing},
	{NULL, NULL},
};
