// SPDX-License-Identifier: BSD-3-Clause
/*
 * Device memory: one memfd per process, so that it can be handed on by fd.  That fd also stands
 * for the process's device, as the command file of a real one does: who imports it finds the
 * device memory of that process by handle.
 */
#include "hca/mem/dm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/at_open.h"
#include "base/file_limit.h"
#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/mem/mr.h"
#include "hca/mem/mr_kinds.h"
#include "hca/proc/proc.h"

#define CARD_MAGIC 0x31444d4454464557ull /* as bytes: "WEFTDMD1" */
enum {
	PAGE_LOG = 12,
	WORD = 4,
	HEAD_BYTES = 4096,
	CARD_BYTES = HEAD_BYTES + HCA_DM_BYTES,
	DM_MAX = 510, /* at a time */
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
};

/* The first page of the file.  Others read it: nothing in it is trusted. */
struct card_head {
	uint64_t magic;
	uint64_t pad;
	/* handle - 1 -> where in the memory behind this page; size 0: free */
	struct {
		_Atomic uint32_t at, size;
	} dm[DM_MAX];
};

_Static_assert(sizeof(struct card_head) == HEAD_BYTES, "one page");

/* Another process's device memory, mapped. */
struct hca_card {
	uint32_t epoch;
	_Atomic uint32_t refs;
	struct card_head *head;
};

struct hca_dm {
	uint32_t epoch, handle;
	uint64_t at, size; /* in the memory of the card */
	uint8_t *mem;
	struct hca_card *card; /* NULL: our own */
	_Atomic uint32_t regions;
	uint32_t refs;       /* under the lock */
	struct hca_dm *next; /* of our own, by address */
};

static struct {
	struct lock lock;
	uint32_t epoch; /* of what follows; another one: it is the parent's */
	struct own_fd fd;
	struct card_head *head;
	struct hca_dm *first;
} own = {.fd = OWN_FD_NONE};

void dm_forked_child(void)
{
	atomic_store_explicit(&own.lock.word, 0, memory_order_relaxed);
}

/* A forked child finds zeros there instead of a hole. */
static AT_OPEN int map_card(int fd, struct card_head **head)
{
	void *p = mmap(NULL, CARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	if (madvise(p, CARD_BYTES, MADV_DONTFORK)) {
		int rc = -errno;

		munmap(p, CARD_BYTES);
		return rc;
	}
	rdv_note_mapping(p, CARD_BYTES);
	*head = p;
	return 0;
}

static uint8_t *memory_of(struct card_head *head)
{
	return (uint8_t *)(head + 1);
}

/* With the lock held: the memory of this process is there. */
static AT_OPEN int ready(void)
{
	int fd, rc;

	if (own.head && own.epoch == proc_epoch())
		return 0;
	if (!file_limit_allows(CARD_BYTES))
		return -EFBIG;
	fd = memfd_create("weft-dm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	rc = ftruncate(fd, CARD_BYTES) || fcntl(fd, F_ADD_SEALS, SEALS) ? -errno : 0;
	if (!rc)
		rc = map_card(fd, &own.head);
	if (rc) {
		close(fd);
		return rc;
	}
	own_fd_close(&own.fd); /* of the process we were forked from */
	own.fd = own_fd(fd);
	own.head->magic = CARD_MAGIC;
	own.first = NULL;
	own.epoch = proc_epoch();
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
	struct hca_dm **l = &own.first;
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

/* With the lock held: a free handle, or 0. */
static uint32_t free_handle(void)
{
	for (uint32_t i = 0; i < DM_MAX; i++)
		if (!atomic_load_explicit(&own.head->dm[i].size, memory_order_relaxed))
			return i + 1;
	return 0;
}

static int place(struct hca_dm *dm, uint32_t log_align)
{
	struct hca_dm **link;
	int rc = ready();

	if (rc)
		return rc;
	dm->handle = free_handle();
	if (!dm->handle || !find_gap(dm->size, log_align, &dm->at, &link))
		return -ENOMEM;
	dm->epoch = proc_epoch();
	dm->mem = memory_of(own.head) + dm->at;
	dm->next = *link;
	*link = dm;
	memset(dm->mem, 0, dm->size);
	atomic_store_explicit(&own.head->dm[dm->handle - 1].at, dm->at, memory_order_relaxed);
	atomic_store_explicit(&own.head->dm[dm->handle - 1].size, dm->size, memory_order_release);
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
	lock_take(&own.lock);
	rc = place(dm, log_align < 3 ? 3 : log_align);
	lock_drop(&own.lock);
	if (rc) {
		free(dm);
		return rc;
	}
	*out = dm;
	return 0;
}

static void delist(struct hca_dm *dm)
{
	struct hca_dm **l = &own.first;

	while (*l && *l != dm)
		l = &(*l)->next;
	if (!*l)
		return;
	*l = dm->next;
	atomic_store_explicit(&own.head->dm[dm->handle - 1].size, 0, memory_order_release);
}

void hca_dm_put(struct hca_dm *dm)
{
	bool last;

	lock_take(&own.lock);
	last = !--dm->refs;
	if (last && !dm->card && dm->epoch == own.epoch && dm->epoch == proc_epoch())
		delist(dm);
	lock_drop(&own.lock);
	if (!last)
		return;
	if (dm->card)
		hca_card_put(dm->card);
	free(dm);
}

int hca_dm_free(struct hca_dm *dm)
{
	if (dm->epoch == proc_epoch() && atomic_load_explicit(&dm->regions, memory_order_acquire))
		return log_busy("ibv_free_dm", "regions of it are registered");
	hca_dm_put(dm);
	return 0;
}

uint32_t hca_dm_handle(const struct hca_dm *dm)
{
	return dm->handle;
}

/* ---- import ---- */

static int get_own(uint32_t handle, struct hca_dm **out)
{
	struct hca_dm *dm;

	lock_take(&own.lock);
	for (dm = own.epoch == proc_epoch() ? own.first : NULL; dm; dm = dm->next)
		if (dm->handle == handle)
			break;
	if (dm)
		dm->refs++;
	lock_drop(&own.lock);
	*out = dm;
	return dm ? 0 : -ENOENT;
}

int hca_dm_import(struct hca_card *card, uint32_t handle, struct hca_dm **out)
{
	struct hca_dm *dm;
	uint32_t at, size;

	if (!card)
		return get_own(handle, out);
	if (card->epoch != proc_epoch())
		return -EINVAL;
	if (!handle || handle > DM_MAX)
		return -ENOENT;
	size = atomic_load_explicit(&card->head->dm[handle - 1].size, memory_order_acquire);
	at = atomic_load_explicit(&card->head->dm[handle - 1].at, memory_order_relaxed);
	if (!size || at > HCA_DM_BYTES || size > HCA_DM_BYTES - at)
		return -ENOENT;
	dm = calloc(1, sizeof *dm);
	if (!dm)
		return -ENOMEM;
	dm->epoch = proc_epoch();
	dm->handle = handle;
	dm->at = at;
	dm->size = size;
	dm->mem = memory_of(card->head) + at;
	dm->card = card;
	dm->refs = 1;
	atomic_fetch_add_explicit(&card->refs, 1, memory_order_relaxed);
	*out = dm;
	return 0;
}

int hca_card_import(int fd, struct hca_card **out)
{
	struct hca_card *card;
	struct stat st;
	int rc;

	if (fstat(fd, &st))
		return -errno;
	/* Sealed, so that nobody takes the pages away from under us. */
	if (!S_ISREG(st.st_mode) || st.st_size != CARD_BYTES || fcntl(fd, F_GET_SEALS) != SEALS)
		return -EINVAL;
	card = calloc(1, sizeof *card);
	if (!card)
		return -ENOMEM;
	rc = map_card(fd, &card->head);
	if (!rc && card->head->magic != CARD_MAGIC) {
		rdv_forget_mapping(card->head);
		munmap(card->head, CARD_BYTES);
		rc = -EINVAL;
	}
	if (rc) {
		free(card);
		return rc;
	}
	card->epoch = proc_epoch();
	atomic_store_explicit(&card->refs, 1, memory_order_relaxed);
	*out = card;
	return 0;
}

void hca_card_put(struct hca_card *card)
{
	if (atomic_fetch_sub_explicit(&card->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (card->epoch == proc_epoch()) {
		rdv_forget_mapping(card->head);
		munmap(card->head, CARD_BYTES);
	}
	free(card);
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
	memcpy(dm->mem + offset, from, length);
	return 0;
}

int hca_dm_read(struct hca_dm *dm, uint64_t offset, void *to, uint64_t length)
{
	if (offset % WORD || length % WORD || !in_range(dm, offset, length))
		return -EINVAL;
	memcpy(to, dm->mem + offset, length);
	return 0;
}

int hca_dm_reg(struct hca_pd *pd, struct hca_dm *dm, uint64_t offset, uint64_t length,
	unsigned access, struct hca_mr **out)
{
	const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			       IBV_ACCESS_OPTIONAL_RANGE;
	const unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	struct mr_region r = {.length = length, .access = access, .kind = &mr_of_dm, .of = dm};
	int rc;

	if (!in_range(dm, offset, length) || access & ~known)
		return -EINVAL;
	if (access & writes && !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	r.addr = (uintptr_t)dm->mem + offset;
	rc = mr_add(pd, &r, out);
	if (rc)
		return rc;
	atomic_fetch_add_explicit(&dm->regions, 1, memory_order_relaxed);
	lock_take(&own.lock);
	dm->refs++;
	lock_drop(&own.lock);
	return 0;
}

int dm_drop(struct hca_mr *mr)
{
	struct hca_dm *dm = mr->of;

	atomic_fetch_sub_explicit(&dm->regions, 1, memory_order_release);
	hca_dm_put(dm);
	return 0;
}

/* ---- the fd ---- */

AT_OPEN int hca_cmd_fd(void)
{
	int fd, rc;

	lock_take(&own.lock);
	rc = ready();
	if (!rc && !own_fd_ok(&own.fd))
		rc = -EBADF;
	fd = rc ? rc : fcntl(own.fd.fd, F_DUPFD_CLOEXEC, 0);
	if (!rc && fd < 0)
		fd = -errno;
	lock_drop(&own.lock);
	return fd;
}

bool hca_cmd_fd_is_ours(int fd)
{
	struct stat st;
	int saved = errno;
	bool ours;

	lock_take(&own.lock);
	ours = own.head && own.epoch == proc_epoch() && !fstat(fd, &st) &&
	       st.st_dev == own.fd.dev && st.st_ino == own.fd.ino;
	lock_drop(&own.lock);
	errno = saved;
	return ours;
}
