// SPDX-License-Identifier: BSD-3-Clause
#include "scif/win/rma.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "scif.h"
#include "scif/link/link.h"
#include "scif/link/wait.h"

enum {
	CHUNK = 1 << 20, /* the lock is given up between two */
	LINE = 64,
	PAGE = 4096,
	FEW_BYTES = 1 << 16,
	ALL_FLAGS = SCIF_RMA_USECPU | SCIF_RMA_USECACHE | SCIF_RMA_SYNC | SCIF_RMA_ORDERED,
};

/* How long SCIF_RMA_USECACHE takes memory for granted that was there. */
static const uint64_t CACHE_NS = 10 * (uint64_t)NSEC_PER_MSEC;

/* One copy under way. */
struct rma {
	const struct rma_args *args;
	struct ibv_mr *mr; /* of the caller's memory, for this copy alone */
	uint32_t lkey;     /* of the caller's memory */
	uint64_t done;
	uint64_t tail; /* where the last cache line of the source begins, from its start */
	int64_t last;  /* request */
};

/* Are all pages there, as they must be?  -EFAULT, -EINVAL: who knows. */
static int check_pages(uintptr_t from, uint64_t len, bool write)
{
	uintptr_t to = from + len;
	int err = errno, ret = 0;

	if (to < from)
		return -EFAULT;
	from &= -(uintptr_t)PAGE;
	if (madvise((void *)from, to - from, write ? MADV_POPULATE_READ : MADV_POPULATE_WRITE))
		ret = errno == ENOMEM || errno == EFAULT ? -EFAULT : -EINVAL;
	errno = err;
	return ret;
}

/* Of our windows, the pages of some are not held: has the program unmapped them? */
static int check_unheld(struct scif_ep *ep, uint64_t off, uint64_t len, bool write)
{
	uint64_t end = off + len;

	for (size_t i = windows_rank(&ep->own, off); off < end; i++) {
		const struct window *w = ep->own.list[i];
		uint64_t in = off - w->off, n = w->len - in < end - off ? w->len - in : end - off;

		if (!hold_kept(w->hold) &&
			check_pages((uintptr_t)w->hold->at + in, n, write) == -EFAULT) {
			check_why("pages of the window at %#llx are not mapped any more",
				(unsigned long long)w->off);
			return -ENXIO;
		}
		off += n;
	}
	return 0;
}

static int check(struct scif_ep *ep, const struct rma_args *a)
{
	int ret = ep_connected(ep);

	if (ret)
		return ret;
	if ((a->flags & ~ALL_FLAGS) || !a->len) {
		check_why(a->len ? "flags has unknown bits" : "len is 0");
		return -EINVAL;
	}
	if (!a->memory)
		ret = windows_check(
			&ep->own, a->loff, a->len, a->write ? SCIF_PROT_READ : SCIF_PROT_WRITE);
	if (!ret)
		ret = windows_check(
			&ep->theirs, a->roff, a->len, a->write ? SCIF_PROT_WRITE : SCIF_PROT_READ);
	if (!ret && !a->memory)
		ret = check_unheld(ep, a->loff, a->len, a->write);
	return ret;
}

/* The same where the program allows us to remember, for a moment, what was there. */
static int check_cached(struct link *l, const struct rma_args *a)
{
	uintptr_t from = (uintptr_t)a->addr, to = from + a->len;
	uint64_t now = clock_ns();
	int ret;

	for (int i = 0; i < CHECKED; i++) {
		const struct checked *c = &l->checked[i];

		if (now < c->until && from >= c->from && to <= c->to && from <= to &&
			(a->write || c->writable))
			return 0;
	}
	ret = check_pages(from, a->len, a->write);
	if (!ret)
		l->checked[l->next_checked++ % CHECKED] =
			(struct checked){from, to, now + CACHE_NS, !a->write};
	return ret;
}

/*
 * Memory that is no window.  Where the adapter takes all memory on demand there is nothing to
 * register, only to see that it is there; for much of it, registering is the faster way to.
 */
static int register_memory(struct scif_ep *ep, struct rma *r)
{
	const struct rma_args *a = r->args;
	int ret = -EINVAL;

	if (!a->memory)
		return 0;
	if (ep->link.all_mr && (a->flags & SCIF_RMA_USECACHE))
		ret = check_cached(&ep->link, a);
	else if (ep->link.all_mr && a->len <= FEW_BYTES)
		ret = check_pages((uintptr_t)a->addr, a->len, a->write);
	if (ret != -EINVAL) {
		r->lkey = ret ? 0 : ep->link.all_mr->lkey;
		return ret;
	}
	r->mr = ibv_reg_mr(ep->link.pd, a->addr, a->len, a->write ? 0 : IBV_ACCESS_LOCAL_WRITE);
	if (!r->mr)
		return errno == ENOMEM ? -ENOMEM : -EFAULT;
	r->lkey = r->mr->lkey;
	return 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The local side of what is to be copied next; how much of it is in one piece. */
static uint64_t local_piece(struct scif_ep *ep, const struct rma *r, struct ibv_sge *sge)
{
	const struct rma_args *a = r->args;
	uint64_t off = a->loff + r->done;
	const struct window *w;

	if (a->memory) {
		sge->addr = (uintptr_t)a->addr + r->done;
		sge->lkey = r->lkey;
		return a->len - r->done;
	}
	w = windows_holding(&ep->own, off);
	sge->addr = off; /* a window's addresses are its offsets */
	sge->lkey = w->mr->lkey;
	return w->off + w->len - off;
}

static int post_piece(struct scif_ep *ep, struct rma *r)
{
	const struct rma_args *a = r->args;
	uint64_t off = a->roff + r->done, n = smaller(a->len - r->done, CHUNK);
	const struct window *w = windows_holding(&ep->theirs, off);
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.opcode = a->write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
		.sg_list = &sge,
		.num_sge = 1};

	n = smaller(n, local_piece(ep, r, &sge));
	n = smaller(n, w->off + w->len - off);
	if (r->done < r->tail)
		n = smaller(n, r->tail - r->done);
	else if (r->tail)
		wr.send_flags = IBV_SEND_FENCE;
	sge.length = n;
	wr.wr.rdma.remote_addr = off;
	wr.wr.rdma.rkey = w->rkey;
	r->last = link_post(ep, &wr);
	if (r->last < 0)
		return r->last;
	ep->link.rma_last = r->last;
	r->done += n;
	/* Many bytes take as long as a program that is at work may be silent. */
	if (n >= FEW_BYTES)
		atomic_store_explicit(&ep->used, clock_ns(), memory_order_relaxed);
	return 0;
}

/* Posts it all, giving others a turn between pieces. */
static int post_all(struct scif_ep *ep, struct rma *r)
{
	uint64_t spin = 0;
	int ret = 0;

	while (!ret && r->done < r->args->len) {
		while (ep->state == EP_CONNECTED && !link_has_room(ep))
			ep_wait(ep, &spin, 0);
		ret = ep_connected(ep);
		if (!ret)
			ret = post_piece(ep, r);
		if (!ret && r->done < r->args->len && r->args->len > CHUNK) {
			lock_drop(&ep->lock);
			lock_take(&ep->lock);
			link_poll(ep);
		}
	}
	return ret;
}

static void set_tail(struct rma *r)
{
	const struct rma_args *a = r->args;
	uint64_t src = !a->write   ? (uint64_t)a->roff
		       : a->memory ? (uintptr_t)a->addr
				   : (uint64_t)a->loff;
	uint64_t line = (src + a->len - 1) & -(uint64_t)LINE;

	r->tail = (a->flags & SCIF_RMA_ORDERED) && line > src ? line - src : 0;
}

static int copy(struct scif_ep *ep, struct rma *r, struct after *after)
{
	const struct rma_args *a = r->args;
	uint64_t spin = 0;
	int ret;

	if (!a->memory)
		windows_ref(&ep->own, a->loff, a->len, 1);
	windows_ref(&ep->theirs, a->roff, a->len, 1);
	ret = post_all(ep, r);
	if (ret) {
		if (r->mr)
			ibv_dereg_mr(r->mr);
		free(after);
		return ret;
	}
	*after = (struct after){.wr = r->last,
		.mr = r->mr,
		.local = !a->memory,
		.remote = true,
		.loff = a->loff,
		.lat_len = a->len,
		.roff = a->roff,
		.rat_len = a->len};
	check_copied(ep, a, r->last);
	link_after(ep, after);
	link_poll(ep);
	while ((a->flags & SCIF_RMA_SYNC) && ep->state == EP_CONNECTED &&
		ep->link.sq_done < (uint64_t)r->last)
		ep_wait(ep, &spin, 0);
	if ((a->flags & SCIF_RMA_SYNC) && ep->link.sq_done < (uint64_t)r->last)
		return -ECONNRESET;
	return 0;
}

int rma_copy(struct scif_ep *ep, const struct rma_args *args)
{
	struct rma r = {.args = args};
	struct after *after;
	int ret;

	lock_take(&ep->lock);
	link_poll(ep);
	ret = check(ep, args);
	if (!ret)
		ret = register_memory(ep, &r);
	if (!ret) {
		after = malloc(sizeof(*after));
		set_tail(&r);
		if (after)
			ret = copy(ep, &r, after);
		else
			ret = -ENOMEM;
		if (!after && r.mr)
			ibv_dereg_mr(r.mr);
	}
	link_ready(ep);
	lock_drop(&ep->lock);
	return ret;
}
