// SPDX-License-Identifier: BSD-3-Clause
/*
 * libweftcrash.so, which `weft crash run` preloads: sees where a program makes its own memory
 * durable, and tells the journal.  Calls of the adapter itself are none of the program's.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "crash/owner.h"
#include "include/weft/crash.h"
#include "pages/vma.h"
#include "shim/shim.h"

enum { FLUSHED_MAX = 64 };

static struct {
	pthread_mutex_t lock;
	pid_t pid; /* whose regions these are: a child has its own */
	struct crash_owner owner;
} crash = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What this thread has flushed from its caches, but not fenced. */
static __thread struct {
	unsigned n;
	struct crash_range range[FLUSHED_MAX];
} flushed;

/* ---- the journal ---- */

/* With the lock held: the journal is open. */
static bool ready(void)
{
	const char *path = secure_getenv(JOURNAL_ENV);

	if (crash.pid == getpid())
		return crash.owner.j.head;
	journal_close(&crash.owner.j);
	free(crash.owner.ranges);
	memset(&crash.owner, 0, sizeof crash.owner);
	crash.pid = getpid();
	return path && *path && !journal_join(&crash.owner.j, path);
}

static void persisted(const void *addr, size_t len)
{
	int saved = errno;

	pthread_mutex_lock(&crash.lock);
	if (len && ready())
		crash_owner_persist(&crash.owner, (uintptr_t)addr, len);
	pthread_mutex_unlock(&crash.lock);
	errno = saved;
}

EXPORT void weft_crash_note_persist(const void *addr, size_t len)
{
	persisted(addr, len);
}

EXPORT int weft_crash_note_mark(const char *text)
{
	int rc;

	pthread_mutex_lock(&crash.lock);
	rc = ready() ? journal_mark(&crash.owner.j, text) : 0;
	pthread_mutex_unlock(&crash.lock);
	return rc;
}

/* ---- librpma: which range a flush is asked for; of one by READ nothing else tells ---- */

enum { RPMA_PERSISTENT = 0 };

/* 0: not known, of a librpma before 1.1. */
static uint32_t qpn_of(const void *conn)
{
	int (*get)(const void *, uint32_t *) =
		(int (*)(const void *, uint32_t *))dlsym(RTLD_DEFAULT, "rpma_conn_get_qp_num");
	uint32_t qpn = 0;

	return get && !get(conn, &qpn) ? qpn : 0;
}

static void flush_asked(const void *conn, size_t len, int type, const void *op_context)
{
	struct journal_record r = {.kind = JOURNAL_ASKED,
		.push = type == RPMA_PERSISTENT ? JOURNAL_FLUSH_PERSISTENT : JOURNAL_FLUSH_VISIBLE,
		.len = len,
		.qpn = qpn_of(conn),
		.wr_id = (uintptr_t)op_context};
	int saved = errno;

	pthread_mutex_lock(&crash.lock);
	if (ready()) {
		journal_sign(&r, getpid());
		journal_add(&crash.owner.j, &r, JOURNAL_DONE);
	}
	pthread_mutex_unlock(&crash.lock);
	errno = saved;
}

EXPORT int rpma_flush(void *conn, void *dst, size_t offset, size_t len, int type, int flags,
	const void *op_context);

static void before_fork(void)
{
	pthread_mutex_lock(&crash.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&crash.lock);
}

__attribute__((constructor)) static void watch_fork(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- system calls ---- */

static bool by_adapter(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "/libibverbs.so");
}

static void *behind(const char *name)
{
	void *fn = dlsym(RTLD_NEXT, name);

	if (!fn)
		abort(); /* it was called, so it is there */
	return fn;
}

EXPORT int msync(void *addr, size_t len, int flags)
{
	int (*fn)(void *, size_t, int) = behind("msync");
	int rc = fn(addr, len, flags);
	uintptr_t end = ((uintptr_t)addr + len + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);

	if (!rc && flags & MS_SYNC && !by_adapter(__builtin_return_address(0)))
		persisted(addr, end - (uintptr_t)addr);
	return rc;
}

/* All of the file that is mapped shared, and under the simulator. */
static void file_persisted(int fd)
{
	struct vma_walk walk;
	struct stat st;
	struct vma v;
	int saved = errno;

	pthread_mutex_lock(&crash.lock);
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && ready()) {
		crash_owner_refresh(&crash.owner);
		if (crash.owner.n && !vma_walk_begin(&walk, 0)) {
			while (!vma_walk_next(&walk, &v))
				if (v.shared && v.inode == st.st_ino &&
					v.dev_major == major(st.st_dev) &&
					v.dev_minor == minor(st.st_dev))
					crash_owner_persist(&crash.owner, v.start, v.end - v.start);
			vma_walk_end(&walk);
		}
	}
	pthread_mutex_unlock(&crash.lock);
	errno = saved;
}

EXPORT int fsync(int fd)
{
	int (*fn)(int) = behind("fsync");
	int rc = fn(fd);

	if (!rc && !by_adapter(__builtin_return_address(0)))
		file_persisted(fd);
	return rc;
}

EXPORT int fdatasync(int fd)
{
	int (*fn)(int) = behind("fdatasync");
	int rc = fn(fd);

	if (!rc && !by_adapter(__builtin_return_address(0)))
		file_persisted(fd);
	return rc;
}

int rpma_flush(void *conn, void *dst, size_t offset, size_t len, int type, int flags,
	const void *op_context)
{
	int (*fn)(void *, void *, size_t, size_t, int, int, const void *) = behind("rpma_flush");

	flush_asked(conn, len, type, op_context);
	return fn(conn, dst, offset, len, type, flags, op_context);
}

/* ---- libpmem: what it flushes is durable once it is drained ---- */

static void drain(void)
{
	for (unsigned i = 0; i < flushed.n; i++)
		persisted((const void *)(uintptr_t)flushed.range[i].addr, flushed.range[i].len);
	flushed.n = 0;
}

static void flush(const void *addr, size_t len)
{
	if (flushed.n == FLUSHED_MAX) /* too early rather than never */
		drain();
	flushed.range[flushed.n++] = (struct crash_range){(uintptr_t)addr, len};
}

EXPORT void pmem_persist(const void *addr, size_t len);
EXPORT int pmem_msync(const void *addr, size_t len);
EXPORT int pmem_deep_persist(const void *addr, size_t len);
EXPORT void pmem_flush(const void *addr, size_t len);
EXPORT void pmem_deep_flush(const void *addr, size_t len);
EXPORT void pmem_drain(void);
EXPORT int pmem_deep_drain(const void *addr, size_t len);
EXPORT void *pmem_memcpy_persist(void *to, const void *from, size_t len);
EXPORT void *pmem_memmove_persist(void *to, const void *from, size_t len);
EXPORT void *pmem_memset_persist(void *to, int c, size_t len);
EXPORT void *pmem_memcpy_nodrain(void *to, const void *from, size_t len);
EXPORT void *pmem_memmove_nodrain(void *to, const void *from, size_t len);
EXPORT void *pmem_memset_nodrain(void *to, int c, size_t len);

void pmem_persist(const void *addr, size_t len)
{
	void (*fn)(const void *, size_t) = behind("pmem_persist");

	fn(addr, len);
	persisted(addr, len);
}

int pmem_msync(const void *addr, size_t len)
{
	int (*fn)(const void *, size_t) = behind("pmem_msync");
	int rc = fn(addr, len);

	if (!rc)
		persisted(addr, len);
	return rc;
}

int pmem_deep_persist(const void *addr, size_t len)
{
	int (*fn)(const void *, size_t) = behind("pmem_deep_persist");
	int rc = fn(addr, len);

	if (!rc)
		persisted(addr, len);
	return rc;
}

void pmem_flush(const void *addr, size_t len)
{
	void (*fn)(const void *, size_t) = behind("pmem_flush");

	fn(addr, len);
	flush(addr, len);
}

void pmem_deep_flush(const void *addr, size_t len)
{
	void (*fn)(const void *, size_t) = behind("pmem_deep_flush");

	fn(addr, len);
	flush(addr, len);
}

void pmem_drain(void)
{
	void (*fn)(void) = behind("pmem_drain");

	fn();
	drain();
}

int pmem_deep_drain(const void *addr, size_t len)
{
	int (*fn)(const void *, size_t) = behind("pmem_deep_drain");
	int rc = fn(addr, len);

	drain();
	return rc;
}

void *pmem_memcpy_persist(void *to, const void *from, size_t len)
{
	void *(*fn)(void *, const void *, size_t) = behind("pmem_memcpy_persist");
	void *at = fn(to, from, len);

	persisted(to, len);
	return at;
}

void *pmem_memmove_persist(void *to, const void *from, size_t len)
{
	void *(*fn)(void *, const void *, size_t) = behind("pmem_memmove_persist");
	void *at = fn(to, from, len);

	persisted(to, len);
	return at;
}

void *pmem_memset_persist(void *to, int c, size_t len)
{
	void *(*fn)(void *, int, size_t) = behind("pmem_memset_persist");
	void *at = fn(to, c, len);

	persisted(to, len);
	return at;
}

void *pmem_memcpy_nodrain(void *to, const void *from, size_t len)
{
	void *(*fn)(void *, const void *, size_t) = behind("pmem_memcpy_nodrain");
	void *at = fn(to, from, len);

	flush(to, len);
	return at;
}

void *pmem_memmove_nodrain(void *to, const void *from, size_t len)
{
	void *(*fn)(void *, const void *, size_t) = behind("pmem_memmove_nodrain");
	void *at = fn(to, from, len);

	flush(to, len);
	return at;
}

void *pmem_memset_nodrain(void *to, int c, size_t len)
{
	void *(*fn)(void *, int, size_t) = behind("pmem_memset_nodrain");
	void *at = fn(to, c, len);

	flush(to, len);
	return at;
}
