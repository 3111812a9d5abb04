// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tables/channel_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

enum { DIR_SIZE = sizeof((struct rdv_paths *)0)->name + 4, NAME_ROOM = 20 };

_Static_assert(DIR_SIZE + NAME_ROOM <= sizeof((struct sockaddr_un *)0)->sun_path, "it fits");

static void dir_name(const struct rdv_paths *p, char dir[DIR_SIZE])
{
	snprintf(dir, DIR_SIZE, "%s.ch", p->name);
}

/* ---- what the dead left ---- */

/* A name whose socket is closed refuses connections; others cannot be bound to meanwhile. */
static bool is_dead(int probe, const struct sockaddr_un *addr)
{
	return connect(probe, (const struct sockaddr *)addr, sizeof *addr) < 0 &&
	       errno == ECONNREFUSED;
}

static int sweep(const char *name, int probe)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	DIR *dir = opendir(name);
	struct dirent *e;
	int live = 0;

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.' || strlen(e->d_name) >= NAME_ROOM)
			continue;
		snprintf(
			addr.sun_path, sizeof addr.sun_path, "%s/%.*s", name, NAME_ROOM, e->d_name);
		if (is_dead(probe, &addr))
			channel_name_remove(&addr);
		else
			live++;
	}
	if (dir)
		closedir(dir);
	return live;
}

int channel_names_start(const struct rdv_paths *p)
{
	return fchdir(p->dir_fd) < 0 ? -errno : 0;
}

int channel_names_sweep(const struct rdv_paths *p)
{
	int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), live;
	char dir[DIR_SIZE];

	if (probe < 0)
		return -errno;
	dir_name(p, dir);
	live = sweep(dir, probe);
	close(probe);
	return live;
}

void channel_names_end(const struct rdv_paths *p)
{
	char name[DIR_SIZE];

	(void)channel_names_sweep(p);
	dir_name(p, name);
	unlinkat(p->dir_fd, name, AT_REMOVEDIR);
}

/* ---- giving one ---- */

static bool is_datagram_socket(int fd)
{
	int domain, type;
	socklen_t len = sizeof domain;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_DGRAM;
}

static bool exists(const struct sockaddr_un *addr)
{
	struct stat st;

	return lstat(addr->sun_path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static int bind_name(int fd, const char *dir, const struct sockaddr_un *addr)
{
	for (bool again = false;; again = true) {
		if (bind(fd, (const struct sockaddr *)addr, sizeof *addr) == 0)
			return 0;
		/* Left by a process that had our number long ago, and by its weftd. */
		if (errno == EADDRINUSE && !again && unlink(addr->sun_path) == 0)
			continue;
		if (errno == ENOENT && !again && (mkdir(dir, 0700) == 0 || errno == EEXIST))
			continue;
		return -errno;
	}
}

int channel_name_give(
	const struct rdv_paths *p, int fd, uint32_t owner, uint32_t id, struct sockaddr_un *addr)
{
	struct sockaddr_un has = {0};
	socklen_t len = sizeof has - 1;
	char dir[DIR_SIZE];
	int ret;

	if (!is_datagram_socket(fd) || getsockname(fd, (struct sockaddr *)&has, &len) < 0)
		return -EINVAL;
	dir_name(p, dir);
	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(addr->sun_path, sizeof addr->sun_path, "%s/%x-%x", dir, owner, id);
	if (len > offsetof(struct sockaddr_un, sun_path)) {
		/* By an earlier weftd. */
		if (strcmp(has.sun_path, addr->sun_path) != 0)
			return -EINVAL;
		return exists(addr) ? 0 : -ENOENT;
	}
	ret = bind_name(fd, dir, addr);
	if (ret)
		log_line(LOG_LVL_WARN, "cannot make %s/%s: %s", p->dir, addr->sun_path,
			strerror(-ret));
	return ret;
}

void channel_name_remove(const struct sockaddr_un *addr)
{
	(void)unlink(addr->sun_path);
}
