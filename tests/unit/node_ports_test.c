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
#include "sm/attr.h"
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
	assert_int_equal(fabric_port(n->page, 1)->vl_cap, 4); /* VL0 to VL7 */
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

/* ---- what a page shows ---- */

/* Lets weftd work until the page says it, and its files, too. */
static void shows(bool (*says)(const struct fabric_page *page), const char *file, const char *text)
{
	char path[256], got[128] = "";
	struct node *n;
	FILE *f;

	assert_int_equal(node_get(&server, 1, &n), 0);
	for (int i = 0; i < TURNS && !says(n->page); i++) {
		server.deliver(&server);
		nanosleep(&(struct timespec){.tv_nsec = NSEC_PER_MSEC}, NULL);
	}
	assert_true(says(n->page));
	snprintf(path, sizeof path, "%s/lab.tree.1/sys/class/infiniband/weft0/%s", dir, file);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(got, sizeof got, f));
	fclose(f);
	assert_string_equal(got, text);
}

static bool has_sm_lid(const struct fabric_page *page)
{
	return page->port[0].sm_lid == 77;
}

static bool has_sm_sl(const struct fabric_page *page)
{
	return page->port[0].sm_sl == 5;
}

static bool has_timeout(const struct fabric_page *page)
{
	return page->port[0].subnet_timeout == 9;
}

static bool has_prefix(const struct fabric_page *page)
{
	return page->port[0].gid[0].raw[7] == 1;
}

static bool has_guid(const struct fabric_page *page)
{
	return page->port[0].n_gids == 2 && page->port[0].gid[1].raw[15] == 0x42;
}

static bool has_description(const struct fabric_page *page)
{
	return !strcmp(page->description, "b of another name");
}

static bool has_port_guid(const struct fabric_page *page)
{
	return page->port[0].gid[0].raw[15] == 0x99;
}

static bool is_disabled(const struct fabric_page *page)
{
	return page->port[0].phys_state == PHYS_DISABLED;
}

static bool is_polling(const struct fabric_page *page)
{
	return page->port[0].phys_state == PHYS_POLLING;
}

static void set_port(void (*change)(struct port_info *i))
{
	struct subnet *s = server.subnet->subnet;
	uint8_t data[SMP_DATA_SIZE];
	struct port_info i;

	assert_true(attr_get(s, 1, 1, SMP_PORT_INFO, 1, data));
	wire_unpack(&port_info_format, data, &i);
	i.state = i.phys_state = 0;
	change(&i);
	wire_pack(&port_info_format, &i, data);
	assert_true(attr_set(s, 1, 1, SMP_PORT_INFO, 1, data));
}

static void set_sm_lid(struct port_info *i)
{
	i->sm_lid = 77;
}

static void set_sm_sl(struct port_info *i)
{
	i->sm_sl = 5;
}

static void set_timeout(struct port_info *i)
{
	i->subnet_timeout = 9;
}

static void set_prefix(struct port_info *i)
{
	i->gid_prefix |= 1;
}

static void disable(struct port_info *i)
{
	i->phys_state = PHYS_DISABLED;
}

/* A Set that changes nothing else: no table that forwarding reads. */
static void sets_are_shown(void **state)
{
	uint8_t guids[SMP_DATA_SIZE] = {0}, desc[SMP_DATA_SIZE] = "b of another name";
	struct subnet *s = server.subnet->subnet;

	(void)state;
	node_issm_opened(&server, 0, 1); /* the built-in subnet manager keeps away */
	set_port(set_sm_lid);
	shows(has_sm_lid, "ports/1/sm_lid", "0x4d\n");
	set_port(set_sm_sl);
	shows(has_sm_sl, "ports/1/sm_sl", "5\n");
	set_port(set_timeout);
	shows(has_timeout, "ports/1/state", "4: ACTIVE\n");
	set_port(set_prefix);
	shows(has_prefix, "ports/1/gids/0", "fe80:0000:0000:0001:0000:0000:0010:0004\n");
	guids[15] = 0x42;
	assert_true(attr_set(s, 1, 1, SMP_GUID_INFO, 0, guids));
	shows(has_guid, "ports/1/gids/1", "fe80:0000:0000:0001:0000:0000:0000:0042\n");
	assert_true(attr_set(s, 1, 1, SMP_NODE_DESC, 0, desc));
	shows(has_description, "node_desc", "b of another name\n");
	assert_int_equal(subnet_set_guid(s, 1, 1, 0x99), 0);
	shows(has_port_guid, "ports/1/gids/0", "fe80:0000:0000:0001:0000:0000:0000:0099\n");
	assert_int_equal(subnet_unlink(s, 1, 1), 0);
	shows(is_polling, "ports/1/phys_state", "2: Polling\n");
	set_port(disable); /* there is no link that goes */
	shows(is_disabled, "ports/1/phys_state", "3: Disabled\n");
	node_issm_closed(&server, 0, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages),
		cmocka_unit_test(directed_routes),
		cmocka_unit_test(between_programs),
		cmocka_unit_test(subnet_managers),
		cmocka_unit_test(sets_are_shown),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
