// SPDX-License-Identifier: BSD-3-Clause
/*
 * Messages up to the largest, 2 GiB, between two processes.  Both buffers are one small file
 * mapped again and again, so that the test needs address space but no memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { PIECE = 8 << 20, PATIENCE_MS = 60000, POST_MS = 200 };

static const size_t whole = 2ull << 30;

static uint8_t *map_again(void)
{
	int fd = memfd_create("piece", MFD_CLOEXEC);
	uint8_t *base =
		mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (fd < 0 || ftruncate(fd, PIECE) || base == MAP_FAILED)
		die("memory");
	for (size_t at = 0; at < whole; at += PIECE)
		if (mmap(base + at, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
			MAP_FAILED)
			die("mmap");
	close(fd);
	return base;
}

static void make(struct vp_end *e)
{
	struct vp_opts o = vp_defaults();

	o.len = 0;
	vp_make(e, vp_open(), &o);
	e->buf = map_again();
	e->len = whole;
	e->mr = ibv_reg_mr(e->pd, e->buf, whole, o.mr_access);
	if (!e->mr)
		die("reg_mr of 2 GiB");
}

enum { STEPS = 4 };
static const struct {
	enum ibv_wr_opcode op;
	size_t len;
} steps[STEPS] = {
	{IBV_WR_RDMA_WRITE, 2ull << 30},
	{IBV_WR_RDMA_READ, 2ull << 30},
	{IBV_WR_SEND, 2ull << 30},
	{IBV_WR_RDMA_WRITE, (64 << 20) + 1},
};

static void far_process(int fd, void *arg)
{
	struct vp_end e;

	(void)arg;
	make(&e);
	vp_meet(&e, fd);
	for (uint32_t i = 0; i < STEPS; i++) {
		struct ibv_wc wc;

		check_case("far end, step %u", i);
		if (steps[i].op == IBV_WR_RDMA_READ)
			pattern_fill(e.buf, PIECE, 50 + i);
		if (steps[i].op == IBV_WR_SEND)
			CHECK_EQ(vp_post_recv(&e, i, 0, steps[i].len), 0);
		vp_sync(fd);
		if (steps[i].op == IBV_WR_SEND && CHECK(vp_poll(e.rcq, &wc, PATIENCE_MS))) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.byte_len, steps[i].len);
		}
		while (vp_hear(fd) != 1) /* the other end goes on waiting */
			;
		if (steps[i].op != IBV_WR_RDMA_READ)
			CHECK(pattern_filled(e.buf, PIECE, 50 + i));
		vp_tell(fd, 1);
	}
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void near_process(void)
{
	struct vp_child c = vp_fork(far_process, NULL);
	struct vp_addr peer;
	unsigned slow_posts = 0;
	struct vp_end e;

	make(&e);
	peer = vp_meet(&e, c.fd);
	for (uint32_t i = 0; i < STEPS; i++) {
		double since;
		struct ibv_wc wc;

		check_case("opcode %d of %zu bytes", steps[i].op, steps[i].len);
		pattern_fill(e.buf, PIECE, steps[i].op == IBV_WR_RDMA_READ ? 0 : 50 + i);
		vp_sync(c.fd);
		since = now_ms();
		CHECK_EQ(vp_post_send(
				 &e, i, steps[i].op, IBV_SEND_SIGNALED, 0, steps[i].len, &peer, 0),
			0);
		slow_posts += now_ms() - since > POST_MS;
		while (!vp_poll(e.scq, &wc, 2000)) {
			if (!CHECK(now_ms() - since < PATIENCE_MS))
				return;
			vp_tell(c.fd, 0);
		}
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.wr_id, i);
		vp_tell(c.fd, 1);
		vp_hear(c.fd);
		if (steps[i].op == IBV_WR_RDMA_READ)
			CHECK(pattern_filled(e.buf, PIECE, 50 + i));
	}
	check_case("posting is no copying of 2 GiB");
	CHECK_RANGE(slow_posts, 0, 1); /* the CPU may be taken away during one */
	vp_join(&c);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

int main(void)
{
	near_process();
	return check_result();
}
