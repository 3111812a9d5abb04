// SPDX-License-Identifier: BSD-3-Clause
/*
 * Our libibumad beside the system's: the same arguments, the same answers.
 *
 * usage: umad_differ_test text   names and dumps
 *        umad_differ_test sysfs  devices and ports of a tree, which this process alone sees at
 *                                /sys/class
 *
 * Exits 77 where there is no system's library, or no mounting.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/unit/fake_umad_file.h"
#include "tests/unit/umad_tree.h"
#include "umad/umad.h"

enum { SKIP = 77, DUMP_MAX = 4096 };

/* Functions of the system's library, by their own types. */
#define THEIRS(fn) __typeof__(fn) *fn
static struct {
	THEIRS(umad_class_str);
	THEIRS(umad_method_str);
	THEIRS(umad_attribute_str);
	THEIRS(umad_common_mad_status_str);
	THEIRS(umad_sa_mad_status_str);
	THEIRS(umad_dump);
	THEIRS(umad_get_cas_names);
	THEIRS(umad_get_ca);
	THEIRS(umad_release_ca);
	THEIRS(umad_get_port);
	THEIRS(umad_release_port);
	THEIRS(umad_get_ca_portguids);
	THEIRS(umad_get_issm_path);
	THEIRS(umad_open_port);
} theirs;

#define FOUND(fn)                                                                                  \
	{                                                                                          \
#fn, offsetof(__typeof__(theirs), fn)                                              \
	}
static const struct {
	const char *name;
	size_t off;
} functions[] = {FOUND(umad_class_str), FOUND(umad_method_str), FOUND(umad_attribute_str),
	FOUND(umad_common_mad_status_str), FOUND(umad_sa_mad_status_str), FOUND(umad_dump),
	FOUND(umad_get_cas_names), FOUND(umad_get_ca), FOUND(umad_release_ca), FOUND(umad_get_port),
	FOUND(umad_release_port), FOUND(umad_get_ca_portguids), FOUND(umad_get_issm_path),
	FOUND(umad_open_port)};

static bool find_theirs(void)
{
	static const char *const paths[] = {"/usr/lib/x86_64-linux-gnu/libibumad.so.3",
		"/usr/lib/aarch64-linux-gnu/libibumad.so.3"};
	void *lib = NULL;

	for (size_t i = 0; !lib && i < sizeof paths / sizeof *paths; i++)
		lib = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; lib && i < sizeof functions / sizeof *functions; i++) {
		void *fn = dlsym(lib, functions[i].name);

		if (!fn)
			return false;
		memcpy((char *)&theirs + functions[i].off, &fn, sizeof fn);
	}
	return lib;
}

static void test_classes_and_methods(void **state)
{
	(void)state;
	assert_ptr_not_equal(theirs.umad_class_str, umad_class_str);
	for (int c = 0; c < 256; c++) {
		assert_string_equal(umad_class_str(c), theirs.umad_class_str(c));
		for (int m = 0; m < 256; m++)
			assert_string_equal(umad_method_str(c, m), theirs.umad_method_str(c, m));
	}
}

static void test_statuses(void **state)
{
	(void)state;
	for (int s = 0; s < 65536; s++) {
		assert_string_equal(
			umad_common_mad_status_str(s), theirs.umad_common_mad_status_str(s));
		assert_string_equal(umad_sa_mad_status_str(s), theirs.umad_sa_mad_status_str(s));
	}
}

static void check_attribute(int mgmt_class, int attr)
{
	__be16 id = htobe16((uint16_t)attr);

	assert_string_equal(
		umad_attribute_str(mgmt_class, id), theirs.umad_attribute_str(mgmt_class, id));
}

static void test_attributes(void **state)
{
	static const int full[] = {0x01, 0x03, 0x04, 0x07, 0x81}; /* all ids of them */

	(void)state;
	for (size_t c = 0; c < sizeof full / sizeof *full; c++)
		for (int attr = 0; attr < 65536; attr++)
			check_attribute(full[c], attr);
	for (int c = 0; c < 256; c++)
		for (int attr = 0; attr < 256; attr++)
			check_attribute(c, attr);
}

/* What fn writes to stderr about mad. */
static void dump_of(void (*fn)(void *), void *mad, char text[DUMP_MAX])
{
	int saved = dup(STDERR_FILENO), pipes[2];
	ssize_t n;

	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], STDERR_FILENO);
	fn(mad);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(pipes[1]);
	n = read(pipes[0], text, DUMP_MAX - 1);
	close(pipes[0]);
	close(saved);
	text[n > 0 ? n : 0] = '\0';
}

static void test_dump(void **state)
{
	ib_user_mad_t mad = {.agent_id = 3, .status = 110, .timeout_ms = 1000};
	char ours[DUMP_MAX], other[DUMP_MAX];

	(void)state;
	umad_set_addr(&mad, 0xabcd, 1, 15, 0x80010000);
	for (int i = 0; i < 16; i++)
		mad.addr.gid[i] = (uint8_t)(i * 17);
	mad.addr.grh_present = 1;
	mad.addr.hop_limit = 0xff;
	mad.addr.flow_label = htobe32(0x12345);
	mad.addr.pkey_index = 2;
	dump_of(umad_dump, &mad, ours);
	dump_of(theirs.umad_dump, &mad, other);
	assert_non_null(strstr(ours, "Gid 0x00112233"));
	assert_string_equal(ours, other);
}

/* ---- trees ---- */

static void same_port(const umad_port_t *a, const umad_port_t *b)
{
	assert_string_equal(a->ca_name, b->ca_name);
	assert_string_equal(a->link_layer, b->link_layer);
	assert_memory_equal(&a->portnum, &b->portnum,
		offsetof(umad_port_t, capmask) - offsetof(umad_port_t, portnum));
	assert_int_equal(a->capmask, b->capmask);
	assert_int_equal(a->gid_prefix, b->gid_prefix);
	assert_int_equal(a->port_guid, b->port_guid);
	assert_int_equal(a->pkeys_size, b->pkeys_size);
	assert_memory_equal(a->pkeys, b->pkeys, a->pkeys_size * sizeof *a->pkeys);
}

static void same_ca(const umad_ca_t *a, const umad_ca_t *b)
{
	assert_string_equal(a->ca_name, b->ca_name);
	assert_int_equal(a->node_type, b->node_type);
	assert_int_equal(a->numports, b->numports);
	assert_string_equal(a->fw_ver, b->fw_ver);
	assert_string_equal(a->hw_ver, b->hw_ver);
	assert_string_equal(a->ca_type, b->ca_type);
	assert_int_equal(a->node_guid, b->node_guid);
	assert_int_equal(a->system_guid, b->system_guid);
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		assert_int_equal(!a->ports[i], !b->ports[i]);
		if (a->ports[i])
			same_port(a->ports[i], b->ports[i]);
	}
}

static void compare_ca(const char *name)
{
	umad_ca_t a = {0}, b = {0};
	__be64 guids_a[UMAD_CA_MAX_PORTS] = {0}, guids_b[UMAD_CA_MAX_PORTS] = {0};
	int rc = theirs.umad_get_ca(name, &b);

	assert_int_equal(umad_get_ca(name, &a), rc);
	if (!rc) {
		same_ca(&a, &b);
		umad_release_ca(&a);
		theirs.umad_release_ca(&b);
	}
	for (int max = 0; max <= UMAD_CA_MAX_PORTS; max++)
		assert_int_equal(umad_get_ca_portguids(name, guids_a, max),
			theirs.umad_get_ca_portguids(name, guids_b, max));
	assert_memory_equal(guids_a, guids_b, sizeof guids_a);
}

/* No port can be opened here: the error says how far the call came. */
static void compare_port(const char *name, int portnum)
{
	char path_a[64] = "", path_b[64] = "";
	umad_port_t a = {0}, b = {0};
	int rc = theirs.umad_get_port(name, portnum, &b);

	assert_int_equal(umad_get_port(name, portnum, &a), rc);
	if (!rc) {
		same_port(&a, &b);
		umad_release_port(&a);
		theirs.umad_release_port(&b);
	}
	assert_int_equal(umad_get_issm_path(name, portnum, path_a, sizeof path_a),
		theirs.umad_get_issm_path(name, portnum, path_b, sizeof path_b));
	assert_string_equal(path_a, path_b);
	fake.open_rc = -ENOENT;
	assert_int_equal(umad_open_port(name, portnum), theirs.umad_open_port(name, portnum));
}

static void compare_names(void)
{
	char cas_a[8][UMAD_CA_NAME_LEN] = {0}, cas_b[8][UMAD_CA_NAME_LEN] = {0};

	for (int max = 1; max <= 8; max++)
		assert_int_equal(
			umad_get_cas_names(cas_a, max), theirs.umad_get_cas_names(cas_b, max));
	assert_memory_equal(cas_a, cas_b, sizeof cas_a);
}

static void compare_device(const char *name, int n_ports)
{
	compare_ca(name);
	for (int portnum = 0; portnum < n_ports; portnum++)
		compare_port(name, portnum);
}

static void compare_all(void)
{
	compare_names();
	compare_device(NULL, 3);
	compare_device("a0", 2);
	compare_device("b0", 3);
	compare_device("none", 1);
}

/* All kinds of ports of a device with one and of one with two. */
static void test_ports(void **state)
{
	static const char *const links[][2] = {{"1: DOWN", "3: Disabled"},
		{"1: DOWN", "2: Polling"}, {"2: INIT", "5: LinkUp"}, {"4: ACTIVE", "5: LinkUp"}};
	static const char *const layers[] = {"InfiniBand", "Ethernet"};
	enum { LINKS = 4, LAYERS = 2, KINDS = LINKS * LAYERS };

	(void)state;
	tree_clear(0);
	tree_ca("a0", "1: CA");
	tree_ca("b0", "1: CA");
	for (int i = 0; i < KINDS * KINDS; i++) {
		int x = i / KINDS, y = i % KINDS;
		struct tree_port one = {.guid = 1,
			.state = links[x % LINKS][0],
			.phys_state = links[x % LINKS][1],
			.link_layer = layers[x / LINKS]};
		struct tree_port two = {.guid = 2,
			.state = links[y % LINKS][0],
			.phys_state = links[y % LINKS][1],
			.link_layer = layers[y / LINKS]};

		tree_add_port("a0", 1, 0, &one);
		tree_add_port("b0", 1, 1, &two);
		tree_add_port("b0", 2, 2, &one);
		compare_device(NULL, 2);
		compare_device("b0", 1);
	}
}

static void test_others(void **state)
{
	const struct tree_port port = {.guid = 0x20, .n_pkeys = 128};

	(void)state;
	tree_clear(0);
	tree_ca("a0", "2: SWITCH");
	tree_add_port("a0", 0, 3, &port);
	compare_all();
	tree_ca("b0", "4: RNIC");
	tree_add_port("b0", 1, 1, &port);
	tree_ca("a_name_that_is_too_long", "1: CA");
	tree_add_port("a_name_that_is_too_long", 1, 4, &port);
	compare_all();
	tree_clear(0);
	compare_all();
}

/* Each file missing, empty, and with what does not belong there. */
static void test_broken(void **state)
{
	static const char *const files[] = {"node_type", "fw_ver", "hw_rev", "hca_type",
		"node_guid", "sys_image_guid", "ports/1/lid", "ports/1/sm_lid", "ports/1/sm_sl",
		"ports/1/lid_mask_count", "ports/1/state", "ports/1/phys_state", "ports/1/rate",
		"ports/1/cap_mask", "ports/1/link_layer", "ports/1/gids/0", "ports/1/pkeys/1",
		"ports/1/pkeys/x", "ports/2", "ports/11", "ports/-1", "ports/.hidden"};
	static const char *const texts[] = {NULL, "", "\n", "0x12", "12: 34: 56\n", "a:b c:d\n",
		"1:2:3:4:5:6:7:8\n", "77777:fffff1:-1:8\n",
		"no number at all, and a line that has "
		"no end within what a struct has room for\n"};
	const struct tree_port port = {.guid = 0x20};
	char path[64];

	(void)state;
	for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
		tree_clear(0);
		tree_ca("a0", "1: CA");
		tree_add_port("a0", 1, 0, &port);
		snprintf(path, sizeof path, "infiniband/a0/%s", files[f]);
		for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
			if (texts[t])
				tree_set(path, texts[t]);
			else
				tree_del(path);
			compare_device(NULL, 1);
			compare_device("a0", 1);
		}
	}
}

static bool show_tree(void)
{
	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return false;
	/* In a chroot "/" may be no mount, but then /sys is one. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		mount(NULL, "/sys", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	return !mount(tree_class_dir(), "/sys/class", NULL, MS_BIND, NULL);
}

static int skip_all(const char *why)
{
	printf("%s\n", why);
	return SKIP;
}

static int differ_text(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes_and_methods),
		cmocka_unit_test(test_statuses), cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_dump)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

static int differ_sysfs(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ports),
		cmocka_unit_test(test_others), cmocka_unit_test(test_broken)};
	int rc;

	tree_start();
	rc = show_tree() ? cmocka_run_group_tests(tests, NULL, NULL)
			 : skip_all("no mounts of our own: not compared");
	tree_clear(1);
	return rc;
}

int main(int argc, char **argv)
{
	if (!find_theirs())
		return skip_all("no libibumad.so.3 in the system: not compared");
	return argc > 1 && !strcmp(argv[1], "sysfs") ? differ_sysfs() : differ_text();
}
