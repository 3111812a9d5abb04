// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/file_name.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static const char *const beginnings[] = {
	[FILE_UMAD] = "weft-umad",
	[FILE_ISSM] = "weft-issm",
};

/* Its inode tells the socket from others of the kind. */
int file_name_set(int fd, enum file_kind kind, unsigned number)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	char *abstract = name.sun_path + 1;
	struct stat st;
	int len;

	if (kind != FILE_UMAD && kind != FILE_ISSM)
		return -EINVAL;
	if (fstat(fd, &st))
		return -errno;
	len = snprintf(abstract, sizeof name.sun_path - 1, "%s%u-%llu", beginnings[kind], number,
		(unsigned long long)st.st_ino);
	len += offsetof(struct sockaddr_un, sun_path) + 1;
	return bind(fd, (const struct sockaddr *)&name, len) ? -errno : 0;
}

static enum file_kind kind_of(const struct sockaddr_un *name, unsigned *number)
{
	const char *rest;
	char *end;

	if (name->sun_family != AF_UNIX || name->sun_path[0])
		return FILE_OTHER;
	for (int kind = FILE_UMAD; kind <= FILE_ISSM; kind++) {
		if (strncmp(name->sun_path + 1, beginnings[kind], strlen(beginnings[kind])))
			continue;
		rest = name->sun_path + 1 + strlen(beginnings[kind]);
		*number = strtoul(rest, &end, 10);
		return end > rest && *end == '-' ? kind : FILE_OTHER;
	}
	return FILE_OTHER;
}

enum file_kind file_name_kind(int fd)
{
	unsigned number;

	return file_name_look(fd, &number);
}

enum file_kind file_name_look(int fd, unsigned *number)
{
	struct sockaddr_un name = {.sun_family = AF_UNSPEC};
	socklen_t len = sizeof name - 1;
	int saved = errno;

	if (getsockname(fd, (struct sockaddr *)&name, &len))
		name.sun_family = AF_UNSPEC;
	errno = saved;
	name.sun_path[sizeof name.sun_path - 1] = '\0';
	return kind_of(&name, number);
}
