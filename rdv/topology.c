// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"
#include "rdv/admin.h"
#include "rdv/spawn.h"

/* ---- NAME.topo ---- */

/* weftd reads it at its start: it is there whole or not at all. */
static int put_topology(const struct rdv_paths *p, const char *netlist, size_t len, bool no_sm)
{
	int fd = rdv_open_anew(p, "topo.new"), ret = 0;
	FILE *f;

	if (fd < 0)
		return fd;
	f = fdopen(fd, "w");
	if (!f) {
		ret = -errno;
		close(fd);
		return ret;
	}
	if ((no_sm && fputs(TOPOLOGY_SM_OFF, f) < 0) || fwrite(netlist, 1, len, f) != len)
		ret = -errno;
	if (fclose(f) && !ret)
		ret = -errno;
	if (!ret)
		unlinkat(p->dir_fd, rdv_file_name(p, "lids").s, 0); /* of another topology */
	if (!ret && renameat(p->dir_fd, rdv_file_name(p, "topo.new").s, p->dir_fd,
			    rdv_file_name(p, "topo").s))
		ret = -errno;
	if (ret)
		unlinkat(p->dir_fd, rdv_file_name(p, "topo.new").s, 0);
	return ret;
}

void rdv_forget_topology(const char *fabric)
{
	struct rdv_paths p;

	if (rdv_paths_open(&p, fabric))
		return;
	unlinkat(p.dir_fd, rdv_file_name(&p, "topo").s, 0);
	unlinkat(p.dir_fd, rdv_file_name(&p, "lids").s, 0);
	rdv_paths_close(&p);
}

/* A weftd that another has started meanwhile may have come up without the topology. */
static int check_started(const char *fabric)
{
	char *text;
	size_t len;
	int ret = rdv_topology(fabric, PROTO_TOPO_NET, &text, &len);

	if (ret)
		return ret == -EOPNOTSUPP ? -EEXIST : ret;
	free(text);
	return 0;
}

/* Nobody else starts it with a topology meanwhile. */
static int start(
	const struct rdv_paths *p, const char *netlist, size_t len, bool no_sm, int32_t *pid)
{
	int ret = rdv_ping(p->fabric, pid);

	if (ret != -ENOTCONN)
		return ret ? ret : -EEXIST;
	ret = put_topology(p, netlist, len, no_sm);
	if (ret)
		log_line(LOG_LVL_ERROR, "cannot write %s/%s.topo: %s", p->dir, p->name,
			strerror(-ret));
	else
		ret = rdv_start(p->fabric, true, pid);
	if (!ret)
		ret = check_started(p->fabric);
	if (ret)
		unlinkat(p->dir_fd, rdv_file_name(p, "topo").s, 0);
	return ret;
}

int rdv_start_topology(
	const char *fabric, const char *netlist, size_t len, bool no_sm, int32_t *pid)
{
	struct rdv_paths p;
	int ret = rdv_paths_open(&p, fabric), lock;

	if (ret)
		return ret;
	lock = rdv_open_file(&p, "up");
	if (lock < 0)
		log_line(LOG_LVL_ERROR, "cannot open %s/%s.up: %s", p.dir, p.name, strerror(-lock));
	if (lock < 0)
		ret = lock;
	else if (flock(lock, LOCK_EX | LOCK_NB))
		ret = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else
		ret = start(&p, netlist, len, no_sm, pid);
	if (lock >= 0)
		close(lock);
	rdv_paths_close(&p);
	return ret;
}

/* ---- asking weftd ---- */

static int ask_once(const struct rdv_paths *p, struct proto_out call, struct proto_in *in)
{
	struct conn c;
	int ret = rdv_has_file(p, "topo") ? spawn_or_connect(&c, p, true) : conn_open(&c, p);

	if (ret)
		return ret;
	ret = conn_call(&c, &call, in);
	conn_close(&c);
	return ret;
}

/*
 * One call on a connection of its own; in is the caller's on success.  One that was killed may
 * still take a connection: its successor is asked, unless that could do a command twice.
 */
static int ask(const char *fabric, const struct proto_out *out, struct proto_in *in)
{
	struct rdv_paths p;
	int ret = rdv_paths_open(&p, fabric);

	if (ret)
		return ret;
	ret = ask_once(&p, *out, in);
	if (ret == -EPIPE && out->head.op != OP_TOPO_DO)
		ret = ask_once(&p, *out, in);
	rdv_paths_close(&p);
	return ret == -EPIPE ? -ENOTCONN : ret;
}

/* The text in a reply's first fd; closes that. */
static int take_text(struct proto_in *in, size_t size, char **text)
{
	char *p = malloc(size + 1);
	ssize_t n = p ? pread(in->fds[0], p, size, 0) : -1;

	proto_close(in);
	if (n != (ssize_t)size) {
		free(p);
		return p ? -EPROTO : -ENOMEM;
	}
	p[size] = '\0';
	*text = p;
	return 0;
}

int rdv_find_node(const char *fabric, const char *name, struct proto_node_found *out)
{
	struct proto_node call = {0};
	struct proto_out msg = proto_call(OP_NODE, &call);
	struct proto_in in;
	int ret;

	if (strlen(name) >= sizeof call.name)
		return -ENOENT;
	strcpy(call.name, name);
	ret = ask(fabric, &msg, &in);
	if (ret)
		return ret;
	*out = in.payload.node_found;
	proto_close(&in);
	return 0;
}

int rdv_topology(const char *fabric, enum proto_topo_form form, char **text, size_t *len)
{
	struct proto_topo call = {.form = form};
	struct proto_out msg = proto_call(OP_TOPO, &call);
	struct proto_in in;
	int ret = ask(fabric, &msg, &in);

	if (ret)
		return ret;
	*len = in.payload.status.size;
	return take_text(&in, *len, text);
}

int rdv_topology_do(const char *fabric, const char *line, struct proto_topo_done *done, char **text)
{
	struct proto_out msg = proto_call(OP_TOPO_DO, NULL);
	struct proto_in in;
	int ret;

	msg.payload = line;
	msg.len = strlen(line);
	if (msg.len > PROTO_PAYLOAD_MAX)
		return -EMSGSIZE;
	ret = ask(fabric, &msg, &in);
	if (ret)
		return ret;
	*done = in.payload.topo_done;
	return take_text(&in, done->size, text);
}
