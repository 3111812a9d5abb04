// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/weftd_from_outside.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/kill_and_wait.h"

pid_t weftd_pid(void)
{
	char command[512], line[256];
	const char *daemon = getenv("WEFT_DAEMON");
	int pid = 0;
	FILE *f;

	snprintf(command, sizeof command, "%.*s/weft status --json",
		(int)(strrchr(daemon, '/') - daemon), daemon);
	f = popen(command, "r");
	while (f && fgets(line, sizeof line, f))
		if (!pid && sscanf(line, " \"pid\": %d", &pid) == 1)
			break;
	while (f && fgets(line, sizeof line, f))
		;
	if (f)
		pclose(f);
	if (!pid)
		die("no weftd");
	return pid;
}

long weftd_memory_kb(pid_t pid)
{
	char path[64], line[256];
	long kb, sum = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "RssAnon: %ld", &kb) == 1 ||
			sscanf(line, "RssShmem: %ld", &kb) == 1)
			sum += kb;
	if (f)
		fclose(f);
	return sum;
}

int weftd_fds(pid_t pid)
{
	char path[64];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

void weftd_kill(pid_t pid)
{
	if (!kill_and_wait(pid))
		die("weftd does not end");
}

void weftd_down(void)
{
	const char *weftd = getenv("WEFT_DAEMON");
	char command[4200];

	snprintf(command, sizeof command, "%.*s down >/dev/null", (int)strlen(weftd) - 1, weftd);
	CHECK_EQ(system(command), 0);
}
