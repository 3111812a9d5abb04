// SPDX-License-Identifier: BSD-3-Clause
/*
 * Sockets of RoCEv2's port: programs that steer by queue pair number, carried out here and by the
 * kernel; what a packet's control messages say; and that what leaves them has the identifications
 * that the ICRC was made for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "roce/port/socket.h"
#include "roce/port/steer.h"
#include "wire/icrc.h"

enum { SOCKETS = 4, RANGES_MAX = 40, LEN = 64, WAIT_MS = 20000 };

static uint64_t seed = 7;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (seed >> 33) % below;
}

/* What the kernel does with such a program, of those instructions that it has. */
static uint32_t carry_out(const struct sock_filter *code, size_t len, uint32_t word)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < len; pc++)
		switch (code[pc].code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_int_equal(code[pc].k, 4);
			a = word;
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= code[pc].k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= code[pc].k ? code[pc].jt : code[pc].jf;
			break;
		case BPF_RET | BPF_K:
			return code[pc].k;
		default:
			fail_msg("instruction %zu", pc);
		}
	fail_msg("ran out of the program");
	return 0;
}

static uint32_t by_ranges(const struct steer_range *r, size_t n, uint32_t qpn)
{
	for (size_t i = 0; i < n; i++)
		if (qpn >= r[i].first && qpn <= r[i].last)
			return r[i].index;
	return STEER_ELSE;
}

static size_t random_ranges(struct steer_range *r)
{
	uint32_t at = draw(3);
	size_t n = draw(RANGES_MAX);

	for (size_t i = 0; i < n; i++) {
		r[i].first = at + (draw(2) ? draw(1000) : 0);
		r[i].last = r[i].first + draw(600);
		r[i].index = draw(SOCKETS);
		at = r[i].last + 1;
	}
	if (n && draw(4) == 0)
		r[n - 1].last = ROCE_QPN_MASK;
	return n;
}

static void programs(void **state)
{
	static struct sock_filter code[STEER_CODE_MAX];
	struct steer_range r[RANGES_MAX];

	(void)state;
	for (int round = 0; round < 300; round++) {
		size_t n = random_ranges(r);
		int len = steer_program(r, n, code, STEER_CODE_MAX);

		assert_true(len > 0);
		for (int i = 0; i < 200; i++) {
			uint32_t qpn = i & 1 || !n ? draw(ROCE_QPN_MASK + 1)
						   : r[draw(n)].first + draw(3) - 1;

			assert_int_equal(carry_out(code, len, 0xc0000000 | (qpn & ROCE_QPN_MASK)),
				by_ranges(r, n, qpn & ROCE_QPN_MASK));
		}
	}
}

static void refused_programs(void **state)
{
	static struct sock_filter code[STEER_CODE_MAX];
	static struct steer_range many[2047];
	const struct steer_range bad[][2] = {
		{{5, 4, 1}, {6, 7, 1}},
		{{1, 5, 1}, {5, 7, 1}},
		{{6, 7, 1}, {1, 2, 1}},
		{{1, 2, 1}, {3, 0x1000000, 1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(steer_program(bad[i], 2, code, STEER_CODE_MAX), -EINVAL);
	/* neighbours of different sockets take one bound each: 2,046 of them fit */
	for (size_t i = 0; i < 2047; i++)
		many[i] = (struct steer_range){i * 256, i * 256 + 255, i};
	assert_true(steer_program(many, 2045, code, STEER_CODE_MAX) > 0);
	assert_int_equal(steer_program(many, 2047, code, STEER_CODE_MAX), -E2BIG);
	assert_int_equal(steer_program(many, 10, code, 5), -E2BIG);
}

struct group {
	bool ipv6;
	int fd[SOCKETS];
	int sender;
	struct sockaddr_storage to;
	socklen_t to_len;
};

static void loopback_address(uint8_t addr[16], bool v6)
{
	memset(addr, 0, 16);
	if (v6)
		addr[15] = 1;
	else
		memcpy(addr + 12, (uint8_t[]){127, 0, 0, 1}, 4);
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in6 a = {0};
	socklen_t len = sizeof a;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	return ntohs(a.sin6_port);
}

static void steer(struct group *g, const struct steer_range *r, size_t n)
{
	static struct sock_filter code[STEER_CODE_MAX];
	int len = steer_program(r, n, code, STEER_CODE_MAX);

	assert_true(len > 0);
	assert_int_equal(steer_attach(g->fd[0], code, len), 0);
}

static void open_group(struct group *g, bool v6, const struct steer_range *r, size_t n)
{
	struct roce_socket_wish wish = {.ipv6 = v6, .group = true}, sender = {.ipv6 = v6};

	*g = (struct group){.ipv6 = v6};
	loopback_address(wish.addr, v6);
	loopback_address(sender.addr, v6);
	for (int i = 0; i < SOCKETS; i++) {
		g->fd[i] = roce_socket_open(&wish);
		assert_true(g->fd[i] >= 0);
		if (i == 0) /* before the first packet can come */
			steer(g, r, n);
		assert_int_equal(roce_socket_bind(g->fd[i], &wish), 0);
		wish.port = port_of(g->fd[i]);
	}
	g->to_len = sizeof g->to;
	assert_int_equal(getsockname(g->fd[0], (struct sockaddr *)&g->to, &g->to_len), 0);
	g->sender = roce_socket_open(&sender);
	assert_true(g->sender >= 0);
	assert_int_equal(roce_socket_bind(g->sender, &sender), 0);
	/* who is not of the group does not slip in */
	wish.group = false;
	int stranger = roce_socket_open(&wish);

	assert_int_equal(roce_socket_bind(stranger, &wish), -EADDRINUSE);
	close(stranger);
}

static void close_group(struct group *g)
{
	for (int i = 0; i < SOCKETS; i++)
		close(g->fd[i]);
	close(g->sender);
}

/* A packet to that queue pair, with an ICRC for identification 0. */
static void send_to(struct group *g, uint32_t qpn)
{
	struct roce_packet head = {
		.opcode = 0x04, .pkey = ROCE_PKEY_DEFAULT, .dest_qpn = qpn, .psn = 5};
	struct icrc_path path = {
		.ipv6 = g->ipv6, .src_port = port_of(g->sender), .dst_port = port_of(g->fd[0])};
	uint8_t bytes[LEN] = {0};
	size_t len = roce_build(&head, bytes);

	loopback_address(path.src, g->ipv6);
	loopback_address(path.dst, g->ipv6);
	icrc_put(icrc_add(icrc_begin(&path, 0, LEN, bytes, len), bytes + len,
			 LEN - len - ROCE_ICRC_LEN),
		bytes + LEN - ROCE_ICRC_LEN);
	assert_int_equal(
		sendto(g->sender, bytes, LEN, 0, (struct sockaddr *)&g->to, g->to_len), LEN);
}

/* Reads the packet that waits, and checks what is known of it. */
static void take(struct group *g, int fd, uint32_t qpn)
{
	uint8_t bytes[2 * LEN], room[ROCE_CONTROL_ROOM];
	struct sockaddr_storage name;
	struct iovec iov = {bytes, sizeof bytes};
	struct msghdr m = {.msg_name = &name,
		.msg_namelen = sizeof name,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof room};
	struct icrc_path path = {.ipv6 = g->ipv6};
	struct roce_from from;
	uint16_t id = 0;

	assert_int_equal(recvmsg(fd, &m, 0), LEN);
	assert_int_equal(roce_peek_qpn(bytes, LEN), qpn);
	assert_true(roce_socket_from(&m, &from));
	assert_int_equal(from.ipv6, g->ipv6);
	assert_int_equal(from.src_port, port_of(g->sender));
	assert_int_equal(from.lost, 0);
	memcpy(path.src, from.src, sizeof path.src);
	memcpy(path.dst, from.dst, sizeof path.dst);
	path.src_port = from.src_port;
	path.dst_port = port_of(fd);
	assert_true(icrc_check(&path, bytes, LEN, &id));
	assert_int_equal(id, 0); /* as it was expected, not found */
}

static void arrives_at(struct group *g, uint32_t qpn, int index)
{
	struct pollfd all[SOCKETS];

	send_to(g, qpn);
	for (int i = 0; i < SOCKETS; i++)
		all[i] = (struct pollfd){.fd = g->fd[i], .events = POLLIN};
	assert_int_equal(poll(all, SOCKETS, WAIT_MS), 1);
	assert_true(all[index].revents & POLLIN);
	take(g, g->fd[index], qpn);
}

static void by_the_kernel(void **state)
{
	static const struct steer_range first[] = {
		{0x100, 0x1ff, 1}, {0x200, 0x3ff, 2}, {0x500, 0xffffff, 3}};
	static const struct steer_range second[] = {{0x100, 0x1ff, 3}, {0x300, 0x3ff, 1}};
	struct group g;

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		open_group(&g, v6, first, 3);
		arrives_at(&g, 1, 0);
		arrives_at(&g, 0x100, 1);
		arrives_at(&g, 0x1ff, 1);
		arrives_at(&g, 0x200, 2);
		arrives_at(&g, 0x400, 0);
		arrives_at(&g, 0xfffffe, 3);
		steer(&g, second, 2);
		arrives_at(&g, 0x100, 3);
		arrives_at(&g, 0x200, 0);
		arrives_at(&g, 0x3ff, 1);
		close_group(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs),
		cmocka_unit_test(refused_programs),
		cmocka_unit_test(by_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
