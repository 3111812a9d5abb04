// SPDX-License-Identifier: BSD-3-Clause
/* A process that destroys its own segment: as any wild pointer of a program could. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent_side.h"

enum { FD_LIMIT = 4096, PAGE = 4096, CHUNK_MAX = 64 };

struct segment {
	uint8_t *base;
	int fd;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Where the file with that inode is mapped writable. */
static uint8_t *mapping_of(ino_t inode)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, ino;
	char line[512], perm[5];
	uint8_t *found = NULL;

	while (f && !found && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%*x %4s %*x %*s %lu", &start, perm, &ino) == 3 &&
			ino == inode && perm[1] == 'w')
			found = (uint8_t *)start;
	if (f)
		fclose(f);
	return found;
}

/* The library keeps the fd of its own segment open, and those of nobody else's. */
static int find_segment(struct segment *s)
{
	char path[64], target[64];
	struct stat st;

	for (int fd = 0; fd < FD_LIMIT; fd++) {
		ssize_t n;

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof target - 1);
		target[n > 0 ? n : 0] = '\0';
		if (!strstr(target, "weft-segment") || fstat(fd, &st))
			continue;
		s->fd = fd;
		s->base = mapping_of(st.st_ino);
		if (s->base)
			return 0;
	}
	return -ENOENT;
}

/* Bytes, words that are nearly right, or zeros: each finds other mistakes. */
static void damage(uint8_t *at, uint64_t *rnd)
{
	uint64_t r = next_random(rnd), word;
	size_t len = 1 + r % CHUNK_MAX;

	switch (r >> 8 & 3) {
	case 0:
		for (size_t i = 0; i < len; i++)
			at[i] = next_random(rnd);
		break;
	case 1:
		memset(at, r & 0x1000 ? 0 : 0xff, len);
		break;
	default:
		at = (uint8_t *)((uintptr_t)at & ~7ul);
		memcpy(&word, at, sizeof word);
		word ^= 1ull << (r >> 16) % 64;
		memcpy(at, &word, sizeof word);
	}
}

/* Over every page that has data, about one place in each 256 bytes. */
static void damage_all(const struct segment *s, uint64_t *rnd)
{
	off_t at = 0, end;

	while ((at = lseek(s->fd, at, SEEK_DATA)) >= 0) {
		end = lseek(s->fd, at, SEEK_HOLE);
		if (end < 0)
			return;
		for (; at < end; at += PAGE)
			for (int i = 0; i < PAGE / 256; i++)
				damage(s->base + at + next_random(rnd) % (PAGE - CHUNK_MAX), rnd);
	}
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

int side_scribble(uint64_t seed, uint32_t ms)
{
	uint64_t end = now_ms() + ms, rnd = seed * 0x9e3779b97f4a7c15ull + 1;
	struct segment s;
	int rc = find_segment(&s);

	if (rc)
		return rc;
	do
		damage_all(&s, &rnd);
	while (now_ms() < end);
	return 0;
}
