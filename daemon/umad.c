// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/umad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/node_ports.h"
#include "daemon/qp1.h"
#include "daemon/umad_lane.h"
#include "daemon/umad_recv.h"
#include "daemon/umad_send.h"

enum { GHOST_NS = 10 * NSEC_PER_MSEC };

_Static_assert(sizeof(struct umad_reg_req2) == PROTO_UMAD_REQ, "a call has room for it");
_Static_assert(sizeof(struct umad_record) == PROTO_UMAD_RECORD, "a call has room for it");

int umads_start(struct server *s)
{
	s->umads = calloc(1, sizeof *s->umads);
	if (!s->umads)
		return -ENOMEM;
	*s->umads = (struct umads){.server = s};
	return 0;
}

void umads_end(struct server *s)
{
	if (!s->umads)
		return;
	while (s->umads->files)
		ufile_end(s->umads->files);
	spare_free(&s->umads->spare_flights);
	spare_free(&s->umads->spare_held);
}

/* ---- opening ---- */

struct node *umads_find_node(struct server *s, const struct proto_umad_open *call)
{
	struct node *node;

	if (node_get(s, call->node, &node) || !memchr(call->device, 0, sizeof call->device) ||
		strcmp(call->device, node->page->device) || !fabric_port(node->page, call->port))
		return NULL;
	return node;
}

/* A lane of the file for who asks, and what it needs to map. */
static int give_lane(struct ufile *f, struct session *c, struct reply *r)
{
	struct ulane *l;
	int fd, ret = ulane_make(f, c, &l, &fd);

	if (ret)
		return ret;
	r->payload.umad_opened = (struct proto_umad_opened){
		.file = f->ino, .lane = l->number, .port = f->port_number};
	r->fds[r->n_fds++] = f->page_fd;
	r->fds[r->n_fds++] = reply_owns(r, fd);
	r->fds[r->n_fds++] = f->node->page_fd;
	return 0;
}

static int do_open(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_umad_open *call = &in->payload.umad_open;
	const struct node *node = umads_find_node(s, call);
	struct mad_port *port = node ? node_mad_port(s, call->node, call->port) : NULL;
	struct ufile *f;
	int end, ret;

	if (!port)
		return node ? -ENOMEM : -ENODEV;
	ret = ufile_make(s->umads, node, call->port, port, &f, &end);
	if (ret)
		return ret;
	if (port == s->mad_port)
		qp1_open(s->qp1);
	r->fds[r->n_fds++] = reply_owns(r, end);
	ret = give_lane(f, c, r);
	if (ret)
		ufile_end(f);
	return ret;
}

static int do_join(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	struct ufile *f = NULL;
	struct stat st, ours;

	if (!fstat(in->fds[0], &st) && S_ISSOCK(st.st_mode))
		f = ufile_find(s->umads, st.st_ino);
	/* A socket's name in a file system is one, too, with an inode of that. */
	if (!f || fstat(f->sock.fd, &ours) || st.st_dev != ours.st_dev)
		return -EBADF;
	return give_lane(f, c, r);
}

/* ---- calls about a file ---- */

/* The file of which the connection has a lane. */
static struct ulane *find_lane(const struct session *c, uint64_t file, uint32_t number)
{
	struct ulane *l = c->lanes;

	while (l && (l->file->ino != file || (number && l->number != number)))
		l = l->session_next;
	return l;
}

/* Likewise, when what the process wrote before the call has been sent. */
static struct ufile *find_file(const struct session *c, uint64_t file)
{
	struct ulane *l = find_lane(c, file, 0);

	if (l)
		(void)usend_lane(l, 1u << UMAD_SEND_LOG_SIZE);
	return l ? l->file : NULL;
}

static int do_register(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_umad_register *call = &in->payload.umad_register;
	struct proto_umad_registered *reply = &r->payload.umad_registered;
	struct ufile *f = find_file(c, call->file);
	struct umad_reg_req2 req2;
	struct umad_reg_req req;

	(void)s;
	if (!f)
		return -EBADF;
	memcpy(&req, call->req, sizeof req);
	memcpy(&req2, call->req, sizeof req2);
	if (call->flags & PROTO_REQ2)
		reply->result = ufile_register2(f, &req2, &reply->id);
	else
		reply->result = ufile_register(f, &req, &reply->id);
	reply->flags = req2.flags;
	return 0;
}

static int do_unregister(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	struct ufile *f = find_file(c, in->payload.umad_agent.file);

	(void)s;
	(void)r;
	return f ? ufile_unregister(f, in->payload.umad_agent.id) : -EBADF;
}

static int do_pkey(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	struct ufile *f = find_file(c, in->payload.umad_file.file);

	(void)s;
	(void)r;
	return f ? ufile_enable_pkey(f) : -EBADF;
}

static int do_send(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_umad_send *call = &in->payload.umad_send;
	struct ulane *l = find_lane(c, call->file, call->lane);
	struct umad_record rec;

	(void)s;
	(void)r;
	memcpy(&rec, call->record, sizeof rec);
	return l ? usend_message(l, &rec, in->fds[0]) : -EBADF;
}

static int do_fetch(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_umad_fetch *call = &in->payload.umad_fetch;
	struct ufile *f = find_file(c, call->file);
	int fd = f ? urecv_fetch(f, call->message) : -EBADF;

	(void)s;
	if (fd < 0)
		return fd;
	r->fds[r->n_fds++] = reply_owns(r, fd);
	return 0;
}

int umads_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	static int (*const handle[])(
		struct server *, struct session *, struct proto_in *, struct reply *) = {
		[OP_UMAD_OPEN - OP_UMAD_OPEN] = do_open,
		[OP_UMAD_JOIN - OP_UMAD_OPEN] = do_join,
		[OP_UMAD_REGISTER - OP_UMAD_OPEN] = do_register,
		[OP_UMAD_UNREGISTER - OP_UMAD_OPEN] = do_unregister,
		[OP_UMAD_PKEY - OP_UMAD_OPEN] = do_pkey,
		[OP_UMAD_SEND - OP_UMAD_OPEN] = do_send,
		[OP_UMAD_FETCH - OP_UMAD_OPEN] = do_fetch,
	};
	int ret = handle[in->head.op - OP_UMAD_OPEN](s, c, in, r);

	s->deliver(s);
	return ret;
}

/* ---- in the course of time ---- */

void umads_session_gone(struct server *s, struct session *c)
{
	if (!c->lanes)
		return;
	ulanes_gone(c);
	s->deliver(s);
}

uint64_t umads_run(struct server *s)
{
	struct umads *all = s->umads;
	bool ghosts = false;

	if (!all || !all->unfinished)
		return 0;
	for (struct ufile *f = all->files, *next; f; f = next) {
		next = f->next;
		if (f->broken) {
			log_line(LOG_LVL_WARN,
				"a program has written over a umad file's rings: the file ends");
			ufile_end(f);
		} else {
			ghosts |= urecv_exorcise(f);
		}
	}
	all->unfinished = ghosts;
	return ghosts ? clock_ns() + GHOST_NS : 0;
}

/* ---- status ---- */

static const char *drop_name(enum umad_drop why)
{
	static const char *const names[UMAD_DROP_COUNT] = {
		[UMAD_DROP_RECORD] = "bad_record",
		[UMAD_DROP_UNSENT] = "unsent",
		[UMAD_DROP_UNREAD] = "unread",
		[UMAD_DROP_ALL_UNREAD] = "all_unread",
		[UMAD_DROP_MEMORY] = "no_memory",
	};

	return names[why];
}

json_t *umads_status(const struct server *s)
{
	const struct umads *all = s->umads;
	json_t *o = json_object(), *drops = json_object();

	json_object_set_new(o, "files", json_integer(all->n_files));
	json_object_set_new(o, "lanes", json_integer(all->n_lanes));
	json_object_set_new(o, "bytes_kept", json_integer((json_int_t)all->bytes));
	for (int i = 0; i < UMAD_DROP_COUNT; i++)
		json_object_set_new(drops, drop_name(i), json_integer((json_int_t)all->drops[i]));
	json_object_set_new(o, "drops", drops);
	return o;
}
