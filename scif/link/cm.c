// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/cm.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "face/allowed.h"
#include "scif.h"
#include "scif/ep/ep.h"
#include "scif/link/close.h"
#include "scif/link/link.h"
#include "scif/link/open.h"
#include "scif/link/service.h"
#include "scif/link/wait.h"

enum { RESOLVE_MS = 2000, CONNECT_S = 30, ACCEPT_S = 3, MAX_BACKLOG = 1024, READS = 16 };
static const uint64_t TICK_NS = 400 * (uint64_t)NSEC_PER_MSEC;

static _Atomic int connecting; /* endpoints */

bool cm_connecting(void)
{
	return atomic_load_explicit(&connecting, memory_order_acquire) > 0;
}

static void stop_connecting(struct scif_ep *ep, int result)
{
	atomic_fetch_sub_explicit(&connecting, 1, memory_order_acq_rel);
	ep->connect_until = 0;
	ep->connect_result = result;
	ep_changed(ep);
}

void cm_abandon(struct scif_ep *ep)
{
	if (ep->state == EP_CONNECTING)
		stop_connecting(ep, 1);
}

void cm_forked(void)
{
	atomic_store_explicit(&connecting, 0, memory_order_relaxed);
}

/* ---- bind, listen ---- */

static int check_unused(const struct scif_ep *ep)
{
	switch (ep->state) {
	case EP_UNBOUND:
	case EP_BOUND:
		return 0;
	case EP_DISCONNECTED:
	case EP_CLOSED:
		return -EINVAL;
	case EP_INHERITED:
		return -EOPNOTSUPP;
	default:
		return -EISCONN;
	}
}

static int bind_to(struct scif_ep *ep, uint16_t pn)
{
	int ret = port_bind(pn, &ep->port);

	if (!ret)
		ep->state = EP_BOUND;
	return ret;
}

int cm_bind(struct scif_ep *ep, uint16_t pn)
{
	int ret;

	lock_take(&ep->lock);
	ret = check_unused(ep);
	if (!ret && ep->state == EP_BOUND) {
		check_why("the endpoint is bound already, to port %u", ep->port->id.port);
		ret = -EINVAL;
	}
	if (!ret) {
		check_why("port %u is taken, or, below %d, for root only", pn, SCIF_ADMIN_PORT_END);
		ret = bind_to(ep, pn);
	}
	if (!ret)
		ret = ep->port->id.port;
	lock_drop(&ep->lock);
	return ret;
}

static int start_listening(struct scif_ep *ep)
{
	struct sockaddr_storage at;
	int ret = 0;

	port_place(ep->port, &at);

	if (rdma_create_id(service_cm(), &ep->id, ep, RDMA_PS_TCP))
		return -errno;
	if (rdma_bind_addr(ep->id, (struct sockaddr *)&at) || rdma_listen(ep->id, MAX_BACKLOG))
		ret = -errno;
	if (ret)
		check_why("the CM does not listen at the address and port of this node");
	if (!ret)
		ret = port_publish(ep->port, ntohs(rdma_get_src_port(ep->id)));
	if (ret) {
		rdma_destroy_id(ep->id);
		ep->id = NULL;
	}
	return ret;
}

int cm_listen(struct scif_ep *ep, int backlog)
{
	int ret;

	lock_take(&ep->lock);
	ret = check_unused(ep);
	if (!ret && (ep->state == EP_UNBOUND || backlog < 1)) {
		check_why(ep->state == EP_UNBOUND ? "the endpoint is not bound"
						  : "the backlog is less than 1");
		ret = -EINVAL;
	}
	if (!ret) {
		/* requests may come before rdma_listen() returns */
		ep->backlog = backlog < MAX_BACKLOG ? backlog : MAX_BACKLOG;
		ep->state = EP_LISTENING;
		ret = start_listening(ep);
		if (ret)
			ep->state = EP_BOUND;
	}
	lock_drop(&ep->lock);
	return ret;
}

/* ---- connect ---- */

/* What a failed attempt leaves, to be destroyed without locks and events. */
struct remains {
	struct link link;
	struct rdma_cm_id *id;
};

static void destroy_remains(struct remains *r)
{
	if (!r)
		return;
	link_destroy(&r->link, r->id);
	link_free_pd(&r->link);
	if (r->id)
		rdma_destroy_id(r->id);
	free(r);
}

/* An attempt has room for what it may leave before it begins: it fails where there is no memory. */
static int make_room(struct scif_ep *ep)
{
	if (!ep->remains)
		ep->remains = calloc(1, sizeof(*ep->remains));
	return ep->remains ? 0 : -ENOMEM;
}

/* The attempt failed; the endpoint is bound as before.  Under the lock. */
static struct remains *fail(struct scif_ep *ep, int result)
{
	struct remains *r = ep->remains;

	ep->remains = NULL;
	ep->state = EP_BOUND;
	stop_connecting(ep, result);
	standin_unfill(&ep->standin); /* POLLOUT: it is over */
	r->link = ep->link;
	r->id = ep->id;
	ep->link = (struct link){.after_end = &ep->link.after};
	ep->id = NULL;
	return r;
}

static void conn_param(struct rdma_conn_param *p, struct wire_hello *hello)
{
	*p = (struct rdma_conn_param){.private_data = hello,
		.private_data_len = sizeof(*hello),
		.responder_resources = READS,
		.initiator_depth = READS,
		.retry_count = 7,
		.rnr_retry_count = 7};
}

static int start_connecting(struct scif_ep *ep, struct sockaddr_storage *addr)
{
	if (rdma_create_id(service_cm(), &ep->id, ep, RDMA_PS_TCP))
		return -ENOMEM;
	if (rdma_resolve_addr(ep->id, NULL, (struct sockaddr *)addr, RESOLVE_MS))
		return errno == ENOMEM ? -ENOMEM : -ECONNREFUSED;
	return 0;
}

/* A new attempt; what fails at once fails as what fails later. */
static struct remains *begin(struct scif_ep *ep, int fd, struct scif_id dst)
{
	struct sockaddr_storage addr;
	int ret = port_address(dst, &addr);

	ep->peer = dst;
	ep->state = EP_CONNECTING;
	standin_fill(&ep->standin, fd);
	ep->collect = true;
	ep->connect_result = 1;
	ep->connect_until = clock_ns() + CONNECT_S * (uint64_t)NSEC_PER_SEC;
	atomic_fetch_add_explicit(&connecting, 1, memory_order_acq_rel);
	if (!ret)
		ret = start_connecting(ep, &addr);
	if (ret)
		return fail(ep, ret);
	service_kick();
	return NULL;
}

static int check_connect(const struct scif_ep *ep, struct scif_id dst)
{
	if (ep->state == EP_LISTENING)
		return -EOPNOTSUPP;
	if (ep->state == EP_CONNECTED || ep->state == EP_CONNECTING)
		return -EISCONN;
	if (ep->state == EP_INHERITED)
		return -EOPNOTSUPP;
	check_why(dst.port ? "the endpoint's connection is over: it cannot have another one"
			   : "the port is 0");
	return ep->state == EP_DISCONNECTED || ep->state == EP_CLOSED || !dst.port ? -EINVAL : 0;
}

/* The result of an attempt that is over. */
static int collect(struct scif_ep *ep)
{
	int result = ep->connect_result;

	ep->collect = false;
	ep->connect_result = 1;
	if (!result)
		return ep->port->id.port;
	return result;
}

int cm_connect(struct scif_ep *ep, int fd, struct scif_id dst, bool block)
{
	struct remains *r = NULL;
	uint64_t spin = 0;
	int ret = 0;

	lock_take(&ep->lock);
	if (ep->collect && ep->connect_result == 1 && ep->state == EP_CONNECTING && !block)
		ret = -EINPROGRESS;
	else if (ep->collect && ep->connect_result != 1)
		ret = collect(ep);
	if (ret) {
		lock_drop(&ep->lock);
		return ret;
	}
	ret = check_connect(ep, dst);
	if (!ret)
		check_begin();
	if (!ret && ep->state == EP_UNBOUND)
		ret = bind_to(ep, 0);
	if (!ret)
		ret = make_room(ep);
	if (!ret)
		r = begin(ep, fd, dst);
	while (!ret && block && ep->state == EP_CONNECTING)
		ep_wait(ep, &spin, 0); /* the service ends it in time */
	if (!ret)
		ret = !block                    ? -EINPROGRESS
		      : ep->connect_result == 1 ? -EINVAL
						: collect(ep); /* 1: closed meanwhile */
	lock_drop(&ep->lock);
	destroy_remains(r);
	return ret;
}

static struct remains *route_resolved(struct scif_ep *ep)
{
	struct rdma_conn_param param;
	struct wire_hello hello;
	int ret = link_create(ep);

	if (ret)
		return fail(ep, -ENOMEM);
	hello = link_hello(ep, ep->peer);
	conn_param(&param, &hello);
	return rdma_connect(ep->id, &param) ? fail(ep, -ECONNREFUSED) : NULL;
}

/* The private data of whoever is behind id are no hello. */
static void tell_breach(const struct rdma_cm_id *id)
{
	allowed_breach(id->verbs);
	log_line(LOG_LVL_INFO, "SCIF: the other end of a connection is none of SCIF's");
}

/* Takes the peer's hello; -EPROTO: it has none. */
static int meet(struct scif_ep *ep, const struct rdma_cm_event *ev)
{
	const struct wire_hello *hello = ev->param.conn.private_data;
	int ret = -EPROTO;

	if (ev->param.conn.private_data_len >= sizeof(*hello))
		ret = link_meet(ep, ev->id, hello);
	if (ret)
		tell_breach(ev->id);
	return ret;
}

static struct remains *established(struct scif_ep *ep, const struct rdma_cm_event *ev)
{
	if (!ep->link.ready && meet(ep, ev))
		return fail(ep, -ECONNREFUSED);
	free(ep->remains);
	ep->remains = NULL;
	ep->state = EP_CONNECTED;
	stop_connecting(ep, 0);
	link_arm(ep);
	link_ready(ep);
	return NULL;
}

static void tick_one(struct scif_ep *ep)
{
	struct remains *r = NULL;

	lock_take(&ep->lock);
	if (ep->state == EP_CONNECTING && ep->connect_until && clock_ns() > ep->connect_until)
		r = fail(ep, -ECONNREFUSED);
	lock_drop(&ep->lock);
	destroy_remains(r);
}

void cm_tick(void)
{
	static uint64_t next;
	uint64_t now = clock_ns();

	if (now < next) /* with many endpoints it costs more than what woke us */
		return;
	next = now + TICK_NS;
	ep_each(tick_one);
}

/* ---- accept ---- */

/* A request came for listener; -errno: it is refused. */
static int request(struct scif_ep *listener, struct rdma_cm_event *ev)
{
	const struct wire_hello *hello = ev->param.conn.private_data;
	struct scif_ep *ep = ep_new();
	int ret;

	if (!ep)
		return -ENOMEM;
	ret = meet(ep, ev);
	lock_take(&listener->lock);
	if (!ret && (listener->state != EP_LISTENING || listener->waiting >= listener->backlog ||
			    le16toh(hello->dst_port) != listener->port->id.port ||
			    le16toh(hello->dst_node) != listener->port->id.node))
		ret = -ECONNREFUSED;
	if (!ret) {
		ep->id = ev->id;
		ep->id->context = ep;
		ep->state = EP_REQUEST;
		*listener->requests_end = ep;
		listener->requests_end = &ep->next_request;
		listener->waiting++;
		standin_mark(&listener->standin);
		ep_changed(listener);
	}
	lock_drop(&listener->lock);
	if (ret)
		ep_put(ep);
	return ret;
}

/* The first request; NULL: none.  Under the lock. */
static struct scif_ep *next_request(struct scif_ep *ep, int fd)
{
	struct scif_ep *r = ep->requests;

	if (r) {
		ep->requests = r->next_request;
		if (!ep->requests)
			ep->requests_end = &ep->requests;
		ep->waiting--;
	}
	if (!ep->requests)
		standin_unmark(&ep->standin, fd);
	return r;
}

/* Answers a request and waits until the connection stands. */
static int complete(struct scif_ep *ep)
{
	uint64_t until = clock_ns() + ACCEPT_S * (uint64_t)NSEC_PER_SEC, spin = 0;
	struct rdma_conn_param param;
	struct wire_hello hello;
	int ret;

	lock_take(&ep->lock);
	ret = ep->state == EP_REQUEST ? link_create(ep) : -ECONNRESET;
	if (!ret) {
		hello = link_hello(ep, ep->peer);
		conn_param(&param, &hello);
		ep->state = EP_CONNECTING;
		atomic_fetch_add_explicit(&connecting, 1, memory_order_acq_rel);
		if (rdma_accept(ep->id, &param))
			ret = errno == ENOMEM ? -ENOMEM : -ECONNRESET;
	}
	while (!ret && ep->state == EP_CONNECTING)
		if (ep_wait(ep, &spin, until) == -ETIMEDOUT)
			ret = -ETIMEDOUT;
	if (!ret && ep->connect_result) /* neither established nor ended since */
		ret = -ECONNRESET;
	ep->connect_result = 1;
	if (ep->state == EP_CONNECTING)
		stop_connecting(ep, 1);
	lock_drop(&ep->lock);
	return ret;
}

/* There is no fd for that request: it is the first again, for who accepts when there is one. */
static void put_back(struct scif_ep *listener, struct scif_ep *r)
{
	bool listens;

	lock_take(&listener->lock);
	listens = listener->state == EP_LISTENING;
	if (listens) {
		r->next_request = listener->requests;
		listener->requests = r;
		if (!r->next_request)
			listener->requests_end = &r->next_request;
		listener->waiting++;
		standin_mark(&listener->standin);
		ep_changed(listener);
	}
	lock_drop(&listener->lock);
	if (!listens)
		ep_refuse(r);
}

/* Consumes the reference of the listener's queue to ep, which may go back there. */
static int accept_one(struct scif_ep *listener, struct scif_ep *ep, struct scif_id *peer)
{
	int fd = ep_open(ep), ret;

	if (fd < 0) {
		put_back(listener, ep);
		return fd;
	}
	ep->port = port_get(listener->port);
	ret = complete(ep);
	if (!ret) {
		*peer = ep->peer;
	} else {
		close(fd);
		if (ep_remove(ep)) { /* else the service thread was faster */
			ep_close(ep);
			ep_put(ep);
		}
	}
	ep_put(ep);
	return ret ? ret : fd;
}

int cm_accept(struct scif_ep *ep, int fd, bool block, struct scif_id *peer)
{
	uint64_t spin = 0;
	int ret = -EAGAIN;

	for (;;) {
		struct scif_ep *r = NULL;

		lock_take(&ep->lock);
		if (ep->state != EP_LISTENING)
			check_why("the endpoint does not listen");
		if (ep->state != EP_LISTENING)
			ret = ep->state == EP_CLOSED ? -EINTR : -EINVAL;
		else if ((r = next_request(ep, fd)) != NULL)
			ret = 0;
		else
			ret = block ? ep_wait(ep, &spin, 0) : -EAGAIN;
		lock_drop(&ep->lock);
		if (ret)
			return ret;
		if (!r)
			continue;
		ret = accept_one(ep, r, peer);
		if (ret >= 0 || (ret != -ECONNRESET && ret != -ETIMEDOUT))
			return ret;
		if (!block)
			return -EAGAIN;
	}
}

/* ---- events ---- */

/* The connection, or the request for it, is over. */
static struct remains *ended(struct scif_ep *ep)
{
	if (ep->state == EP_CONNECTING && ep->connect_until)
		return fail(ep, -ECONNREFUSED);
	if (ep->state == EP_CONNECTING)
		stop_connecting(ep, 1);
	link_poll(ep); /* what came before */
	ep_reset(ep);
	return NULL;
}

static struct remains *event_of(struct scif_ep *ep, const struct rdma_cm_event *ev)
{
	bool active = ep->state == EP_CONNECTING && ep->connect_until;

	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (active && rdma_resolve_route(ep->id, RESOLVE_MS))
			return fail(ep, -ECONNREFUSED);
		return NULL;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return active ? route_resolved(ep) : NULL;
	case RDMA_CM_EVENT_ESTABLISHED:
		return ep->state == EP_CONNECTING ? established(ep, ev) : NULL;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ended(ep);
	default:
		return NULL;
	}
}

void cm_event(struct rdma_cm_event *ev)
{
	struct remains *r = NULL;
	struct rdma_cm_id *refused = NULL;
	struct scif_ep *ep;

	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		if (request(ev->listen_id->context, ev))
			refused = ev->id;
		if (refused)
			rdma_reject(refused, NULL, 0);
	} else {
		ep = ev->id->context;
		lock_take(&ep->lock);
		if (ev->id == ep->id) /* else it is of an attempt that failed */
			r = event_of(ep, ev);
		link_ready(ep);
		lock_drop(&ep->lock);
	}
	rdma_ack_cm_event(ev);
	if (refused)
		rdma_destroy_id(refused);
	destroy_remains(r);
}
