// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/fence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"
#include "scif.h"
#include "scif/link/link.h"
#include "scif/link/wait.h"

/*
 * A mark is the number of a request, without its high bits.  A number is of the side whose copies
 * were marked.
 */
enum { NUMBER_MASK = 0x1fffffff, MARK_SELF = 0x20000000, MARK_PEER = 0x40000000, WORD = 8 };

static bool one_side(int flags)
{
	int side = flags & (SCIF_FENCE_INIT_SELF | SCIF_FENCE_INIT_PEER);

	return side == SCIF_FENCE_INIT_SELF || side == SCIF_FENCE_INIT_PEER;
}

int fence_mark(struct scif_ep *ep, int flags, int *mark)
{
	struct link *l = &ep->link;
	uint64_t number;
	int ret;

	if (!mark || !one_side(flags) || (flags & ~(SCIF_FENCE_INIT_SELF | SCIF_FENCE_INIT_PEER))) {
		check_why(mark ? "flags must be one of SCIF_FENCE_INIT_SELF and _PEER"
			       : "mark is NULL");
		return -EINVAL;
	}
	lock_take(&ep->lock);
	link_poll(ep);
	ret = ep_connected(ep);
	if (!ret && flags == SCIF_FENCE_INIT_SELF) {
		l->marks_self = l->rma_last + 1;
		*mark = MARK_SELF | (int)(l->rma_last & NUMBER_MASK);
	} else if (!ret) {
		ret = link_ask(ep, WIRE_MARK, NULL, 0, &number, 1);
		if (!ret && number + 1 > l->marks_peer)
			l->marks_peer = number + 1;
		if (!ret)
			*mark = MARK_PEER | (int)(number & NUMBER_MASK);
	}
	link_ready(ep);
	lock_drop(&ep->lock);
	return ret;
}

/* The number that a mark stands for, given the end of the last one that was marked. */
static int number_of(int mark, uint64_t marks, uint64_t *number)
{
	uint64_t last = marks - 1, n;

	check_why("no mark that scif_fence_mark() gave on this endpoint");

	if (!marks)
		return -EINVAL;
	n = (last & ~(uint64_t)NUMBER_MASK) | (mark & NUMBER_MASK);
	if (n > last) {
		if (n <= NUMBER_MASK)
			return -EINVAL;
		n -= NUMBER_MASK + UINT64_C(1);
	}
	*number = n;
	return 0;
}

static int wait_self(struct scif_ep *ep, uint64_t number)
{
	uint64_t spin = 0;

	while (ep->state == EP_CONNECTED && ep->link.sq_done < number)
		ep_wait(ep, &spin, 0);
	if (ep->link.sq_done < number)
		return -ECONNRESET;
	check_fenced(ep, number);
	return 0;
}

int fence_wait(struct scif_ep *ep, int mark)
{
	struct link *l = &ep->link;
	uint64_t number, answer;
	int side = mark & ~NUMBER_MASK, ret;

	lock_take(&ep->lock);
	link_poll(ep);
	ret = ep_connected(ep);
	if (!ret && side != MARK_SELF && side != MARK_PEER)
		ret = -EINVAL;
	if (!ret)
		ret = number_of(mark, side == MARK_SELF ? l->marks_self : l->marks_peer, &number);
	if (!ret)
		check_begin();
	if (!ret && side == MARK_SELF)
		ret = wait_self(ep, number);
	else if (!ret)
		ret = link_ask(ep, WIRE_WAIT, &number, 1, &answer, 1);
	link_ready(ep);
	lock_drop(&ep->lock);
	return ret;
}

/* ---- signals ---- */

/* Stores n bytes; not by a plain store where the program may have unmapped the place. */
static void store(uint8_t *to, const void *from, size_t n, bool kept)
{
	struct iovec l = {(void *)from, n}, r = {to, n};

	if (!kept &&
		(process_vm_writev(getpid(), &l, 1, &r, 1, 0) == (ssize_t)n || errno == EFAULT))
		return;
	if (n == WORD)
		foreign_store64((uint64_t *)to, *(const uint64_t *)from);
	else
		foreign_store32((uint32_t *)to, *(const uint32_t *)from);
}

void fence_store(struct scif_ep *ep, uint64_t off, uint64_t val)
{
	int err = errno;

	for (unsigned at = 0, n = off % WORD ? WORD / 2 : WORD; at < WORD; at += n) {
		struct window *w = windows_holding(&ep->own, off + at);

		if (w)
			store(w->hold->at + (off + at - w->off), (uint8_t *)&val + at, n,
				hold_kept(w->hold));
	}
	errno = err;
}

static int post_remote(struct scif_ep *ep, uint64_t off, uint64_t val)
{
	unsigned n = off % WORD ? WORD / 2 : WORD;

	for (unsigned at = 0; at < WORD; at += n) {
		const struct window *w = windows_holding(&ep->theirs, off + at);
		struct ibv_sge sge = {.addr = (uintptr_t)&val + at, .length = n};
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IBV_SEND_INLINE | IBV_SEND_FENCE};
		int64_t number;

		wr.wr.rdma.remote_addr = off + at;
		wr.wr.rdma.rkey = w->rkey;
		number = link_post(ep, &wr);
		if (number < 0)
			return number;
	}
	return 0;
}

struct signal {
	int64_t loff;
	uint64_t lval;
	int64_t roff;
	uint64_t rval;
	int flags; /* SCIF_SIGNAL_* */
};

static int check_signal(struct scif_ep *ep, const struct signal *s)
{
	int ret = 0;

	if (s->flags & SCIF_SIGNAL_LOCAL)
		ret = windows_check(&ep->own, s->loff, WORD, SCIF_PROT_WRITE);
	if (!ret && (s->flags & SCIF_SIGNAL_REMOTE))
		ret = windows_check(&ep->theirs, s->roff, WORD, SCIF_PROT_WRITE);
	return ret;
}

static struct after *after_signal(const struct signal *s, uint64_t wr, bool local)
{
	struct after *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->wr = wr;
	a->local = a->store = local;
	a->remote = !local;
	a->loff = s->loff;
	a->roff = s->roff;
	a->lat_len = a->rat_len = WORD;
	a->lval = s->lval;
	return a;
}

/* Signals when our own copies are complete. */
static int signal_self(struct scif_ep *ep, const struct signal *s)
{
	struct after *local = NULL, *remote = NULL;
	int ret = check_signal(ep, s);

	if (ret)
		return ret;
	check_fenced(ep, ep->link.rma_last);
	if (s->flags & SCIF_SIGNAL_LOCAL)
		local = after_signal(s, ep->link.rma_last, true);
	if (s->flags & SCIF_SIGNAL_REMOTE)
		remote = after_signal(s, 0, false);
	if ((!local && (s->flags & SCIF_SIGNAL_LOCAL)) ||
		(!remote && (s->flags & SCIF_SIGNAL_REMOTE)))
		ret = -ENOMEM;
	if (!ret && remote)
		ret = post_remote(ep, s->roff, s->rval);
	if (ret) {
		free(local);
		free(remote);
		return ret;
	}
	if (remote) {
		windows_ref(&ep->theirs, s->roff, WORD, 1);
		remote->wr = ep->link.sq_posted;
		link_after(ep, remote);
	}
	if (local) {
		windows_ref(&ep->own, s->loff, WORD, 1);
		link_after(ep, local);
	}
	return 0;
}

/* Has the peer signal when its copies are complete: what is local to us is remote to it. */
static int signal_peer(struct scif_ep *ep, const struct signal *s)
{
	uint64_t flags = (s->flags & SCIF_SIGNAL_LOCAL ? SCIF_SIGNAL_REMOTE : 0) |
			 (s->flags & SCIF_SIGNAL_REMOTE ? SCIF_SIGNAL_LOCAL : 0);
	const uint64_t arg[5] = {s->roff, s->rval, s->loff, s->lval, flags};
	uint64_t answer, spin = 0;
	int ret = check_signal(ep, s);

	while (!ret) {
		ret = link_ask(ep, WIRE_SIGNAL, arg, 5, &answer, 1);
		if (ret || answer != EAGAIN)
			break;
		ep_wait(ep, &spin, 0);
	}
	if (ret || !answer)
		return ret;
	return answer == EACCES || answer == ENOMEM ? -(int)answer : -ENXIO;
}

int fence_signal(
	struct scif_ep *ep, int64_t loff, uint64_t lval, int64_t roff, uint64_t rval, int flags)
{
	struct signal s = {
		loff, lval, roff, rval, flags & (SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE)};
	uint64_t spin = 0;
	int ret;

	if (!one_side(flags) || !s.flags ||
		(flags & ~(SCIF_FENCE_INIT_SELF | SCIF_FENCE_INIT_PEER | s.flags)) ||
		((s.flags & SCIF_SIGNAL_LOCAL) && loff % 4) ||
		((s.flags & SCIF_SIGNAL_REMOTE) && roff % 4)) {
		check_why("flags must be one of SCIF_FENCE_INIT_SELF and _PEER with "
			  "SCIF_SIGNAL_LOCAL, _REMOTE or both, and offsets multiples of 4");
		return -EINVAL;
	}
	lock_take(&ep->lock);
	link_poll(ep);
	while (ep->state == EP_CONNECTED && !link_has_room(ep))
		ep_wait(ep, &spin, 0);
	ret = ep_connected(ep);
	if (!ret && (flags & SCIF_FENCE_INIT_SELF))
		ret = signal_self(ep, &s);
	else if (!ret)
		ret = signal_peer(ep, &s);
	link_ready(ep);
	lock_drop(&ep->lock);
	return ret;
}

/* ---- what the peer asks ---- */

static int asked_wait(struct scif_ep *ep, const struct wire_ctl *c)
{
	struct after *a;

	if (c->arg[0] > ep->link.rma_last || ep->link.answers >= MAX_ANSWERS)
		return -EPROTO;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->wr = c->arg[0];
	a->answer = true;
	a->id = c->id;
	ep->link.answers++;
	link_after(ep, a);
	return 0;
}

static uint64_t asked_signal(struct scif_ep *ep, const struct wire_ctl *c)
{
	const struct signal s = {c->arg[0], c->arg[1], c->arg[2], c->arg[3], c->arg[4]};

	if ((s.flags & ~(SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE)) || s.loff % 4 || s.roff % 4)
		return EINVAL;
	if (!link_has_room(ep))
		return EAGAIN;
	return -signal_self(ep, &s);
}

int fence_asked(struct scif_ep *ep, const struct wire_ctl *ctl)
{
	uint64_t answer;

	switch (ctl->op) {
	case WIRE_MARK:
		return link_say(ep, WIRE_MARK_ACK, ctl->id, &ep->link.rma_last, 1);
	case WIRE_WAIT:
		return asked_wait(ep, ctl);
	case WIRE_SIGNAL:
		answer = asked_signal(ep, ctl);
		check_begin(); /* the call that we are in does not fail by this */
		return link_say(ep, WIRE_SIGNAL_ACK, ctl->id, &answer, 1);
	}
	return -EPROTO;
}
