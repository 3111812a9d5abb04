// SPDX-License-Identifier: BSD-3-Clause
#include "base/unix_names.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

socklen_t unix_name_addr(const char *name, struct sockaddr_un *addr)
{
	size_t len = strnlen(name, sizeof addr->sun_path - 1);

	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(addr->sun_path + 1, name, len);
	return offsetof(struct sockaddr_un, sun_path) + 1 + len;
}

/* By bind() or connect(), whose other two arguments are the same. */
static int named(const char *name, int type,
	int (*call)(int fd, const struct sockaddr *addr, socklen_t len))
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret = 0;
	struct sockaddr_un addr;
	socklen_t len = unix_name_addr(name, &addr);

	if (fd < 0 || call(fd, (const struct sockaddr *)&addr, len))
		ret = -errno;
	if (!ret)
		return fd;
	if (fd >= 0)
		close(fd);
	return ret;
}

static int call_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len);
}

static int call_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return connect(fd, addr, len);
}

int unix_name_take(const char *name, int type)
{
	return named(name, type, call_bind);
}

int unix_name_meet(const char *name, int type)
{
	return named(name, type, call_connect);
}

/* In /proc/net/unix: the kernel's __SO_ACCEPTCON. */
enum { LISTENS = 0x10000 };

/*
 * The name in a line of the kernel's table, whose eighth field it is; NULL: it has none there, or
 * does not listen.  A connection that is not accepted has the name as well.
 */
static const char *name_in(char *line)
{
	unsigned flags;
	char *name = strstr(line, " @");

	if (sscanf(line, "%*s %*s %*s %x", &flags) != 1 || !(flags & LISTENS))
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return name ? name + 2 : NULL;
}

void unix_names_each(const char *prefix, bool (*each)(void *arg, const char *name), void *arg)
{
	FILE *f = fopen("/proc/self/net/unix", "re");
	char *line = NULL;
	const char *name;
	size_t room = 0;
	bool more = true;

	while (f && more && getline(&line, &room, f) > 0) {
		name = name_in(line);
		if (name && !strncmp(name, prefix, strlen(prefix)))
			more = each(arg, name);
	}
	free(line);
	if (f)
		fclose(f);
}
