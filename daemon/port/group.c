// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/port/group.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "roce/port/socket.h"
#include "roce/port/steer.h"
#include "wire/roce.h"

/* The lock's place in the keeper, which is no seat's. */
enum { LOCK_INDEX = UINT16_MAX, SEATS_MAX = UINT16_MAX, DRAIN_MAX = 8192 };

_Static_assert(WIRE_FAMILIES == (int)KEEPER_FDS && WIRE_IPV4 == (int)KEEPER_IPV4, "same places");

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static struct wire_seat *seat_new(uint32_t index)
{
	struct wire_seat *seat = malloc(sizeof *seat);

	if (seat)
		*seat = (struct wire_seat){.index = index, .fd = {-1, -1}};
	return seat;
}

static void seat_end(struct wire_seat *seat)
{
	for (int i = 0; i < WIRE_FAMILIES; i++)
		close_fd(&seat->fd[i]);
	free(seat);
}

static int make_room(struct wire_group *g, uint32_t n)
{
	uint32_t room = g->room ? g->room : 8;
	struct wire_seat **seat;

	while (room < n)
		room *= 2;
	if (room == g->room)
		return 0;
	seat = realloc(g->seat, room * sizeof *seat);
	if (!seat)
		return -ENOMEM;
	memset(seat + g->room, 0, (room - g->room) * sizeof *seat);
	g->seat = seat;
	g->room = room;
	return 0;
}

/* ---- sockets ---- */

static int send_all_to_us(int fd)
{
	struct sock_filter code[STEER_CODE_MAX];
	int len = steer_program(NULL, 0, code, STEER_CODE_MAX);

	return len < 0 ? len : steer_attach(fd, code, len);
}

static int open_socket(const struct wire_group *g, int family, uint32_t index)
{
	struct roce_socket_wish wish = {
		.ipv6 = family == WIRE_IPV6, .any = g->place.any, .group = true, .port = ROCE_PORT};
	int fd, ret = 0;

	memcpy(wish.addr, g->place.addr, sizeof wish.addr);
	fd = roce_socket_open(&wish);
	if (fd < 0)
		return fd;
	/* Before the first is bound, so that no packet goes by the kernel's choice. */
	if (index == 0)
		ret = send_all_to_us(fd);
	if (!ret)
		ret = roce_socket_bind(fd, &wish);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static bool wanted(const struct port_place *p, int family)
{
	return p->any || p->ipv6 == (family == WIRE_IPV6);
}

/* Which families there are shows with the first seat. */
static int open_sockets(struct wire_group *g, struct wire_seat *seat)
{
	for (int i = 0; i < WIRE_FAMILIES; i++) {
		int fd;

		if (seat->index ? !g->has[i] : !wanted(&g->place, i))
			continue;
		fd = open_socket(g, i, seat->index);
		if (fd == -EAFNOSUPPORT && !seat->index && g->place.any)
			continue;
		if (fd < 0)
			return fd;
		seat->fd[i] = fd;
	}
	return seat->fd[WIRE_IPV4] < 0 && seat->fd[WIRE_IPV6] < 0 ? -EAFNOSUPPORT : 0;
}

static int keep(const struct wire_group *g, uint32_t index, const int fd[WIRE_FAMILIES])
{
	const struct keeper_entry e = {.index = index, .fd = {fd[0], fd[1]}};
	int ret = keeper_put(&g->keeper, &e);

	return ret == -EAGAIN ? -ENOSPC : ret;
}

/* The last index: if that fails, its sockets go again without harm. */
static int add_seat(struct wire_group *g)
{
	struct wire_seat *seat;
	int ret;

	if (g->n == SEATS_MAX)
		return -ENOSPC;
	ret = make_room(g, g->n + 1);
	if (ret)
		return ret;
	seat = seat_new(g->n);
	if (!seat)
		return -ENOMEM;
	ret = open_sockets(g, seat);
	if (!ret)
		ret = keep(g, seat->index, seat->fd);
	if (ret) {
		seat_end(seat);
		return ret;
	}
	g->seat[g->n++] = seat;
	return 0;
}

/* ---- the group ---- */

int wire_group_open(struct wire_group *g, const struct port_place *place)
{
	int ret;

	*g = (struct wire_group){.place = *place, .lock = port_lock_take(place), .shown = -1};
	if (g->lock < 0)
		return g->lock;
	ret = keeper_open(&g->keeper);
	if (ret) {
		close_fd(&g->lock);
		return ret;
	}
	g->open = true;
	g->shown = port_lock_show(place);
	ret = add_seat(g);
	for (int i = 0; !ret && i < WIRE_FAMILIES; i++)
		g->has[i] = g->seat[0]->fd[i] >= 0;
	if (!ret)
		ret = keep(g, LOCK_INDEX, (int[]){g->lock, -1});
	if (ret)
		wire_group_close(g);
	return ret;
}

int wire_group_fds(const struct wire_group *g)
{
	int n = 0;

	if (!g->open)
		return 0;
	n += (g->lock >= 0) + (g->shown >= 0);
	for (size_t k = 0; k < sizeof g->keeper.fd / sizeof *g->keeper.fd; k++)
		n += g->keeper.fd[k] >= 0;
	for (uint32_t i = 0; i < g->n; i++)
		for (int k = 0; k < WIRE_FAMILIES; k++)
			n += g->seat[i]->fd[k] >= 0;
	return n;
}

void wire_group_close(struct wire_group *g)
{
	while (g->n)
		if (g->seat[--g->n])
			seat_end(g->seat[g->n]);
	free(g->seat);
	keeper_close(&g->keeper);
	close_fd(&g->lock);
	close_fd(&g->shown);
	*g = (struct wire_group){.lock = -1, .shown = -1};
}

int wire_group_seat(struct wire_group *g, struct wire_seat **out)
{
	uint32_t i = 1;
	int ret;

	while (i < g->n && (g->seat[i]->owner || wire_seat_held(g->seat[i])))
		i++;
	if (i == g->n) {
		ret = add_seat(g);
		if (ret)
			return ret;
	} else {
		wire_seat_drain(g->seat[i]);
	}
	*out = g->seat[i];
	(*out)->left = false;
	return 0;
}

/* Record locks are a process's own: ours would not show, but we take none. */
bool wire_seat_held(const struct wire_seat *seat)
{
	struct flock look = {.l_type = F_WRLCK};
	int fd = seat->fd[seat->fd[WIRE_IPV4] < 0];

	return fcntl(fd, F_GETLK, &look) == 0 && look.l_type != F_UNLCK;
}

void wire_seat_drain(const struct wire_seat *seat)
{
	char byte;

	for (int i = 0; i < WIRE_FAMILIES; i++)
		for (int n = 0; seat->fd[i] >= 0 && n < DRAIN_MAX; n++)
			if (recv(seat->fd[i], &byte, 0, MSG_DONTWAIT | MSG_TRUNC) < 0 &&
				errno == EAGAIN)
				break;
}

/* ---- from a predecessor ---- */

/* A pair's end that could be a keeper's or a hand's: a socket of that kind. */
static bool is_socket(int fd, int domain, int type)
{
	socklen_t len = sizeof(int);
	int has = 0, is = 0;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &has, &len) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &is, &len) == 0 && has == domain && is == type;
}

bool wire_is_pair(int fd)
{
	return is_socket(fd, AF_UNIX, SOCK_SEQPACKET);
}

/* Whether fd is bound to our port; where, is written to p. */
static bool is_at_port(int fd, bool ipv6, struct port_place *p)
{
	static const uint8_t zero[16];
	union {
		struct sockaddr any;
		struct sockaddr_in ip4;
		struct sockaddr_in6 ip6;
	} a = {0};
	socklen_t len = sizeof a;
	uint16_t port;

	if (!is_socket(fd, ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM) || getsockname(fd, &a.any, &len))
		return false;
	*p = (struct port_place){.ipv6 = ipv6};
	port = ipv6 ? a.ip6.sin6_port : a.ip4.sin_port;
	if (ipv6)
		memcpy(p->addr, &a.ip6.sin6_addr, sizeof p->addr);
	else
		memcpy(p->addr + 12, &a.ip4.sin_addr, sizeof a.ip4.sin_addr);
	p->any = memcmp(p->addr, zero, sizeof zero) == 0;
	return port == htons(ROCE_PORT);
}

/* Takes over the descriptors of an entry; those that are not what they should be go. */
static int take_entry(void *arg, const struct keeper_entry *e)
{
	struct wire_group *g = arg;
	int fd[WIRE_FAMILIES] = {e->fd[0], e->fd[1]};
	int ret = 0;

	if (e->index == LOCK_INDEX) {
		if (g->lock < 0 && port_lock_is(fd[0])) {
			g->lock = fd[0];
			fd[0] = -1;
		}
	} else if (e->index < SEATS_MAX && !(ret = make_room(g, e->index + 1))) {
		struct wire_seat *seat = seat_new(e->index);

		if (!seat)
			ret = -ENOMEM;
		else {
			seat->left = e->index > 0;
			memcpy(seat->fd, fd, sizeof fd);
			fd[0] = fd[1] = -1;
			g->seat[e->index] = seat;
			g->n = g->n > e->index ? g->n : e->index + 1;
		}
	}
	close_fd(&fd[0]);
	close_fd(&fd[1]);
	return ret;
}

/* All seats are there, each with the same families, at our port. */
static bool is_whole(struct wire_group *g)
{
	struct port_place place;

	if (!g->n || g->lock < 0 || !g->seat[0])
		return false;
	for (int i = 0; i < WIRE_FAMILIES; i++)
		g->has[i] = g->seat[0]->fd[i] >= 0;
	for (uint32_t n = 0; n < g->n; n++)
		for (int i = 0; i < WIRE_FAMILIES; i++) {
			if (!g->seat[n] || (g->seat[n]->fd[i] >= 0) != g->has[i])
				return false;
			if (!g->has[i])
				continue;
			if (!is_at_port(g->seat[n]->fd[i], i == WIRE_IPV6, &place))
				return false;
			g->place = place;
		}
	return true;
}

/* Of a group that could not be taken up: its keeper stays the caller's. */
static void forget(struct wire_group *g)
{
	while (g->n)
		if (g->seat[--g->n])
			seat_end(g->seat[g->n]);
	free(g->seat);
	close_fd(&g->lock);
	*g = (struct wire_group){.lock = -1, .shown = -1};
}

int wire_group_adopt(
	struct wire_group *g, const struct keeper *keeper, const struct port_place *place)
{
	int ret;

	*g = (struct wire_group){.lock = -1, .shown = -1};
	for (int i = 0; i < 2; i++)
		if (!wire_is_pair(keeper->fd[i]))
			return -EPROTO;
	ret = keeper_walk(keeper, take_entry, g);
	if (!ret && !is_whole(g))
		ret = -EPROTO;
	if (!ret && !port_place_same(&g->place, place))
		ret = -ESTALE;
	if (ret) {
		forget(g);
		return ret;
	}
	g->keeper = *keeper;
	g->open = true;
	g->shown = port_lock_show(&g->place);
	return 0;
}

bool wire_group_is(const struct wire_group *g, const struct keeper *keeper)
{
	struct stat ours, theirs;

	return fstat(g->keeper.fd[0], &ours) == 0 && fstat(keeper->fd[0], &theirs) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}
