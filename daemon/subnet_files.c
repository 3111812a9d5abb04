// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/subnet_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "rdv/topology.h"

/* A stream on fd, which it closes; NULL with errno.  fd: an -errno, too. */
static FILE *stream(int fd, const char *mode)
{
	FILE *f = fd < 0 ? NULL : fdopen(fd, mode);

	if (fd < 0)
		errno = -fd;
	else if (!f)
		close(fd);
	return f;
}

int subnet_files_get(
	const struct rdv_paths *p, struct netlist *out, bool *sm_off, char *why, size_t size)
{
	FILE *f = stream(rdv_open_to_read(p, "topo"), "r");
	char error[TOPO_ERROR], *text = NULL;
	size_t room = 0;
	ssize_t n;
	int ret;

	if (!f && errno == ENOENT)
		return -ENOENT;
	if (f)
		errno = 0; /* an empty file is no error of its own */
	n = f ? getdelim(&text, &room, '\0', f) : -1;
	if (n < 0) {
		ret = errno ? -errno : -EINVAL;
		snprintf(why, size, "cannot read %.200s/%s.topo: %s", p->dir, p->name,
			strerror(-ret));
	} else {
		*sm_off = !strncmp(text, TOPOLOGY_SM_OFF, strlen(TOPOLOGY_SM_OFF));
		ret = netlist_parse(out, rdv_file_name(p, "topo").s, text, n, error);
		if (ret)
			snprintf(why, size, "%.300s", error);
	}
	free(text);
	if (f)
		fclose(f);
	return ret == -ENOENT ? -EINVAL : ret;
}

int subnet_files_add(const struct rdv_paths *p, const char *command)
{
	int fd = openat(p->dir_fd, rdv_file_name(p, "topo").s,
		O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	int ret = 0;

	if (end < 0 || dprintf(fd, "do %s\n", command) < 0)
		ret = -errno;
	/* Half a line, where the disk became full, would keep the next weftd from starting. */
	if (ret && end >= 0)
		(void)!ftruncate(fd, end);
	if (fd >= 0)
		close(fd);
	return ret;
}

void subnet_files_get_lids(const struct rdv_paths *p, struct lids *l)
{
	FILE *f = stream(rdv_open_to_read(p, "lids"), "r");
	char error[TOPO_ERROR];

	if (!f)
		return;
	if (lids_read(l, f, rdv_file_name(p, "lids").s, error))
		log_line(LOG_LVL_WARN, "%s", error);
	fclose(f);
}

void subnet_files_put_lids(const struct rdv_paths *p, const struct lids *l)
{
	FILE *f = stream(rdv_open_anew(p, "lids.new"), "w");
	int ret = f ? lids_write(l, f) : -errno;

	if (f && fclose(f) && !ret)
		ret = -errno;
	if (!ret && renameat(p->dir_fd, rdv_file_name(p, "lids.new").s, p->dir_fd,
			    rdv_file_name(p, "lids").s))
		ret = -errno;
	if (ret) {
		unlinkat(p->dir_fd, rdv_file_name(p, "lids.new").s, 0);
		log_line(LOG_LVL_WARN,
			"cannot write %s/%s.lids: %s; LIDs may change when weftd is "
			"started anew",
			p->dir, p->name, strerror(-ret));
	}
}

void subnet_files_forget(const struct rdv_paths *p)
{
	unlinkat(p->dir_fd, rdv_file_name(p, "topo").s, 0);
	unlinkat(p->dir_fd, rdv_file_name(p, "lids").s, 0);
}

/* The number in NAME.tree.NUMBER; -1. */
static long tree_number(const struct rdv_paths *p, const char *entry)
{
	struct rdv_file_name begin = rdv_file_name(p, "tree.");
	size_t n = strlen(begin.s);
	char *end;
	long number;

	if (strncmp(entry, begin.s, n) || entry[n] < '0' || entry[n] > '9')
		return -1;
	number = strtol(entry + n, &end, 10);
	return *end ? -1 : number;
}

void subnet_files_each_tree(
	const struct rdv_paths *p, void (*fn)(void *arg, uint32_t node), void *arg)
{
	DIR *dir = opendir(p->dir);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		long number = tree_number(p, e->d_name);

		if (number >= 0 && number <= UINT32_MAX)
			fn(arg, number);
	}
	if (dir)
		closedir(dir);
}
