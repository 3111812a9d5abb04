// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/claim.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/unix_names.h"

/* More than a stranger fills before its owner looks; the system's own limit may be lower. */
enum { BACKLOG = 4096 };

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
	return unix_name_listen(name_of(n).s, BACKLOG);
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
	return unix_name_meet_listener(name_of(n).s, cred);
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
