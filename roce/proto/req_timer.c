// SPDX-License-Identifier: BSD-3-Clause
#include "roce/proto/req_timer.h"

#include "base/clock.h"
#include "roce/proto/answers.h"

enum { DOUBLINGS_MAX = 10 };

uint64_t rc_rnr_time(unsigned code)
{
	/* units of 10 us */
	static const uint32_t times[32] = {65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128,
		192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768, 49152};

	return (uint64_t)times[code & 31] * 10 * NSEC_PER_USEC;
}

static uint64_t patience(const struct rc_requester *q)
{
	unsigned doublings = q->expired < DOUBLINGS_MAX ? q->expired : DOUBLINGS_MAX;
	uint64_t wait = window_patience(&q->window) << doublings;

	return q->conf.timeout && wait > q->conf.timeout ? q->conf.timeout : wait;
}

uint64_t rc_req_deadline(const struct rc_requester *q)
{
	uint64_t due = q->asked + patience(q), last = q->progress + q->conf.timeout;

	if (q->dead)
		return 0;
	if (q->rnr_until)
		return q->rnr_until;
	if (!q->asked)
		return 0;
	return q->conf.timeout && last < due ? last : due;
}

void req_progress(struct rc_requester *q, uint64_t now)
{
	q->progress = q->asked = now;
	q->expired = 0;
	q->unsent = false;
	q->retries = q->conf.retry_cnt;
}

/* The queue pair's own timeout is over: a retry, if there is one left. */
static void timed_out(struct rc_requester *q, uint64_t now)
{
	q->timeouts++;
	q->probing = false;
	if (!q->retries) {
		req_fail(q, q->head, IBV_WC_RETRY_EXC_ERR);
		req_settle(q, now);
		return;
	}
	q->retries--;
	q->progress = q->asked = now;
	q->expired = 0;
	window_lost(&q->window);
	req_go_back(q, q->una, now);
}

static void probe(struct rc_requester *q, uint64_t now)
{
	q->probes++;
	q->expired++;
	q->asked = now;
	q->probing = true;
	q->probe = q->una;
	q->probe_end = q->next;
	q->timed_at = 0;
	req_resend_oldest(q, now);
}

void rc_req_expire(struct rc_requester *q, uint64_t now)
{
	uint64_t deadline = rc_req_deadline(q);

	if (!deadline || now < deadline)
		return;
	if (q->rnr_until) {
		q->rnr_until = 0;
		req_go_back(q, q->rnr_psn, now);
		q->progress = q->asked = now;
		return;
	}
	if (q->conf.timeout && now - q->progress >= q->conf.timeout)
		timed_out(q, now);
	else if (q->una != q->next)
		probe(q, now);
	else /* there was no room to send anything again */
		q->asked = now;
}
