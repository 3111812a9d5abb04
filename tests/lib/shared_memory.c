// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/shared_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "tests/lib/check.h"

static uint8_t *map(int fd, size_t len)
{
	uint8_t *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, len) == 0)
		p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("shared memory");
	return p;
}

static int posix_shm(char *name, size_t size)
{
	static int n;

	snprintf(name, size, "/weft-test-%d-%d", getpid(), n++);
	return shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
}

static uint8_t *unlinked(size_t len, int *fd)
{
	char name[64];

	*fd = posix_shm(name, sizeof name);
	shm_unlink(name);
	return map(*fd, len);
}

static uint8_t *closed(size_t len, int *fd)
{
	uint8_t *p = unlinked(len, fd);

	close(*fd);
	*fd = -1;
	return p;
}

static char named[64];

static void forget_name(void)
{
	shm_unlink(named);
}

static uint8_t *by_name(size_t len, int *fd)
{
	static bool before;
	uint8_t *p;
	int shm;

	if (before)
		forget_name();
	else
		atexit(forget_name);
	before = true;
	shm = posix_shm(named, sizeof named);
	p = map(shm, len);
	close(shm);
	*fd = -1;
	return p;
}

static uint8_t *anonymous(size_t len, int *fd)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*fd = -1;
	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static uint8_t *memfd(size_t len, int *fd)
{
	return map(*fd = memfd_create("object", MFD_CLOEXEC), len);
}

static uint8_t *sealable(size_t len, int *fd)
{
	return map(*fd = memfd_create("object", MFD_CLOEXEC | MFD_ALLOW_SEALING), len);
}

static uint8_t *sysv(size_t len, int *fd)
{
	int id = shmget(IPC_PRIVATE, len, IPC_CREAT | 0600);
	uint8_t *p = shmat(id, NULL, 0);

	shmctl(id, IPC_RMID, NULL);
	*fd = -1;
	if (p == (void *)-1)
		die("shmat");
	return p;
}

static uint8_t *file(size_t len, int *fd)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];

	snprintf(path, sizeof path, "%s/weft-test-XXXXXX", dir ? dir : "/tmp");
	*fd = mkostemp(path, O_CLOEXEC);
	unlink(path);
	return map(*fd, len);
}

const struct shared_kind shared_kinds[] = {
	[SHARED_UNLINKED] = {"POSIX, unlinked", unlinked, false, false},
	[SHARED_NAMED] = {"POSIX, by its name", by_name, false, false},
	[SHARED_CLOSED] = {"POSIX, unlinked and closed", closed, true, false},
	[SHARED_ANONYMOUS] = {"anonymous", anonymous, true, false},
	[SHARED_MEMFD] = {"memfd", memfd, false, false},
	[SHARED_SEALABLE] = {"memfd that may be sealed", sealable, false, true},
	[SHARED_SYSV] = {"System V", sysv, false, true},
	[SHARED_FILE] = {"file", file, false, false},
};

bool can_open_mapped(void)
{
	char path[64];
	uint8_t *p;
	int fd;

	p = anonymous(4096, &fd);
	snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", (long)p, (long)p + 4096);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	munmap(p, 4096);
	return fd >= 0;
}
