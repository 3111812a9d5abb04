// SPDX-License-Identifier: BSD-3-Clause
/*
 * A connection is two paths that lead to each other's beginning: a queue pair that has our number
 * is not the other end if one of the two means another address.  In a network namespace of its own,
 * of whose addresses two are IPv4.  Over packets the same.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 64, TOGETHER = 20 };

static const char *const addresses[] = {"198.51.100.1", "127.0.0.1"};

static struct vp_end end[2];

static union ibv_gid gid_of(int address)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	inet_pton(AF_INET, addresses[address], gid.raw + 12);
	return gid;
}

static int index_of(int address)
{
	union ibv_gid want = gid_of(address), gid;

	for (int i = 0; !ibv_query_gid(end[0].ctx, 1, i, &gid); i++)
		if (!memcmp(&gid, &want, sizeof gid))
			return i;
	die("there is no %s", addresses[address]);
}

/* Of end e: from that address to that one. */
struct path {
	int e, from, to;
};

static void to_rts(const struct path *p)
{
	struct vp_end *e = &end[p->e];
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = end[!p->e].qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = gid_of(p->to),
				.sgid_index = index_of(p->from),
				.hop_limit = 64}}};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (e->opts.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	a.rq_psn = vp_addr(&end[!p->e]).psn;
	CHECK_EQ(ibv_modify_qp(e->qp, &a, mask), 0);
	CHECK_EQ(vp_rts(e), 0);
}

static void *to_rts_in_thread(void *path)
{
	to_rts(path);
	return NULL;
}

enum order { FIRST_ONE, FIRST_OTHER, BOTH };

static void connect_by(struct path p[2], enum order order)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(vp_state(&end[i], IBV_QPS_RESET), 0);
		CHECK_EQ(vp_init(&end[i]), 0);
	}
	if (order == BOTH) {
		if (pthread_create(&thread, NULL, to_rts_in_thread, &p[0]))
			die("a thread");
		to_rts(&p[1]);
		pthread_join(thread, NULL);
	} else {
		to_rts(&p[order == FIRST_OTHER]);
		to_rts(&p[order == FIRST_ONE]);
	}
}

/* Each sends the other a message; in the wrong case nothing comes. */
static void talk(bool meet)
{
	struct vp_addr to = {0};
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++)
		CHECK_EQ(vp_post_recv(&end[i], 1, LEN, LEN), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(vp_post_send(&end[i], 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, &to, 0),
			0);
	for (int i = 0; i < 2; i++) {
		bool rc = end[i].opts.type == IBV_QPT_RC;

		vp_want(end[i].scq, &wc, meet || !rc ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR, 2);
		if (meet)
			vp_want(end[i].rcq, &wc, IBV_WC_SUCCESS, 1);
		else if (rc)
			vp_want(end[i].rcq, &wc, IBV_WC_WR_FLUSH_ERR, 1);
		else
			vp_quiet(end[i].rcq, 10);
	}
}

static void in_each_order(const char *what, struct path a, struct path b, bool meet)
{
	struct path p[2] = {a, b};

	for (enum order order = FIRST_ONE; order <= BOTH; order++)
		for (int i = 0; i < (order == BOTH ? TOGETHER : 1); i++) {
			check_case("%s, order %d", what, order);
			connect_by(p, order);
			talk(meet);
		}
}

static void run(enum ibv_qp_type type)
{
	struct vp_opts o = vp_defaults();

	o.type = type;
	o.timeout = 8; /* 1 ms */
	o.retry_cnt = 1;
	vp_make(&end[0], vp_open(), &o);
	vp_make(&end[1], vp_open(), &o);
	in_each_order("one address", (struct path){0, 0, 0}, (struct path){1, 0, 0}, true);
	in_each_order("two addresses", (struct path){0, 0, 1}, (struct path){1, 1, 0}, true);
	in_each_order("one means another's", (struct path){0, 0, 1}, (struct path){1, 0, 0}, false);
	in_each_order("both mean others", (struct path){0, 0, 1}, (struct path){1, 0, 1}, false);
	vp_pair_free(&end[0], &end[1]);
}

int main(void)
{
	run(IBV_QPT_RC);
	run(IBV_QPT_UC);
	return check_result();
}
