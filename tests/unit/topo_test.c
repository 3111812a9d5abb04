// SPDX-License-Identifier: BSD-3-Clause
/* Generated topologies: their wiring, their bounds, and that they come back when printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/unit/topo_same.h"
#include "topo/check.h"
#include "topo/draw.h"
#include "topo/generate.h"
#include "topo/layout.h"
#include "topo/load.h"

static char error[TOPO_ERROR];

static struct netlist make(const char *spec)
{
	struct netlist n;

	if (topo_load(&n, spec, error))
		fail_msg("%s", error);
	return n;
}

static void counts(const char *spec, unsigned hosts, unsigned switches, unsigned wires)
{
	struct netlist n = make(spec);
	struct topo_fault fault;
	unsigned wired = 0;

	assert_int_equal(n.topo.n_cas, hosts);
	assert_int_equal(n.topo.n_nodes - n.topo.n_cas, switches);
	for (uint32_t i = 0; i < n.topo.n_nodes; i++)
		wired += topo_wired(&n.topo.nodes[i]);
	assert_int_equal(wired, 2 * wires);
	if (topo_check(&n.topo, &fault))
		fail_msg("%s: %s", spec, fault.reason);
	if (!topo_comes_back(&n.topo, error)) /* which looks at both ends of each wire */
		fail_msg("%s: %s", spec, error);
	netlist_free(&n);
}

static void all_shapes(void **state)
{
	(void)state;
	counts("ib:1", 1, 1, 1);
	counts("ib:254", 254, 1, 254);
	counts("ft2:2,1,1", 1, 2, 2);
	counts("ft2:36,36,18", 648, 54, 1296);
	counts("ft2:36,5,3", 90, 8, 105);
	counts("ft3:2", 2, 5, 6);
	counts("ft3:36", 11664, 1620, 34992);
	counts("ft3:56", 43904, 3920, 131712);
	counts("torus:1x1x1", 1, 1, 1);
	counts("torus:2x1x1,3", 6, 2, 8);
	counts("torus:4x4x4,4", 256, 64, 448);
	counts("torus:3x2x5", 30, 30, 120);
	counts("dragonfly:1,1,1", 2, 2, 3);
	counts("dragonfly:2,4,2", 72, 36, 162);
	counts("dragonfly:4,8,4", 1056, 264, 2508);
}

static void refuse(const char *spec, const char *want)
{
	struct netlist n;

	assert_true(generate_is_spec(spec));
	assert_int_equal(topo_load(&n, spec, error), -EINVAL);
	assert_string_equal(error, want);
	netlist_free(&n);
}

static void bounds(void **state)
{
	(void)state;
	refuse("ib:", "ib:: this should be ib:N, of numbers from 1 to 49151");
	refuse("ib:0", "ib:0: this should be ib:N, of numbers from 1 to 49151");
	refuse("ib:2,2", "ib:2,2: this should be ib:N, of numbers from 1 to 49151");
	refuse("ib:255", "ib:255: switches of 255 ports: a switch has at most 254");
	refuse("ft2:36,36",
		"ft2:36,36: this should be ft2:RADIX,LEAVES,SPINES, of numbers from 1 to 49151");
	refuse("ft2:3,1,1", "ft2:3,1,1: RADIX is even");
	refuse("ft2:4,5,1", "ft2:4,5,1: a spine has a port for each leaf: LEAVES is at most RADIX");
	refuse("ft2:4,4,3",
		"ft2:4,4,3: half of a leaf's ports are for spines: SPINES is at most RADIX/2");
	refuse("ft3:5", "ft3:5: K is even");
	refuse("ft3:58", "ft3:58: 48778 hosts and 4205 switches: a subnet has 49151 LIDs");
	refuse("torus:4x4", "torus:4x4: this should be torus:XxYxZ[,HOSTS], of numbers from 1 to "
			    "49151");
	refuse("torus:1x1x1,249",
		"torus:1x1x1,249: switches of 255 ports: a switch has at most 254");
	refuse("torus:49151x49151x49151,9",
		"torus:49151x49151x49151,9: 1068660073709559 hosts and 118740008189951 switches: "
		"a subnet has 49151 LIDs");
	refuse("dragonfly:1,49151,49151",
		"dragonfly:1,49151,49151: switches of 98302 ports: a switch has at most 254");
	refuse("dragonfly:12,24,12",
		"dragonfly:12,24,12: 83232 hosts and 6936 switches: a subnet has 49151 LIDs");
	assert_false(generate_is_spec("./ib:2"));
	assert_false(generate_is_spec("ib"));
}

static void wired(const struct netlist *n, const char *a, unsigned p, const char *b, unsigned q)
{
	const struct topo_port *port = &n->topo.nodes[topo_find(&n->topo, a)].ports[p];

	assert_int_equal(port->peer, topo_find(&n->topo, b));
	assert_int_equal(port->peer_port, q);
}

static void wiring(void **state)
{
	struct netlist n = make("ft2:36,36,18");

	(void)state;
	wired(&n, "H0", 1, "S0", 1);
	wired(&n, "H647", 1, "leaf 35", 18);
	wired(&n, "leaf 3", 19 + 5, "spine 5", 4);
	netlist_free(&n);

	n = make("ft3:4");
	wired(&n, "H5", 1, "edge 0 of pod 1", 2);
	wired(&n, "edge 1 of pod 2", 3, "aggregation 0 of pod 2", 2);
	wired(&n, "aggregation 1 of pod 3", 4, "core 3", 4);
	netlist_free(&n);

	n = make("torus:4x3x2,2");
	wired(&n, "switch 3,0,0", 1, "switch 0,0,0", 2);
	wired(&n, "switch 1,2,0", 3, "switch 1,0,0", 4);
	wired(&n, "switch 1,1,0", 5, "switch 1,1,1", 6);
	wired(&n, "switch 1,1,1", 5, "switch 1,1,0", 6);
	wired(&n, "H3", 1, "switch 1,0,0", 8);
	netlist_free(&n);

	n = make("dragonfly:2,4,2"); /* ports: 2 hosts, 3 local, 2 global */
	wired(&n, "H3", 1, "router 1 of group 0", 2);
	wired(&n, "router 0 of group 3", 5, "router 3 of group 3", 3);
	wired(&n, "router 0 of group 0", 6, "router 0 of group 1", 6);
	wired(&n, "router 3 of group 8", 7, "router 3 of group 7", 7);
	netlist_free(&n);
}

static void found(void **state)
{
	struct netlist n = make("ib:3");

	(void)state;
	assert_int_equal(topo_find(&n.topo, "H1"), 1);
	assert_int_equal(topo_find(&n.topo, "switch 0"), 3);
	assert_int_equal(topo_find(&n.topo, "0x100002"), 1);
	assert_int_equal(topo_find(&n.topo, "0x100003"), 1);
	assert_int_equal(topo_find(&n.topo, "0x0000000000200000"), 3);
	assert_int_equal(topo_find(&n.topo, "3"), 3);
	assert_int_equal(topo_find(&n.topo, "4"), TOPO_NONE);
	assert_int_equal(topo_find(&n.topo, "0x"), TOPO_NONE);
	assert_int_equal(topo_find(&n.topo, "1a"), TOPO_NONE);
	assert_int_equal(topo_find(&n.topo, ""), TOPO_NONE);
	assert_int_equal(topo_find(&n.topo, "99999999999999999999"), TOPO_NONE);
	netlist_free(&n);
}

static void json(void **state)
{
	struct netlist n = make("ib:2");
	json_t *o = topo_json(&n.topo), *node, *port;

	(void)state;
	assert_non_null(o);
	assert_int_equal(json_integer_value(json_object_get(o, "n_adapters")), 2);
	node = json_array_get(json_object_get(o, "nodes"), 1);
	assert_string_equal(json_string_value(json_object_get(node, "id")), "H1");
	assert_string_equal(json_string_value(json_object_get(node, "guid")), "0x0000000000100002");
	port = json_array_get(json_object_get(node, "ports"), 0);
	assert_int_equal(json_integer_value(json_object_get(port, "port")), 1);
	assert_int_equal(json_integer_value(json_object_get(port, "peer")), 2);
	assert_int_equal(json_integer_value(json_object_get(port, "peer_port")), 2);
	json_decref(o);
	netlist_free(&n);
}

static unsigned times(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static char *drawn(const struct netlist *n, int (*draw)(const struct topo *t, FILE *out))
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(draw(&n->topo, out), 0);
	fclose(out);
	return text;
}

/* Every node and every wire is there once, two wires between the same two nodes, too. */
static void pictures(void **state)
{
	struct netlist n = make("torus:2x3x1,2");
	char *text = drawn(&n, topo_draw_svg);

	(void)state;
	assert_int_equal(times(text, "<path "), 12 + 6 + 6);
	assert_int_equal(times(text, "<rect class="), 18);
	assert_int_equal(times(text, "<title>S0[1] - S1[2]</title>"), 1);
	assert_int_equal(times(text, "<title>S0[2] - S1[1]</title>"), 1);
	free(text);
	text = drawn(&n, topo_draw_dot);
	assert_int_equal(times(text, " -- "), 12 + 6 + 6);
	assert_int_equal(times(text, "shape=box"), 6);
	free(text);
	netlist_free(&n);
}

static void markup(void **state)
{
	static const char net[] =
		"Hca 1 \"a<b>&c\\\" # \"of more than sixteen bytes\"\n"
		"Hca 1 \"an id of more than sixteen\" # \"fifteen bytes..\xe2\x82\xac\"\n";
	struct netlist n;
	char *text;

	(void)state;
	assert_int_equal(netlist_parse(&n, "net", net, strlen(net), error), 0);
	text = drawn(&n, topo_draw_svg);
	assert_int_equal(times(text, ">a&lt;b&gt;&amp;c\\</text>"), 1);
	assert_int_equal(times(text, ">fifteen bytes..\xe2\x80\xa6</text>"), 1);
	free(text);
	text = drawn(&n, topo_draw_dot);
	assert_int_equal(times(text, "label=\"a<b>&c\\\\\""), 1);
	free(text);
	netlist_free(&n);
}

/* Rows of a fat tree: hosts, edges, aggregation switches, cores; a pod stays together. */
static void rows(void **state)
{
	struct netlist n = make("ft3:4");
	struct layout l;

	(void)state;
	assert_int_equal(layout_make(&l, &n.topo), 0);
	assert_int_equal(l.n_levels, 4);
	assert_int_equal(l.first[1], 16);
	assert_int_equal(l.first[2], 24);
	assert_int_equal(l.first[3], 32);
	assert_int_equal(l.first[4], 36);
	for (uint32_t i = 0; i < 36; i++)
		assert_int_equal(l.order[i], i);
	layout_free(&l);
	netlist_free(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_shapes),
		cmocka_unit_test(bounds),
		cmocka_unit_test(wiring),
		cmocka_unit_test(found),
		cmocka_unit_test(json),
		cmocka_unit_test(pictures),
		cmocka_unit_test(markup),
		cmocka_unit_test(rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
