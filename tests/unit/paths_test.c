// SPDX-License-Identifier: BSD-3-Clause
/* Which paths the shim takes, and where it leads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "shim/path.h"
#include "shim/root.h"

void tree_root(char root[PATH_MAX])
{
	strcpy(root, "/tree");
}

void tree_refresh(void)
{
}

static void takes_ours(void **state)
{
	static const char *const paths[] = {"/dev/infiniband", "/dev/infiniband/",
		"/dev/infiniband/uverbs0", "//dev///infiniband/x", "/./dev/./infiniband",
		"/sys/class/infiniband", "/sys/class/infiniband/weft0",
		"/sys/class/infiniband_verbs", "/sys/class/infiniband_mad/x",
		"/sys/class/infiniband_cm", "/sys//class/infiniband/", "/dev/scif", "/dev/mic/scif",
		"//dev/./mic//scif", "/dev/scif/", "/dev/scif/x"};

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		assert_true(path_ours(paths[i]));
}

static void leaves_others(void **state)
{
	static const char *const paths[] = {"", "/", "dev/infiniband", "/dev", "/dev/",
		"/dev/infinibandx", "/dev/infiniban", "/sys/class/infiniband_x", "/sys/class",
		"/sys/class/net", "/devinfiniband", "/sys", "/s", "/d", "/.", "/./", "/...",
		"/dev./infiniband", "/dev/mic", "/dev/mic/", "/dev/scifx", "/dev/mic/scif0",
		"/dev/mic/infiniband", "/mic/scif", "/scif", "/sys/classinfiniband", "/etc/passwd"};

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		assert_false(path_ours(paths[i]));
	assert_false(path_ours(NULL));
	assert_false(path_ours((const char *)-1));
}

struct mapping {
	const char *path;
	enum path_kind kind;
	const char *virt, *real;
};

static void maps(void **state)
{
	static const struct mapping cases[] = {
		{"/dev/infiniband", PATH_DEV_DIR, "/dev/infiniband", "/tree/dev/infiniband"},
		{"/dev/infiniband/uverbs0", PATH_DEV_NODE, "/dev/infiniband/uverbs0",
			"/tree/dev/infiniband/uverbs0"},
		{"/dev/infiniband/", PATH_DEV_DIR, "/dev/infiniband", "/tree/dev/infiniband/"},
		{"/sys//class/./infiniband/a/../b/.", PATH_SYS, "/sys/class/infiniband/b",
			"/tree/sys/class/infiniband/b/"},
		{"/sys/class/infiniband/..", PATH_OTHER, "/sys/class", "/sys/class/"},
		{"/sys/class/infiniband/../infiniband_verbs/x", PATH_SYS,
			"/sys/class/infiniband_verbs/x", "/tree/sys/class/infiniband_verbs/x"},
		{"/dev/infiniband/../../../../etc", PATH_OTHER, "/etc", "/etc"},
		{"/dev/infiniband/../..", PATH_OTHER, "/", "//"},
		{"/sys/kernel/mm/memory_peers/nv_mem/version", PATH_PEERS,
			"/sys/kernel/mm/memory_peers/nv_mem/version",
			"/tree/sys/kernel/mm/memory_peers/nv_mem/version"},
		{"/sys/kernel/mm/memory_peers/..", PATH_OTHER, "/sys/kernel/mm", "/sys/kernel/mm/"},
		{"/sys/module/nvidia_peermem/version", PATH_PEERS,
			"/sys/module/nvidia_peermem/version",
			"/tree/sys/module/nvidia_peermem/version"},
		{"/sys/module/nv_peer_mem", PATH_PEERS, "/sys/module/nv_peer_mem",
			"/tree/sys/module/nv_peer_mem"},
		{"/dev/scif", PATH_SCIF, "/dev/scif", "/dev/null"},
		{"/dev//mic/./scif", PATH_SCIF, "/dev/mic/scif", "/dev/null"},
		{"/dev/scif/../mic/scif/", PATH_SCIF, "/dev/mic/scif", "/dev/null/"},
		{"/dev/scif/x", PATH_SCIF, "/dev/scif/x", "/dev/null/x"},
		{"/dev/scif/../null", PATH_OTHER, "/dev/null", "/dev/null"},
	};
	struct path_mapped m;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(path_ours(cases[i].path));
		assert_int_equal(path_map_to("/tree", cases[i].path, &m), 0);
		assert_int_equal(m.kind, cases[i].kind);
		assert_string_equal(m.virt, cases[i].virt);
		assert_string_equal(m.real, cases[i].real);
	}
}

static void refuses_long_ones(void **state)
{
	char path[2 * PATH_MAX] = "/dev/infiniband/";
	struct path_mapped m;

	(void)state;
	memset(path + 16, 'x', PATH_MAX - 18);
	assert_int_equal(path_map_to("/tree", path, &m), -ENAMETOOLONG);
	memset(path + 16, 'x', sizeof path - 17);
	assert_int_equal(path_map_to("", path, &m), -ENAMETOOLONG);
	memset(path + 16, '/', sizeof path - 17);
	assert_int_equal(path_map_to("/tree", path, &m), 0);
	assert_string_equal(m.real, "/tree/dev/infiniband/");
}

/* What lies in the tree is shown as the program knows it, and nothing else. */
static void shows_what_is_outside(void **state)
{
	static const struct {
		const char *real, *seen;
	} c[] = {{"/tree/sys/class/infiniband", "/sys/class/infiniband"}, {"/tree", "/"},
		{"/trees", "/trees"}, {"/sys/class/net", "/sys/class/net"}, {"/", "/"}};
	char path[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		strcpy(path, c[i].real);
		path_outside("/tree", path);
		assert_string_equal(path, c[i].seen);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_ours),
		cmocka_unit_test(leaves_others),
		cmocka_unit_test(maps),
		cmocka_unit_test(shows_what_is_outside),
		cmocka_unit_test(refuses_long_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
