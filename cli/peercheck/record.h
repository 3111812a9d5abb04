/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a scenario leaves for the process that started it: the calls that were made, in order, and
 * the first thing that was wrong.  It lies in memory that both share, so it is there after a crash.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "cli/peercheck/rules.h"

enum { RECORD_CALLS = 192, RECORD_TEXT = 160, RECORD_POINTS = 160 };

struct record_call {
	unsigned char thread, depth;
	char text[RECORD_TEXT];
};

struct record {
	_Atomic unsigned calls; /* beyond RECORD_CALLS counted alone */
	struct record_call call[RECORD_CALLS];
	_Atomic unsigned rule; /* broken; 0: none */
	char sign[64];         /* what was seen, short: the same in other scenarios is the same */
	char text[2 * RECORD_TEXT];
	char skipped[RECORD_TEXT]; /* why it did not run; "": it did */
	_Atomic bool finished;
	bool hung;
	bool error;        /* it is not the client's fault that it ended: text says why */
	char in[48];       /* the client's function that runs inside its callback; "": none */
	char client[96];   /* name and version of what registered */
	bool device_forks; /* what is left may be the device's */
	bool may_take;     /* a client registered with a callback */
	char loading[RECORD_TEXT]; /* the library that is just being loaded; "": none */
	bool kshim;                /* the client uses the shim */
	bool own_device;           /* the client's device is one that it brings */
	char letter; /* the generation that it was compiled for; 'W': it does not say */
	/* Of the probe: the points of a region's life, and how many calls in it can fail. */
	unsigned points, claimed, failing; /* claimed: the first point after acquire */
	char point[RECORD_POINTS][48];
};

/* The one of this process; the family that its scenario is of. */
void record_use(struct record *r, enum family family);
struct record *record_mine(void);
enum family record_family(void);

/* A call begins: its number.  What follows is made inside it, in this thread. */
unsigned record_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* That call ends; text is added to its line. */
void record_end(unsigned call, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Something happens that is not a call. */
void record_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * A rule is broken.  Only the first time counts: what comes later may follow from it.  sign: what
 * was seen, in a few words.
 */
void record_broken(unsigned rule, const char *sign, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As record_broken(), with the rule by family; in: the client's function, NULL: none. */
void record_seen(enum seen what, const char *in, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The client forks in there; more: what is known of the child, the longest of which is told. */
void record_fork(const char *in, const char *more);

/* The process cannot judge anything, and ends now; fmt: why, into text. */
void record_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The scenario cannot run with this client; fmt: why. */
void record_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
