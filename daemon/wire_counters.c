// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/wire_counters.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "daemon/process.h"
#include "daemon/wire.h"
#include "fabric/sysfs.h"

/* Counters of processes that make up one file; the first that is 0 ends a list. */
struct sum {
	const char *file;
	uint8_t plus[6], minus[2];
	uint8_t own;   /* enum own: what weftd itself adds */
	uint8_t shift; /* counters/port_*_data are in words of 4 bytes */
};

enum own { OWN_NOTHING, OWN_SENT, OWN_CAME, OWN_SENT_BYTES, OWN_CAME_BYTES, OWN_LOST, OWN_SHORT };

/* clang-format off */
static const struct sum sums[] = {
	{"counters/port_xmit_packets", {CTR_WIRE_SENT}, .own = OWN_SENT},
	{"counters/port_rcv_packets", {CTR_WIRE_CAME}, {CTR_WIRE_HANDED_OVER}, .own = OWN_CAME},
	{"counters/unicast_xmit_packets", {CTR_WIRE_SENT}, {CTR_WIRE_MCAST_SENT}, .own = OWN_SENT},
	{"counters/unicast_rcv_packets", {CTR_WIRE_CAME},
		{CTR_WIRE_HANDED_OVER, CTR_WIRE_MCAST_CAME}, .own = OWN_CAME},
	{"counters/multicast_xmit_packets", {CTR_WIRE_MCAST_SENT}},
	{"counters/multicast_rcv_packets", {CTR_WIRE_MCAST_CAME}},
	{"counters/port_xmit_data", {CTR_WIRE_SENT_BYTES}, .own = OWN_SENT_BYTES, .shift = 2},
	{"counters/port_rcv_data", {CTR_WIRE_CAME_BYTES}, .own = OWN_CAME_BYTES, .shift = 2},
	{"counters/port_xmit_discards", {CTR_WIRE_NOT_SENT}},
	{"counters/port_rcv_errors", {CTR_WIRE_DROP_LENGTH, CTR_WIRE_DROP_VERSION,
		CTR_WIRE_DROP_OPCODE, CTR_WIRE_DROP_ICRC}, .own = OWN_SHORT},
	{"counters/excessive_buffer_overrun_errors", {CTR_WIRE_DROP_FULL}, .own = OWN_LOST},
	/* as rdma_rxe */
	{"hw_counters/sent_pkts", {CTR_WIRE_SENT}, .own = OWN_SENT},
	{"hw_counters/rcvd_pkts", {CTR_WIRE_CAME}, {CTR_WIRE_HANDED_OVER}, .own = OWN_CAME},
	{"hw_counters/duplicate_request", {CTR_WIRE_DUPLICATES}},
	{"hw_counters/out_of_seq_request", {CTR_WIRE_OUT_OF_SEQUENCE}},
	{"hw_counters/rcvd_rnr_err", {CTR_WIRE_RNR_NAKS}},
	{"hw_counters/send_rnr_err", {CTR_WIRE_RNR_SENT}},
	{"hw_counters/rcvd_seq_err", {CTR_WIRE_NAKS}},
	{"hw_counters/ack_deferred", {0}}, /* no work queue takes them later */
	{"hw_counters/retry_exceeded_err", {CTR_ERR_RETRY}},
	{"hw_counters/retry_rnr_exceeded_err", {CTR_ERR_RNR}},
	{"hw_counters/completer_retry_err", {CTR_WIRE_TIMEOUTS, CTR_WIRE_NAKS}},
	{"hw_counters/send_err", {CTR_WIRE_NOT_SENT}},
	/* as mlx5 */
	{"hw_counters/out_of_sequence", {CTR_WIRE_OUT_OF_SEQUENCE}},
	{"hw_counters/packet_seq_err", {CTR_WIRE_NAKS}},
	{"hw_counters/rnr_nak_retry_err", {CTR_WIRE_RNR_NAKS}},
	{"hw_counters/local_ack_timeout_err", {CTR_WIRE_TIMEOUTS}},
	{"hw_counters/out_of_buffer", {CTR_WIRE_RNR_SENT, CTR_DROP_NO_RECV}},
	{"hw_counters/rx_icrc_encapsulated", {CTR_WIRE_DROP_ICRC}},
	{"hw_counters/np_cnp_sent", {CTR_WIRE_CNPS_SENT}},
	{"hw_counters/rp_cnp_handled", {CTR_WIRE_CNPS_CAME}},
	/* by Weft's names, as in weft status */
	{"hw_counters/wire_resent", {CTR_WIRE_RESENT}},
	{"hw_counters/wire_probes", {CTR_WIRE_PROBES}},
	{"hw_counters/wire_full", {CTR_WIRE_FULL}},
	{"hw_counters/wire_too_long", {CTR_WIRE_TOO_LONG}},
	{"hw_counters/wire_drop_full", {CTR_WIRE_DROP_FULL}, .own = OWN_LOST},
	{"hw_counters/wire_drop_length", {CTR_WIRE_DROP_LENGTH}, .own = OWN_SHORT},
	{"hw_counters/wire_drop_version", {CTR_WIRE_DROP_VERSION}},
	{"hw_counters/wire_drop_opcode", {CTR_WIRE_DROP_OPCODE}},
	{"hw_counters/wire_drop_icrc", {CTR_WIRE_DROP_ICRC}},
	{"hw_counters/wire_drop_pkey", {CTR_WIRE_DROP_PKEY}},
	{"hw_counters/wire_drop_no_qp", {CTR_WIRE_DROP_NO_QP}},
	{"hw_counters/wire_drop_type", {CTR_WIRE_DROP_TYPE}},
	{"hw_counters/wire_drop_state", {CTR_WIRE_DROP_STATE}},
	{"hw_counters/wire_drop_address", {CTR_WIRE_DROP_ADDRESS}},
	{"hw_counters/wire_drop_busy", {CTR_WIRE_DROP_BUSY}},
	{"hw_counters/wire_drop_kept", {CTR_WIRE_DROP_KEPT}},
	{"hw_counters/wire_drop_user", {CTR_WIRE_DROP_USER}},
	{"hw_counters/wire_drop_port", {CTR_WIRE_DROP_PORT}},
	{"hw_counters/wire_other_port", {CTR_WIRE_OTHER_PORT}},
	{"hw_counters/wire_drop_ahead", {CTR_WIRE_DROP_AHEAD}},
};
/* clang-format on */

enum { FILES = sizeof sums / sizeof *sums };

_Static_assert((int)FILES <= (int)WIRE_COUNTER_FILES, "wire_counters.shown has them all");

static uint64_t own(const struct wire_hand *h, enum own which)
{
	switch (which) {
	case OWN_SENT:
		return h->sent;
	case OWN_CAME: /* what it handed over counts where it came to */
		return h->got - h->handed;
	case OWN_SENT_BYTES:
		return h->sent_bytes;
	case OWN_CAME_BYTES:
		return h->came_bytes;
	case OWN_LOST:
		return h->overflow[WIRE_IPV4] + h->overflow[WIRE_IPV6];
	case OWN_SHORT:
		return h->drops[WIRE_DROP_SHORT];
	case OWN_NOTHING:
		break;
	}
	return 0;
}

static uint64_t sum_up(const struct sum *f, const uint64_t n[CTR_COUNT], const struct wire_hand *h)
{
	uint64_t sum = own(h, f->own);

	for (size_t i = 0; i < sizeof f->plus && f->plus[i]; i++)
		sum += n[f->plus[i]];
	for (size_t i = 0; i < sizeof f->minus && f->minus[i]; i++)
		sum -= n[f->minus[i]];
	return sum >> f->shift;
}

static void add_process(uint64_t n[CTR_COUNT], const struct process *p)
{
	for (int i = 0; i < CTR_COUNT; i++)
		n[i] += seg_counter(p->seg, i);
}

static void gather(const struct server *s, uint64_t n[CTR_COUNT])
{
	memcpy(n, s->wire->counters.ended, sizeof s->wire->counters.ended);
	for (const struct process *p = s->processes; p; p = p->next)
		add_process(n, p);
}

void wire_counters_keep(struct server *s, const uint64_t count[CTR_COUNT])
{
	for (int i = 0; i < CTR_COUNT; i++)
		s->wire->counters.ended[i] += count[i];
}

void wire_counters_write(struct server *s, bool all)
{
	struct wire_counters *c = &s->wire->counters;
	struct sysfs_counter counter[FILES];
	char tree[sizeof s->paths.name + 8];
	uint64_t n[CTR_COUNT], value;
	size_t changed = 0;
	int ret = 0;

	if (s->subnet)
		return; /* its nodes are not weft0 */
	gather(s, n);
	for (size_t i = 0; i < FILES; i++) {
		value = sum_up(&sums[i], n, &s->wire->hand);
		if (all || value != c->shown[i])
			counter[changed++] = (struct sysfs_counter){sums[i].file, value};
		c->shown[i] = value;
	}
	snprintf(tree, sizeof tree, "%s.tree", s->paths.name);
	if (changed)
		ret = sysfs_write_counters(
			s->paths.dir_fd, tree, s->node->page->device, 1, counter, changed);
	if (ret)
		log_line(LOG_LVL_WARN, "cannot write counters in %s/%s: %s", s->paths.dir, tree,
			strerror(-ret));
}
