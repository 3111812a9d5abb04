// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/admin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "rdv/spawn.h"

/* Opens the runtime directory and, in it, a connection to the fabric's weftd. */
static int open_admin(struct conn *c, const char *fabric)
{
	struct rdv_paths p;
	int ret = rdv_paths_open(&p, fabric);

	if (ret)
		return ret;
	ret = conn_open(c, &p);
	rdv_paths_close(&p);
	return ret;
}

static int ask(struct conn *c, uint32_t op, struct proto_in *in)
{
	struct proto_out out = proto_call(op, NULL);
	int ret = conn_call(c, &out, in);

	return ret == -EPIPE ? -ENOTCONN : ret;
}

/* For replies without fds. */
static int ask_plain(struct conn *c, uint32_t op)
{
	struct proto_in in;
	int ret = ask(c, op, &in);

	if (!ret)
		proto_close(&in);
	return ret;
}

int rdv_ping(const char *fabric, int32_t *pid)
{
	struct conn c;
	int ret = open_admin(&c, fabric);

	if (ret)
		return ret;
	if (pid)
		*pid = c.server_pid;
	ret = ask_plain(&c, OP_PING);
	conn_close(&c);
	return ret;
}

static int read_text(int fd, size_t size, char **text)
{
	char *p = malloc(size + 1);
	ssize_t n;

	if (!p)
		return -ENOMEM;
	n = pread(fd, p, size, 0);
	if (n != (ssize_t)size) {
		free(p);
		return n < 0 ? -errno : -EPROTO;
	}
	p[size] = '\0';
	*text = p;
	return 0;
}

int rdv_status_json(const char *fabric, char **json)
{
	struct proto_in in;
	struct conn c;
	int ret = open_admin(&c, fabric);

	if (ret)
		return ret;
	ret = ask(&c, OP_STATUS, &in);
	if (!ret) {
		ret = read_text(in.fds[0], in.payload.status.size, json);
		proto_close(&in);
	}
	conn_close(&c);
	return ret;
}

int rdv_fault(const char *fabric, int32_t pid, const char *text, uint32_t *reached)
{
	struct proto_fault call = {.pid = pid};
	struct proto_out out = proto_call(OP_FAULT, &call);
	size_t len = strlen(text);
	struct proto_in in;
	struct conn c;
	int ret;

	if (len >= sizeof call.text)
		return -EINVAL;
	memcpy(call.text, text, len);
	out.len += len;
	ret = open_admin(&c, fabric);
	if (ret)
		return ret;
	ret = conn_call(&c, &out, &in);
	if (!ret) {
		*reached = in.payload.faulted.processes;
		proto_close(&in);
	}
	conn_close(&c);
	return ret == -EPIPE ? -ENOTCONN : ret;
}

int rdv_shutdown(const char *fabric)
{
	struct conn c;
	int ret = open_admin(&c, fabric);

	if (ret)
		return ret;
	ret = ask_plain(&c, OP_SHUTDOWN);
	if (!ret)
		ret = conn_wait_end(&c);
	conn_close(&c);
	return ret;
}

int rdv_start(const char *fabric, bool stay, int32_t *pid)
{
	struct rdv_paths p;
	struct conn c;
	int ret = rdv_paths_open(&p, fabric);

	if (ret)
		return ret;
	ret = spawn_or_connect(&c, &p, stay);
	rdv_paths_close(&p);
	if (ret)
		return ret;
	if (pid)
		*pid = c.server_pid;
	ret = ask_plain(&c, stay ? OP_STAY : OP_PING);
	conn_close(&c);
	return ret;
}

int rdv_runtime_dir(char *buf, size_t size)
{
	struct rdv_paths p;
	int ret = rdv_paths_open(&p, NULL);

	if (ret)
		return ret;
	rdv_paths_close(&p);
	if (strlen(p.dir) >= size)
		return -ENAMETOOLONG;
	strcpy(buf, p.dir);
	return 0;
}
