// SPDX-License-Identifier: BSD-3-Clause
#include "crash/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "crash/journal.h"

enum { COPY_BYTES = 64 << 10, LIVE_AT = offsetof(struct journal_head, live) };

/* ---- copying ---- */

static int write_all(int fd, const char *from, size_t n, off_t at)
{
	while (n) {
		ssize_t done = pwrite(fd, from, n, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EIO;
		from += done;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

static int copy_range(int to, int from, off_t at, off_t end)
{
	char buf[COPY_BYTES];

	while (at < end) {
		size_t want = end - at < COPY_BYTES ? (size_t)(end - at) : COPY_BYTES;
		ssize_t n = pread(from, buf, want, at);
		int rc;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		rc = write_all(to, buf, (size_t)n, at);
		if (rc)
			return rc;
		at += n;
	}
	return 0;
}

/* All but the holes. */
static int copy_data(int to, int from, uint64_t size)
{
	off_t at = 0, end;

	while ((uint64_t)at < size) {
		int rc;

		at = lseek(from, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO ? 0 : -errno;
		end = lseek(from, at, SEEK_HOLE);
		if (end < 0)
			return -errno;
		rc = copy_range(to, from, at, end);
		if (rc)
			return rc;
		at = end;
	}
	return 0;
}

/* ---- keeping ---- */

static int set_live(int fd, const struct journal_live *live)
{
	return write_all(fd, (const char *)live, sizeof *live, LIVE_AT);
}

static int make_live(struct journal_keep *k)
{
	struct journal_live live = {.pid = getpid()};
	int rc;

	k->memory = memfd_create(JOURNAL_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (k->memory < 0 || ftruncate(k->memory, (off_t)k->size))
		return -errno;
	rc = copy_data(k->memory, k->file, k->size);
	live.fd = k->memory;
	while (!rc && !live.id)
		rc = getrandom(&live.id, sizeof live.id, 0) == sizeof live.id ? 0 : -EIO;
	if (!rc)
		rc = set_live(k->memory, &live);
	/* Not against seals, for the last one, at the end, is that against writing. */
	if (!rc && fcntl(k->memory, F_ADD_SEALS, JOURNAL_SEALS))
		rc = -errno;
	return rc ? rc : set_live(k->file, &live);
}

int journal_keep(struct journal_keep *k, const char *path)
{
	struct journal_head head;
	int rc;

	*k = (struct journal_keep){
		.file = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), .memory = -1};
	if (k->file < 0)
		return -errno;
	rc = journal_read_head(k->file, &head, &k->size);
	if (!rc && journal_is_live(&head.live))
		rc = -EBUSY;
	if (!rc && !file_limit_allows(k->size))
		rc = -EFBIG;
	if (!rc)
		rc = make_live(k);
	if (rc)
		journal_keep_close(k);
	return rc;
}

static int save(struct journal_keep *k)
{
	const struct journal_live none = {0};
	struct stat st;
	int rc;

	if (fstat(k->file, &st))
		return -errno;
	if ((uint64_t)st.st_size != k->size && ftruncate(k->file, (off_t)k->size))
		return -errno;
	rc = copy_data(k->file, k->memory, k->size);
	return rc ? rc : set_live(k->file, &none);
}

int journal_keep_end(struct journal_keep *k)
{
	int rc;

	/* Refused while it is mapped to be written; from then on nobody can map it so. */
	if (fcntl(k->memory, F_ADD_SEALS, F_SEAL_WRITE))
		return -errno;
	rc = save(k);
	journal_keep_close(k);
	return rc;
}

void journal_keep_close(struct journal_keep *k)
{
	if (k->file >= 0)
		close(k->file);
	if (k->memory >= 0)
		close(k->memory);
	k->file = k->memory = -1;
}
