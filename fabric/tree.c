// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONTENT_MAX = 1200 };

static const char scratch[] = ".new";

static const struct {
	const char *path, *content, *target;
} shared[] = {
	[TREE_ZERO_GID] = {".shared", .content = "0000:0000:0000:0000:0000:0000:0000:0000\n"},
	[TREE_ZERO] = {".zero", .content = "0\n"},
	[TREE_NO_PKEY] = {".no_pkey", .content = "0x0000\n"},
	/* Whoever opens it gets a file of the kernel's that has no read. */
	[TREE_UNREADABLE] = {".unreadable", .target = "/proc/self/ns/mnt"},
};

static void fail(struct tree *t)
{
	if (!t->err)
		t->err = -errno;
}

struct tree_path tree_path(const char *fmt, ...)
{
	struct tree_path path;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path.s, sizeof path.s, fmt, ap);
	va_end(ap);
	return path;
}

int tree_open(struct tree *t, int at, const char *dir)
{
	*t = (struct tree){.fd = -1, .fresh = mkdirat(at, dir, 0755) == 0};
	if (!t->fresh && errno != EEXIST)
		return -errno;
	t->fd = openat(at, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->fd < 0)
		return -errno;
	if (!t->fresh)
		unlinkat(t->fd, scratch, 0); /* of a writer that died */
	return 0;
}

int tree_close(struct tree *t)
{
	close(t->fd);
	return t->err;
}

void tree_dir(struct tree *t, const char *path)
{
	if (mkdirat(t->fd, path, 0755) ? errno != EEXIST : fchmodat(t->fd, path, 0755, 0))
		fail(t);
}

/* Whether path is a regular file with exactly this content. */
static bool has_content(struct tree *t, const char *path, const char *content, size_t len)
{
	char old[CONTENT_MAX + 1];
	int fd =
		t->fresh ? -1 : openat(t->fd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, old, sizeof old);
	close(fd);
	return n == (ssize_t)len && !memcmp(old, content, len);
}

static int write_scratch(struct tree *t, const char *content, size_t len)
{
	int fd = openat(t->fd, scratch,
		O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -1;
	rc = write(fd, content, len) == (ssize_t)len ? fchmod(fd, 0444) : -1;
	close(fd);
	return rc;
}

static void replace(struct tree *t, const char *path, const char *content, size_t len)
{
	if (has_content(t, path, content, len))
		return;
	if (write_scratch(t, content, len) || renameat(t->fd, scratch, t->fd, path)) {
		fail(t);
		unlinkat(t->fd, scratch, 0);
	}
}

void tree_put(struct tree *t, const char *path, const char *fmt, ...)
{
	char content[CONTENT_MAX];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(content, sizeof content, fmt, ap);
	va_end(ap);
	if (len >= (int)sizeof content)
		len = sizeof content - 1;
	replace(t, path, content, len);
}

void tree_link(struct tree *t, const char *path, const char *target)
{
	char old[sizeof(struct tree_path)];
	ssize_t n;

	if (t->fresh && !symlinkat(target, t->fd, path))
		return;
	n = readlinkat(t->fd, path, old, sizeof old);
	if (n == (ssize_t)strlen(target) && !memcmp(old, target, n))
		return;
	unlinkat(t->fd, scratch, 0);
	if (symlinkat(target, t->fd, scratch) || renameat(t->fd, scratch, t->fd, path))
		fail(t);
}

void tree_share(struct tree *t)
{
	struct stat st;

	for (int i = 0; i < TREE_N_SHARED; i++) {
		if (shared[i].target)
			tree_link(t, shared[i].path, shared[i].target);
		else
			replace(t, shared[i].path, shared[i].content, strlen(shared[i].content));
		t->shared[i] =
			fstatat(t->fd, shared[i].path, &st, AT_SYMLINK_NOFOLLOW) ? 0 : st.st_ino;
	}
}

void tree_put_shared(struct tree *t, enum tree_shared which, const char *path)
{
	const char *from = shared[which].path;
	struct stat st;

	if (t->fresh && !linkat(t->fd, from, t->fd, path, 0))
		return;
	if (!fstatat(t->fd, path, &st, AT_SYMLINK_NOFOLLOW)) {
		if (st.st_ino == t->shared[which])
			return;
		unlinkat(t->fd, scratch, 0);
		if (linkat(t->fd, from, t->fd, scratch, 0) || renameat(t->fd, scratch, t->fd, path))
			fail(t);
	} else if (linkat(t->fd, from, t->fd, path, 0)) {
		fail(t);
	}
}

void tree_put_first(struct tree *t, enum tree_shared which, const char *path)
{
	struct stat st;

	if (t->fresh || fstatat(t->fd, path, &st, AT_SYMLINK_NOFOLLOW))
		tree_put_shared(t, which, path);
}

void tree_drop(struct tree *t, const char *path)
{
	if (!t->fresh && unlinkat(t->fd, path, 0) && errno != ENOENT)
		fail(t);
}

static bool listed(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(name, names[i], 15))
			return true;
	return false;
}

void tree_keep_only(struct tree *t, const char *path, const char *const *names, size_t n)
{
	int fd = openat(t->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		fail(t);
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !listed(entry->d_name, names, n))
			unlinkat(fd, entry->d_name, 0);
	closedir(dir);
}
