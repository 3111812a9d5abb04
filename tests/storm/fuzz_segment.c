// SPDX-License-Identifier: BSD-3-Clause
/*
 * libFuzzer: a peer's segment with anything in it, as weftd meets it in its timers and after
 * deaths, and as a process meets it when it executes that peer's requests.
 *
 * The input is a list of patches of the hostile segment: place, length, bytes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "hca/exec/exec.h"
#include "hca/exec/recover.h"

enum {
	HUB_ID = 1,
	VICTIM = 2,
	HOSTILE = 3,
	QPN = 256,
	LOG = 3,
	STRIDE = 128,
	CQ_LOG = 8,
	HEAP = 1 << 17,
	SRQ = 2,
	SRQ_OFF = 1 << 15,
	SRQ_STRIDE = 256,
	OWN_MEMORY = 4096,
};

#define QPS_BYTES (2 * sizeof(struct seg_qp))

static struct seg *hub, *victim, *hostile;
static uint8_t memory[OWN_MEMORY + 64];

static bool no_fire(uint32_t attach, uint32_t channel, struct fired_note *note, void *arg)
{
	(void)attach, (void)channel, (void)arg;
	fired_enter(note);
	return true;
}

static void no_env_fire(uint32_t attach, uint32_t channel, void *arg)
{
	(void)attach, (void)channel, (void)arg;
}

static bool no_unread(uint32_t attach, uint32_t channel, void *arg)
{
	(void)attach, (void)channel, (void)arg;
	return false;
}

static bool no_timer(uint32_t attach, uint32_t qp, uint64_t when, void *arg)
{
	(void)attach, (void)qp, (void)when, (void)arg;
	return true;
}

static void no_env_timer(uint32_t attach, uint32_t qp, uint64_t when, void *arg)
{
	(void)attach, (void)qp, (void)when, (void)arg;
}

static struct seg *new_segment(void)
{
	void *p = mmap(NULL, SEG_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/* A shared receive queue, at entry SRQ. */
static void furnish_srq(struct seg *s)
{
	struct seg_qp *q = &s->qp[SRQ];

	memset(q, 0, sizeof *q);
	q->qpn = QPN + 1;
	q->type = SEG_TYPE_SRQ;
	q->send_cq = q->recv_cq = SEG_NONE;
	q->pd = 1;
	q->rxq.place[0].slots_off = offsetof(struct seg, heap) + SRQ_OFF;
	q->rxq.place[0].bounce_off = q->rxq.place[0].slots_off + ((uint64_t)SRQ_STRIDE << LOG);
	q->rxq.place[0].log = LOG;
	q->rxq.stride = SRQ_STRIDE;
	q->state = 1 << QPS_GEN_SHIFT | QPS_LIVE;
}

/* One QP, one CQ, one SRQ, in working order. */
static void furnish(struct seg *s, uint32_t peer_attach)
{
	uint64_t at = offsetof(struct seg, heap);
	struct seg_qp *q = &s->qp[1];
	struct seg_cq *cq = &s->cq[1];

	memset(&s->hdr, 0, sizeof s->hdr);
	memset(q, 0, sizeof *q);
	memset(cq, 0, sizeof *cq);
	memset(s->heap, 0, HEAP);
	furnish_srq(s);
	s->hdr.qps_used = 3;
	s->hdr.cqs_used = 2;
	s->hdr.slots_used = 1;
	cq->place[0].off = at;
	cq->place[0].log_size = CQ_LOG;
	cq->place[0].limit = 16;
	q->qpn = q->dest_qpn = QPN;
	q->peer_attach = peer_attach;
	q->pd = 1;
	q->access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	q->send_cq = q->recv_cq = 1;
	q->type = IBV_QPT_RC;
	q->max_rd_atomic = q->max_dest_rd_atomic = 1;
	q->timeout = 1;
	q->sq_stride = q->rq_stride = STRIDE;
	q->sq_log = q->rq_log = LOG;
	q->sq_off = at + 2048;
	q->rq_off = at + 4096;
	q->ring_off = at + 8192;
	q->park_off = q->ring_off + SEG_RING_BYTES;
	q->state = 1 << QPS_GEN_SHIFT | QPS_LIVE | IBV_QPS_RTS;
	q->sq_tail = 2;
}

/* Where the patches go: what is in use, one range behind the other. */
static uint8_t *place(uint32_t at)
{
	const struct {
		void *start;
		size_t size;
	} part[] = {{&hostile->hdr, sizeof hostile->hdr}, {&hostile->qp[1], QPS_BYTES},
		{&hostile->cq[1], sizeof(struct seg_cq)}, {&hostile->mr[1], sizeof(struct seg_mr)},
		{hostile->heap, HEAP}};
	size_t all = 0, i;

	for (i = 0; i < sizeof part / sizeof *part; i++)
		all += part[i].size;
	at %= all;
	for (i = 0; at >= part[i].size; i++)
		at -= part[i].size;
	return (uint8_t *)part[i].start + at;
}

static void patch(const uint8_t *data, size_t size)
{
	while (size > 4) {
		uint32_t at = data[0] | data[1] << 8 | data[2] << 16;
		size_t len = 1 + data[3] % 64;

		data += 4;
		size -= 4;
		if (len > size)
			len = size;
		for (size_t i = 0; i < len; i++)
			*place(at + i) = data[i];
		data += len;
		size -= len;
	}
}

static void give_memory(struct seg *s)
{
	struct seg_mr *mr = &s->mr[1];

	mr->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC;
	mr->pd = 1;
	mr->iova = mr->addr = (uintptr_t)memory;
	mr->length = OWN_MEMORY;
	atomic_store(&mr->key, 1 << 8);
}

/* The victim carries out the hostile one's requests, and its own to that. */
static void execute(void)
{
	const struct view at_hostile = {
		.seg = hostile, .attach = HOSTILE, .pid = -1, .pidfd = OWN_FD_NONE};
	const struct view at_victim = {.seg = victim, .attach = VICTIM, .pidfd = OWN_FD_NONE};
	const struct budget b = {.requests = 64, .bytes = 1 << 18, .large = 1 << 23};
	struct exec x = {.attach = VICTIM,
		.slot = &victim->slots[0],
		.owner = 1ull << 24 | VICTIM,
		.counters = victim->counters[0],
		.fire = no_fire,
		.timer = no_timer};
	struct end own, other;

	if (end_init(&own, &at_victim, 1))
		abort();
	if (end_init(&other, &at_hostile, 1))
		return;
	exec_run(&x, &other, &own, b);
	exec_run(&x, &own, &other, b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recover_env env = {
		.hub_id = HUB_ID, .fire = no_env_fire, .unread = no_unread, .timer = no_env_timer};

	if (!hub) {
		hub = new_segment();
		victim = new_segment();
		hostile = new_segment();
	}
	env.hub = hub;
	furnish(victim, HOSTILE);
	give_memory(victim);
	furnish(hostile, VICTIM);
	memset(&hostile->mr[1], 0, sizeof hostile->mr[1]);
	patch(data, size);
	execute();
	for (size_t i = OWN_MEMORY; i < sizeof memory; i++)
		if (memory[i])
			abort();
	recover_timer(&env, hostile, HOSTILE, 1);
	recover_timer(&env, hostile, HOSTILE, SEG_TIMER_CHANNEL | 1);
	hostile->hdr.qps_used &= 7;
	hostile->hdr.cqs_used &= 3;
	recover_death(&env, hostile, HOSTILE, VICTIM);
	recover_adopt(&env, hostile, HOSTILE);
	return 0;
}
