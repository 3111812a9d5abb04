// SPDX-License-Identifier: BSD-3-Clause
/* The sockets between a process that makes endpoints and its descendants. */
#include "scif/heir/heir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scif/ep/ep.h"

enum { OFFERED = 2, MAX_CHILDREN = 1024 };

static struct {
	int offer[OFFERED];        /* during a fork: the parent's end, the child's */
	int parent;                /* the socket to our parent */
	struct lock children_lock; /* held over a fork */
	int child[MAX_CHILDREN];   /* sockets to our children */
	unsigned children;
} heir = {.offer = {-1, -1}, .parent = -1};

void heir_before_fork(bool wanted)
{
	int err = errno;

	lock_take(&heir.children_lock);
	if (!wanted || heir.children == MAX_CHILDREN ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, heir.offer) < 0)
		heir.offer[0] = heir.offer[1] = -1; /* the child cannot use what it inherits */
	errno = err;
}

int heir_parent_forked(void)
{
	int fd = heir.offer[0];

	if (fd >= 0) {
		close(heir.offer[1]);
		fcntl(fd, F_SETFL, O_NONBLOCK);
		heir.child[heir.children++] = fd;
	}
	heir.offer[0] = heir.offer[1] = -1;
	lock_drop(&heir.children_lock);
	return fd;
}

void heir_end(int sock)
{
	lock_take(&heir.children_lock);
	for (unsigned i = 0; i < heir.children; i++) {
		if (heir.child[i] == sock) {
			heir.child[i] = heir.child[--heir.children];
			break;
		}
	}
	lock_drop(&heir.children_lock);
	close(sock); /* without the lock, which is held over a fork: the shim may look for it */
}

int heir_child_forked(void)
{
	for (unsigned i = 0; i < heir.children; i++)
		close(heir.child[i]); /* of our siblings, who would not see our parent's end */
	heir.children = 0;
	atomic_store_explicit(&heir.children_lock.word, 0, memory_order_relaxed);
	if (heir.offer[0] >= 0)
		close(heir.offer[0]);
	heir.parent = heir.offer[1];
	heir.offer[0] = heir.offer[1] = -1;
	return heir.parent;
}
