// SPDX-License-Identifier: BSD-3-Clause
/*
 * Device memory: a stretch of one memfd per process, so that it can be handed on by fd.  That
 * fd also stands for the process's device, as the command file of a real one does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca/objects.h"
#include "hca/proc.h"

enum { PAGE_LOG = 12, WORD = 4 };

struct hca_dm {
	uint32_t epoch, handle;
	uint64_t at, size; /* in the file */
	_Atomic uint32_t regions;
	uint32_t refs;       /* under the lock */
	struct hca_dm *next; /* by address */
};

static struct {
	struct lock lock;
	uint32_t epoch; /* of what follows; another one: it is the parent's */
	struct own_fd fd;
	uint8_t *base;
	struct hca_dm *first;
	uint32_t next_handle;
} card = {.fd = OWN_FD_NONE};

void dm_forked_child(void)
{
	atomic_store_explicit(&card.lock.word, 0, memory_order_relaxed);
}

static int make_file(void)
{
	int fd = memfd_create("weft-dm", MFD_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	rc = ftruncate(fd, HCA_DM_BYTES) ? -errno : fd;
	if (rc < 0)
		close(fd);
	return rc;
}

/* With the lock held: the memory of this process is there. */
static int ready(void)
{
	int fd;
	void *p;

	if (card.base && card.epoch == proc_epoch())
		return 0;
	fd = make_file();
	if (fd < 0)
		return fd;
	p = mmap(NULL, HCA_DM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || madvise(p, HCA_DM_BYTES, MADV_DONTFORK)) {
		int rc = -errno;

		if (p != MAP_FAILED)
			munmap(p, HCA_DM_BYTES);
		close(fd);
		return rc;
	}
	/* A forked child finds zeros there instead of a hole. */
	rdv_note_mapping(p, HCA_DM_BYTES);
	card.base = p;
	card.fd = own_fd(fd);
	card.first = NULL;
	card.epoch = proc_epoch();
	return 0;
}

/* ---- allocation ---- */

static uint64_t align_up(uint64_t v, uint32_t log)
{
	return (v + (1ull << log) - 1) & ~((1ull << log) - 1);
}

/* With the lock held: the first gap that fits; *link is where it goes on the list. */
static bool find_gap(uint64_t size, uint32_t log_align, uint64_t *at, struct hca_dm ***link)
{
	struct hca_dm **l = &card.first;
	uint64_t end = 0;

	for (;; l = &(*l)->next) {
		uint64_t limit = *l ? (*l)->at : HCA_DM_BYTES;

		*at = align_up(end, log_align);
		if (*at <= limit && size <= limit - *at)
			break;
		if (!*l)
			return false;
		end = (*l)->at + (*l)->size;
	}
	*link = l;
	return true;
}

static int place(struct hca_dm *dm, uint32_t log_align)
{
	struct hca_dm **link;
	int rc = ready();

	if (rc)
		return rc;
	if (!find_gap(dm->size, log_align, &dm->at, &link))
		return -ENOMEM;
	dm->epoch = proc_epoch();
	dm->handle = ++card.next_handle;
	dm->next = *link;
	*link = dm;
	memset(card.base + dm->at, 0, dm->size);
	return 0;
}

int hca_dm_alloc(uint64_t size, uint32_t log_align, struct hca_dm **out)
{
	struct hca_dm *dm;
	int rc = proc_attach(NULL);

	if (rc)
		return rc;
	if (!size || log_align > PAGE_LOG)
		return -EINVAL;
	if (size > HCA_DM_BYTES)
		return -ENOMEM;
	dm = calloc(1, sizeof *dm);
	if (!dm)
		return -ENOMEM;
	dm->size = size;
	dm->refs = 1;
	/* Words are the unit of access, whatever was asked for. */
	lock_take(&card.lock);
	rc = place(dm, log_align < 3 ? 3 : log_align);
	lock_drop(&card.lock);
	if (rc) {
		free(dm);
		return rc;
	}
	*out = dm;
	return 0;
}

static void delist(struct hca_dm *dm)
{
	struct hca_dm **l = &card.first;

	while (*l && *l != dm)
		l = &(*l)->next;
	if (*l)
		*l = dm->next;
}

void hca_dm_put(struct hca_dm *dm)
{
	lock_take(&card.lock);
	if (--dm->refs) {
		dm = NULL;
	} else if (dm->epoch == card.epoch) {
		delist(dm);
	}
	lock_drop(&card.lock);
	free(dm);
}

int hca_dm_free(struct hca_dm *dm)
{
	if (dm->epoch == proc_epoch() && atomic_load_explicit(&dm->regions, memory_order_acquire))
		return -EBUSY;
	hca_dm_put(dm);
	return 0;
}

uint32_t hca_dm_handle(const struct hca_dm *dm)
{
	return dm->handle;
}

int hca_dm_get(uint32_t handle, struct hca_dm **out)
{
	struct hca_dm *dm;

	lock_take(&card.lock);
	for (dm = card.epoch == proc_epoch() ? card.first : NULL; dm; dm = dm->next)
		if (dm->handle == handle)
			break;
	if (dm)
		dm->refs++;
	lock_drop(&card.lock);
	*out = dm;
	return dm ? 0 : -ENOENT;
}

/* ---- access ---- */

static bool in_range(const struct hca_dm *dm, uint64_t offset, uint64_t length)
{
	return dm->epoch == proc_epoch() && offset <= dm->size && length <= dm->size - offset;
}

int hca_dm_write(struct hca_dm *dm, uint64_t offset, const void *from, uint64_t length)
{
	if (offset % WORD || length % WORD || !in_range(dm, offset, length))
		return -EINVAL;
	memcpy(card.base + dm->at + offset, from, length);
	return 0;
}

int hca_dm_read(struct hca_dm *dm, uint64_t offset, void *to, uint64_t length)
{
	if (offset % WORD || length % WORD || !in_range(dm, offset, length))
		return -EINVAL;
	memcpy(to, card.base + dm->at + offset, length);
	return 0;
}

int hca_dm_reg(struct hca_pd *pd, struct hca_dm *dm, uint64_t offset, uint64_t length,
	unsigned access, struct hca_mr **out)
{
	const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			       IBV_ACCESS_OPTIONAL_RANGE;
	const unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	struct mr_region r = {.length = length, .access = access};
	int rc;

	if (!in_range(dm, offset, length) || access & ~known)
		return -EINVAL;
	if (access & writes && !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	r.addr = (uintptr_t)card.base + dm->at + offset;
	rc = mr_add(pd, &r, out);
	if (rc)
		return rc;
	atomic_fetch_add_explicit(&dm->regions, 1, memory_order_relaxed);
	lock_take(&card.lock);
	dm->refs++;
	lock_drop(&card.lock);
	(*out)->dm = dm;
	(*out)->fixed = true;
	return 0;
}

void dm_region_gone(struct hca_dm *dm)
{
	atomic_fetch_sub_explicit(&dm->regions, 1, memory_order_release);
	hca_dm_put(dm);
}

/* ---- the fd ---- */

int hca_cmd_fd(void)
{
	int fd, rc;

	lock_take(&card.lock);
	rc = ready();
	if (!rc && !own_fd_ok(&card.fd))
		rc = -EBADF;
	fd = rc ? rc : fcntl(card.fd.fd, F_DUPFD_CLOEXEC, 0);
	if (!rc && fd < 0)
		fd = -errno;
	lock_drop(&card.lock);
	return fd;
}

bool hca_cmd_fd_is_ours(int fd)
{
	struct stat st;
	int saved = errno;
	bool ours;

	lock_take(&card.lock);
	ours = card.base && card.epoch == proc_epoch() && !fstat(fd, &st) &&
	       st.st_dev == card.fd.dev && st.st_ino == card.fd.ino;
	lock_drop(&card.lock);
	errno = saved;
	return ours;
}
