// SPDX-License-Identifier: BSD-3-Clause
/* Devices and ports as libibumad reads them: values, choice, pairs, broken trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/fake_umad_file.h"
#include "tests/unit/umad_tree.h"
#include "umad/newer.h"
#include "umad/umad.h"

enum { SM_DISABLED = 1 << 10 };

static int empty_tree(void **state)
{
	(void)state;
	tree_clear(0);
	memset(&fake, 0, sizeof fake);
	return 0;
}

static void add_ca(const char *name, int number, uint64_t guid, const char *state)
{
	struct tree_port port = {.guid = guid, .state = state, .cap_mask = 0x02514868};

	tree_ca(name, "1: CA");
	tree_add_port(name, 1, number, &port);
}

static void test_values(void **state)
{
	const umad_port_t *port;
	umad_ca_t ca;

	(void)state;
	add_ca("mlx0", 0, 0x0002c90300000011, NULL);
	memset(&ca, 0xff, sizeof ca);
	assert_int_equal(umad_get_ca("mlx0", &ca), 0);
	assert_string_equal(ca.ca_name, "mlx0");
	assert_int_equal(ca.node_type, 1);
	assert_int_equal(ca.numports, 1);
	assert_string_equal(ca.fw_ver, "2.42.5000");
	assert_string_equal(ca.ca_type, "MT4099");
	assert_string_equal(ca.hw_ver, "1");
	assert_int_equal(ca.node_guid, htobe64(0x0002c90300abcdef));
	assert_int_equal(ca.system_guid, htobe64(0x0002c90300abcdf2));
	assert_null(ca.ports[0]);
	port = ca.ports[1];
	assert_string_equal(port->ca_name, "mlx0");
	assert_int_equal(port->portnum, 1);
	assert_int_equal(port->base_lid, 0x1f);
	assert_int_equal(port->lmc, 3);
	assert_int_equal(port->sm_lid, 2);
	assert_int_equal(port->sm_sl, 7);
	assert_int_equal(port->state, 4);
	assert_int_equal(port->phys_state, 5);
	assert_int_equal(port->rate, 100);
	assert_int_equal(port->capmask, htobe32(0x02514868));
	assert_int_equal(port->gid_prefix, htobe64(0xfe80000000000001));
	assert_int_equal(port->port_guid, htobe64(0x0002c90300000011));
	assert_int_equal(port->pkeys_size, 2);
	assert_int_equal(port->pkeys[0], 0xffff);
	assert_int_equal(port->pkeys[1], 0x8001);
	assert_string_equal(port->link_layer, "InfiniBand");
	assert_int_equal(umad_release_ca(&ca), 0);
	assert_null(ca.ports[1]);
	assert_int_equal(umad_release_ca(NULL), -ENODEV);
	assert_int_equal(umad_release_port(NULL), -ENODEV);
}

static void test_names(void **state)
{
	char names[4][UMAD_CA_NAME_LEN];

	(void)state;
	add_ca("mlx1", 0, 0x11, NULL);
	add_ca("mlx0", 1, 0x12, NULL);
	add_ca("a_name_that_is_too_long", 2, 0x13, NULL);
	tree_ca("iwarp0", "4: RNIC");
	assert_int_equal(umad_get_cas_names(names, 4), 2);
	assert_string_equal(names[0], "mlx0");
	assert_string_equal(names[1], "mlx1");
	assert_int_equal(umad_get_cas_names(names, 1), 1);
}

static void test_device_list(void **state)
{
	struct umad_device_node *list;

	(void)state;
	errno = EPERM;
	assert_null(umad_get_ca_device_list());
	assert_int_equal(errno, 0);
	add_ca("b", 0, 0x11, NULL);
	add_ca("a_name_that_is_too_long", 1, 0x12, NULL);
	add_ca("c", 2, 0x13, NULL);
	list = umad_get_ca_device_list();
	assert_non_null(list);
	assert_int_equal(umad_sort_ca_device_list(&list, 2), EINVAL);
	assert_int_equal(umad_sort_ca_device_list(&list, 4), EINVAL);
	assert_int_equal(umad_sort_ca_device_list(&list, 0), 0);
	assert_string_equal(list->ca_name, "a_name_that_is_too_long");
	assert_string_equal(list->next->ca_name, "b");
	assert_string_equal(list->next->next->ca_name, "c");
	assert_null(list->next->next->next);
	umad_free_ca_device_list(list);
	list = NULL;
	assert_int_equal(umad_sort_ca_device_list(&list, 0), 0);
}

/* Each mandatory file, and what its absence gives. */
static void test_missing(void **state)
{
	static const struct {
		const char *file;
		int ca, port;
	} cases[] = {{"node_type", -ENOENT, 0}, {"node_guid", -ENOENT, 0},
		{"sys_image_guid", -ENOENT, 0}, {"fw_ver", 0, 0}, {"hw_rev", 0, 0},
		{"hca_type", 0, 0}, {"ports/1/lid", -EIO, -EIO}, {"ports/1/sm_lid", -EIO, -EIO},
		{"ports/1/sm_sl", -EIO, -EIO}, {"ports/1/lid_mask_count", -EIO, -EIO},
		{"ports/1/state", -EIO, -EIO}, {"ports/1/phys_state", -EIO, -EIO},
		{"ports/1/rate", -EIO, -EIO}, {"ports/1/cap_mask", -EIO, -EIO},
		{"ports/1/gids/0", -EIO, -EIO}, {"ports/1/pkeys/0", -EIO, -EIO},
		{"ports/1/link_layer", 0, 0}};
	char path[128];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		umad_port_t port;
		umad_ca_t ca;

		empty_tree(state);
		add_ca("mlx0", 0, 0x11, NULL);
		snprintf(path, sizeof path, "infiniband/mlx0/%s", cases[i].file);
		tree_del(path);
		assert_int_equal(umad_get_ca("mlx0", &ca), cases[i].ca);
		if (!cases[i].ca)
			umad_release_ca(&ca);
		assert_int_equal(umad_get_port("mlx0", 1, &port), cases[i].port);
		if (!cases[i].port)
			umad_release_port(&port);
	}
}

static void test_optional(void **state)
{
	umad_ca_t ca;

	(void)state;
	add_ca("mlx0", 0, 0x11, NULL);
	tree_del("infiniband/mlx0/fw_ver");
	tree_del("infiniband/mlx0/ports/1/link_layer");
	assert_int_equal(umad_get_ca("mlx0", &ca), 0);
	assert_string_equal(ca.fw_ver, "");
	assert_string_equal(ca.ports[1]->link_layer, "IB");
	umad_release_ca(&ca);
}

static void test_garbage(void **state)
{
	static const struct {
		const char *file, *text;
		int rc;
	} cases[] = {{"node_guid", "0002:c903:00ab\n", -EINVAL}, {"node_guid", "", -EINVAL},
		{"ports/1/gids/0", "fe80::1\n", -EIO}, {"ports/1/lid", "", 0},
		{"ports/1/lid", "lid\n", 0}, {"ports/1/rate", "2.5 Gb/sec (1X)\n", 0},
		{"fw_ver", "a line that is much longer than what the struct has room for\n", 0},
		{"ports/1/link_layer", "a line that is much longer than its room\n", 0},
		{"ports/10", "", -EIO}, {"ports/1x", "", -EIO}, {"ports/2", "", -EIO}};
	char path[128];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		umad_ca_t ca;

		empty_tree(state);
		add_ca("mlx0", 0, 0x11, NULL);
		snprintf(path, sizeof path, "infiniband/mlx0/%s", cases[i].file);
		tree_set(path, cases[i].text);
		assert_int_equal(umad_get_ca("mlx0", &ca), cases[i].rc);
		if (!cases[i].rc)
			umad_release_ca(&ca);
	}
}

static void test_no_device(void **state)
{
	struct umad_ca_pair pair;
	__be64 guids[UMAD_CA_MAX_PORTS];
	umad_port_t port;
	umad_ca_t ca;

	(void)state;
	assert_int_equal(umad_get_ca("mlx0", &ca), -ENOENT);
	assert_int_equal(umad_get_ca(NULL, &ca), -ENODEV);
	assert_int_equal(umad_get_port(NULL, 0, &port), -ENODEV);
	assert_int_equal(umad_get_port("mlx0", 0, &port), -ENODEV);
	assert_int_equal(umad_get_port("mlx0", 1, &port), -EIO);
	assert_int_equal(umad_open_port(NULL, 0), -ENODEV);
	assert_int_equal(umad_open_port("mlx0", 1), -EINVAL);
	assert_int_equal(umad_get_ca_portguids("mlx0", guids, UMAD_CA_MAX_PORTS), -1);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, &pair, 0), 0);
	assert_string_equal(pair.gsi_name, "");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, NULL, 0), -1);
}

static void test_no_umad(void **state)
{
	char path[64];

	(void)state;
	add_ca("mlx0", -1, 0x11, NULL);
	assert_int_equal(umad_open_port(NULL, 0), -EINVAL);
	assert_int_equal(umad_get_issm_path("mlx0", 1, path, sizeof path), -EINVAL);
	tree_set("infiniband_mad/abi_version", "4\n");
	assert_int_equal(umad_open_port(NULL, 0), -EOPNOTSUPP);
	tree_del("infiniband_mad/abi_version");
	assert_int_equal(umad_open_port(NULL, 0), -EOPNOTSUPP);
	assert_int_equal(fake.n_open, 0);
}

static void opens(const char *ca, int port, const char *device, int number)
{
	char path[64], issm[64];

	assert_int_equal(umad_open_port(ca, port), FAKE_FD);
	assert_string_equal(fake.device, device);
	snprintf(issm, sizeof issm, "/dev/infiniband/issm%d", number);
	assert_int_equal(umad_get_issm_path(ca, port, path, sizeof path), 0);
	assert_string_equal(path, issm);
}

static void test_two_ports(void **state)
{
	const struct tree_port down = {
		.guid = 0x11, .state = "1: DOWN", .phys_state = "2: Polling"};
	struct tree_port up = {.guid = 0x12, .state = "2: INIT"};
	__be64 guids[3];

	(void)state;
	tree_ca("mlx0", "1: CA");
	tree_add_port("mlx0", 1, 0, &down);
	tree_add_port("mlx0", 2, 1, &up);
	opens("mlx0", 1, "mlx0", 0);
	opens("mlx0", 0, "mlx0", 1); /* the link is up */
	assert_int_equal(fake.port, 2);
	opens(NULL, 0, "mlx0", 1);
	assert_int_equal(fake.port, 2);
	opens(NULL, 1, "mlx0", 0);
	assert_int_equal(umad_get_ca_portguids("mlx0", guids, 3), 3);
	assert_int_equal(guids[0], 0);
	assert_int_equal(guids[1], htobe64(0x11));
	assert_int_equal(guids[2], htobe64(0x12));
	assert_int_equal(umad_get_ca_portguids("mlx0", guids, 2), -ENOMEM);
	assert_int_equal(umad_get_ca_portguids("mlx0", NULL, 0), 0);
	up.phys_state = "3: Disabled";
	tree_add_port("mlx0", 2, 1, &up);
	opens(NULL, 0, "mlx0", 0); /* the other is not disabled */
}

/* The first with an active port, or else the first with one whose link is up. */
static void test_choice_of_device(void **state)
{
	(void)state;
	add_ca("mlx0", 0, 0x11, "1: DOWN");
	add_ca("mlx1", 1, 0x12, "4: ACTIVE");
	add_ca("mlx2", 2, 0x13, "3: ARMED");
	opens(NULL, 0, "mlx1", 1);
	opens(NULL, 1, "mlx1", 1);
	assert_int_equal(umad_open_port(NULL, 2), -EINVAL); /* nobody has one */
}

static void test_switch(void **state)
{
	const struct tree_port port0 = {.guid = 0x20};

	(void)state;
	tree_ca("sw0", "2: SWITCH");
	tree_add_port("sw0", 0, 3, &port0);
	opens(NULL, 0, "sw0", 3);
	assert_int_equal(fake.port, 0);
	opens("sw0", 0, "sw0", 3);
	opens(NULL, 7, "sw0", 3); /* whatever port is asked for */
	assert_int_equal(fake.port, 0);
}

static void test_ethernet(void **state)
{
	const struct tree_port eth = {.guid = 0x11, .link_layer = "Ethernet"};
	struct umad_ca_pair pairs[4], pair;

	(void)state;
	tree_ca("eth0", "1: CA");
	tree_add_port("eth0", 1, 0, &eth);
	assert_int_equal(umad_open_port(NULL, 1), -EINVAL);
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 4), 0);
	add_ca("mlx0", 1, 0x12, NULL);
	opens(NULL, 0, "mlx0", 1);
	opens(NULL, 1, "mlx0", 1);
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 4), 1);
	assert_string_equal(pairs[0].smi_name, "mlx0");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("eth0", 1, &pair, 0), -ENODEV);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, &pair, 1), 0);
	assert_string_equal(pair.smi_name, "mlx0");
}

static void test_smi_port(void **state)
{
	const struct tree_port without = {.guid = 0x11, .cap_mask = SM_DISABLED};

	(void)state;
	tree_ca("gsi0", "1: CA");
	tree_add_port("gsi0", 1, 0, &without);
	assert_int_equal(umad_open_smi_port("gsi0", 0), -ENODEV);
	assert_int_equal(umad_open_smi_port(NULL, 0), -EINVAL);
	opens("gsi0", 0, "gsi0", 0);
	add_ca("smi0", 1, 0x12, NULL);
	assert_int_equal(umad_open_smi_port(NULL, 0), FAKE_FD);
	assert_string_equal(fake.device, "smi0");
}

/* One device serves both. */
static void test_pairs(void **state)
{
	struct umad_ca_pair pairs[4], pair;

	(void)state;
	add_ca("mlx0", 0, 0x11, "1: DOWN");
	add_ca("mlx1", 1, 0x12, "4: ACTIVE");
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 4), 2);
	assert_string_equal(pairs[0].smi_name, "mlx0");
	assert_string_equal(pairs[0].gsi_name, "mlx0");
	assert_string_equal(pairs[1].gsi_name, "mlx1");
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 1), 1);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, &pair, 1), 0);
	assert_string_equal(pair.smi_name, "mlx1");
	assert_int_equal(pair.smi_preferred_port, 1);
	assert_int_equal(pair.gsi_preferred_port, 1);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx0", 1, &pair, 1), 0);
	assert_string_equal(pair.gsi_name, "mlx0");
	assert_int_equal(pair.gsi_preferred_port, 1);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx0", 2, &pair, 1), -ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx0", 200, &pair, 1), -ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx9", 0, &pair, 0), -ENODEV);
	assert_string_equal(pair.gsi_name, "");
}

/* A port shown as two devices, by its GUID; the one for GMPs has IsSMdisabled. */
static void test_split_pair(void **state)
{
	const struct tree_port gsi = {.guid = 0x11, .cap_mask = SM_DISABLED};
	struct umad_ca_pair pairs[4], pair;

	(void)state;
	tree_ca("gsi0", "1: CA");
	tree_add_port("gsi0", 1, 0, &gsi);
	add_ca("smi0", 1, 0x11, NULL);
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 4), 1);
	assert_string_equal(pairs[0].smi_name, "smi0");
	assert_string_equal(pairs[0].gsi_name, "gsi0");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("gsi0", 1, &pair, 1), 0);
	assert_string_equal(pair.smi_name, "smi0");
	assert_int_equal(pair.smi_preferred_port, 1);
	assert_int_equal(pair.gsi_preferred_port, 1);
	tree_clear(0);
	tree_ca("gsi0", "1: CA");
	tree_add_port("gsi0", 1, 0, &gsi);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("gsi0", 1, &pair, 1), -ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("gsi0", 1, &pair, 0), 0);
	assert_string_equal(pair.smi_name, "");
	assert_string_equal(pair.gsi_name, "gsi0");
}

/* A device by its first port with a GUID; without a port asked for, the first that is not down. */
static void test_pair_ports(void **state)
{
	const struct tree_port none = {.guid = 0};
	const struct tree_port down = {.guid = 0x11, .state = "1: DOWN"};
	const struct tree_port up = {.guid = 0x12};
	struct umad_ca_pair pair;

	(void)state;
	tree_ca("mlx0", "1: CA");
	tree_add_port("mlx0", 1, 0, &none);
	tree_add_port("mlx0", 2, 1, &down);
	tree_add_port("mlx0", 3, 2, &up);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx0", 0, &pair, 1), 0);
	assert_int_equal(pair.smi_preferred_port, 1); /* its state counts, not its GUID */
	tree_set("infiniband/mlx0/ports/1/state", "1: DOWN\n");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, &pair, 1), 0);
	assert_int_equal(pair.smi_preferred_port, 3);
	assert_int_equal(pair.gsi_preferred_port, 3);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 2, &pair, 1), -ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx0", 2, &pair, 1), 0);
	assert_int_equal(pair.gsi_preferred_port, 2);
}

/* A device that finds no room for a pair of its own joins that of a later port. */
static void test_pairs_without_room(void **state)
{
	const struct tree_port one = {.guid = 0x11}, two = {.guid = 0x12};
	struct umad_ca_pair pair;

	(void)state;
	tree_ca("a0", "1: CA");
	tree_add_port("a0", 1, 0, &one);
	tree_ca("b0", "1: CA");
	tree_add_port("b0", 1, 1, &two);
	tree_add_port("b0", 2, 2, &one);
	assert_int_equal(umad_get_smi_gsi_pairs(&pair, 0), 0);
	assert_int_equal(umad_get_smi_gsi_pairs(&pair, 1), 1);
	assert_string_equal(pair.smi_name, "b0");
	assert_string_equal(pair.gsi_name, "");
}

static int start(void **state)
{
	(void)state;
	tree_start();
	return 0;
}

static int stop(void **state)
{
	(void)state;
	tree_clear(1);
	return 0;
}

#define ON_EMPTY_TREE(f) cmocka_unit_test_setup(f, empty_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {ON_EMPTY_TREE(test_values), ON_EMPTY_TREE(test_names),
		ON_EMPTY_TREE(test_device_list), ON_EMPTY_TREE(test_missing),
		ON_EMPTY_TREE(test_optional), ON_EMPTY_TREE(test_garbage),
		ON_EMPTY_TREE(test_no_device), ON_EMPTY_TREE(test_no_umad),
		ON_EMPTY_TREE(test_two_ports), ON_EMPTY_TREE(test_choice_of_device),
		ON_EMPTY_TREE(test_switch), ON_EMPTY_TREE(test_ethernet),
		ON_EMPTY_TREE(test_smi_port), ON_EMPTY_TREE(test_pairs),
		ON_EMPTY_TREE(test_split_pair), ON_EMPTY_TREE(test_pair_ports),
		ON_EMPTY_TREE(test_pairs_without_room)};

	return cmocka_run_group_tests(tests, start, stop);
}
