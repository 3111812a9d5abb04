// SPDX-License-Identifier: BSD-3-Clause
/*
 * What the stat family says of the descriptors of device files, by each of its names: what it says
 * of their paths, also of duplicates, and when weftd has gone; of what takes their numbers the
 * truth.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/weftd_from_outside.h"

enum { MAJOR = 231, NUMBER = 100 };

static const struct node {
	const char *path;
	int flags;
	unsigned minor, mode;
} nodes[] = {
	{"/dev/infiniband/umad0", O_RDWR, 0, 0600},
	{"/dev/infiniband/issm0", O_RDONLY, 64, 0600},
	{"/dev/infiniband/uverbs0", O_RDWR, 192, 0666},
};

static void *named(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	if (!CHECK(found != NULL))
		exit(1);
	return found;
}

/* The i-th way to ask about a descriptor; false: there are no more. */
static bool ask(unsigned i, int fd, struct stat *st)
{
	static const char *const plain[] = {"fstat", "fstat64"};
	static const char *const old[] = {"__fxstat", "__fxstat64"};
	static const char *const at[] = {"fstatat", "fstatat64"};
	static const char *const old_at[] = {"__fxstatat", "__fxstatat64"};
	struct statx stx;

	memset(st, 0xee, sizeof *st);
	if (i < 2)
		CHECK_EQ(((int (*)(int, struct stat *))named(plain[i]))(fd, st), 0);
	else if (i < 4)
		CHECK_EQ(((int (*)(int, int, struct stat *))named(old[i - 2]))(1, fd, st), 0);
	else if (i < 6)
		CHECK_EQ(((int (*)(int, const char *, struct stat *, int))named(at[i - 4]))(
				 fd, "", st, AT_EMPTY_PATH),
			0);
	else if (i < 8)
		CHECK_EQ(((int (*)(int, int, const char *, struct stat *, int))named(
				 old_at[i - 6]))(1, fd, "", st, AT_EMPTY_PATH),
			0);
	else if (i == 8) {
		CHECK_EQ(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), 0);
		st->st_mode = stx.stx_mode;
		st->st_rdev = makedev(stx.stx_rdev_major, stx.stx_rdev_minor);
		st->st_ino = stx.stx_ino;
		st->st_size = (off_t)stx.stx_size;
	}
	return i <= 8;
}

static void is_node(const struct node *n, int fd)
{
	struct stat path, st;
	bool there = !stat(n->path, &path);

	for (unsigned i = 0; ask(i, fd, &st); i++) {
		CHECK_EQ(st.st_mode, S_IFCHR | n->mode);
		CHECK_EQ(major(st.st_rdev), MAJOR);
		CHECK_EQ(minor(st.st_rdev), n->minor);
		if (there) {
			CHECK_EQ(st.st_ino, path.st_ino);
			CHECK_EQ(st.st_size, path.st_size);
		}
	}
}

static void is_none(int fd)
{
	struct stat st;

	for (unsigned i = 0; ask(i, fd, &st); i++)
		CHECK(!S_ISCHR(st.st_mode) || major(st.st_rdev) != MAJOR);
}

/* What has the number afterwards is not what the mark says. */
static void others(const struct node *n, int fd)
{
	int pipe_end[2], null;

	CHECK_EQ(pipe(pipe_end), 0);
	CHECK_EQ(dup2(fd, NUMBER), NUMBER);
	is_node(n, NUMBER);
	CHECK_EQ(dup2(pipe_end[0], NUMBER), NUMBER);
	is_none(NUMBER);
	CHECK_EQ(dup2(fd, NUMBER), NUMBER);
	CHECK_EQ(syscall(SYS_dup3, pipe_end[0], NUMBER, 0), NUMBER); /* nobody sees it */
	is_none(NUMBER);
	CHECK_EQ(dup2(fd, NUMBER), NUMBER);
	close(NUMBER);
	null = open("/dev/null", O_RDWR);
	CHECK_EQ(fcntl(null, F_DUPFD, NUMBER), NUMBER);
	is_none(NUMBER);
	close(NUMBER);
	close(null);
	close(pipe_end[0]);
	close(pipe_end[1]);
}

int main(void)
{
	int fd[3];

	for (int i = 0; i < 3; i++) {
		fd[i] = open(nodes[i].path, nodes[i].flags);
		CHECK(fd[i] >= 0);
		is_node(&nodes[i], fd[i]);
		others(&nodes[i], fd[i]);
	}
	is_none(0);
	weftd_kill(weftd_pid());
	for (int i = 0; i < 3; i++)
		is_node(&nodes[i], fd[i]);
	return check_result();
}
