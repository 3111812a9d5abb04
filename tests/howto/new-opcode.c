// SPDX-License-Identifier: BSD-3-Clause
/* SWAP, the toy of new-opcode.patch: to another process, and refused as any other request. */
#include <string.h>

#include "hca/seg/opcode.h"
#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 4096, AT = 24, ID = 7 };

static const uint64_t before[] = {1, 2, 3, 4}, after[] = {1, 3, 2, 4};

static void responder(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_end e;

	(void)arg;
	o.len = LEN;
	vp_make(&e, vp_open(), &o);
	memcpy(e.buf + AT - sizeof before[0], before, sizeof before);
	vp_meet(&e, fd);
	vp_sync(fd);
	CHECK(memcmp(e.buf + AT - sizeof before[0], after, sizeof after) == 0);
	vp_sync(fd);
	vp_sync(fd);
	CHECK(vp_get_state(&e) == IBV_QPS_ERR);
	vp_free(&e);
}

static enum ibv_wc_status swap(struct vp_end *e, uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = ID,
		.opcode = (enum ibv_wr_opcode)OPCODE_SWAP,
		.send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	return vp_run(e, &wr);
}

int main(void)
{
	struct vp_child c = vp_fork(responder, NULL);
	struct vp_opts o = vp_defaults();
	struct vp_addr peer;
	struct vp_end e;

	o.len = LEN;
	vp_make(&e, vp_open(), &o);
	peer = vp_meet(&e, c.fd);
	CHECK(swap(&e, peer.addr + AT, peer.rkey) == IBV_WC_SUCCESS);
	vp_sync(c.fd);
	vp_sync(c.fd);
	CHECK(swap(&e, peer.addr + LEN - sizeof before[0], peer.rkey) == IBV_WC_REM_ACCESS_ERR);
	vp_sync(c.fd);
	vp_join(&c);
	vp_free(&e);
	return check_result();
}
