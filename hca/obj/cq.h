/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and queues of this process. */
#pragma once

#include "base/lock.h"
#include "base/own_fd.h"
#include "hca/obj/lookout.h"
#include "hca/seg/view.h"

struct hca_channel {
	uint32_t epoch;
	uint32_t id;
	int fd;
	struct own_fd own; /* fd: a face's program may have closed it */
	struct lookout lookout;
	struct lock lock; /* of all that follows, and of taking events */
	struct fired_ref order;
	struct fired_reader reader;
	struct hca_cq *cqs;
	struct hca_cq *next_up; /* where to look first when all are looked at */
	struct hca_cq *last;    /* whose event was given out last */
};

/* Tickets taken out of the ring early, as a QP went away or another ring came; before those in the
 * ring. */
struct ticket_run {
	uint64_t *t;
	uint32_t n, at;
	_Atomic uint32_t left; /* n - at, for a look without the lock */
};

/* Where the ring has solicited completions: all before looked were looked at, last is that + 1. */
struct cq_marks {
	uint64_t looked, last;
};

struct hca_cq {
	struct lock lock; /* the consumer side */
	uint32_t epoch;
	uint32_t index;
	bool stamps; /* completions carry their time */
	bool ignores_overrun;
	_Atomic bool explained; /* that it is lost */
	struct seg_cq *s;
	/* The ring in use; written by resize_cq under the lock, read by a look without it. */
	_Atomic uint64_t *_Atomic slots;
	_Atomic uint32_t log_size;
	struct ticket_ring *ring;
	_Atomic uint64_t head;
	_Atomic uint32_t idle_polls;
	struct ticket_run early;
	struct cq_marks solicited;
	uint64_t ring_bytes;
	void *cookie;
	_Atomic uint32_t users;
	_Atomic uint32_t far_qps; /* for which a program that waits must look: far_count() */
	struct hca_channel *channel;
	struct hca_cq *next;  /* on the channel */
	struct hca_cq **link; /* what points to us, NULL: on none */
	uint32_t fired_seen;  /* of seg_cq.fired: events that the program got, or lost */
	_Atomic bool armed;   /* once at least: events of it may come */
	/* Position + 1 of the only completion that waited when the program took the last event. */
	_Atomic uint64_t told_alone;
};
