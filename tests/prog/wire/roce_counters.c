// SPDX-License-Identifier: BSD-3-Clause
/*
 * The port's counters in sysfs, as programs read them: of packets that went between processes, of a
 * message that found no receive, and of ones that were lost; a process that ends takes nothing
 * away.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 3000, PACKETS = 3, MESSAGES = 10, RNR_TIMER = 1 };

#define PORT "/sys/class/infiniband/weft0/ports/1/"

static uint64_t counter(const char *name)
{
	char path[128];
	uint64_t value = 0;
	FILE *f;

	snprintf(path, sizeof path, PORT "%s", name);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%" SCNu64, &value) != 1)
		die("%s: %s", path, strerror(errno));
	fclose(f);
	return value;
}

/* Messages to a receiver that has a receive for all but the last, until that has been refused. */
static void send_from_child(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;
	struct vp_end e;

	(void)arg;
	o.len = LEN;
	o.rnr_retry = 7;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	for (uint64_t i = 0; i < MESSAGES + 1; i++) {
		CHECK_EQ(vp_post_send(&e, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, i);
	}
	vp_sync(fd);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

static void receive_all(struct vp_end *e)
{
	struct ibv_wc wc;

	for (uint64_t i = 0; i < MESSAGES; i++)
		vp_want(e->rcq, &wc, IBV_WC_SUCCESS, i);
	while (!counter("hw_counters/send_rnr_err")) /* it is polled meanwhile */
		ibv_poll_cq(e->rcq, 1, &wc);
	CHECK_EQ(vp_post_recv(e, MESSAGES, 0, LEN), 0);
	vp_want(e->rcq, &wc, IBV_WC_SUCCESS, MESSAGES);
}

/* All that was sent has come: what may still be on its way is looked for. */
static uint64_t packets_that_came(struct vp_end *e)
{
	uint64_t packets;
	struct ibv_wc wc;

	do {
		ibv_poll_cq(e->rcq, 1, &wc);
		packets = counter("hw_counters/sent_pkts");
	} while (counter("hw_counters/rcvd_pkts") != packets);
	return packets;
}

static void check_sent(struct vp_end *e)
{
	uint64_t packets = packets_that_came(e);

	CHECK_RANGE(packets, MESSAGES * (PACKETS + 1), INT64_MAX);
	CHECK_RANGE(counter("counters/port_xmit_packets"), packets, INT64_MAX);
	CHECK_RANGE(counter("counters/unicast_rcv_packets"), packets, INT64_MAX);
	CHECK_RANGE(counter("counters/port_xmit_data"), MESSAGES * LEN / 4, INT64_MAX);
	CHECK_RANGE(counter("counters/port_rcv_data"), MESSAGES * LEN / 4, INT64_MAX);
	CHECK_RANGE(counter("hw_counters/rcvd_rnr_err"), 1, INT64_MAX);
	CHECK_RANGE(counter("hw_counters/rnr_nak_retry_err"), 1, INT64_MAX);
	CHECK_EQ(counter("counters/port_rcv_errors"), 0);
	CHECK_EQ(counter("hw_counters/retry_exceeded_err"), 0);
	CHECK_EQ(counter("hw_counters/wire_drop_icrc"), 0);
	CHECK_EQ(counter("counters/link_downed"), 0);
}

/* Nobody has that number: after so many tries the request fails. */
static void ask_nobody(struct ibv_context *ctx)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr to;
	struct ibv_wc wc;
	struct vp_end e;

	o.timeout = 4;
	o.retry_cnt = 1;
	vp_make(&e, ctx, &o);
	to = vp_addr(&e);
	to.qpn = 0xfffff0;
	vp_connect(&e, &to);
	CHECK_EQ(vp_post_send(&e, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	vp_want(e.scq, &wc, IBV_WC_RETRY_EXC_ERR, 1);
	CHECK_EQ(counter("hw_counters/retry_exceeded_err"), 1);
	CHECK_RANGE(counter("hw_counters/local_ack_timeout_err"), 1, INT64_MAX);
	vp_free(&e);
}

int main(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_child child = vp_fork(send_from_child, NULL);
	uint64_t before;
	struct vp_end e;

	CHECK_EQ(counter("counters/port_xmit_packets"), 0);
	o.len = LEN;
	o.min_rnr_timer = RNR_TIMER;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, child.fd);
	for (uint64_t i = 0; i < MESSAGES; i++)
		CHECK_EQ(vp_post_recv(&e, i, 0, LEN), 0);
	receive_all(&e);
	vp_sync(child.fd);
	check_sent(&e);
	before = counter("hw_counters/sent_pkts");
	vp_join(&child);
	CHECK_RANGE(counter("hw_counters/sent_pkts"), before, INT64_MAX);
	ask_nobody(e.ctx);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
	return check_result();
}
