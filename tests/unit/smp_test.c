// SPDX-License-Identifier: BSD-3-Clause
/* Formats of subnet and performance management, byte by byte; the steps of directed routes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "subnet/smi.h"
#include "wire/notice.h"
#include "wire/pma.h"

/* Each field alone, all ones: the bits that it sets are those of the table, and nobody else's. */
static void check_format(const struct wire_format *f, size_t size, size_t struct_size)
{
	uint8_t taken[MAD_SIZE] = {0};
	uint8_t in[1024], out[1024], msg[MAD_SIZE];

	assert_true(struct_size <= sizeof in);
	for (size_t i = 0; i < f->n; i++) {
		const struct wire_field *x = &f->fields[i];

		assert_true(x->bit + x->bits <= 8 * size);
		assert_true(x->bits <= 8 * x->size);
		memset(in, 0, sizeof in);
		memset(in + x->off, 0xff, x->size);
		memset(msg, 0, sizeof msg);
		wire_pack(f, in, msg);
		for (unsigned bit = 0; bit < 8 * size; bit++) {
			unsigned on = msg[bit / 8] >> (7 - bit % 8) & 1;

			assert_int_equal(on, bit >= x->bit && bit < x->bit + x->bits);
			if (on) {
				assert_int_equal(taken[bit / 8] >> (7 - bit % 8) & 1, 0);
				taken[bit / 8] |= 1 << (7 - bit % 8);
			}
		}
		memset(out, 0, sizeof out);
		wire_unpack(f, msg, out);
		wire_pack(f, out, msg);
		wire_unpack(f, msg, in);
		assert_memory_equal(in, out, struct_size);
	}
}

static void fields_do_not_overlap(void **state)
{
	(void)state;
	check_format(&smp_hdr_format, 64, sizeof(struct smp_hdr));
	check_format(&node_info_format, 64, sizeof(struct node_info));
	check_format(&port_info_format, 64, sizeof(struct port_info));
	check_format(&switch_info_format, 64, sizeof(struct switch_info));
	check_format(&ext_port_info_format, 64, sizeof(struct ext_port_info));
	check_format(&class_port_info_format, 192, sizeof(struct class_port_info));
	check_format(&pma_counters_format, 192, sizeof(struct pma_counters));
	check_format(&pma_counters_ext_format, 192, sizeof(struct pma_counters));
	check_format(&pma_rcv_errors_format, 192, sizeof(struct pma_counters));
	check_format(&pma_xmit_discards_format, 192, sizeof(struct pma_counters));
	check_format(&pma_data_sl_format, 192, sizeof(struct pma_counters));
}

/* Places in a port's attribute that programs of others look at. */
static void port_info_bytes(void **state)
{
	const struct port_info i = {.mkey = 0x1122334455667788,
		.lid = 0x0102,
		.sm_lid = 0x0304,
		.cap_mask = 0x0a0b0c0d,
		.local_port = 3,
		.width_active = 2,
		.speed_supported = 7,
		.state = 4,
		.phys_state = 5,
		.down_default = 2,
		.mkey_protect = 2,
		.lmc = 3,
		.speed_active = 4,
		.speed_enabled = 7,
		.neighbor_mtu = 5,
		.sm_sl = 1,
		.vl_cap = 4,
		.mtu_cap = 5,
		.oper_vls = 3,
		.part_out = 1,
		.guid_cap = 8,
		.client_reregister = 1,
		.subnet_timeout = 18,
		.ext_speed_active = 2,
		.ext_speed_supported = 3,
		.ext_speed_enabled = 30,
		.ext_speed2_active = 1,
		.ext_speed2_supported = 3,
		.ext_speed2_enabled = 6};
	uint8_t b[64] = {0};

	(void)state;
	wire_pack(&port_info_format, &i, b);
	assert_memory_equal(b, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
	assert_memory_equal(b + 16, "\x01\x02\x03\x04\x0a\x0b\x0c\x0d", 8);
	assert_memory_equal(b + 28, "\x03\x00\x00\x02\x74\x52\x83\x47\x51\x40", 10);
	assert_memory_equal(b + 41, "\x05\x00\x34", 3);
	assert_memory_equal(b + 50, "\x08\x92", 2);
	assert_memory_equal(b + 56, "\x3e\x00\x00\x00", 4);
	assert_memory_equal(b + 62, "\x23\x1e", 2);
}

static void ext_port_info_bytes(void **state)
{
	const struct ext_port_info i = {
		.set = 1, .speed_supported = 2, .speed_enabled = 3, .speed_active = 4};
	uint8_t b[SMP_DATA_SIZE] = {0};

	(void)state;
	wire_pack(&ext_port_info_format, &i, b);
	assert_memory_equal(b, "\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0", 17);
}

static void switch_info_bytes(void **state)
{
	const struct switch_info i = {.lft_cap = 0xc000,
		.lft_top = 0x0123,
		.life_time = 18,
		.port_state_change = 1,
		.enforce_cap = 64,
		.enforce_in = 1,
		.enhanced_port0 = 1,
		.mft_top = 0xc003};
	uint8_t b[20] = {0};

	(void)state;
	wire_pack(&switch_info_format, &i, b);
	assert_memory_equal(b,
		"\xc0\x00\x00\x00\x00\x00\x01\x23\x00\x00\x00\x94\x00\x00\x00\x40\x88\x00\xc0\x03",
		20);
}

static void notices(void **state)
{
	static const uint16_t traps[] = {128, 129, 130, 131, 144, 145, 256, 257, 258, 259};
	uint8_t b[NOTICE_SIZE], again[NOTICE_SIZE];
	struct notice n, m;

	(void)state;
	for (size_t i = 0; i < sizeof traps / sizeof traps[0]; i++) {
		memset(&n, 0xff, sizeof n);
		n.trap = traps[i];
		notice_pack(&n, b);
		notice_unpack(b, &m);
		assert_int_equal(m.trap, traps[i]);
		notice_pack(&m, again);
		assert_memory_equal(b, again, NOTICE_SIZE);
	}
	n = (struct notice){.generic = 1,
		.type = NOTICE_URGENT,
		.producer = 2,
		.trap = 128,
		.issuer = 3,
		.lid = 4};
	notice_pack(&n, b);
	assert_memory_equal(b, "\x81\x00\x00\x02\x00\x80\x00\x03\x00\x00\x00\x04", 12);
	memset(b, 0xff, sizeof b);
	notice_unpack(b, &m);
	assert_int_equal(m.trap, 0xffff);
	assert_int_equal(m.lid, 0);
}

static const struct step {
	const char *what;
	bool returning, is_switch, own;
	uint8_t ptr, cnt, in;
	uint16_t slid, dlid;
	enum smi_where where;
	uint8_t port, new_ptr;
	uint16_t lid;
} steps[] = {
	/* hop n of the initial path is 10 + n, of the return path 20 + n */
	{"to itself", 0, 0, 1, 0, 0, 1, 0xffff, 0xffff, SMI_HERE, 0, 1, 0},
	{"out of an adapter", 0, 0, 1, 0, 2, 11, 0xffff, 0xffff, SMI_PORT, 11, 1, 0},
	{"by its other port", 0, 0, 1, 0, 2, 12, 0xffff, 0xffff, SMI_DROP, 0, 0, 0},
	{"not begun", 0, 0, 0, 0, 2, 11, 0xffff, 0xffff, SMI_DROP, 0, 0, 0},
	{"in the middle", 0, 1, 0, 1, 3, 5, 0xffff, 0xffff, SMI_PORT, 12, 2, 0},
	{"an adapter in the middle", 0, 0, 0, 1, 3, 1, 0xffff, 0xffff, SMI_DROP, 0, 0, 0},
	{"its end", 0, 0, 0, 3, 3, 5, 0xffff, 0xffff, SMI_HERE, 0, 4, 0},
	{"its end, then by LID", 0, 1, 0, 3, 3, 5, 0xffff, 7, SMI_LID, 0, 4, 7},
	{"an adapter does not route", 0, 0, 0, 3, 3, 5, 0xffff, 7, SMI_DROP, 0, 0, 0},
	{"came by LID after its route", 0, 0, 0, 4, 3, 5, 0xffff, 7, SMI_HERE, 0, 4, 0},
	{"came by LID to its route", 0, 1, 0, 0, 3, 5, 9, 0xffff, SMI_PORT, 11, 1, 0},
	{"beyond its end", 0, 1, 0, 5, 3, 5, 0xffff, 0xffff, SMI_DROP, 0, 0, 0},
	{"too many hops", 0, 1, 0, 1, 64, 5, 0xffff, 0xffff, SMI_DROP, 0, 0, 0},
	{"63 hops", 0, 1, 0, 62, 63, 5, 0xffff, 0xffff, SMI_PORT, 73, 63, 0},
	{"the answer begins", 1, 0, 1, 4, 3, 23, 0xffff, 0xffff, SMI_PORT, 23, 3, 0},
	{"by its other port", 1, 0, 1, 4, 3, 22, 0xffff, 0xffff, SMI_DROP, 0, 0, 0},
	{"back in the middle", 1, 1, 0, 3, 3, 5, 0xffff, 0xffff, SMI_PORT, 22, 2, 0},
	{"back at its end", 1, 0, 0, 1, 3, 5, 0xffff, 0xffff, SMI_HERE, 0, 0, 0},
	{"back, then by LID", 1, 1, 0, 1, 3, 5, 9, 0xffff, SMI_LID, 0, 0, 9},
	{"back by LID", 1, 0, 0, 0, 3, 5, 9, 0xffff, SMI_HERE, 0, 0, 0},
	{"back from nowhere", 1, 1, 0, 5, 3, 5, 0xffff, 0xffff, SMI_DROP, 0, 0, 0},
	{"back to itself", 1, 0, 1, 1, 0, 5, 0xffff, 0xffff, SMI_HERE, 0, 0, 0},
};

static void directed_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		const struct step *t = &steps[i];
		const struct smp_hdr h = {.returning = t->returning,
			.hop_ptr = t->ptr,
			.hop_cnt = t->cnt,
			.dr_slid = t->slid,
			.dr_dlid = t->dlid};
		uint8_t mad[MAD_SIZE] = {0};
		struct smi_step s;

		for (int n = 0; n < 64; n++) {
			mad[SMP_INITIAL_PATH + n] = 10 + n;
			mad[SMP_RETURN_PATH + n] = 20 + n;
		}
		wire_pack(&smp_hdr_format, &h, mad);
		s = smi_step(mad, t->is_switch, t->in, t->own);
		if (s.where != t->where || s.port != t->port || s.lid != t->lid)
			fail_msg("%s: %d, port %d, LID %d", t->what, s.where, s.port, s.lid);
		if (t->where == SMI_DROP)
			continue;
		if (mad[SMP_HOP_PTR] != t->new_ptr)
			fail_msg("%s: hop pointer %d", t->what, mad[SMP_HOP_PTR]);
		if (!t->returning && t->ptr && t->ptr <= t->cnt)
			assert_int_equal(mad[SMP_RETURN_PATH + t->ptr], t->in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_do_not_overlap),
		cmocka_unit_test(port_info_bytes),
		cmocka_unit_test(ext_port_info_bytes),
		cmocka_unit_test(switch_info_bytes),
		cmocka_unit_test(notices),
		cmocka_unit_test(directed_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
