// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/status.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "daemon/connections.h"
#include "daemon/faults.h"
#include "daemon/issm.h"
#include "daemon/peer_stats.h"
#include "daemon/session.h"
#include "daemon/subnet_admin.h"
#include "daemon/tables/ended.h"
#include "daemon/umad.h"
#include "daemon/wire.h"
#include "daemon/wire_status.h"
#include "fabric/page.h"
#include "pages/durable.h"
#include "rdv/fabrics.h"

/* Names of enum seg_counter. */
static const char *const counter_names[CTR_COUNT] = {
	[CTR_SEND_INLINE] = "send_inline",
	[CTR_SEND_RING] = "send_ring",
	[CTR_SEND_MOVER] = "send_mover",
	[CTR_CMA_OPS] = "cma_ops",
	[CTR_CMA_BYTES] = "cma_bytes",
	[CTR_SELF_BYTES] = "self_bytes",
	[CTR_MAP_BYTES] = "map_bytes",
	[CTR_MAP_ATOMICS] = "map_atomics",
	[CTR_MAP_BUSY] = "map_busy",
	[CTR_ATOMICS] = "atomics",
	[CTR_RNR_PARKS] = "rnr_parks",
	[CTR_PEER_PARKS] = "peer_parks",
	[CTR_PEER_REFUSED] = "peer_refused",
	[CTR_PEER_BREACHES] = "peer_breaches",
	[CTR_HELPED] = "helped",
	[CTR_WORKER] = "worker",
	[CTR_EVENTS] = "events",
	[CTR_ERR_LOC_PROT] = "err_loc_prot",
	[CTR_ERR_LOC_LEN] = "err_loc_len",
	[CTR_ERR_REM_ACCESS] = "err_rem_access",
	[CTR_ERR_REM_INV_REQ] = "err_rem_inv_req",
	[CTR_ERR_REM_OP] = "err_rem_op",
	[CTR_ERR_RNR] = "err_rnr",
	[CTR_ERR_RETRY] = "err_retry",
	[CTR_FLUSHED] = "flushed",
	[CTR_CQ_OVERRUN] = "cq_overrun",
	[CTR_CMA_REFUSED] = "cma_refused",
	[CTR_WAIT_STOPPED] = "wait_stopped",
	[CTR_PASS_STOPPED] = "pass_stopped",
	[CTR_DROP_NO_QP] = "drop_no_qp",
	[CTR_DROP_QKEY] = "drop_qkey",
	[CTR_DROP_NO_RECV] = "drop_no_recv",
	[CTR_DROP_ACCESS] = "drop_access",
	[CTR_AGENT_OPS] = "agent_ops",
	[CTR_AGENT_BYTES] = "agent_bytes",
	[CTR_AGENT_LATE] = "agent_late",
	[CTR_AGENT_SERVED] = "agent_served",
	[CTR_AGENT_DENIED] = "agent_denied",
	[CTR_PERSIST] = "persistent_flushes",
	[CTR_PERSIST_VOLATILE] = "volatile_flushes",
	[CTR_HANDED_OVER] = "handed_over",
	[CTR_AGENT_RUNS] = "agent_runs",
	[CTR_WIRE_SENT] = "wire_sent",
	[CTR_WIRE_SENT_BYTES] = "wire_sent_bytes",
	[CTR_WIRE_CAME] = "wire_came",
	[CTR_WIRE_CAME_BYTES] = "wire_came_bytes",
	[CTR_WIRE_RESENT] = "wire_resent",
	[CTR_WIRE_PROBES] = "wire_probes",
	[CTR_WIRE_TIMEOUTS] = "wire_timeouts",
	[CTR_WIRE_NAKS] = "wire_naks",
	[CTR_WIRE_RNR_NAKS] = "wire_rnr_naks",
	[CTR_WIRE_CNPS_SENT] = "wire_cnps_sent",
	[CTR_WIRE_CNPS_CAME] = "wire_cnps_came",
	[CTR_WIRE_DUPLICATES] = "wire_duplicates",
	[CTR_WIRE_OUT_OF_SEQUENCE] = "wire_out_of_sequence",
	[CTR_WIRE_FULL] = "wire_full",
	[CTR_WIRE_NOT_SENT] = "wire_not_sent",
	[CTR_WIRE_TOO_LONG] = "wire_too_long",
	[CTR_WIRE_HANDED_OVER] = "wire_handed_over",
	[CTR_WIRE_DROP_FULL] = "wire_drop_full",
	[CTR_WIRE_DROP_LENGTH] = "wire_drop_length",
	[CTR_WIRE_DROP_VERSION] = "wire_drop_version",
	[CTR_WIRE_DROP_OPCODE] = "wire_drop_opcode",
	[CTR_WIRE_DROP_ICRC] = "wire_drop_icrc",
	[CTR_WIRE_DROP_PKEY] = "wire_drop_pkey",
	[CTR_WIRE_DROP_NO_QP] = "wire_drop_no_qp",
	[CTR_WIRE_DROP_TYPE] = "wire_drop_type",
	[CTR_WIRE_DROP_STATE] = "wire_drop_state",
	[CTR_WIRE_DROP_ADDRESS] = "wire_drop_address",
	[CTR_WIRE_DROP_BUSY] = "wire_drop_busy",
	[CTR_WIRE_DROP_KEPT] = "wire_drop_kept",
	[CTR_WIRE_RNR_SENT] = "wire_rnr_sent",
	[CTR_WIRE_MCAST_SENT] = "wire_mcast_sent",
	[CTR_WIRE_MCAST_CAME] = "wire_mcast_came",
	[CTR_WIRE_DROP_USER] = "wire_drop_user",
	[CTR_WIRE_DROP_PORT] = "wire_drop_port",
	[CTR_WIRE_OTHER_PORT] = "wire_other_port",
	[CTR_WIRE_DROP_AHEAD] = "wire_drop_ahead",
};

/* Jansson objects are NULL when memory is short; its functions pass that on. */
static void set_int(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer(v));
}

static json_t *counters(const struct seg *seg)
{
	json_t *o = json_object();

	for (int i = 0; i < CTR_COUNT; i++)
		if (counter_names[i])
			set_int(o, counter_names[i], seg_counter(seg, i));
	return o;
}

/* Those that are not 0: of many processes most are. */
static json_t *counted(const char *const names[], const uint64_t value[], int n)
{
	json_t *o = json_object();

	for (int i = 0; i < n; i++)
		if (names[i] && value[i])
			set_int(o, names[i], value[i]);
	return o;
}

/* What the kernel allows: calls to others' memory, and others at this one's. */
static const char *cma_name(uint32_t reach)
{
	static const char *const names[] = {"none", "own calls", "peers' calls", "both"};

	return names[!!(reach & REACH_CALLS) + 2 * !!(reach & REACH_ALLOWS)];
}

static const char *const share_modes[] = {
	[SHARE_UNSET] = "unused",
	[SHARE_NEVER] = "never",
	[SHARE_AUTO] = "auto",
	[SHARE_ALWAYS] = "always",
};

static const char *const share_reasons[SHARE_REASONS] = {
	[SHARE_NO_REMOTE] = "no_remote_right",
	[SHARE_UNALIGNED] = "unaligned_atomics",
	[SHARE_TOO_LARGE] = "too_large",
	[SHARE_BUDGET] = "budget",
	[SHARE_AREAS] = "too_many_areas",
	[SHARE_SLOW] = "slow_to_inspect",
	[SHARE_UNUSED] = "hardly_used",
	[SHARE_NO_ARENA] = "no_arena",
	[SHARE_NOT_PRIVATE] = "not_private",
	[SHARE_RIGHTS] = "rights",
	[SHARE_FILE] = "file",
	[SHARE_MEMFD] = "memfd",
	[SHARE_SYSV] = "sysv",
	[SHARE_SHARED_ANON] = "shared_anonymous",
	[SHARE_STACK] = "stack",
	[SHARE_HUGETLB] = "hugetlb",
	[SHARE_ATTRIBUTES] = "attributes",
	[SHARE_USERFAULTFD] = "userfaultfd",
	[SHARE_THREADS] = "threads",
	[SHARE_PINNED] = "pinned",
	[SHARE_EDGE] = "edge_page",
	[SHARE_MIXED_ATOMICS] = "mixed_atomics",
	[SHARE_ARENA_IN_USE] = "arena_in_use",
	[SHARE_QUARANTINE] = "quarantine",
	[SHARE_PEER_STOPPED] = "peer_stopped",
	[SHARE_KERNEL] = "kernel_refused",
	[SHARE_LEFT_BEHIND] = "left_behind",
	[SHARE_JOURNALED] = "journaled",
	[SHARE_NO_FD] = "no_descriptor",
	[SHARE_ON_DEMAND] = "on_demand",
};

/* How peers reach its memory: what is mapped, and how often and why a region was not. */
static json_t *share(const struct seg_header *h)
{
	uint32_t mode = atomic_load(&h->share_mode);
	json_t *o = json_object();

	json_object_set_new(
		o, "mode", json_string(share_modes[mode <= SHARE_ALWAYS ? mode : SHARE_UNSET]));
	set_int(o, "regions", atomic_load(&h->n_mapped));
	set_int(o, "bytes", atomic_load(&h->mapped_bytes));
	set_int(o, "shared_objects", atomic_load(&h->n_backings));
	set_int(o, "shared_bytes", atomic_load(&h->backed_bytes));
	set_int(o, "conversions", atomic_load(&h->conversions));
	set_int(o, "exports", atomic_load(&h->n_exports));
	set_int(o, "quarantined", atomic_load(&h->n_quarantined));
	set_int(o, "quarantined_bytes", atomic_load(&h->quarantined_bytes));
	for (int i = 0; i < SHARE_REASONS; i++)
		if (share_reasons[i])
			set_int(o, share_reasons[i], atomic_load(&h->not_mapped[i]));
	return o;
}

/* Regions registered for persistent flushes, by what these can do for them. */
static json_t *persistence(const struct seg_header *h)
{
	json_t *o = json_object();

	set_int(o, "pmem", atomic_load(&h->n_durable[DURABLE_PMEM]));
	set_int(o, "file", atomic_load(&h->n_durable[DURABLE_FILE]));
	set_int(o, "volatile", atomic_load(&h->n_durable[DURABLE_NEVER]));
	return o;
}

/* Names of others: JSON has to be UTF-8, and who prints it wants no control characters. */
static json_t *escaped(const char *s)
{
	char text[4 * PATH_MAX];

	text_escape(text, sizeof text, s, strlen(s));
	return json_string(text);
}

static json_t *one_process(const struct process *p)
{
	const struct seg_header *h = &p->seg->hdr;
	json_t *o = json_object();

	set_int(o, "attach_id", p->id);
	set_int(o, "pid", p->pid);
	json_object_set_new(o, "comm", escaped(p->comm));
	json_object_set_new(o, "connected", json_boolean(p->session != NULL));
	set_int(o, "n_pd", atomic_load(&h->n_pd));
	set_int(o, "n_mr", atomic_load(&h->n_mr));
	set_int(o, "n_cq", atomic_load(&h->n_cq));
	set_int(o, "n_qp", atomic_load(&h->n_qp));
	set_int(o, "channels", p->channels.n);
	set_int(o, "mr_bytes", atomic_load(&h->mr_bytes));
	json_object_set_new(o, "cma", json_string(cma_name(atomic_load(&h->reach))));
	json_object_set_new(o, "share", share(h));
	json_object_set_new(o, "persistence", persistence(h));
	json_object_set_new(o, "counters", counters(p->seg));
	json_object_set_new(o, "faults", faults_of_process(p));
	return o;
}

static json_t *all_processes(const struct server *s)
{
	json_t *a = json_array();

	for (const struct process *p = s->processes; p; p = p->next)
		json_array_append_new(a, one_process(p));
	return a;
}

static json_t *one_ended(const struct ended_process *e)
{
	json_t *o = json_object();

	set_int(o, "attach_id", e->attach_id);
	set_int(o, "pid", e->pid);
	json_object_set_new(o, "comm", escaped(e->comm));
	set_int(o, "gone_s", (clock_ns() - e->when) / NSEC_PER_SEC);
	json_object_set_new(o, "counters", counted(counter_names, e->count, CTR_COUNT));
	json_object_set_new(o, "not_mapped", counted(share_reasons, e->not_mapped, SHARE_REASONS));
	return o;
}

static json_t *all_ended(const struct server *s)
{
	const struct ended_process *e;
	json_t *a = json_array();

	for (uint32_t i = 0; (e = ended_at(&s->ended, i)); i++)
		json_array_append_new(a, one_ended(e));
	return a;
}

/* Connections that are not attached, like the one that asks, hold nothing else. */
static int passers_by(const struct server *s)
{
	int n = 0;

	for (const struct session *c = s->sessions; c; c = c->next)
		n += !c->process;
	return n;
}

/* Those that clients hold: neither weftd's own nor those of the port and of claims, which outlive
 * them. */
static int fds_of_clients(const struct server *s)
{
	return server_count_fds(s) - passers_by(s) - wire_group_fds(&s->wire->group) -
	       (int)s->leases.claims.n_resting;
}

static json_t *counts(const struct server *s)
{
	json_t *o = json_object();

	set_int(o, "processes", s->n_processes);
	set_int(o, "channels", s->n_channels);
	set_int(o, "leases", s->leases.count);
	set_int(o, "timers", s->timers.count);
	set_int(o, "members", members_count(&s->members, s->env.hub));
	set_int(o, "fds", fds_of_clients(s));
	return o;
}

static json_t *refusals(const struct server *s)
{
	json_t *o = json_object();

	for (int i = 0; i < REF_COUNT; i++)
		set_int(o, refusal_name(i), s->refusals[i]);
	return o;
}

static json_t *gids(const struct fabric_port *port)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < port->n_gids; i++) {
		const struct fabric_gid *g = &port->gid[i];
		char text[INET6_ADDRSTRLEN];
		json_t *o;

		if (!g->type)
			continue;
		o = json_object();
		inet_ntop(AF_INET6, g->raw, text, sizeof text);
		set_int(o, "index", i);
		json_object_set_new(o, "gid", json_string(text));
		json_object_set_new(o, "ifname", escaped(g->ifname));
		json_array_append_new(a, o);
	}
	return a;
}

/* Of whichever user; programs of two fabrics do not meet by mistake. */
static json_t *other_fabrics(const struct server *s)
{
	struct rdv_fabric all[RDV_FABRICS_MAX];
	size_t n = rdv_fabrics_find(all, be64toh(s->node->page->node_guid));
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "fabric", json_string(all[i].name));
		set_int(o, "user", all[i].uid);
		set_int(o, "pid", all[i].pid);
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *whole(const struct server *s)
{
	json_t *o = json_object();

	json_object_set_new(o, "version", json_string(WEFT_VERSION));
	set_int(o, "pid", getpid());
	json_object_set_new(o, "fabric", json_string(s->paths.fabric));
	json_object_set_new(o, "runtime_dir", escaped(s->paths.dir));
	set_int(o, "uptime_s", (clock_ns() - s->started) / NSEC_PER_SEC);
	json_object_set_new(o, "stay", json_boolean(s->stay));
	set_int(o, "epoch", s->epoch);
	set_int(o, "hub_id", s->env.hub_id);
	json_object_set_new(o, "device", json_string(s->node->page->device));
	json_object_set_new(o, "faults", faults_of_all(s));
	json_object_set_new(o, "processes", all_processes(s));
	json_object_set_new(o, "ended", all_ended(s));
	json_object_set_new(o, "peers", peer_stats_status(s));
	json_object_set_new(o, "counts", counts(s));
	json_object_set_new(o, "refusals", refusals(s));
	json_object_set_new(o, "connections", connections_status(s));
	json_object_set_new(o, "qp1", connections_qp1(s));
	json_object_set_new(o, "mad_drops", connections_mad_drops(s));
	json_object_set_new(o, "umad", umads_status(s));
	set_int(o, "issm_files", issm_count(s));
	json_object_set_new(o, "wire", wire_status(s));
	json_object_set_new(o, "wire_drops", wire_status_drops(s));
	json_object_set_new(o, "steered", wire_status_steered(s));
	if (s->subnet) {
		json_object_set_new(o, "subnet", subnet_admin_status(s->subnet));
		json_object_set_new(o, "subnet_drops", subnet_admin_drops(s->subnet));
	}
	json_object_set_new(o, "other_fabrics", other_fabrics(s));
	json_object_set_new(o, "gids", gids(&s->node->page->port[0]));
	return o;
}

int status_text_memfd(const char *text, size_t size)
{
	int fd = memfd_create("weft-status", MFD_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	if (pwrite(fd, text, size, 0) == (ssize_t)size)
		return fd;
	ret = errno ? -errno : -EIO;
	close(fd);
	return ret;
}

int status_memfd(const struct server *s, uint64_t *size)
{
	json_t *o = whole(s);
	char *text = json_dumps(o, JSON_INDENT(2));
	int fd = -ENOMEM;

	json_decref(o);
	if (text) {
		*size = strlen(text);
		fd = status_text_memfd(text, *size);
	}
	free(text);
	return fd;
}
