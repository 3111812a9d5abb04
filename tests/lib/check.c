// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PRINTED_MAX = 50, ASLEEP_LOOKS = 10, ASLEEP_MS = 20000 };

static _Thread_local char label[256];
static _Atomic unsigned checks, failed;

void check_case(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(label, sizeof label, fmt, ap);
	va_end(ap);
}

static bool count(bool ok)
{
	checks++;
	if (ok)
		return false;
	return ++failed <= PRINTED_MAX;
}

bool check_that(bool ok, const char *file, int line, const char *what)
{
	if (count(ok))
		fprintf(stderr, "FAIL %s:%d [%s] %s\n", file, line, label, what);
	return ok;
}

bool check_equal(int64_t got, int64_t want, const char *file, int line, const char *what)
{
	if (count(got == want))
		fprintf(stderr, "FAIL %s:%d [%s] %s is %lld, wanted %lld\n", file, line, label,
			what, (long long)got, (long long)want);
	return got == want;
}

bool check_fails(int64_t ret, int err, const char *file, int line, const char *what)
{
	int got = errno;
	bool ok = ret == -1 && got == err;

	if (count(ok))
		fprintf(stderr, "FAIL %s:%d [%s] %s is %lld with errno %d, wanted -1 with %d\n",
			file, line, label, what, (long long)ret, got, err);
	return ok;
}

bool check_range(int64_t v, int64_t a, int64_t b, const char *file, int line, const char *what)
{
	bool ok = v >= a && v <= b;

	if (count(ok))
		fprintf(stderr, "FAIL %s:%d [%s] %s is %lld, wanted %lld to %lld\n", file, line,
			label, what, (long long)v, (long long)a, (long long)b);
	return ok;
}

void die(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	fprintf(stderr, "FAIL [%s] cannot go on: ", label);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (errno: %s)\n", strerror(saved));
	exit(1);
}

void check_child(int status)
{
	checks++;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return;
	failed++;
	if (WIFSIGNALED(status))
		fprintf(stderr, "FAIL [%s] a child ended by signal %d\n", label, WTERMSIG(status));
	else
		fprintf(stderr, "FAIL [%s] a child ended with %d\n", label, WEXITSTATUS(status));
}

unsigned check_failures(void)
{
	return failed;
}

int check_result(void)
{
	printf("%u checks, %u failed\n", checks, failed);
	fflush(stdout);
	return failed != 0;
}

unsigned lines_with(const char *path, const char *text)
{
	FILE *f = fopen(path, "re");
	char line[512];
	unsigned n = 0;

	while (f && fgets(line, sizeof line, f))
		n += strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return n;
}

double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* The letter of its state, as proc(5) has it. */
static char state_of(pid_t tid)
{
	char path[64], line[512], *at = NULL;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)tid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof line, f))
		at = strrchr(line, ')'); /* the name before it may hold anything */
	if (f)
		fclose(f);
	return at ? at[2] : 0;
}

void await_sleep(pid_t tid)
{
	double end = now_ms() + ASLEEP_MS;

	for (int looks = 0; looks < ASLEEP_LOOKS; usleep(2000)) {
		if (now_ms() > end)
			die("thread %d does not sleep", (int)tid);
		looks = state_of(tid) == 'S' ? looks + 1 : 0;
	}
}

bool has_ipv6(void)
{
	static const char loopback[] = "00000000000000000000000000000001 ";
	FILE *f = fopen("/proc/net/if_inet6", "re");
	bool found = false;
	char line[256];

	while (f && !found && fgets(line, sizeof line, f))
		found = strncmp(line, loopback, sizeof loopback - 1) == 0;
	if (f)
		fclose(f);
	return found;
}
