// SPDX-License-Identifier: BSD-3-Clause
#include "roce/ack.h"

#include "base/clock.h"

enum {
	OWED_MAX = 4,                   /* messages */
	IDLE_NS = 5 * NSEC_PER_USEC,    /* while the program polls, and answers nothing */
	LATEST_NS = NSEC_PER_MSEC,      /* whatever it does */
	ANSWER_NS = 20 * NSEC_PER_USEC, /* a post so soon after a message is its answer */
	ANSWERS = 3,                    /* in a row make a program that answers */
	CREDIT_MAX = 8,                 /* so often in a row it may not, then */
};

static struct flow *owing;

void ack_note_post(struct flow *f, uint64_t now)
{
	if (f->replies)
		return;
	if (now - f->acked_alone > ANSWER_NS)
		return;
	f->acked_alone = 0;
	f->replies = ++f->replied >= ANSWERS;
}

bool ack_is_due(const struct flow *f, uint64_t now, bool rides)
{
	if (!f->resp.owed)
		return false;
	if (rides || !f->replies || f->resp.owed >= OWED_MAX)
		return true;
	return f->owed_since && now - f->owed_since >= IDLE_NS;
}

static void enlist(struct flow *f)
{
	if (f->owes)
		return;
	f->owes = true;
	f->owing = owing;
	owing = f;
}

static void left_alone(struct flow *f, uint64_t now)
{
	/* the message before was not answered, or this one is the first that was not */
	if (f->acked_alone || f->replies)
		f->replied = 0;
	f->acked_alone = now;
	f->replies = false;
}

void ack_note(struct flow *f, uint64_t now, bool left, bool rode)
{
	if (!left) {
		if (!f->owed_since)
			f->owed_since = now;
		enlist(f);
		return;
	}
	f->owed_since = 0;
	if (rode)
		f->credit += f->credit < CREDIT_MAX;
	else if (f->replies && f->credit)
		f->credit--;
	else
		left_alone(f, now);
}

uint64_t ack_deadline(const struct flow *f)
{
	return f->resp.owed && f->owed_since ? f->owed_since + LATEST_NS : 0;
}

void ack_idle(uint64_t now, void (*visit)(struct flow *f))
{
	struct flow **at = &owing;

	while (*at) {
		struct flow *f = *at;

		if (!f->resp.owed) {
			*at = f->owing;
			f->owes = false;
			continue;
		}
		if (ack_is_due(f, now, false))
			visit(f);
		at = &f->owing;
	}
}

void ack_forget(struct flow *f)
{
	struct flow **at = &owing;

	while (*at && *at != f)
		at = &(*at)->owing;
	if (*at)
		*at = f->owing;
	f->owes = false;
}

void ack_forked_child(void)
{
	owing = NULL;
}
