// SPDX-License-Identifier: BSD-3-Clause
/*
 * Event channels in a runtime directory that is full or cannot be written, and in a program that
 * gave up its right to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/weftd_from_outside.h"

enum { SKIP = 77, NOBODY = 65534, FILES = 4000 };

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		printf("%s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* A small file system of our own, which is the runtime directory; false: we may not. */
static bool make_dir(void)
{
	char map[64], options[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0)
		return false;
	if (uid) {
		snprintf(map, sizeof map, "%u %u 1", uid, uid);
		write_file("/proc/self/uid_map", map);
		write_file("/proc/self/setgroups", "deny");
		snprintf(map, sizeof map, "%u %u 1", gid, gid);
		write_file("/proc/self/gid_map", map);
	}
	snprintf(options, sizeof options, "mode=700,size=32m,nr_inodes=%d", FILES);
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("weft", getenv("WEFT_RUNTIME_DIR"), "tmpfs", 0, options) == 0;
}

/* It refuses by that error, and serves again as soon as it is mended. */
static void full(void)
{
	struct rdma_event_channel *ch = cm_channel(), *none;
	struct rdma_cm_id *id;
	char path[4096];
	int n = 0;

	check_case("full");
	for (; n < FILES; n++) {
		snprintf(path, sizeof path, "%s/%d", getenv("WEFT_RUNTIME_DIR"), n);
		if (mknod(path, S_IFREG | 0600, 0) < 0)
			break;
	}
	CHECK(n > 0 && n < FILES);
	errno = 0;
	none = rdma_create_event_channel();
	CHECK(!none && errno == ENOSPC);
	CHECK_FAILS(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), ENOSPC);
	snprintf(path, sizeof path, "%s/0", getenv("WEFT_RUNTIME_DIR"));
	CHECK_EQ(unlink(path), 0);
	rdma_destroy_event_channel(cm_channel());
	rdma_destroy_event_channel(ch);
}

static void read_only(void)
{
	const char *dir = getenv("WEFT_RUNTIME_DIR");
	struct rdma_event_channel *none;

	check_case("read-only");
	CHECK_EQ(mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	errno = 0;
	none = rdma_create_event_channel();
	CHECK(!none && errno == EROFS);
	CHECK_EQ(mount(NULL, dir, NULL, MS_REMOUNT, NULL), 0);
	rdma_destroy_event_channel(cm_channel());
}

/* The directory of names alone; what there is works. */
static void no_more_names(void)
{
	struct rdma_event_channel *ch = cm_channel(), *none;
	struct rdma_cm_id *id = cm_id(ch);
	struct sockaddr_un addr = {0};
	socklen_t len = sizeof addr - 1;
	char path[4096];

	check_case("no more names");
	CHECK_EQ(getsockname(ch->fd, (struct sockaddr *)&addr, &len), 0);
	snprintf(path, sizeof path, "%s/%.*s", getenv("WEFT_RUNTIME_DIR"),
		(int)strcspn(addr.sun_path, "/"), addr.sun_path);
	CHECK_EQ(chmod(path, 0500), 0);
	errno = 0;
	none = geteuid() ? rdma_create_event_channel() : NULL;
	CHECK(!none && (errno == EACCES || !geteuid()));
	CHECK_EQ(rdma_resolve_addr(id, NULL, cm_addr4(1), 100), 0);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	CHECK_EQ(chmod(path, 0700), 0);
	cm_end(id);
	rdma_destroy_event_channel(ch);
}

/* Events of our own come by weftd where we cannot send them, and weftd names new channels. */
static void no_rights(void)
{
	struct rdma_event_channel *a = cm_channel(), *p;
	struct rdma_cm_id *listener;
	struct cm_conn c;
	uint16_t port;

	check_case("rights given up");
	CHECK_EQ(setresgid(NOBODY, NOBODY, NOBODY), 0);
	CHECK_EQ(setresuid(NOBODY, NOBODY, NOBODY), 0);
	p = cm_channel();
	listener = cm_listener(p, 0, &port);
	c = cm_connect(a, p, port, false);
	cm_end(c.active);
	cm_expect(p, RDMA_CM_EVENT_DISCONNECTED);
	cm_end(c.passive);
	cm_end(listener);
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(p);
}

int main(void)
{
	pid_t pid;
	int status = -1;

	if (geteuid() == 0) {
		pid = fork();
		if (pid == 0) {
			no_rights();
			fflush(stdout);
			_exit(check_failures() ? 1 : 0);
		}
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
		check_child(status);
		weftd_down();
	}
	if (!make_dir()) {
		printf("no right to mount a file system\n");
		return check_failures() ? check_result() : SKIP;
	}
	read_only();
	no_more_names();
	full();
	weftd_down();
	return check_result();
}
