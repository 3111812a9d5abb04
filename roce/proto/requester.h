/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester of an RC or UC queue pair on the wire: which packets it sends for the entries of
 * its send queue, what acknowledgements, responses and the time that passes make of them
 * (InfiniBand Architecture, volume 1, 9.7.2 and 9.7.5; RoCEv2).  It knows no socket, memory or
 * clock: a caller gives it all three, one call at a time.
 *
 *   entries   head ........ tail          each has its PSNs once its first packet was sent
 *   PSNs      una .. acked .. next .. end  una: the oldest that nothing answers yet
 *
 * The send queue itself is what is sent again: a lost packet is made anew from its entry.
 */
#pragma once

#include <infiniband/verbs.h>

#include "roce/proto/reads.h"
#include "roce/proto/window.h"
#include "wire/roce.h"

/* What an entry of a send queue asks of the other end. */
struct rc_request {
	uint8_t act; /* enum roce_act: SEND, WRITE, READ, an atomic, FLUSH or ATOMIC_WRITE */
	bool has_imm, has_inv, solicited, fence;
	uint32_t imm; /* or the rkey to invalidate */
	uint32_t rkey;
	uint32_t flush; /* FETH */
	uint64_t va;
	uint64_t length; /* bytes */
	uint64_t swap_add, compare;
};

struct rc_req_ops {
	/* The entry of that number; false: it is not posted yet.  Asked for in order, once each. */
	bool (*request)(void *arg, uint32_t entry, struct rc_request *r);
	/*
	 * Sends a packet: these headers, and len bytes at `offset` of the entry's data.  False: no
	 * room now; the caller of the requester runs it again once there is.
	 */
	bool (*send)(void *arg, const struct roce_packet *head, uint32_t entry, uint64_t offset,
		size_t len);
	/*
	 * Data of a READ's response, or the old value of an atomic (8 bytes, host order).  0; 1:
	 * not now, as if it had been lost; negative: the memory is not there.
	 */
	int (*place)(void *arg, uint32_t entry, uint64_t offset, const void *bytes, size_t len);
	/* Entries end in order; after one in error none follows. */
	void (*complete)(void *arg, uint32_t entry, enum ibv_wc_status status);
};

struct rc_req_config {
	bool unreliable; /* UC */
	uint32_t mtu;
	uint32_t dest_qpn;
	uint32_t psn;       /* the first */
	uint64_t timeout;   /* of the queue pair, ns; 0: for ever */
	uint8_t retry_cnt;  /* expiries of that timeout */
	uint8_t rnr_retry;  /* 7: for ever */
	uint32_t entries;   /* of the send queue, a power of 2 */
	uint32_t max_reads; /* READs and atomics under way */
};

struct rc_entry {
	struct rc_request r;
	uint32_t psn;     /* its first */
	uint32_t packets; /* its PSNs */
};

struct rc_requester {
	const struct rc_req_ops *ops;
	void *arg;
	struct rc_req_config conf;
	struct rc_entry *entries; /* a ring */
	struct rc_reads reads;
	struct rc_window window;
	uint32_t head, tail; /* entries: the oldest that has not ended; the next without PSNs */
	uint32_t at;         /* the entry of `next` */
	uint32_t una, acked, next, end;
	uint32_t sent;          /* one beyond the last that was ever sent */
	uint32_t recover;       /* losses below it have made the window smaller already */
	uint32_t missed;        /* ... so often */
	uint32_t since_ack_req; /* packets */
	uint32_t probe;         /* while probing: what was sent again, */
	uint32_t probe_end;     /* ... and what had been sent before */
	bool unsent;            /* there was no room for that packet: rc_req_run() sends it */
	bool went_back; /* for a NAK; nothing tells yet whether the other end kept what followed */
	bool other_is_weft;    /* what is sent again is marked, and answers come in any order */
	bool other_keeps;      /* it keeps what comes ahead: only what is missing is sent again */
	uint32_t filled, fill; /* one beyond what was; how many packets at once */
	bool probing, dead, failing;
	uint32_t fail_at; /* while failing: the entry that ends in error once it is the oldest */
	enum ibv_wc_status fail_status;
	uint8_t retries, rnr_tries; /* left */
	uint32_t rnr_psn;           /* where it goes on */
	uint64_t rnr_until;         /* 0: not waiting */
	uint64_t asked;             /* when the timer was started; 0: nothing is under way */
	uint64_t progress;          /* when something was answered last */
	unsigned expired;           /* probes since then */
	uint32_t timed_psn;         /* a packet whose round trip is measured */
	uint64_t timed_at;          /* 0: none is */
	/* counters */
	uint64_t resent, probes, nak_psn, rnr_naks, timeouts, ignored;
};

/* -ENOMEM, or -EINVAL for a config without entries or MTU. */
int rc_req_start(
	struct rc_requester *, const struct rc_req_config *, const struct rc_req_ops *, void *arg);

void rc_req_end(struct rc_requester *);

/*
 * Sends what may be sent; to be called after a post, an answer, a deadline (rc_req_expire()), or
 * new room.
 */
void rc_req_run(struct rc_requester *, uint64_t now);

/* Is the answer to such a request data, or a response without any? */
static inline bool req_answered_by_data(uint8_t act)
{
	return act != ROCE_SEND && act != ROCE_WRITE;
}

static inline struct rc_entry *req_entry(struct rc_requester *q, uint32_t number)
{
	return &q->entries[number & (q->conf.entries - 1)];
}

/* One beyond the last PSN of an entry. */
static inline uint32_t entry_end(const struct rc_entry *e)
{
	return roce_psn_add(e->psn, e->packets);
}

/* The entry of a PSN that is under way or was: of head to tail. */
uint32_t req_entry_of(struct rc_requester *, uint32_t psn);

/*
 * Asks again for what is missing of packets from..end-1 of a READ, each run of them by itself.
 * False: nothing is.
 */
bool req_ask_missing(
	struct rc_requester *, struct rc_read *, uint32_t from, uint32_t end, uint64_t now);

/*
 * Sends the oldest packet that nothing answers once more, alone; if there is no room, rc_req_run()
 * does.
 */
void req_resend_oldest(struct rc_requester *, uint64_t now);

/*
 * Sends what is missing at that PSN alone, where the other end keeps what follows.  False: all from
 * there on has to be sent anew.
 */
bool req_fill(struct rc_requester *, uint32_t psn);

/* All from that PSN on will be sent anew; what has come of a read stays. */
void req_go_back(struct rc_requester *, uint32_t psn, uint64_t now);
