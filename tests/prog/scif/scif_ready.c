// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two processes answer each other; before each receive, each of them waits in a way drawn by lot:
 * in calls of SCIF that spin or sleep, or in poll(2), select(2) and epoll, of which the library
 * knows nothing.  None may sleep on while there is something.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"

enum { TURNS = 500, LATE_MS = 15000, RING = 4095, FILLS = 30 };

static uint32_t rnd;

static uint32_t draw(uint32_t n)
{
	rnd = rnd * 1664525 + 1013904223;
	return (rnd >> 8) % n;
}

/* ---- ways to wait until the endpoint is readable (or writable); false: nothing came ---- */

static bool by_poll(scif_epd_t e, bool out)
{
	short want = out ? POLLOUT : POLLIN;

	return scif_raw_poll(e, want, LATE_MS) & want;
}

static bool by_select(scif_epd_t e, bool out)
{
	struct timeval tv = {.tv_sec = LATE_MS / 1000};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(e, &set);
	return select(e + 1, out ? NULL : &set, out ? &set : NULL, NULL, &tv) == 1;
}

static bool by_epoll(scif_epd_t e, bool out)
{
	struct epoll_event ev = {.events = out ? EPOLLOUT : EPOLLIN};
	int ep = epoll_create1(EPOLL_CLOEXEC), n;

	epoll_ctl(ep, EPOLL_CTL_ADD, e, &ev);
	n = epoll_wait(ep, &ev, 1, LATE_MS);
	close(ep);
	return n == 1;
}

static bool by_scif_poll(scif_epd_t e, bool out)
{
	int want = out ? POLLOUT : POLLIN, is = scif_events(e, want, LATE_MS);

	return is >= 0 && (is & want);
}

/* Not at all: the call that follows does. */
static bool by_call(scif_epd_t e, bool out)
{
	(void)e;
	(void)out;
	return true;
}

static bool wait_somehow(scif_epd_t e, bool out)
{
	static bool (*const ways[])(scif_epd_t, bool) = {
		by_poll, by_select, by_epoll, by_scif_poll, by_call};
	uint32_t way = draw(8);
	bool came = ways[way < 5 ? way : 4](e, out);

	if (!came)
		printf("nothing came by way %u\n", way);
	return came;
}

/* What a program does between two calls: mostly nothing. */
static void think(void)
{
	static const unsigned us[] = {0, 0, 0, 0, 0, 5, 30, 80, 300, 1500};
	struct timespec ts = {.tv_nsec = us[draw(10)] * 1000};

	if (ts.tv_nsec)
		nanosleep(&ts, NULL);
}

/* Receives n bytes, spinning without blocking, or blocking. */
static bool take(scif_epd_t e, uint8_t *buf, int n)
{
	bool block = draw(2);
	double until = now_ms() + LATE_MS;
	int done = 0;

	while (done < n && now_ms() < until) {
		int got = scif_recv(e, buf + done, n - done, block ? SCIF_RECV_BLOCK : 0);

		if (got < 0)
			return false;
		done += got;
	}
	return done == n;
}

static bool send_turn(scif_epd_t e, uint32_t turn)
{
	return scif_send(e, &turn, sizeof(turn), SCIF_SEND_BLOCK) == sizeof(turn);
}

static bool recv_turn(scif_epd_t e, uint32_t turn)
{
	uint32_t got = 0;

	return wait_somehow(e, false) && take(e, (uint8_t *)&got, sizeof(got)) && got == turn;
}

static void talk(scif_epd_t e, bool first)
{
	bool good = true;

	for (uint32_t turn = 0; good && turn < TURNS; turn++) {
		good = first ? send_turn(e, turn) : recv_turn(e, turn);
		think();
		if (good)
			good = first ? recv_turn(e, turn) : send_turn(e, turn);
		check_case("turn %u, the %s process", turn, first ? "first" : "second");
		CHECK(good);
		think();
	}
}

/* One fills the queue and waits for room; the other waits for bytes and takes some. */
static void fill(scif_epd_t e)
{
	uint8_t buf[RING] = {0};

	for (int left = FILLS * RING, n; left > 0; left -= n) {
		n = scif_send(e, buf, left < RING ? left : RING, 0);
		CHECK(n >= 0);
		if (n < 0 || (!n && !wait_somehow(e, true)))
			break;
	}
	CHECK(recv_turn(e, FILLS));
}

static void drain(scif_epd_t e)
{
	uint8_t buf[RING];

	for (int left = FILLS * RING, n; left > 0; left -= n) {
		bool came = wait_somehow(e, false);

		CHECK(came);
		think();
		n = scif_recv(e, buf, left < 3000 ? left : 3000, 0);
		CHECK(n >= 0);
		if (n < 0 || !came)
			break;
	}
	CHECK(send_turn(e, FILLS));
}

static void peer(int in, int out)
{
	struct scif_portID who;
	scif_epd_t l, e;
	uint16_t port;

	(void)in;
	rnd = 4711;
	l = scif_listener(1, &port);
	scif_tell(out, port);
	if (scif_accept(l, &who, &e, SCIF_ACCEPT_SYNC))
		die("accept");
	talk(e, false);
	check_case("filling");
	drain(e);
	scif_close(e);
	scif_close(l);
}

int main(void)
{
	struct scif_child c = scif_fork(peer);
	scif_epd_t e = scif_dial(0, scif_hear(c.from));

	alarm(100);
	rnd = 1;
	talk(e, true);
	check_case("filling");
	fill(e);
	CHECK_EQ(scif_close(e), 0);
	scif_join(&c);
	return check_result();
}
