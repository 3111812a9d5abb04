// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program for crash.py, which runs it under `weft crash run`: a peer's write, which is a thread's
 * here, and each way in which the owner makes it durable.  crash.py knows what must be noted.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/weft/crash.h"
#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 8192, PAGE = 4096 };

static void write_word(struct vp_end *a, struct ibv_mr *to, size_t off)
{
	struct vp_addr peer = {.addr = (uintptr_t)to->addr, .rkey = to->rkey};
	struct ibv_wc wc;

	CHECK_EQ(vp_post_send(a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &peer, off), 0);
	vp_want(a->scq, &wc, IBV_WC_SUCCESS, 1);
}

static void durable(uint8_t *mem, int fd)
{
	CHECK_EQ(msync(mem, 100, MS_SYNC), 0); /* rounded to pages */
	CHECK_EQ(msync(mem, LEN, MS_ASYNC), 0);
	CHECK(msync(mem + 1, PAGE, MS_SYNC) < 0);
	CHECK_EQ(fdatasync(fd), 0);
	CHECK_EQ(fsync(fd), 0);
	weft_crash_persist(mem + 64, 16);
	weft_crash_persist(&mem, sizeof mem); /* not under the simulator */
	weft_crash_mark("all is durable");
}

/* It has no regions of its own, though it inherits the memory. */
static void child(uint8_t *mem)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		weft_crash_persist(mem, 8);
		weft_crash_mark("a child");
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	int fd = open(argc > 1 ? argv[1] : "", O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct vp_opts opts = vp_defaults();
	struct vp_end a, b;
	struct ibv_mr *mr;
	uint8_t *mem;

	if (fd < 0 || ftruncate(fd, LEN))
		die("usage: crash_owner FILE");
	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		die("mmap");
	opts.len = 64;
	opts.qp_access = IBV_ACCESS_REMOTE_WRITE;
	vp_pair(&a, &b, &opts);
	mr = ibv_reg_mr(b.pd, mem, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		die("ibv_reg_mr");
	memset(a.buf, 7, 8);
	write_word(&a, mr, 0);
	mem[200] = 1;
	durable(mem, fd);
	child(mem);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	vp_pair_free(&a, &b);
	return check_result();
}
