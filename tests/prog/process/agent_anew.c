// SPDX-License-Identifier: BSD-3-Clause
/*
 * Atomics go by an agent while its process forks again and again, for which all its regions change
 * over: each is carried out once.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { FORKS = 300, PAGE = 4096, RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC };

/* Has the other side said that it is enough? */
static bool told(int fd)
{
	uint64_t word;

	return recv(fd, &word, sizeof word, MSG_DONTWAIT | MSG_PEEK) != -1;
}

/* Adds 1 as often as it can; each finds what the one before has left. */
static void requester(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED};
	struct vp_end e;
	uint64_t n = 0;
	int wrong = 0;

	(void)arg;
	o.timeout = 20;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	sge = vp_sge(&e, 0, sizeof n);
	wr.wr.atomic.remote_addr = vp_hear(fd);
	wr.wr.atomic.rkey = vp_hear(fd);
	wr.wr.atomic.compare_add = 1;
	check_case("atomics by an agent, beside forks");
	for (; !told(fd); n++) {
		CHECK_EQ(vp_run(&e, &wr), IBV_WC_SUCCESS);
		wrong += *(uint64_t *)e.buf != n;
	}
	CHECK_EQ(wrong, 0);
	vp_hear(fd);
	vp_tell(fd, n);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void fork_one(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("fork");
}

/* One region is mapped by peers, which a fork ends for a while; the other one never is. */
static void target(int fd, void *arg)
{
	struct vp_child c = vp_fork(requester, NULL);
	struct vp_opts o = vp_defaults();
	struct ibv_mr *mr;
	struct vp_end e;
	_Atomic uint64_t *word;
	uint64_t n;

	(void)fd;
	(void)arg;
	vp_make(&e, vp_open(), &o);
	word = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	mr = word == MAP_FAILED ? NULL : ibv_reg_mr(e.pd, word, PAGE, RIGHTS);
	if (!mr)
		die("ibv_reg_mr");
	vp_meet(&e, c.fd);
	vp_tell(c.fd, (uintptr_t)word);
	vp_tell(c.fd, mr->rkey);
	for (int i = 0; i < FORKS || !atomic_load(word); i++)
		fork_one();
	vp_tell(c.fd, 0);
	n = vp_hear(c.fd);
	CHECK_EQ(*word, n);
	vp_join(&c);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

int main(void)
{
	struct vp_child c;

	setenv("WEFT_SHARE", "always", 1);
	setenv("WEFT_MOVER", "agent", 1);
	c = vp_fork(target, NULL);
	vp_join(&c);
	return check_result();
}
