// SPDX-License-Identifier: BSD-3-Clause
#include "shim/umad.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "shim/load.h"
#include "shim/mark.h"
#include "shim/next.h"
#include "umad/device.h"

enum { NULL_MAJOR = 1, NULL_MINOR = 3 }; /* of /dev/null */

static const struct umad_device *device(void)
{
	static _Atomic(const struct umad_device *) known;
	const struct umad_device *found = atomic_load_explicit(&known, memory_order_acquire);

	if (!found) {
		found = load_table("libibumad.so.3", "weft_umad_device");
		atomic_store_explicit(&known, found, memory_order_release);
	}
	return found;
}

static int fail(int err)
{
	errno = err;
	return -1;
}

/* ---- opening ---- */

static enum file_kind kind_of(const char *name)
{
	if (strspn(name + 4, "0123456789") != strlen(name + 4) || !name[4])
		return FILE_OTHER;
	return !strncmp(name, "umad", 4)   ? FILE_UMAD
	       : !strncmp(name, "issm", 4) ? FILE_ISSM
					   : FILE_OTHER;
}

bool umad_path(const struct path_mapped *m)
{
	int (*real_fstatat)(int, const char *, struct stat *, int) = next(NEXT_FSTATAT);
	const char *name = strrchr(m->virt, '/') + 1;
	int saved = errno;
	struct stat st;
	bool there;

	if (m->kind != PATH_DEV_NODE || strlen(name) <= 4 || kind_of(name) == FILE_OTHER ||
		m->real[strlen(m->real) - 1] == '/')
		return false;
	there = !real_fstatat(AT_FDCWD, m->real, &st, AT_SYMLINK_NOFOLLOW);
	errno = saved;
	return there;
}

int umad_open_device(const struct path_mapped *m, int flags)
{
	int (*real_close)(int) = next(NEXT_CLOSE);
	const char *name = strrchr(m->virt, '/') + 1;
	enum file_kind kind = kind_of(name);
	int saved = errno, fd;

	if (flags & O_DIRECTORY)
		return fail(ENOTDIR);
	if (!device())
		return fail(ENXIO);
	fd = device()->open(kind == FILE_ISSM, strtoul(name + 4, NULL, 10), flags);
	if (fd < 0)
		return fail(-fd);
	if (!mark_set(fd, kind, flags)) {
		real_close(fd);
		return fail(EMFILE);
	}
	errno = saved;
	return fd;
}

/* ---- using ---- */

/* Whether fd, to the kernel a device of that number, or none, is what a file of that kind is. */
static bool is_behind(int fd, enum file_kind kind, dev_t real, unsigned *number)
{
	if (kind == FILE_UVERBS)
		return real == makedev(NULL_MAJOR, NULL_MINOR);
	return file_name_look(fd, number) == kind;
}

bool umad_node(int fd, dev_t real, char path[UMAD_NODE_PATH])
{
	static const char *const names[] = {
		[FILE_UMAD] = "umad", [FILE_ISSM] = "issm", [FILE_UVERBS] = "uverbs"};
	uint8_t mark = mark_of(fd);
	enum file_kind kind = mark_kind(mark);
	unsigned number = 0;

	if (kind == FILE_OTHER || !is_behind(fd, kind, real, &number)) {
		mark_stale(fd, mark);
		return false;
	}
	snprintf(path, UMAD_NODE_PATH, "/dev/infiniband/%s%u", names[kind], number);
	return true;
}

/* Keeps the mark, or takes it away: the fd is something else now. */
static bool is_still(int fd, uint8_t mark)
{
	if (mark_kind(mark) == FILE_UVERBS || mark_kind(mark) == FILE_OTHER)
		return false;
	if (file_name_kind(fd) == mark_kind(mark))
		return true;
	mark_stale(fd, mark);
	return false;
}

/* Whether the file is not open for it, by mode without, or has no such operation: with that errno.
 */
static int refusal(uint8_t mark, int without)
{
	int mode = mark_access(mark);

	if (mode == without || mode == O_ACCMODE)
		return EBADF;
	return mark_kind(mark) == FILE_UMAD ? 0 : EINVAL;
}

/* False: the library says that it is none of ours. */
static bool answer(int fd, uint8_t mark, ssize_t got, ssize_t *ret)
{
	if (got == -EBADF) {
		mark_stale(fd, mark);
		return false;
	}
	*ret = got < 0 ? fail((int)-got) : got;
	return true;
}

bool umad_read(int fd, void *buf, size_t len, ssize_t *ret)
{
	uint8_t mark = mark_of(fd);
	int refused = refusal(mark, O_WRONLY);

	if (!refused && device())
		return answer(fd, mark, device()->read(fd, buf, len), ret);
	if (!is_still(fd, mark))
		return false;
	*ret = fail(refused ? refused : ENXIO);
	return true;
}

bool umad_write(int fd, const void *buf, size_t len, ssize_t *ret)
{
	uint8_t mark = mark_of(fd);
	int refused = refusal(mark, O_RDONLY);

	if (!refused && device())
		return answer(fd, mark, device()->write(fd, buf, len), ret);
	if (!is_still(fd, mark))
		return false;
	*ret = fail(refused ? refused : ENXIO);
	return true;
}

bool umad_ioctl(int fd, unsigned long request, void *arg, int *ret)
{
	uint8_t mark = mark_of(fd);
	ssize_t got;

	if (mark_kind(mark) == FILE_UMAD && _IOC_TYPE((uint32_t)request) == UMAD_IOC_TYPE &&
		device()) {
		if (!answer(fd, mark, device()->ioctl(fd, request, (uintptr_t)arg), &got))
			return false;
		*ret = (int)got;
		return true;
	}
	if (!is_still(fd, mark))
		return false;
	*ret = fail(ENOTTY);
	return true;
}

static bool is_empty(int fd, uint8_t mark)
{
	int rc = device() ? device()->wait(fd, 0) : 0;

	if (rc == -EBADF)
		mark_stale(fd, mark);
	return rc == -ETIMEDOUT;
}

/* What poll(2) is to show of a marked fd, of which it showed revents. */
static short shown(int fd, short revents)
{
	const short in = POLLIN | POLLRDNORM;
	uint8_t mark = mark_of(fd);

	if (mark_kind(mark) != FILE_UMAD)
		return revents;
	if (revents & POLLHUP)
		return is_still(fd, mark) ? POLLERR : revents;
	return revents & in && is_empty(fd, mark) ? revents & ~in : revents;
}

int umad_polled(struct pollfd *fds, nfds_t n, int ready)
{
	/* The library polls the fd, too. */
	static __thread bool inside __attribute__((tls_model("initial-exec")));

	if (inside || !mark_any())
		return ready;
	inside = true;
	for (nfds_t i = 0; i < n; i++) {
		if (!fds[i].revents || !marked(fds[i].fd))
			continue;
		fds[i].revents = shown(fds[i].fd, fds[i].revents);
		ready -= !fds[i].revents;
	}
	inside = false;
	return ready;
}
