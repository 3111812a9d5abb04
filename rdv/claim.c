// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/claim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/unix_names.h"

enum { BACKLOG = 64 };

struct claim_name {
	char s[32];
};

static struct claim_name name_of(uint32_t n)
{
	struct claim_name name;

	snprintf(name.s, sizeof name.s, "weft-qpn/%u", n);
	return name;
}

int claim_take(uint32_t n)
{
	int fd = unix_name_take(name_of(n).s, SOCK_SEQPACKET), ret;

	if (fd < 0 || listen(fd, BACKLOG) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

bool claim_is(int fd, uint32_t n)
{
	struct sockaddr_un want, is;
	socklen_t len = sizeof is, want_len = unix_name_addr(name_of(n).s, &want);
	int listens = 0;
	socklen_t size = sizeof listens;

	return getsockname(fd, (struct sockaddr *)&is, &len) == 0 && len == want_len &&
	       memcmp(&is, &want, len) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens;
}

int claim_meet(uint32_t n, struct ucred *cred)
{
	int fd = unix_name_meet(name_of(n).s, SOCK_SEQPACKET), ret;
	socklen_t size = sizeof *cred;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &size) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

bool claim_owner(uint32_t n, uid_t *uid)
{
	struct ucred cred;
	int fd;

	if (unix_name_owner(name_of(n).s, uid))
		return true;
	fd = claim_meet(n, &cred);
	if (fd < 0)
		return false;
	close(fd);
	*uid = cred.uid;
	return true;
}
