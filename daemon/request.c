// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/connections.h"
#include "daemon/faults.h"
#include "daemon/issm.h"
#include "daemon/node_ports.h"
#include "daemon/peer_stats.h"
#include "daemon/port/place.h"
#include "daemon/status.h"
#include "daemon/subnet_admin.h"
#include "daemon/subnet_files.h"
#include "daemon/umad.h"
#include "daemon/wire.h"
#include "pages/piece.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static int refused(struct server *s, enum refusal why, int err)
{
	server_refuse(s, why);
	return err;
}

/* The pidfd of the process that connected; by pid on kernels before 6.5. */
static int peer_pidfd(const struct session *c)
{
	socklen_t len = sizeof(int);
	int fd;

	if (getsockopt(c->sock.fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;
	return c->pid > 0 ? (int)syscall(SYS_pidfd_open, c->pid, 0) : -1;
}

static bool our_netns(const struct server *s, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == s->netns_dev && st.st_ino == s->netns_ino;
}

static void give_arena(const struct process *p, struct reply *r, uint32_t *flags)
{
	if (p->arena_fd < 0)
		return;
	*flags |= PROTO_ARENA;
	r->fds[r->n_fds++] = p->arena_fd;
}

static void give_attachment(const struct server *s, const struct process *p, struct reply *r)
{
	struct proto_attached *reply = &r->payload.attached;

	reply->attach_id = p->id;
	reply->hub_id = s->env.hub_id;
	reply->segment_size = SEG_SIZE;
	r->fds[0] = p->node->page_fd;
	r->fds[1] = s->hub_fd;
	r->fds[2] = p->seg_fd;
	r->fds[3] = p->async_fd;
	r->n_fds = 4;
	give_arena(p, r, &reply->flags);
}

/* Failures of making or adopting a process, by name. */
static int attach_failed(struct server *s, int err)
{
	switch (err) {
	case -EMFILE:
	case -ENFILE:
		return refused(s, REF_NO_FDS, err);
	case -EPROTO:
		return refused(s, REF_BAD_SEGMENT, err);
	default:
		return refused(s, REF_NO_MEMORY, err);
	}
}

/* The process is still known: its connection broke, or was closed behind the library's back. */
static int take_up(struct server *s, struct session *c, struct process *p)
{
	if (p->pid != c->pid)
		return refused(s, REF_ID_CONFLICT, -EEXIST);
	if (p->session)
		session_close(s, p->session);
	return 0;
}

static int adopt(struct server *s, struct session *c, struct proto_in *in, struct process **p)
{
	const struct proto_attach *call = &in->payload.attach;
	int pidfd, ret;

	if (in->n_fds < 3)
		return refused(s, REF_BAD_SEGMENT, -ESTALE);
	if (call->attach_id == s->env.hub_id)
		return refused(s, REF_ID_CONFLICT, -EEXIST);
	pidfd = peer_pidfd(c);
	ret = process_adopt(s, call->attach_id, c->pid, pidfd, in->fds[1], in->fds[2],
		in->n_fds > 3 ? in->fds[3] : -1, p);
	if (ret) {
		if (pidfd >= 0)
			close(pidfd);
		return attach_failed(s, ret);
	}
	proto_take_fd(in, 1);
	proto_take_fd(in, 2);
	proto_take_fd(in, 3);
	/* Whatever our predecessor held in there when it died. */
	if (call->hub_id && call->hub_id != s->env.hub_id)
		recover_death(&s->env, (*p)->seg, (*p)->id, call->hub_id);
	recover_adopt(&s->env, (*p)->seg, (*p)->id);
	return 0;
}

static int create(struct server *s, struct session *c, struct process **p)
{
	int pidfd = peer_pidfd(c);
	int ret = process_create(s, c->pid, pidfd, p);

	if (ret) {
		if (pidfd >= 0)
			close(pidfd);
		return attach_failed(s, ret);
	}
	return 0;
}

static int do_attach(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_attach *call = &in->payload.attach;
	struct node *node;
	bool again = call->flags & PROTO_AGAIN;
	struct process *p = NULL;
	int ret;

	if (c->process)
		return refused(s, REF_BAD_MESSAGE, 1);
	if (node_get(s, call->node, &node))
		return refused(s, REF_UNKNOWN_PEER, -ENODEV);
	/* Who was with us before may have moved since: its objects stay. */
	if (!again && !our_netns(s, in->fds[0]))
		return refused(s, REF_OTHER_NETNS, -EACCES);
	if (again) {
		p = process_find(s, call->attach_id);
		ret = p ? take_up(s, c, p) : adopt(s, c, in, &p);
	} else {
		ret = create(s, c, &p);
	}
	if (ret)
		return ret;
	p->own_pid = call->pid;
	p->pid_ns = call->pid_ns;
	p->node = node;
	p->session = c;
	c->process = p;
	faults_attached(s, p);
	give_attachment(s, p, r);
	log_line(LOG_LVL_INFO, "process %d (%s) has attach id %#x", (int)p->pid, p->comm, p->id);
	return 0;
}

static void give_block(const struct server *s, uint32_t block, struct reply *r)
{
	int fd = claims_socket(&s->leases.claims, block);

	r->payload.block.first_qpn = block * LEASE_QPNS;
	if (fd >= 0)
		r->fds[r->n_fds++] = fd;
	else
		r->payload.block.flags = PROTO_UNCLAIMED;
}

static int do_lease(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	int block = lease_take(&s->leases, c->process->id);

	(void)in;
	if (block < 0)
		return block == -EMFILE ? refused(s, REF_NO_FDS, block) : block;
	give_block(s, block, r);
	wire_leases_changed(s, c->process);
	return 0;
}

static int do_claim(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_block *call = &in->payload.block;
	uint32_t block = call->first_qpn / LEASE_QPNS;
	int fd = in->n_fds ? in->fds[0] : -1;
	int ret = lease_claim(&s->leases, block, c->process->id, fd, call->flags & PROTO_UNCLAIMED);

	if (ret)
		return ret == -EEXIST ? refused(s, REF_LEASE_CONFLICT, ret) : ret;
	if (fd >= 0)
		proto_take_fd(in, 0);
	give_block(s, block, r);
	wire_leases_changed(s, c->process);
	return 0;
}

static int do_return(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	int ret =
		lease_return(&s->leases, in->payload.block.first_qpn / LEASE_QPNS, c->process->id);

	(void)r;
	if (!ret)
		wire_leases_changed(s, c->process);
	return ret;
}

static int do_find_qpn(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_find *call = &in->payload.find;
	uint32_t id = call->qpn ? lease_owner(&s->leases, call->qpn) : call->attach_id;
	const struct process *p = process_find(s, id);
	struct proto_found *reply = &r->payload.found;

	(void)c;
	if (!p)
		return call->qpn && !lease_is_ours(&s->leases, call->qpn) ? -EADDRNOTAVAIL
									  : -ENOENT;
	reply->attach_id = p->id;
	reply->pid = p->own_pid;
	reply->pid_ns = p->pid_ns;
	r->fds[r->n_fds++] = p->seg_fd;
	r->fds[r->n_fds++] = p->async_fd;
	give_arena(p, r, &reply->flags);
	if (p->death.fd >= 0)
		r->fds[r->n_fds++] = p->death.fd;
	return 0;
}

static bool is_eventfd(int fd)
{
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof target - 1);
	target[n > 0 ? n : 0] = '\0';
	return strcmp(target, "anon_inode:[eventfd]") == 0;
}

static int do_add_channel(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	uint32_t id = in->payload.channel.id;
	int ret;

	(void)r;
	if (id == 0 || !is_eventfd(in->fds[0])) /* on anything else our write might block */
		return refused(s, REF_BAD_FDS, -EINVAL);
	ret = process_add_channel(s, c->process, id, in->fds[0]);
	if (!ret)
		proto_take_fd(in, 0);
	return ret;
}

static int do_del_channel(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	(void)r;
	return process_del_channel(s, c->process, in->payload.channel.id);
}

static int do_get_channel(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_peer_channel *call = &in->payload.peer_channel;
	const struct process *p = process_find(s, call->attach_id);

	(void)c;
	if (!p || process_channel(p, call->id) < 0)
		return -ENOENT;
	r->fds[r->n_fds++] = process_channel(p, call->id);
	return 0;
}

static int do_add_backing(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	uint32_t id = in->payload.backing.id;
	int ret;

	(void)r;
	if (id == 0 || !piece_file(in->fds[0])) /* peers would not map it */
		return refused(s, REF_BAD_FDS, -EINVAL);
	ret = process_add_backing(c->process, id, in->fds[0]);
	if (!ret)
		proto_take_fd(in, 0);
	return ret;
}

static int do_del_backing(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	(void)s, (void)r;
	return process_del_backing(c->process, in->payload.backing.id);
}

static int do_get_backing(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_peer_backing *call = &in->payload.peer_backing;
	const struct process *p = process_find(s, call->attach_id);

	(void)c;
	if (!p || process_backing(p, call->id) < 0)
		return -ENOENT;
	r->fds[r->n_fds++] = process_backing(p, call->id);
	return 0;
}

static int do_set_timer(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_timer *call = &in->payload.timer;
	struct process *p = process_find(s, call->attach_id);
	uint32_t kind = call->index & (SEG_TIMER_CQ | SEG_TIMER_CHANNEL), end = SEG_QPS;

	(void)c;
	(void)r;
	if (kind)
		end = kind == SEG_TIMER_CQ ? SEG_CQS : kind == SEG_TIMER_CHANNEL ? SEG_CHANNELS : 0;
	if (!p || (call->index & ~kind) >= end)
		return refused(s, REF_UNKNOWN_PEER, -ENOENT);
	recover_timer(&s->env, p->seg, p->id, call->index);
	return 0;
}

static int do_fire(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_peer_channel *call = &in->payload.peer_channel;
	struct process *p = process_find(s, call->attach_id);

	(void)c;
	(void)r;
	if (!p)
		return refused(s, REF_UNKNOWN_PEER, -ENOENT);
	process_fire(s, p, call->id);
	return 0;
}

static int do_members(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct process *p = c->process;
	uint32_t entry = in->payload.members.entry;
	int ret = entry ? members_change(&s->members, s->env.hub, p->seg, p->id, entry - 1)
			: members_update(&s->members, s->env.hub, p->seg, p->id);

	(void)r;
	if (!ret)
		processes_list_members(s);
	return ret ? refused(s, REF_MEMBERS_FULL, ret) : 0;
}

static int do_ping(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	(void)c, (void)in, (void)r;
	peer_stats_write(s);
	wire_counters_write(s, false);
	return 0;
}

static int do_status(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	int fd = status_memfd(s, &r->payload.status.size);

	(void)c;
	(void)in;
	if (fd < 0)
		return refused(s, fd == -EMFILE ? REF_NO_FDS : REF_NO_MEMORY, fd);
	r->fds[r->n_fds++] = reply_owns(r, fd);
	return 0;
}

static int do_stay(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	(void)c, (void)in, (void)r;
	s->stay = true;
	return 0;
}

static int do_shutdown(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	(void)c, (void)in, (void)r;
	s->stop = true;
	port_place_forget(&s->paths);
	if (s->subnet)
		subnet_files_forget(&s->paths);
	return 0;
}

static const struct request {
	int (*handle)(struct server *s, struct session *c, struct proto_in *in, struct reply *r);
	bool attached; /* only for an attached process */
} requests[OP_COUNT] = {
	[OP_ATTACH] = {do_attach, false},
	[OP_LEASE] = {do_lease, true},
	[OP_CLAIM] = {do_claim, true},
	[OP_RETURN] = {do_return, true},
	[OP_FIND_QPN] = {do_find_qpn, true},
	[OP_ADD_CHANNEL] = {do_add_channel, true},
	[OP_DEL_CHANNEL] = {do_del_channel, true},
	[OP_GET_CHANNEL] = {do_get_channel, true},
	[OP_ADD_BACKING] = {do_add_backing, true},
	[OP_DEL_BACKING] = {do_del_backing, true},
	[OP_GET_BACKING] = {do_get_backing, true},
	[OP_SET_TIMER] = {do_set_timer, true},
	[OP_FIRE] = {do_fire, true},
	[OP_MEMBERS] = {do_members, true},
	[OP_PING] = {do_ping, false},
	[OP_STATUS] = {do_status, false},
	[OP_STAY] = {do_stay, false},
	[OP_SHUTDOWN] = {do_shutdown, false},
	[OP_CM_ADD_CHANNEL] = {connections_request, true},
	[OP_CM_DEL_CHANNEL] = {connections_request, true},
	[OP_CM_WAKE_CHANNEL] = {connections_request, true},
	[OP_CM_TAKEN] = {connections_request, true},
	[OP_CM_BIND] = {connections_request, true},
	[OP_CM_LISTEN] = {connections_request, true},
	[OP_CM_CONNECT] = {connections_request, true},
	[OP_CM_ACCEPT] = {connections_request, true},
	[OP_CM_READY] = {connections_request, true},
	[OP_CM_REJECT] = {connections_request, true},
	[OP_CM_NOTIFY] = {connections_request, true},
	[OP_CM_DISCONNECT] = {connections_request, true},
	[OP_CM_MIGRATE] = {connections_request, true},
	[OP_CM_DESTROY] = {connections_request, true},
	[OP_CM_PUBLISH] = {connections_request, true},
	[OP_CM_LEND] = {connections_request, true},
	[OP_CM_RESOLVE] = {connections_request, true},
	[OP_UMAD_OPEN] = {umads_request, false},
	[OP_UMAD_JOIN] = {umads_request, false},
	[OP_UMAD_REGISTER] = {umads_request, false},
	[OP_UMAD_UNREGISTER] = {umads_request, false},
	[OP_UMAD_PKEY] = {umads_request, false},
	[OP_UMAD_SEND] = {umads_request, false},
	[OP_UMAD_FETCH] = {umads_request, false},
	[OP_ISSM_OPEN] = {issm_request, false},
	[OP_NODE] = {subnet_admin_node, false},
	[OP_TOPO] = {subnet_admin_topo, false},
	[OP_TOPO_DO] = {subnet_admin_do, false},
	[OP_FAULT] = {faults_request, false},
	[OP_WIRE_JOIN] = {wire_request, true},
};

/* What no sane client sends, by name; 0 or 1. */
static int check(struct server *s, const struct session *c, const struct proto_in *in)
{
	const struct proto_op *op = proto_op(in->head.op);
	size_t said;

	if (!op || !requests[in->head.op].handle) {
		server_refuse_what(s, REF_BAD_OP, "op %u", in->head.op);
		return 1;
	}
	if (!proto_size_fits(&op->call, in->len)) {
		server_refuse_what(s, REF_BAD_MESSAGE, "%s of %zu bytes, not %u to %u", op->name,
			in->len, op->call.least, op->call.most);
		return 1;
	}
	said = proto_said_size(&op->call, in->len, in->payload.bytes);
	if (in->len != said) {
		server_refuse_what(s, REF_BAD_MESSAGE, "%s of %zu bytes, not %zu as it says",
			op->name, in->len, said);
		return 1;
	}
	if (!proto_fds_fit(&op->call, in->n_fds)) {
		server_refuse_what(s, REF_BAD_FDS, "%s with %d descriptors, not %u to %u", op->name,
			in->n_fds, op->call.least_fds, op->call.most_fds);
		return 1;
	}
	if (!requests[in->head.op].attached || c->process)
		return 0;
	server_refuse_what(s, REF_NOT_ATTACHED, "%s", op->name);
	return 1;
}

int request_handle(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	int ret = check(s, c, in);

	return ret ? ret : requests[in->head.op].handle(s, c, in, r);
}
