/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the processes of the test know of each other beside RDMA: a page of memory in which the
 * two ends of a link meet, and the first failure is written down.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "words.h"

enum { BOARD_LINKS = 6, BOARD_TEXT = 4096, NOTE_LANES = 2, NOTE_POSTERS = 2, ROOMS = 8 };
enum { BOARD_PLAYERS = 3 };

/* What an end tells the other at each meeting. */
struct note {
	uint32_t qpn[NOTE_LANES], target[NOTE_LANES]; /* XRC: its other half */
	uint32_t srqn;                                /* XRC */
	union ibv_gid gid;
	uint32_t rkey;      /* of the region or window for the other end */
	uint32_t rkey_mute; /* of a region without any right */
	uint64_t base;      /* address of offset 0 under both */
	uint32_t words_rkey;
	uint64_t word[WORDS]; /* addresses of the words that all links have in common */
	uint32_t life;        /* of the process that has the words */
	bool last;            /* said by end 0: the link ends here */
};

/* Where the ends of a link meet; each life has one of its own, until some lives later. */
struct room {
	_Atomic uint32_t at[2]; /* meetings that each end has come to, of all lives */
	struct note note[2][2]; /* by end and parity of the meeting */
};

struct board_link {
	struct room room[ROOMS];
	_Atomic uint32_t epoch, round;
	_Atomic bool over; /* an end has come to its end */
	/* What each end is at, a literal: the processes are forked, and it is the same in all. */
	const char *_Atomic doing[2];
	/*
	 * Lives of the link: each time that a process of it is killed, the next begins.  dying is
	 * counted before the kill, dead when nothing of it is left.
	 */
	_Atomic uint32_t dying, dead;
	struct tally tally[2]; /* of what each end did to words of the other's process */
	_Atomic uint64_t seen[2][NOTE_LANES][NOTE_POSTERS]; /* messages, by the end that got them */
};

/* What goes on beside the links; each can be left out, to find out what a difference needs. */
enum disturber {
	DISTURB_REGIONS = 1,
	DISTURB_FORKS = 2,
	DISTURB_STOPS = 4,
	DISTURB_WEFTD = 8,
	DISTURB_KILLS = 16, /* of players */
	DISTURB_EXITS = 32, /* ... that have just seen a message */
};

struct board {
	uint32_t without;        /* enum disturber, or'ed */
	uint32_t apart;          /* bit i: the ends of link i are of two fabrics */
	_Atomic uint32_t stop;   /* time is up */
	_Atomic uint32_t failed; /* text[] is being written, or is */
	_Atomic uint32_t told;   /* ... is */
	_Atomic uint64_t requests, rounds, epochs, forks, kills, deaths, exits, lost;
	_Atomic uint64_t next_exit;
	_Atomic bool leaving[BOARD_PLAYERS]; /* being killed, or about to exit */
	char text[BOARD_TEXT];
	struct board_link link[BOARD_LINKS];
};

extern struct board *board;

/* Makes it; before the processes are forked. */
void board_make(void);
void board_clear(uint32_t without);

/* Writes down the failure, if it is the first.  printf style. */
void board_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, and ends the process. */
void board_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * Comes to the next meeting of that link with a note, and waits for the other end's, which it
 * writes to theirs.  Ends the process if the test has failed meanwhile.  False: the other end was
 * killed before it came.
 */
bool board_meet(
	unsigned link, unsigned end, uint32_t life, const struct note *mine, struct note *theirs);
/* The first meeting of that end in a life of the link is the next one. */
void board_enter(unsigned link, unsigned end, uint32_t life);
