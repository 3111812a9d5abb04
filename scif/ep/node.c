// SPDX-License-Identifier: BSD-3-Clause
#include "scif/ep/node.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "rdv/paths.h"
#include "scif.h"
#include "scif/ep/check.h"
#include "scif/ep/host.h"

enum { NAME_LEN = 32, TEXT_LEN = 64, FIRST_FREE = SCIF_PORT_RSVD + 1, LAST_PORT = 65535 };

static struct {
	struct lock lock;
	int dir;  /* NAME.scif */
	int node; /* node.N with our lock */
	unsigned next_port;
} net = {.dir = -1, .node = -1, .next_port = FIRST_FREE};

uint16_t node_self(void)
{
	int n = rdv_node_number(secure_getenv("WEFT_NODE"));

	return n < 0 ? 0 : n;
}

int node_check(void)
{
	const char *s = secure_getenv("WEFT_NODE");

	if (rdv_node_number(s) >= 0)
		return host_check();
	check_why("WEFT_NODE is '%s', not a number from 0 to 65535", s);
	log_line(LOG_LVL_ERROR,
		"WEFT_NODE is '%s', not a number from 0 to 65535; correct or unset it", s);
	return -EINVAL;
}

static int open_dir(void)
{
	struct rdv_paths p;
	char name[sizeof(p.name) + 8];
	int ret = rdv_paths_open(&p, NULL), fd;

	if (ret)
		return ret;
	snprintf(name, sizeof(name), "%s.scif", p.name);
	ret = mkdirat(p.dir_fd, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
	fd = openat(p.dir_fd, name, O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && !ret)
		ret = -errno;
	rdv_paths_close(&p);
	return fd < 0 ? ret : fd;
}

/* The directory of nodes and ports: an fd that stays ours, or -errno. */
static int net_dir(void)
{
	int fd, err = errno;

	lock_take(&net.lock);
	if (net.dir < 0)
		net.dir = open_dir();
	fd = net.dir;
	lock_drop(&net.lock);
	errno = err;
	return fd;
}

static struct flock whole(short type)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

/* Is the file of that name locked by another open file description? */
static bool is_locked(int dir, const char *name)
{
	struct flock l = whole(F_WRLCK);
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	bool locked = false;

	if (fd < 0)
		return false;
	if (fcntl(fd, F_OFD_GETLK, &l) == 0)
		locked = l.l_type != F_UNLCK;
	close(fd);
	return locked;
}

static void node_name(char *name, uint16_t node)
{
	snprintf(name, NAME_LEN, "node.%u", node);
}

static int lock_node(int dir)
{
	struct flock l = whole(F_RDLCK);
	char name[NAME_LEN];
	bool first;
	int fd;

	node_name(name, node_self());
	first = !is_locked(dir, name);
	fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (first)
		futimens(fd, NULL); /* the node is there since now */
	if (fcntl(fd, F_OFD_SETLK, &l) < 0) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd;
}

int node_join(void)
{
	int dir = net_dir(), ret = 0;

	if (dir < 0)
		return dir;
	lock_take(&net.lock);
	if (net.node < 0) {
		net.node = lock_node(dir);
		ret = net.node < 0 ? net.node : 0;
	}
	lock_drop(&net.lock);
	return ret;
}

void node_forked(void)
{
	if (net.dir >= 0)
		close(net.dir);
	if (net.node >= 0)
		close(net.node);
	net.dir = net.node = -1;
	atomic_store_explicit(&net.lock.word, 0, memory_order_relaxed);
}

static bool is_online(int dir, uint16_t node)
{
	char name[NAME_LEN];

	if (node == 0 || node == node_self())
		return true;
	node_name(name, node);
	return is_locked(dir, name);
}

static int compare(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

/* Adds the nodes that may be on other machines: nobody asks whether they are there.  How many now.
 */
static int add_hosts(uint16_t *ids, int n, int room)
{
	int before = n, rows = host_nodes(ids + n, room - n);

	for (int i = before; i < before + rows; i++) {
		uint16_t node = ids[i];
		bool known = false;

		for (int j = 0; j < n && !known; j++)
			known = ids[j] == node;
		if (!known)
			ids[n++] = node;
	}
	return n;
}

/* Ids of node.N that are locked, ours and 0 included, sorted; how many. */
static int online(int dir, uint16_t *ids, int room)
{
	int fd = openat(dir, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC), n = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	unsigned node;
	char end;

	ids[n++] = 0;
	if (node_self())
		ids[n++] = node_self();
	while (d && (e = readdir(d)) != NULL && n < room) {
		if (sscanf(e->d_name, "node.%u%c", &node, &end) != 1 || node > UINT16_MAX)
			continue;
		if (node && node != node_self() && is_online(dir, node))
			ids[n++] = node;
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	n = add_hosts(ids, n, room);
	qsort(ids, n, sizeof(*ids), compare);
	return n;
}

int node_list(uint16_t *nodes, int len, uint16_t *self)
{
	enum { ROOM = 1024 };
	uint16_t ids[ROOM];
	int dir, n, err = errno;

	if (len < 0) {
		check_why("len is negative");
		return -EINVAL;
	}
	if (node_check())
		return -EINVAL;
	dir = net_dir();
	if (dir < 0)
		return dir;
	n = online(dir, ids, ROOM);
	for (int i = 0; nodes && i < len && i < n; i++)
		nodes[i] = ids[i];
	if (self)
		*self = node_self();
	errno = err;
	return n;
}

uint64_t node_since(uint16_t node)
{
	char name[NAME_LEN];
	struct stat st;
	int dir = net_dir();

	node_name(name, node);
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return st.st_mtim.tv_sec * (uint64_t)NSEC_PER_SEC + st.st_mtim.tv_nsec;
}

/* ---- ports ---- */

static void port_name(char *name, struct scif_id id)
{
	snprintf(name, NAME_LEN, "%u.%u", id.node, id.port);
}

/* An fd with the lock of that port, -EAGAIN if another has it. */
static int lock_port(int dir, struct scif_id id)
{
	char name[NAME_LEN];

	port_name(name, id);
	for (;;) {
		struct flock l = whole(F_WRLCK);
		struct stat ours, named;
		int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return -errno;
		if (fcntl(fd, F_OFD_SETLK, &l) < 0) {
			int ret = errno == EACCES || errno == EAGAIN ? -EAGAIN : -errno;

			close(fd);
			return ret;
		}
		/* who gave the port back unlinks the name under the lock */
		if (fstat(fd, &ours) == 0 && fstatat(dir, name, &named, 0) == 0 &&
			ours.st_ino == named.st_ino && ftruncate(fd, 0) == 0)
			return fd;
		close(fd);
	}
}

static bool may_bind(uint16_t pn)
{
	const char *s = secure_getenv("WEFT_SCIF_PORTS");

	return !pn || pn >= SCIF_ADMIN_PORT_END || geteuid() == 0 || (s && strcmp(s, "any") == 0);
}

static int lock_any(int dir, struct scif_id *id)
{
	int fd = -EAGAIN;

	for (unsigned i = FIRST_FREE; i <= LAST_PORT && fd == -EAGAIN; i++) {
		lock_take(&net.lock);
		id->port = net.next_port;
		net.next_port = net.next_port == LAST_PORT ? FIRST_FREE : net.next_port + 1;
		lock_drop(&net.lock);
		fd = lock_port(dir, *id);
	}
	return fd == -EAGAIN ? -ENOSPC : fd;
}

int port_bind(uint16_t pn, struct scif_port **port)
{
	struct scif_id id = {.node = node_self(), .port = pn};
	int dir, fd, err = errno;

	if (!may_bind(pn)) {
		log_refusal("SCIF port %u is for root; WEFT_SCIF_PORTS=any opens it", pn);
		return -EACCES;
	}
	dir = net_dir();
	if (dir < 0)
		return dir;
	fd = pn ? lock_port(dir, id) : lock_any(dir, &id);
	if (fd < 0)
		return fd == -EAGAIN ? -EINVAL : fd;
	*port = malloc(sizeof(**port));
	if (!*port) {
		close(fd);
		return -ENOMEM;
	}
	**port = (struct scif_port){.id = id, .fd = fd, .refs = 1, .users = 1};
	errno = err;
	return 0;
}

struct scif_port *port_get(struct scif_port *port)
{
	atomic_fetch_add_explicit(&port->refs, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&port->users, 1, memory_order_relaxed);
	return port;
}

static void give_back(struct scif_port *port)
{
	char name[NAME_LEN];
	int dir;

	if (port->fd < 0)
		return;
	dir = net_dir();
	port_name(name, port->id);
	if (dir >= 0)
		unlinkat(dir, name, 0);
	close(port->fd);
	port->fd = -1;
}

void port_leave(struct scif_port *port)
{
	if (port && atomic_fetch_sub_explicit(&port->users, 1, memory_order_acq_rel) == 1)
		give_back(port);
}

void port_put(struct scif_port *port)
{
	if (!port || atomic_fetch_sub_explicit(&port->refs, 1, memory_order_acq_rel) > 1)
		return;
	give_back(port);
	free(port);
}

void port_place(const struct scif_port *port, struct sockaddr_storage *addr)
{
	*addr = (struct sockaddr_storage){.ss_family = AF_INET};
	host_of(port->id.node, port->id.port, addr);
}

int port_publish(struct scif_port *port, uint16_t cm_port)
{
	struct sockaddr_storage at;
	char text[TEXT_LEN], host[INET6_ADDRSTRLEN] = "127.0.0.1";
	int n;

	if (host_of(port->id.node, cm_port, &at))
		host_text(&at, host, sizeof(host));
	n = snprintf(text, sizeof(text), "%u %s\n", cm_port, host);

	return pwrite(port->fd, text, n, 0) == n ? 0 : -EIO;
}

void port_forked(struct scif_port *port)
{
	if (port && port->fd >= 0)
		close(port->fd);
	if (port)
		port->fd = -1;
}

/* The same of a port of this machine. */
static int address_here(int dir, struct scif_id id, struct sockaddr_storage *addr)
{
	char name[NAME_LEN], text[TEXT_LEN] = "", host[TEXT_LEN];
	unsigned cm_port = 0;
	ssize_t n;
	int fd;

	if (!is_online(dir, id.node))
		return -ENODEV;
	port_name(name, id);
	if (!is_locked(dir, name))
		return -ECONNREFUSED;
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0 || sscanf(text, "%u %63s", &cm_port, host) != 2 || cm_port - 1 >= UINT16_MAX ||
		!host_read(host, cm_port, addr))
		return -ECONNREFUSED;
	return 0;
}

int port_address(struct scif_id id, struct sockaddr_storage *addr)
{
	int dir = net_dir(), ret;

	if (dir < 0)
		return dir;
	ret = address_here(dir, id, addr);
	return ret && host_of(id.node, id.port, addr) ? 0 : ret;
}
