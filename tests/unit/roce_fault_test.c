// SPDX-License-Identifier: BSD-3-Clause
/* Rules of faults: what they mean, what is wrong with others, what they do to packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "roce/fault/fault.h"
#include "roce/fault/held.h"
#include "wire/roce.h"

enum { SEND_ONLY = 0x04, SEND_LAST = 0x02, READ_REQUEST = 0x0c, ACK = 0x11, UD_SEND = 0x64 };

static struct fault_rules parsed(const char *text)
{
	struct fault_rules rules;
	struct fault_error why;

	if (fault_parse(text, strlen(text), &rules, &why))
		fail_msg("'%s': column %zu, '%s': %s", text, why.column, why.word, why.why);
	return rules;
}

static struct fault_set started(const char *text)
{
	struct fault_rules rules = parsed(text);
	struct fault_set set;

	fault_start(&set, &rules);
	return set;
}

/* A packet of that opcode to that queue pair. */
static enum fault_act on(struct fault_set *set, enum fault_way way, uint8_t opcode, uint32_t qpn)
{
	uint8_t packet[32] = {opcode, [5] = qpn >> 16, [6] = qpn >> 8, [7] = qpn};
	struct fault_how how;

	return fault_on(set, way, packet, sizeof packet, &how);
}

static void printed_as_read(void **state)
{
	static const struct {
		const char *text, *printed;
	} rows[] = {
		{"drop", "drop"},
		{" DROP\t in ,out", "drop"},
		{"drop in", "drop in"},
		{"drop out 1%", "drop out 1%"},
		{"drop 0.05%", "drop 0.05%"},
		{"drop 99.9999%", "drop 99.9999%"},
		{"drop 100%", "drop"},
		{"drop 0%", "drop 0%"},
		{"duplicate opcode=RC_Send_Only", "duplicate opcode=rc_send_only"},
		{"duplicate opcode=0x11 qpn=17", "duplicate opcode=0x11 qpn=0x11"},
		{"corrupt nth=3 every=4 count=5", "corrupt nth=3 every=4 count=5"},
		{"reorder behind=1", "reorder"},
		{"reorder behind=64", "reorder behind=64"},
		{"delay 5ms", "delay 5ms"},
		{"delay 0.5ms", "delay 500us"},
		{"delay 1000ms", "delay 1s"},
		{"delay 60s in", "delay 60s in"},
	};
	char text[FAULT_RULE_TEXT];

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fault_rules rules = parsed(rows[i].text);

		assert_int_equal(rules.n, 1);
		assert_int_equal(fault_print(&rules.rule[0], text), strlen(rows[i].printed));
		assert_string_equal(text, rows[i].printed);
	}
}

static void several_rules(void **state)
{
	struct fault_rules rules = parsed("seed=9;drop;\n;delay 1s\nreorder;");

	(void)state;
	assert_int_equal(rules.n, 3);
	assert_int_equal(rules.seed, 9);
	assert_int_equal(rules.rule[1].deed, FAULT_DELAY);
	assert_int_equal(parsed("").n, 0);
	assert_int_equal(parsed(" ;; ").n, 0);
}

static void errors_name_column_and_word(void **state)
{
	static const struct {
		const char *text, *begins;
	} rows[] = {
		{"drop=1", "column 1, 'drop=1': a rule begins with drop"},
		{"drop; lose 1%", "column 7, 'lose': a rule begins with drop"},
		{"drop often", "column 6, 'often': no such word"},
		{"drop often\x1b[2J", "column 6, 'often\\x1b[2J': no such word"},
		{"drop 101%", "column 6, '101%': per cent are"},
		{"drop 0.00001%", "column 6, '0.00001%': per cent are"},
		{"drop 1.%%", "column 6, '1.%%': per cent are"},
		{"drop 5ms", "column 6, '5ms': only 'delay' has a time"},
		{"delay", "column 1, 'delay': it needs a time"},
		{"delay 0ms", "column 7, '0ms': no such word, or time"},
		{"delay 61s", "column 7, '61s': no such word, or time"},
		{"delay 5", "column 7, '5': no such word, or time"},
		{"drop opcode=rc_sen", "column 6, 'opcode=rc_sen': no opcode begins so"},
		{"drop opcode=", "column 6, 'opcode=': no opcode begins so"},
		{"drop opcode=256", "column 6, 'opcode=256': no opcode begins so"},
		{"drop qpn=0x1000000", "column 6, 'qpn=0x1000000': a queue pair number"},
		{"drop nth=0", "column 6, 'nth=0': a number from 1"},
		{"drop nth=-1", "column 6, 'nth=-1': a number from 1"},
		{"drop behind=2", "column 6, 'behind=2': only 'reorder' has it"},
		{"reorder behind=65", "column 9, 'behind=65': a number from 1 to 64"},
		{"seed=x", "column 1, 'seed=x': a seed is a number"},
		{"seed=1 drop", "column 8, 'drop': nothing follows a seed"},
	};
	struct fault_rules rules;
	struct fault_error why;
	char text[256];

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!fault_parse(rows[i].text, strlen(rows[i].text), &rules, &why))
			fail_msg("'%s' was taken", rows[i].text);
		assert_int_equal(rules.n, 0);
		fault_error_text(&why, text, sizeof text);
		if (strncmp(text, rows[i].begins, strlen(rows[i].begins)))
			fail_msg("%s, not %s", text, rows[i].begins);
	}
	assert_int_not_equal(fault_parse("drop\0in", 7, &rules, &why), 0);
}

static void too_much(void **state)
{
	char text[FAULT_TEXT + 1];
	struct fault_rules rules;
	struct fault_error why;

	(void)state;
	*text = '\0';
	for (int i = 0; i < FAULT_RULES; i++)
		strcat(text, "drop;");
	assert_int_equal(parsed(text).n, FAULT_RULES);
	strcat(text, "drop");
	assert_int_not_equal(fault_parse(text, strlen(text), &rules, &why), 0);
	assert_int_equal(why.column, 5 * FAULT_RULES + 1);
	memset(text, ' ', FAULT_TEXT);
	assert_int_equal(fault_parse(text, FAULT_TEXT - 1, &rules, &why), 0);
	assert_int_not_equal(fault_parse(text, FAULT_TEXT, &rules, &why), 0);
}

static void for_which_packets(void **state)
{
	struct fault_set set = started("drop in opcode=rc_send; duplicate out qpn=0x12345");

	(void)state;
	assert_int_equal(on(&set, FAULT_IN, SEND_ONLY, 1), FAULT_LOSE);
	assert_int_equal(on(&set, FAULT_IN, SEND_LAST, 1), FAULT_LOSE);
	assert_int_equal(on(&set, FAULT_OUT, SEND_ONLY, 1), FAULT_PASS);
	assert_int_equal(on(&set, FAULT_IN, READ_REQUEST, 1), FAULT_PASS);
	assert_int_equal(on(&set, FAULT_IN, UD_SEND, 1), FAULT_PASS);
	assert_int_equal(on(&set, FAULT_OUT, ACK, 0x12345), FAULT_TWICE);
	assert_int_equal(on(&set, FAULT_OUT, ACK, 0x12346), FAULT_PASS);
	assert_int_equal(set.state[0].seen, 2);
	assert_int_equal(set.state[0].done, 2);
	assert_int_equal(set.state[1].done, 1);
}

/* What is shorter than a BTH has no queue pair, and what has no byte is nothing. */
static void short_packets(void **state)
{
	struct fault_set set = started("drop qpn=0; corrupt");
	uint8_t packet[12] = {SEND_ONLY};
	struct fault_how how;

	(void)state;
	assert_int_equal(fault_on(&set, FAULT_IN, packet, 0, &how), FAULT_PASS);
	assert_int_equal(fault_on(&set, FAULT_IN, packet, 11, &how), FAULT_FLIP);
	assert_true(how.bit < 11 * 8);
	assert_int_equal(fault_on(&set, FAULT_IN, packet, 12, &how), FAULT_LOSE);
}

static unsigned lost_of(struct fault_set *set, unsigned n, uint64_t *which)
{
	unsigned lost = 0;

	for (unsigned i = 0; i < n; i++)
		if (on(set, FAULT_IN, SEND_ONLY, 1) == FAULT_LOSE) {
			lost++;
			if (i < 64)
				*which |= 1ull << i;
		}
	return lost;
}

static void counted(void **state)
{
	struct fault_set nth = started("drop nth=3"), every = started("drop every=4 count=2");
	uint64_t which = 0;

	(void)state;
	assert_int_equal(lost_of(&nth, 20, &which), 1);
	assert_int_equal(which, 1 << 2);
	which = 0;
	assert_int_equal(lost_of(&every, 20, &which), 2);
	assert_int_equal(which, 1 << 3 | 1 << 7);
}

static void per_cent_by_seed(void **state)
{
	struct fault_set a = started("seed=5; drop 10%"), b = started("seed=5; drop 10%"),
			 c = started("seed=6; drop 10%"), none = started("drop 0%");
	uint64_t of_a = 0, of_b = 0, of_c = 0;
	unsigned lost = lost_of(&a, 10000, &of_a);

	(void)state;
	assert_in_range(lost, 800, 1200);
	assert_int_equal(lost_of(&b, 10000, &of_b), lost);
	assert_true(of_a == of_b);
	lost_of(&c, 10000, &of_c);
	assert_true(of_a != of_c);
	assert_int_equal(lost_of(&none, 100, &of_a), 0);
}

static void how_it_is_done(void **state)
{
	struct fault_set set = started("delay 5ms nth=1; reorder behind=3 nth=1; corrupt");
	uint8_t packet[24] = {SEND_ONLY};
	struct fault_how how;

	(void)state;
	assert_int_equal(fault_on(&set, FAULT_OUT, packet, sizeof packet, &how), FAULT_HOLD);
	assert_int_equal(how.hold_ns, 5000000);
	assert_int_equal(how.behind, 0);
	assert_int_equal(fault_on(&set, FAULT_OUT, packet, sizeof packet, &how), FAULT_HOLD);
	assert_int_equal(how.behind, 3);
	assert_int_equal(how.rule, 1);
	assert_int_equal(fault_on(&set, FAULT_OUT, packet, sizeof packet, &how), FAULT_FLIP);
	assert_true(how.bit < 8 * sizeof packet);
}

/* ---- packets held back ---- */

static int taken(struct fault_line *l, uint64_t now)
{
	struct fault_held *h = fault_line_take(l, now);
	size_t len;
	int first = -1;

	if (h) {
		first = *(const char *)fault_held_packet(h, &len);
		assert_int_equal(len, 3);
		assert_memory_equal(fault_held_tag(h), "tag", 4);
		fault_held_free(h);
	}
	return first;
}

static void held_until_due(void **state)
{
	struct fault_line l = {0};

	(void)state;
	assert_true(fault_line_due(&l) == UINT64_MAX);
	assert_int_equal(fault_line_hold(&l, "1 a", 3, "tag", 4, 30, 0), 0);
	assert_int_equal(fault_line_hold(&l, "2 b", 3, "tag", 4, 20, 0), 0);
	assert_int_equal(fault_line_due(&l), 20);
	assert_int_equal(taken(&l, 19), -1);
	assert_int_equal(taken(&l, 30), '1');
	assert_int_equal(taken(&l, 30), '2');
	assert_int_equal(taken(&l, 30), -1);
}

static void held_until_overtaken(void **state)
{
	struct fault_line l = {0};

	(void)state;
	assert_int_equal(fault_line_hold(&l, "1 a", 3, "tag", 4, 1000, 2), 0);
	assert_int_equal(fault_line_hold(&l, "2 b", 3, "tag", 4, 1000, 0), 0);
	fault_line_passed(&l);
	assert_int_equal(taken(&l, 10), -1);
	fault_line_passed(&l);
	assert_int_equal(taken(&l, 10), '1');
	fault_line_passed(&l);
	assert_int_equal(taken(&l, 10), -1);
	fault_line_clear(&l);
	assert_int_equal(l.n, 0);
}

static void held_no_more_than(void **state)
{
	struct fault_line l = {0};

	(void)state;
	for (int i = 0; i < FAULT_HELD_MAX; i++)
		assert_int_equal(fault_line_hold(&l, "x", 1, "", 0, 1, 0), 0);
	assert_int_not_equal(fault_line_hold(&l, "x", 1, "", 0, 1, 0), 0);
	fault_line_clear(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printed_as_read),
		cmocka_unit_test(several_rules),
		cmocka_unit_test(errors_name_column_and_word),
		cmocka_unit_test(too_much),
		cmocka_unit_test(for_which_packets),
		cmocka_unit_test(short_packets),
		cmocka_unit_test(counted),
		cmocka_unit_test(per_cent_by_seed),
		cmocka_unit_test(how_it_is_done),
		cmocka_unit_test(held_until_due),
		cmocka_unit_test(held_until_overtaken),
		cmocka_unit_test(held_no_more_than),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
