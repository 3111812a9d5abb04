// SPDX-License-Identifier: BSD-3-Clause
/* How streams come about and end: rdma_cm ids, driven by their events. */
#include "rsock/connect.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "face/allowed.h"
#include "rsock/stream.h"
#include "rsock/table.h"
#include "rsock/wait.h"

enum {
	RESOLVE_MS = 2000,
	RETRIES = 7, /* of RNR: for ever */
	MAX_ERRNO = 4095,
};

/* How long rclose() waits for what is under way, unless SO_LINGER says. */
#define CLOSE_WAIT_NS NSEC_PER_SEC

/* ---- ids ---- */

static int set_flag(struct rdma_cm_id *id, int option, int on)
{
	return on && rdma_set_option(id, RDMA_OPTION_ID, option, &on, sizeof on) ? -errno : 0;
}

static int make_id(struct rsocket *s)
{
	int ret;

	if (s->id)
		return 0;
	if (rdma_create_id(s->cm, &s->id, s, RDMA_PS_TCP))
		return -errno;
	ret = set_flag(s->id, RDMA_OPTION_ID_REUSEADDR, s->opt.reuseaddr);
	return ret ? ret : set_flag(s->id, RDMA_OPTION_ID_AFONLY, s->opt.v6only);
}

int conn_bind(struct rsocket *s, const struct sockaddr *addr, socklen_t len)
{
	size_t want =
		s->family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	int ret;

	if (s->state != RS_IDLE || len < want)
		return -EINVAL;
	if (addr->sa_family != s->family)
		return -EAFNOSUPPORT;
	ret = make_id(s);
	if (!ret && rdma_bind_addr(s->id, (struct sockaddr *)addr))
		ret = -errno;
	if (!ret)
		s->state = RS_BOUND;
	return ret;
}

int conn_listen(struct rsocket *s, int backlog)
{
	struct sockaddr_storage any = {.ss_family = s->family};
	int ret = 0;

	if (s->state == RS_LISTENING)
		return 0;
	if (s->state == RS_IDLE)
		ret = conn_bind(s, (struct sockaddr *)&any, sizeof any);
	if (ret)
		return ret;
	if (s->state != RS_BOUND)
		return -EINVAL;
	if (rdma_listen(s->id, backlog))
		return -errno;
	s->state = RS_LISTENING;
	return 0;
}

/* ---- the end ---- */

void conn_end(struct rsocket *s, int err)
{
	bool connected = s->state == RS_CONNECTED || s->state == RS_ACCEPTING;

	if (s->state == RS_ENDED)
		return;
	s->state = RS_ENDED;
	/* After its FIN the peer is free to go. */
	s->err = s->st.fin ? 0 : err;
	if (connected)
		rdma_disconnect(s->id);
	sleepers_wake(s->sleepers);
}

static bool established(struct rsocket *s)
{
	return s->state != RS_ACCEPTING;
}

static bool said_fin(struct rsocket *s)
{
	return stream_fin(s) != -EAGAIN;
}

int conn_fin(struct rsocket *s, uint64_t deadline)
{
	return rs_wait_for(s, said_fin, POLLOUT, deadline);
}

static bool all_sent(struct rsocket *s)
{
	return s->state != RS_CONNECTED || stream_drained(s);
}

void conn_close(struct rsocket *s)
{
	bool linger = s->opt.linger.l_onoff, abort = linger && !s->opt.linger.l_linger;
	uint64_t wait = linger ? s->opt.linger.l_linger * NSEC_PER_SEC : CLOSE_WAIT_NS;
	uint64_t deadline = clock_ns() + wait;
	int ret = 0;

	if (!abort && s->state == RS_ACCEPTING)
		ret = rs_wait_for(s, established, POLLOUT, deadline);
	if (s->state != RS_CONNECTED && s->state != RS_ACCEPTING)
		return;
	if (!abort && !ret)
		ret = conn_fin(s, deadline);
	if (!abort && !ret)
		rs_wait_for(s, all_sent, POLLOUT, deadline);
	conn_end(s, 0);
}

/* ---- connecting ---- */

static void param_for(const struct rs_hello *hello, struct rdma_conn_param *param)
{
	*param = (struct rdma_conn_param){
		.private_data = hello,
		.private_data_len = sizeof *hello,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
		.flow_control = 1,
	};
}

static int send_request(struct rsocket *s)
{
	struct rdma_conn_param param;
	struct rs_hello hello;
	int ret = stream_open(s, &hello);

	if (ret)
		return ret;
	param_for(&hello, &param);
	s->state = RS_CONNECTING;
	return rdma_connect(s->id, &param) ? -errno : 0;
}

static int next_route(struct rsocket *s)
{
	if (s->route &&
		rdma_set_option(s->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, s->route, s->route_len))
		return -errno;
	s->state = RS_ROUTING;
	return rdma_resolve_route(s->id, RESOLVE_MS) ? -errno : 0;
}

int conn_start(struct rsocket *s, const struct sockaddr *addr, socklen_t len)
{
	size_t want =
		s->family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	int ret;

	switch (s->state) {
	case RS_IDLE:
	case RS_BOUND:
		break;
	case RS_CONNECTED:
		ret = s->told_async ? 0 : -EISCONN;
		s->told_async = false;
		return ret;
	case RS_ENDED:
		ret = s->err ? -s->err : -ECONNABORTED;
		s->err = 0;
		return ret;
	default:
		return s->state == RS_LISTENING || s->state == RS_ACCEPTING ? -EISCONN : -EALREADY;
	}
	if (len < want)
		return -EINVAL;
	if (addr->sa_family != s->family)
		return -EAFNOSUPPORT;
	ret = make_id(s);
	if (ret)
		return ret;
	if (rdma_resolve_addr(s->id, NULL, (struct sockaddr *)addr, RESOLVE_MS))
		return -errno;
	s->state = RS_RESOLVING;
	conn_events(s);
	if (s->state == RS_ENDED) {
		ret = -s->err;
		s->err = 0;
		return ret;
	}
	return s->state == RS_CONNECTED ? 0 : -EINPROGRESS;
}

/* ---- events ---- */

static int take_hello(const struct rdma_cm_event *e, struct rs_hello *hello)
{
	if (!e->param.conn.private_data || e->param.conn.private_data_len < sizeof *hello)
		return -EPROTO;
	memcpy(hello, e->param.conn.private_data, sizeof *hello);
	return 0;
}

static int as_errno(int status, int otherwise)
{
	int n = abs(status);

	return n && n <= MAX_ERRNO ? n : otherwise;
}

/* The greeting of whoever is behind id is none of an rsocket's. */
static void tell_breach(const struct rsocket *s, const struct rdma_cm_id *id)
{
	allowed_breach(id->verbs);
	log_refusal("rsocket %d: the other end is no rsocket of ours", s->fd);
}

static int on_established(struct rsocket *s, const struct rs_hello *hello, int hello_ret)
{
	int ret = 0;

	if (s->state == RS_CONNECTING) {
		ret = hello_ret ? hello_ret : stream_meet(s, hello);
		if (ret)
			tell_breach(s, s->id);
		s->state = RS_CONNECTED; /* in any case the id is */
	} else if (s->state == RS_ACCEPTING) {
		s->state = RS_CONNECTED;
	}
	return ret;
}

/* What an event does; the error that ends the connection. */
static int on_event(struct rsocket *s, enum rdma_cm_event_type type, int status,
	const struct rs_hello *hello, int hello_ret)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return -next_route(s);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return -send_request(s);
	case RDMA_CM_EVENT_ESTABLISHED:
		return -on_established(s, hello, hello_ret);
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return as_errno(status, EHOSTUNREACH);
	case RDMA_CM_EVENT_REJECTED:
		return s->state == RS_CONNECTING ? ECONNREFUSED : ECONNRESET;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return as_errno(status, ECONNABORTED);
	case RDMA_CM_EVENT_DISCONNECTED:
		stream_progress(s); /* all that it sent comes before its end */
		return ECONNRESET;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ENODEV;
	default:
		return 0;
	}
}

static void on_request(struct rsocket *s, struct rdma_cm_event *e)
{
	struct rdma_cm_id *id = e->id;
	int ret = take_hello(e, &s->request_hello);

	rdma_ack_cm_event(e);
	if (!ret) {
		s->request = id;
		return;
	}
	tell_breach(s, id);
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

static void listener_events(struct rsocket *s)
{
	struct rdma_cm_event *e;

	while (!s->request && rdma_get_cm_event(s->cm, &e) == 0) {
		if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			on_request(s, e);
		else
			rdma_ack_cm_event(e);
	}
}

void conn_events(struct rsocket *s)
{
	struct rdma_cm_event *e;

	if (s->state == RS_LISTENING) {
		listener_events(s);
		return;
	}
	while (s->state >= RS_RESOLVING && rdma_get_cm_event(s->cm, &e) == 0) {
		enum rdma_cm_event_type type = e->event;
		struct rs_hello hello;
		int status = e->status, hello_ret = take_hello(e, &hello), err;

		rdma_ack_cm_event(e);
		err = on_event(s, type, status, &hello, hello_ret);
		if (err)
			conn_end(s, err);
		sleepers_wake(s->sleepers);
	}
}

/* ---- accepting ---- */

static int answer(struct rsocket *n, const struct rs_hello *theirs)
{
	struct rdma_conn_param param;
	struct rs_hello hello;
	int ret;

	ret = stream_meet(n, theirs);
	if (ret)
		tell_breach(n, n->id);
	else
		ret = stream_open(n, &hello);
	if (!ret && rdma_migrate_id(n->id, n->cm))
		ret = -errno;
	if (ret)
		return ret;
	param_for(&hello, &param);
	n->state = RS_ACCEPTING;
	return rdma_accept(n->id, &param) ? -errno : 0;
}

/* What we are short of now the program may have later. */
static bool is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOBUFS ||
	       err == -ENOSPC;
}

/* As after accept(2), the request waits on, if it can; else it is refused. */
static int give_back(struct rsocket *s, struct rsocket *n, int err)
{
	bool keep = is_shortage(err);

	stream_free(n);
	if (keep && n->id->channel != s->cm)
		keep = rdma_migrate_id(n->id, s->cm) == 0;
	if (keep) {
		s->request = n->id;
		n->id = NULL;
		return err;
	}
	rdma_reject(n->id, NULL, 0);
	return is_shortage(err) ? err : -EAGAIN; /* that one has gone; the next is as good */
}

int conn_accept(struct rsocket *s, struct rsocket **out)
{
	struct rdma_cm_id *id = s->request;
	struct rsocket *n;
	int ret;

	if (s->state != RS_LISTENING)
		return -EINVAL;
	if (!id)
		return -EAGAIN;
	ret = rs_create(rdma_get_local_addr(id)->sa_family, SOCK_STREAM, &n);
	if (ret)
		return ret;
	s->request = NULL;
	lock_take(&n->lock);
	n->opt = s->opt;
	n->id = id;
	ret = answer(n, &s->request_hello);
	if (ret)
		ret = give_back(s, n, ret);
	lock_drop(&n->lock);
	if (!ret) {
		*out = n;
		return 0;
	}
	rs_withdraw(n);
	rs_release(n);
	return ret;
}
