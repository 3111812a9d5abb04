// SPDX-License-Identifier: BSD-3-Clause
/* A thread that writes faster than another one reads. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "tests/prog/umad/help.h"

enum {
	GET = 1,
	COUNT = 20000,
	MOST = 1000,     /* opensm's table has so many places */
	STALL_MS = 50,   /* of the reader's: then nobody can say what ought to be */
	ATTEMPTS = 20,   /* until there is none */
	READ_NS = 10000, /* it works on each MAD */
};

struct pair {
	int fd;
	_Atomic uint32_t read;
	uint64_t longest_ns; /* between two reads */
};

static void work(void)
{
	uint64_t until = clock_ns() + READ_NS;

	while (clock_ns() < until)
		;
}

static void *read_all(void *arg)
{
	struct pair *p = arg;
	uint64_t last = clock_ns(), now;
	struct packet in;

	for (unsigned i = 0; i < COUNT; i++) {
		T_EQUAL(umad_file_wait(p->fd, LONG_MS), 0);
		T_EQUAL(umad_file_read(p->fd, &in, sizeof in), sizeof in);
		T_EQUAL(in.hdr.status, 0);
		now = clock_ns();
		if (now - last > p->longest_ns)
			p->longest_ns = now - last;
		last = now;
		atomic_fetch_add(&p->read, 1);
		work();
	}
	return NULL;
}

static void write_one(const struct pair *p, uint32_t agent, uint32_t tid)
{
	struct packet out = request(agent, CLASS, tid);

	out.mad[3] = GET; /* nobody is there: the port answers */
	out.hdr.timeout_ms = LONG_MS;
	put(p->fd, &out);
}

/* The most that were written and not read.  Until the reader has begun it is waited for nowhere. */
static uint32_t write_all(struct pair *p, uint32_t agent)
{
	uint32_t most = 0, behind;

	write_one(p, agent, 1);
	while (!atomic_load(&p->read))
		(void)poll(NULL, 0, 1);
	for (uint32_t i = 1; i < COUNT; i++) {
		write_one(p, agent, i + 1);
		behind = i + 1 - atomic_load(&p->read);
		most = behind > most ? behind : most;
	}
	return most;
}

static void paced(void)
{
	struct pair p = {.fd = open_file(O_NONBLOCK)};
	uint32_t agent = add_sender(p.fd, 0), most;
	pthread_t reader;

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		p.longest_ns = 0;
		atomic_store(&p.read, 0);
		T_OK(pthread_create(&reader, NULL, read_all, &p));
		most = write_all(&p, agent);
		T_OK(pthread_join(reader, NULL));
		if (most < MOST)
			return;
		T_CHECK(p.longest_ns > STALL_MS * NSEC_PER_MSEC);
	}
	t_skip("the reader was never on a CPU for long enough");
}

const struct test_case pace_cases[] = {
	{"paced", paced},
	{0},
};
