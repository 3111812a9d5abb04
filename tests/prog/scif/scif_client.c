// SPDX-License-Identifier: BSD-3-Clause
/* Clients: who is told of which node, when, and what they may do then.  In both conventions. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/prog/scif/scif_convention.h"

enum { NODES = 16, WAIT_MS = 10000 };

/* What a client was told: how often each node came and went. */
struct record {
	_Atomic int probed[NODES], removed[NODES];
};
static struct record one, two;
static _Atomic int inside; /* callbacks that run */
static _Atomic int connected;
static uint16_t echo_port;

static void note(_Atomic int *counts, const struct scif_peer_dev *dev)
{
	CHECK_EQ(atomic_fetch_add(&inside, 1), 0);
	usleep(2000);
	if (CHECK(dev->dnode < NODES))
		atomic_fetch_add(&counts[dev->dnode], 1);
	atomic_fetch_sub(&inside, 1);
}

static void one_probe(struct scif_peer_dev *dev)
{
	note(one.probed, dev);
}

static void one_remove(struct scif_peer_dev *dev)
{
	note(one.removed, dev);
}

static struct scif_client first = {.name = "first", .probe = one_probe, .remove = one_remove};

/* Talks to the node that came, as clients do; node 4 has a listener at echo_port. */
static void two_probe(struct scif_peer_dev *dev)
{
	struct scif_portID dst = {dev->dnode, echo_port};
	scif_epd_t e;

	CHECK(dev->dev.init_name != NULL);
	dev->dev.driver_data = &two;
	note(two.probed, dev);
	if (dev->dnode != 4)
		return;
	e = scif_open();
	if (CHECK(scif_connect(e, &dst) > 0))
		atomic_fetch_add(&connected, 1);
	CHECK_EQ(scif_close(e), 0);
}

static void two_remove(struct scif_peer_dev *dev)
{
	CHECK(dev->dev.driver_data == &two);
	note(two.removed, dev);
}

static struct scif_client second = {.name = "second", .probe = two_probe, .remove = two_remove};

static int wait_for(_Atomic int *count, int want)
{
	double until = now_ms() + WAIT_MS;

	while (atomic_load(count) != want && now_ms() < until)
		usleep(1000);
	return atomic_load(count);
}

/* A node of its own, with a listener; it accepts until it is killed. */
static void be_node(int in, int out, const char *node)
{
	struct scif_portID peer;
	scif_epd_t l, e;
	uint16_t port;

	(void)in;
	setenv("WEFT_NODE", node, 1);
	l = epd_of(scif_listener(8, &port));
	scif_tell(out, port);
	while (scif_accept(l, &peer, &e, SCIF_ACCEPT_SYNC) == 0)
		scif_close(e);
}

static void node_4(int in, int out)
{
	be_node(in, out, "4");
}

static void node_300(int in, int out)
{
	be_node(in, out, "300");
}

static void kill_it(struct scif_child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->to);
	close(c->from);
}

static void coming_and_going(void)
{
	struct scif_child c, far;

	check_case("who is there is told of at once");
	CHECK_EQ(scif_client_register(&first), 0);
	CHECK_EQ(one.probed[0], 1); /* ourselves */
	check_case("a node comes");
	c = scif_fork(node_4);
	scif_hear(c.from);
	CHECK_EQ(wait_for(&one.probed[4], 1), 1);
	check_case("a node goes");
	kill_it(&c);
	CHECK_EQ(wait_for(&one.removed[4], 1), 1);
	check_case("it comes again");
	far = scif_fork(node_300); /* has no place in dnode, and stops nobody */
	scif_hear(far.from);
	c = scif_fork(node_4);
	scif_hear(c.from);
	CHECK_EQ(wait_for(&one.probed[4], 2), 2);
	check_case("it goes and comes at once");
	kill_it(&c);
	c = scif_fork(node_4);
	scif_hear(c.from);
	CHECK_EQ(wait_for(&one.probed[4], 3), 3);
	CHECK_EQ(one.removed[4], 2);
	check_case("unregistering");
	scif_client_unregister(&first);
	CHECK_EQ(one.removed[0], 1);
	CHECK_EQ(one.removed[4], 3);
	kill_it(&c);
	kill_it(&far);
	CHECK_EQ(one.probed[0], 1);
	CHECK_EQ(one.removed[4], 3);
}

static void calls_in_callbacks(void)
{
	struct scif_child c = scif_fork(node_4);

	check_case("calls from within callbacks");
	memset(&one, 0, sizeof(one));
	echo_port = scif_hear(c.from);
	CHECK_EQ(scif_client_register(&second), 0); /* node 4 is there */
	CHECK_EQ(connected, 1);
	CHECK_EQ(scif_client_register(&first), 0);
	CHECK_EQ(one.probed[4], 1);
	CHECK_EQ(two.probed[4], 1);
	kill_it(&c);
	CHECK_EQ(wait_for(&one.removed[4], 1), 1);
	CHECK_EQ(wait_for(&two.removed[4], 1), 1);
	scif_client_unregister(&second);
	scif_client_unregister(&first);
	CHECK_EQ(two.removed[0], 1);
}

/* Registers another one when it is told, and gives itself up. */
static struct scif_client nested;

static void nested_probe(struct scif_peer_dev *dev)
{
	(void)dev;
	CHECK_EQ(scif_client_register(&first), 0);
	scif_client_unregister(&nested);
}

static void nesting(void)
{
	check_case("nesting");
	memset(&one, 0, sizeof(one));
	nested = (struct scif_client){.name = "nested", .probe = nested_probe};
	CHECK_EQ(scif_client_register(&nested), 0);
	CHECK_EQ(one.probed[0], 1);
	scif_client_unregister(&nested); /* is none any more */
	scif_client_unregister(&first);
	CHECK_EQ(one.removed[0], 1);
	CHECK_EQ(scif_client_register(&first), 0);
	scif_client_unregister(&first);
	CHECK_EQ(one.probed[0], 2);
}

/* A child has no clients, and may have some. */
static void forked(void)
{
	int status;
	pid_t pid;

	check_case("fork");
	memset(&one, 0, sizeof(one));
	CHECK_EQ(scif_client_register(&first), 0);
	pid = fork();
	if (!pid) {
		scif_client_unregister(&first);
		CHECK_EQ(one.removed[0], 0);
		CHECK_EQ(scif_client_register(&first), 0);
		CHECK_EQ(one.probed[0], 2);
		scif_client_unregister(&first);
		CHECK_EQ(one.removed[0], 1);
		_exit(check_result());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	check_child(status);
	scif_client_unregister(&first);
	CHECK_EQ(one.removed[0], 1);
}

int main(void)
{
	coming_and_going();
	calls_in_callbacks();
	nesting();
	forked();
	return check_result();
}
