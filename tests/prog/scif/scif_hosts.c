// SPDX-License-Identifier: BSD-3-Clause
/*
 * SCIF between two hosts, each with its weftd: node 0 near, node 1 far, as WEFT_SCIF_NODES says, by
 * IPv4 or with the argument v6 by IPv6.  Connecting both ways, bytes, polling, windows, copies,
 * fences and signals; what cannot be: mapping, nodes without a row, ports that nobody listens at.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/scif_ends.h"
#include "tests/lib/two_hosts.h"

enum {
	NEAR = 0,
	FAR = 1,
	FAR_PORT = 3000,
	NEAR_PORT = 3001,
	NOBODY = 3002,
	PAGE = 4096,
	LEN = 16 * PAGE,
	STREAM = 200 * 1000,
	NEAR_AT = 0x80000,
	FAR_AT = 0x40000,
	WORD_AT = LEN - 8, /* of the far window, which signals change */
	WORD = 4711,
	WAIT_MS = 10000
};

static uint8_t stream[STREAM];

/* ---- both ends ---- */

static void say(scif_epd_t e, char c)
{
	CHECK_EQ(scif_send(e, &c, 1, SCIF_SEND_BLOCK), 1);
}

static void hear(scif_epd_t e, char want)
{
	char c = 0;

	if (scif_recv(e, &c, 1, SCIF_RECV_BLOCK) != 1)
		die("the other host is gone before '%c'", want);
	CHECK_EQ(c, want);
}

static scif_epd_t listen_at(uint16_t port)
{
	scif_epd_t l = scif_open();

	if (l < 0 || scif_bind(l, port) != port || scif_listen(l, 1))
		die("cannot listen at %u", port);
	return l;
}

static scif_epd_t take_from(scif_epd_t l, uint16_t node)
{
	struct scif_portID peer;
	scif_epd_t e;

	CHECK(scif_events(l, POLLIN, WAIT_MS) == POLLIN);
	if (scif_accept(l, &peer, &e, SCIF_ACCEPT_SYNC))
		die("accept");
	CHECK_EQ(peer.node, node);
	return e;
}

static uint8_t *window(scif_epd_t e, off_t at, uint32_t seed)
{
	uint8_t *mem = scif_pages(LEN);

	pattern_fill(mem, LEN, seed);
	CHECK_EQ(scif_register(e, mem, LEN, at, SCIF_PROT_READ | SCIF_PROT_WRITE, SCIF_MAP_FIXED),
		at);
	return mem;
}

/* Windows of another machine are not mapped. */
static void no_mapping(scif_epd_t e, off_t at)
{
	struct scif_range *pages;

	errno = 0;
	CHECK(scif_mmap(NULL, PAGE, SCIF_PROT_READ, 0, e, at) == SCIF_MMAP_FAILED);
	CHECK_EQ(errno, EOPNOTSUPP);
	errno = 0;
	CHECK_EQ(scif_get_pages(e, at, PAGE, &pages), -1);
	CHECK_EQ(errno, EOPNOTSUPP);
}

static void wait_for_word(const uint8_t *mem)
{
	const uint64_t *word = (const uint64_t *)(mem + WORD_AT);
	double end = now_ms() + WAIT_MS;

	while (foreign_load64(word) != WORD && now_ms() < end)
		sched_yield();
	CHECK_EQ(foreign_load64(word), WORD);
}

/* ---- the far host ---- */

static void far_copies(scif_epd_t e, uint8_t *mem)
{
	uint8_t *own = scif_pages(LEN);

	check_case("the far side copies");
	CHECK_EQ(scif_vreadfrom(e, own, LEN, NEAR_AT, SCIF_RMA_SYNC), 0);
	CHECK_EQ(pattern_match(own, LEN, 1), LEN);
	pattern_fill(own, LEN, 5);
	CHECK_EQ(scif_vwriteto(e, own, LEN, NEAR_AT, SCIF_RMA_SYNC), 0);
	say(e, 'c');
	hear(e, 'w');
	CHECK_EQ(pattern_match(mem, PAGE, 6), PAGE);
	wait_for_word(mem);
}

static void live_far(int in, int out, void *arg)
{
	scif_epd_t l, e;
	uint8_t *mem;

	(void)arg;
	(void)in;
	T_SYS(setenv("WEFT_NODE", "1", 1));
	l = listen_at(FAR_PORT);
	t_signal(out);
	e = take_from(l, NEAR);
	for (int done = 0, n; done < STREAM; done += n) {
		n = scif_recv(e, stream + done, STREAM - done < 4000 ? STREAM - done : 4000,
			SCIF_RECV_BLOCK);
		if (n <= 0)
			die("the stream ends at %d", done);
	}
	CHECK_EQ(pattern_match(stream, STREAM, 3), STREAM);
	mem = window(e, FAR_AT, 2);
	say(e, 'r');
	hear(e, 'r');
	no_mapping(e, NEAR_AT);
	far_copies(e, mem);
	say(e, 'e');
	CHECK_EQ(scif_recv(e, mem, 1, SCIF_RECV_BLOCK), -1);
	CHECK_EQ(errno, ECONNRESET);
	CHECK_EQ(scif_close(e), 0);
	e = scif_dial(NEAR, NEAR_PORT);
	hear(e, 'n');
	CHECK_EQ(scif_close(e), 0);
	CHECK_EQ(scif_close(l), 0);
	_exit(check_result());
}

/* ---- the near host ---- */

static void nodes(void)
{
	uint16_t id[4] = {9, 9, 9, 9}, self = 9;

	check_case("the nodes");
	CHECK_EQ(scif_get_nodeIDs(id, 4, &self), 2);
	CHECK_EQ(id[0], NEAR);
	CHECK_EQ(id[1], FAR);
	CHECK_EQ(self, NEAR);
}

static void nobody(uint16_t node, uint16_t port, int want)
{
	struct scif_portID dst = {node, port};
	scif_epd_t e = scif_open();

	check_case("nobody at %u:%u", node, port);
	errno = 0;
	CHECK_EQ(scif_connect(e, &dst), -1);
	CHECK_EQ(errno, want);
	CHECK_EQ(scif_close(e), 0);
}

static void near_copies(scif_epd_t e, uint8_t *mem)
{
	int mark;

	check_case("the near side copies");
	CHECK_EQ(scif_readfrom(e, NEAR_AT, LEN, FAR_AT, 0), 0);
	CHECK_EQ(scif_fence_mark(e, SCIF_FENCE_INIT_SELF, &mark), 0);
	CHECK_EQ(scif_fence_wait(e, mark), 0);
	CHECK_EQ(pattern_match(mem, LEN, 2), LEN);
	pattern_fill(mem, LEN, 1);
	say(e, 'r');
	hear(e, 'c');
	CHECK_EQ(pattern_match(mem, LEN, 5), LEN);
	pattern_fill(mem, LEN, 6);
	CHECK_EQ(scif_writeto(e, NEAR_AT, PAGE, FAR_AT, 0), 0);
	CHECK_EQ(scif_fence_signal(e, NEAR_AT, 0, FAR_AT + WORD_AT, WORD,
			 SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE),
		0);
	say(e, 'w');
	CHECK_EQ(scif_fence_mark(e, SCIF_FENCE_INIT_PEER, &mark), 0);
	CHECK_EQ(scif_fence_wait(e, mark), 0);
}

static void connected(void)
{
	scif_epd_t e = scif_dial(FAR, FAR_PORT);
	uint8_t *mem;

	check_case("bytes");
	pattern_fill(stream, STREAM, 3);
	CHECK_EQ(scif_send(e, stream, STREAM, SCIF_SEND_BLOCK), STREAM);
	hear(e, 'r');
	mem = window(e, NEAR_AT, 4);
	no_mapping(e, FAR_AT);
	near_copies(e, mem);
	CHECK_EQ(scif_events(e, POLLIN, WAIT_MS), POLLIN);
	hear(e, 'e');
	CHECK_EQ(scif_unregister(e, NEAR_AT, LEN), 0);
	CHECK_EQ(scif_close(e), 0);
}

static void asked_back(scif_epd_t l)
{
	scif_epd_t e;
	char c;

	check_case("from there to here");
	e = take_from(l, FAR);
	say(e, 'n');
	CHECK_EQ(scif_recv(e, &c, 1, SCIF_RECV_BLOCK), -1);
	CHECK_EQ(errno, ECONNRESET);
	CHECK_EQ(scif_close(e), 0);
}

static void bad_tables(void)
{
	static const char *bad[] = {"1", "1=", "=198.51.100.1", "1=host", "70000=198.51.100.1",
		"1=198.51.100.1;", "0=198.51.100.1,,"};

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		check_case("WEFT_SCIF_NODES=%s", bad[i]);
		T_SYS(setenv("WEFT_SCIF_NODES", bad[i], 1));
		errno = 0;
		CHECK_EQ(scif_open(), -1);
		CHECK_EQ(errno, EINVAL);
	}
}

int main(int argc, char **argv)
{
	bool v6 = argc > 1 && !strcmp(argv[1], "v6");
	struct t_child far;
	scif_epd_t l;

	t_start(60);
	T_SYS(setenv("WEFT_SCIF_NODES",
		v6 ? "0=2001:db8:77::1,1=2001:db8:77::2" : "0=198.51.100.1,1=198.51.100.2", 1));
	two_hosts(&far, live_far);
	t_await(far.from);
	nodes();
	nobody(FAR, NOBODY, ECONNREFUSED);
	nobody(7, FAR_PORT, ENODEV);
	l = listen_at(NEAR_PORT);
	connected();
	asked_back(l);
	CHECK_EQ(scif_close(l), 0);
	T_EQUAL(t_wait(&far), 0);
	bad_tables();
	return check_result();
}
