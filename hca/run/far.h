/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The far end of a QP of ours: where it is, and who carries requests there.  One implementation is
 * for ends on this machine (hca/run/near.h); rooms above register others.  A QP has near's from its
 * creation, and on its way to RTR that of the first which says that the QP's path leads to it.
 * Nothing outside of an implementation asks which one it is.
 */
#pragma once

#include "hca/exec/exec.h"
#include "hca/obj/qp.h"

struct pollfd;
struct worker;

struct far_ops {
	const char *name; /* for the log */
	/*
	 * Does path, whose destination is not of this host, lead to where this one reaches?  Fills
	 * its interface, which is not 0, udp_source and mtu.  As far_route(); must not block.
	 */
	int (*route)(struct seg_path *path);
	/*
	 * Is qp, whose path and attributes of RTR stand in its entry, one that this one serves?
	 * path.beside: its number is of another fabric on this host.  Asked under qp's
	 * modify_lock; must not block.
	 */
	bool (*reaches)(const struct hca_qp *qp);
	/*
	 * qp, still in INIT, goes to RTR: finds the other end, or what there is to find before
	 * requests come, for 60 ms at most.  False: look() will be called.  Under modify_lock.
	 */
	bool (*find)(struct hca_qp *qp);
	/* Requests were posted to qp, in whatever state it is.  Not under modify_lock. */
	void (*posted)(struct hca_qp *qp);
	/* Runs our direction, or the one towards us, as far as it goes now.  Any thread. */
	void (*run_out)(struct hca_qp *qp);
	void (*run_in)(struct hca_qp *qp);
	/*
	 * A worker runs what was left to it by worker_add(), without a limit; direction is WORK_OUT
	 * or WORK_IN.  RUN_BUSY, RUN_BUDGET: it is to be tried again.
	 */
	enum run_end (*work)(struct exec *x, struct hca_qp *qp, unsigned direction);
	/*
	 * The worker for qp alone or for who shares its other end, beside the common one; now: only
	 * if the common one must not run qp.  NULL: none.  The op may be NULL, too.
	 */
	struct worker *(*lane)(const struct hca_qp *qp, bool now);
	/* After progress_watch(), every ms at most: true if it still has to be watched. */
	bool (*look)(struct hca_qp *qp);
	/*
	 * qp goes to ERR: what has come for it by now is served first, such as the answers to its
	 * requests.  NULL: nothing waits anywhere.  Under modify_lock; must not block.
	 */
	void (*take_in)(struct hca_qp *qp);
	/*
	 * qp takes no requests any more, and sends none: it is in ERR or RESET, or is no more.  Who
	 * waits for it elsewhere is told.
	 */
	void (*stop)(struct hca_qp *qp);
	/*
	 * No thread runs qp any more, which goes to RESET or away: lets go of what find() and all
	 * others took.  live false: in a forked child, where that is known to the parent alone.
	 */
	void (*forget)(struct hca_qp *qp, bool live);
	/* As hca_qp_rkey_access(), of a connected qp.  NULL: -EOPNOTSUPP. */
	int (*rkey_access)(const struct hca_qp *qp, uint32_t rkey, unsigned *access);
	/* The PSNs of the packets that are sent and expected next; more than 24 bits. */
	void (*psn)(const struct hca_qp *qp, uint32_t *sent, uint32_t *expected);
	/*
	 * Is anything under way of qp, which is in SQD and begins nothing more?  tell: raises
	 * IBV_EVENT_SQ_DRAINED once nothing is any more.  NULL: never is.  Under modify_lock.
	 */
	bool (*draining)(struct hca_qp *qp, bool tell);
	/*
	 * The other end if it is a QP of this machine, for explanations; valid while the caller's
	 * exec slot names us.  NULL: it is none, or not known; the op may be NULL, too.
	 */
	const struct end *(*end)(const struct hca_qp *qp);
	/*
	 * A program polls a CQ of which far_count() was told, and found nothing, so many times in a
	 * row: what came is to be served.  True: that may have completed something.  Must not
	 * block. NULL: it needs nobody's look.
	 */
	bool (*look_in)(uint32_t times);
	/*
	 * A thread of the program is about to sleep for such a CQ: what is to wake it, too, at most
	 * room, how many.  Once it is awake, awake() is called for it.
	 */
	unsigned (*sleep_on)(struct pollfd *p, unsigned room);
	void (*awake)(void);
	/* In a forked child: what is under way is the parent's.  NULL: there is nothing. */
	void (*forked_child)(void);
	const struct datagram_ops *datagrams; /* hca/run/far_datagram.h; NULL: it carries none */
};

enum { FAR_MAX = 4 };

/*
 * Registers an implementation, which stays: QPs that go to RTR from now on may be its own.  Those
 * registered first are asked first.  0, or -ENOSPC: there are FAR_MAX.
 */
int far_register(const struct far_ops *ops);

/* The i-th that was registered; NULL: there are not so many. */
const struct far_ops *far_nth(unsigned i);

/*
 * Fills path, whose destination is not of this host, by who reaches that.  0; -EHOSTUNREACH: nobody
 * does; -EMFILE, -ENFILE, -ENOMEM: that cannot be known now.
 */
int far_route(struct seg_path *path);

/*
 * On the way to RTR, under modify_lock: who reaches the other end of qp, and has it find that: in
 * *found, as the op says.  An end on this host whose number is not of this fabric is looked for
 * beside it (path.beside); where nobody reaches it there, it stays unfound.  -EHOSTUNREACH: it is
 * not on this host, and who reaches that serves no such QP.
 */
int far_find(struct hca_qp *qp, bool *found);

/* So many QPs more, or fewer, are on qp's CQs whose programs are to look (look_in, sleep_on). */
void far_count(struct hca_qp *qp, int change);

/* Asks all of them, as the ops of these names. */
bool far_look_in(uint32_t times);
unsigned far_sleep_on(struct pollfd *p, unsigned room);
void far_awake(void);
void far_forked_child(void);

static inline const struct far_ops *far_of(const struct hca_qp *qp)
{
	return atomic_load_explicit(&qp->far, memory_order_acquire);
}

/* Each as the op of that name. */
static inline void far_posted(struct hca_qp *qp)
{
	far_of(qp)->posted(qp);
}

static inline void far_run_out(struct hca_qp *qp)
{
	far_of(qp)->run_out(qp);
}

static inline void far_run_in(struct hca_qp *qp)
{
	far_of(qp)->run_in(qp);
}

static inline void far_take_in(struct hca_qp *qp)
{
	const struct far_ops *far = far_of(qp);

	if (far->take_in)
		far->take_in(qp);
}

static inline struct worker *far_lane(const struct hca_qp *qp, bool now)
{
	const struct far_ops *far = far_of(qp);

	return far->lane ? far->lane(qp, now) : NULL;
}

static inline bool far_draining(struct hca_qp *qp, bool tell)
{
	const struct far_ops *far = far_of(qp);

	return far->draining && far->draining(qp, tell);
}

static inline const struct end *far_end(const struct hca_qp *qp)
{
	const struct far_ops *far = far_of(qp);

	return far->end ? far->end(qp) : NULL;
}
