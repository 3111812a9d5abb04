// SPDX-License-Identifier: BSD-3-Clause
#include "roce/mcast.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/gid.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/own_fd.h"
#include "hca/proc/proc.h"
#include "roce/port/socket.h"
#include "wire/roce.h"

enum { READY_MAX = 8, INTERFACES = 64, MGID_SCOPE = 0xf, MGID_SCOPE_INTERFACE = 1 };

struct group {
	struct group *next;
	uint8_t mgid[16];
	unsigned users;
	struct own_fd fd;
};

static struct {
	struct lock lock;
	struct group *first;
	struct own_fd ep;
	_Atomic int epfd; /* its number, + 1; 0: none */
} mcast = {.ep = OWN_FD_NONE};

/* ---- a socket ---- */

static int join_at(int fd, const uint8_t mgid[16], unsigned ifindex)
{
	struct ip_mreqn v4 = {.imr_ifindex = (int)ifindex};
	struct ipv6_mreq v6 = {.ipv6mr_interface = ifindex};

	memcpy(&v4.imr_multiaddr, mgid + 12, 4);
	memcpy(&v6.ipv6mr_multiaddr, mgid, 16);
	return gid_is_ipv4(mgid)
		       ? setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &v4, sizeof v4)
		       : setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &v6, sizeof v6);
}

/* At all interfaces with an address of that family: the device has them all. */
static bool join_all(int fd, const uint8_t mgid[16])
{
	const struct fabric_port *port = &proc_at()->fabric->port[0];
	unsigned done[INTERFACES], n = 0;

	for (uint32_t i = 0; i < port->n_gids && i < FABRIC_MAX_GIDS && n < INTERFACES; i++) {
		const struct fabric_gid *g = &port->gid[i];
		unsigned ifindex = g->ifindex, k = 0;

		if (!ifindex || gid_is_ipv4(g->raw) != gid_is_ipv4(mgid))
			continue;
		while (k < n && done[k] != ifindex)
			k++;
		if (k == n && !join_at(fd, mgid, ifindex))
			done[n++] = ifindex;
	}
	return n;
}

/* The kernel takes no packet of another host to such a group (RFC 4291, 2.7.1: ff01::/16). */
static bool stays_here(const uint8_t mgid[16])
{
	return mgid[0] == 0xff && (mgid[1] & MGID_SCOPE) <= MGID_SCOPE_INTERFACE;
}

static struct own_fd open_group(const uint8_t mgid[16])
{
	struct roce_socket_wish wish = {
		.ipv6 = !gid_is_ipv4(mgid), .group = true, .port = ROCE_PORT};
	struct epoll_event e = {.events = EPOLLIN};
	struct own_fd own = own_fd(roce_socket_open(&wish));
	int fd = own.fd, one = 1;

	if (fd < 0)
		return own;
	if (stays_here(mgid))
		log_line(LOG_LVL_INFO,
			"a multicast group is one of this host alone: its MGID is of scope 1; "
			"other hosts are reached by one that begins with ff02 or ff0e, or an IPv4 "
			"group");
	memcpy(wish.addr, mgid, sizeof wish.addr);
	e.data.fd = fd;
	/* also beside another user's */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (!roce_socket_bind(fd, &wish) && join_all(fd, mgid) &&
		!epoll_ctl(atomic_load(&mcast.epfd) - 1, EPOLL_CTL_ADD, fd, &e))
		return own;
	log_line(LOG_LVL_INFO, "a multicast group is one of this host alone: %s", strerror(errno));
	close(fd);
	return OWN_FD_NONE;
}

static void open_poll(void)
{
	mcast.ep = own_fd(epoll_create1(EPOLL_CLOEXEC));
	atomic_store(&mcast.epfd, mcast.ep.fd + 1);
}

/* ---- groups ---- */

static struct group **find(const uint8_t mgid[16])
{
	struct group **g = &mcast.first;

	while (*g && memcmp((*g)->mgid, mgid, sizeof(*g)->mgid))
		g = &(*g)->next;
	return g;
}

static void add_user(const uint8_t mgid[16])
{
	struct group **at = find(mgid), *g = *at;

	if (!g) {
		g = *at = calloc(1, sizeof *g);
		if (!g)
			return;
		memcpy(g->mgid, mgid, sizeof g->mgid);
		g->fd = OWN_FD_NONE;
	}
	if (!atomic_load(&mcast.epfd))
		open_poll();
	if (!g->users++ && atomic_load(&mcast.epfd))
		g->fd = open_group(mgid);
}

static void del_user(const uint8_t mgid[16])
{
	struct group **at = find(mgid), *g = *at;

	if (!g || --g->users)
		return;
	*at = g->next;
	own_fd_close(&g->fd);
	free(g);
}

void mcast_join(const uint8_t mgid[16], bool joins)
{
	lock_take(&mcast.lock);
	if (joins)
		add_user(mgid);
	else
		del_user(mgid);
	lock_drop(&mcast.lock);
}

static bool is_whole(void)
{
	if (!own_fd_ok(&mcast.ep))
		return false;
	for (const struct group *g = mcast.first; g; g = g->next)
		if (g->fd.fd >= 0 && !own_fd_ok(&g->fd))
			return false;
	return true;
}

bool mcast_whole(void)
{
	bool whole;

	if (!atomic_load_explicit(&mcast.epfd, memory_order_relaxed) || !lock_try(&mcast.lock))
		return true;
	whole = is_whole();
	if (!whole)
		atomic_store(&mcast.epfd, 0);
	lock_drop(&mcast.lock);
	return whole;
}

void mcast_mend(void)
{
	lock_take(&mcast.lock);
	if (mcast.first && !atomic_load(&mcast.epfd)) {
		own_fd_close(&mcast.ep);
		open_poll();
		for (struct group *g = mcast.first; g; g = g->next) {
			own_fd_close(&g->fd);
			if (atomic_load(&mcast.epfd))
				g->fd = open_group(g->mgid);
		}
	}
	lock_drop(&mcast.lock);
}

int mcast_fd(void)
{
	return atomic_load_explicit(&mcast.epfd, memory_order_relaxed) - 1;
}

unsigned mcast_ready(int *fds, unsigned room)
{
	struct epoll_event e[READY_MAX];
	int n = epoll_wait(mcast_fd(), e, room < READY_MAX ? (int)room : READY_MAX, 0);

	for (int i = 0; i < n; i++)
		fds[i] = e[i].data.fd;
	return n > 0 ? n : 0;
}

void mcast_forked_child(void)
{
	struct group *g;

	atomic_store_explicit(&mcast.lock.word, 0, memory_order_relaxed);
	while ((g = mcast.first)) {
		mcast.first = g->next;
		own_fd_close(&g->fd);
		free(g);
	}
	own_fd_close(&mcast.ep);
	atomic_store(&mcast.epfd, 0);
}
