// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/client.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "rdv/fork.h"
#include "rdv/grow.h"
#include "rdv/lease.h"
#include "rdv/look.h"
#include "rdv/segment.h"
#include "rdv/spawn.h"
#include "rdv/wire.h"

enum { CALL_TRIES = 3 };

struct client client = {
	.conn = {.sock = {.fd = -1}},
	.seg_fd = {.fd = -1},
	.async_fd = {.fd = -1},
	.arena_fd = {.fd = -1},
};

int client_enter(void)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&client.lock);
	return cancel;
}

int client_leave(int cancel, int ret)
{
	lock_drop(&client.lock);
	pthread_setcancelstate(cancel, NULL);
	return ret;
}

static void set_conn(struct client *c, const struct conn *conn)
{
	lock_take(&c->post_lock);
	conn_close(&c->conn);
	c->conn = *conn;
	lock_drop(&c->post_lock);
}

static int check_node(const char *fabric)
{
	const char *node = secure_getenv("WEFT_NODE");

	if (rdv_node_number(node) >= 0)
		return 0; /* weftd knows whether there is a node of that number */
	rdv_no_node(fabric);
	return -ENODEV;
}

static int not_running(struct client *c, const struct rdv_paths *p)
{
	if (!c->told)
		log_line(LOG_LVL_ERROR,
			"no weftd serves fabric \"%s\" and WEFT_AUTOSTART=0; run: weft up --fabric "
			"%s",
			p->fabric, p->fabric);
	c->told = true;
	return -ENOTCONN;
}

/* Did the weftd that we knew leave because it was told to? */
static bool left_in_peace(const struct client *c)
{
	return c->att.fabric && atomic_load_explicit(&c->att.fabric->left, memory_order_acquire);
}

static int connect_weftd(struct client *c, struct conn *conn)
{
	const char *autostart = secure_getenv("WEFT_AUTOSTART");
	struct rdv_paths p;
	int ret = rdv_paths_open(&p, NULL);

	if (ret)
		return ret;
	ret = check_node(p.fabric);
	if (!ret && c->only_join) {
		ret = conn_open(conn, &p);
		if (ret == -ENOTCONN)
			ret = -EAGAIN;
	} else if (!ret && autostart && strcmp(autostart, "0") == 0) {
		ret = conn_open(conn, &p);
		if (ret == -ENOTCONN)
			ret = not_running(c, &p);
	} else if (!ret) {
		ret = spawn_or_connect(conn, &p, false);
	}
	rdv_paths_close(&p);
	if (ret)
		return ret;
	c->told = false;
	lock_take(&c->post_lock);
	strcpy(c->dir, p.dir);
	lock_drop(&c->post_lock);
	return 0;
}

/* A fabric has the addresses of one network namespace: its GID table would be wrong in another. */
static void tell_other_netns(void)
{
	static _Atomic bool told;

	if (!atomic_exchange_explicit(&told, true, memory_order_relaxed))
		log_line(LOG_LVL_ERROR,
			"fabric \"%s\" is that of another network namespace, whose addresses it "
			"has; in this one use another WEFT_FABRIC, or another WEFT_RUNTIME_DIR",
			rdv_fabric_name());
}

/* Sends OP_ATTACH over conn, as a new process or as the one we are already. */
static int say_attach(struct client *c, struct conn *conn, struct proto_in *in)
{
	struct proto_attach call = {.pid = getpid(),
		.pid_ns = rdv_namespace("pid"),
		.node = rdv_node_number(secure_getenv("WEFT_NODE"))};
	struct proto_out out = proto_call(OP_ATTACH, &call);
	int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int fds[4] = {netns};
	int n_fds = 1, ret;

	if (netns < 0)
		return -errno;
	if (c->attached) {
		call.flags = PROTO_AGAIN;
		call.attach_id = c->att.attach_id;
		call.hub_id = atomic_load_explicit(&c->att.hub_id, memory_order_relaxed);
		if (own_fd_ok(&c->seg_fd) && own_fd_ok(&c->async_fd)) {
			fds[n_fds++] = c->seg_fd.fd;
			fds[n_fds++] = c->async_fd.fd;
			if (own_fd_ok(&c->arena_fd))
				fds[n_fds++] = c->arena_fd.fd;
		}
	}
	out.fds = fds;
	out.n_fds = n_fds;
	ret = conn_call(conn, &out, in);
	close(netns);
	return ret;
}

/* A call whose reply has no fds that anybody wants; *reply (may be NULL): its payload. */
static int call_over(struct conn *conn, struct proto_out *out, void *reply)
{
	struct proto_in in;
	int ret = conn_call(conn, out, &in);

	if (ret)
		return ret;
	proto_close(&in);
	if (reply)
		memcpy(reply, &in.payload, in.len);
	return 0;
}

/* OP_ADD_CHANNEL or OP_ADD_BACKING, whose payloads are an id alone. */
static struct proto_out fd_out(uint32_t op, const uint32_t *id, const int *fd)
{
	struct proto_out out = proto_call(op, id);

	out.fds = fd;
	out.n_fds = 1;
	return out;
}

_Static_assert(sizeof(struct proto_channel) == sizeof(uint32_t) &&
		       sizeof(struct proto_backing) == sizeof(uint32_t),
	"an id alone");

/* Memory that peers cannot find any more they copy: no reason to stay away. */
static int send_backing(struct conn *conn, const struct client_fd *f)
{
	struct proto_out out = fd_out(OP_ADD_BACKING, &f->id, &f->fd.fd);
	int ret;

	if (!own_fd_ok(&f->fd))
		return 0;
	ret = call_over(conn, &out, NULL);
	return ret == -EINVAL || ret == -EMFILE ? 0 : ret;
}

static int send_channel(struct conn *conn, const struct client_fd *f)
{
	bool closed = !own_fd_ok(&f->fd);
	/* Closed behind our back, it wakes nobody, but peers want one to write. */
	int fd = closed ? eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC) : f->fd.fd;
	struct proto_out out = fd_out(OP_ADD_CHANNEL, &f->id, &fd);
	int ret = fd < 0 ? -errno : call_over(conn, &out, NULL);

	if (closed && fd >= 0)
		close(fd);
	return ret;
}

static int send_members(struct conn *conn)
{
	const struct proto_members call = {.entry = 0};
	struct proto_out out = proto_call(OP_MEMBERS, &call);
	int ret = call_over(conn, &out, NULL);

	if (ret == -ENOSPC) {
		log_line(LOG_LVL_ERROR,
			"weftd has no room for all our multicast groups and XRC domains; others do "
			"not find some of them");
		ret = 0;
	}
	return ret;
}

/* Of the ops about connections, whose payloads have many lengths. */
static struct proto_out cm_out(uint32_t op, const void *call, size_t len, const int *fd)
{
	return (struct proto_out){
		.head = {.op = op},
		.payload = call,
		.len = len,
		.fds = fd,
		.n_fds = *fd >= 0,
	};
}

static int send_cm(void *conn, uint32_t op, const void *call, size_t len, int fd)
{
	struct proto_out out = cm_out(op, call, len, &fd);

	return call_over(conn, &out, NULL);
}

/* Tells a new weftd what its predecessor knew of us; the first one has all in a new segment. */
static int publish(struct client *c, struct conn *conn)
{
	int ret = leases_publish(conn);

	for (size_t i = 0; !ret && i < c->channels.n; i++)
		ret = send_channel(conn, &c->channels.at[i]);
	for (size_t i = 0; !ret && i < c->backings.n; i++)
		ret = send_backing(conn, &c->backings.at[i]);
	if (!ret && c->attached)
		ret = send_members(conn);
	if (!ret)
		ret = wire_publish(conn);
	if (!ret && c->attached && c->publish_cm)
		ret = c->publish_cm(send_cm, conn);
	return ret;
}

static int attach_over(struct client *c, struct conn *conn)
{
	struct proto_in in;
	int ret = say_attach(c, conn, &in);

	if (ret == -EACCES)
		tell_other_netns();
	if (ret == -ENODEV)
		rdv_no_node(rdv_fabric_name());
	if (!ret)
		ret = segment_adopt(c, &in);
	if (!ret)
		ret = publish(c, conn);
	if (ret) {
		if (!c->attached)
			segment_discard(c);
		return ret;
	}
	set_conn(c, conn);
	if (!c->attached)
		atomic_fetch_add(&c->epoch, 1);
	atomic_store(&c->attached, true);
	return 0;
}

int client_ensure(void)
{
	struct client *c = &client;
	struct conn conn;
	int ret;

	if (own_fd_ok(&c->conn.sock))
		return 0;
	ret = fork_watch();
	for (int i = 0; !ret && i < CALL_TRIES; i++) {
		ret = connect_weftd(c, &conn);
		if (ret)
			break;
		ret = attach_over(c, &conn);
		if (!ret)
			return 0;
		conn_close(&conn);
		if (ret == -EPIPE && i + 1 < CALL_TRIES)
			ret = 0; /* it was just leaving: the next one is ours */
	}
	if (ret == -EPIPE)
		log_line(LOG_LVL_ERROR, "weftd closes every connection; see its log");
	if (ret == -ESTALE || ret == -EEXIST)
		log_line(LOG_LVL_ERROR,
			"weftd was restarted and this process cannot take up its objects again: "
			"%s; "
			"restart the program",
			ret == -ESTALE ? "it has closed its segment" : "its id is another's");
	return ret == -EPIPE ? -ENOTCONN : ret;
}

static void disconnect(struct client *c)
{
	struct conn none = CONN_NONE;

	set_conn(c, &none);
}

int client_call(struct proto_out *out, struct proto_in *in)
{
	int ret = -ENOTCONN;

	for (int i = 0; i < CALL_TRIES; i++) {
		ret = client_ensure();
		if (ret)
			return ret;
		ret = conn_call(&client.conn, out, in);
		if (ret != -EPIPE)
			return ret;
		disconnect(&client);
	}
	return -ENOTCONN;
}

/* The same for calls whose reply has no fds; *reply (may be NULL): its payload. */
static int call_plain(uint32_t op, const void *payload, void *reply)
{
	struct proto_out out = proto_call(op, payload);
	struct proto_in in;
	int ret = client_call(&out, &in);

	if (ret)
		return ret;
	proto_close(&in);
	if (reply)
		memcpy(reply, &in.payload, in.len);
	return 0;
}

int client_undo(uint32_t op, const void *payload)
{
	int ret = call_plain(op, payload, NULL);

	return ret == -ENOENT ? 0 : ret;
}

int rdv_attach(const struct rdv_attach **out)
{
	int cancel, ret = 0;

	if (!atomic_load_explicit(&client.attached, memory_order_acquire)) {
		cancel = client_enter();
		if (!client.attached)
			ret = client_ensure();
		client_leave(cancel, ret);
	}
	*out = &client.att;
	return ret;
}

static int revive(struct client *c)
{
	if (!c->attached || own_fd_ok(&c->async_fd))
		return 0;
	disconnect(c);
	return client_ensure();
}

int rdv_revive(void)
{
	int cancel = client_enter();

	return client_leave(cancel, revive(&client));
}

int rdv_arena_fd(void)
{
	int saved = errno, fd;

	lock_take(&client.post_lock);
	fd = own_fd_ok(&client.arena_fd) ? client.arena_fd.fd : -1;
	lock_drop(&client.post_lock);
	errno = saved;
	return fd;
}

uint32_t rdv_epoch(void)
{
	return atomic_load_explicit(&client.epoch, memory_order_relaxed);
}

/* Is the connection at its end, or closed behind our back? */
static bool broken(struct client *c)
{
	bool gone;
	char byte;

	lock_take(&c->post_lock);
	gone = !own_fd_ok(&c->conn.sock) ||
	       recv(c->conn.sock.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
	lock_drop(&c->post_lock);
	return gone;
}

static int check(struct client *c)
{
	int ret;

	if (!broken(c))
		return 0;
	disconnect(c);
	c->only_join = left_in_peace(c);
	ret = client_ensure();
	c->only_join = false;
	return ret;
}

int rdv_check(void)
{
	int cancel, ret = 0, saved = errno;

	if (!atomic_load_explicit(&client.attached, memory_order_acquire))
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (lock_try(&client.lock)) { /* else somebody is at it */
		ret = check(&client);
		lock_drop(&client.lock);
	}
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return ret;
}

int rdv_publish_member(uint32_t index)
{
	const struct proto_members call = {.entry = index + 1};
	int cancel = client_enter();

	return client_leave(cancel, call_plain(OP_MEMBERS, &call, NULL));
}

/* pid as our own /proc shows it for a pidfd; 0 if the process is in none of our namespaces. */
static int32_t pid_of(int pidfd)
{
	char path[64], buf[1024], *p;
	int fd, n;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, buf, sizeof buf - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	p = strstr(buf, "\nPid:");
	n = p ? atoi(p + 5) : 0;
	return n > 0 ? n : 0;
}

static int find_peer(uint32_t qpn, uint32_t attach_id, struct rdv_peer *out)
{
	const struct proto_find ask = {.qpn = qpn, .attach_id = attach_id};
	struct proto_out msg = proto_call(OP_FIND_QPN, &ask);
	const struct proto_found *found;
	struct proto_in in;
	bool arena;
	int ret = client_call(&msg, &in);

	if (ret)
		return ret;
	found = &in.payload.found;
	arena = found->flags & PROTO_ARENA;
	if (in.n_fds < 2 + arena) {
		proto_close(&in);
		return -EPROTO;
	}
	out->attach_id = found->attach_id;
	out->seg_fd = proto_take_fd(&in, 0);
	out->async_fd = proto_take_fd(&in, 1);
	out->arena_fd = arena ? proto_take_fd(&in, 2) : -1;
	out->pidfd = proto_take_fd(&in, 2 + arena);
	proto_close(&in);
	out->same_pid_ns = found->pid_ns && found->pid_ns == rdv_namespace("pid");
	out->pid = found->pid;
	if (!out->same_pid_ns)
		out->pid = out->pidfd >= 0 ? pid_of(out->pidfd) : 0;
	return 0;
}

int rdv_find_qpn(uint32_t qpn, struct rdv_peer *out)
{
	int cancel = client_enter();

	return client_leave(cancel, find_peer(qpn, 0, out));
}

int rdv_find_attach(uint32_t attach_id, struct rdv_peer *out)
{
	int cancel = client_enter();

	return client_leave(cancel, find_peer(0, attach_id, out));
}

static size_t find_fd(const struct client_fds *k, uint32_t id)
{
	size_t i = 0;

	while (i < k->n && k->at[i].id != id)
		i++;
	return i;
}

static int add_fd(struct client_fds *k, uint32_t op, uint32_t id, int fd)
{
	struct client_fd f = {.id = id, .fd = own_fd_at(fd)};
	struct proto_out out = fd_out(op, &id, &fd);
	struct proto_in in;
	int ret;

	if (id == 0 || find_fd(k, id) < k->n)
		return -EINVAL;
	ret = grow((void **)&k->at, &k->room, k->n, sizeof *k->at);
	if (!ret)
		ret = client_call(&out, &in);
	if (ret)
		return ret;
	proto_close(&in);
	k->at[k->n++] = f;
	return 0;
}

/* By OP_DEL_CHANNEL or OP_DEL_BACKING. */
static int del_fd(struct client_fds *k, uint32_t op, uint32_t id)
{
	size_t i = find_fd(k, id);

	if (i == k->n)
		return -ENOENT;
	k->at[i] = k->at[--k->n];
	return client_undo(op, &id);
}

/* ask: the payload of OP_GET_CHANNEL or OP_GET_BACKING. */
static int get_fd(uint32_t op, const void *ask, int *fd)
{
	struct proto_out out = proto_call(op, ask);
	struct proto_in in;
	int ret = client_call(&out, &in);

	if (ret)
		return ret;
	*fd = proto_take_fd(&in, 0);
	proto_close(&in);
	return *fd < 0 ? -EPROTO : 0;
}

int rdv_add_channel(uint32_t id, int fd)
{
	int cancel = client_enter();

	return client_leave(cancel, add_fd(&client.channels, OP_ADD_CHANNEL, id, fd));
}

int rdv_del_channel(uint32_t id)
{
	int cancel = client_enter();

	return client_leave(cancel, del_fd(&client.channels, OP_DEL_CHANNEL, id));
}

int rdv_get_channel(uint32_t attach_id, uint32_t id, int *fd)
{
	const struct proto_peer_channel ask = {.attach_id = attach_id, .id = id};
	int cancel = client_enter();

	return client_leave(cancel, get_fd(OP_GET_CHANNEL, &ask, fd));
}

int rdv_add_backing(uint32_t id, int fd)
{
	int cancel = client_enter();

	return client_leave(cancel, add_fd(&client.backings, OP_ADD_BACKING, id, fd));
}

int rdv_del_backing(uint32_t id)
{
	int cancel = client_enter();

	return client_leave(cancel, del_fd(&client.backings, OP_DEL_BACKING, id));
}

int rdv_get_backing(uint32_t attach_id, uint32_t id, int *fd)
{
	const struct proto_peer_backing ask = {.attach_id = attach_id, .id = id};
	int cancel = client_enter();

	return client_leave(cancel, get_fd(OP_GET_BACKING, &ask, fd));
}

/* Without the lock of control calls, which may be held for long. */
static int post_once(struct proto_out *out)
{
	int ret = -EPIPE;

	lock_take(&client.post_lock);
	if (own_fd_ok(&client.conn.sock))
		ret = conn_post(&client.conn, out);
	lock_drop(&client.post_lock);
	return ret;
}

static int post(uint32_t op, const void *payload)
{
	struct proto_out out = proto_call(op, payload);
	int cancel, ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ret = post_once(&out);
	/* Nobody else might come by to restart weftd: a sleeper relies on this message. */
	if (ret == -EPIPE && client.attached && lock_try(&client.lock)) {
		disconnect(&client);
		ret = client_ensure();
		lock_drop(&client.lock);
		if (!ret)
			ret = post_once(&out);
	}
	pthread_setcancelstate(cancel, NULL);
	return ret;
}

int rdv_set_timer(uint32_t attach_id, uint32_t qp_index)
{
	const struct proto_timer call = {.attach_id = attach_id, .index = qp_index};

	return post(OP_SET_TIMER, &call);
}

int rdv_fire(uint32_t attach_id, uint32_t id)
{
	const struct proto_peer_channel call = {.attach_id = attach_id, .id = id};

	return post(OP_FIRE, &call);
}

static int cm_call(struct proto_out *out, void *reply)
{
	int cancel = client_enter(), ret = -ENOTCONN;

	for (int i = 0; i < CALL_TRIES; i++) {
		ret = client_ensure();
		if (!ret)
			ret = call_over(&client.conn, out, reply);
		if (ret != -EPIPE)
			break;
		disconnect(&client);
		ret = -ENOTCONN;
	}
	return client_leave(cancel, ret);
}

int rdv_cm_call(uint32_t op, const void *call, size_t len, void *reply)
{
	const int none = -1;
	struct proto_out out = cm_out(op, call, len, &none);

	return cm_call(&out, reply);
}

int rdv_cm_call_fd(uint32_t op, const void *call, size_t len, int fd)
{
	struct proto_out out = cm_out(op, call, len, &fd);

	return cm_call(&out, NULL);
}

int rdv_name_addr(const char *name, struct sockaddr_un *addr, int *dir_fd)
{
	char dir[PATH_MAX], link[32];
	bool fits;

	*dir_fd = -1;
	lock_take(&client.post_lock);
	fits = rdv_plain_addr(client.dir, name, addr);
	if (!fits)
		strcpy(dir, client.dir);
	lock_drop(&client.post_lock);
	if (fits)
		return 0;
	*dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dir_fd < 0)
		return -errno;
	snprintf(link, sizeof link, "/proc/self/fd/%d", *dir_fd);
	if (rdv_plain_addr(link, name, addr))
		return 0;
	close(*dir_fd);
	*dir_fd = -1;
	return -ENAMETOOLONG;
}

int rdv_cm_post(uint32_t op, const void *call, size_t len)
{
	const int none = -1;
	struct proto_out out = cm_out(op, call, len, &none);
	int cancel, ret = -EPIPE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&client.post_lock);
	if (own_fd_ok(&client.conn.sock))
		ret = conn_post(&client.conn, &out);
	lock_drop(&client.post_lock);
	pthread_setcancelstate(cancel, NULL);
	return ret;
}

void rdv_cm_publish(int (*publish)(rdv_cm_send send, void *conn))
{
	int cancel = client_enter();

	client.publish_cm = publish;
	client_leave(cancel, 0);
}

int rdv_socket(void)
{
	int fd;

	lock_take(&client.post_lock);
	fd = own_fd_ok(&client.conn.sock) ? client.conn.sock.fd : -1;
	lock_drop(&client.post_lock);
	return fd;
}
