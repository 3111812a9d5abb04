// SPDX-License-Identifier: BSD-3-Clause
/*
 * A fuzzer for completions of faces: an end that speaks raw verbs connects to SCIF, an rsocket, TI
 * and librpma, and sends them requests of any kind, length and immediate, true ones among them.  A
 * face gives the program what was sent and nothing else, and ends a connection whose peer does what
 * its protocol has not.
 *
 * usage: face_storm [RUNS [SEED]]
 */
#include "tests/storm/face_victim.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "scif/ep/wire.h"
#include "tests/lib/check.h"

enum { DEFAULT_RUNS = 120, MOST = 12, SOON_MS = 20000, ONE_IN = 8 };

static uint64_t rnd = 88172645463325252;

uint32_t face_draw(uint32_t n)
{
	rnd ^= rnd << 13;
	rnd ^= rnd >> 7;
	rnd ^= rnd << 17;
	return rnd % n;
}

/* ---- connecting ---- */

static _Atomic bool stop, has_one;

static void *accept_one(void *arg)
{
	const struct face_victim *v = arg;

	while (!stop && !v->accept())
		sched_yield();
	has_one = !stop;
	return NULL;
}

/* Perhaps with a greeting that is not quite right. */
static void dial(const struct face_victim *v, struct raw_end *r)
{
	uint8_t priv[RAW_PRIV], n = v->hello(r, priv);

	if (face_draw(ONE_IN) == 0)
		priv[face_draw(n)] ^= 1 << face_draw(8);
	if (face_draw(ONE_IN) == 0)
		n = face_draw(sizeof priv + 1);
	raw_dial(r, n ? priv : NULL, n);
}

/* False: it was refused. */
static bool meet(const struct face_victim *v, struct raw_end *r)
{
	double until = now_ms() + SOON_MS;
	pthread_t thread;
	int answer = 0;

	stop = has_one = false;
	dial(v, r);
	if (pthread_create(&thread, NULL, accept_one, (void *)v))
		die("pthread_create");
	while (!(answer = raw_answer(r, 10)) && now_ms() < until)
		;
	while (answer > 0 && !has_one && now_ms() < until)
		sched_yield();
	stop = true;
	pthread_join(thread, NULL);
	CHECK(answer);
	return answer > 0 && has_one;
}

/* ---- requests ---- */

static const uint32_t lengths[] = {0, 1, 4, 8, 15, 16, 17, 40, 47, 48, 49, 63, 64, 65, 100, 1000,
	2047, 2048, 2049, 4095, 4096, 4097, 8192, 60000};

static uint32_t any_length(void)
{
	return face_draw(2) ? face_draw(200) : lengths[face_draw(sizeof lengths / sizeof *lengths)];
}

/* Mostly one that some face has. */
static uint32_t any_imm(const struct face_request *q)
{
	const uint32_t imms[] = {q->len, WIRE_DATA, WIRE_DATA, 0, 1, face_draw(UINT32_MAX)};

	return htonl(imms[face_draw(sizeof imms / sizeof *imms)]);
}

static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
	IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_FETCH_AND_ADD};

static enum ibv_wr_opcode any_opcode(void)
{
	return opcodes[face_draw(sizeof opcodes / sizeof *opcodes)];
}

static void fill(struct raw_end *r, uint32_t len)
{
	for (uint32_t i = 0; i < len; i += 1 + face_draw(64))
		r->buf[i] = face_draw(256);
}

/* A request of no particular sense. */
static void any_request(const struct face_victim *v, struct raw_end *r, struct face_request *q)
{
	*q = (struct face_request){.wr.opcode = any_opcode(), .len = any_length()};
	q->wr.imm_data = any_imm(q);
	fill(r, q->len);
	v->aim(q);
}

/* One thing of a true one is another. */
static void spoil(const struct face_victim *v, struct raw_end *r, struct face_request *q)
{
	switch (face_draw(6)) {
	case 0:
		q->len = any_length();
		break;
	case 1:
		q->wr.imm_data = any_imm(q);
		break;
	case 2:
		q->wr.opcode = any_opcode();
		if (!q->wr.wr.rdma.rkey)
			v->aim(q);
		break;
	case 3:
		q->len += face_draw(2) ? 1 : -(q->len > 0);
		break;
	case 4:
		v->aim(q);
		break;
	default:
		fill(r, q->len);
	}
}

static void next_request(const struct face_victim *v, struct raw_end *r, struct face_request *q)
{
	if (face_draw(4) == 0) {
		any_request(v, r, q);
		return;
	}
	v->message(r, q);
	if (face_draw(4) == 0)
		spoil(v, r, q);
}

/* An atomic has 8 bytes, and another form. */
static void round_off(struct face_request *q)
{
	uint64_t at = q->wr.wr.rdma.remote_addr;
	uint32_t key = q->wr.wr.rdma.rkey;

	if (q->wr.opcode != IBV_WR_ATOMIC_FETCH_AND_ADD)
		return;
	q->len = sizeof(uint64_t);
	q->wr.wr.atomic.remote_addr = at & ~(uint64_t)7;
	q->wr.wr.atomic.rkey = key;
	q->wr.wr.atomic.compare_add = 1;
}

/* ---- one connection ---- */

static void run(const struct face_victim *v, uint16_t port)
{
	double until = now_ms() + SOON_MS;
	struct face_request q;
	struct raw_end r;
	bool wrong = false;

	raw_begin(&r, port);
	if (!meet(v, &r)) {
		raw_end(&r);
		return;
	}
	v->meet(&r);
	for (uint32_t n = 1 + face_draw(MOST); n && !wrong && !raw_hung_up(&r); n--) {
		next_request(v, &r, &q);
		round_off(&q);
		if (raw_do(&r, &q.wr, 0, q.len) != IBV_WC_SUCCESS)
			break;
		wrong = !v->done(&r, &q);
		v->look();
	}
	while (wrong && !v->over() && now_ms() < until)
		sched_yield();
	if (wrong)
		CHECK(v->over());
	v->look();
	raw_end(&r);
	v->close();
}

int main(int argc, char **argv)
{
	const struct face_victim *const victims[] = {&face_scif, &face_rsock, &face_ti, &face_rpma};
	unsigned runs = argc > 1 ? strtoul(argv[1], NULL, 0) : DEFAULT_RUNS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : rnd;

	for (unsigned i = 0; i < sizeof victims / sizeof *victims; i++) {
		uint16_t port = victims[i]->listen();

		rnd = seed;
		for (unsigned n = 0; n < runs; n++) {
			check_case("%s, connection %u of seed %llu", victims[i]->name, n,
				(unsigned long long)seed);
			run(victims[i], port);
		}
		victims[i]->end();
	}
	return check_result();
}
