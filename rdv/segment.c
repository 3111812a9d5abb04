// SPDX-License-Identifier: BSD-3-Clause
/* Mapping what weftd hands out. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sparse.h"
#include "rdv/client.h"
#include "rdv/segment.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

int segment_check(int fd, uint64_t size)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 ||
		(uint64_t)st.st_size != size)
		return -EPROTO;
	return 0;
}

int segment_map(int fd, uint64_t size, void *at, void **base)
{
	int fixed = at ? MAP_FIXED : 0;
	int ret = segment_check(fd, size);

	if (ret) {
		log_line(LOG_LVL_ERROR, "a segment is not sealed or has a wrong size; refused");
		return ret;
	}
	*base = mmap(at, size, sparse_prot(), MAP_SHARED | MAP_NORESERVE | fixed, fd, 0);
	if (*base == MAP_FAILED) {
		ret = -errno;
		log_line(LOG_LVL_ERROR,
			"cannot map a segment of %llu MiB: %s; raise the limit of address space "
			"(ulimit -v)",
			(unsigned long long)size >> 20, strerror(-ret));
		return ret;
	}
	madvise(*base, size, MADV_DONTFORK);
	madvise(*base, size, MADV_DONTDUMP);
	rdv_note_mapping(*base, size);
	return 0;
}

/* Replaces in place what an earlier weftd gave, so that pointers into it stay good. */
static int map_page(struct client *c, int fd)
{
	size_t size = FABRIC_PAGE_BYTES;
	void *at = (void *)c->att.fabric;
	void *p;
	int ret = segment_check(fd, size);

	if (ret) {
		log_line(LOG_LVL_ERROR, "the fabric page has a wrong size; refused");
		return ret;
	}
	p = mmap(at, size, PROT_READ, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	c->att.fabric = p;
	return 0;
}

static int map_seg(struct client *c, int fd)
{
	void *base;
	int ret = segment_map(fd, c->seg_size, NULL, &base);

	if (!ret)
		c->att.seg = base;
	return ret;
}

static int map_hub(struct client *c, int fd)
{
	void *base;
	int ret = segment_map(fd, c->seg_size, c->att.hub, &base);

	if (!ret && c->att.hub != base)
		c->att.hub = base;
	return ret;
}

static int map_all(struct client *c, const struct proto_in *in)
{
	int ret = map_page(c, in->fds[0]);

	if (!ret)
		ret = map_hub(c, in->fds[1]);
	if (!ret && !c->att.seg)
		ret = map_seg(c, in->fds[2]);
	return ret;
}

static void discard(void *base, size_t size)
{
	if (!base)
		return;
	rdv_forget_mapping(base);
	munmap(base, size);
}

void segment_discard(struct client *c)
{
	discard((void *)c->att.fabric, FABRIC_PAGE_BYTES);
	discard(c->att.hub, c->seg_size);
	discard(c->att.seg, c->seg_size);
	own_fd_close(&c->seg_fd);
	own_fd_close(&c->async_fd);
	own_fd_close(&c->arena_fd);
	memset(&c->att, 0, sizeof c->att);
}

/* One that a new weftd never had stays what it was. */
static void adopt_arena(struct client *c, struct proto_in *in)
{
	if (!(in->payload.attached.flags & PROTO_ARENA))
		return;
	lock_take(&c->post_lock);
	if (!own_fd_ok(&c->arena_fd))
		c->arena_fd = own_fd(proto_take_fd(in, 4));
	lock_drop(&c->post_lock);
}

int segment_adopt(struct client *c, struct proto_in *in)
{
	const struct proto_attached *reply = &in->payload.attached;
	int ret;

	c->seg_size = reply->segment_size;
	ret = map_all(c, in);
	if (!ret) {
		if (!own_fd_ok(&c->seg_fd))
			c->seg_fd = own_fd(proto_take_fd(in, 2));
		if (!own_fd_ok(&c->async_fd))
			c->async_fd = own_fd(proto_take_fd(in, 3));
		adopt_arena(c, in);
		/* Other threads read it: what stays what it was is not written again. */
		if (c->att.attach_id != reply->attach_id)
			c->att.attach_id = reply->attach_id;
		if (c->att.async_fd != c->async_fd.fd)
			c->att.async_fd = c->async_fd.fd;
		atomic_store_explicit(&c->att.hub_id, reply->hub_id, memory_order_relaxed);
	}
	proto_close(in);
	return ret;
}

int rdv_map_segment(int seg_fd, struct seg **seg)
{
	void *base;
	int ret = segment_map(seg_fd, client.seg_size, NULL, &base);

	*seg = ret ? NULL : base;
	return ret;
}

void rdv_unmap_segment(struct seg *seg)
{
	discard(seg, client.seg_size);
}
