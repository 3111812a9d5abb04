// SPDX-License-Identifier: BSD-3-Clause
#include "memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "board.h"

enum { PAGE = 4096 };

static const char *const names[] = {
	[MEMORY_HEAP] = "heap",
	[MEMORY_PRIVATE] = "private mapping",
	[MEMORY_SEALED] = "sealed memfd",
	[MEMORY_MEMFD] = "memfd",
	[MEMORY_SYSV] = "System V",
	[MEMORY_POSIX] = "POSIX shm",
	[MEMORY_SHARED] = "shared anonymous",
	[MEMORY_STACK] = "stack",
	[MEMORY_DEVICE] = "device",
};

const char *memory_name(enum memory_kind kind)
{
	return names[kind];
}

bool memory_is_private(enum memory_kind kind)
{
	return kind == MEMORY_HEAP || kind == MEMORY_PRIVATE || kind == MEMORY_STACK;
}

static int open_memfd(bool seal)
{
	return memfd_create("differ", MFD_CLOEXEC | (seal ? MFD_ALLOW_SEALING : 0));
}

static int open_posix(void)
{
	static _Atomic unsigned count;
	char name[64];
	int fd;

	snprintf(name, sizeof name, "/differ-%d-%u", (int)getpid(), atomic_fetch_add(&count, 1));
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd >= 0)
		shm_unlink(name);
	return fd;
}

static void map_file(struct memory *m, int fd, bool seal)
{
	if (fd < 0 || ftruncate(fd, m->map_len) || (seal && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)))
		board_fail("no %s: %m", names[m->kind]);
	m->fd = fd;
	m->map = mmap(NULL, m->map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void map_anonymous(struct memory *m, int how)
{
	m->map = mmap(NULL, m->map_len, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);
}

static void map_sysv(struct memory *m)
{
	int id = shmget(IPC_PRIVATE, m->map_len, IPC_CREAT | 0600);

	m->map = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);
	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
}

static void take_device(struct memory *m, struct ibv_context *ctx)
{
	struct ibv_alloc_dm_attr attr = {.length = m->len};
	void *zeros = calloc(1, m->len);

	m->dm = ibv_alloc_dm(ctx, &attr);
	if (!m->dm || !zeros || ibv_memcpy_to_dm(m->dm, 0, zeros, m->len))
		board_fail("no device memory: %m");
	free(zeros);
}

static void map(struct memory *m, void *stack)
{
	switch (m->kind) {
	case MEMORY_HEAP:
		m->map = malloc(m->map_len);
		break;
	case MEMORY_SEALED:
		map_file(m, open_memfd(true), true);
		break;
	case MEMORY_MEMFD:
		map_file(m, open_memfd(false), false);
		break;
	case MEMORY_POSIX:
		map_file(m, open_posix(), false);
		break;
	case MEMORY_SYSV:
		map_sysv(m);
		break;
	case MEMORY_STACK:
		m->map = stack;
		break;
	default:
		map_anonymous(m, m->kind == MEMORY_SHARED ? MAP_SHARED : MAP_PRIVATE);
	}
	if (!m->map || m->map == MAP_FAILED)
		board_fail("no %s memory of %zu bytes: %m", names[m->kind], m->map_len);
}

void memory_make(struct memory *m, enum memory_kind kind, size_t len, size_t shift,
	struct ibv_context *ctx, void *stack)
{
	/* One page more than needed: heap and stack do not begin at a page. */
	*m = (struct memory){.kind = kind, .len = len, .fd = -1, .map_len = shift + len + PAGE};
	if (kind == MEMORY_DEVICE) {
		take_device(m, ctx);
		return;
	}
	m->map_len = (m->map_len + PAGE - 1) & ~(size_t)(PAGE - 1);
	map(m, stack);
	m->at = (uint8_t *)(((uintptr_t)m->map + PAGE - 1) & ~(uintptr_t)(PAGE - 1)) + shift;
	memset(m->at, 0, len);
}

void memory_free(struct memory *m)
{
	if (m->kind == MEMORY_DEVICE) {
		if (ibv_free_dm(m->dm))
			board_fail("ibv_free_dm: %m");
	} else if (m->kind == MEMORY_HEAP) {
		free(m->map);
	} else if (m->kind == MEMORY_SYSV) {
		shmdt(m->map);
	} else if (m->kind != MEMORY_STACK) {
		munmap(m->map, m->map_len);
	}
	if (m->fd >= 0)
		close(m->fd);
}

static void mop_up_sysv(pid_t dead)
{
	FILE *f = fopen("/proc/sysvipc/shm", "r");
	char line[512];
	int id, creator;

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%*d %d %*o %*u %d", &id, &creator) == 2 && creator == dead)
			shmctl(id, IPC_RMID, NULL);
	if (f)
		fclose(f);
}

static void mop_up_posix(pid_t dead)
{
	DIR *dir = opendir("/dev/shm");
	const struct dirent *d;
	char prefix[32], name[300];

	snprintf(prefix, sizeof prefix, "differ-%d-", (int)dead);
	while (dir && (d = readdir(dir)))
		if (!strncmp(d->d_name, prefix, strlen(prefix))) {
			snprintf(name, sizeof name, "/%s", d->d_name);
			shm_unlink(name);
		}
	if (dir)
		closedir(dir);
}

void memory_mop_up(pid_t dead)
{
	mop_up_sysv(dead);
	mop_up_posix(dead);
}

/* The calls for device memory take whole words. */
enum { WORD = 4 };

static void device_get(struct memory *m, size_t off, void *to, size_t len)
{
	size_t from = off / WORD * WORD, end = (off + len + WORD - 1) / WORD * WORD;
	uint8_t *words = malloc(end - from);

	if (!words || ibv_memcpy_from_dm(words, m->dm, from, end - from))
		board_fail("ibv_memcpy_from_dm(%zu, %zu): %m", from, end - from);
	memcpy(to, words + (off - from), len);
	free(words);
}

static void device_put(struct memory *m, size_t off, const void *from, size_t len)
{
	size_t at = off / WORD * WORD, end = (off + len + WORD - 1) / WORD * WORD;
	uint8_t *words = malloc(end - at);

	if (!words)
		board_fail("no memory");
	device_get(m, at, words, end - at);
	memcpy(words + (off - at), from, len);
	if (ibv_memcpy_to_dm(m->dm, at, words, end - at))
		board_fail("ibv_memcpy_to_dm(%zu, %zu): %m", at, end - at);
	free(words);
}

void memory_put(struct memory *m, size_t off, const void *from, size_t len)
{
	if (m->at)
		memcpy(m->at + off, from, len);
	else if (len)
		device_put(m, off, from, len);
}

void memory_get(struct memory *m, size_t off, void *to, size_t len)
{
	if (m->at)
		memcpy(to, m->at + off, len);
	else if (len)
		device_get(m, off, to, len);
}
