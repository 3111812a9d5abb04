// SPDX-License-Identifier: BSD-3-Clause
/*
 * Packets that somebody forges, by an ordinary UDP socket: each is dropped under its name, none is
 * answered, and a flood of them leaves queue pairs at work.  In a network namespace of its own,
 * with WEFT_WIRE=always.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"
#include "wire/icrc.h"

enum { GRH = 40, LEN = 64, FLOOD = 20000, UD_SEND_ONLY = 0x64, RC_SEND_ONLY = 0x04 };

static const char ours[] = "198.51.100.1";

static struct vp_end ud, still, rc[2];
/* One sends from the address that all queue pairs have, the other from another one. */
static int sock, other_sock;
static struct sockaddr_in to, to_other, from, other;

/* What is wrong with a packet. */
enum wrong {
	NOTHING,
	LIMITED, /* nothing: its P_Key is that of a limited member */
	SHORT,   /* it ends within the number of the queue pair */
	CUT,     /* its last two bytes are missing */
	VERSION,
	OPCODE,
	ICRC,
	PKEY,
	PKEY_NEAR, /* one bit, but not the one that says how full a member is */
	PKEY_BASE,
	NO_QP,
	TYPE,
	RC_TYPE,
	RC_DESTINATION, /* another address of this host, which its queue pair has no path from */
	STATE,
	QKEY,
	ADDRESS,
	TOO_LONG,
};

/* Those that name no queue pair of a process come to weftd, which counts for itself. */
static const struct {
	enum wrong wrong;
	const char *counter;
	bool of_weftd;
} kinds[] = {
	{SHORT, "too_short", true},
	{CUT, "wire_drop_length"},
	{VERSION, "wire_drop_version"},
	{OPCODE, "wire_drop_opcode"},
	{ICRC, "wire_drop_icrc"},
	{PKEY, "wire_drop_pkey"},
	{PKEY_NEAR, "wire_drop_pkey"},
	{PKEY_BASE, "wire_drop_pkey"},
	{NO_QP, "wire_drop_no_qp"},
	{TYPE, "wire_drop_type"},
	{RC_TYPE, "wire_drop_address"},
	{RC_DESTINATION, "wire_drop_address"},
	{STATE, "wire_drop_state"},
	{QKEY, "drop_qkey"},
	{ADDRESS, "no_qp", true},
	{TOO_LONG, "wire_drop_length"},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static bool is_ours(uint32_t qpn)
{
	return qpn == ud.qp->qp_num || qpn == still.qp->qp_num || qpn == rc[0].qp->qp_num ||
	       qpn == rc[1].qp->qp_num;
}

/* Of a block of ours, but no queue pair's. */
static uint32_t no_qp(void)
{
	uint32_t other = 1;

	while (is_ours(ud.qp->qp_num ^ other))
		other++;
	return ud.qp->qp_num ^ other;
}

static uint32_t destination(enum wrong wrong)
{
	switch (wrong) {
	case NO_QP:
		return no_qp();
	case TYPE:
	case RC_TYPE:
	case RC_DESTINATION:
		return rc[0].qp->qp_num;
	case STATE:
		return still.qp->qp_num;
	case ADDRESS:
		return ROCE_QPN_MASK;
	default:
		return ud.qp->qp_num;
	}
}

static uint16_t pkey(enum wrong wrong)
{
	switch (wrong) {
	case LIMITED:
		return ROCE_PKEY_DEFAULT & 0x7fff;
	case PKEY:
		return 0x1234;
	case PKEY_NEAR:
		return ROCE_PKEY_DEFAULT ^ 1;
	case PKEY_BASE:
		return 0x8000;
	default:
		return ROCE_PKEY_DEFAULT;
	}
}

static bool is_rc(enum wrong wrong)
{
	return wrong == RC_TYPE || wrong == RC_DESTINATION;
}

/* A packet like any other, but for that. */
static size_t forge(enum wrong wrong, uint8_t out[5000])
{
	const struct sockaddr_in *source = wrong == RC_TYPE ? &other : &from;
	struct icrc_path path = {.src_port = ntohs(source->sin_port), .dst_port = ROCE_PORT};
	const struct sockaddr_in *dest = wrong == RC_DESTINATION ? &to_other : &to;
	struct roce_packet p = {.opcode = is_rc(wrong) ? RC_SEND_ONLY : UD_SEND_ONLY,
		.pkey = pkey(wrong),
		.dest_qpn = destination(wrong),
		.qkey = wrong == QKEY ? VP_QKEY + 1 : VP_QKEY,
		.src_qpn = 0x77,
		.payload_len = wrong == TOO_LONG ? 4800 : LEN};
	size_t head, len;

	p.op = roce_op(p.opcode);
	head = roce_build(&p, out);
	if (wrong == VERSION)
		out[1] |= 5;
	if (wrong == OPCODE)
		out[0] = 0xff;
	pattern_fill(out + head, p.payload_len, 7);
	len = head + p.payload_len + ROCE_ICRC_LEN;
	memcpy(path.src + 12, &source->sin_addr, 4);
	memcpy(path.dst + 12, &dest->sin_addr, 4);
	icrc_put(icrc_add(icrc_begin(&path, 0, len, out, head), out + head, p.payload_len),
		out + head + p.payload_len);
	if (wrong == ICRC)
		out[head] ^= 1, out[head + 9] ^= 0x55, out[head + 17] ^= 0xaa;
	return wrong == SHORT ? 7 : wrong == CUT ? len - 2 : len;
}

static void throw(enum wrong wrong)
{
	uint8_t packet[5000];
	size_t len = forge(wrong, packet);

	CHECK_EQ(sendto(wrong == RC_TYPE ? other_sock : sock, packet, len, 0,
			 (struct sockaddr *)(wrong == RC_DESTINATION ? &to_other : &to), sizeof to),
		len);
}

/* Bound to an address of this host, which becomes *at. */
static int socket_at(const char *text, struct sockaddr_in *at)
{
	socklen_t len = sizeof *at;
	int probe = IP_PMTUDISC_DO, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){.sin_family = AF_INET};
	inet_pton(AF_INET, text, &at->sin_addr);
	if (setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe) ||
		bind(fd, (struct sockaddr *)at, sizeof *at) ||
		getsockname(fd, (struct sockaddr *)at, &len))
		die("a socket");
	return fd;
}

static void open_sockets(void)
{
	sock = socket_at(ours, &from);
	other_sock = socket_at("127.0.0.1", &other);
	to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};
	to_other = to;
	inet_pton(AF_INET, ours, &to.sin_addr);
	to_other.sin_addr = other.sin_addr;
}

static void make_datagrams(struct vp_end *e)
{
	struct vp_opts o = vp_defaults();

	o.type = IBV_QPT_UD;
	o.len = 16384;
	vp_make(e, vp_open(), &o);
	CHECK_EQ(vp_init(e), 0);
}

static void free_end(struct vp_end *e)
{
	struct ibv_context *ctx = e->ctx;

	vp_free(e);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* One that is as it must be arrives, with the header that a receiver makes of what it sees. */
static void good(enum wrong none)
{
	struct ibv_wc wc;

	check_case("nothing wrong, P_Key %04x", pkey(none));
	CHECK_EQ(vp_post_recv(&ud, 1, 0, 4096), 0);
	throw(none);
	if (!vp_want(ud.rcq, &wc, IBV_WC_SUCCESS, 1))
		return;
	CHECK_EQ(wc.byte_len, GRH + LEN);
	CHECK_EQ(wc.src_qp, 0x77);
	CHECK_EQ(wc.wc_flags, IBV_WC_GRH);
	CHECK(pattern_filled(ud.buf + GRH, LEN, 7));
	CHECK_EQ(ud.buf[20], 0x45);
	CHECK(!memcmp(ud.buf + 32, &from.sin_addr, 4) && !memcmp(ud.buf + 36, &to.sin_addr, 4));
}

static int64_t counted(const char *name)
{
	return status_of(getpid(), "counters", name);
}

static int64_t drops(unsigned kind)
{
	return kinds[kind].of_weftd ? status_of_all("wire_drops", kinds[kind].counter)
				    : counted(kinds[kind].counter);
}

static void dropped(unsigned kind)
{
	int64_t before = drops(kind), sent = counted("wire_sent");
	double end = now_ms() + VP_DEADLINE_MS;

	check_case("kind %u: %s", kinds[kind].wrong, kinds[kind].counter);
	CHECK(before >= 0);
	throw(kinds[kind].wrong);
	while (drops(kind) == before && now_ms() < end)
		usleep(1000);
	CHECK_EQ(drops(kind), before + 1);
	CHECK_EQ(counted("wire_sent"), sent);
}

/* Messages go on arriving, each once, while forged packets pour in. */
static void flood(void)
{
	struct vp_addr peer = vp_addr(&rc[1]);
	struct ibv_wc wc;

	check_case("flood");
	for (unsigned i = 0; i < FLOOD && !check_failures(); i++) {
		throw(kinds[i % KINDS].wrong);
		if (i % 100)
			continue;
		pattern_fill(rc[0].buf, LEN, i);
		CHECK_EQ(vp_post_recv(&rc[1], i, 0, LEN), 0);
		CHECK_EQ(vp_post_send(&rc[0], i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, &peer, 0),
			0);
		vp_want(rc[1].rcq, &wc, IBV_WC_SUCCESS, i);
		vp_want(rc[0].scq, &wc, IBV_WC_SUCCESS, i);
		CHECK(pattern_filled(rc[1].buf, LEN, i));
	}
	CHECK(counted("wire_sent") >= 2 * FLOOD / 100);
}

int main(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr self;

	make_datagrams(&ud);
	make_datagrams(&still);
	self = vp_addr(&ud);
	CHECK_EQ(vp_rtr(&ud, &self), 0);
	o.len = 4096;
	vp_pair(&rc[0], &rc[1], &o);
	open_sockets();
	good(NOTHING);
	good(LIMITED);
	for (unsigned kind = 0; kind < KINDS; kind++)
		dropped(kind);
	flood();
	good(NOTHING);
	close(sock);
	close(other_sock);
	vp_pair_free(&rc[0], &rc[1]);
	free_end(&still);
	free_end(&ud);
	return check_result();
}
