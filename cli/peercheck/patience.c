// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/patience.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define LIMIT_NS (2 * NSEC_PER_SEC)
#define END_NS   (60 * NSEC_PER_SEC) /* whatever the machine does */

void patience_begin(struct patience *p, pid_t pid)
{
	*p = (struct patience){.pid = pid, .since = clock_ns(), .begun = clock_ns()};
}

/* The state of a thread, 'R' and the like; 0: it has ended. */
static char state_of(pid_t pid, const char *tid)
{
	char path[64], line[128] = "";
	const char *end;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", (int)pid, tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(line, sizeof line, f))
		line[0] = '\0';
	fclose(f);
	end = strrchr(line, ')');
	return end && end[1] == ' ' ? end[2] : 0;
}

static bool all_sleep(pid_t pid)
{
	char path[32];
	bool sleep = true;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && sleep && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			sleep = state_of(pid, e->d_name) == 'S';
	if (d)
		closedir(d);
	return d && sleep;
}

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

bool patience_ends(struct patience *p, unsigned calls)
{
	const uint64_t now = clock_ns();

	if (calls != p->calls || !all_sleep(p->pid)) {
		p->calls = calls;
		p->since = now;
	}
	return now - p->since > LIMIT_NS || now - p->begun > END_NS || cpu_ns(p->pid) > LIMIT_NS;
}
