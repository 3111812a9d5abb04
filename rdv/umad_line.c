// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/umad_line.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "rdv/conn.h"
#include "rdv/spawn.h"

enum { TRIES = 3, TRIES_NO_START = 2 };

static struct {
	struct lock lock;
	struct conn conn;
} line = {.conn = {.sock = {.fd = -1}}};

static bool may_start(bool start)
{
	const char *autostart = secure_getenv("WEFT_AUTOSTART");

	return start && !(autostart && strcmp(autostart, "0") == 0);
}

static int connect_line(bool start)
{
	struct rdv_paths p;
	int ret = rdv_paths_open(&p, NULL);

	if (ret)
		return ret;
	ret = may_start(start) ? spawn_or_connect(&line.conn, &p, false)
			       : conn_open(&line.conn, &p);
	if (ret == -ENOTCONN && start)
		log_line(LOG_LVL_ERROR,
			"no weftd serves fabric \"%s\" and WEFT_AUTOSTART=0; run: weft up --fabric "
			"%s",
			p.fabric, p.fabric);
	rdv_paths_close(&p);
	return ret == -ENOTCONN && !start ? -EPIPE : ret;
}

static int call(struct proto_out *out, struct proto_in *in, bool start)
{
	bool was_there = own_fd_ok(&line.conn.sock);
	int ret = was_there ? 0 : connect_line(start);

	if (!ret)
		ret = conn_call(&line.conn, out, in);
	if (ret == -EPIPE)
		conn_close(&line.conn);
	return ret;
}

int umad_line_call(struct proto_out *out, struct proto_in *in, bool start)
{
	int cancel, ret = -EPIPE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&line.lock);
	/*
	 * The connection may be that of a weftd that has gone since, and the file another's.  One
	 * that is just leaving closes a new connection, too.
	 */
	for (int i = 0; ret == -EPIPE && i < (start ? TRIES : TRIES_NO_START); i++)
		ret = call(out, in, start);
	lock_drop(&line.lock);
	pthread_setcancelstate(cancel, NULL);
	return ret;
}

void umad_line_before_fork(void)
{
	lock_take(&line.lock);
}

void umad_line_after_fork(void)
{
	lock_drop(&line.lock);
}

void umad_line_in_child(void)
{
	line.lock = (struct lock){0};
	conn_close(&line.conn);
}
