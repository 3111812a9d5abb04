// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/umad_send.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/umad_recv.h"
#include "mad/rmpp.h"

enum { BYTES_AT_A_TIME = 4096 };

/* ---- flights ---- */

/* A long message is kept until all of it has arrived. */
static uint64_t cost(const struct umad_send *out)
{
	return UMAD_MAD_COST + (out->length > MAD_SIZE ? out->length : 0);
}

static struct uflight *new_flight(struct ulane *l, const struct umad_send *out)
{
	struct ufile *f = l->file;
	struct uflight *t;

	if (!urecv_promise(f, cost(out)))
		return NULL;
	t = spare_get(&f->all->spare_flights, sizeof *t);
	if (!t) {
		urecv_release(f, cost(out));
		return NULL;
	}
	*t = (struct uflight){
		.next = f->flights,
		.link = &f->flights,
		.hdr = out->hdr,
		.hash = out->hash,
		.bytes = cost(out),
		.lane = (uint16_t)l->number,
		.listed = out->listed,
	};
	if (t->next)
		t->next->link = &t->next;
	f->flights = t;
	return t;
}

static void strike(const struct ufile *f, uint64_t hash, uint16_t lane, bool listed)
{
	if (listed)
		tids_strike(&f->page->tids, hash, lane);
}

static void end_flight(struct ufile *f, struct uflight *t)
{
	strike(f, t->hash, t->lane, t->listed);
	urecv_release(f, t->bytes);
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	spare_put(&f->all->spare_flights, t, UMAD_SPARE);
}

void usend_done(struct mad_agent *a, struct mad_send *s, int status, const uint8_t *response)
{
	struct uslot *slot = a->arg;
	struct ufile *f = slot->file;
	struct uflight *t = s->context;
	struct umad_hdr written = t->hdr;

	/* Struck out first: who reads the answer may use the id again at once. */
	end_flight(f, t);
	if (status == -ETIMEDOUT)
		urecv_timeout(f, &written, s->mad);
	else if (!status && response)
		urecv_long(a, s->response_from, response, s->response_len);
}

void usend_cancel_all(struct uslot *slot)
{
	while (slot->agent.sends) {
		end_flight(slot->file, slot->agent.sends->context);
		mad_cancel(slot->agent.sends);
	}
}

/* ---- records ---- */

/* What weftd knows of the port's GID of that index; none: all zero. */
static const uint8_t *local_gid(const struct ufile *f, uint8_t index)
{
	_Static_assert(FABRIC_MAX_GIDS > UINT8_MAX, "an index is one of the table");
	static const uint8_t none[MAD_GID];
	const struct fabric_port *port = fabric_port(f->node->page, f->port_number);

	return index < port->n_gids ? port->gid[index].raw : none;
}

static struct umad_sender sender_of(const struct ufile *f)
{
	return (struct umad_sender){
		.agents = f->word,
		.pkey = f->rules.pkey,
		.gone = f->facts.gone,
		.needs_grh = !f->facts.has_smi,
		.n_gids = fabric_port(f->node->page, f->port_number)->n_gids,
	};
}

/* Hands a message to the layer.  Without a timeout nobody waits for it to end. */
static int hand_over(struct ufile *f, struct uflight *t, const struct umad_send *out, uint8_t *msg)
{
	struct mad_agent *a = &f->slot[out->hdr.id]->agent;
	struct mad_addr to = umad_addr_of(&out->hdr, local_gid(f, out->hdr.gid_index));
	struct mad_send *s;

	mad_own_tid(a, msg);
	to.port = (uint8_t)f->port_number;
	if (out->rmpp)
		return mad_send_long(a, &to, msg, out->length, out->hdr.timeout_ms,
			out->hdr.retries, true, t, &s);
	return mad_send(a, &to, msg, out->hdr.timeout_ms, out->hdr.retries, true, t, &s);
}

/* msg: out->length bytes, or if that is less a whole MAD.  What could not be sent is counted. */
static int send_out(struct ulane *l, const struct umad_send *out, uint8_t *msg)
{
	struct ufile *f = l->file;
	bool waits = out->rmpp || out->hdr.timeout_ms;
	struct uflight *t = waits ? new_flight(l, out) : NULL;
	int ret = waits && !t ? -ENOBUFS : hand_over(f, t, out, msg);

	if (ret)
		f->all->drops[UMAD_DROP_UNSENT]++;
	if (ret && t)
		end_flight(f, t);
	else if (ret || !waits)
		strike(f, out->hash, (uint16_t)l->number, out->listed);
	return ret;
}

static bool check(struct ufile *f, const struct umad_record *rec, struct umad_send *out)
{
	struct umad_sender sender = sender_of(f);
	const char *why;

	if (!umad_check_record(&sender, rec, out, &why))
		return true;
	f->all->drops[UMAD_DROP_RECORD]++;
	return false;
}

static void send_record(struct ulane *l, struct umad_record *rec)
{
	struct umad_send out;

	/* A long message comes by a call. */
	if (!check(l->file, rec, &out))
		return;
	if (out.length > MAD_SIZE) {
		l->file->all->drops[UMAD_DROP_RECORD]++;
		return;
	}
	memset(rec->mad + out.length, 0, MAD_SIZE - out.length);
	(void)send_out(l, &out, rec->mad);
}

/* ---- lanes ---- */

static void breaks(struct ufile *f)
{
	f->broken = true;
	f->all->unfinished = true;
}

uint32_t usend_lane(struct ulane *l, uint32_t n)
{
	const struct ring_ref ring = {&l->mem->send, l->mem->send_slot, UMAD_SEND_LOG_SIZE};
	struct umad_record rec;

	for (uint32_t i = 0; i < n; i++) {
		enum ring_result result = ring_pop(&ring, &l->head, &rec);

		if (result == RING_BROKEN)
			breaks(l->file);
		if (result != RING_OK)
			return i;
		send_record(l, &rec);
	}
	return n;
}

uint32_t usend_some(struct ufile *f, uint32_t n)
{
	uint32_t sent = 0;

	for (struct ulane *l = f->lanes; l && sent < n; l = l->next)
		sent += usend_lane(l, n - sent);
	return sent;
}

/* The lane that was first is the last one next time. */
static void rotate(struct ufile *f)
{
	struct ulane *first = f->lanes, **end = &f->lanes;

	if (!first || !first->next)
		return;
	f->lanes = first->next;
	f->lanes->link = &f->lanes;
	while (*end)
		end = &(*end)->next;
	*end = first;
	first->link = end;
	first->next = NULL;
}

/* An eager file is looked at in each turn: its socket can always be written. */
static void set_eager(struct ufile *f, bool eager)
{
	struct epoll_event ev = {.events = EPOLLIN | (eager ? EPOLLOUT : 0), .data.ptr = &f->sock};

	if (f->eager == eager)
		return;
	f->eager = eager;
	epoll_ctl(f->all->server->epfd, EPOLL_CTL_MOD, f->sock.fd, &ev);
}

/* Takes the bytes that lie in the socket, not all of a flood.  False: it has been closed. */
static bool take_bytes(const struct ufile *f)
{
	char bytes[BYTES_AT_A_TIME];

	return recv(f->sock.fd, bytes, sizeof bytes, MSG_DONTWAIT) != 0;
}

/* All that was written before the last close. */
static void send_rest(struct ufile *f)
{
	for (struct ulane *l = f->lanes; l; l = l->next)
		(void)usend_lane(l, 1u << UMAD_SEND_LOG_SIZE);
}

bool usend_turn(struct ufile *f, uint32_t n)
{
	uint32_t left = n - usend_some(f, n);

	if (!left) {
		rotate(f);
		return true; /* the bytes that brought us here stay */
	}
	if (!take_bytes(f)) {
		send_rest(f);
		return false;
	}
	for (struct ulane *l = f->lanes; l; l = l->next)
		ring_heard(&l->mem->knocked);
	set_eager(f, usend_some(f, left) == left);
	urecv_refill(f);
	return true;
}

/* ---- messages longer than a record ---- */

/* A copy of what is in a memfd that nobody can change. */
static int copy_memory(int memory, size_t length, uint8_t **msg)
{
	enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };
	int seals = fcntl(memory, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(memory, &st) < 0 ||
		(size_t)st.st_size != length)
		return -EINVAL;
	*msg = malloc(length);
	if (!*msg)
		return -ENOMEM;
	if (pread(memory, *msg, length, 0) == (ssize_t)length)
		return 0;
	free(*msg);
	return -EINVAL;
}

int usend_message(struct ulane *l, const struct umad_record *rec, int memory)
{
	struct umad_record copy = *rec;
	struct umad_send out;
	uint8_t *msg;
	int ret;

	(void)usend_lane(l, 1u << UMAD_SEND_LOG_SIZE);
	if (rec->length <= MAD_SIZE || rec->length > (uint32_t)RMPP_SEGMENTS_MAX * MAD_SIZE)
		return -EINVAL;
	ret = copy_memory(memory, rec->length, &msg);
	if (ret)
		return ret;
	memcpy(copy.mad, msg, MAD_SIZE); /* what is sent is what is checked */
	ret = check(l->file, &copy, &out) ? send_out(l, &out, msg) : -EINVAL;
	free(msg);
	return ret;
}
