// SPDX-License-Identifier: BSD-3-Clause
/*
 * Memory that is mapped by peers goes back to being private when the process has no free fd, or
 * another root directory: nothing of its contents may be lost, in the process or in its child.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { SIZE = 1 << 20, ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

enum way { DEREG, REREG, OVERLAP, FORK, WAYS };

static const char *const way_name[] = {"deregister", "reregister", "overlap", "fork"};

static void no_fd(void)
{
	struct rlimit r;

	/* Below those that are open: one that is closed does not help. */
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = 64;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	CHECK_EQ(errno, EMFILE);
}

static void no_proc(void)
{
	char dir[] = "/tmp/weft-root-XXXXXX";

	CHECK(mkdtemp(dir));
	CHECK(chroot(dir) == 0 && chdir("/") == 0);
	CHECK_EQ(open("/proc/self/maps", O_RDONLY), -1);
}

static bool intact(const uint32_t *word)
{
	for (uint32_t i = 0; i < SIZE / sizeof *word; i++)
		if (word[i] != i + 1)
			return false;
	return true;
}

static void fork_one(uint32_t *word)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (!intact(word))
			_exit(1);
		memset(word, 0, SIZE); /* its own */
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

static void take_back(enum way way, struct ibv_mr *mr, uint32_t *word)
{
	struct ibv_mr *other;

	switch (way) {
	case DEREG:
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		break;
	case REREG:
		CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 IBV_ACCESS_LOCAL_WRITE),
			0);
		break;
	case OVERLAP:
		other = ibv_reg_mr(mr->pd, (char *)word + 100, SIZE / 2, ACCESS);
		CHECK(other);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		if (other)
			CHECK_EQ(ibv_dereg_mr(other), 0);
		break;
	default:
		fork_one(word);
	}
}

/* In a process of its own, which does not get well again. */
static void one(int fd, void *arg)
{
	const unsigned *what = arg;
	uint32_t *word;
	struct ibv_mr *mr;
	struct ibv_pd *pd;

	(void)fd;
	check_case("%s, without %s", way_name[what[0]], what[1] ? "/proc" : "an fd");
	word = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pd = ibv_alloc_pd(vp_open());
	if (!CHECK(word != MAP_FAILED && pd))
		return;
	for (uint32_t i = 0; i < SIZE / sizeof *word; i++)
		word[i] = i + 1;
	mr = ibv_reg_mr(pd, word, SIZE, ACCESS);
	if (!CHECK(mr))
		return;
	if (what[1])
		no_proc();
	else
		no_fd();
	take_back(what[0], mr, word);
	CHECK(intact(word));
}

int main(void)
{
	setenv("WEFT_SHARE", "always", 1);
	/* Another root directory is root's to choose. */
	for (unsigned shortage = 0; shortage < (geteuid() ? 1 : 2); shortage++)
		for (unsigned way = 0; way < WAYS; way++) {
			unsigned what[] = {way, shortage};
			struct vp_child c = vp_fork(one, what);

			vp_join(&c);
		}
	return check_result();
}
