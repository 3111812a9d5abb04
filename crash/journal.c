// SPDX-License-Identifier: BSD-3-Clause
#include "crash/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_limit.h"
#include "base/hash.h"

enum { DATA_ALIGN = 64, OPEN_TRIES = 8 };

/* ---- the file ---- */

static uint64_t round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

static void lay_out(struct journal_head *h, uint64_t size)
{
	uint64_t records = size / JOURNAL_RECORDS_SHARE / sizeof(struct journal_record);

	*h = (struct journal_head){.magic = JOURNAL_MAGIC, .size = size};
	h->records_max = records;
	h->data_off = round_up(
		JOURNAL_HEAD_BYTES + records * sizeof(struct journal_record), JOURNAL_HEAD_BYTES);
	atomic_store_explicit(&h->data, h->data_off, memory_order_relaxed);
}

int journal_create(const char *path, uint64_t size)
{
	struct journal_head head;
	int fd, rc;

	if (size < JOURNAL_SIZE_MIN)
		return -EINVAL;
	if (!file_limit_allows(size))
		return -EFBIG;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	lay_out(&head, size);
	/* A page that the file system cannot give later would be SIGBUS in somebody's program. */
	rc = -posix_fallocate(fd, 0, (off_t)size);
	if (!rc && pwrite(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
		rc = -EIO;
	if (rc)
		unlink(path);
	close(fd);
	return rc;
}

bool journal_is_live(const struct journal_live *live)
{
	return live->pid || live->fd || live->id;
}

static bool head_valid(const struct journal_head *h, uint64_t size)
{
	struct journal_head want;

	if (size < JOURNAL_SIZE_MIN || h->magic != JOURNAL_MAGIC || h->size != size)
		return false;
	lay_out(&want, size);
	return h->records_max == want.records_max && h->data_off == want.data_off;
}

int journal_read_head(int fd, struct journal_head *head, uint64_t *size)
{
	struct stat st;
	ssize_t n;

	*size = 0;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EPROTO;
	*size = st.st_size;
	n = pread(fd, head, sizeof *head, 0);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)sizeof head->magic || head->magic != JOURNAL_MAGIC)
		return -EPROTO;
	if (n < (ssize_t)sizeof *head)
		return -EBADMSG;
	return head_valid(head, journal_is_live(&head->live) ? head->size : *size) ? 0 : -EBADMSG;
}

static uint64_t id_of(int fd)
{
	struct stat st;
	uint64_t id = fstat(fd, &st) ? 0 : hash_mix(hash_mix(st.st_dev) ^ st.st_ino);

	return id ? id : 1;
}

/* ---- opening ---- */

/* To open whatever a head names would do things to it: only what is called like a memfd of ours. */
static int check_name(const char *fd_path)
{
	static const char name[] = "/memfd:" JOURNAL_MEMFD " ";
	char target[sizeof name + 16];
	ssize_t n = readlink(fd_path, target, sizeof target);

	if (n < 0)
		return errno == ENOENT ? -EOWNERDEAD : -errno;
	return n >= (ssize_t)sizeof name - 1 && !memcmp(target, name, sizeof name - 1)
		       ? 0
		       : -EOWNERDEAD;
}

static int check_memory(int fd, const struct journal_head *want)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct journal_head head;
	uint64_t size;

	if (seals < 0 || (seals & JOURNAL_SEALS) != JOURNAL_SEALS ||
		journal_read_head(fd, &head, &size) || size != want->size ||
		memcmp(&head.live, &want->live, sizeof head.live))
		return -EOWNERDEAD;
	return 0;
}

/* Nobody may look at a process that is over and not yet waited for, but for root. */
static bool is_over(uint32_t pid)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), .events = POLLIN};
	bool over = p.fd < 0 ? errno == ESRCH : poll(&p, 1, 0) == 1;

	if (p.fd >= 0)
		close(p.fd);
	return over;
}

/* The memory of a live journal: an fd, -EOWNERDEAD, another negative errno. */
static int open_memory(const struct journal_head *head, bool writable)
{
	char path[48];
	int fd, rc;

	snprintf(path, sizeof path, "/proc/%u/fd/%u", head->live.pid, head->live.fd);
	rc = check_name(path);
	if (rc)
		return rc == -EACCES && is_over(head->live.pid) ? -EOWNERDEAD : rc;
	fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? -EOWNERDEAD : -errno;
	rc = check_memory(fd, head);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

static int map(struct journal *j, int fd, const struct journal_head *head, bool writable)
{
	int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	void *at = mmap(NULL, head->size, prot, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	j->head = at;
	j->size = head->size;
	j->records_max = head->records_max;
	j->data_off = head->data_off;
	j->live = head->live;
	return 0;
}

/* Has another one taken over, or the file, since its head was read? */
static bool has_moved(int fd, const struct journal_head *head)
{
	struct journal_head now;
	uint64_t size;

	return !journal_read_head(fd, &now, &size) &&
	       memcmp(&now.live, &head->live, sizeof now.live);
}

/* -EAGAIN: it was saved meanwhile, or is kept by another one. */
static int open_once(struct journal *j, int fd, bool writable, bool join)
{
	struct journal_head head;
	int rc = journal_read_head(fd, &head, &j->size), memory;

	if (rc)
		return rc;
	if (!journal_is_live(&head.live))
		return join ? -ENOLINK : map(j, fd, &head, writable);
	memory = open_memory(&head, writable);
	if (memory < 0)
		return has_moved(fd, &head) ? -EAGAIN : memory;
	rc = map(j, memory, &head, writable);
	close(memory);
	return rc;
}

static int open_as(struct journal *j, const char *path, bool writable, bool join)
{
	int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int rc = -EAGAIN;

	*j = (struct journal){0};
	if (fd < 0)
		return -errno;
	for (unsigned i = 0; rc == -EAGAIN && i < OPEN_TRIES; i++)
		rc = open_once(j, fd, writable, join);
	j->id = id_of(fd);
	close(fd);
	return rc;
}

int journal_open(struct journal *j, const char *path, bool writable)
{
	return open_as(j, path, writable, false);
}

int journal_join(struct journal *j, const char *path)
{
	return open_as(j, path, true, true);
}

const char *journal_error(int rc)
{
	switch (rc) {
	case -EPROTO:
		return "it is no journal";
	case -EBADMSG:
		return "it was cut short, or its head is damaged";
	case -EOWNERDEAD:
		return "the process that kept it was killed";
	case -ENOLINK:
		return "weft crash run took all programs under it for ended";
	default:
		return strerror(-rc);
	}
}

void journal_close(struct journal *j)
{
	if (j->head)
		munmap(j->head, j->size);
	j->head = NULL;
}

/* ---- adding ---- */

static struct journal_record *slot(const struct journal *j, uint64_t i)
{
	return (struct journal_record *)((char *)j->head + JOURNAL_HEAD_BYTES) + i;
}

bool journal_ended(const struct journal *j)
{
	return atomic_load_explicit(&j->head->flags, memory_order_acquire);
}

static void end_full(struct journal *j)
{
	atomic_fetch_or_explicit(&j->head->flags, JOURNAL_FULL, memory_order_acq_rel);
}

/* Adds to a word that must not pass max: its value before, or UINT64_MAX. */
static uint64_t reserve(_Atomic uint64_t *word, uint64_t n, uint64_t max)
{
	uint64_t at = atomic_load_explicit(word, memory_order_relaxed);

	do {
		if (at > max || n > max - at)
			return UINT64_MAX;
	} while (!atomic_compare_exchange_weak_explicit(
		word, &at, at + n, memory_order_acq_rel, memory_order_relaxed));
	return at;
}

uint64_t journal_room(struct journal *j, uint64_t len)
{
	uint64_t at = UINT64_MAX;

	if (journal_ended(j))
		return 0;
	if (len <= j->size)
		at = reserve(&j->head->data, round_up(len, DATA_ALIGN), j->size);
	if (at == UINT64_MAX || at < j->data_off) {
		end_full(j);
		return 0;
	}
	return at;
}

void journal_unroom(struct journal *j, uint64_t data, uint64_t len)
{
	uint64_t end = data + round_up(len, DATA_ALIGN);

	atomic_compare_exchange_strong_explicit(
		&j->head->data, &end, data, memory_order_acq_rel, memory_order_relaxed);
}

/* Slot i is the next one: it is ours if it was nobody's.  Counted by us, or whoever sees it. */
static bool claim(struct journal *j, uint64_t i)
{
	uint32_t empty = JOURNAL_EMPTY;
	bool ours = atomic_compare_exchange_strong_explicit(&slot(j, i)->state, &empty,
		JOURNAL_CLAIMED, memory_order_acq_rel, memory_order_relaxed);

	atomic_compare_exchange_strong_explicit(
		&j->head->records, &i, i + 1, memory_order_acq_rel, memory_order_relaxed);
	return ours;
}

/* The number of a record that is ours; UINT64_MAX: all are used. */
static uint64_t claim_next(struct journal *j)
{
	uint64_t i;

	do {
		i = atomic_load_explicit(&j->head->records, memory_order_acquire);
		if (i >= j->records_max)
			return UINT64_MAX;
	} while (!claim(j, i));
	return i;
}

static uint64_t record_sum(const struct journal_record *r, uint64_t i)
{
	return hash_bytes((const char *)r + sizeof r->state,
		offsetof(struct journal_record, sum) - sizeof r->state, i);
}

static uint64_t data_sum(const uint8_t *bytes, uint32_t len)
{
	return bytes ? hash_bytes(bytes, len, 0) : 0;
}

/* A copy of *r with the sum of its bytes, which takes longer than to fill in a record. */
static struct journal_record with_data_sum(const struct journal *j, const struct journal_record *r)
{
	struct journal_record copy = *r;

	copy.data_sum = data_sum(journal_bytes(j, r), r->data_len);
	return copy;
}

static struct journal_record *fill(
	struct journal *j, uint64_t i, struct journal_record *r, enum journal_state state)
{
	struct journal_record *to = slot(j, i);

	r->sum = record_sum(r, i);
	/* What ended it may have come since, and what follows is not noted any more. */
	if (journal_ended(j))
		return NULL;
	memcpy((char *)to + sizeof to->state, (const char *)r + sizeof r->state,
		sizeof *r - sizeof r->state);
	atomic_store_explicit(&to->state, state, memory_order_release);
	return to;
}

struct journal_record *journal_add(
	struct journal *j, const struct journal_record *r, enum journal_state state)
{
	struct journal_record copy;
	uint64_t i;

	if (journal_ended(j))
		return NULL;
	copy = with_data_sum(j, r);
	i = claim_next(j);
	if (i != UINT64_MAX)
		return fill(j, i, &copy, state);
	end_full(j);
	return NULL;
}

struct journal_record *journal_add_as(
	struct journal *j, const struct journal_record *r, enum journal_state state, uint64_t as)
{
	struct journal_record copy;

	if (as >= j->records_max) {
		end_full(j);
		return NULL;
	}
	copy = with_data_sum(j, r);
	if (journal_ended(j) ||
		atomic_load_explicit(&j->head->records, memory_order_acquire) != as ||
		!claim(j, as))
		return NULL;
	return fill(j, as, &copy, state);
}

void journal_settle(struct journal_record *r, enum journal_state state)
{
	atomic_store_explicit(&r->state, state, memory_order_release);
}

static void name_of(uint32_t pid, char name[JOURNAL_NAME])
{
	char path[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%u/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, name, JOURNAL_NAME - 1);
	name[n > 0 ? n : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	if (fd >= 0)
		close(fd);
}

void journal_sign(struct journal_record *r, uint32_t pid)
{
	int saved = errno;

	r->time_ns = clock_real_ns();
	r->pid = pid;
	name_of(pid, r->name);
	errno = saved;
}

int journal_mark(struct journal *j, const char *text)
{
	struct journal_record r = {.kind = JOURNAL_MARK};
	size_t len = strlen(text);

	if (!len || len > JOURNAL_TEXT_MAX)
		return -EINVAL;
	r.data = journal_room(j, len);
	if (!r.data)
		return -ENOSPC;
	memcpy(journal_data(j, r.data), text, len);
	r.data_len = len;
	journal_sign(&r, getpid());
	return journal_add(j, &r, JOURNAL_DONE) ? 0 : -ENOSPC;
}

/* ---- reading ---- */

uint64_t journal_count(const struct journal *j)
{
	uint64_t n = atomic_load_explicit(&j->head->records, memory_order_acquire);

	return n < j->records_max ? n : j->records_max;
}

const struct journal_record *journal_at(const struct journal *j, uint64_t i)
{
	const struct journal_record *r = slot(j, i);
	uint32_t state = atomic_load_explicit(&r->state, memory_order_acquire);

	if (state != JOURNAL_BEGUN && state != JOURNAL_DONE)
		return NULL;
	return r->kind && r->kind < JOURNAL_KINDS ? r : NULL;
}

bool journal_settled(const struct journal *j, uint64_t i)
{
	uint32_t state = atomic_load_explicit(&slot(j, i)->state, memory_order_acquire);

	return state == JOURNAL_DONE || state == JOURNAL_VOID;
}

const uint8_t *journal_bytes(const struct journal *j, const struct journal_record *r)
{
	if (!r->data_len || r->data < j->data_off || r->data > j->size ||
		r->data_len > j->size - r->data)
		return NULL;
	return journal_data(j, r->data);
}

/* ---- is it what was written? ---- */

static int damaged(struct journal_damage *d, uint64_t at, const char *what)
{
	*d = (struct journal_damage){at, what};
	return -EBADMSG;
}

static int verify_head(const struct journal *j, struct journal_damage *d)
{
	uint32_t flags = atomic_load_explicit(&j->head->flags, memory_order_relaxed);
	uint64_t data = atomic_load_explicit(&j->head->data, memory_order_relaxed);

	if (flags && flags != JOURNAL_FULL && flags != JOURNAL_STOPPED &&
		flags != (JOURNAL_FULL | JOURNAL_STOPPED))
		return damaged(d, offsetof(struct journal_head, flags), "its flags are none");
	if (atomic_load_explicit(&j->head->records, memory_order_relaxed) > j->records_max)
		return damaged(d, offsetof(struct journal_head, records),
			"it counts more records than fit");
	if (data < j->data_off || data > j->size)
		return damaged(d, offsetof(struct journal_head, data),
			"the end of its bytes lies outside");
	return 0;
}

static int verify_bytes(
	const struct journal *j, const struct journal_record *r, struct journal_damage *d)
{
	const uint8_t *bytes = journal_bytes(j, r);

	if (!r->data_len)
		return 0;
	if (bytes &&
		r->data + r->data_len > atomic_load_explicit(&j->head->data, memory_order_relaxed))
		return damaged(d, offsetof(struct journal_head, data),
			"its bytes end before those of a record");
	if (bytes && data_sum(bytes, r->data_len) == r->data_sum)
		return 0;
	/* Others may use the room of one that came to nothing meanwhile. */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&r->state, memory_order_relaxed) == JOURNAL_VOID)
		return 0;
	return damaged(d, bytes ? r->data : (uint64_t)((const char *)r - (const char *)j->head),
		"the bytes of a record are not those that were noted");
}

static int verify_record(const struct journal *j, uint64_t i, struct journal_damage *d)
{
	const struct journal_record *r = slot(j, i);
	uint64_t at = (uint64_t)((const char *)r - (const char *)j->head);

	switch (atomic_load_explicit(&r->state, memory_order_acquire)) {
	case JOURNAL_EMPTY:
		return damaged(d, at, "a record was erased");
	case JOURNAL_CLAIMED:
		return 0;
	case JOURNAL_BEGUN:
	case JOURNAL_DONE:
	case JOURNAL_VOID:
		if (record_sum(r, i) != r->sum)
			return damaged(d, at, "a record is not what was noted");
		break;
	default:
		return damaged(d, at, "a record has no state that there is");
	}
	return atomic_load_explicit(&r->state, memory_order_acquire) == JOURNAL_VOID
		       ? 0
		       : verify_bytes(j, r, d);
}

/* Is there nothing in a slot?  The next one may be claimed, and not be counted yet. */
static bool unused(const struct journal *j, uint64_t i, bool next)
{
	static const struct journal_record none;
	const struct journal_record *r = slot(j, i);
	uint32_t state = atomic_load_explicit(&r->state, memory_order_acquire);

	return (!state || (next && state == JOURNAL_CLAIMED)) &&
	       !memcmp((const char *)r + sizeof r->state, (const char *)&none + sizeof none.state,
		       sizeof none - sizeof none.state);
}

/* Nothing is behind the last record, which may just have come. */
static int verify_rest(const struct journal *j, uint64_t i, struct journal_damage *d)
{
	uint64_t next = i;

	for (; i < j->records_max; i++) {
		if (unused(j, i, i == next))
			continue;
		atomic_thread_fence(memory_order_acquire);
		if (i >= journal_count(j))
			return damaged(d, JOURNAL_HEAD_BYTES + i * sizeof(struct journal_record),
				"there is a record behind the last one");
	}
	return 0;
}

int journal_verify(const struct journal *j, struct journal_damage *d)
{
	uint64_t n = journal_count(j);
	int rc = verify_head(j, d);

	for (uint64_t i = 0; !rc && i < n; i++)
		rc = verify_record(j, i, d);
	return rc ? rc : verify_rest(j, n, d);
}
