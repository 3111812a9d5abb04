// SPDX-License-Identifier: BSD-3-Clause
/* No file descriptor left for who is accepted; endpoints closed by close(2) and dup2(2). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"

enum { WAIT_MS = 10000, SETTLE_US = 50000 };

/* ---- accepting ---- */

/* A connection attempt that waits for scif_accept(). */
static scif_epd_t ask(uint16_t port)
{
	struct scif_portID dst = {.port = port};
	scif_epd_t e = scif_open();

	scif_get_nodeIDs(NULL, 0, &dst.node);
	fcntl(e, F_SETFL, O_NONBLOCK);
	CHECK_EQ(scif_connect(e, &dst), -1);
	CHECK_EQ(errno, EINPROGRESS);
	fcntl(e, F_SETFL, 0);
	return e;
}

/* The errno of an accept while no more than spare descriptors can be had. */
static int accept_with(scif_epd_t l, int spare, int flags)
{
	struct rlimit before, none;
	struct scif_portID peer;
	scif_epd_t got = -1;
	int ret, err, next = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(next);
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = next + spare;
	if (setrlimit(RLIMIT_NOFILE, &none))
		die("setrlimit");
	errno = 0;
	ret = scif_accept(l, &peer, &got, flags);
	err = errno;
	setrlimit(RLIMIT_NOFILE, &before);
	CHECK_EQ(ret, -1);
	return err;
}

/* Two requests; both are there when descriptors are, in their order. */
static void requests_stay(int spare, int flags)
{
	struct scif_portID peer;
	uint16_t port;
	scif_epd_t l = scif_listener(4, &port), c[2], s;
	char byte;

	for (int i = 0; i < 2; i++) {
		c[i] = ask(port);
		CHECK_EQ(scif_raw_poll(l, POLLIN, WAIT_MS), POLLIN);
		usleep(SETTLE_US); /* the second comes after the first */
	}
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(accept_with(l, spare, flags), EMFILE);
		CHECK_EQ(scif_raw_poll(l, POLLIN, 0), POLLIN);
		CHECK_EQ(scif_events(l, POLLIN, 0), POLLIN);
	}
	for (int i = 0; i < 2; i++) {
		if (!CHECK_EQ(scif_accept(l, &peer, &s, SCIF_ACCEPT_SYNC), 0))
			continue;
		CHECK_EQ(scif_raw_poll(c[i], POLLOUT, WAIT_MS), POLLOUT);
		CHECK_EQ(scif_send(c[i], "a", 1, SCIF_SEND_BLOCK), 1);
		CHECK_EQ(scif_recv(s, &byte, 1, SCIF_RECV_BLOCK), 1);
		CHECK_EQ(scif_close(s), 0);
		CHECK_EQ(scif_close(c[i]), 0);
	}
	CHECK_EQ(scif_raw_poll(l, POLLIN, 0), 0);
	CHECK_EQ(scif_accept(l, &peer, &s, 0), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(scif_close(l), 0);
}

/* ---- closing ---- */

static void *poll_it(void *arg)
{
	struct scif_pollepd *p = arg;

	CHECK_EQ(scif_poll(p, 1, -1), 1);
	return NULL;
}

/* A thread that polls; by then is closed, with something put in its place where over is not -1. */
static void closed_under(struct scif_pair *p, int over, short expected)
{
	struct scif_pollepd entry = {.epd = p->b, .events = POLLIN};
	pthread_t thread;

	pthread_create(&thread, NULL, poll_it, &entry);
	usleep(SETTLE_US); /* it sleeps now, mostly */
	if (over < 0)
		CHECK_EQ(close(p->b), 0);
	else
		CHECK_EQ(dup2(over, p->b), p->b);
	pthread_join(thread, NULL);
	CHECK_EQ(entry.revents, expected);
	if (over >= 0)
		close(p->b);
	/* and the connection ends */
	CHECK(scif_events(p->a, POLLIN, WAIT_MS) & POLLHUP);
	CHECK_EQ(scif_close(p->a), 0);
	CHECK_EQ(scif_close(p->listener), 0);
}

int main(void)
{
	struct scif_pair p;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	alarm(50);
	for (int spare = 0; spare < 2; spare++) {
		check_case("no descriptor, %d left", spare);
		requests_stay(spare, 0);
		requests_stay(spare, SCIF_ACCEPT_SYNC);
	}
	check_case("close");
	p = scif_make_pair();
	closed_under(&p, -1, POLLNVAL);
	check_case("dup2");
	p = scif_make_pair();
	closed_under(&p, null, POLLIN);
	close(null);
	return check_result();
}
