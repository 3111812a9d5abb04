// SPDX-License-Identifier: BSD-3-Clause
/*
 * Multicast groups by address: what the event says, who gets datagrams before and after, several
 * groups of an id, senders that are no members, and what is refused.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"

enum { GRH = 40, SIZE = 32, ROOM = GRH + SIZE, QUIET_MS = 20 };

static struct rdma_event_channel *ch;

/* ---- addresses; valid until the next call of the same function ---- */

static struct sockaddr *group4(const char *text)
{
	static struct sockaddr_in sin;

	sin = (struct sockaddr_in){.sin_family = AF_INET};
	inet_pton(AF_INET, text, &sin.sin_addr);
	return (struct sockaddr *)&sin;
}

static struct sockaddr *group6(const char *text)
{
	static struct sockaddr_in6 sin6;

	sin6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
	inet_pton(AF_INET6, text, &sin6.sin6_addr);
	return (struct sockaddr *)&sin6;
}

/* ---- an id with a QP ---- */

struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char buf[2 * ROOM]; /* received, sent */
};

static struct rdma_cm_id *ud_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_UDP))
		die("rdma_create_id");
	return id;
}

static void give_qp(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
	};

	if (rdma_create_qp(e->id, NULL, &init))
		die("rdma_create_qp");
	e->mr = rdma_reg_msgs(e->id, e->buf, sizeof e->buf);
	if (!e->mr)
		die("rdma_reg_msgs");
}

static void make(struct end *e)
{
	*e = (struct end){.id = ud_id(ch)};
	if (rdma_bind_addr(e->id, cm_addr4(0)))
		die("rdma_bind_addr");
	give_qp(e);
}

static void end(struct end *e)
{
	rdma_dereg_mr(e->mr);
	cm_end(e->id);
}

/* Takes the event of a join. */
static struct rdma_ud_param joined(void *context)
{
	struct rdma_cm_event *e = cm_take(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
	struct rdma_ud_param ud = e->param.ud;

	CHECK_EQ(e->status, 0);
	CHECK(ud.private_data == context);
	CHECK_EQ(ud.private_data_len, 0);
	CHECK_EQ(ud.qp_num, 0xffffff);
	CHECK_EQ(ud.qkey, RDMA_UDP_QKEY);
	CHECK_EQ(ud.ah_attr.is_global, 1);
	CHECK_EQ(ud.ah_attr.port_num, 1);
	rdma_ack_cm_event(e);
	return ud;
}

static struct rdma_ud_param join(struct end *e, struct sockaddr *group)
{
	if (rdma_join_multicast(e->id, group, e))
		die("rdma_join_multicast");
	return joined(e);
}

static void expect_receive(struct end *e)
{
	memset(e->buf, 0, sizeof e->buf);
	CHECK_EQ(rdma_post_recv(e->id, e, e->buf, ROOM, e->mr), 0);
}

static void send_to(struct end *e, struct rdma_ud_param *to, const char *text)
{
	struct ibv_ah *ah = ibv_create_ah(e->id->pd, &to->ah_attr);
	struct ibv_wc wc;

	if (!ah)
		die("ibv_create_ah");
	strncpy(e->buf + ROOM, text, SIZE - 1);
	CHECK_EQ(rdma_post_ud_send(e->id, NULL, e->buf + ROOM, SIZE, e->mr, IBV_SEND_SIGNALED, ah,
			 to->qp_num),
		0);
	CHECK_EQ(rdma_get_send_comp(e->id, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	ibv_destroy_ah(ah);
}

static void got(struct end *e, const char *text)
{
	struct ibv_wc wc;

	CHECK_EQ(rdma_get_recv_comp(e->id, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, ROOM);
	CHECK(!strcmp(e->buf + GRH, text));
}

/* A datagram is delivered before its sender's completion: what is not there does not come. */
static void got_none(struct end *e)
{
	struct ibv_wc wc;

	CHECK_EQ(ibv_poll_cq(e->id->recv_cq, 1, &wc), 0);
}

/* ---- cases ---- */

static void is_group(const struct rdma_ud_param *ud, const char *gid)
{
	union ibv_gid want;

	inet_pton(AF_INET6, gid, want.raw);
	CHECK(!memcmp(&ud->ah_attr.grh.dgid, &want, sizeof want));
}

static void several_groups(void)
{
	struct rdma_ud_param a4, b4, c6;
	struct end r, s;

	check_case("several groups");
	make(&r);
	make(&s);
	a4 = join(&r, group4("239.1.2.3"));
	is_group(&a4, "::ffff:239.1.2.3");
	b4 = join(&r, group4("239.1.2.4"));
	c6 = join(&r, group6("ff0e::77"));
	is_group(&c6, "ff0e::77");
	expect_receive(&r); /* one more than comes: for what comes twice */
	expect_receive(&r);
	send_to(&s, &a4, "first");
	got(&r, "first");
	expect_receive(&r);
	send_to(&s, &c6, "third");
	got(&r, "third");
	CHECK_EQ(rdma_leave_multicast(r.id, group4("239.1.2.3")), 0);
	CHECK_FAILS(rdma_leave_multicast(r.id, group4("239.1.2.3")), EADDRNOTAVAIL);
	expect_receive(&r);
	send_to(&s, &a4, "left");
	got_none(&r);
	send_to(&s, &b4, "second");
	got(&r, "second");
	CHECK_EQ(rdma_leave_multicast(r.id, group4("239.1.2.4")), 0);
	CHECK_EQ(rdma_leave_multicast(r.id, group6("ff0e::77")), 0);
	CHECK_EQ(ibv_destroy_qp(r.id->qp), 0); /* in no group any more */
	r.id->qp = NULL;
	end(&r);
	end(&s);
}

static void same_group_twice(void)
{
	struct rdma_ud_param ud;
	struct end r, s;

	check_case("the same group twice");
	make(&r);
	make(&s);
	ud = join(&r, group4("239.1.2.3"));
	join(&r, group4("239.1.2.3"));
	CHECK_EQ(rdma_leave_multicast(r.id, group4("239.1.2.3")), 0);
	expect_receive(&r);
	send_to(&s, &ud, "still");
	got(&r, "still");
	CHECK_EQ(rdma_leave_multicast(r.id, group4("239.1.2.3")), 0);
	expect_receive(&r);
	send_to(&s, &ud, "gone");
	got_none(&r);
	end(&r);
	end(&s);
}

static void send_only(void)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = group4("239.1.2.3"),
	};
	struct rdma_ud_param ud;
	struct end r, s;

	check_case("send only");
	make(&r);
	make(&s);
	join(&r, group4("239.1.2.3"));
	CHECK_EQ(rdma_join_multicast_ex(s.id, &attr, &s), 0);
	ud = joined(&s);
	expect_receive(&r);
	expect_receive(&s);
	send_to(&s, &ud, "to others");
	got(&r, "to others");
	got_none(&s);
	CHECK_EQ(rdma_leave_multicast(s.id, group4("239.1.2.3")), 0);
	CHECK_EQ(rdma_leave_multicast(r.id, group4("239.1.2.3")), 0);
	end(&r);
	end(&s);
}

static void no_qp_yet(void)
{
	struct rdma_ud_param ud;
	struct end r = {.id = ud_id(ch)}, s;

	check_case("a QP that comes later");
	make(&s);
	if (rdma_resolve_addr(r.id, NULL, group4("239.1.2.3"), 1000))
		die("rdma_resolve_addr");
	CHECK_FAILS(rdma_join_multicast(r.id, group4("239.1.2.3"), NULL), EINVAL); /* too early */
	cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	ud = join(&r, group4("239.1.2.3"));
	give_qp(&r);
	expect_receive(&r);
	send_to(&s, &ud, "nobody");
	got_none(&r);
	CHECK_EQ(ibv_attach_mcast(r.id->qp, &ud.ah_attr.grh.dgid, ud.ah_attr.dlid), 0);
	send_to(&s, &ud, "attached");
	got(&r, "attached");
	CHECK_EQ(ibv_detach_mcast(r.id->qp, &ud.ah_attr.grh.dgid, ud.ah_attr.dlid), 0);
	CHECK_EQ(rdma_leave_multicast(r.id, group4("239.1.2.3")), 0);
	end(&r);
	end(&s);
}

static void synchronous(void)
{
	struct rdma_cm_id *id = ud_id(NULL);
	int context;

	check_case("synchronous");
	CHECK_EQ(rdma_bind_addr(id, cm_addr4(0)), 0);
	CHECK_EQ(rdma_join_multicast(id, group4("239.1.2.3"), &context), 0);
	if (!CHECK(id->event))
		die("no event");
	CHECK_EQ(id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	CHECK(id->event->param.ud.private_data == &context);
	CHECK_EQ(rdma_leave_multicast(id, group4("239.1.2.3")), 0);
	CHECK_EQ(rdma_join_multicast(id, group4("239.1.2.3"), &context), 0);
	cm_end(id);
}

static void *ack_later(void *arg)
{
	usleep(100000);
	rdma_ack_cm_event(arg);
	return NULL;
}

static void leaving_with_events(void)
{
	struct rdma_cm_event *e;
	struct end r;
	pthread_t t;
	double start;

	check_case("leaving takes back the event");
	make(&r);
	CHECK_EQ(rdma_join_multicast(r.id, group4("239.1.2.3"), NULL), 0);
	CHECK(cm_readable(ch, CM_WAIT_MS));
	CHECK_EQ(rdma_leave_multicast(r.id, group4("239.1.2.3")), 0);
	CHECK(!cm_readable(ch, QUIET_MS));
	check_case("leaving waits for the acknowledgement");
	CHECK_EQ(rdma_join_multicast(r.id, group4("239.1.2.3"), NULL), 0);
	e = cm_take(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
	start = now_ms();
	pthread_create(&t, NULL, ack_later, e);
	CHECK_EQ(rdma_leave_multicast(r.id, group4("239.1.2.3")), 0);
	CHECK_RANGE(now_ms() - start, 90, CM_WAIT_MS);
	pthread_join(t, NULL);
	check_case("an id that goes with its groups");
	CHECK_EQ(rdma_join_multicast(r.id, group4("239.1.2.3"), NULL), 0);
	end(&r);
	CHECK(!cm_readable(ch, QUIET_MS));
}

static void refusals(void)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS, .addr = group4("239.1.2.3")};
	struct sockaddr strange = {.sa_family = AF_UNIX};
	struct rdma_cm_id *id = ud_id(ch);
	struct rdma_cm_event *e;
	struct end r;

	check_case("refusals");
	CHECK_FAILS(rdma_join_multicast(id, group4("239.1.2.3"), NULL), EINVAL); /* not bound */
	cm_end(id);
	id = cm_id(ch); /* for connections */
	CHECK_EQ(rdma_bind_addr(id, cm_addr4(0)), 0);
	CHECK_FAILS(rdma_join_multicast(id, group4("239.1.2.3"), NULL), EINVAL);
	cm_end(id);
	make(&r);
	CHECK_FAILS(rdma_join_multicast(r.id, group4("0.0.0.0"), NULL), EINVAL);
	CHECK_FAILS(rdma_join_multicast(r.id, group6("::"), NULL), EINVAL);
	CHECK_FAILS(rdma_join_multicast(r.id, &strange, NULL), EINVAL);
	CHECK_FAILS(rdma_join_multicast_ex(r.id, &attr, NULL), EINVAL);
	attr.comp_mask |= RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	CHECK_FAILS(rdma_join_multicast_ex(r.id, &attr, NULL), EINVAL);
	attr.comp_mask |= RDMA_CM_JOIN_MC_ATTR_RESERVED;
	CHECK_FAILS(rdma_join_multicast_ex(r.id, &attr, NULL), ENOTSUP);
	CHECK_FAILS(rdma_leave_multicast(r.id, group4("239.1.2.3")), EADDRNOTAVAIL);
	/* Not the address of a group: found out when the QP is attached. */
	CHECK_EQ(rdma_join_multicast(r.id, group4("127.0.0.1"), &r), 0);
	e = cm_take(ch, RDMA_CM_EVENT_MULTICAST_ERROR);
	CHECK_EQ(e->status, -EINVAL);
	CHECK(e->param.ud.private_data == &r);
	rdma_ack_cm_event(e);
	CHECK_EQ(rdma_leave_multicast(r.id, group4("127.0.0.1")), 0);
	end(&r);
}

int main(void)
{
	ch = cm_channel();
	several_groups();
	same_group_twice();
	send_only();
	no_qp_yet();
	synchronous();
	leaving_with_events();
	refusals();
	rdma_destroy_event_channel(ch);
	return check_result();
}
