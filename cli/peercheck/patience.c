// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/patience.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"

#define LIMIT_NS (2 * NSEC_PER_SEC)
#define END_NS   (60 * NSEC_PER_SEC) /* whatever the machine does */

void patience_begin(struct patience *p, pid_t pid)
{
	*p = (struct patience){.pid = pid, .since = clock_ns(), .begun = clock_ns()};
}

/* How long a thread has waited for a CPU, ns; 0: the kernel does not count it. */
static uint64_t waited_by(pid_t pid, const char *tid)
{
	unsigned long long waited = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%.16s/schedstat", (int)pid, tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%*u %llu", &waited) != 1)
		waited = 0;
	fclose(f);
	return waited;
}

static uint64_t waited_by_all(pid_t pid)
{
	uint64_t waited = 0;
	struct dirent *e;
	char path[32];
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			waited += waited_by(pid, e->d_name);
	if (d)
		closedir(d);
	return waited;
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
	const uint64_t now = clock_ns(), waited = waited_by_all(p->pid);

	if (calls != p->calls || waited < p->waited) { /* a thread has ended */
		p->calls = calls;
		p->waited = waited;
		p->since = now;
	}
	return now - p->since > LIMIT_NS + (waited - p->waited) || now - p->begun > END_NS ||
	       cpu_ns(p->pid) > LIMIT_NS;
}
