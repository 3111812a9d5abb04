// SPDX-License-Identifier: BSD-3-Clause
#include "pages/vma_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/own_fd.h"

/*
 * /proc/self/status, kept open: to find and open it takes as long as what is read there.  It is
 * about the process that opened it: a forked child opens its own.
 */
static struct {
	struct lock lock;
	struct own_fd fd;
	pid_t pid;
} kept = {.fd = {.fd = -1}};

static int open_status(void)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* With the lock held. */
static int kept_fd(void)
{
	int fd;

	if (kept.pid == getpid() && own_fd_ok(&kept.fd))
		return kept.fd.fd;
	own_fd_close(&kept.fd);
	fd = open_status();
	if (fd < 0)
		return fd;
	kept.fd = own_fd(fd);
	kept.pid = getpid();
	return kept.fd.fd;
}

static ssize_t read_start(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return n < 0 ? -errno : 0;
}

/* Where the lock may have been inherited as taken, or somebody has it, an fd for this once. */
static int read_status(char *text, size_t size)
{
	bool locked = lock_try(&kept.lock);
	int fd = locked ? kept_fd() : open_status();
	int rc = fd < 0 ? fd : read_start(fd, text, size);

	if (locked)
		lock_drop(&kept.lock);
	else if (fd >= 0)
		close(fd);
	return rc;
}

/* The number after that name at the beginning of a line; false: there is none. */
static bool number_of(const char *text, const char *name, uint64_t *value)
{
	const char *at = strstr(text, name);

	if (at)
		*value = strtoull(at + strlen(name), NULL, 10);
	return at;
}

int vma_process(struct vma_process *p)
{
	char text[4096];
	int rc = read_status(text, sizeof text);

	if (rc)
		return rc;
	return number_of(text, "\nThreads:", &p->threads) &&
			       number_of(text, "\nVmPin:", &p->pinned_kb) &&
			       number_of(text, "\nVmLck:", &p->locked_kb)
		       ? 0
		       : -ENOENT;
}

/* The directory of the threads has a link for each, and two of its own. */
static bool threads_by_links(uint64_t *threads)
{
	struct stat st;

	if (stat("/proc/self/task", &st) || st.st_nlink < 3)
		return false;
	*threads = st.st_nlink - 2;
	return true;
}

bool vma_alone(void)
{
	struct vma_process p;
	int saved = errno;
	bool alone = threads_by_links(&p.threads) || !vma_process(&p) ? p.threads == 1 : false;

	errno = saved;
	return alone;
}
