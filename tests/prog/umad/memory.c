// SPDX-License-Identifier: BSD-3-Clause
/* What many umad files cost that nobody uses. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/lib/weftd_from_outside.h"
#include "tests/prog/umad/help.h"

enum { FILES = 1000, SPARE_FDS = 64, MOST_KB = 20000 * WEFTD_MEMORY_SCALE };

static void allow_fds(void)
{
	struct rlimit fds;

	T_SYS(getrlimit(RLIMIT_NOFILE, &fds));
	if (fds.rlim_max < FILES + SPARE_FDS)
		t_skip("a process may have only %llu files", (unsigned long long)fds.rlim_max);
	fds.rlim_cur = fds.rlim_max;
	T_SYS(setrlimit(RLIMIT_NOFILE, &fds));
}

/* Some MADs of a file to itself: the others are there all the time. */
static void talk(int fd, uint32_t agent)
{
	for (uint32_t tid = 1; tid <= 100; tid++) {
		struct packet p = request(agent, CLASS, tid), in;

		put(fd, &p);
		get(fd, &in);
		T_EQUAL(low_tid(&in), tid);
	}
}

static void idle_files(void)
{
	long own, weftds;
	int first, fd[FILES];
	uint32_t agent;
	pid_t weftd;

	allow_fds();
	first = open_file(O_NONBLOCK);
	agent = add_agent(first, CLASS, 0);
	talk(first, agent);
	weftd = find_weftd();
	own = weftd_memory_kb(getpid());
	weftds = weftd_memory_kb(weftd);
	for (int i = 0; i < FILES; i++) {
		fd[i] = open_file(O_NONBLOCK);
		(void)add_sender(fd[i], 0);
	}
	talk(first, agent);
	own = weftd_memory_kb(getpid()) - own;
	weftds = weftd_memory_kb(weftd) - weftds;
	T_CHECK(own > 0 && own < MOST_KB);
	T_CHECK(weftds > 0 && weftds < MOST_KB);
	for (int i = 0; i < FILES; i++)
		T_SYS(close(fd[i]));
	await_status("files", 1);
	talk(first, agent);
}

const struct test_case memory_cases[] = {
	{"idle_files", idle_files},
	{0},
};
