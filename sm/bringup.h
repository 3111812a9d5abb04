/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Brings a subnet up: LIDs, ports, forwarding tables, in this order, then the ports become active.
 * Works in rounds, each of units of well under a millisecond.  The first round after
 * bringup_begin() writes all that is not as it should be; later ones look for what has changed.
 */
#pragma once

#include "sm/lids.h"
#include "sm/route.h"

enum bringup_work {
	BRINGUP_LEARN, /* LIDs that ports have */
	BRINGUP_KEEP,  /* LIDs that they had before */
	BRINGUP_ASKED, /* LIDs that the topology asks for */
	BRINGUP_GIVE,  /* LIDs for the rest */
	BRINGUP_PORTS, /* all but PortState ACTIVE */
	BRINGUP_SWITCHES,
	BRINGUP_COMPARE, /* links */
	BRINGUP_ROUTES,
	BRINGUP_ACTIVATE,
	BRINGUP_DONE,
};

struct bringup {
	struct subnet *s;
	const struct tables *t;
	struct lids *lids; /* the owner's */
	uint32_t *holder;  /* by LID: the port that has it, as struct tables numbers ports */
	uint8_t *lmc;      /* by port: what it is to have, which is what the topology asks for */
	struct route route;
	enum bringup_work work;
	uint32_t at;      /* the next port, or switch of the graph */
	uint64_t epoch;   /* of the tables when this round began */
	bool all;         /* the first round */
	bool reroute;     /* all LIDs in this round */
	uint32_t sm_port; /* the SM's own; 0: there is none */
	uint16_t top;     /* the last LID that was given */
	uint64_t acts;    /* what was done, for SMInfo */
};

/*
 * lids and s stay; nothing is begun.  LMCs that ports have now are those that they are to have.
 * -ENOMEM; bringup_free() in any case.
 */
int bringup_make(struct bringup *b, struct subnet *s, struct lids *lids);
void bringup_free(struct bringup *b);

/* Begins anew.  learn: LIDs that ports have stay, else those of b->lids come first. */
void bringup_begin(struct bringup *b, bool learn);

/* Whether there is something to do: work is left, or the tables have changed. */
bool bringup_due(const struct bringup *b);

/* Does one unit. */
void bringup_unit(struct bringup *b);

/* The first LID that a port of struct tables is to have; 0: none. */
uint16_t bringup_lid(const struct bringup *b, uint32_t port);
