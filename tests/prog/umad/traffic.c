// SPDX-License-Identifier: BSD-3-Clause
/* MADs between two processes: requests and answers, timeouts, duplicates. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/prog/umad/help.h"

enum { MADS = 1000, TIMEOUT_MS = 20, RETRIES = 2 };

/* Answers so many requests. */
static void serve(int in, int out, void *arg)
{
	int fd = open_file(0);
	uint32_t agent = add_agent(fd, CLASS, 0);
	struct packet p, to;

	t_signal(out);
	for (int n = *(int *)arg; n > 0; n--) {
		T_EQUAL(umad_file_read(fd, &p, sizeof p), sizeof p);
		T_EQUAL(p.hdr.id, agent);
		to = answer(agent, &p);
		put(fd, &to);
	}
	t_await(in);
}

static void answers(void)
{
	struct t_child server;
	struct packet p, in;
	uint32_t sender, own = 0;
	int fd, n = MADS;

	t_fork(&server, serve, &n);
	t_await(server.from);
	fd = open_file(0);
	sender = add_sender(fd, 0);
	for (uint32_t i = 0; i < MADS; i++) {
		p = request(sender, CLASS, i);
		p.hdr.timeout_ms = LONG_MS;
		put(fd, &p);
		get(fd, &in);
		T_EQUAL(in.hdr.status, 0);
		T_EQUAL(in.hdr.id, sender);
		T_EQUAL(low_tid(&in), i);
		/* It wrote 0: that half is its agent's number. */
		T_CHECK(high_tid(&in) && (!own || high_tid(&in) == own));
		own = high_tid(&in);
		T_CHECK(!memcmp(in.hdr.gid, p.hdr.gid, sizeof in.hdr.gid));
		T_CHECK(!memcmp(in.mad + 64, p.mad + 64, MAD_BYTES - 64));
	}
	quiet(fd);
	t_signal(server.to);
	T_EQUAL(t_wait(&server), 0);
	T_EQUAL(umad_drops("bad_record"), 0);
}

static void timeouts(void)
{
	int fd = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 0);
	struct packet p = request(sender, CLASS, 5), in = {0};
	uint64_t began = t_ms();

	p.hdr.timeout_ms = TIMEOUT_MS;
	p.hdr.retries = RETRIES;
	put(fd, &p);
	await(fd);
	T_CHECK(t_ms() - began >= TIMEOUT_MS * (RETRIES + 1));
	T_EQUAL(umad_file_read(fd, &in, UMAD_HDR_SIZE + 23), -EINVAL);
	T_EQUAL(umad_file_read(fd, &in, sizeof in), UMAD_HDR_SIZE + 24);
	T_EQUAL(in.hdr.status, ETIMEDOUT);
	T_EQUAL(in.hdr.timeout_ms, TIMEOUT_MS);
	T_EQUAL(in.hdr.retries, RETRIES);
	T_EQUAL(in.hdr.id, sender);
	T_EQUAL(low_tid(&in), 5);
	quiet(fd);
}

/* What is under way cannot be sent again, but by another file; what has timed out can. */
static void duplicates(void)
{
	int fd = open_file(O_NONBLOCK), other = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 0), second = add_sender(other, 0);
	struct packet p = request(sender, CLASS, 9), in;

	p.hdr.timeout_ms = LONG_MS;
	put(fd, &p);
	p.hdr.timeout_ms = 0;
	T_EQUAL(umad_file_write(fd, &p, sizeof p), -EINVAL);
	p.hdr.id = second;
	put(other, &p);
	p = request(sender, CLASS, 10);
	p.hdr.timeout_ms = TIMEOUT_MS;
	for (int i = 0; i < 2; i++) {
		put(fd, &p);
		await(fd);
		T_EQUAL(umad_file_read(fd, &in, sizeof in), UMAD_HDR_SIZE + 24);
	}
}

/* Nobody is there for a Get: the port itself says so. */
static void nobody(void)
{
	int fd = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 0);
	struct packet p = request(sender, CLASS, 3), in;

	p.hdr.timeout_ms = LONG_MS;
	p.mad[3] = 1;
	put(fd, &p);
	get(fd, &in);
	T_EQUAL(in.mad[3], 0x81);
	T_EQUAL(in.mad[5], 0x0c);
}

const struct test_case traffic_cases[] = {
	{"answers", answers},
	{"timeouts", timeouts},
	{"duplicates", duplicates},
	{"nobody", nobody},
	{0},
};
