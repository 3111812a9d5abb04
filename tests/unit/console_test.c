// SPDX-License-Identifier: BSD-3-Clause
/* The console of a subnet: what lines do, what they print, and why they are refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "subnet/console.h"
#include "subnet_world.h"
#include "topo/netlist.h"
#include "wire/pma.h"

/* The nodes of subnet_world.h by their names. */
static const char names[] = "Hca 2 \"H0\" # \"host zero\"\n[1] \"S0\"[1]\n[2] \"S1\"[3]\n"
			    "@[2] \"gate\"\n\n"
			    "Hca 1 \"H1\"\n[1] \"S1\"[1]\n\n"
			    "Switch 4 \"S0\"\n[1] \"H0\"[1]\n[2] \"S1\"[2]\n\n"
			    "Switch 4 \"S1\"\n[1] \"H1\"[1]\n[2] \"S0\"[2]\n[3] \"H0\"[2]\n";

struct test {
	struct world w;
	struct netlist net;
	struct console c;
	char out[1 << 14];
	size_t len;
	uint64_t asked[CONSOLE_OWN];
};

static void print(void *arg, const char *text, size_t len)
{
	struct test *t = arg;

	assert_in_range(t->len + len, 1, sizeof t->out - 1);
	memcpy(t->out + t->len, text, len);
	t->len += len;
	t->out[t->len] = '\0';
}

static int set_up(void **state)
{
	static struct test t;
	char error[TOPO_ERROR];

	memset(&t, 0, sizeof t);
	world_begin(&t.w);
	world_up(&t.w);
	assert_int_equal(netlist_parse(&t.net, "net", names, sizeof names - 1, error), 0);
	t.c = (struct console){.subnet = t.w.s, .topo = &t.net.topo, .hooks = {print, {0}, &t}};
	*state = &t;
	return 0;
}

static int tear_down(void **state)
{
	struct test *t = *state;

	netlist_free(&t->net);
	world_end(&t->w);
	return 0;
}

/* Carries out a line; its output is in t->out. */
static int line(struct test *t, const char *text)
{
	t->len = 0;
	*t->out = *t->c.error = '\0';
	return console_line(&t->c, text, strlen(text));
}

static void good(struct test *t, const char *text)
{
	if (line(t, text))
		fail_msg("%s: %s", text, t->c.error);
}

static void bad(struct test *t, const char *text, int rc, const char *error)
{
	assert_int_equal(line(t, text), rc);
	assert_string_equal(t->c.error, error);
}

static void has(struct test *t, const char *part)
{
	if (!strstr(t->out, part))
		fail_msg("no '%s' in:\n%s", part, t->out);
}

static struct port_info port_info(struct test *t, uint32_t node, uint8_t port)
{
	struct port_info i;

	assert_int_equal(world_get_port(&t->w, node, port, &i), 0);
	return i;
}

static uint64_t counter(struct test *t, uint32_t node, uint8_t port, unsigned which)
{
	struct mad_hdr h = {.base_version = 1,
		.mgmt_class = MAD_CLASS_PERF,
		.class_version = 1,
		.method = MAD_GET,
		.attr = PMA_PORT_COUNTERS};
	struct pma_counters c = {.port = port};
	uint8_t mad[MAD_SIZE] = {0};

	wire_pack(&mad_hdr_format, &h, mad);
	wire_pack(&pma_counters_format, &c, mad + PMA_DATA);
	assert_int_equal(subnet_local_pma(t->w.s, node, port, mad), 0);
	wire_unpack(&pma_counters_format, mad + PMA_DATA, &c);
	return c.value[which];
}

/* Each in a subnet where nothing has happened; all leave it as it was. */
static const struct {
	const char *line;
	int err;
	const char *why;
} refused[] = {
	{"Nonsense \"H0\"", -EINVAL, "there is no command 'Nonsense'; Help lists them"},
	{"\"H0\"", -EINVAL, "there is no command '\"H0\"'; Help lists them"},
	{"\x1b[2J", -EINVAL, "there is no command '\\x1b[2J'; Help lists them"},
	{"Dumpling", -EINVAL, "there is no command 'Dumpling'; Help lists them"},
	{"Dump\nDump", -EINVAL, "a command is one line of text"},
	{"!script", -EOPNOTSUPP, "no file is read here: give its lines to weft topo --do -"},
	{"Unlink", -EINVAL, "it is: Unlink \"id\"[[port]]"},
	{"Unlink S0", -EINVAL, "it is: Unlink \"id\"[[port]]"},
	{"Unlink \"S0", -EINVAL, "it is: Unlink \"id\"[[port]]"},
	{"Unlink \"S0\"[1", -EINVAL, "a port is \"id\"[N]"},
	{"Unlink \"S0\"[]", -EINVAL, "a port is \"id\"[N]"},
	{"Unlink \"S0\"[-1]", -EINVAL, "a port is \"id\"[N]"},
	{"Unlink \"S0\"[1]x", -EINVAL, "it is: Unlink \"id\"[[port]]"},
	{"Unlink \"S0\"[1] \"S0\"[2]", -EINVAL, "it is: Unlink \"id\"[[port]]"},
	{"Unlink \"nobody\"[1]", -ENOENT, "there is no node \"nobody\""},
	{"Unlink \"@nobody\"", -ENOENT, "there is no alias \"@nobody\""},
	{"Unlink \"@gate\"[1]", -EINVAL, "it is: Unlink \"id\"[[port]]"},
	{"Unlink \"\"", -ENOENT, "there is no node \"\""},
	{"Unlink \"S0\"[0]", -ENOENT, "there is no port 0 at \"S0\": 1 to 4 are"},
	{"Unlink \"S0\"[5]", -ENOENT, "there is no port 5 at \"S0\": 1 to 4 are"},
	{"Unlink \"S0\"[4294967295]", -ENOENT, "there is no port 4294967295 at \"S0\": 1 to 4 are"},
	{"Unlink \"S0\"[4294967297]", -EINVAL, "a port is \"id\"[N]"},
	{"Unlink \"S0\"[3]", -ENOTCONN, "nothing is plugged in at \"S0\"[3]"},
	{"ReLink \"S0\"[3]", -ENOTCONN, "\"S0\"[3] has no cable that was pulled; Link wires it"},
	{"ReLink \"S0\"[1]", -EBUSY, "\"S0\"[1] is wired already, to \"H0\"[1]"},
	{"Link \"S0\"[3]", -EINVAL, "it is: Link \"id\"[port] \"id\"[port]"},
	{"Link \"S0\" \"S1\"", -EINVAL, "it is: Link \"id\"[port] \"id\"[port]"},
	{"Link \"S0\"[3] \"S1\"[1]", -EBUSY, "\"S1\"[1] is wired already, to \"H1\"[1]"},
	{"Link \"S0\"[2] \"S1\"[4]", -EBUSY, "\"S0\"[2] is wired already, to \"S1\"[2]"},
	{"Link \"S0\"[3] \"S0\"[3]", -EINVAL, "a port cannot be wired to itself"},
	{"Guid \"S0\" 0", -EINVAL, "guid is a number from 1 to 18446744073709551615"},
	{"Guid \"S0\" 0x10000000000000000", -EINVAL,
		"guid is a number from 1 to 18446744073709551615"},
	{"Guid \"S0\"", -EINVAL, "it is: Guid \"id\"[[port]] guid"},
	{"Guid \"S0\"[1] 7", -EINVAL, "all ports of a switch have its GUID: name no port"},
	{"Error \"S0\"[1] 101", -EINVAL, "rate is a number from 0 to 100"},
	{"Error \"S0\"[1] 5%", -EINVAL, "rate is a number from 0 to 100"},
	{"Error \"S0\"[1] 5 65536", -EINVAL, "attribute is a number from 0 to 65535"},
	{"Error \"S0\"[1] 5 6 7", -EINVAL, "it is: Error \"id\"[[port]] rate [attribute]"},
	{"Baselid \"H0\" 9", -EINVAL, "it is: Baselid \"id\"[port] lid [lmc]"},
	{"Baselid \"S0\"[1] 9", -EINVAL, "a switch has its LID at port 0: \"S0\"[0]"},
	{"Baselid \"H0\"[0] 9", -ENOENT, "there is no port 0 at \"H0\": 1 to 2 are"},
	{"Baselid \"H0\"[1] 0", -EINVAL, "lid is a number from 1 to 49151"},
	{"Baselid \"H0\"[1] 49152", -EINVAL, "lid is a number from 1 to 49151"},
	{"Baselid \"H0\"[1] 9 8", -EINVAL, "lmc is a number from 0 to 7"},
	{"Baselid \"H0\"[1] 9 1", -EINVAL,
		"LID 9 does not go with LMC 1: wants 2 LIDs, from a multiple of that"},
	{"PerformanceSet \"S0\" PortCounters.VL15Dropped=1", -EINVAL,
		"it is: PerformanceSet \"id\"[port] attribute.field=value"},
	{"PerformanceSet \"S0\"[1] PortCounters.VL15Dropped", -EINVAL,
		"it is: PerformanceSet \"id\"[port] attribute.field=value"},
	{"PerformanceSet \"S0\"[1] PortCountings.VL15Dropped=1", -ENOENT,
		"there is no attribute 'PortCountings' with counters"},
	{"PerformanceSet \"S0\"[1] PortCounters.VL16Dropped=1", -ENOENT,
		"PortCounters has no counter 'VL16Dropped'"},
	{"PerformanceSet \"S0\"[1] PortCounters.VL15Dropped=-1", -EINVAL,
		"a counter's value is a number of 64 bits"},
	{"PerformanceSet \"S0\"[1] PortCounters.VL15Dropped=1 2", -EINVAL,
		"a counter's value is a number of 64 bits"},
	{"Dump \"nobody\"", -ENOENT, "there is no node \"nobody\""},
	{"Dump \"S0\"[1]", -EINVAL, "it is: Dump [\"id\"]"},
	{"Route 1", -EINVAL, "it is: Route from-LID to-LID [sl [P_Key]]"},
	{"Route 1 77", -ENOENT, "no port has LID 77"},
	{"Route 77 1", -ENOENT, "no port has LID 77"},
	{"Start now", -EINVAL, "it is: Start"},
	{"Wait 0", -EINVAL, "seconds is a number from 1 to 86400"},
	{"Wait 1", -EOPNOTSUPP, "there is no such command here"},
	{"Quit", -EOPNOTSUPP, "there is no such command here"},
};

static void refusals(void **state)
{
	struct test *t = *state;
	char before[sizeof t->out];

	good(t, "Dump");
	memcpy(before, t->out, sizeof before);
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		assert_int_equal(line(t, refused[i].line), refused[i].err);
		assert_string_equal(t->c.error, refused[i].why);
		assert_int_equal(t->len, 0);
		good(t, "Dump");
		assert_string_equal(t->out, before);
	}
	assert_int_equal(console_line(&t->c, "Du\0mp", 5), -EINVAL);
}

/* Upper or lower case, whole or cut short. */
static void words(void **state)
{
	static const struct {
		const char *line;
		uint16_t state; /* of S0's port 2 */
	} cases[] = {
		{"unlink \"S0\"[2]", PORT_DOWN},
		{"re \"S0\"[2]", PORT_INIT},
		{"U \"S0\"[2]\r\n", PORT_DOWN},
		{"  RELINK\t\"S0\"[2]  ", PORT_INIT},
		{"UNL \"S0\"[0x2]", PORT_DOWN},
		{"L \"S0\"[2]\"S1\"[2]", PORT_INIT},
		{"c \"S0\"[2]", PORT_DOWN},
		{"Link \"S0\"[2] \"S1\"[2]", PORT_INIT},
		{"# Unlink \"S0\"[2]", PORT_INIT},
		{"", PORT_INIT},
		{" \n", PORT_INIT},
		{"start", PORT_INIT},
	};
	struct test *t = *state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		good(t, cases[i].line);
		assert_int_equal(t->len, 0);
		assert_int_equal(port_info(t, S0, 2).state, cases[i].state);
	}
}

/* By id, description, GUID and number. */
static void names_of_nodes(void **state)
{
	static const char *const lines[] = {"Unlink \"H0\"[1]", "Unlink \"host zero\"[1]",
		"Unlink \"0x100000\"[1]", "Unlink \"0\"[1]"};
	char out[CONSOLE_LINE];
	struct test *t = *state;

	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		good(t, lines[i]);
		assert_int_equal(port_info(t, H0, 1).state, PORT_DOWN);
		good(t, "ReLink \"H0\"[1]");
		assert_int_equal(console_normalise(&t->c, lines[i], strlen(lines[i]), out), 14);
		assert_string_equal(out, "Unlink \"H0\"[1]");
	}
}

static void cables(void **state)
{
	struct test *t = *state;
	uint8_t peer_port;
	uint32_t peer;

	good(t, "Unlink \"S1\"");
	for (uint8_t p = 1; p <= 4; p++)
		assert_int_equal(port_info(t, S1, p).state, PORT_DOWN);
	assert_int_equal(port_info(t, H0, 2).state, PORT_DOWN);
	assert_int_equal(port_info(t, H0, 1).state, PORT_ACTIVE);
	good(t, "Unlink \"S1\""); /* nothing is left to pull */
	good(t, "ReLink \"@gate\"");
	assert_int_equal(subnet_cable(t->w.s, H0, 2, &peer, &peer_port), 0);
	good(t, "Unlink \"@gate\"");
	assert_int_equal(subnet_cable(t->w.s, H0, 2, &peer, &peer_port), -ENOTCONN);
	good(t, "Link \"S1\"[2] \"S1\"[4]");
	good(t, "ReLink \"S1\"");
	assert_int_equal(subnet_cable(t->w.s, S1, 1, &peer, &peer_port), 0);
	assert_int_equal(peer, H1);
	assert_int_equal(subnet_cable(t->w.s, S1, 2, &peer, &peer_port), 0);
	assert_int_equal(peer, S1);
	assert_int_equal(peer_port, 4);
	assert_int_equal(line(t, "ReLink \"S0\"[2]"), -EBUSY);
	assert_string_equal(
		t->c.error, "the other end of the cable of \"S0\"[2] is wired to something else");
}

static void cleared(void **state)
{
	struct test *t = *state;
	struct port_info i = port_info(t, H0, 1);

	i.mkey = 7;
	i.mkey_protect = 1;
	i.vl_high_limit = 9;
	i.state = i.phys_state = 0;
	assert_int_equal(world_set_port(&t->w, H0, 1, &i), 0);
	t->w.events[H0][1] = 0;
	good(t, "Clear \"H0\"[1]");
	i = port_info(t, H0, 1);
	assert_int_equal(i.lid, 0);
	assert_int_equal(i.sm_lid, 0);
	assert_int_equal(i.mkey, 0);
	assert_int_equal(i.mkey_protect, 0);
	assert_int_equal(i.vl_high_limit, 0);
	assert_int_equal(i.state, PORT_DOWN);
	assert_int_equal(i.phys_state, PHYS_POLLING);
	assert_int_equal(i.gid_prefix, 0xfe80000000000000ull);
	assert_int_equal(t->w.events[H0][1], SUBNET_PORT_ERR | SUBNET_LID_CHANGE |
						     SUBNET_SM_CHANGE | SUBNET_PKEY_CHANGE |
						     SUBNET_GID_CHANGE);
	good(t, "Clear \"H0\"[1]"); /* without a cable, too */
	good(t, "Clear \"S1\"");
	assert_int_equal(port_info(t, S1, 0).lid, 0);
	assert_int_equal(port_info(t, S1, 0).state, PORT_INIT); /* enhanced */
	assert_int_equal(port_info(t, S1, 0).phys_state, PHYS_LINK_UP);
	assert_int_equal(port_info(t, S1, 3).state, PORT_DOWN);
	good(t, "ReLink \"H0\"");
	assert_int_equal(port_info(t, H0, 1).state, PORT_INIT);
	assert_int_equal(port_info(t, H0, 2).state, PORT_INIT);
}

/* P_Keys that a port had do not come back with the next one. */
static void cleared_pkeys(void **state)
{
	struct test *t = *state;
	uint8_t block[SMP_DATA_SIZE] = {0xff, 0xff, 0x80, 1};

	assert_int_equal(world_local(&t->w, H0, 1, MAD_SET, SMP_PKEY_TABLE, 0, block), 0);
	good(t, "Clear \"H0\"");
	assert_int_equal(world_local(&t->w, H0, 1, MAD_GET, SMP_PKEY_TABLE, 0, block), 0);
	assert_memory_equal(block, ((uint8_t[]){0xff, 0xff, 0, 0}), 4);
}

static uint64_t guid_of(struct test *t, uint32_t node, uint8_t port, bool of_port)
{
	uint8_t data[SMP_DATA_SIZE] = {0};
	struct node_info i;

	assert_int_equal(world_local(&t->w, node, port, MAD_GET, SMP_NODE_INFO, 0, data), 0);
	wire_unpack(&node_info_format, data, &i);
	return of_port ? i.port_guid : i.node_guid;
}

static void guids(void **state)
{
	struct test *t = *state;

	good(t, "Guid \"S0\" 0x1234");
	good(t, "Guid \"H0\"[2] 77");
	good(t, "Guid \"H0\" 0xffffffffffffffff");
	assert_int_equal(guid_of(t, S0, 0, false), 0x1234);
	assert_int_equal(guid_of(t, S0, 0, true), 0x1234);
	assert_int_equal(guid_of(t, H0, 2, true), 77);
	assert_int_equal(guid_of(t, H0, 2, false), UINT64_MAX);
	good(t, "Guid \"S1\"[0] 5");
	assert_int_equal(guid_of(t, S1, 0, false), 5);
	good(t, "Guid \"S1\" 5"); /* its own */
	good(t, "Guid \"H0\"[2] 77");
	bad(t, "Guid \"H0\" 5", -EEXIST, "the node of \"S1\" has the GUID 0x5");
	bad(t, "Guid \"H0\"[1] 77", -EEXIST, "a port of \"H0\" has the GUID 0x4d");
	assert_int_equal(guid_of(t, H0, 1, false), UINT64_MAX);
}

static void lids(void **state)
{
	struct test *t = *state;

	t->w.events[H0][2] = 0;
	good(t, "Baselid \"H0\"[2] 8 3");
	assert_int_equal(port_info(t, H0, 2).lid, 8);
	assert_int_equal(port_info(t, H0, 2).lmc, 3);
	assert_int_equal(port_info(t, H0, 2).state, PORT_ACTIVE);
	assert_int_equal(port_info(t, H0, 2).sm_lid, LID_H0);
	assert_int_equal(t->w.events[H0][2], SUBNET_LID_CHANGE);
	good(t, "Baselid \"H0\"[2] 16"); /* the LMC stays */
	assert_int_equal(port_info(t, H0, 2).lmc, 3);
	good(t, "Baselid \"S0\"[0] 77");
	assert_int_equal(port_info(t, S0, 0).lid, 77);
}

static void errors(void **state)
{
	const struct mad_addr to = {.lid = LID_H1, .qpn = 1};
	uint8_t mad[MAD_SIZE] = {1, 0x32, 1, MAD_SEND};
	struct test *t = *state;

	good(t, "Error \"S0\"[1] 100");
	t->w.n_got = 0;
	assert_int_equal(subnet_send(t->w.s, H0, 1, 1, &to, mad), 0);
	assert_int_equal(t->w.n_got, 0);
	assert_int_equal(subnet_drops(t->w.s, SUBNET_DROP_INJECTED), 1);
	good(t, "Dump \"S0\"");
	has(t, "Active/LinkUp\t# err_rate 100\n");
	good(t, "Error \"S0\" 0");
	assert_int_equal(subnet_send(t->w.s, H0, 1, 1, &to, mad), 0);
	assert_int_equal(t->w.n_got, 1);
	good(t, "Error \"S0\" 50 17");
	good(t, "Dump");
	has(t, "Active/LinkUp\t# err_rate 50\t# err_attr 17\n");
	has(t, "Down/Polling\t# err_rate 50\t# err_attr 17\n");
}

static void counters(void **state)
{
	static const struct {
		const char *line, *said;
	} cases[] = {
		{"PerformanceSet \"S0\"[3] PortCounters.SymbolErrorCounter=5",
			"S0[3] PortCounters.SymbolErrorCounter=5\n"},
		{"p \"S0\"[3] portcounters.symbolERRORcounter = 0x70000",
			"S0[3] PortCounters.SymbolErrorCounter=65535\n"},
		{"PerformanceSet \"S0\"[3] PortCounters.PortXmitWait=9",
			"S0[3] PortCounters.PortXmitWait=9\n"},
		{"PerformanceSet \"S0\"[3] PortCountersExtended.PortMulticastRcvPkts="
		 "18446744073709551615",
			"S0[3] PortCountersExtended.PortMultiCastRcvPkts="
			"18446744073709551615\n"},
		{"PerformanceSet \"S0\"[3] PortCountersExtended.QP1Dropped=3",
			"S0[3] PortCountersExtended.QP1Dropped=3\n"},
		{"PerformanceSet \"S0\"[3] PortRcvErrorDetails.PortLoopingErrors=2",
			"S0[3] PortRcvErrorDetails.PortLoopingErrors=2\n"},
		{"PerformanceSet \"S0\"[0] PortXmitDiscardDetails.PortInactiveDiscards=1",
			"S0[0] PortXmitDiscardDetails.PortInactiveDiscards=1\n"},
	};
	struct test *t = *state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		good(t, cases[i].line);
		assert_string_equal(t->out, cases[i].said);
	}
	assert_int_equal(counter(t, S0, 3, 0), 65535);
	assert_int_equal(counter(t, S0, 3, 16), 9);
	good(t, "Dump \"S0\"");
	has(t, "\n#\t[3] PortCounters SymbolErrorCounter 65535 PortXmitWait 9\n");
	has(t, "\n#\t[3] PortCountersExtended PortMultiCastRcvPkts 18446744073709551615 "
	       "SymbolErrorCounter 65535 PortXmitWait 9 QP1Dropped 3\n");
}

static void dump(void **state)
{
	struct test *t = *state;

	good(t, "Unlink \"H0\"[2]");
	good(t, "Dump");
	assert_string_equal(t->out,
		"# Net status\n"
		"\nCa 2 \"H0\"\tnodeguid 100000\tsysimgguid 100000\n"
		"100001\t[1]\t\"S0\"[1]\t lid 1 lmc 0 smlid 1  4x  25G Active/LinkUp\n"
		"100002\t[2]\t\t\t lid 5 lmc 0 smlid 1  4x 10.0G Down/Polling\n"
		"\nCa 1 \"H1\"\tnodeguid 100010\tsysimgguid 100010\n"
		"100011\t[1]\t\"S1\"[1]\t lid 2 lmc 0 smlid 1  4x FDR10 Active/LinkUp\n"
		"\nSwitch 4 \"S0\"\tnodeguid 200000\tsysimgguid 200000\n"
		"#\tlinearcap 49152 FDBtop 7 portchange 0\n"
		"200000\t[0]\t\"Sma Port\"[0]\t lid 3 lmc 0 smlid 1  4x  2.5G Active/LinkUp\n"
		"200000\t[1]\t\"H0\"[1]\t  4x  25G Active/LinkUp\n"
		"200000\t[2]\t\"S1\"[2]\t  4x 200G Active/LinkUp\n"
		"200000\t[3]\t\t\t   -     - Down/Polling\n"
		"200000\t[4]\t\t\t   -     - Down/Polling\n"
		"\nSwitch 4 \"S1\"\tnodeguid 200001\tsysimgguid 200001\n"
		"#\tlinearcap 49152 FDBtop 7 portchange 1\n"
		"200001\t[0]\t\"Sma Port\"[0]\t lid 4 lmc 0 smlid 1  4x  2.5G Active/LinkUp\n"
		"200001\t[1]\t\"H1\"[1]\t  4x FDR10 Active/LinkUp\n"
		"200001\t[2]\t\"S0\"[2]\t  4x 200G Active/LinkUp\n"
		"200001\t[3]\t\t\t  4x 10.0G Down/Polling\n"
		"200001\t[4]\t\t\t   -     - Down/Polling\n"
		"#  dumped 4 nodes\n");
	good(t, "Dump \"S1\"");
	has(t, "\n#\tForwarding table 0-7: [0]FF [1]2 [2]1 [3]2 [4]0 [5]3 [6]2 [7]FF\n");
	has(t, "\n#\t[3] PortCounters LinkDownedCounter 1");
	has(t, "\n#  dumped 1 nodes\n");
}

static void routes(void **state)
{
	struct test *t = *state;

	good(t, "Route 1 2");
	assert_string_equal(t->out, "From node \"H0\" port 1 lid 1\n"
				    "[1] -> \"S0\"[1]\n"
				    "[2] -> \"S1\"[2]\n"
				    "[1] -> \"H1\"[1]\n"
				    "To node \"H1\" port 1 lid 2\n");
	good(t, "Route 3 4");
	assert_string_equal(t->out, "From node \"S0\" port 0 lid 3\n"
				    "[2] -> \"S1\"[2]\n"
				    "To node \"S1\" port 2 lid 4\n");
	good(t, "Route 3 3");
	assert_string_equal(t->out, "From node \"S0\" port 0 lid 3\n"
				    "To node \"S0\" port 0 lid 3\n");
}

static void no_routes(void **state)
{
	static const struct {
		const char *before, *line, *why;
	} cases[] = {
		{"Baselid \"H0\"[2] 6", "Route 2 6",
			"\"S0\" sends LID 6 back by port 2, by which it came"},
		{"Baselid \"H0\"[2] 100", "Route 1 100", "\"S0\" has no way to LID 100"},
		{"Baselid \"H0\"[2] 2", "Route 5 2", "no port has LID 5"},
		{"Baselid \"H1\"[1] 5", "Route 1 5", "\"H0\"[2] has not LID 5"},
		{"Unlink \"S0\"[2]", "Route 1 4", "port 2 of \"S0\" is Down, not Active"},
		{"ReLink \"S0\"[2]", "Route 1 4", "port 2 of \"S0\" is Init, not Active"},
		{"Unlink \"H0\"[1]", "Route 1 4", "port 1 of \"H0\" is Down, not Active"},
	};
	struct test *t = *state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		good(t, cases[i].before);
		assert_true(line(t, cases[i].line) < 0);
		assert_string_equal(t->c.error, cases[i].why);
	}
}

static void normalised(void **state)
{
	static const struct {
		const char *line, *kept;
	} cases[] = {
		{"l \"0\"[1] \"0x200001\"[4]", "Link \"H0\"[1] \"S1\"[4]"},
		{"RELINK \"host zero\"", "ReLink \"H0\""},
		{"clear \"S1\"[0x3]", "Clear \"S1\"[3]"},
		{"unlink \"@gate\"", "Unlink \"H0\"[2]"},
		{"link \"@gate\" \"S0\"[4]", "Link \"H0\"[2] \"S0\"[4]"},
		{"guid \"S1\"[0] 255", "Guid \"S1\"[0] 0xff"},
		{"error \"S1\" 5", "Error \"S1\" 5"},
		{"e \"S1\"[1] 0x10 21\n", "Error \"S1\"[1] 16 21"},
		{"baselid \"H0\"[2] 0x10 2", "Baselid \"H0\"[2] 16 2"},
		{"Dump", ""},
		{"Route 1 2", ""},
		{"PerformanceSet \"S0\"[1] PortCounters.VL15Dropped=1", ""},
		{"Quit", ""},
		{"# text", ""},
		{"", ""},
	};
	struct test *t = *state;
	char out[CONSOLE_LINE], again[CONSOLE_LINE];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int len = strlen(cases[i].kept);

		assert_int_equal(
			console_normalise(&t->c, cases[i].line, strlen(cases[i].line), out), len);
		assert_string_equal(out, cases[i].kept);
		assert_int_equal(console_normalise(&t->c, out, len, again), len);
		assert_string_equal(again, out);
	}
	assert_int_equal(console_normalise(&t->c, "Unlink \"x\"", 10, out), -ENOENT);
	assert_string_equal(t->c.error, "there is no node \"x\"");
}

static int asked_verbose(void *arg, uint64_t n)
{
	((struct test *)arg)->asked[CONSOLE_VERBOSE] = n;
	return 0;
}

static int asked_wait(void *arg, uint64_t n)
{
	((struct test *)arg)->asked[CONSOLE_WAIT] = n;
	return 0;
}

static int asked_attached(void *arg, uint64_t n)
{
	(void)n;
	print(arg, "nobody\n", 7);
	return 0;
}

static int asked_x(void *arg, uint64_t n)
{
	((struct test *)arg)->asked[CONSOLE_X] = n;
	return -ESRCH;
}

static int asked_quit(void *arg, uint64_t n)
{
	((struct test *)arg)->asked[CONSOLE_QUIT] = n;
	return 0;
}

static void owner(void **state)
{
	struct test *t = *state;

	t->c.hooks.own[CONSOLE_VERBOSE] = asked_verbose;
	t->c.hooks.own[CONSOLE_WAIT] = asked_wait;
	t->c.hooks.own[CONSOLE_ATTACHED] = asked_attached;
	t->c.hooks.own[CONSOLE_X] = asked_x;
	t->c.hooks.own[CONSOLE_QUIT] = asked_quit;
	good(t, "Verbose");
	assert_int_equal(t->asked[CONSOLE_VERBOSE], UINT64_MAX);
	good(t, "v 2");
	assert_int_equal(t->asked[CONSOLE_VERBOSE], 2);
	good(t, "Wait 3");
	assert_int_equal(t->asked[CONSOLE_WAIT], 3);
	good(t, "Attached");
	assert_string_equal(t->out, "nobody\n");
	assert_int_equal(line(t, "X 4"), -ESRCH);
	assert_string_equal(t->c.error, "No such process");
	assert_int_equal(t->asked[CONSOLE_X], 4);
	good(t, "quit");
	assert_int_equal(t->asked[CONSOLE_QUIT], UINT64_MAX);
}

static void help(void **state)
{
	static const char *const words[] = {"Dump", "Route", "Link", "Unlink", "ReLink", "Clear",
		"Guid", "Error", "PerformanceSet", "Baselid", "Verbose", "Wait", "Attached", "X",
		"Start", "Help", "Quit"};
	struct test *t = *state;
	char text[64];

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		good(t, i & 1 ? "?" : "Help");
		snprintf(text, sizeof text, "  %s ", words[i]);
		has(t, text);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(refusals),
		T(words),
		T(names_of_nodes),
		T(cables),
		T(cleared),
		T(cleared_pkeys),
		T(guids),
		T(lids),
		T(errors),
		T(counters),
		T(dump),
		T(routes),
		T(no_routes),
		T(normalised),
		T(owner),
		T(help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
