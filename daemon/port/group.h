/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sockets on UDP port 4791: index by index, one for each IP family, in a SO_REUSEPORT group.
 * None goes while the port is open, since the last would take its index (roce/port/keeper.h): a
 * dead process's is given to the next one.
 */
#pragma once

#include "rdv/wire.h"
#include "roce/port/keeper.h"
#include "roce/port/lock.h"

/* One index of the group, and who has it. */
struct wire_seat {
	uint32_t index;
	int fd[WIRE_FAMILIES]; /* -1: this machine has not that family */
	uint32_t owner;        /* attach id, 0: none */
	bool left;             /* by a predecessor, and nobody has come for it */
};

struct wire_group {
	bool open;
	bool has[WIRE_FAMILIES];
	struct port_place place;
	int lock;  /* roce/port/lock.h; -1: none */
	int shown; /* says that it is ours; -errno: it could not be had */
	struct keeper keeper;
	struct wire_seat **seat; /* seat 0 is weftd's */
	uint32_t n, room;
};

/*
 * Opens the port at place: lock, keeper, and seat 0, to which all is steered.  -EADDRINUSE;
 * -EADDRNOTAVAIL: this machine has not that address; -EAFNOSUPPORT: no IP at all; -EMFILE.
 */
int wire_group_open(struct wire_group *g, const struct port_place *place);

/*
 * Takes up the group that lies in a predecessor's keeper, whose descriptors it takes over on
 * success.  Each seat but 0 is `left`.  -EPROTO: that is no keeper of such a group; -ESTALE: it is
 * at another place.
 */
int wire_group_adopt(
	struct wire_group *g, const struct keeper *keeper, const struct port_place *place);

/* Whether that is the keeper of this group. */
bool wire_group_is(const struct wire_group *g, const struct keeper *keeper);

/* How many descriptors it has, whoever has its seats: locks, keeper and sockets. */
int wire_group_fds(const struct wire_group *g);

/* Closes all.  Nobody may have a seat any more; what processes hold of it stays with them. */
void wire_group_close(struct wire_group *g);

/*
 * A seat that nobody has, emptied of what was sent to the dead; a new one if there is none.
 * -EMFILE, -ETOOMANYREFS: this user has too many descriptors; -ENOSPC: 65535 are taken.
 */
int wire_group_seat(struct wire_group *g, struct wire_seat **out);

/* Whether a process that lives has that seat and has not come yet. */
bool wire_seat_held(const struct wire_seat *seat);

/* Reads and forgets what lies in its sockets, within bounds. */
void wire_seat_drain(const struct wire_seat *seat);

/* Whether fd is an end of a SOCK_SEQPACKET pair, on which no call of ours can have side effects. */
bool wire_is_pair(int fd);
