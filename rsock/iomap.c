// SPDX-License-Identifier: BSD-3-Clause
/*
 * Direct placement: riomap() tells the peer of a buffer, in the order of the stream, and
 * riowrite() of the peer puts bytes there by RDMA WRITE.
 */
#include "rsock/iomap.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rsock/stream.h"
#include "rsock/table.h"
#include "rsock/wait.h"

enum { WORD = 64 };

/* ---- the peer's mappings ---- */

int iomap_heard(struct rsocket *s, enum rs_msg type, const struct rs_ctl *ctl)
{
	uint32_t index = be32toh(ctl->index);
	struct rs_peer_map m = {
		.offset = be64toh(ctl->offset),
		.len = be64toh(ctl->len),
		.addr = be64toh(ctl->addr),
		.rkey = be32toh(ctl->rkey),
		.used = type == RS_IOMAP,
	};

	if (index >= (uint32_t)s->opt.iomap_size || m.offset + m.len < m.offset ||
		m.addr + m.len < m.addr)
		return -EPROTO;
	s->st.peer_maps[index] = m;
	return 0;
}

static const struct rs_peer_map *find_peer_map(const struct rsocket *s, uint64_t offset)
{
	for (int i = 0; s->st.peer_maps && i < s->opt.iomap_size; i++) {
		const struct rs_peer_map *m = &s->st.peer_maps[i];

		if (m->used && offset >= m->offset && offset - m->offset < m->len)
			return m;
	}
	return NULL;
}

/* ---- our own ---- */

static void free_map(struct rs_iomap *m)
{
	if (m->mr)
		ibv_dereg_mr(m->mr);
	free(m);
}

void iomap_free_all(struct rsocket *s)
{
	while (s->st.maps) {
		struct rs_iomap *m = s->st.maps;

		s->st.maps = m->next;
		free_map(m);
	}
}

static int take_index(struct stream *st)
{
	for (uint32_t i = 0; i < st->n_peer_maps; i++) {
		uint64_t bit = 1ull << i % WORD;

		if (st->announced[i / WORD] & bit)
			continue;
		st->announced[i / WORD] |= bit;
		return i;
	}
	return -ENOMEM; /* the peer has room for no more */
}

static void give_index(struct stream *st, int index)
{
	if (index >= 0)
		st->announced[index / WORD] &= ~(1ull << index % WORD);
}

static bool overlaps(const struct stream *st, uint64_t offset, size_t len)
{
	for (const struct rs_iomap *m = st->maps; m; m = m->next)
		if (m->index >= 0 && offset < m->offset + m->len && m->offset < offset + len)
			return true;
	return false;
}

/* Says it as soon as there is credit. */
static int announce(struct rsocket *s, enum rs_msg type, const struct rs_iomap *m)
{
	int ret;

	while ((ret = stream_say(s, type, m)) == -EAGAIN) {
		ret = rs_wait(s, POLLOUT, 0);
		if (ret)
			return ret;
	}
	return ret;
}

static int map(struct rsocket *s, struct rs_iomap *m, int prot)
{
	int access = prot ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
	int ret;

	if (prot) {
		if (overlaps(&s->st, m->offset, m->len))
			return -EINVAL;
		m->index = take_index(&s->st);
		if (m->index < 0)
			return m->index;
	}
	m->mr = ibv_reg_mr(s->id->pd, m->buf, m->len, access);
	ret = m->mr ? 0 : -errno;
	if (!ret && prot)
		ret = announce(s, RS_IOMAP, m);
	if (ret)
		give_index(&s->st, m->index);
	return ret;
}

static off_t iomap(struct rsocket *s, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rs_iomap *m;
	int ret;

	if (is_dgram(s) || flags || (prot != PROT_NONE && prot != PROT_WRITE) || !len ||
		offset < -1)
		return -EINVAL;
	if (s->state != RS_CONNECTED && s->state != RS_ACCEPTING)
		return -ENOTCONN;
	m = calloc(1, sizeof *m);
	if (!m)
		return -ENOMEM;
	*m = (struct rs_iomap){.buf = buf, .len = len, .index = -1};
	m->offset = offset == -1 ? (uintptr_t)buf : (uint64_t)offset;
	ret = map(s, m, prot);
	if (ret) {
		free_map(m);
		return ret;
	}
	m->next = s->st.maps;
	s->st.maps = m;
	return m->offset;
}

static int iounmap(struct rsocket *s, const void *buf, size_t len)
{
	struct rs_iomap **link = &s->st.maps, *m;

	while (*link && ((*link)->buf != buf || (*link)->len != len))
		link = &(*link)->next;
	m = *link;
	if (!m)
		return -EINVAL;
	*link = m->next;
	/* The peer may write no more whether or not it can be told. */
	if (m->index >= 0 && s->state == RS_CONNECTED)
		(void)announce(s, RS_IOUNMAP, m);
	give_index(&s->st, m->index);
	free_map(m);
	return 0;
}

/* Why a place cannot be written to. */
static int no_map(const struct rsocket *s)
{
	if (s->state == RS_ACCEPTING || s->state == RS_CONNECTING)
		return -EAGAIN;
	return s->state == RS_CONNECTED ? -EINVAL : -ENOTCONN;
}

static ssize_t iowrite(struct rsocket *s, const void *buf, size_t count, uint64_t offset, int flags)
{
	bool wait = !(flags & MSG_DONTWAIT) && !s->nonblock;
	size_t done = 0;
	ssize_t n = 0;

	while (done < count) {
		const struct rs_peer_map *m = find_peer_map(s, offset + done);
		size_t len = count - done;

		if (m) {
			uint64_t at = offset + done - m->offset;

			if (len > m->len - at)
				len = m->len - at;
			n = stream_write(
				s, (const uint8_t *)buf + done, len, m->addr + at, m->rkey);
		} else {
			n = no_map(s);
		}
		if (n > 0) {
			done += n;
			continue;
		}
		rs_progress(s, false);
		if (n != -EAGAIN || (!wait && !stream_writable(s)))
			break;
		if (wait) {
			n = rs_wait(s, POLLOUT, 0);
			if (n)
				break;
		}
	}
	return done ? (ssize_t)done : n;
}

/* ---- public ---- */

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rsocket *s = rs_enter(socket);

	if (!s)
		return -1;
	rs_progress(s, false);
	return rs_leave(s, iomap(s, buf, len, prot, flags, offset));
}

int riounmap(int socket, void *buf, size_t len)
{
	struct rsocket *s = rs_enter(socket);

	return s ? rs_leave(s, iounmap(s, buf, len)) : -1;
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct rsocket *s = rs_enter(socket);

	if (!s)
		return -1;
	rs_progress(s, false);
	return rs_leave(s, is_dgram(s) ? -EINVAL : iowrite(s, buf, count, offset, flags));
}
