// SPDX-License-Identifier: BSD-3-Clause
/* Speeds of links: PortInfo's extended ones of both kinds, and Mellanox's ExtendedPortInfo. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "subnet/state.h"
#include "subnet_world.h"

/* What a Set of PortInfo may ask for. */
enum { AS_IT_IS = 0, FIRST_OFF = 30, FIRST_ALL = 31, SECOND_OFF = 6, SECOND_ALL = 7 };

/* New speeds count from the next training on. */
static void train(struct world *w, uint32_t node, uint8_t port)
{
	struct port_info i;

	assert_int_equal(world_get_port(w, node, port, &i), 0);
	i.state = 0;
	i.phys_state = PHYS_POLLING;
	assert_int_equal(world_set_port(w, node, port, &i), 0);
}

/* Mellanox's attribute of a switch's port; the status. */
static int ext_port_info(
	struct world *w, uint32_t node, uint8_t port, uint8_t method, struct ext_port_info *i)
{
	uint8_t data[SMP_DATA_SIZE] = {0};
	int status;

	wire_pack(&ext_port_info_format, i, data);
	status = world_local(w, node, node >= S0 ? 0 : port, method, SMP_EXT_PORT_INFO, port, data);
	wire_unpack(&ext_port_info_format, data, i);
	return status;
}

/* What is enabled at one end of the link between the switches, and what it then runs at. */
static void speeds(void **state)
{
	static const struct {
		uint8_t ext, ext2, fdr10; /* asked for; 2: not asked */
		int status;
		uint8_t ext_after, ext2_after;
		uint8_t ext_active, ext2_active, fdr10_active;
	} cases[] = {
		{AS_IT_IS, AS_IT_IS, 2, 0, 1, 1, 0, 1, 0},
		{FIRST_OFF, AS_IT_IS, 2, 0, 0, 1, 0, 1, 0},
		{FIRST_ALL, SECOND_OFF, 2, 0, 1, 0, 1, 0, 0},
		{AS_IT_IS, SECOND_ALL, 2, 0, 1, 1, 0, 1, 0},
		{AS_IT_IS, 2, 2, SMP_INVALID, 1, 1, 0, 1, 0},
		{2, AS_IT_IS, 2, SMP_INVALID, 1, 1, 0, 1, 0},
		{FIRST_OFF, SECOND_OFF, 2, 0, 0, 0, 0, 0, 1},
		{AS_IT_IS, AS_IT_IS, 0, 0, 0, 0, 0, 0, 0},
		{AS_IT_IS, AS_IT_IS, 1, 0, 0, 0, 0, 0, 1},
		{1, 1, 2, 0, 1, 1, 0, 1, 0},
	};
	struct world *w = *state;
	struct port_info i;

	assert_int_equal(world_get_port(w, S0, 0, &i), 0);
	assert_int_equal(i.cap_mask2 & (CAP2_EXT_SPEEDS2 | CAP2_SPEED_XDR | CAP2_SPEED_NDR),
		CAP2_EXT_SPEEDS2 | CAP2_SPEED_XDR);
	for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
		struct ext_port_info e = {
			.set = EXT_PORT_SET_SPEED, .speed_enabled = cases[n].fdr10};

		if (cases[n].fdr10 < 2)
			assert_int_equal(ext_port_info(w, S0, 2, MAD_SET, &e), 0);
		assert_int_equal(world_get_port(w, S0, 2, &i), 0);
		i.state = i.phys_state = 0;
		i.ext_speed_enabled = cases[n].ext;
		i.ext_speed2_enabled = cases[n].ext2;
		assert_int_equal(world_set_port(w, S0, 2, &i), cases[n].status);
		train(w, S0, 2);
		assert_int_equal(world_get_port(w, S1, 2, &i), 0);
		assert_int_equal(i.ext_speed_active, cases[n].ext_active);
		assert_int_equal(i.ext_speed2_active, cases[n].ext2_active);
		assert_int_equal(i.speed_active, 4);
		assert_int_equal(world_get_port(w, S0, 2, &i), 0);
		assert_int_equal(i.speed_supported, 7);
		assert_int_equal(i.ext_speed_supported, 1);
		assert_int_equal(i.ext_speed2_supported, 1);
		assert_int_equal(i.ext_speed_enabled, cases[n].ext_after);
		assert_int_equal(i.ext_speed2_enabled, cases[n].ext2_after);
		e = (struct ext_port_info){0};
		assert_int_equal(ext_port_info(w, S1, 2, MAD_GET, &e), 0);
		assert_int_equal(e.speed_active, cases[n].fdr10_active);
		assert_int_equal(e.speed_enabled, 1);
		assert_int_equal(e.speed_supported, 1);
	}
}

/* FDR10 needs both ends, and nothing faster. */
static void both_ends(void **state)
{
	struct world *w = *state;
	struct port_info i;

	for (uint8_t on = 0; on < 2; on++) {
		struct ext_port_info e = {.set = EXT_PORT_SET_SPEED, .speed_enabled = on};

		assert_int_equal(ext_port_info(w, S1, 2, MAD_SET, &e), 0);
		assert_int_equal(world_get_port(w, S0, 2, &i), 0);
		i.state = i.phys_state = 0;
		i.ext_speed_enabled = FIRST_OFF;
		i.ext_speed2_enabled = SECOND_OFF;
		assert_int_equal(world_set_port(w, S0, 2, &i), 0);
		train(w, S0, 2);
		assert_int_equal(ext_port_info(w, S0, 2, MAD_GET, &e), 0);
		assert_int_equal(e.speed_active, on);
	}
}

static void ext_port_info_rules(void **state)
{
	static const struct {
		uint32_t node;
		uint8_t port, set, enabled;
		int status;
		uint8_t after;
	} cases[] = {
		{S0, 2, 1, 0, 0, 0},
		{S0, 2, 0, 1, 0, 0}, /* it is not said that this counts */
		{S0, 2, 1, 1, 0, 1},
		{S0, 2, 1, 2, SMP_INVALID, 1},
		{S0, 1, 1, 1, SMP_INVALID, 0}, /* which has none */
		{S0, 1, 1, 0, 0, 0},
		{S0, 0, 1, 0, 0, 0},
		{S0, 5, 1, 0, SMP_INVALID, 0},
		{H0, 1, 1, 0, 0, 0},
	};
	struct world *w = *state;

	for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
		struct ext_port_info e = {.set = cases[n].set, .speed_enabled = cases[n].enabled};

		assert_int_equal(ext_port_info(w, cases[n].node, cases[n].port, MAD_SET, &e),
			cases[n].status);
		e = (struct ext_port_info){0};
		(void)ext_port_info(w, cases[n].node, cases[n].port, MAD_GET, &e);
		assert_int_equal(e.speed_enabled, cases[n].after);
		assert_int_equal(e.set, 0);
	}
}

/* Whoever knows its vendor answers for another attribute of a vendor; this one the agent. */
static void vendors_attributes(void **state)
{
	struct smp_hdr h = {.mgmt_class = MAD_CLASS_SUBN_LID, .method = MAD_GET};
	struct world *w = *state;
	uint8_t mad[MAD_SIZE] = {0};

	world_up(w);
	h.attr = SMP_EXT_PORT_INFO;
	h.attr_mod = 1;
	assert_int_equal(world_smp(w, &h, LID_H1, mad), 1);
	assert_int_equal(world_last(w).method, MAD_GET_RESP);
	assert_int_equal(world_last(w).status, 0);
	h.attr = SMP_EXT_PORT_INFO + 1;
	assert_int_equal(world_smp(w, &h, LID_H1, mad), 1);
	assert_int_equal(world_last(w).method, MAD_GET);
	assert_int_equal(w->got[0].node, H1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(speeds),
		T(both_ends),
		T(ext_port_info_rules),
		T(vendors_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
