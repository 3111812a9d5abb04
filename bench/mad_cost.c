// SPDX-License-Identifier: BSD-3-Clause
/*
 * mad_cost: what the MAD layer costs by itself, in ns of CPU time, the least of some rounds; one
 * "name value" line each.
 *
 *   send_1, send_1000      a send and its response while so many wait, answers in their order
 *   request_1000           a request that comes, among 1,000 agents
 *   rmpp_20000             a message of 20,000 bytes from the port to itself, ACKs included
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "mad/agents.h"
#include "mad/dispatch.h"
#include "mad/loop.h"

enum { ROUNDS = 7, TIMES = 50000, LONG_TIMES = 500, AGENTS = 1000, LONG = 20000, WAIT_MS = 60000 };

static struct mad_layer layer;
static struct mad_port port;
static struct mad_agent agent[AGENTS]; /* the first hears requests */
static const struct mad_addr peer = {.qp = 1, .qpn = 1, .lid = 5};
static uint32_t next_ask, next_answer;
static unsigned ended;

static uint64_t now(void *arg)
{
	(void)arg;
	return clock_ns();
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* Single MADs go nowhere, segments to the port itself. */
static int transmit(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	(void)arg;
	return mad[1] == MAD_CLASS_SA ? mad_loopback(&port, to, mad) : 0;
}

static void receive(struct mad_agent *a, const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	(void)a, (void)from, (void)mad;
}

static void receive_long(
	struct mad_agent *a, const struct mad_addr *from, const uint8_t *msg, size_t len)
{
	(void)a, (void)from, (void)msg, (void)len;
}

static void done(struct mad_agent *a, struct mad_send *s, int status, const uint8_t *response)
{
	(void)a, (void)s, (void)response;
	ended += !status;
}

static void make(uint8_t *mad, uint8_t mgmt_class, uint8_t method, uint64_t tid)
{
	const struct mad_hdr hdr = {.base_version = MAD_BASE_VERSION,
		.mgmt_class = mgmt_class,
		.class_version = 1,
		.method = method,
		.tid = tid};

	wire_pack(&mad_hdr_format, &hdr, mad);
}

static void ask(void)
{
	struct mad_agent *a = &agent[AGENTS - 1];
	uint8_t mad[MAD_SIZE] = {0};
	struct mad_send *s;

	make(mad, MAD_CLASS_PERF, MAD_GET, mad_tid(a, next_ask++));
	if (mad_send(a, &peer, mad, WAIT_MS, 0, true, NULL, &s))
		exit(1);
}

static void answer(void)
{
	uint8_t mad[MAD_SIZE] = {0};

	make(mad, MAD_CLASS_PERF, MAD_GET_RESP, mad_tid(&agent[AGENTS - 1], next_answer++));
	mad_receive(&port, &peer, mad);
}

static void ask_and_answer(void)
{
	ask();
	answer();
}

static void request(void)
{
	uint8_t mad[MAD_SIZE] = {0};

	make(mad, MAD_CLASS_PERF, MAD_GET, 1);
	mad_receive(&port, &peer, mad);
}

static void long_message(void)
{
	static uint8_t message[LONG];
	struct mad_send *s;
	unsigned before = ended;

	make(message, MAD_CLASS_SA, MAD_REPORT, mad_tid(&agent[1], next_ask++));
	if (mad_send_long(&agent[1], &peer, message, LONG, WAIT_MS, 0, false, NULL, &s))
		exit(1);
	while (ended == before)
		mad_run(&layer, 64);
}

static void measure(const char *name, void (*what)(void), int times)
{
	double least = 1e18;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begin = cpu_ns();
		double each;

		for (int i = 0; i < times; i++)
			what();
		each = (double)(cpu_ns() - begin) / times;
		if (each < least)
			least = each;
	}
	printf("%s %.0f\n", name, least);
}

static void start(void)
{
	layer.now = now;
	mad_layer_init(&layer);
	port = (struct mad_port){.layer = &layer, .transmit = transmit};
	for (int i = 0; i < AGENTS; i++) {
		agent[i] = (struct mad_agent){
			.reg = {.qpn = 1, .mgmt_class = MAD_CLASS_PERF, .class_version = 1},
			.receive = receive,
			.receive_long = receive_long,
			.done = done};
		if (i == 1) {
			agent[i].reg.mgmt_class = MAD_CLASS_SA;
			agent[i].reg.rmpp_version = 1;
		}
		agent[i].reg.methods[0] = i == 0 ? 1 << MAD_GET : i == 1 ? 1 << MAD_REPORT : 0;
		if (mad_register(&port, &agent[i]))
			exit(1);
	}
}

int main(void)
{
	start();
	measure("send_1", ask_and_answer, TIMES);
	for (int i = 1; i < 1000; i++)
		ask();
	measure("send_1000", ask_and_answer, TIMES);
	measure("request_1000", request, TIMES);
	measure("rmpp_20000", long_message, LONG_TIMES);
	mad_port_end(&port);
	mad_layer_end(&layer);
	return 0;
}
