/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams that leave this host, and those that come: a room above, which registers itself,
 * carries them.  Without one, other hosts are not reached, and groups are those of this host.
 */
#pragma once

#include <sys/uio.h>

#include "hca/exec/exec.h"
#include "hca/obj/qp.h"

/* What leaves: what its headers say, and where its payload is. */
struct leaving {
	struct hca_qp *from;
	uint32_t src_qpn, dest_qpn, qkey, psn;
	uint32_t imm; /* big endian */
	bool has_imm, solicited;
	uint32_t length;
	const struct iovec *piece;
	unsigned n_pieces;
};

struct datagram_ops {
	bool beside; /* it also carries to other fabrics on this host: seg_path.beside */
	/*
	 * Sends it along path, which the route() of the same far_ops has filled.  The payload is
	 * needed no more when this returns.  0: it is gone, or lost and counted, as on a wire;
	 * -EAGAIN: there is no room now.  Any thread; must not block.
	 */
	int (*send)(struct exec *x, const struct seg_path *path, const struct leaving *d);
	/*
	 * QP qp, of type UD, goes to RTR, or takes no datagrams any more: it goes to RESET, or
	 * away. Under its modify_lock; may wait for weftd.
	 */
	void (*listen)(struct hca_qp *qp, bool takes);
	/* A QP of this process has joined a multicast group, or left it; may wait for weftd. */
	void (*join)(const uint8_t mgid[16], bool joins);
};

/*
 * Who carries datagrams along path, which goes to another host or to a group; fills it as
 * far_route() does.  NULL: nobody.  Does not block.
 */
const struct datagram_ops *far_datagram_route(struct seg_path *path);

/* Who carries datagrams to other fabrics on this host, along a path of this host that is beside. */
const struct datagram_ops *far_datagram_beside(void);

/* Each of those that carry datagrams is told, as by the op of that name. */
void far_datagram_listen(struct hca_qp *qp, bool takes);
void far_datagram_join(const uint8_t mgid[16], bool joins);
