/* SPDX-License-Identifier: BSD-3-Clause */
/* One run of the kill storm: the table that its processes share, and what each of them does. */
#pragma once

#include <stdatomic.h>

#include "agent.h"

enum { STORM_MAX = 4, STORM_TEXT = 120 };

enum storm_state {
	STORM_BORN,
	STORM_PUBLISHED, /* its QPs exist, addr is filled in */
	STORM_CONNECTED,
	STORM_STOPPED, /* posts no more requests */
	STORM_QUIET,   /* its requests have all ended, sent and added are filled in */
	STORM_PAIR,    /* new QPs exist, pair is filled in */
	STORM_PAIRED,  /* and are connected */
	STORM_DONE,
};

/* A process of the run. */
struct storm_slot {
	_Atomic int state; /* enum storm_state */
	_Atomic int pid;
	struct agent_addr addr[STORM_MAX]; /* its QP for each other one */
	struct agent_addr pair[2];         /* new ones: to the next survivor, from the one before */
	uint32_t sent[STORM_MAX];          /* SENDs posted to each */
	uint64_t added[STORM_MAX];         /* fetch-and-adds posted to each */
	char text[STORM_TEXT];             /* what went wrong */
};

struct storm_run {
	unsigned n;
	uint64_t seed;
	_Atomic int dead; /* number of the killed one, -1: nobody */
	bool kills_weftd;
	_Atomic int stop; /* no new requests; dead is final */
	struct storm_slot slot[STORM_MAX];
};

/*
 * The life of process me; polls: how it waits.  Where weftd will be killed, sleepers sleep inside
 * the library: nobody tells one that sleeps in its own poll(2).  The exit status: 0, or 1 with
 * slot.text.
 */
int storm_live(struct storm_run *r, unsigned me, bool polls);
