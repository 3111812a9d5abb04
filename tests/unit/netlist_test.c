// SPDX-License-Identifier: BSD-3-Clause
/* What netlists say, and what is wrong with wrong ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/topo_same.h"

static char error[TOPO_ERROR];

static struct netlist read_text(const char *text)
{
	struct netlist n;

	if (netlist_parse(&n, "net", text, strlen(text), error))
		fail_msg("%s", error);
	if (!topo_comes_back(&n.topo, error))
		fail_msg("it does not come back: %s", error);
	return n;
}

static void refuse(const char *text, const char *want)
{
	struct netlist n;

	assert_int_equal(netlist_parse(&n, "net", text, strlen(text), error), -EINVAL);
	assert_string_equal(error, want);
	assert_int_equal(n.topo.n_nodes, 0);
	netlist_free(&n);
}

static const struct topo_port *port(const struct netlist *n, const char *id, unsigned p)
{
	uint32_t node = topo_find(&n->topo, id);

	if (node == TOPO_NONE)
		fail_msg("no node %s", id);
	return &n->topo.nodes[node].ports[p];
}

static void wired(const struct netlist *n, const char *a, unsigned p, const char *b, unsigned q)
{
	assert_int_equal(port(n, a, p)->peer, topo_find(&n->topo, b));
	assert_int_equal(port(n, a, p)->peer_port, q);
	assert_int_equal(port(n, b, q)->peer, topo_find(&n->topo, a));
	assert_int_equal(port(n, b, q)->peer_port, p);
}

/* Two adapters on a switch, one of them with an end that is left to be port 1. */
#define PAIR                                                                                       \
	"Switch 4 \"leaf\"\n[1] \"a\"\n[4]\t\"b\"[2]\n\nHca 1 \"a\"\n[1] \"leaf\"[1]\n\n"          \
	"Ca 2 \"b\"\n[2] \"leaf\"[4]\n"

static void numbers_and_guids(void **state)
{
	struct netlist n = read_text(PAIR "\nRt 1 \"r\" # \"a router\"\n");

	(void)state;
	assert_int_equal(n.topo.n_nodes, 4);
	assert_int_equal(n.topo.n_cas, 2);
	assert_string_equal(n.topo.nodes[0].id, "a");
	assert_string_equal(n.topo.nodes[2].id, "leaf");
	assert_int_equal(n.topo.nodes[2].kind, TOPO_SWITCH);
	assert_string_equal(n.topo.nodes[2].description, "leaf");
	assert_string_equal(n.topo.nodes[3].description, "a router");
	assert_int_equal(n.topo.nodes[0].guid, 0x100000);
	assert_int_equal(n.topo.nodes[0].ports[1].guid, 0x100001);
	assert_int_equal(n.topo.nodes[1].guid, 0x100002);
	assert_int_equal(n.topo.nodes[1].ports[2].guid, 0x100004);
	assert_int_equal(n.topo.nodes[2].guid, 0x200000);
	assert_int_equal(n.topo.nodes[2].ports[0].guid, 0x200000);
	assert_int_equal(n.topo.nodes[2].system_guid, 0x200000);
	wired(&n, "a", 1, "leaf", 1);
	wired(&n, "b", 2, "leaf", 4);
	assert_int_equal(port(&n, "b", 1)->peer, TOPO_NONE);
	assert_int_equal(port(&n, "leaf", 3)->width, 2);
	assert_int_equal(port(&n, "leaf", 3)->speed, 1);
	netlist_free(&n);
}

static void directives(void **state)
{
	struct netlist n = read_text("pdebug=1\nvendid=0x2c9\ndevid=0x1003\nsysimgguid=0x77\n"
				     "hcaguids=0x5000\nwidth=3\nspeed = 7\nextspeed=1\n"
				     "Hca 1 \"a\"\nHca 1 \"b\"\n"
				     "caguid+256\nHca 1 \"c\"\n"
				     "switchguid=0x9000(9000)\nSwitch 3 \"s\"\nSwitch 3 \"t\"\n"
				     "do Unlink \"s\"[1]\n do   Verbose 2\r\n");

	(void)state;
	assert_int_equal(n.topo.nodes[0].vendor, 0x2c9);
	assert_int_equal(n.topo.nodes[0].device, 0x1003);
	assert_int_equal(n.topo.nodes[0].system_guid, 0x77);
	assert_int_equal(n.topo.nodes[0].guid, 0x5000);
	assert_int_equal(n.topo.nodes[1].vendor, 0);
	assert_int_equal(n.topo.nodes[1].device, 0x1003);
	assert_int_equal(n.topo.nodes[1].system_guid, 0x5002);
	assert_int_equal(n.topo.nodes[2].guid, 0x5100);
	assert_int_equal(n.topo.nodes[4].guid, 0x9001);
	assert_int_equal(n.topo.nodes[4].ports[0].width, 3);
	assert_int_equal(n.topo.nodes[4].ports[3].speed, 7);
	assert_int_equal(n.topo.nodes[4].ports[3].ext_speed, 1);
	assert_int_equal(n.n_commands, 2);
	assert_string_equal(n.commands[0], "Unlink \"s\"[1]");
	assert_string_equal(n.commands[1], "Verbose 2");
	netlist_free(&n);
}

static void options(void **state)
{
	struct netlist n =
		read_text("Switch 2 \"s\"\n[1] \"t\"[1] w=3 s=7 e=15\n[2]\"t\"[2]w=2\n\n"
			  "Switch 2 \"t\"\n[1] \"s\"[1] s=0 w=31 v=4 # x=9 2x fast \"w=1\"\n"
			  "# a comment in between\n[2] \"s\"[2] # lid 0 4xEDR s=4 w=2\n");

	(void)state;
	assert_int_equal(port(&n, "s", 1)->width, 3);
	assert_int_equal(port(&n, "s", 1)->speed, 7);
	assert_int_equal(port(&n, "s", 1)->ext_speed, 15);
	assert_int_equal(port(&n, "s", 2)->width, 2);
	assert_int_equal(port(&n, "s", 2)->speed, 1);
	assert_int_equal(port(&n, "t", 1)->width, 31);
	assert_int_equal(port(&n, "t", 1)->speed, 4);
	assert_int_equal(port(&n, "t", 2)->width, 3);
	assert_int_equal(port(&n, "t", 2)->ext_speed, 3);
	netlist_free(&n);
}

/* All that ibnetdiscover may print of a link, and the masks that it stands for. */
static void rates(void **state)
{
	static const struct {
		const char *name;
		uint8_t speed, ext_speed;
	} speeds[] = {{"SDR", 1, 0}, {"DDR", 3, 0}, {"QDR", 7, 0}, {"FDR10", 15, 0}, {"FDR", 15, 1},
		{"EDR", 15, 3}, {"HDR", 15, 7}, {"NDR", 15, 15}, {"XDR", 15, 47}};
	static const struct {
		const char *name;
		uint8_t mask;
	} widths[] = {{"1x", 1}, {"2x", 16}, {"4x", 3}, {"8x", 4}, {"12x", 11}};

	(void)state;
	for (size_t i = 0; i < 5 * sizeof speeds / sizeof speeds[0]; i++) {
		const char *width = widths[i % 5].name, *speed = speeds[i / 5].name;
		struct netlist n;
		char text[256];

		snprintf(text, sizeof text,
			"Switch 1 \"s\"\n[1] \"a\"[1] # \"a\" lid 1 %s%s s=4 w=2 v=4\n\n"
			"Ca 1 \"a\"\n[1](77) \"s\"[1] # lid 1 lmc 0 \"s\" lid 2 %s%s\n",
			width, speed, width, speed);
		n = read_text(text);
		assert_int_equal(port(&n, "s", 1)->width, widths[i % 5].mask);
		assert_int_equal(port(&n, "a", 1)->speed, speeds[i / 5].speed);
		assert_int_equal(port(&n, "a", 1)->ext_speed, speeds[i / 5].ext_speed);
		netlist_free(&n);
	}
}

/* Masks as such; FDR10 is QDR, too. */
static void masks(void **state)
{
	struct netlist n = read_text("width=16\nspeed=8\nextspeed=32\n"
				     "Hca 1 \"a\"\n[1] \"b\"[1]\n\n"
				     "Hca 1 \"b\"\n[1] \"a\"[1] w=31 s=9 e=47\n");

	(void)state;
	assert_int_equal(port(&n, "a", 1)->width, 16);
	assert_int_equal(port(&n, "a", 1)->speed, 8 | 4);
	assert_int_equal(port(&n, "a", 1)->ext_speed, 32);
	assert_int_equal(port(&n, "b", 1)->width, 31);
	assert_int_equal(port(&n, "b", 1)->speed, 8 | 4 | 1);
	assert_int_equal(port(&n, "b", 1)->ext_speed, 47);
	netlist_free(&n);
}

/* What editors on other systems put into a file. */
static void foreign_text(void **state)
{
	struct netlist n = read_text("\xef\xbb\xbf" PAIR);
	const char *text = "\xef\xbb\xbf# a cluster\r\n\r\nSwitch 2 \"s\" # the corner\r\n"
			   "[1] \"a\"\r\n[2] \"a\"[2] # lid 0 4xXDR\r\n\r\n"
			   "speed=7\r\nHca 2 \"a\"\r\n[1] \"s\"\r\n"
			   "[2] \"s\"[2] e=32\r\n\r\ndo Unlink \"s\"[1]\r\n";

	(void)state;
	wired(&n, "leaf", 1, "a", 1);
	netlist_free(&n);
	n = read_text(text);
	wired(&n, "s", 1, "a", 1);
	assert_string_equal(n.topo.nodes[1].description, "the corner");
	assert_int_equal(port(&n, "s", 2)->ext_speed, 47);
	assert_int_equal(port(&n, "a", 2)->ext_speed, 32);
	assert_string_equal(n.commands[0], "Unlink \"s\"[1]");
	netlist_free(&n);
	refuse("\xef\xbb\xbf", "net: no node in it; is it a netlist?");
	refuse("\xef\xbb\xbfswichguid=1\r\n", "net:1: unknown directive 'swichguid'");
}

/* As ibnetdiscover prints: -g adds the headings, the slots and the external ports. */
static void discovered(void **state)
{
	struct netlist n = read_text(
		"#\n# Topology file: generated on a day\n#\n# Initiated from node 0 port 1\n\n"
		"Chassis 1 (guid 0x8f1)\n\nNon-Chassis Nodes\n\n"
		"vendid=0x8f1\ndevid=0x5a06\nsysimgguid=0x8f10400410017\t\t# Chassis 1\n"
		"switchguid=0x8f10400410015(8f10400410015) Spine 1 Chip 2\n"
		"Switch\t8 \"S-0008f10400410015\"\t\t# \"SW 6IB4\" enhanced port 0 lid 3 lmc 0\n"
		"[6][ext 3]\t\"H-0008f10403960984\"[1](8f10403960985) \t\t# \"H1 HCA-1\" lid 16 "
		"12xSDR\n"
		"[4]\t\"H-005442b100004900\"[1](5442b100004900) \t\t# \"it's lid 9\" lid 12 "
		"4xNDR\n\n"
		"vendid=0x2c9\ndevid=0x5a44\nsysimgguid=0x8f10403960987\n"
		"caguid=0x8f10403960984\n"
		"Ca\t2 \"H-0008f10403960984\"\t\t# \"H1 HCA-1\"\n"
		"[1](8f10403960985) \t\"S-0008f10400410015\"[6]\t\t# lid 16 lmc 1 \"SW 6IB4\" lid "
		"3 12xSDR\n\n"
		"caguid=0x5442b100004900\n"
		"Ca\t1 \"H-005442b100004900\"\t\t# \"it's lid 9\"\n"
		"[1](5442b100004900) \t\"S-0008f10400410015\"[4]\t\t# lid 12 lmc 0 \"SW 6IB4\" "
		"lid 3 4xNDR\n");
	const struct topo_node *s = &n.topo.nodes[2];

	(void)state;
	assert_int_equal(n.topo.n_cas, 2);
	assert_int_equal(s->guid, 0x8f10400410015);
	assert_int_equal(s->system_guid, 0x8f10400410017);
	assert_string_equal(s->description, "SW 6IB4");
	assert_true(s->enhanced);
	assert_int_equal(s->ports[0].lid, 3);
	assert_int_equal(s->ports[6].width, 11);
	assert_int_equal(s->ports[4].speed, 15);
	assert_int_equal(s->ports[4].ext_speed, 15);
	assert_int_equal(s->ports[4].lid, 0);
	assert_string_equal(n.topo.nodes[1].description, "it's lid 9");
	assert_int_equal(n.topo.nodes[0].ports[1].lid, 16);
	assert_int_equal(n.topo.nodes[0].ports[1].lmc, 1);
	assert_int_equal(n.topo.nodes[0].ports[2].guid, 0x8f10403960986);
	assert_int_equal(n.topo.nodes[1].ports[1].lid, 12);
	assert_int_equal(n.topo.nodes[1].ports[1].guid, 0x5442b100004900);
	netlist_free(&n);
}

static void descriptions(void **state)
{
	struct netlist n = read_text("Switch 2 \"a\" # ISR 9024  base port 0 lid 7 lmc 0\n"
				     "Switch 2 \"b\" # enhanced port 0 lid 8\n"
				     "Switch 2 \"c\"#\"\"\nHca 1 \"d\" # plain words \n"
				     "Hca 1 \"e\" # \"quoted\" lid 5\n");

	(void)state;
	assert_string_equal(n.topo.nodes[0].description, "plain words");
	assert_string_equal(n.topo.nodes[1].description, "quoted");
	assert_string_equal(n.topo.nodes[2].description, "ISR 9024");
	assert_false(n.topo.nodes[2].enhanced);
	assert_int_equal(n.topo.nodes[2].ports[0].lid, 7);
	assert_string_equal(n.topo.nodes[3].description, "b");
	assert_true(n.topo.nodes[3].enhanced);
	assert_int_equal(n.topo.nodes[3].ports[0].lid, 8);
	assert_string_equal(n.topo.nodes[4].description, "c");
	netlist_free(&n);
}

/* Each place of a LID and an LMC, one of them 0 or none; read_text() prints it and reads it again.
 */
static void lmcs(void **state)
{
	struct netlist n =
		read_text("Switch 3 \"s\" # \"s\" enhanced port 0 lid 0 lmc 2\n[1] \"a\"[1]\n"
			  "[2] \"a\"[2]\n[3] \"a\"[3]\n\n"
			  "Switch 1 \"t\" # \"t\" base port 0 lid 9 lmc 0\n\n"
			  "Hca 6 \"a\"\n[1] \"s\"[1] # lid 0 lmc 3\n[2] \"s\"[2] # lid 16 lmc 0\n"
			  "[3] \"s\"[3] # lid 32 lmc 4\n@[4] \"p\" # lid 0 lmc 1\n"
			  "@[5] \"q\" # lid 7 lmc 0\n\n"
			  "Rt 2 \"r\"\n@[1] \"o\" # lid 0 lmc 7\n");
	static const struct {
		const char *id;
		unsigned port, lid, lmc;
	} want[] = {{"s", 0, 0, 2}, {"t", 0, 9, 0}, {"a", 1, 0, 3}, {"a", 2, 16, 0},
		{"a", 3, 32, 4}, {"a", 4, 0, 1}, {"a", 5, 7, 0}, {"a", 6, 0, 0}, {"r", 1, 0, 7},
		{"r", 2, 0, 0}};

	json_t *told = topo_json(&n.topo);

	(void)state;
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		uint32_t node = topo_find(&n.topo, want[i].id);
		json_t *ports = json_object_get(
			json_array_get(json_object_get(told, "nodes"), node), "ports");
		/* Those of a switch begin with port 0. */
		bool from_0 = n.topo.nodes[node].kind == TOPO_SWITCH;
		json_t *o = json_array_get(ports, want[i].port - !from_0);

		assert_int_equal(port(&n, want[i].id, want[i].port)->lid, want[i].lid);
		assert_int_equal(port(&n, want[i].id, want[i].port)->lmc, want[i].lmc);
		assert_int_equal(json_integer_value(json_object_get(o, "lid")), want[i].lid);
		assert_int_equal(json_integer_value(json_object_get(o, "lmc")), want[i].lmc);
	}
	json_decref(told);
	netlist_free(&n);
}

/* A module's plugs are named from outside; its node ids cannot clash. */
static void modules(void **state)
{
	struct netlist n =
		read_text("module=\"m1\"\nSwitch 2 \"s\"\n[1] \"s\"[2]\n[2] \"s\"[1]\n\n"
			  "module \"m2\"\nSwitch 4 \"s\"\n[1] \"m1#h\"[1]\n@[2] \"plug\" w=3\n"
			  "@[3] \"free\" w=31\n\nHca 2 \"h\"\n[2] \"@plug\"\n\n"
			  "module=\"\"\nHca 1 \"m1#h\"\n[1] \"m2#s\"[1]\n\n"
			  "Switch 1 \"x\"\n\nmodule=\"m3\"\nSwitch 1 \"s\"\n@[1] \"up\"\n\n"
			  "Switch 1 \"t\"\n[1] \"m3@up\"\n");

	(void)state;
	wired(&n, "m1#s", 1, "m1#s", 2);
	wired(&n, "m2#s", 1, "m1#h", 1);
	wired(&n, "m2#s", 2, "m2#h", 2);
	wired(&n, "m3#s", 1, "m3#t", 1);
	assert_int_equal(port(&n, "m2#s", 2)->width, 3);
	assert_int_equal(port(&n, "m2#s", 3)->width, 31);
	assert_int_equal(port(&n, "m2#s", 3)->peer, TOPO_NONE);
	assert_int_equal(port(&n, "x", 1)->peer, TOPO_NONE);
	assert_int_equal(n.topo.n_aliases, 3);
	assert_int_equal(topo_find_alias(&n.topo, "m2@plug")->node, topo_find(&n.topo, "m2#s"));
	assert_int_equal(topo_find_alias(&n.topo, "m2@plug")->port, 2);
	assert_null(topo_find_alias(&n.topo, "@plug"));
	netlist_free(&n);
}

static void wrong_lines(void **state)
{
	(void)state;
	refuse("Switch x \"a\"", "net:1: a node has 1 to 254 ports");
	refuse("Switch 255 \"a\"", "net:1: a node has 1 to 254 ports");
	refuse("Hca 0 \"a\"", "net:1: a node has 1 to 254 ports");
	refuse("Hca 1 a", "net:1: a node wants a number of ports and an id in quotes");
	refuse("\nHca 1 \"\"", "net:2: a name has 1 to 64 printable bytes");
	refuse("Hca 1 \"a\x1b[2J\"", "net:1: a name has 1 to 64 printable bytes");
	refuse("Hca 1 \"a@b\"", "net:1: '@' in an id is for aliases");
	refuse("Hca 1 \"a\"\nHca 1 \"a\"", "net:2: there is a node \"a\" already (line 1 of net)");
	refuse("Hca 1 \"a\" # \"x\"\n[2] \"b\"[1]", "net:2: port 2 of \"a\", which has 1");
	refuse("Hca 1 \"a\"\n[0] \"b\"[1]", "net:2: a port is [N], from 1");
	refuse("Hca 1 \"a\"\n[1] b", "net:2: port 1 wants a name in quotes");
	refuse("Hca 1 \"a\"\n[1] \"b\"[0]", "net:2: a port's number is 1 to 254");
	refuse("Hca 1 \"a\"\n[1] \"b\"[999]", "net:2: a port's number is 1 to 254");
	refuse("Hca 1 \"a\"\n[1] \"b\"[1] w=32", "net:2: 'w=' wants a number from 1 to 31");
	refuse("Hca 1 \"a\"\n[1] \"b\"[1] e=1x", "net:2: 'e=' wants a number from 0 to 47");
	refuse("Hca 1 \"a\"\n[1] \"b\"[1] s=16", "net:2: 's=' wants a number from 0 to 15");
	refuse("Hca 1 \"a\"\n[1] \"b\"[1] e=18", "net:2: 'e=' has no bit of 16");
	refuse("extspeed=48\n", "net:1: 'extspeed' wants a number from 0 to 47");
	refuse("extspeed=31\n", "net:1: 'extspeed' has no bit of 16");
	refuse("Hca 1 \"a\"\n[1] \"b\"[1] # lid 1 4xZDR",
		"net:2: '4xZDR' is no width and speed that is known");
	refuse("Hca 1 \"a\"\n[1] \"b\"[1] # \"x", "net:2: a quote that does not end");
	refuse("Swich 2 \"a\"\n[1] \"b\"[1]",
		"net:2: a port without a node: is the line of its node above?");
	refuse("swichguid=1\n", "net:1: unknown directive 'swichguid'");
	refuse("swichguid+1\n", "net:1: unknown directive 'swichguid'");
	refuse("vendid 7\n", "net:1: 'vendid' wants '=' and a number");
	refuse("vendid=0x100000000\n", "net:1: 'vendid' wants a number from 0 to 4294967295");
	refuse("width=0\n", "net:1: 'width' wants a number from 1 to 31");
	refuse("caguid=0x1ffffffffffffffff\n", "net:1: 'caguid' wants a GUID of at most 64 bits");
	refuse("module=\"a#b\"\n", "net:1: 'module' wants a quoted prefix without '#' and '@'");
	refuse("include \"/nowhere/at all\"\n",
		"net:1: cannot open '/nowhere/at all': No such file or directory");
	refuse("do", "net:1: 'do' wants a command");
}

static void wrong_wires(void **state)
{
	(void)state;
	refuse("Hca 1 \"a\"\n[1] \"b\"[1]\n", "net:2: there is no node \"b\"");
	refuse("Hca 1 \"a\"\n[1] \"@b\"\n", "net:2: there is no alias \"@b\"");
	refuse("Hca 2 \"a\"\n[1] \"a\"[1]\n", "net:2: port 1 is wired to itself");
	refuse("Hca 2 \"a\"\n[1] \"a\"[2]\n[1] \"a\"[2]\n", "net:3: port 1 is wired already");
	refuse("Hca 1 \"a\"\n[1] \"b\"[2]\n\nHca 1 \"b\"\n", "net:2: port 2 of \"b\", which has 1");
	refuse("Hca 1 \"a\"\n[1] \"b\"[1]\n\nHca 1 \"b\"\n",
		"net:2: a link from one side alone: \"b\" says nothing of its port 1");
	refuse("Hca 1 \"a\"\n[1] \"b\"[1]\n\nHca 1 \"b\"\n[1] \"c\"[1]\n\nHca 1 \"c\"\n[1] "
	       "\"b\"[1]\n",
		"net:2: port 1 of \"b\" is wired to port 1 of \"c\", not to this one");
	refuse("Hca 1 \"a\"\n@[1] \"p\"\n\nHca 1 \"b\"\n@[1] \"p\"\n",
		"net:5: there is an alias \"@p\" already");
	refuse("Hca 1 \"a\"\n@[1] \"p\"\n\nHca 2 \"b\"\n[1] \"@p\"\n[2] \"@p\"\n",
		"net:6: the port of alias \"@p\" is wired already");
	refuse("Hca 1 \"a\"\n[1] \"b\"[1] w=1\n\nHca 1 \"b\"\n[1] \"a\"[1] w=2\n",
		"net:1: port 1 and its peer have no link width in common");
	refuse("Hca 1 \"a\"\n[1] \"b\"[1] s=2\n\nHca 1 \"b\"\n[1] \"a\"[1]\n",
		"net:1: port 1 and its peer have no link speed in common");
}

static void wrong_identities(void **state)
{
	(void)state;
	refuse("caguid=5\nHca 1 \"a\"\ncaguid=5\nHca 1 \"b\"\n",
		"net:4: the node of \"b\" has the GUID 0x5, as \"a\" has");
	refuse("switchguid=0\nSwitch 1 \"a\"\n", "net:2: the node of \"a\" has the GUID 0");
	refuse("caguid=5\nHca 1 \"a\"\n[1](77) \"b\"[1]\n\ncaguid=6\nHca 1 \"b\"\n[1](77) "
	       "\"a\"[1]\n",
		"net:6: a port of \"b\" has the GUID 0x77, as \"a\" has");
	refuse("Switch 1 \"a\" # \"a\" base port 0 lid 4\nSwitch 1 \"b\" # \"b\" base port 0 lid "
	       "4\n",
		"net:2: LID 4 of port 0 is another port's, too");
	refuse("Switch 1 \"a\" # \"a\" base port 0 lid 49152\n", "net:1: LID 49152 is above 49151");
	refuse("Switch 1 \"a\" # \"a\" enhanced port 0 lid 3 lmc 1\n",
		"net:1: LID 3 of port 0 is no multiple of its 2 LIDs");
	refuse("Switch 1 \"a\" # \"a\" enhanced port 0 lid 2 lmc 8\n", "net:1: LMC 8 is above 7");
}

static void too_many(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	for (int i = 0; i < 400; i++)
		fprintf(out, "Switch 1 \"s%d\" # \"s\" enhanced port 0 lid 0 lmc 7\n", i);
	fclose(out);
	refuse(text, "net:384: too many LIDs: a subnet has 49151");
	free(text);
	out = open_memstream(&text, &len);
	for (int i = 0; i < 49152; i++)
		fprintf(out, "Hca 1 \"a%d\"\n", i);
	fclose(out);
	refuse(text, "net:49152: too many nodes: a subnet has 49151 LIDs");
	free(text);
}

/* ---- files ---- */

static char dir[] = "/tmp/weft-netlist-XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static int load(struct netlist *n, const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return netlist_load(n, path, error);
}

static void refuse_file(const char *name, const char *fmt, ...)
{
	char want[TOPO_ERROR];
	struct netlist n;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want, sizeof want, fmt, ap);
	va_end(ap);
	assert_int_not_equal(load(&n, name), 0);
	assert_string_equal(error, want);
}

static void includes(void **state)
{
	struct netlist n;

	(void)state;
	write_file("top", "module=\"x\"\ninclude \"part\"\nmodule=\"y\"\ninclude \"part\"\n");
	write_file("part", "\xef\xbb\xbfSwitch 2 \"s\"\n[1] \"h\"\n\nHca 1 \"h\"\n[1] \"s\"\n");
	assert_int_equal(load(&n, "top"), 0);
	assert_int_equal(n.topo.n_nodes, 4);
	wired(&n, "y#s", 1, "y#h", 1);
	netlist_free(&n);

	write_file("bad", "\n\nSwitch 0 \"s\"\n");
	write_file("over", "include \"bad\"\n");
	refuse_file("over", "%s/bad:3: a node has 1 to 254 ports", dir);
	write_file("self", "\ninclude \"self2\"\n");
	write_file("self2", "include \"self\"\n");
	refuse_file("self", "%s/self2:1: cannot read '%s/self': it includes itself", dir, dir);
	write_file("odd", "include \"/dev/null\"\n");
	refuse_file("odd", "%s/odd:1: cannot read '/dev/null': Operation not supported", dir);
	write_file("twice", "include \"part\"\ninclude \"part\"\n");
	refuse_file(
		"twice", "%s/part:1: there is a node \"s\" already (line 1 of %s/part)", dir, dir);
}

static void deep(void **state)
{
	char name[16], text[64];
	struct netlist n;

	(void)state;
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof name, "d%d", i);
		snprintf(text, sizeof text, "Hca 1 \"h%d\"\ninclude \"d%d\"\n", i, i + 1);
		write_file(name, text);
	}
	write_file("d10", "");
	refuse_file("d0", "%s/d8:2: more than 9 files include each other", dir);
	write_file("d8", "Hca 1 \"h8\"\n");
	assert_int_equal(load(&n, "d0"), 0);
	assert_int_equal(n.topo.n_cas, 9);
	netlist_free(&n);
}

static void no_file(void **state)
{
	struct netlist n;

	(void)state;
	assert_int_equal(netlist_load(&n, "/nowhere", error), -ENOENT);
	assert_string_equal(error, "cannot open '/nowhere': No such file or directory");
	assert_int_equal(netlist_load(&n, "/", error), -EISDIR);
	assert_string_equal(error, "cannot read '/': Is a directory");
	assert_int_equal(netlist_parse(&n, "net", "a\0b", 3, error), -EINVAL);
	assert_string_equal(error, "net:1: a NUL byte: this is no netlist");
	assert_int_equal(netlist_parse(&n, "net", "", 0, error), -EINVAL);
	assert_string_equal(error, "net: no node in it; is it a netlist?");
	assert_int_equal(n.topo.n_nodes, 0);
	netlist_free(&n);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	static const char *const names[] = {"top", "part", "bad", "over", "self", "self2", "odd",
		"twice", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_guids),
		cmocka_unit_test(directives),
		cmocka_unit_test(options),
		cmocka_unit_test(rates),
		cmocka_unit_test(masks),
		cmocka_unit_test(foreign_text),
		cmocka_unit_test(discovered),
		cmocka_unit_test(descriptions),
		cmocka_unit_test(lmcs),
		cmocka_unit_test(modules),
		cmocka_unit_test(wrong_lines),
		cmocka_unit_test(wrong_wires),
		cmocka_unit_test(wrong_identities),
		cmocka_unit_test(too_many),
		cmocka_unit_test(includes),
		cmocka_unit_test(deep),
		cmocka_unit_test(no_file),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
