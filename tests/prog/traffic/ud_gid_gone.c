// SPDX-License-Identifier: BSD-3-Clause
/*
 * What a UD QP remembers of its last address ends with the GID: a datagram to an address that this
 * host has lost arrives nowhere, and one sent when it is back arrives again.  In a network
 * namespace of its own (in_netns.sh).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 64, ROOM = 256, RECVS = 4, PAUSE_US = 2000 };

static const union ibv_gid gid = {.raw = {[10] = 0xff, 0xff, 10, 98, 0, 1}};

static bool listed(struct ibv_context *ctx)
{
	struct ibv_gid_entry entry[256];
	ssize_t n = ibv_query_gid_table(ctx, entry, sizeof entry / sizeof *entry, 0);

	for (ssize_t i = 0; i < n; i++)
		if (!memcmp(&entry[i].gid, &gid, sizeof gid))
			return true;
	return false;
}

/* The address comes or goes, and the port's table says so. */
static void set_address(struct ibv_context *ctx, bool there)
{
	double end = now_ms() + VP_DEADLINE_MS;

	CHECK_EQ(system(there ? "ip addr add 10.98.0.1/32 dev v0"
			      : "ip addr del 10.98.0.1/32 dev v0"),
		0);
	while (listed(ctx) != there) {
		if (now_ms() > end)
			die("the GID table does not follow");
		usleep(PAUSE_US);
	}
}

/* One datagram to that address, of the QP to itself; has it arrived? */
static bool arrives(struct vp_end *e, struct ibv_ah *ah)
{
	struct ibv_wc wc;

	CHECK_EQ(vp_post_ud(e, 1, ah, e->qp->qp_num, VP_QKEY, ROOM, LEN), 0);
	vp_want(e->scq, &wc, IBV_WC_SUCCESS, 1);
	return vp_poll(e->rcq, &wc, 0);
}

int main(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr mine;
	struct ibv_ah *ah;
	struct vp_end e;

	o.type = IBV_QPT_UD;
	vp_make(&e, vp_open(), &o);
	set_address(e.ctx, true);
	mine = vp_addr(&e);
	vp_connect(&e, &mine);
	for (unsigned i = 0; i < RECVS; i++)
		CHECK_EQ(vp_post_recv(&e, i, 0, ROOM), 0);
	ah = vp_ah(&e, &gid);
	CHECK(ah != NULL);
	CHECK(arrives(&e, ah));
	CHECK(arrives(&e, ah)); /* by what is remembered */
	set_address(e.ctx, false);
	CHECK(!arrives(&e, ah));
	CHECK(!arrives(&e, ah));
	set_address(e.ctx, true);
	CHECK(arrives(&e, ah));
	CHECK(arrives(&e, ah));
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
	return check_result();
}
