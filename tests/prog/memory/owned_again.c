// SPDX-License-Identifier: BSD-3-Clause
/*
 * Requests handed over to the process that owns the memory, which has connected its queue pair
 * before its peer went through RESET, posts nothing, and sleeps: it finds the peer anew.
 */
#include "tests/howto/memory/toy.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 4096, ROUNDS = 3 };
#define TOY_IOVA 0x5a5a00000000ull

static void make(struct vp_end *e)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	vp_make(e, vp_open(), &o);
}

static void own(int fd, void *arg)
{
	struct vp_addr peer;
	struct vp_end e;
	struct toy toy;
	uint8_t got[LEN];

	(void)arg;
	make(&e);
	CHECK_EQ(toy_reg(&toy, e.pd, LEN, TOY_IOVA, e.opts.mr_access), 0);
	peer = vp_meet(&e, fd);
	vp_tell(fd, toy.key);
	for (unsigned i = 0; i < ROUNDS; i++) {
		CHECK_EQ(vp_state(&e, IBV_QPS_RESET), 0);
		vp_connect(&e, &peer);
		vp_sync(fd);
		vp_hear(fd); /* asleep, while the peer does the rest */
		toy_get(&toy, 0, got, LEN);
		CHECK(pattern_filled(got, LEN, i));
		vp_sync(fd);
	}
	CHECK_EQ(ibv_destroy_qp(e.qp), 0);
	e.qp = NULL;
	toy_dereg(&toy);
	vp_free(&e);
}

/* The peer goes through RESET after the owner has found it. */
static void write_anew(struct vp_end *e, const struct vp_addr *owner, uint32_t key, unsigned round)
{
	struct ibv_sge sge = vp_sge(e, 0, LEN);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = TOY_IOVA, .rkey = key}};

	check_case("round %u: a WRITE to an owner that found the peer before its RESET", round);
	pattern_fill(e->buf, LEN, round);
	CHECK_EQ(vp_state(e, IBV_QPS_RESET), 0);
	vp_connect(e, owner);
	CHECK_EQ(vp_run(e, &wr), IBV_WC_SUCCESS);
}

int main(void)
{
	struct vp_child far = vp_fork(own, NULL);
	struct vp_addr owner;
	struct vp_end e;
	uint32_t key;

	make(&e);
	owner = vp_meet(&e, far.fd);
	key = vp_hear(far.fd);
	for (unsigned i = 0; i < ROUNDS; i++) {
		vp_sync(far.fd);
		write_anew(&e, &owner, key, i);
		vp_tell(far.fd, i);
		vp_sync(far.fd);
	}
	vp_free(&e);
	vp_join(&far);
	return check_result();
}
