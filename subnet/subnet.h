/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulated InfiniBand subnet: the nodes of a topology with their management agents (SMA, PMA),
 * and MADs that go from node to node by directed routes and forwarding tables.  One thread, no
 * I/O, nothing blocks: the owner has the clock and carries MADs to and from the programs on a port.
 * What one MAD causes (hops, the answer of an agent here) happens within the call that sends it.
 */
#pragma once

#include "fabric/tables.h"
#include "mad/addr.h"
#include "topo/topo.h"
#include "wire/mad.h"

struct subnet;

/* What a port's programs hear of; a mask. */
enum subnet_event {
	SUBNET_PORT_ACTIVE = 1 << 0,
	SUBNET_PORT_ERR = 1 << 1, /* it was active and is not any more */
	SUBNET_LID_CHANGE = 1 << 2,
	SUBNET_SM_CHANGE = 1 << 3,
	SUBNET_CLIENT_REREGISTER = 1 << 4,
	SUBNET_PKEY_CHANGE = 1 << 5,
	SUBNET_GID_CHANGE = 1 << 6,
};

/* Why a MAD went no further. */
enum subnet_drop {
	SUBNET_DROP_VERSION, /* of the base header */
	SUBNET_DROP_ROUTE,   /* a directed route that breaks a rule, or leads nowhere */
	SUBNET_DROP_LINK,    /* no link, or it is not active */
	SUBNET_DROP_LID,     /* no entry in a forwarding table, or not the LID of that port */
	SUBNET_DROP_LOOP,    /* back out of the port by which it came, or 64 hops */
	SUBNET_DROP_PKEY,
	SUBNET_DROP_VL, /* its SL has no VL there */
	SUBNET_DROP_MKEY,
	SUBNET_DROP_INJECTED, /* subnet_set_errors() */
	SUBNET_DROP_QP,       /* the node has no such queue pair */
	SUBNET_DROP_NO_AGENT, /* nobody took it */
	SUBNET_DROP_COUNT
};

/* What a subnet needs of its owner.  None of them may call subnet_send(). */
struct subnet_ops {
	/*
	 * A MAD for the programs on queue pair qp (0 or 1) of a port; of a switch it is port 0.
	 * False: there is none that wants it; a Get or Set is answered "unsupported" then.
	 */
	bool (*deliver)(void *arg, uint32_t node, uint8_t port, unsigned qp,
		const struct mad_addr *from, const uint8_t mad[MAD_SIZE]);
	/* Something has happened to a port: a mask of subnet_event.  May be NULL. */
	void (*event)(void *arg, uint32_t node, uint8_t port, unsigned events);
	uint64_t (*now)(void *arg); /* ns */
	void *arg;
};

/*
 * Makes a subnet, the links of t trained, ports in state INIT, LIDs as t asks for.  t is not needed
 * afterwards.  -ENOMEM; -EINVAL: t has a port that its other end does not have or does not know.
 */
int subnet_create(struct subnet **out, const struct topo *t, const struct subnet_ops *ops);
void subnet_free(struct subnet *s);

/* What forwarding reads; the subnet alone writes it. */
const struct tables *subnet_tables(const struct subnet *s);

/*
 * Another number than before: what Get tells of ports and nodes may have changed, by whatever way.
 * More than the epoch of the tables, which forwarding alone looks at: an SM's LID moves this one.
 */
uint64_t subnet_changes(const struct subnet *s);

/*
 * A program on queue pair qp of a port sends a MAD.  0, although it may be lost on its way;
 * -EINVAL: no such port or queue pair (of a switch port 0 alone has them), or a class that does not
 * belong on it; -ENODATA: no such P_Key index.
 */
int subnet_send(struct subnet *s, uint32_t node, uint8_t port, unsigned qp,
	const struct mad_addr *to, const uint8_t mad[MAD_SIZE]);

/*
 * Get or Set of an attribute of subnet management at a port, as if an SMP had reached it there; its
 * M_Key is not asked for.  mad is the request and becomes the response.  -EINVAL: no such port, or
 * not a Get or Set; whether the agent liked it says the response.
 */
int subnet_local_smp(struct subnet *s, uint32_t node, uint8_t port, uint8_t mad[MAD_SIZE]);

/* The same for performance management: a Get or Set at a node, by its port. */
int subnet_local_pma(struct subnet *s, uint32_t node, uint8_t port, uint8_t mad[MAD_SIZE]);

/* Resends traps that are due. */
void subnet_run(struct subnet *s);

/* When subnet_run() has something to do: 0 never. */
uint64_t subnet_next(const struct subnet *s);

/* The bit IsSM of a port: an SM has begun or ended there.  -EINVAL: no such port. */
int subnet_set_sm(struct subnet *s, uint32_t node, uint8_t port, bool on);

/* A datagram with the wrong Q_Key was dropped at a port: counts, trap 258.  -EINVAL: no such port.
 */
int subnet_bad_qkey(struct subnet *s, uint32_t node, uint8_t port, const struct mad_addr *from,
	uint32_t to_qpn);

/*
 * Something was wrong with the link of a port: trap is 129 (local link integrity), 130 (excessive
 * buffer overrun) or 131 (flow control watchdog); counts what belongs to it.  -EINVAL.
 */
int subnet_link_fault(struct subnet *s, uint32_t node, uint8_t port, unsigned trap);

/* SystemImageGUID of a node becomes that: trap 145.  -EINVAL: no such node. */
int subnet_set_system_guid(struct subnet *s, uint32_t node, uint64_t guid);

/*
 * From now on percent of the packets that a port sends or receives are lost, and count as
 * PortRcvErrors; attr: only MADs of that attribute, 0: all.  -EINVAL.
 */
int subnet_set_errors(
	struct subnet *s, uint32_t node, uint8_t port, unsigned percent, uint16_t attr);

/* How many MADs were dropped for that reason, and its name, for weft status. */
uint64_t subnet_drops(const struct subnet *s, enum subnet_drop why);
const char *subnet_drop_name(enum subnet_drop why);

/*
 * Cables.  Unlink pulls a port's cable, which stays where it was until something else is wired;
 * relink plugs it in again; link wires two ports that have no cable plugged.  -EINVAL: no such
 * port, or a port with itself; -ENOTCONN: nothing is plugged there (unlink), or was (relink);
 * -EBUSY: one of the ends has a cable plugged.
 */
int subnet_unlink(struct subnet *s, uint32_t node, uint8_t port);
int subnet_relink(struct subnet *s, uint32_t node, uint8_t port);
int subnet_link(struct subnet *s, uint32_t a, uint8_t a_port, uint32_t b, uint8_t b_port);

/* Where the cable that is plugged at a port leads.  -EINVAL: no such port; -ENOTCONN: none is. */
int subnet_cable(
	const struct subnet *s, uint32_t node, uint8_t port, uint32_t *peer, uint8_t *peer_port);

/* Does another node have that GUID; or, if port is not 0, another port of an adapter?  Which node.
 */
bool subnet_guid_taken(
	const struct subnet *s, uint32_t node, uint8_t port, uint64_t guid, uint32_t *by);

/* The GUID of a port (of a switch: 0), or with port 0 the node's.  -EINVAL: no such port. */
int subnet_set_guid(struct subnet *s, uint32_t node, uint8_t port, uint64_t guid);

/*
 * A port becomes as it was made: its cable is pulled, and what an SM has set of PortInfo (its LID,
 * too), P_Keys, GUIDs and VL arbitration is forgotten.  Counters, and losses that were asked for,
 * stay.  -EINVAL: no such port.
 */
int subnet_clear(struct subnet *s, uint32_t node, uint8_t port);
