// SPDX-License-Identifier: BSD-3-Clause
/*
 * Messages of the communication manager between two hosts, changed: on each host somebody sees what
 * clients and servers say to each other, and throws it at the other host again, with something
 * else in it, the ICRC right, from the peer's address and from others.  What this does to those it
 * listens to is their bad luck; connections whose messages it leaves alone stand to the end, and
 * new ones come about, on both sides by the same weftd as before.
 *
 * usage: cm_fuzz [SEED [SECONDS]]
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/cm_forge.h"
#include "tests/lib/share_status.h"
#include "tests/lib/two_hosts.h"
#include "tests/lib/weftd_from_outside.h"
#include "wire/roce.h"

enum {
	SECONDS = 2,
	NEAR = 1,
	FAR = 2,
	ELSEWHERE = 10, /* more than a host's number: its other address */
	HELD = 8,
	SEEN = 256,      /* messages that are changed, the last ones */
	KNOWN = 1 << 16, /* places for ids that are attacked */
	BURST = 10,      /* packets, then a moment for who receives them */
	BURST_US = 2000,
	QPNS = 0x10000, /* of a kind; the first of a kind that is not attacked: */
	HELD_QPNS = 0x700000,
	PASSING_QPNS = 0x780000,
	PATIENCE_MS = 20, /* of a client that is attacked */
	HEAD_LEN = ROCE_BTH_LEN + 8,
	PACKET_LEN = HEAD_LEN + MAD_SIZE,
};

/* The first byte of private data: who wants what. */
enum wish { ANYTHING, HOLD = 'h', PASS = 'p' };

static uint64_t state;

static uint32_t chance(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n;
}

static struct in_addr addr_of(int host)
{
	return ((struct sockaddr_in *)host_addr(AF_INET, host, 0))->sin_addr;
}

/* ---- who sees and throws ---- */

struct job {
	int here, there; /* hosts */
	const char *link;
	uint16_t port; /* whose connections it attacks */
	uint64_t seed;
	unsigned ms;
};

static struct {
	int fd;
	uint8_t mads[SEEN][MAD_SIZE];
	uint32_t n;            /* so far */
	uint32_t known[KNOWN]; /* by hash, the last ones */
	struct forger from[2]; /* the peer's address, and another */
} thrower;

static void remember(uint32_t comm)
{
	thrower.known[hash_mix(comm) % KNOWN] = comm;
}

static bool is_known(uint32_t comm)
{
	return comm && thrower.known[hash_mix(comm) % KNOWN] == comm;
}

/* Is it of a connection that is attacked?  Of what is not seen whole nothing is. */
static bool is_attacked(const struct cm_msg *m, uint16_t port)
{
	if (m->hdr.attr == CM_SIDR_REQ || m->hdr.attr == CM_SIDR_REP)
		return true;
	if (m->hdr.attr == CM_REQ) {
		if ((m->req.service_id & 0xffff) != port)
			return false;
		remember(m->req.local_comm_id);
		return true;
	}
	if (m->hdr.attr == CM_REP && is_known(m->rep.remote_comm_id))
		remember(m->rep.local_comm_id);
	return is_known(m->rtu.remote_comm_id) || is_known(m->rtu.local_comm_id);
}

/* The MAD of a packet between the weftds' QP1, or NULL. */
static const uint8_t *mad_of(const uint8_t *packet, size_t len)
{
	const struct iphdr *ip = (const void *)packet;
	const struct udphdr *udp = (const void *)(packet + sizeof *ip);
	const uint8_t *roce = packet + sizeof *ip + sizeof *udp;
	struct roce_packet p;

	if (len < sizeof *ip + sizeof *udp || ip->version != 4 || ip->ihl != 5 ||
		ip->protocol != IPPROTO_UDP || udp->dest != htons(ROCE_PORT) ||
		udp->source != htons(ROCE_PORT))
		return NULL;
	len -= roce - packet;
	if (roce_parse(roce, len, &p) != ROCE_GOOD || p.dest_qpn != 1 || p.payload_len != MAD_SIZE)
		return NULL;
	return p.payload;
}

static void look(uint16_t port)
{
	uint8_t packet[2048];
	ssize_t len;

	while ((len = recv(thrower.fd, packet, sizeof packet, MSG_DONTWAIT)) > 0) {
		const uint8_t *mad = mad_of(packet, len);
		struct cm_msg m;

		if (mad && !cm_msg_unpack(mad, &m) && is_attacked(&m, port))
			memcpy(thrower.mads[thrower.n++ % SEEN], mad, MAD_SIZE);
	}
}

static uint8_t *any_seen(void)
{
	return thrower.mads[chance(thrower.n < SEEN ? thrower.n : SEEN)];
}

/* One more thing in it is another. */
static void change(uint8_t mad[MAD_SIZE])
{
	static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
	uint8_t ids[8];
	int at = chance(8) ? 24 + chance(MAD_SIZE - 24) : chance(24);

	switch (chance(8)) {
	case 0:
		break; /* the same again */
	case 1:
		mad[at] ^= 1u << chance(8);
		break;
	case 2:
		for (int n = 1 << chance(5); n && at < MAD_SIZE; n--)
			mad[at++] = chance(256);
		break;
	case 3:
		memset(mad + (at & ~3), edges[chance(sizeof edges)], 4);
		break;
	case 4: /* another message with these ids */
		mad[17] = CM_REQ + chance(CM_ATTR_END - CM_REQ + 1);
		break;
	case 5: /* these words of another message */
		memcpy(mad + (at & ~3), any_seen() + (at & ~3), 4);
		break;
	case 6: /* the other way round */
		memcpy(ids, mad + 24, sizeof ids);
		memcpy(mad + 24, ids + 4, 4);
		memcpy(mad + 28, ids, 4);
		break;
	default: /* what is before, or from there on, of another */
		if (chance(2))
			memcpy(mad, any_seen(), at);
		else
			memcpy(mad + at, any_seen() + at, MAD_SIZE - at);
	}
}

/* Seldom what is around it, too. */
static void throw_packet(struct forger *f, const uint8_t mad[MAD_SIZE])
{
	const struct roce_packet p = {
		.opcode = roce_opcode(ROCE_UD, ROCE_SEND, ROCE_ONLY, ROCE_DETH),
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = 1,
		.qkey = 0x80010000,
		.src_qpn = 1,
	};
	uint8_t packet[ROCE_HEADERS_MAX + MAD_SIZE + ROCE_ICRC_LEN];

	(void)roce_build(&p, packet);
	memcpy(packet + HEAD_LEN, mad, MAD_SIZE);
	packet[chance(HEAD_LEN)] ^= 1u << chance(8);
	forge_packet(f, packet,
		chance(4) ? PACKET_LEN : ROCE_BTH_LEN + chance(PACKET_LEN - ROCE_BTH_LEN));
}

static void throw_one(void)
{
	struct forger *f = &thrower.from[!chance(4)];
	uint8_t mad[MAD_SIZE];

	memcpy(mad, any_seen(), sizeof mad);
	for (int n = 1 + chance(3); n; n--)
		change(mad);
	if (chance(16))
		forge_mad(f, mad);
	else
		throw_packet(f, mad);
}

static void open_link(const char *name)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(name)};

	thrower.fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL));
	if (thrower.fd < 0)
		t_skip("no packet socket to be had");
	if (bind(thrower.fd, (struct sockaddr *)&at, sizeof at))
		die("bind to %s", name);
}

/* Until its time is over; tells how much it threw. */
static void throw_all(int in, int out, void *arg)
{
	const struct job *job = arg;
	double until = now_ms() + job->ms;
	uint64_t thrown;

	(void)in;
	state = job->seed;
	open_link(job->link);
	for (int i = 0; i < 2; i++)
		forger_open(
			&thrower.from[i], addr_of(job->here + i * ELSEWHERE), addr_of(job->there));
	t_signal(out);
	while (now_ms() < until) {
		look(job->port);
		for (int i = 0; thrower.n && i < BURST; i++)
			throw_one();
		usleep(BURST_US);
	}
	thrown = thrower.from[0].sent + thrower.from[1].sent;
	t_tell(out, &thrown, sizeof thrown);
}

static void start_throwing(struct t_child *c, struct job *job)
{
	t_fork(c, throw_all, job);
	t_await(c->from);
}

static uint64_t end_throwing(struct t_child *c)
{
	uint64_t thrown;

	t_hear(c->from, &thrown, sizeof thrown);
	T_EQUAL(t_wait(c), 0);
	return thrown;
}

/* ---- the far host: servers ---- */

enum listener { SPARED_ONE, ATTACKED, DATAGRAMS, LISTENERS };

struct hello {
	uint16_t port[LISTENERS];
	pid_t weftd;
};

struct farewell {
	uint64_t thrown, refused;
	uint32_t ended; /* connections that were to be held */
	pid_t weftd;
};

struct far {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener[LISTENERS];
	uint32_t ended;
};

static void listen_far(struct far *f, enum listener which, struct hello *h)
{
	enum rdma_port_space ps = which == DATAGRAMS ? RDMA_PS_UDP : RDMA_PS_TCP;

	if (rdma_create_id(f->ch, &f->listener[which], NULL, ps) ||
		rdma_bind_addr(f->listener[which], host_addr(AF_INET, FAR, 0)) ||
		rdma_listen(f->listener[which], 0))
		die("cannot listen");
	h->port[which] = ntohs(rdma_get_src_port(f->listener[which]));
}

static uint8_t wish_of(const struct far *f, const struct rdma_cm_event *e)
{
	const uint8_t *data = e->listen_id == f->listener[DATAGRAMS] ? e->param.ud.private_data
								     : e->param.conn.private_data;

	return data ? *data : ANYTHING;
}

/* What was forged is refused where it matters; elsewhere, by chance, it is not. */
static void take_request(struct far *f, const struct rdma_cm_event *e)
{
	struct rdma_conn_param p = {.qp_num = 18, .rnr_retry_count = 7};
	uint8_t wish = wish_of(f, e);
	struct rdma_cm_id *id = e->id;
	bool spared = e->listen_id == f->listener[SPARED_ONE];

	id->context = spared && wish == HOLD ? f : NULL;
	if (spared ? wish == HOLD || wish == PASS : chance(4)) {
		if (!rdma_accept(id, &p))
			return;
	} else if (chance(2)) {
		(void)rdma_reject(id, NULL, 0);
	}
	cm_end(id);
}

static void take_event(struct far *f)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(f->ch, &e))
		die("rdma_get_cm_event");
	id = e->id;
	type = e->event;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		take_request(f, e);
	rdma_ack_cm_event(e);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED)
		return;
	f->ended += id->context != NULL;
	(void)rdma_disconnect(id);
	cm_end(id);
}

static void serve(struct far *f, int in)
{
	struct pollfd p[] = {{.fd = in, .events = POLLIN}, {.fd = f->ch->fd, .events = POLLIN}};

	while (poll(p, 2, -1) > 0 && !p[0].revents)
		take_event(f);
	t_await(in);
}

/* Messages that came as far as the communication manager, and made no sense there. */
static uint64_t refused(void)
{
	return status_of_all("connections", "unexpected") +
	       status_of_all("connections", "duplicate") +
	       status_of_all("connections", "malformed");
}

static void live_far(int in, int out, void *arg)
{
	struct job job = {.here = FAR, .there = NEAR, .link = "v1"};
	struct far f = {0};
	struct hello h;
	struct farewell bye;
	struct t_child c;

	(void)arg;
	host_do("ip addr add 198.51.100.%d/24 dev v1", FAR + ELSEWHERE);
	f.ch = cm_channel();
	for (int i = 0; i < LISTENERS; i++)
		listen_far(&f, i, &h);
	h.weftd = weftd_pid();
	t_tell(out, &h, sizeof h);
	t_hear(in, &job.seed, sizeof job.seed);
	t_hear(in, &job.ms, sizeof job.ms);
	job.port = h.port[ATTACKED];
	start_throwing(&c, &job);
	state = job.seed;
	t_signal(out);
	serve(&f, in); /* until all that throw have ended */
	bye = (struct farewell){
		end_throwing(&c), refused(), .ended = f.ended, .weftd = weftd_pid()};
	t_tell(out, &bye, sizeof bye);
	serve(&f, in);
	if (check_failures())
		exit(1);
}

/* ---- the near host: clients ---- */

/* The queue pairs of those that are held nobody else has. */
static uint32_t qpn_for(uint8_t wish)
{
	static uint32_t held, passed;

	if (wish == ANYTHING)
		return QPNS + chance(QPNS);
	return wish == HOLD ? HELD_QPNS + held++ : PASSING_QPNS + passed++ % QPNS;
}

static int connect_as(struct rdma_cm_id *id, uint8_t wish)
{
	struct rdma_conn_param p = {.qp_num = qpn_for(wish),
		.private_data = &wish,
		.private_data_len = sizeof wish,
		.retry_count = 7,
		.rnr_retry_count = 7};

	return rdma_connect(id, &p);
}

/* The next event, if one comes soon. */
static int event_of(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *e;
	int type;

	if (!cm_readable(ch, PATIENCE_MS) || rdma_get_cm_event(ch, &e))
		return -1;
	type = e->event;
	rdma_ack_cm_event(e);
	return type;
}

/* What it says is there to be changed; whatever becomes of it is right. */
static void client_life(struct rdma_event_channel *ch, const struct hello *h)
{
	bool datagram = !chance(4);
	struct sockaddr *to = host_addr(AF_INET, FAR, h->port[datagram ? DATAGRAMS : ATTACKED]);
	struct rdma_cm_id *id;

	if (rdma_create_id(ch, &id, NULL, datagram ? RDMA_PS_UDP : RDMA_PS_TCP))
		die("rdma_create_id");
	if (!rdma_resolve_addr(id, NULL, to, CM_WAIT_MS) &&
		event_of(ch) == RDMA_CM_EVENT_ADDR_RESOLVED &&
		!rdma_resolve_route(id, CM_WAIT_MS) &&
		event_of(ch) == RDMA_CM_EVENT_ROUTE_RESOLVED && !connect_as(id, ANYTHING) &&
		event_of(ch) == RDMA_CM_EVENT_CONNECT_RESPONSE && chance(8)) {
		if (!rdma_establish(id) && chance(4) && !rdma_disconnect(id))
			(void)event_of(ch);
	}
	cm_end(id);
}

static void live_attacked(int in, int out, void *arg)
{
	const struct hello *h = arg;
	struct rdma_event_channel *ch = cm_channel();
	struct pollfd p = {.fd = in, .events = POLLIN};

	t_signal(out);
	while (!poll(&p, 1, 0))
		client_life(ch, h);
	rdma_destroy_event_channel(ch);
}

static struct rdma_cm_id *connected(struct rdma_event_channel *ch, uint16_t port, uint8_t wish)
{
	struct rdma_cm_id *id = cm_resolved(ch, host_addr(AF_INET, FAR, port), false);

	if (connect_as(id, wish))
		die("rdma_connect");
	cm_expect(ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	if (rdma_establish(id))
		die("rdma_establish");
	return id;
}

static void disconnect(struct rdma_event_channel *ch, struct rdma_cm_id *id)
{
	CHECK_EQ(rdma_disconnect(id), 0);
	cm_expect(ch, RDMA_CM_EVENT_DISCONNECTED);
	cm_end(id);
}

static bool no_ids(void *arg)
{
	(void)arg;
	return status_of_all("connections", "ids") == 0;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	unsigned ms = (argc > 2 ? strtoul(argv[2], NULL, 0) : SECONDS) * 1000, passed = 0;
	struct job job = {.here = NEAR, .there = FAR, .link = "v0", .seed = ~seed, .ms = ms};
	struct rdma_cm_id *held[HELD];
	struct rdma_event_channel *ch;
	struct t_child far, attacked, thrower_here;
	struct farewell bye;
	struct hello h;
	uint64_t thrown;
	double until;
	pid_t weftd;

	t_start(ms / 1000 + 60);
	host_do("ip addr add 198.51.100.%d/24 dev v0", NEAR + ELSEWHERE);
	two_hosts(&far, live_far);
	t_hear(far.from, &h, sizeof h);
	job.port = h.port[ATTACKED];
	start_throwing(&thrower_here, &job); /* before the process has threads */
	t_fork(&attacked, live_attacked, &h);
	t_await(attacked.from);
	ch = cm_channel();
	weftd = weftd_pid();
	t_tell(far.to, &seed, sizeof seed);
	t_tell(far.to, &ms, sizeof ms);
	t_await(far.from);
	until = now_ms() + ms;
	for (int i = 0; i < HELD; i++)
		held[i] = connected(ch, h.port[SPARED_ONE], HOLD);
	for (; now_ms() < until; passed++)
		disconnect(ch, connected(ch, h.port[SPARED_ONE], PASS));
	t_signal(attacked.to);
	T_EQUAL(t_wait(&attacked), 0);
	thrown = end_throwing(&thrower_here);
	t_signal(far.to);
	t_hear(far.from, &bye, sizeof bye);
	bye.refused += refused();
	thrown += bye.thrown;
	printf("seed %llu: %llu messages thrown, %llu refused; %u connects\n",
		(unsigned long long)seed, (unsigned long long)thrown,
		(unsigned long long)bye.refused, passed);
	CHECK(passed && bye.thrown && bye.refused > thrown / 8);
	CHECK(!cm_readable(ch, 0));
	CHECK_EQ(bye.ended, 0);
	CHECK_EQ(bye.weftd, h.weftd);
	CHECK_EQ(weftd_pid(), weftd);
	for (int i = 0; i < HELD; i++)
		disconnect(ch, held[i]);
	CHECK(t_until(no_ids, NULL, T_DEADLINE_MS));
	t_signal(far.to);
	rdma_destroy_event_channel(ch);
	T_EQUAL(t_wait(&far), 0);
	return check_result();
}
