// SPDX-License-Identifier: BSD-3-Clause
/*
 * An event channel can be read if and only if there is an event, and each event is an edge for
 * those who wait for edges: events of the library's own making and of weftd, alone and mixed, more
 * than the socket holds, in several threads, and when ids go with theirs.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rdmacm/newer.h"
#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"

enum { MANY = 60, THREADS = 3, EVENTS = 3000 };

static struct rdma_event_channel *channel(void)
{
	struct rdma_event_channel *ch = cm_channel();

	CHECK_EQ(fcntl(ch->fd, F_SETFL, O_NONBLOCK), 0);
	return ch;
}

static int edges_of(const struct rdma_event_channel *ch)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, ch->fd, &ev), 0);
	return ep;
}

static bool edge(int ep, int ms)
{
	struct epoll_event ev;

	return epoll_wait(ep, &ev, 1, ms) == 1;
}

static void own_event(struct rdma_cm_id *id, uint64_t arg)
{
	CHECK_EQ(rdma_write_cm_event(id, (enum rdma_cm_event_type)RDMA_CM_EVENT_USER, 0, arg), 0);
}

/* One of weftd: the request of another id, whose answer nobody takes. */
static void weftd_event(uint16_t port)
{
	struct rdma_cm_id *id = cm_resolved(cm_channel(), cm_addr4(port), true);
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};

	CHECK_EQ(rdma_connect(id, &param), 0);
}

/* As many as there are, one each time that the channel can be read. */
static void take_all(struct rdma_event_channel *ch, unsigned want)
{
	struct rdma_cm_event *e;
	unsigned n = 0;

	while (cm_readable(ch, 0)) {
		if (!CHECK_EQ(rdma_get_cm_event(ch, &e), 0))
			return;
		if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			struct rdma_cm_id *id = e->id;

			rdma_ack_cm_event(e);
			CHECK_EQ(rdma_destroy_id(id), 0);
		} else {
			rdma_ack_cm_event(e);
		}
		n++;
	}
	CHECK_EQ(n, want);
	CHECK_FAILS(rdma_get_cm_event(ch, &e), EAGAIN);
}

static void own_events(void)
{
	struct rdma_event_channel *ch = channel();
	struct rdma_cm_id *id = cm_id(ch);
	int ep = edges_of(ch);

	check_case("events of our own making");
	CHECK(!edge(ep, 0));
	for (int i = 0; i < 5; i++) {
		own_event(id, i);
		CHECK(edge(ep, 0));
		CHECK(!edge(ep, 0));
	}
	take_all(ch, 5);
	CHECK(!edge(ep, 0));
	own_event(id, 1);
	CHECK(edge(ep, 0));
	take_all(ch, 1);

	check_case("more than the socket holds");
	for (int i = 0; i < MANY; i++) {
		own_event(id, i);
		CHECK(edge(ep, 0));
	}
	take_all(ch, MANY);
	close(ep);
	cm_end(id);
	rdma_destroy_event_channel(ch);
}

static void mixed(void)
{
	struct rdma_event_channel *ch = channel();
	uint16_t port;
	struct rdma_cm_id *listener = cm_listener(ch, 0, &port);
	int ep = edges_of(ch);

	check_case("events of weftd and of our own making");
	weftd_event(port);
	CHECK(edge(ep, CM_WAIT_MS));
	own_event(listener, 1);
	CHECK(edge(ep, 0));
	weftd_event(port);
	CHECK(edge(ep, CM_WAIT_MS));
	own_event(listener, 2);
	own_event(listener, 3);
	CHECK(edge(ep, 0));
	take_all(ch, 5);

	check_case("... that fill the socket");
	for (int i = 0; i < MANY; i++)
		own_event(listener, i);
	CHECK(edge(ep, 0));
	weftd_event(port);
	CHECK(edge(ep, CM_WAIT_MS));
	for (int i = 0; i < MANY; i++) {
		own_event(listener, i);
		CHECK(edge(ep, 0));
	}
	take_all(ch, 2 * MANY + 1);

	check_case("an id goes with its events");
	own_event(listener, 1);
	weftd_event(port);
	CHECK(cm_readable(ch, CM_WAIT_MS));
	cm_end(listener);
	take_all(ch, 0);
	close(ep);
	rdma_destroy_event_channel(ch);
}

/* ---- several threads ---- */

static _Atomic unsigned taken;
static struct rdma_event_channel *shared;

static void *take_some(void *arg)
{
	struct pollfd p = {.fd = shared->fd, .events = POLLIN};
	struct rdma_cm_event *e;

	(void)arg;
	while (atomic_load(&taken) < EVENTS) {
		if (poll(&p, 1, 20) != 1 || rdma_get_cm_event(shared, &e))
			continue; /* another thread has it */
		rdma_ack_cm_event(e);
		atomic_fetch_add(&taken, 1);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	struct rdma_cm_id *id;

	check_case("several threads");
	shared = channel();
	id = cm_id(shared);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, take_some, NULL))
			die("pthread_create");
	for (int i = 0; i < EVENTS; i++)
		own_event(id, i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(atomic_load(&taken), EVENTS);
	take_all(shared, 0);
	own_event(id, 1);
	take_all(shared, 1);
	cm_end(id);
	rdma_destroy_event_channel(shared);
}

int main(void)
{
	own_events();
	mixed();
	threads();
	return check_result();
}
