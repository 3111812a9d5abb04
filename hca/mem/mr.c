// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/mr.h"

#include <errno.h>
#include <stdlib.h>

#include "base/draw.h"
#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/mem/crash_region.h"
#include "hca/mem/mr_kinds.h"
#include "hca/mem/mr_peer.h"
#include "hca/mem/peer_show.h"
#include "hca/mem/share.h"
#include "hca/obj/pd.h"
#include "hca/proc/peer.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"
#include "hca/proc/tables.h"
#include "hca/queue/land.h"
#include "hca/run/agent.h"
#include "hca/run/mr_persist.h"
#include "include/weft/verbs_ext.h"
#include "pages/mapped.h"
#include "peermem/gpu.h"
#include "peermem/registry.h"

enum {
	ACCESS_KNOWN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_HUGETLB | IBV_ACCESS_MW_BIND |
		       IBV_ACCESS_ON_DEMAND | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT,
	ACCESS_OPTIONAL = IBV_ACCESS_OPTIONAL_RANGE,
	ACCESS_NEEDS_LOCAL = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

enum {
	VARIANT_STEPS = 8, /* of the 256 variants that there are */
	DRAWN_SHIFT = KEY_VARIANT_BITS + KEY_INDEX_BITS,
	DRAWN_MASK = 0xf,
};

/* Of the last key of an entry. */
static struct variant {
	uint8_t used, last;
} variant[SEG_MRS];

/* ---- checks ---- */

static int refuse(int err, const char *why, uint64_t addr, uint64_t length)
{
	log_refusal("registering %#llx+%#llx refused: %s", (unsigned long long)addr,
		(unsigned long long)length, why);
	return err;
}

/* All of memory, on demand. */
static bool is_implicit(uint64_t addr, uint64_t length, unsigned access)
{
	return access & IBV_ACCESS_ON_DEMAND && !addr && length == SIZE_MAX;
}

int mr_check_access(uint64_t addr, uint64_t length, unsigned access)
{
	if (access & ~(unsigned)(ACCESS_KNOWN | ACCESS_OPTIONAL))
		return refuse(-EINVAL, "unknown access flags", addr, length);
	if (access & ACCESS_NEEDS_LOCAL && !(access & IBV_ACCESS_LOCAL_WRITE))
		return refuse(
			-EINVAL, "remote write and atomics need local write too", addr, length);
	return 0;
}

static int check_request(const struct mr_region *r)
{
	if (!r->length || r->addr + r->length < r->addr || r->iova + r->length < r->iova)
		return refuse(-EINVAL, "the range is empty or wraps around", r->addr, r->length);
	return mr_check_access(r->addr, r->length, r->access);
}

static int look_at_pages(const struct mr_region *r)
{
	if (r->access & IBV_ACCESS_ON_DEMAND)
		return 0;
	return mapped_check(r->addr, r->length, r->access & IBV_ACCESS_LOCAL_WRITE);
}

static int refuse_pages(const struct mr_region *r, int rc)
{
	return refuse(
		rc, "a page is not mapped, or not with the rights asked for", r->addr, r->length);
}

/* Peer clients come first; memory of the program otherwise.  Not yet live if it is a client's. */
static int find_kind(struct mr_region *r)
{
	const bool ask = peer_registry_any() && !is_implicit(r->addr, r->length, r->access);
	struct peer_trace t;
	int rc;

	r->of = NULL;
	r->kind = r->access & IBV_ACCESS_ON_DEMAND ? &mr_on_demand : &mr_memory;
	rc = ask ? mr_peer_claim(r, &t) : 0;
	if (rc)
		return rc < 0 ? rc : 0;
	rc = look_at_pages(r);
	if (!rc)
		return 0;
	if (gpu_look()) /* loaded since: its client is asked, too */
		return find_kind(r);
	if (ask) {
		peer_trace_fail(&t, "as memory of the program", NULL, rc);
		peer_trace_say(&t, r->addr, r->length);
	}
	return refuse_pages(r, rc);
}

/* ---- registering ---- */

/* Peers' requests to what only functions reach are the agent's work. */
static void hold_agent(const struct mr_kind *kind)
{
	if (kind->io)
		agent_hold();
}

static void drop_agent(const struct mr_kind *kind)
{
	if (kind->io)
		agent_drop();
}

static void count_bytes(uint64_t length, bool add)
{
	struct seg_header *hdr = &proc_seg()->hdr;

	if (length == UINT64_MAX) /* all of memory counts for nothing */
		return;
	if (add)
		atomic_fetch_add_explicit(&hdr->mr_bytes, length, memory_order_relaxed);
	else
		atomic_fetch_sub_explicit(&hdr->mr_bytes, length, memory_order_relaxed);
}

/* A region for persistent flushes comes; before it is published. */
static void begin_durable(struct hca_mr *mr)
{
	mr->durable = mr->access & IBV_ACCESS_FLUSH_PERSISTENT;
	mr->durability =
		mr->kind->io ? DURABLE_NEVER : persist_kind(mr->addr, mr->length, mr->access);
	if (mr->durable)
		persist_add(mr->durability);
}

/* ... and goes, after it was withdrawn. */
static void end_durable(struct hca_mr *mr)
{
	if (mr->durable)
		persist_remove(mr->durability);
	mr->durable = false;
}

/* Makes the region known to peers: the key is the last word to appear, unless nobody may come. */
static void publish(struct hca_mr *mr)
{
	const struct mr_kind *kind = mr->kind;
	struct seg_mr *s = &proc_seg()->mr[mr->index];

	s->access = mr->access & ~(unsigned)ACCESS_OPTIONAL;
	s->pd = mr->pd->handle;
	s->flags = kind->flags | persist_flags(mr->durability) | crash_region(mr, kind->flags);
	s->iova = mr->iova;
	s->length = mr->length;
	s->addr = mr->addr;
	s->sink = kind->swallows ? (uintptr_t)mr->of : 0;
	s->inv_qpn = s->inv_pos = 0;
	atomic_store_explicit(&s->ops, 0, memory_order_relaxed);
	atomic_store_explicit(&s->share, MR_COPY, memory_order_relaxed);
	if (kind->shares)
		share_reg(mr);
	if (!mr->dead)
		atomic_store_explicit(&s->key, mr->key, memory_order_release);
	count_bytes(mr->length, true);
}

uint32_t mr_next_key(uint32_t index)
{
	struct variant *v = &variant[index];
	uint32_t drawn = draw_u8();

	v->last = v->used ? v->last + 1 + drawn % VARIANT_STEPS : draw_u8();
	v->used = 1;
	return (drawn / VARIANT_STEPS & DRAWN_MASK) << DRAWN_SHIFT | index << KEY_VARIANT_BITS |
	       v->last;
}

int mr_new(struct hca_mr **out)
{
	struct hca_mr *mr = calloc(1, sizeof *mr);
	int rc;

	if (!mr)
		return -ENOMEM;
	rc = table_add_mr(mr);
	if (rc < 0) {
		free(mr);
		return rc;
	}
	mr->index = rc;
	mr->epoch = proc_epoch();
	*out = mr;
	return 0;
}

int mr_add(struct hca_pd *pd, const struct mr_region *r, struct hca_mr **out)
{
	struct hca_mr *mr;
	int rc = proc_attach(NULL);

	if (rc)
		return rc;
	if (pd->epoch != proc_epoch())
		return refuse(-EINVAL, "the PD is of the process that forked this one", r->addr,
			r->length);
	agent_look();
	peers_sweep();
	rc = mr_new(&mr);
	if (rc)
		return rc;
	mr->pd = pd;
	mr->addr = r->addr;
	mr->length = r->length;
	mr->iova = r->iova;
	mr->access = r->access;
	mr->key = mr_next_key(mr->index);
	mr->kind = r->kind;
	mr->of = r->of;
	atomic_store_explicit(&mr->refs, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&proc_seg()->hdr.n_mr, 1, memory_order_relaxed);
	begin_durable(mr);
	hold_agent(mr->kind);
	publish(mr);
	*out = mr;
	return 0;
}

int mr_add_found(struct hca_pd *pd, const struct mr_region *r, struct hca_mr **out)
{
	int rc = mr_add(pd, r, out);

	if (!r->kind->client)
		return rc;
	if (rc) {
		mr_peer_abandon(r);
		return rc;
	}
	peer_show(); /* there may be no segment before */
	rc = mr_peer_live(*out);
	if (rc)
		hca_mr_dereg(*out);
	return rc;
}

int hca_mr_reg(struct hca_pd *pd, void *addr, uint64_t length, uint64_t iova, unsigned access,
	struct hca_mr **out)
{
	struct mr_region r = {
		.addr = (uintptr_t)addr, .length = length, .iova = iova, .access = access};
	int rc;

	if (is_implicit(r.addr, length, access))
		r.iova = 0;
	rc = check_request(&r);
	if (!rc)
		rc = find_kind(&r);
	return rc ? rc : mr_add_found(pd, &r, out);
}

/* ---- taking away ---- */

static bool has_window(const struct hca_mr *mr)
{
	const struct seg *seg = proc_seg();
	bool found = false;

	lock_take(&mr->pd->lock);
	for (const struct hca_mw *mw = mr->pd->mws; mw && !found; mw = mw->next) {
		const struct seg_mr *s = &seg->mr[mw->slot.index];

		found = atomic_load_explicit(&s->key, memory_order_acquire) && s->under == mr->key;
	}
	lock_drop(&mr->pd->lock);
	return found;
}

/* After it nobody uses the region, and what came for it is in place. */
static void withdraw(struct hca_mr *mr)
{
	atomic_store_explicit(&proc_seg()->mr[mr->index].key, 0, memory_order_seq_cst);
	quiesce();
	pd_land_all(mr->pd);
	count_bytes(mr->length, false);
	end_durable(mr);
	share_dereg(mr);
}

/* The same, but waits for no stopped peer that uses memory which is mapped.  True: in quarantine.
 */
static bool withdraw_soon(struct hca_mr *mr)
{
	struct late late;
	bool parted;

	atomic_store_explicit(&proc_seg()->mr[mr->index].key, 0, memory_order_seq_cst);
	quiesce_but_late(&late);
	if (late.n)
		pd_land_all(mr->pd); /* in quarantine its key finds nothing */
	parted = late.n && share_dereg_late(mr, &late);
	if (late.n)
		quiesce();
	late_put(&late);
	pd_land_all(mr->pd);
	count_bytes(mr->length, false);
	end_durable(mr);
	share_dereg(mr);
	return parted;
}

/* Nobody finds it any more; its entry stays taken. */
static void hide(struct hca_mr *mr)
{
	mr->parted = withdraw_soon(mr);
	mr->withdrawn = true;
	if (!mr->parted)
		table_hold_mr(mr);
	pd_pass_landers(mr->pd);
	peers_sweep();
}

/*
 * Before anybody waits without an end: a function of its client may wait for a lock that the
 * program holds here.  -errno: it stays, without its key.
 */
static int await_client(struct hca_mr *mr)
{
	if (!mr->kind->client || !mr->kind->io)
		return 0;
	atomic_store_explicit(&proc_seg()->mr[mr->index].key, 0, memory_order_seq_cst);
	return mr_peer_await(mr);
}

static int end_region(struct hca_mr *mr)
{
	int rc = mr->withdrawn ? 0 : await_client(mr);

	if (rc)
		return rc;
	if (!mr->withdrawn)
		hide(mr);
	rc = mr->kind->drop ? mr->kind->drop(mr) : 0;
	if (rc)
		return rc;
	/* Not before: a client that takes its memory away looks at the entry. */
	if (!mr->parted)
		table_del_mr(mr->index);
	drop_agent(mr->kind);
	mr->key = 0;
	atomic_fetch_sub_explicit(&proc_seg()->hdr.n_mr, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&mr->pd->users, 1, memory_order_release);
	return 0;
}

int hca_mr_dereg(struct hca_mr *mr)
{
	int rc = 0;

	if (mr->epoch != proc_epoch() && mr->kind->client)
		mr_peer_forget(mr);
	else if (mr->epoch == proc_epoch() && mr->key)
		rc = !mr->withdrawn && has_window(mr)
			     ? log_busy("ibv_dereg_mr", "windows are bound to the region")
			     : end_region(mr);
	if (!rc)
		hca_mr_put(mr);
	return rc;
}

/* ---- changing ---- */

static struct mr_region made_of(const struct hca_mr *mr)
{
	return (struct mr_region){.addr = mr->addr,
		.length = mr->length,
		.iova = mr->iova,
		.access = mr->access,
		.kind = mr->kind,
		.of = mr->of};
}

/* What the region would be after the change. */
static struct mr_region changed(
	const struct hca_mr *mr, int flags, void *addr, uint64_t length, unsigned access)
{
	struct mr_region r = made_of(mr);

	if (mr->kind->client && flags != IBV_REREG_MR_CHANGE_PD)
		r.addr = mr_peer_addr(mr);
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		r.access = access;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		r.addr = r.iova = (uintptr_t)addr;
		r.length = length;
	}
	return r;
}

/* Another PD alone is nothing that a client must know of. */
static int find_anew(int flags, struct mr_region *r)
{
	int rc = check_request(r);

	if (rc)
		return rc;
	if (flags != IBV_REREG_MR_CHANGE_PD)
		return find_kind(r);
	rc = r->kind->client ? 0 : look_at_pages(r);
	return rc ? refuse_pages(r, rc) : 0;
}

/* It was withdrawn; if its client has not taken it away, it is there again, as r. */
static void become(struct hca_mr *mr, const struct mr_region *r, struct hca_pd *pd)
{
	struct hca_pd *old = mr->pd;

	lock_take(&mr->lock);
	mr->pd = pd;
	mr->addr = r->addr;
	mr->length = r->length;
	mr->iova = r->iova;
	mr->access = r->access;
	mr->kind = r->kind;
	mr->of = r->of;
	mr->dead = mr_peer_gone(r);
	atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&old->users, 1, memory_order_release);
	begin_durable(mr);
	if (!mr->dead)
		table_return_mr(mr);
	publish(mr);
	lock_drop(&mr->lock);
}

static void take_off(struct hca_mr *mr)
{
	withdraw(mr);
	table_hold_mr(mr);
	pd_pass_landers(mr->pd);
}

/* A rereg that does nothing: unless its client took the region away meanwhile. */
static void give_back_key(struct hca_mr *mr)
{
	lock_take(&mr->lock);
	if (!mr->dead)
		atomic_store_explicit(
			&proc_seg()->mr[mr->index].key, mr->key, memory_order_release);
	lock_drop(&mr->lock);
}

static int exchange(struct hca_mr *mr, const struct mr_region *r, struct hca_pd *pd)
{
	const struct mr_region old = made_of(mr);
	struct hca_pd *old_pd = mr->pd;
	int rc = await_client(mr);

	if (rc) {
		give_back_key(mr);
		if (r->kind->client && r->of != mr->of)
			mr_peer_abandon(r);
		return rc;
	}
	hold_agent(r->kind);
	take_off(mr);
	become(mr, r, pd);
	if (r->kind->client && r->of != old.of)
		rc = mr_peer_live(mr);
	if (rc) {
		take_off(mr);
		become(mr, &old, old_pd);
	} else {
		mr_peer_drop_old(mr, &old);
	}
	drop_agent(rc ? r->kind : old.kind);
	return rc;
}

int hca_mr_rereg(struct hca_mr *mr, int flags, struct hca_pd *pd, void *addr, uint64_t length,
	unsigned access)
{
	struct mr_region r;
	int rc;

	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || !mr->key || mr->withdrawn ||
		!mr->kind->changeable || mr->epoch != proc_epoch())
		return -EINVAL;
	if (!(flags & IBV_REREG_MR_CHANGE_PD))
		pd = mr->pd;
	if (!pd || pd->epoch != proc_epoch())
		return -EINVAL;
	if (has_window(mr))
		return log_busy("ibv_rereg_mr", "windows are bound to the region");
	r = changed(mr, flags, addr, length, access);
	r.call = "ibv_rereg_mr";
	rc = find_anew(flags, &r);
	return rc ? rc : exchange(mr, &r, pd);
}

int hca_mr_get(struct hca_pd *pd, uint32_t key, struct hca_mr **out)
{
	struct hca_mr *mr = key ? table_mr(key_index(key)) : NULL;

	if (!mr || mr->key != key || mr->pd != pd || mr->epoch != proc_epoch())
		return -ENOENT;
	atomic_fetch_add_explicit(&mr->refs, 1, memory_order_relaxed);
	*out = mr;
	return 0;
}

void hca_mr_put(struct hca_mr *mr)
{
	if (atomic_fetch_sub_explicit(&mr->refs, 1, memory_order_acq_rel) == 1)
		free(mr);
}

uint32_t hca_mr_key(const struct hca_mr *mr)
{
	return mr->key;
}
