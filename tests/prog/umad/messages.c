// SPDX-License-Identifier: BSD-3-Clause
/* Messages of many segments, both ways. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/prog/umad/help.h"

enum { SA_DATA = 56, LENGTH = SA_DATA + 20000, ACTIVE = 1, DATA = 1, AT_RMPP = 24 };

/* Makes it a message of LENGTH bytes, with a pattern as its data. */
static void fill(struct umad_hdr *hdr, const struct packet *first)
{
	uint8_t *mad = (uint8_t *)(hdr + 1);

	*hdr = first->hdr;
	memcpy(mad, first->mad, MAD_BYTES);
	memcpy(mad + AT_RMPP, (uint8_t[]){1, DATA, ACTIVE}, 3);
	for (size_t i = SA_DATA; i < LENGTH; i++)
		mad[i] = (uint8_t)(i * 7 + i / 251);
}

static bool same(const struct umad_hdr *a, const struct umad_hdr *b)
{
	return !memcmp(
		(const char *)(a + 1) + SA_DATA, (const char *)(b + 1) + SA_DATA, LENGTH - SA_DATA);
}

static struct umad_hdr *new_message(void)
{
	struct umad_hdr *m = calloc(1, sizeof *m + LENGTH);

	T_CHECK(m);
	return m;
}

/* Each size that is too small leaves the message, and shows its beginning and length. */
static void read_long(int fd, struct umad_hdr *in)
{
	size_t whole = sizeof *in + LENGTH;

	await(fd);
	T_EQUAL(umad_file_read(fd, in, sizeof *in + MAD_BYTES - 1), -EINVAL);
	T_EQUAL(umad_file_read(fd, in, sizeof *in + MAD_BYTES), -ENOSPC);
	T_EQUAL(in->length, whole);
	T_EQUAL(umad_file_read(fd, in, whole - 1), -ENOSPC);
	T_EQUAL(umad_file_read(fd, in, whole), whole);
	T_EQUAL(in->status, 0);
	T_EQUAL(in->length, whole);
}

/* A request of many segments, and an answer of as many. */
static void there_and_back(void)
{
	int client = open_file(O_NONBLOCK), server = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(client, 1), agent = add_agent(server, SA, 1);
	struct umad_hdr *out = new_message(), *in = new_message(), *back = new_message();
	struct packet first = request(sender, SA, 3);
	size_t whole = sizeof *out + LENGTH;

	first.hdr.timeout_ms = LONG_MS;
	fill(out, &first);
	T_EQUAL(umad_file_write(client, out, whole), whole);
	T_EQUAL(umad_file_write(client, out, whole), -EINVAL);
	read_long(server, in);
	T_EQUAL(in->id, agent);
	T_CHECK(same(out, in));
	quiet(server);
	memcpy(&first, in, sizeof first);
	first = answer(agent, &first);
	fill(back, &first);
	T_EQUAL(umad_file_write(server, back, whole), whole);
	read_long(client, in);
	T_EQUAL(in->id, sender);
	T_CHECK(same(back, in));
	quiet(client);
	await_status("bytes_kept", 0);
	free(out);
	free(in);
	free(back);
}

/* Many at a time, of which weftd keeps each until it is read. */
static void many(void)
{
	int fd = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 1);
	struct umad_hdr *out = new_message(), *in = new_message();
	size_t whole = sizeof *out + LENGTH;

	(void)add_agent(fd, SA, 1);
	for (uint32_t tid = 0; tid < 20; tid++) {
		struct packet first = request(sender, SA, tid);

		fill(out, &first);
		T_EQUAL(umad_file_write(fd, out, whole), whole);
	}
	for (uint32_t tid = 0; tid < 20; tid++) {
		await(fd);
		T_EQUAL(umad_file_read(fd, in, whole), whole);
		T_CHECK(same(out, in));
	}
	quiet(fd);
	await_status("bytes_kept", 0);
	free(out);
	free(in);
}

/* One segment has the length of its data: who counts records by it finds no empty ones. */
static void one_segment(void)
{
	enum { SHORT = SA_DATA + 64 };
	int fd = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 1);
	struct umad_hdr *out = new_message(), *in = new_message();
	struct packet first = request(sender, SA, 5);
	size_t whole = sizeof *out + SHORT;

	(void)add_agent(fd, SA, 1);
	fill(out, &first);
	T_EQUAL(umad_file_write(fd, out, whole), whole);
	await(fd);
	T_EQUAL(umad_file_read(fd, in, whole - 1), -EINVAL);
	T_EQUAL(umad_file_read(fd, in, sizeof *in + MAD_BYTES), whole);
	T_EQUAL(in->length, whole);
	T_CHECK(!memcmp((char *)(in + 1) + SA_DATA, (char *)(out + 1) + SA_DATA, SHORT - SA_DATA));
	quiet(fd);
	free(out);
	free(in);
}

/* An agent that says so gets and sends segments itself. */
static void by_the_program(void)
{
	int fd = open_file(O_NONBLOCK);
	uint32_t sender;
	struct umad_agent a = {.qpn = 1,
		.mgmt_class = SA,
		.class_version = 1,
		.rmpp_version = 1,
		.flags = UMAD_USER_RMPP,
		.method_mask = {1 << METHOD}};
	struct packet p, in;

	T_OK(umad_file_register2(fd, &a));
	sender = a.id;
	for (uint32_t segment = 1; segment < 4; segment++) {
		p = request(sender, SA, 1);
		memcpy(p.mad + AT_RMPP, (uint8_t[]){1, DATA, ACTIVE, 0, 0, 0, 0, segment}, 8);
		put(fd, &p);
	}
	for (uint32_t segment = 1; segment < 4; segment++) {
		get(fd, &in);
		T_EQUAL(in.mad[AT_RMPP + 7], segment);
	}
	quiet(fd);
}

/* Those that nobody answers have a limit, all together: who writes more hears of it. */
static void unanswered(void)
{
	enum { BIG = 4 << 20, MOST = 64 << 20 };
	int fd = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 1), tid = 0;
	struct umad_hdr *out = calloc(1, sizeof *out + BIG);
	ssize_t whole = sizeof *out + BIG, n;

	T_CHECK(out);
	do {
		struct packet first = request(sender, SA, tid++);

		first.hdr.retries = 1000;
		fill(out, &first);
		n = umad_file_write(fd, out, whole);
	} while (n == whole && tid <= MOST / BIG);
	T_EQUAL(n, -ENOBUFS);
	T_EQUAL(umad_file_write(fd, out, whole), -ENOBUFS); /* and not that it is a duplicate */
	T_CHECK(umad_status("bytes_kept") >= MOST - BIG && umad_status("bytes_kept") <= MOST);
	close(fd);
	await_status("bytes_kept", 0);
	free(out);
}

/* Writes messages that nobody reads, and then MADs that nobody answers, until no more are kept. */
static void fill_weftd(void)
{
	enum { BIG = 4 << 20, SOME = 64 };
	int reader = open_file(O_NONBLOCK), writer = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(writer, 1), plain = add_sender(writer, 0), tid = 0;
	struct umad_hdr *out = calloc(1, sizeof *out + BIG);
	ssize_t whole = sizeof *out + BIG, n;
	struct packet p;

	T_CHECK(out);
	(void)add_agent(reader, SA, 1);
	do {
		p = request(sender, SA, tid++);
		p.hdr.retries = 1000;
		fill(out, &p);
		n = umad_file_write(writer, out, whole);
	} while (n == whole);
	T_EQUAL(n, -ENOBUFS);
	while (umad_drops("unsent") < SOME)
		for (int i = 0; i < SOME; i++) {
			p = request(plain, CLASS, tid++);
			p.hdr.timeout_ms = 10 * LONG_MS;
			put(writer, &p);
		}
	free(out);
}

/* Who does not read does not take from others that they hear when nobody answers. */
static void others_go_on(void)
{
	struct packet p, in;
	uint32_t sender;
	int fd;

	fill_weftd();
	fd = open_file(O_NONBLOCK);
	sender = add_sender(fd, 0);
	p = request(sender, CLASS, 1);
	p.hdr.timeout_ms = 1;
	put(fd, &p);
	await(fd);
	T_EQUAL(umad_file_read(fd, &in, sizeof in), sizeof in.hdr + 24);
	T_EQUAL(in.hdr.status, ETIMEDOUT);
}

static int short_of_memory; /* bytes to weftd that find none, from now on */
static int were_short;

/* The one that the library calls. */
ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	if (n == 1 && short_of_memory > 0) {
		short_of_memory--;
		were_short++;
		errno = ENOBUFS;
		return -1;
	}
	return sendto(fd, buf, n, flags, NULL, 0);
}

/* A kernel that has no memory for a moment is no weftd that has died. */
static void no_memory_for_a_byte(void)
{
	int asks = open_file(0), answers = open_file(0);
	uint32_t sender = add_sender(asks, 0);
	struct packet p = request(sender, CLASS, 1), in;

	(void)add_agent(answers, CLASS, 0);
	short_of_memory = 3;
	put(asks, &p);
	get(answers, &in);
	T_EQUAL(low_tid(&in), 1);
	T_EQUAL(were_short, 3);
	p = request(sender, CLASS, 2);
	put(asks, &p);
	get(answers, &in);
	T_EQUAL(low_tid(&in), 2);
}

const struct test_case message_cases[] = {
	{"no_memory_for_a_byte", no_memory_for_a_byte},
	{"there_and_back", there_and_back},
	{"many", many},
	{"one_segment", one_segment},
	{"by_the_program", by_the_program},
	{"unanswered", unanswered},
	{"others_go_on", others_go_on},
	{0},
};
