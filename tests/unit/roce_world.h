/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A requester and a responder on a wire that loses, repeats, delays and reorders packets, with a
 * clock of its own.  What is carried out is held against what was asked for; whatever is wrong
 * fails the test.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "roce/proto/answers.h"
#include "roce/proto/req_timer.h"
#include "roce/proto/requester.h"
#include "roce/proto/responder.h"

enum {
	ENTRIES = 16,
	REQUESTS = 60,
	BYTES_MAX = 40000,
	CONST_BYTES = 1 << 16, /* what READs read */
	WORDS = 8,
	MTU = 1024,
	FLYING = 4096,
	QPN_REQ = 0x11,
	QPN_RESP = 0x12,
	RKEY = 0x77,
	DROP_NONE = -1,
};

struct flight {
	uint64_t when, order;
	bool to_responder;
	size_t len;
	uint8_t bytes[ROCE_HEADERS_MAX + MTU + 8];
};

struct trouble {
	unsigned lost, twice, late; /* of 1000 packets */
	unsigned full;              /* of 1000 sends, the socket is full */
	unsigned no_receive;        /* of 1000 looks for a receive */
	unsigned in_vain;           /* so many looks for each receive find none */
	unsigned later;             /* of 1000 pieces, the memory is busy */
	long drop;                  /* that packet alone */
	long overtaken;             /* that packet comes behind some others; 0: none does */
	bool strangers;             /* neither knows that the other is Weft */
};

extern struct world {
	uint64_t now, run, seed, order;
	struct trouble trouble;
	long packets;
	struct rc_requester req;
	struct rc_responder resp;
	struct flight *flying[FLYING];
	size_t n_flying;
	struct rc_request requests[REQUESTS];
	uint32_t posted, ended;
	enum ibv_wc_status last;
	uint8_t *got[REQUESTS]; /* of READs and atomics */
	uint32_t placed;        /* packets of that */
	/* the responder's side */
	uint8_t fixed[CONST_BYTES];
	uint64_t words[WORDS], model_words[WORDS];
	uint8_t message[BYTES_MAX];
	uint32_t carried_out; /* SENDs, WRITEs that have ended, atomics, flushes */
	uint32_t arrived;     /* SENDs and WRITEs */
	uint32_t looks;       /* for receives, as far as they are counted */
	uint32_t fatal;
	enum resp_verdict refuse; /* what READs and WRITEs meet */
	bool gone;                /* the memory that READs are answered from */
} w;

/* By the seed of the world. */
uint32_t draw(uint32_t below);
bool chance(unsigned of_1000);

void begin_world(uint64_t seed, const struct trouble *trouble, bool unreliable);
void end_world(void);

struct rc_request random_request(bool unreliable);
void post(struct rc_request r);

/* A request packet comes to the responder. */
void take_request(const struct roce_packet *p, const uint8_t *bytes, size_t len);

/* What is under way never comes. */
void lose_all(void);

/* Time goes on to whatever comes next; false: nothing will. */
bool step(void);

/* Until all that was posted has ended, in that time. */
void run_all(uint64_t most_ns);

/* What READs and atomics brought, against the requests in their order. */
void check_results(void);
