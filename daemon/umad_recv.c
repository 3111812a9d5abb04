// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/umad_recv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/umad_lane.h"

static struct ring_ref ring_of(const struct ufile *f)
{
	return (struct ring_ref){&f->page->recv, f->page->recv_slot, UMAD_RECV_LOG_SIZE};
}

/* ---- what is kept for programs ---- */

/* Programs that do not read take all that there is, but not from others their first few MADs. */
static bool has_bytes(const struct ufile *f, uint64_t bytes)
{
	return f->all->bytes + bytes <= UMAD_ALL_BYTES ||
	       (bytes == UMAD_MAD_COST && f->places < UMAD_FILE_SURE);
}

/* Takes a place and so many bytes, or counts why there is none. */
static bool take_place(struct ufile *f, uint64_t bytes)
{
	struct umads *all = f->all;

	if (f->places >= UMAD_FILE_MADS)
		all->drops[UMAD_DROP_UNREAD]++;
	else if (!has_bytes(f, bytes))
		all->drops[UMAD_DROP_ALL_UNREAD]++;
	else {
		f->places++;
		all->bytes += bytes;
		return true;
	}
	return false;
}

static void give_place(struct ufile *f, uint64_t bytes)
{
	f->places--;
	f->all->bytes -= bytes;
}

bool urecv_promise(struct ufile *f, uint64_t bytes)
{
	return take_place(f, bytes);
}

void urecv_release(struct ufile *f, uint64_t bytes)
{
	give_place(f, bytes);
}

static uint64_t cost(const struct uheld *h)
{
	return UMAD_MAD_COST + (h->message ? h->rec.length : 0);
}

static void append(struct uqueue *q, struct uheld *h)
{
	h->next = NULL;
	*q->last = h;
	q->last = &h->next;
}

static struct uheld *take_first(struct uqueue *q)
{
	struct uheld *h = q->first;

	q->first = h->next;
	if (!q->first)
		q->last = &q->first;
	return h;
}

static void free_held(struct ufile *f, struct uheld *h)
{
	give_place(f, cost(h));
	free(h->message);
	spare_put(&f->all->spare_held, h, UMAD_SPARE);
}

/* ---- the bell ---- */

enum { GHOSTS_MAX = 1 << 16 }; /* of a dead process */

static void count_override(struct ufile *f, uint32_t who)
{
	struct ulane *l = who ? ulane_find(f, who) : NULL;

	if (l)
		l->overridden++;
}

static bool bytes_lie_there(void *arg)
{
	const struct ufile *f = arg;
	int unread = 0;

	return !ioctl(f->sock.fd, SIOCOUTQ, &unread) && unread > 0;
}

static bool all_have_settled(const struct ufile *f)
{
	for (const struct ulane *l = f->lanes; l; l = l->next)
		if (atomic_load_explicit(&l->mem->settled, memory_order_acquire) != l->overridden)
			return false;
	return true;
}

bool urecv_exorcise(struct ufile *f)
{
	if (f->ghosts && all_have_settled(f))
		bell_exorcise(&f->bell, bytes_lie_there, &f->ghosts);
	return f->ghosts;
}

static void ring_bell(struct ufile *f)
{
	(void)urecv_exorcise(f);
	count_override(f, bell_ring(&f->bell, f->tail));
}

static void take_off_unrung(struct ufile *f)
{
	if (!f->unrung_link)
		return;
	*f->unrung_link = f->unrung_next;
	if (f->unrung_next)
		f->unrung_next->unrung_link = f->unrung_link;
	f->unrung_link = NULL;
}

static void put_on_unrung(struct ufile *f)
{
	if (f->unrung_link)
		return;
	f->unrung_next = f->all->unrung;
	f->unrung_link = &f->all->unrung;
	if (f->unrung_next)
		f->unrung_next->unrung_link = &f->unrung_next;
	f->all->unrung = f;
}

static bool is_looked_at(const struct ufile *f)
{
	for (const struct ulane *l = f->lanes; l; l = l->next)
		if (atomic_load_explicit(&l->mem->looking, memory_order_relaxed))
			return true;
	return false;
}

static void ring_unrung(struct umads *all, bool also_looked_at)
{
	for (struct ufile *f = all->unrung, *next; f; f = next) {
		next = f->unrung_next;
		if (!also_looked_at && is_looked_at(f))
			continue;
		take_off_unrung(f);
		ring_bell(f);
	}
}

void urecv_ring_idle(struct umads *all)
{
	ring_unrung(all, false);
}

void urecv_ring_all(struct umads *all)
{
	ring_unrung(all, true);
}

/* The thread that we serve reads what it gets before it sleeps, if it is fast enough. */
static bool is_prompt(const struct ufile *f)
{
	for (const struct ulane *l = f->lanes; l && f == f->all->served; l = l->next)
		if (atomic_load_explicit(&l->mem->prompt, memory_order_relaxed))
			return true;
	return false;
}

/*
 * After a push.  A byte costs both sides a call, so it waits a moment where it may not be needed.
 * Programs of several threads, such as opensm, lose by that.
 */
static void pushed(struct ufile *f)
{
	if (f->all->in_turn && (is_prompt(f) || is_looked_at(f)))
		put_on_unrung(f);
	else
		ring_bell(f);
}

/* ---- the ring ---- */

/* Programs have read what stands before the head: their long messages need not be kept. */
static void reap(struct ufile *f)
{
	const struct ring_ref ring = ring_of(f);
	uint32_t head = ring_head(&ring);

	while (f->longs.first && (int32_t)(head - (uint32_t)f->longs.first->pos) > 0)
		free_held(f, take_first(&f->longs));
}

static bool push(struct ufile *f, const struct umad_record *rec)
{
	const struct ring_ref ring = ring_of(f);
	enum ring_result result = ring_push(&ring, &f->tail, rec);

	if (result == RING_BROKEN) {
		f->broken = true;
		f->all->unfinished = true;
	}
	return result == RING_OK;
}

/* The first of what is held goes into the ring: false if there is no room. */
static bool push_held(struct ufile *f)
{
	struct uheld *h = f->held.first;

	h->pos = f->tail;
	if (!push(f, &h->rec))
		return false;
	(void)take_first(&f->held);
	if (h->message)
		append(&f->longs, h);
	else
		free_held(f, h);
	return true;
}

static bool fill(struct ufile *f)
{
	bool any = false;

	while (f->held.first && push_held(f))
		any = true;
	return any;
}

/*
 * Twice: readers who made room before they saw that something is held need not have told.  Who
 * makes room again and again, but not for long, is heard at his next byte.
 */
void urecv_refill(struct ufile *f)
{
	const struct ring_ref ring = ring_of(f);
	bool more;

	reap(f);
	if (!f->held.first)
		return;
	more = fill(f);
	if (f->held.first && !f->broken && ring_hold(&ring, &f->page->held, f->tail))
		more |= fill(f);
	if (!f->held.first)
		ring_release(&f->page->held);
	if (more)
		pushed(f);
}

void urecv_bury(struct ufile *f, const struct ulane *dead)
{
	uint32_t overridden = dead->overridden + bell_bury(&f->bell, dead->number);

	/* Its own word may be anything. */
	f->ghosts +=
		(overridden - atomic_load_explicit(&dead->mem->settled, memory_order_acquire)) %
		GHOSTS_MAX;
	urecv_refill(f); /* it may not have told that there is room */
	ring_bell(f);
	if (f->ghosts)
		f->all->unfinished = true;
}

/* ---- what comes ---- */

static uint8_t gid_index(const struct ufile *f, const struct mad_addr *from)
{
	const struct fabric_port *port = fabric_port(f->node->page, f->port_number);

	for (uint32_t i = 0; from->has_grh && i < port->n_gids && i < FABRIC_MAX_GIDS; i++)
		if (memcmp(port->gid[i].raw, from->grh.local, MAD_GID) == 0)
			return (uint8_t)i;
	return 0;
}

static void hold(struct ufile *f, const struct umad_record *rec, uint8_t *message)
{
	struct uheld *h = spare_get(&f->all->spare_held, sizeof *h);
	uint64_t bytes = UMAD_MAD_COST + (message ? rec->length : 0);

	if (!h || !take_place(f, bytes)) {
		f->all->drops[UMAD_DROP_MEMORY] += !h;
		free(message);
		if (h)
			spare_put(&f->all->spare_held, h, UMAD_SPARE);
		return;
	}
	*h = (struct uheld){.rec = *rec, .message = message};
	append(&f->held, h);
}

/* Into the ring, or behind what waits for room.  message: its memory, if it is a long one. */
static void deliver(struct ufile *f, const struct umad_record *rec, uint8_t *message)
{
	bool waits = f->held.first;

	if (f->broken) {
		free(message);
		return;
	}
	if (!waits && !message && push(f, rec)) {
		pushed(f);
		return;
	}
	if (f->broken)
		return;
	hold(f, rec, message);
	/* Those who wait are looked at when there is room: their readers tell. */
	if (!waits)
		urecv_refill(f);
}

void urecv_one(struct mad_agent *a, const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	const struct uslot *slot = a->arg;
	struct umad_record rec;

	umad_make_received(slot->id, from, gid_index(slot->file, from), slot->file->rules.pkey, mad,
		MAD_SIZE, 0, &rec);
	deliver(slot->file, &rec, NULL);
}

static uint8_t *copy(const uint8_t *msg, size_t len)
{
	uint8_t *message = malloc(len);

	if (message)
		memcpy(message, msg, len);
	return message;
}

void urecv_long(struct mad_agent *a, const struct mad_addr *from, const uint8_t *msg, size_t len)
{
	const struct uslot *slot = a->arg;
	struct ufile *f = slot->file;
	uint8_t *message;
	struct umad_record rec;

	if (len <= MAD_SIZE) { /* of one segment: as long as its PayloadLength says */
		umad_make_received(slot->id, from, gid_index(f, from), f->rules.pkey, msg,
			(uint32_t)len, 0, &rec);
		deliver(f, &rec, NULL);
		return;
	}
	message = copy(msg, len);
	if (!message) {
		f->all->drops[UMAD_DROP_MEMORY]++;
		return;
	}
	umad_make_received(slot->id, from, gid_index(f, from), f->rules.pkey, msg, (uint32_t)len,
		++f->last_message, &rec);
	deliver(f, &rec, message);
}

void urecv_timeout(struct ufile *f, const struct umad_hdr *written, const uint8_t mad[MAD_HDR_SIZE])
{
	struct umad_record rec;

	umad_make_timeout(written, mad, &rec);
	deliver(f, &rec, NULL);
}

/* ---- long messages ---- */

static int to_memory(const uint8_t *message, size_t len)
{
	enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL };
	int fd = memfd_create("weft-mad", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret;

	if (fd < 0)
		return -errno;
	errno = EIO;
	if (pwrite(fd, message, len, 0) == (ssize_t)len && !fcntl(fd, F_ADD_SEALS, SEALS))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int urecv_fetch(struct ufile *f, uint64_t message)
{
	const struct uheld *h;

	reap(f);
	h = f->longs.first;
	while (h && h->rec.message != message)
		h = h->next;
	return h ? to_memory(h->message, h->rec.length) : -ENOENT;
}

void urecv_end(struct ufile *f)
{
	take_off_unrung(f);
	while (f->held.first)
		free_held(f, take_first(&f->held));
	while (f->longs.first)
		free_held(f, take_first(&f->longs));
}
