// SPDX-License-Identifier: BSD-3-Clause
/* The nodes of a topology in weftd: their pages, and MADs by their ports. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/connections.h"
#include "daemon/node_ports.h"
#include "daemon/wire.h"
#include "fabric/sysfs.h"
#include "mad/agents.h"
#include "wire/smp.h"

enum { VENDOR_CLASS = 0x0a, TURNS = 1000 };

static struct server server;
static char dir[] = "/tmp/weft-node-ports-XXXXXX";

/* Two hosts, one of two ports, and a switch. */
static const char netlist[] = "Switch 3 \"s\"\n[1] \"a\"[1]\n[2] \"a\"[2]\n[3] \"b\"[1]\n\n"
			      "Hca 2 \"a\"\n[1] \"s\"[1]\n[2] \"s\"[2]\n\n"
			      "Hca 1 \"b\"\n[1] \"s\"[3]\n";

static int begin(void **state)
{
	char why[512] = "", path[sizeof dir + 16];
	FILE *f;

	(void)state;
	if (!mkdtemp(dir) || setenv("WEFT_RUNTIME_DIR", dir, 1))
		return -1;
	snprintf(path, sizeof path, "%s/lab.topo", dir);
	f = fopen(path, "w");
	if (!f || fputs(netlist, f) < 0 || fclose(f))
		return -1;
	server.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (rdv_paths_open(&server.paths, "lab") ||
		subnet_service_start(&server, why, sizeof why) || !server.subnet ||
		node_get(&server, 0, &server.node) || wire_start(&server))
		return -1;
	return connections_start(&server);
}

static int end(void **state)
{
	(void)state;
	connections_end(&server);
	subnet_service_end(&server);
	nodes_end(&server.nodes);
	return sysfs_remove(dir);
}

/* ---- agents ---- */

struct said {
	int requests, answers, status;
	uint8_t mad[MAD_SIZE];
	struct mad_addr from;
};

static void receive(struct mad_agent *a, const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	struct said *said = a->arg;

	said->requests++;
	said->from = *from;
	memcpy(said->mad, mad, MAD_SIZE);
}

static void done(struct mad_agent *a, struct mad_send *s, int status, const uint8_t *response)
{
	struct said *said = a->arg;

	(void)s;
	said->answers++;
	said->status = status;
	if (response)
		memcpy(said->mad, response, MAD_SIZE);
}

/* An agent of a port that only sends, or of class 0x0a. */
static void agent(struct mad_agent *a, uint32_t node, unsigned port, unsigned qp,
	uint8_t mgmt_class, struct said *said)
{
	struct mad_port *p = node_mad_port(&server, node, port);

	assert_non_null(p);
	*a = (struct mad_agent){.reg = {.qpn = qp, .mgmt_class = mgmt_class, .class_version = 1},
		.receive = receive,
		.done = done,
		.arg = said};
	if (mgmt_class)
		a->reg.methods[0] = 1u << MAD_GET;
	assert_int_equal(mad_register(p, a), 0);
}

/* Until there is an answer. */
static void run(const struct said *said)
{
	for (int i = 0; !said->answers && i < TURNS; i++)
		server.deliver(&server);
	assert_int_equal(said->answers, 1);
}

static void ask(struct mad_agent *a, const struct mad_addr *to, uint8_t mgmt_class, uint16_t attr,
	uint8_t hops)
{
	const struct smp_hdr h = {.base_version = MAD_BASE_VERSION,
		.mgmt_class = mgmt_class,
		.class_version = 1,
		.method = MAD_GET,
		.attr = attr,
		.hop_cnt = hops,
		.dr_slid = LID_PERMISSIVE,
		.dr_dlid = LID_PERMISSIVE};
	uint8_t mad[MAD_SIZE] = {0};
	struct mad_send *send;

	wire_pack(&smp_hdr_format, &h, mad);
	mad[SMP_INITIAL_PATH + 1] = 1;
	mad[SMP_INITIAL_PATH + 2] = 3;
	mad_own_tid(a, mad);
	assert_int_equal(mad_send(a, to, mad, 10000, 0, true, NULL, &send), 0);
}

static uint16_t lid_of(uint32_t node, unsigned port)
{
	struct node *n;

	assert_int_equal(node_get(&server, node, &n), 0);
	return fabric_port(n->page, port)->lid;
}

/* ---- tests ---- */

static void pages(void **state)
{
	struct node *n, *again;

	(void)state;
	assert_int_equal(node_get(&server, 0, &n), 0);
	assert_int_equal(n->page->n_ports, 2);
	assert_int_equal(fabric_port(n->page, 2)->state, PORT_ACTIVE);
	assert_int_equal(fabric_port(n->page, 1)->pkey[0], 0xffff);
	assert_int_equal(fabric_port(n->page, 1)->gid[0].raw[0], 0xfe);
	assert_int_equal(node_get(&server, 2, &n), 0);
	assert_int_equal(n->page->node_type, FABRIC_SWITCH);
	assert_null(fabric_port(n->page, 1));
	assert_int_equal(fabric_port(n->page, 0)->lid, lid_of(2, 0));
	assert_int_equal(node_get(&server, 2, &again), 0);
	assert_ptr_equal(n, again);
	assert_int_equal(node_get(&server, 3, &n), -ENODEV);
	assert_null(node_mad_port(&server, 0, 0));
	assert_null(node_mad_port(&server, 0, 3));
	assert_null(node_mad_port(&server, 2, 1));
	assert_null(node_mad_port(&server, 3, 1));
	assert_ptr_equal(node_mad_port(&server, 0, 1), node_mad_port(&server, 0, 1));
	assert_ptr_not_equal(node_mad_port(&server, 0, 1), node_mad_port(&server, 0, 2));
}

static void node_info_by_hops(uint8_t hops, uint32_t node)
{
	const struct mad_addr to = {.lid = LID_PERMISSIVE};
	struct said said = {0};
	struct node_info info;
	struct mad_agent a;
	struct node *n;

	agent(&a, 0, 1, 0, 0, &said);
	ask(&a, &to, MAD_CLASS_SUBN_DR, SMP_NODE_INFO, hops);
	run(&said);
	assert_int_equal(said.status, 0);
	wire_unpack(&node_info_format, said.mad + SMP_DATA, &info);
	assert_int_equal(node_get(&server, node, &n), 0);
	assert_int_equal(htobe64(info.node_guid), n->page->node_guid);
	mad_unregister(&a);
}

/* Its own agent, its switch's, and the one at the other end. */
static void directed_routes(void **state)
{
	(void)state;
	node_info_by_hops(0, 0);
	node_info_by_hops(1, 2);
	node_info_by_hops(2, 1);
}

static void between_programs(void **state)
{
	struct said at_a = {0}, at_b = {0};
	const struct mad_addr to = {.lid = lid_of(1, 1), .qpn = 1, .qkey = 0x80010000};
	struct mad_agent a, b;

	(void)state;
	agent(&a, 0, 2, 1, 0, &at_a);
	agent(&b, 1, 1, 1, VENDOR_CLASS, &at_b);
	ask(&a, &to, VENDOR_CLASS, 1, 0);
	for (int i = 0; !at_b.requests && i < TURNS; i++)
		server.deliver(&server);
	assert_int_equal(at_b.requests, 1);
	assert_int_equal(at_b.from.lid, lid_of(0, 2));
	at_b.mad[3] = MAD_GET_RESP;
	assert_int_equal(mad_post(&b, &at_b.from, at_b.mad), 0);
	run(&at_a);
	assert_int_equal(at_a.status, 0);
	mad_unregister(&b);
	/* Nobody is there for it now: the layer says so. */
	at_a.answers = 0;
	ask(&a, &to, VENDOR_CLASS, 1, 0);
	run(&at_a);
	assert_int_equal(at_a.mad[5], SMP_UNSUPPORTED);
	mad_unregister(&a);
}

/* SMInfo of the port where the bring-up subnet manager says that it is. */
static uint8_t sm_info_status(void)
{
	struct mad_addr to = {0};
	struct said said = {0};
	struct mad_agent a;
	struct node *n;

	assert_int_equal(node_get(&server, 0, &n), 0);
	to.lid = fabric_port(n->page, 1)->sm_lid;
	agent(&a, 0, 1, 0, 0, &said);
	ask(&a, &to, MAD_CLASS_SUBN_LID, SMP_SM_INFO, 0);
	run(&said);
	mad_unregister(&a);
	return said.status ? 0xff : said.mad[5];
}

static void subnet_managers(void **state)
{
	(void)state;
	assert_int_equal(sm_info_status(), SMP_OK);
	node_issm_opened(&server, 0, 1);
	assert_int_equal(sm_info_status(), SMP_UNSUPPORTED);
	node_issm_closed(&server, 0, 1);
	for (int i = 0; i < TURNS && sm_info_status() != SMP_OK; i++)
		nanosleep(&(struct timespec){.tv_nsec = 5 * NSEC_PER_MSEC}, NULL);
	assert_int_equal(sm_info_status(), SMP_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages),
		cmocka_unit_test(directed_routes),
		cmocka_unit_test(between_programs),
		cmocka_unit_test(subnet_managers),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
