/* SPDX-License-Identifier: BSD-3-Clause */
/* Faces as the fuzzer of their completions (face_storm.c) sees them: one connection at a time. */
#pragma once

#include "tests/lib/raw_end.h"

/* A request of the hostile end: wr's bytes are len of its memory's beginning. */
struct face_request {
	struct ibv_send_wr wr;
	uint32_t len;
};

/* What one request or one call is about is over when it returns, but where said. */
struct face_victim {
	const char *name;
	/* Makes a listener; the CM's port that it listens at. */
	uint16_t (*listen)(void);
	/* The private data that a true peer begins with; their length. */
	uint8_t (*hello)(const struct raw_end *r, uint8_t priv[RAW_PRIV]);
	/* Takes a connection, if one is asked for; true: it has one.  Called by another thread. */
	bool (*accept)(void);
	/* Both ends have one: learns what r may reach. */
	void (*meet)(struct raw_end *r);
	/* A request that the protocol has, its bytes put in place. */
	void (*message)(struct raw_end *r, struct face_request *q);
	/* An address that r may perhaps write to, in *q. */
	void (*aim)(struct face_request *q);
	/* q was done.  False: no true peer does that, and the connection has to end. */
	bool (*done)(const struct raw_end *r, const struct face_request *q);
	/* Takes what came, and checks that it is what was sent. */
	void (*look)(void);
	/* Has it ended, and says so as its manual has it? */
	bool (*over)(void);
	/* Closes the connection. */
	void (*close)(void);
	/* Closes the listener. */
	void (*end)(void);
};

extern const struct face_victim face_scif, face_rsock, face_ti, face_rpma;

/* A number below n, of the sequence that the seed begins. */
uint32_t face_draw(uint32_t n);
