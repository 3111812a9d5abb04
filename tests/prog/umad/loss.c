// SPDX-License-Identifier: BSD-3-Clause
/* What happens when weftd goes, when a program does not read, and when it scribbles. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdv/admin.h"
#include "tests/prog/umad/help.h"
#include "umad/part.h"

/* ---- weftd goes ---- */

/* Tells what a blocking read says. */
static void read_once(int in, int out, void *arg)
{
	struct packet p;
	ssize_t n;

	(void)in;
	t_signal(out);
	n = umad_file_read(*(int *)arg, &p, sizeof p);
	t_tell(out, &n, sizeof n);
}

static void see_it_gone(int fd, uint32_t sender)
{
	struct umad_agent a = {.qpn = 1};
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	struct packet p = request(sender, CLASS, 1);

	T_EQUAL(poll(&pfd, 1, LONG_MS), 1);
	T_CHECK(pfd.revents & POLLHUP);
	T_EQUAL(umad_file_wait(fd, LONG_MS), 0);
	T_EQUAL(umad_file_read(fd, &p, sizeof p), -EIO);
	T_EQUAL(umad_file_write(fd, &p, sizeof p), -EIO);
	T_EQUAL(umad_file_register(fd, &a), -EPIPE);
	T_EQUAL(umad_file_register2(fd, &a), -EPIPE);
	T_EQUAL(umad_file_unregister(fd, sender), -EINVAL);
	T_EQUAL(umad_file_enable_pkey(fd), -EINVAL);
}

static void goes(void (*end)(void))
{
	int fd = open_file(0), again;
	uint32_t sender = add_sender(fd, 0);
	struct t_child reader;
	struct packet p = request(sender, CLASS, 1);
	ssize_t n;

	t_fork(&reader, read_once, &fd);
	t_await(reader.from);
	put(fd, &p);
	end();
	t_hear(reader.from, &n, sizeof n);
	T_EQUAL(n, -EIO);
	T_EQUAL(t_wait(&reader), 0);
	see_it_gone(fd, sender);
	/* Another weftd starts, and does not know the old file. */
	again = open_file(0);
	sender = add_sender(again, 0);
	(void)add_agent(again, CLASS, 0);
	p.hdr.id = sender;
	put(again, &p);
	get(again, &p);
	T_EQUAL(umad_file_read(fd, &p, sizeof p), -EIO);
}

static void weftd_killed(void)
{
	goes(kill_weftd);
}

static void shut_down(void)
{
	T_OK(rdv_shutdown(NULL));
}

static void weftd_leaves(void)
{
	goes(shut_down);
}

/* ---- nobody reads ---- */

enum { KEPT = 200000, RING = 512, TOO_MANY = 1000 };

static uint64_t drain(int fd)
{
	struct packet p;
	uint64_t n = 0;
	ssize_t got;

	while ((got = umad_file_read(fd, &p, sizeof p)) != -EAGAIN) {
		T_EQUAL(got, sizeof p);
		n++;
	}
	return n;
}

static bool has_dropped(void *arg)
{
	return umad_drops("unread") == *(int64_t *)arg;
}

/* What one does not read is kept up to a limit, in order; others go on; it can read again. */
static void flood(void)
{
	int fd = open_file(O_NONBLOCK), other = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 0), n = KEPT + RING + TOO_MANY;
	int64_t dropped = TOO_MANY;
	struct packet p, in;

	(void)add_agent(fd, CLASS, 0);
	(void)add_agent(other, CLASS + 1, 0);
	for (uint32_t tid = 0; tid < n; tid++) {
		p = request(sender, CLASS, tid);
		put(fd, &p);
	}
	T_CHECK(t_until(has_dropped, &dropped, LONG_MS));
	p = request(sender, CLASS + 1, 1);
	put(fd, &p);
	get(other, &in);
	get(fd, &in);
	T_EQUAL(low_tid(&in), 0);
	for (uint64_t got = 1; got < KEPT + RING; got += drain(fd))
		await(fd);
	T_EQUAL(umad_status("bytes_kept"), 0);
	T_EQUAL(umad_drops("all_unread"), 0);
	quiet(fd);
	p = request(sender, CLASS, 5);
	put(fd, &p);
	get(fd, &in);
	T_EQUAL(low_tid(&in), 5);
	quiet(fd);
}

/* More than a ring takes goes round, and nothing is left behind. */
static void rings_go_round(void)
{
	int fd = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 0), got = 0;
	struct packet p, in;

	(void)add_agent(fd, CLASS, 0);
	for (uint32_t sent = 0; sent < 5000; sent++) {
		p = request(sender, CLASS, sent);
		put(fd, &p);
		if (sent % 3)
			continue;
		get(fd, &in);
		T_EQUAL(low_tid(&in), got);
		got++;
	}
	for (; got < 5000; got++) {
		get(fd, &in);
		T_EQUAL(low_tid(&in), got);
	}
	quiet(fd);
}

/* ---- scribbling ---- */

enum { FILES = 30, SCRIBBLES = 200 };

static void scribble(void *at, size_t size, unsigned *seed)
{
	for (int i = 0; i < SCRIBBLES; i++) {
		size_t word = (size_t)rand_r(seed) % (size / sizeof(uint64_t));
		uint64_t v = (uint64_t)rand_r(seed) << (rand_r(seed) % 40);

		atomic_store_explicit((_Atomic uint64_t *)at + word, v, memory_order_relaxed);
	}
}

/* Writes over all that it shares with weftd, positions and bells more than the rest. */
static void ruin(int fd, unsigned *seed)
{
	struct part *p;

	T_OK(part_get(fd, &p));
	for (int round = 0; round < 20; round++) {
		scribble(p->page, sizeof *p->page, seed);
		scribble(p->page, offsetof(struct umad_page, tids), seed);
		scribble(p->lane, offsetof(struct umad_lane, send_slot) + 4096, seed);
		(void)!send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	part_put(p);
}

static void hostile(int in, int out, void *arg)
{
	unsigned seed = 1;

	(void)in;
	(void)out;
	(void)arg;
	for (int i = 0; i < FILES; i++) {
		int fd = open_file(O_NONBLOCK);
		uint32_t sender = add_sender(fd, 1);
		struct packet p = request(sender, CLASS + 1, (uint32_t)i);

		(void)add_agent(fd, CLASS + 2, 0);
		for (int n = 0; n < 100; n++)
			(void)umad_file_write(fd, &p, sizeof p);
		ruin(fd, &seed);
		p = request(0, CLASS + 2, 0);
		(void)umad_file_write(fd, &p, sizeof p);
		T_SYS(close(fd));
	}
}

/* Whoever has a file can break it, and nothing else. */
static void scribbled(void)
{
	int fd = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 0);
	struct t_child child;
	struct packet p, in;

	(void)add_agent(fd, CLASS, 0);
	t_fork(&child, hostile, NULL);
	for (uint32_t tid = 0; tid < 1000; tid++) {
		p = request(sender, CLASS, tid);
		put(fd, &p);
		get(fd, &in);
		T_EQUAL(low_tid(&in), tid);
	}
	T_EQUAL(t_wait(&child), 0);
	await_status("files", 1);
	await_status("lanes", 1);
	await_status("bytes_kept", 0);
	p = request(sender, CLASS, 1);
	put(fd, &p);
	get(fd, &in);
}

const struct test_case loss_cases[] = {
	{"weftd_killed", weftd_killed},
	{"weftd_leaves", weftd_leaves},
	{"flood", flood},
	{"rings_go_round", rings_go_round},
	{"scribbled", scribbled},
	{0},
};
