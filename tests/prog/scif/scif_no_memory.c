// SPDX-License-Identifier: BSD-3-Clause
/*
 * Each call of SCIF while memory runs out: the first allocation fails, then the second, and so on
 * until the call makes no more.  It says ENOMEM and can be made again, or has managed without.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/no_memory.h"
#include "tests/lib/scif_ends.h"
#include "tests/lib/share_status.h"

enum { PAGE = 4096, LEN = 4 * PAGE, MOST = 500, MANY = 40, WAIT_MS = 10000, LARGE = 16384 };

/* The library's threads get no blocks of the size of an endpoint. */
static _Thread_local bool is_main;
static atomic_bool starved;

static bool starves(size_t n)
{
	return !is_main && n >= LARGE && atomic_load(&starved);
}

/* ---- the calls ---- */

static struct scif_pair pair;
static uint8_t *mem;

static int64_t do_open(void)
{
	scif_epd_t e = scif_open();

	left = -1;
	return e < 0 ? e : scif_close(e);
}

static int64_t do_bind(void)
{
	static scif_epd_t e = -1;
	int64_t ret;

	if (e < 0) {
		int n = left;

		left = -1;
		e = scif_open();
		left = n;
	}
	ret = scif_bind(e, 0);
	left = -1;
	if (ret > 0) {
		scif_close(e);
		e = -1;
	}
	return ret;
}

/* From beginning to end: what cannot be connected is refused. */
static int64_t do_connect(void)
{
	struct scif_portID dst = {0, pair.port}, peer;
	int n = left;
	scif_epd_t e, accepted;
	int64_t ret;

	left = -1;
	e = scif_open();
	fcntl(e, F_SETFL, O_NONBLOCK);
	left = n;
	ret = scif_connect(e, &dst);
	left = -1;
	if (ret < 0 && errno == EINPROGRESS) {
		struct scif_pollepd p[] = {{e, SCIF_POLLOUT, 0}, {pair.listener, SCIF_POLLIN, 0}};

		CHECK(scif_poll(p, 2, WAIT_MS) > 0); /* it has failed, or there is the request */
		if (p[1].revents && CHECK_EQ(scif_accept(pair.listener, &peer, &accepted, 0), 0))
			scif_close(accepted);
		CHECK_EQ(scif_raw_poll(e, POLLOUT, WAIT_MS) & POLLOUT, POLLOUT);
		ret = scif_connect(e, &dst);
	}
	n = errno;
	scif_close(e);
	errno = n;
	return ret;
}

static int64_t do_accept(void)
{
	struct scif_portID dst = {0, pair.port}, peer;
	int n = left;
	scif_epd_t e, accepted;
	int64_t ret;

	left = -1;
	e = scif_open();
	fcntl(e, F_SETFL, O_NONBLOCK);
	CHECK_EQ(scif_connect(e, &dst), -1);
	CHECK_EQ(scif_raw_poll(pair.listener, POLLIN, WAIT_MS), POLLIN);
	left = n;
	ret = scif_accept(pair.listener, &peer, &accepted, 0);
	left = -1;
	n = errno;
	if (!ret)
		scif_close(accepted);
	scif_close(e);
	while (scif_accept(pair.listener, &peer, &accepted, 0) == 0)
		scif_close(accepted);
	errno = n;
	return ret;
}

static int64_t do_register(void)
{
	off_t o = scif_register(pair.a, mem, LEN, 0, 3, 0);

	left = -1;
	return o < 0 ? o : scif_unregister(pair.a, o, LEN);
}

static int64_t do_pin(void)
{
	scif_pinned_pages_t h;
	int ret = scif_pin_pages(mem, LEN, 3, 0, &h);

	left = -1;
	return ret ? ret : scif_unpin_pages(h);
}

static int64_t do_mmap(void)
{
	void *p = scif_mmap(NULL, LEN, 3, 0, pair.b, 0x10000);

	left = -1;
	return p == SCIF_MMAP_FAILED ? -1 : scif_munmap(p, LEN);
}

/* A hole in the middle makes two pieces of one. */
static int64_t do_munmap(void)
{
	int n = left, ret;
	uint8_t *p;

	left = -1;
	p = scif_mmap(NULL, LEN, 3, 0, pair.b, 0x10000);
	left = n;
	ret = scif_munmap(p + PAGE, PAGE);
	left = -1;
	n = errno;
	CHECK_EQ(scif_munmap(p, LEN), 0);
	errno = n;
	return ret;
}

static int64_t do_get_pages(void)
{
	struct scif_range *r;
	int ret = scif_get_pages(pair.b, 0x10000, LEN, &r);

	left = -1;
	return ret ? ret : scif_put_pages(r);
}

static int64_t do_vwriteto(void)
{
	return scif_vwriteto(pair.b, mem, LEN, 0x10000, SCIF_RMA_SYNC);
}

static int64_t do_send(void)
{
	char byte = 1;
	int n = scif_send(pair.a, &byte, 1, SCIF_SEND_BLOCK);

	return n == 1 ? scif_recv(pair.b, &byte, 1, SCIF_RECV_BLOCK) : n;
}

static int64_t do_signal(void)
{
	return scif_fence_signal(
		pair.b, 0, 0, 0x10000, 7, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE);
}

static int64_t do_mark(void)
{
	int mark;

	return scif_fence_mark(pair.b, SCIF_FENCE_INIT_PEER, &mark);
}

static int64_t do_poll(void)
{
	struct scif_pollepd p[MANY];

	for (int i = 0; i < MANY; i++)
		p[i] = (struct scif_pollepd){.epd = pair.a, .events = SCIF_POLLIN};
	return scif_poll(p, MANY, 1);
}

static int64_t do_client(void)
{
	static struct scif_client c = {.name = "client"};
	int ret = scif_client_register(&c);

	left = -1;
	if (!ret)
		scif_client_unregister(&c);
	return ret;
}

static const struct call {
	const char *name;
	int64_t (*call)(void);
	bool maps;
} calls[] = {
	{"open", do_open, false},
	{"bind", do_bind, false},
	{"connect", do_connect, false},
	{"accept", do_accept, false},
	{"register", do_register, false},
	{"pin", do_pin, false},
	{"mmap", do_mmap, true},
	{"munmap", do_munmap, true},
	{"get_pages", do_get_pages, true},
	{"vwriteto", do_vwriteto, false},
	{"send", do_send, false},
	{"signal", do_signal, false},
	{"mark", do_mark, false},
	{"poll", do_poll, false},
	{"client_register", do_client, false},
};

/* Each end has heard what the other said: who has no memory for that ends the connection. */
static void settle(void)
{
	char byte = 0;

	CHECK_EQ(scif_send(pair.a, &byte, 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(scif_recv(pair.b, &byte, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(scif_send(pair.b, &byte, 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(scif_recv(pair.a, &byte, 1, SCIF_RECV_BLOCK), 1);
}

static void run(const struct call *c)
{
	int64_t ret;
	int n = 0, refused = 0;

	do {
		check_case("%s, allocation %d", c->name, n);
		settle();
		failed = false;
		errno = 0;
		left = n++;
		ret = c->call();
		left = -1;
		if (ret < 0)
			refused++;
		if (ret < 0 && !(c->call == do_client && errno == EAGAIN)) /* no thread */
			CHECK_EQ(errno, ENOMEM);
	} while (failed && n < MOST);
	CHECK(n < MOST);
	CHECK(ret >= 0);
	printf("%s: %d allocations, %d needed\n", c->name, n - 1, refused);
}

/*
 * A refused connection, while the thread that hears of that has no memory: the endpoint can be
 * used again, and nothing is left of the first attempt.
 */
static void refused(void)
{
	struct scif_portID dst = {0, pair.port}, peer;
	scif_epd_t e = scif_open(), accepted;
	int64_t ids = status_of_all("connections", "ids");

	check_case("refused");
	fcntl(e, F_SETFL, O_NONBLOCK);
	atomic_store(&starved, true);
	CHECK_EQ(scif_connect(e, &dst), -1);
	CHECK_EQ(scif_raw_poll(e, POLLOUT, WAIT_MS) & POLLOUT, POLLOUT);
	CHECK_EQ(scif_connect(e, &dst), -1);
	CHECK_EQ(errno, ECONNREFUSED);
	atomic_store(&starved, false);
	CHECK_EQ(scif_connect(e, &dst), -1);
	CHECK_EQ(scif_raw_poll(pair.listener, POLLIN, WAIT_MS), POLLIN);
	CHECK_EQ(scif_accept(pair.listener, &peer, &accepted, 0), 0);
	CHECK_EQ(scif_raw_poll(e, POLLOUT, WAIT_MS) & POLLOUT, POLLOUT);
	CHECK(scif_connect(e, &dst) > 0);
	scif_close(accepted);
	scif_close(e);
	for (int ms = 0; ms < WAIT_MS && status_of_all("connections", "ids") != ids; ms += 20)
		usleep(20000); /* weftd hears of it by and by */
	CHECK_EQ(status_of_all("connections", "ids"), ids);
}

int main(void)
{
	is_main = true;
	refuses = starves;
	mem = scif_pages(LEN);
	pair = scif_make_pair();
	CHECK_EQ(scif_register(pair.a, mem, LEN, 0x10000, 3, SCIF_MAP_FIXED), 0x10000);
	for (unsigned i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!calls[i].maps || scif_can_map())
			run(&calls[i]);
	refused();
	scif_end_pair(&pair);
	return check_result();
}
