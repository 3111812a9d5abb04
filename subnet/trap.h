/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traps to the master SM.  Each port has at most one of a number outstanding: it is sent again once
 * in each SubnetTimeOut until a TrapRepress comes; what happens meanwhile goes with the next one.
 * Without a LID, or an SM that it knows, a port tells nobody.
 */
#pragma once

#include "subnet/carry.h"
#include "wire/notice.h"

struct trap_slab;

/* Trap n->trap from a port that has a LID of its own; the rest of the head is filled in here. */
void trap_raise(struct subnet *s, uint32_t port, struct notice *n);

/* 128: a port of that switch went up or down; port: its port 0. */
void trap_link_state(struct subnet *s, uint32_t port);

/* 144: changes: a mask of notice_change; 0: it is CapabilityMask. */
void trap_local_change(struct subnet *s, uint32_t port, unsigned changes);

/* 256 to 259: what came with a key that is not right; 259 is of a switch's external port. */
void trap_bad_mkey(struct subnet *s, uint32_t port, const struct flight *f);
void trap_bad_pkey(struct subnet *s, uint32_t port, const struct flight *f);
void trap_switch_bad_pkey(struct subnet *s, uint32_t port, const struct flight *f);

/* A TrapRepress has come for a port. */
void trap_repress(struct subnet *s, uint32_t port, uint64_t tid, const uint8_t attr[NOTICE_SIZE]);

/* The notice that a port has told last and that was not repressed yet; all 0: there is none. */
void trap_latest(const struct subnet *s, uint32_t port, uint8_t attr[NOTICE_SIZE]);

/* Frees the memory of all traps. */
void traps_free(struct subnet *s);
