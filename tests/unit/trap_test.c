// SPDX-License-Identifier: BSD-3-Clause
/* Traps: what they say, when they are sent again, how they are repressed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "subnet/state.h"
#include "subnet_world.h"

static struct notice last_trap(const struct world *w)
{
	struct notice n;

	assert_int_equal(world_last(w).method, MAD_TRAP);
	assert_int_equal(w->got[w->n_got - 1].node, H0);
	notice_unpack(w->got[w->n_got - 1].mad + SMP_DATA, &n);
	return n;
}

static void repress_keyed(struct world *w, uint16_t lid, uint64_t tid, uint64_t mkey)
{
	struct smp_hdr h = {.mgmt_class = MAD_CLASS_SUBN_LID,
		.method = MAD_TRAP_REPRESS,
		.attr = SMP_NOTICE,
		.mkey = mkey,
		.tid = tid};
	uint8_t mad[MAD_SIZE];
	unsigned n = w->n_got;

	memcpy(mad, w->got[n - 1].mad, MAD_SIZE);
	assert_int_equal(world_smp(w, &h, lid, mad), 0);
	w->n_got = n;
}

static void repress(struct world *w, uint16_t lid, uint64_t tid)
{
	repress_keyed(w, lid, tid, 0);
}

/* Until the next trap is due. */
static void pass_interval(struct world *w)
{
	w->now = subnet_next(w->s);
	subnet_run(w->s);
}

static void traps_repeat(void **state)
{
	const uint64_t interval = 4096ull << 18;
	struct world *w = *state;
	struct notice n;
	uint64_t tid;

	world_up(w);
	assert_int_equal(subnet_next(w->s), 0);
	assert_int_equal(subnet_unlink(w->s, H1, 1), 0);
	assert_int_equal(w->n_got, 1);
	n = last_trap(w);
	assert_int_equal(n.trap, TRAP_LINK_STATE);
	assert_int_equal(n.lid, LID_S1);
	assert_int_equal(n.issuer, LID_S1);
	assert_int_equal(n.producer, TOPO_SWITCH);
	assert_int_equal(n.type, NOTICE_URGENT);
	tid = world_last(w).tid;
	assert_int_equal(subnet_next(w->s), w->now + interval);
	w->now += interval - 1;
	subnet_run(w->s);
	assert_int_equal(w->n_got, 1);
	w->now++;
	subnet_run(w->s);
	assert_int_equal(w->n_got, 2);
	assert_int_equal(world_last(w).tid, tid);
	repress(w, LID_S1, tid + 1); /* another one's */
	w->now += interval;
	subnet_run(w->s);
	assert_int_equal(w->n_got, 3);
	repress(w, LID_S1, tid);
	/* Something new need not wait. */
	assert_int_equal(subnet_relink(w->s, H1, 1), 0);
	assert_int_equal(w->n_got, 4);
	assert_int_not_equal(world_last(w).tid, tid);
	repress(w, LID_S1, world_last(w).tid);
	w->now += interval;
	subnet_run(w->s);
	assert_int_equal(w->n_got, 4);
	assert_int_equal(subnet_next(w->s), 0);
}

/* H1's M_Key is 42, and somebody has asked with another one. */
static struct port_info violated(struct world *w)
{
	struct port_info i;

	world_up(w);
	assert_int_equal(world_get_port(w, H1, 1, &i), 0);
	i.state = i.phys_state = 0;
	i.mkey = 42;
	assert_int_equal(world_set_port(w, H1, 1, &i), 0);
	assert_int_equal(world_keyed(w, MAD_SET, 1, &i), -1);
	assert_int_equal(w->n_got, 1);
	return i;
}

/* Of what others can cause at will at most one comes in an interval. */
static void violations_are_rare(void **state)
{
	struct world *w = *state;
	struct port_info i;
	struct notice n;

	i = violated(w);
	n = last_trap(w);
	assert_int_equal(n.trap, TRAP_BAD_MKEY);
	assert_int_equal(n.lid, LID_H0);
	assert_int_equal(n.method, MAD_SET);
	assert_int_equal(n.attr, SMP_PORT_INFO);
	assert_int_equal(n.mkey, 1);
	repress_keyed(w, LID_H1, world_last(w).tid, 42);
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_MKEY), 1);
	for (int k = 0; k < 100; k++) {
		assert_int_equal(world_keyed(w, MAD_SET, 1, &i), -1);
		assert_int_equal(w->n_got, 0);
	}
	pass_interval(w);
	assert_int_equal(w->n_got, 1);
}

/* Who does not know the M_Key represses nothing. */
static void strangers_repress_nothing(void **state)
{
	struct world *w = *state;

	(void)violated(w);
	repress_keyed(w, LID_H1, world_last(w).tid, 41);
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_MKEY), 2);
	pass_interval(w);
	assert_int_equal(w->n_got, 2);
}

static void fault(struct world *w, unsigned trap)
{
	const struct mad_addr from = {.lid = LID_H0, .qpn = 77, .qkey = 5};

	if (trap == TRAP_BAD_QKEY)
		assert_int_equal(subnet_bad_qkey(w->s, H1, 1, &from, 88), 0);
	else
		assert_int_equal(subnet_link_fault(w->s, S0, 2, trap), 0);
}

/* What happens while a trap is repressed is told when its time is over, by a trap of its own. */
static void told_after_a_repress(void **state)
{
	static const struct {
		unsigned trap;
		uint16_t lid;
	} cases[] = {{TRAP_LINK_INTEGRITY, LID_S0}, {TRAP_BUFFER_OVERRUN, LID_S0},
		{TRAP_WATCHDOG, LID_S0}, {TRAP_BAD_QKEY, LID_H1}};
	struct world *w = *state;

	world_up(w);
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		uint64_t first;

		w->n_got = 0;
		fault(w, cases[k].trap);
		assert_int_equal(w->n_got, 1);
		first = world_last(w).tid;
		repress(w, cases[k].lid, first);
		fault(w, cases[k].trap);
		assert_int_equal(w->n_got, 1);
		pass_interval(w);
		assert_int_equal(w->n_got, 2);
		assert_int_equal(last_trap(w).trap, cases[k].trap);
		assert_int_not_equal(world_last(w).tid, first);
		repress(w, cases[k].lid, first); /* that of before */
		pass_interval(w);
		assert_int_equal(w->n_got, 3);
		repress(w, cases[k].lid, world_last(w).tid);
		pass_interval(w);
		assert_int_equal(w->n_got, 3);
		assert_int_equal(subnet_next(w->s), 0);
	}
}

static void other_traps(void **state)
{
	const struct mad_addr from = {.lid = LID_H0, .qpn = 77, .qkey = 5, .sl = 2};
	uint8_t desc[SMP_DATA_SIZE] = "renamed";
	struct world *w = *state;
	struct notice n;

	world_up(w);
	assert_int_equal(world_local(w, H1, 1, MAD_SET, SMP_NODE_DESC, 0, desc), 0);
	n = last_trap(w);
	assert_int_equal(n.trap, TRAP_LOCAL_CHANGES);
	assert_int_equal(n.other_changes, 1);
	assert_int_equal(n.change_flags, CHANGED_NODE_DESC);
	assert_int_equal(world_local(w, H1, 1, MAD_GET, SMP_NOTICE, 0, desc), 0);
	assert_memory_equal(desc, w->got[0].mad + SMP_DATA, SMP_DATA_SIZE);
	assert_int_equal(subnet_set_sm(w->s, H0, 2, true), 0);
	n = last_trap(w);
	assert_int_equal(n.trap, TRAP_LOCAL_CHANGES);
	assert_int_equal(n.lid, LID_H0_2);
	assert_int_equal(n.other_changes, 0);
	assert_true(n.cap_mask & CAP_SM);
	assert_int_equal(subnet_set_sm(w->s, H0, 2, true), 0);
	assert_int_equal(w->n_got, 2);
	assert_int_equal(subnet_bad_qkey(w->s, H1, 1, &from, 88), 0);
	n = last_trap(w);
	assert_int_equal(n.trap, TRAP_BAD_QKEY);
	assert_int_equal(n.lid, LID_H0);
	assert_int_equal(n.lid2, LID_H1);
	assert_int_equal(n.key, 5);
	assert_int_equal(n.qp1, 77);
	assert_int_equal(n.qp2, 88);
	assert_int_equal(subnet_set_sm(w->s, S0, 1, true), -EINVAL);
	assert_int_equal(subnet_link_fault(w->s, S0, 2, 132), -EINVAL);
	for (unsigned trap = TRAP_LINK_INTEGRITY; trap <= TRAP_WATCHDOG; trap++) {
		assert_int_equal(subnet_link_fault(w->s, S0, 2, trap), 0);
		n = last_trap(w);
		assert_int_equal(n.trap, trap);
		assert_int_equal(n.lid, LID_S0);
		assert_int_equal(n.port, 2);
	}
	w->n_got = 0;
	assert_int_equal(subnet_set_system_guid(w->s, H0, 0x77), 0);
	assert_int_equal(w->n_got, 2); /* of both ports */
	n = last_trap(w);
	assert_int_equal(n.trap, TRAP_SYSTEM_GUID);
	assert_int_equal(n.lid, LID_H0_2);
	assert_int_equal(n.system_guid, 0x77);
	assert_int_equal(subnet_set_system_guid(w->s, WORLD_NODES, 1), -EINVAL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(traps_repeat),
		T(violations_are_rare),
		T(strangers_repress_nothing),
		T(told_after_a_repress),
		T(other_traps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
