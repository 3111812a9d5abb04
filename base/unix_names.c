// SPDX-License-Identifier: BSD-3-Clause
#include "base/unix_names.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

socklen_t unix_name_addr(const char *name, struct sockaddr_un *addr)
{
	size_t len = strnlen(name, sizeof addr->sun_path - 1);

	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(addr->sun_path + 1, name, len);
	return offsetof(struct sockaddr_un, sun_path) + 1 + len;
}

/* By bind() or connect(), whose other two arguments are the same. */
static int named(
	const char *name, int type, int (*call)(int fd, const struct sockaddr *addr, socklen_t len))
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

int unix_name_listen(const char *name, int backlog)
{
	int fd = unix_name_take(name, SOCK_SEQPACKET), ret;

	if (fd < 0 || listen(fd, backlog) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

void unix_name_greet(int fd)
{
	int who = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	if (who >= 0)
		close(who);
}

int unix_name_meet(const char *name, int type)
{
	return named(name, type, call_connect);
}

int unix_name_meet_listener(const char *name, struct ucred *cred)
{
	int fd = unix_name_meet(name, SOCK_SEQPACKET), ret;
	socklen_t size = sizeof *cred;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &size) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
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

/* ---- of whom ---- */

enum { ANSWER = 32 << 10, ANSWER_S = 1 };

/* Linux 5.3 */
enum { SHOW_UID = 0x40, ATTR_UID = 7 };

static bool ask_all(int fd)
{
	const struct {
		struct nlmsghdr head;
		struct unix_diag_req req;
	} ask = {
		.head = {.nlmsg_len = sizeof ask,
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.req = {.sdiag_family = AF_UNIX,
			.udiag_states = ~0u,
			.udiag_show = UDIAG_SHOW_NAME | SHOW_UID},
	};

	return send(fd, &ask, sizeof ask, 0) == (ssize_t)sizeof ask;
}

/* One socket of the kernel's answer: is it that one, and whose? */
static bool is_it(const struct nlmsghdr *h, const char *name, uid_t *uid)
{
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	const struct rtattr *a = (const struct rtattr *)(m + 1);
	int left = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof *m));
	bool same = false, known = false;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		const char *at = RTA_DATA(a);

		if (a->rta_type == UNIX_DIAG_NAME)
			same = RTA_PAYLOAD(a) == strlen(name) + 1 && !*at &&
			       !memcmp(at + 1, name, strlen(name));
		if (a->rta_type == ATTR_UID && RTA_PAYLOAD(a) >= sizeof *uid) {
			memcpy(uid, at, sizeof *uid);
			known = true;
		}
	}
	return same && known;
}

/* A part of the answer; *more: there is another. */
static bool read_part(int fd, const char *name, uid_t *uid, bool *more)
{
	_Alignas(struct nlmsghdr) char part[ANSWER];
	int n = (int)recv(fd, part, sizeof part, 0);
	const struct nlmsghdr *h = (const struct nlmsghdr *)part;

	*more = n > 0;
	for (; n > 0 && NLMSG_OK(h, (unsigned)n); h = NLMSG_NEXT(h, n)) {
		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
			*more = false;
		else if (is_it(h, name, uid))
			return true;
	}
	return false;
}

bool unix_name_owner(const char *name, uid_t *uid)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	const struct timeval patience = {.tv_sec = ANSWER_S};
	bool more, found = false;

	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	more = ask_all(fd);
	while (more && !found)
		found = read_part(fd, name, uid, &more);
	close(fd);
	return found;
}
