// SPDX-License-Identifier: BSD-3-Clause
/* The tree of device files: first writing, changes, and what stays untouched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/sysfs.h"

static char top[] = "/tmp/weft-sysfs-test-XXXXXX";
static char tree[PATH_MAX];
static struct fabric_page page;

static const char *at(const char *rel)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", tree, rel);
	return path;
}

/* Content of a file of the HCA, or NULL. */
static const char *get(const char *rel)
{
	static char text[2048];
	char path[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "sys/class/infiniband/weft0/%s", rel);
	fd = open(at(path), O_RDONLY);
	if (fd < 0)
		return NULL;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* Whether a file of the HCA is there and answers EINVAL when it is read. */
static bool is_invalid(const char *rel)
{
	char path[256], text[16];
	int fd, err;

	snprintf(path, sizeof path, "sys/class/infiniband/weft0/%s", rel);
	fd = open(at(path), O_RDONLY);
	if (fd < 0)
		return false;
	err = read(fd, text, sizeof text) < 0 ? errno : 0;
	close(fd);
	return err == EINVAL;
}

static ino_t inode(const char *rel)
{
	struct stat st;

	assert_int_equal(lstat(at(rel), &st), 0);
	return st.st_ino;
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(top))
		return -1;
	snprintf(tree, sizeof tree, "%s/tree", top);
	strcpy(page.device, "weft0");
	page.node_guid = htobe64(0x0123456789abcdef);
	page.n_ports = 1;
	page.port[0] = (struct fabric_port){.state = 4,
		.cap_mask = PORT_CAP_CM,
		.phys_state = 5,
		.link_layer = 2,
		.active_width = 2,
		.active_speed = 32,
		.n_gids = 1,
		.n_pkeys = 1,
		.pkey = {0xffff}};
	page.port[0].gid[0] = (struct fabric_gid){
		.raw = {0xfe, 0x80, [15] = 7}, .ifindex = 1, .type = 2, .ifname = "lo"};
	return sysfs_write(AT_FDCWD, tree, &page);
}

static int teardown(void **state)
{
	(void)state;
	return sysfs_remove(tree) || rmdir(top);
}

static void first_values(void **state)
{
	struct stat st;

	(void)state;
	assert_string_equal(get("node_type"), "1: CA\n");
	assert_string_equal(get("node_guid"), "0123:4567:89ab:cdef\n");
	assert_string_equal(get("fw_ver"), WEFT_VERSION "\n");
	assert_string_equal(get("ports/1/state"), "4: ACTIVE\n");
	assert_string_equal(get("ports/1/phys_state"), "5: LinkUp\n");
	assert_string_equal(get("ports/1/link_layer"), "Ethernet\n");
	assert_string_equal(get("ports/1/rate"), "100 Gb/sec (4X EDR)\n");
	assert_string_equal(get("ports/1/pkeys/0"), "0xffff\n");
	assert_null(get("ports/1/pkeys/1"));
	assert_string_equal(get("ports/1/gids/0"), "fe80:0000:0000:0000:0000:0000:0000:0007\n");
	assert_string_equal(get("ports/1/gids/255"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
	assert_null(get("ports/1/gids/256"));
	assert_string_equal(get("ports/1/gid_attrs/types/0"), "RoCE v2\n");
	assert_string_equal(get("ports/1/gid_attrs/ndevs/0"), "lo\n");
	assert_true(is_invalid("ports/1/gid_attrs/types/1"));
	assert_true(is_invalid("ports/1/gid_attrs/ndevs/1"));
	assert_true(is_invalid("ports/1/gid_attrs/types/255"));
	assert_null(get("ports/1/gid_attrs/types/256"));
	assert_int_equal(stat(at("dev/infiniband/uverbs0"), &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(stat(at("sys/class/infiniband/weft0/node_type"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0444);
}

static void leads_to(const char *rel, const char *target)
{
	char path[PATH_MAX], want[PATH_MAX];

	assert_non_null(realpath(at(target), want));
	assert_non_null(realpath(at(rel), path));
	assert_string_equal(path, want);
}

/* The entries of the classes are found below the device, too. */
static void entries_below_the_device(void **state)
{
	struct fabric_page sw = page;

	(void)state;
	leads_to(
		"sys/class/infiniband/weft0/device/infiniband/weft0", "sys/class/infiniband/weft0");
	leads_to("sys/class/infiniband_mad/umad0/device/infiniband_mad/umad0",
		"sys/class/infiniband_mad/umad0");
	leads_to("sys/class/infiniband/weft0/device/infiniband_mad/issm0",
		"sys/class/infiniband_mad/issm0");
	leads_to("sys/class/infiniband/weft0/device/infiniband_verbs/uverbs0",
		"sys/class/infiniband_verbs/uverbs0");
	strcpy(sw.device, "weft1");
	sw.node_type = FABRIC_SWITCH;
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &sw), 0);
	leads_to("sys/class/infiniband/weft1/device/infiniband_mad/umad0",
		"sys/class/infiniband_mad/umad0");
	assert_int_equal(
		access(at("sys/class/infiniband/weft1/device/infiniband_verbs"), F_OK), -1);
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &page), 0);
}

static void rates(void **state)
{
	static const struct {
		uint8_t width;
		uint16_t speed;
		const char *text;
	} cases[] = {{1, 1, "2.5 Gb/sec (1X)\n"}, {2, 1, "10 Gb/sec (4X)\n"},
		{2, 4, "40 Gb/sec (4X QDR)\n"}, {2, 16, "56 Gb/sec (4X FDR)\n"},
		{1, 32, "25 Gb/sec (1X EDR)\n"}, {2, 64, "200 Gb/sec (4X HDR)\n"},
		{16, 64, "100 Gb/sec (2X HDR)\n"}, {2, 128, "400 Gb/sec (4X NDR)\n"},
		{8, 2, "60 Gb/sec (12X DDR)\n"}, {2, 8, "40 Gb/sec (4X FDR10)\n"},
		{2, 256, "800 Gb/sec (4X XDR)\n"}, {1, 256, "200 Gb/sec (1X XDR)\n"}};
	struct fabric_page changed = page;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		changed.port[0].active_width = cases[i].width;
		changed.port[0].active_speed = cases[i].speed;
		assert_int_equal(sysfs_write(AT_FDCWD, tree, &changed), 0);
		assert_string_equal(get("ports/1/rate"), cases[i].text);
	}
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &page), 0);
}

static void only_changes_are_written(void **state)
{
	static const char state_file[] = "sys/class/infiniband/weft0/ports/1/state";
	static const char guid_file[] = "sys/class/infiniband/weft0/node_guid";
	struct fabric_page changed = page;
	ino_t old_state = inode(state_file), old_guid = inode(guid_file);
	char old[16] = "";
	int fd = open(at(state_file), O_RDONLY);

	(void)state;
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &page), 0);
	assert_int_equal(inode(state_file), old_state);
	changed.port[0].state = 1;
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &changed), 0);
	assert_string_equal(get("ports/1/state"), "1: DOWN\n");
	assert_int_equal(inode(guid_file), old_guid);
	/* A reader who opened it before has the old value, whole. */
	assert_int_equal(read(fd, old, sizeof old), 10);
	assert_memory_equal(old, "4: ACTIVE\n", 10);
	close(fd);
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &page), 0);
}

static void gids_come_and_go(void **state)
{
	struct fabric_page changed = page;

	(void)state;
	changed.port[0].gid[3] = (struct fabric_gid){
		.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .type = 2, .ifname = "weft-net0"};
	changed.port[0].gid[0] = (struct fabric_gid){0};
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &changed), 0);
	assert_string_equal(get("ports/1/gids/3"), "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
	assert_string_equal(get("ports/1/gid_attrs/ndevs/3"), "weft-net0\n");
	assert_true(is_invalid("ports/1/gid_attrs/types/0"));
	assert_true(is_invalid("ports/1/gid_attrs/ndevs/0"));
	inode("sys/class/infiniband/weft0/device/net/weft-net0");
	assert_int_equal(access(at("sys/class/infiniband/weft0/device/net/lo"), F_OK), -1);
	assert_string_equal(get("ports/1/gids/0"), "0000:0000:0000:0000:0000:0000:0000:0000\n");

	assert_int_equal(sysfs_write(AT_FDCWD, tree, &page), 0);
	assert_string_equal(get("ports/1/gids/3"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
	assert_true(is_invalid("ports/1/gid_attrs/types/3"));
	assert_string_equal(get("ports/1/gid_attrs/types/0"), "RoCE v2\n");
	assert_string_equal(get("ports/1/gid_attrs/ndevs/0"), "lo\n");
	assert_string_equal(get("ports/1/gids/0"), "fe80:0000:0000:0000:0000:0000:0000:0007\n");
	inode("sys/class/infiniband/weft0/device/net/lo");
}

static void pkeys_come_and_go(void **state)
{
	static const struct {
		uint16_t pkey;
		const char *text;
	} cases[] = {{0, "0x0000\n"}, {0x8001, "0x8001\n"}, {2, "0x0002\n"}, {0, "0x0000\n"}};
	struct fabric_page changed = page;

	(void)state;
	changed.port[0].n_pkeys = 3;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		changed.port[0].pkey[1] = cases[i].pkey;
		assert_int_equal(sysfs_write(AT_FDCWD, tree, &changed), 0);
		assert_string_equal(get("ports/1/pkeys/1"), cases[i].text);
		assert_string_equal(get("ports/1/pkeys/2"), "0x0000\n");
		assert_string_equal(get("ports/1/pkeys/0"), "0xffff\n");
	}
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &page), 0);
}

/* What a file of the tree says, NULL: there is none. */
static const char *says(const char *rel)
{
	char path[256];

	snprintf(path, sizeof path, "../../../%s", rel);
	return get(path);
}

/* A umad and an issm for each port, numbered in their order. */
static void mad_files(void **state)
{
	struct stat st;

	(void)state;
	assert_string_equal(says("class/infiniband_mad/abi_version"), "5\n");
	assert_string_equal(says("class/infiniband_mad/umad0/ibdev"), "weft0\n");
	assert_string_equal(says("class/infiniband_mad/umad0/port"), "1\n");
	assert_string_equal(says("class/infiniband_mad/umad0/dev"), "231:0\n");
	assert_string_equal(says("class/infiniband_mad/umad0/device/vendor"), "0xffffff\n");
	assert_string_equal(says("class/infiniband_mad/issm0/ibdev"), "weft0\n");
	assert_string_equal(says("class/infiniband_mad/issm0/port"), "1\n");
	assert_string_equal(says("class/infiniband_mad/issm0/dev"), "231:64\n");
	assert_int_equal(stat(at("dev/infiniband/umad0"), &st), 0);
	assert_int_equal(stat(at("dev/infiniband/issm0"), &st), 0);
	assert_null(says("class/infiniband_mad/umad1/port"));
	assert_int_equal(stat(at("dev/infiniband/umad1"), &st), -1);
}

/* A second port has a tree of its own, with what its own tables say. */
static void two_ports(void **state)
{
	struct fabric_page two = page;

	(void)state;
	assert_null(get("ports/2/state"));
	two.n_ports = 2;
	two.port[1] = (struct fabric_port){.state = 2,
		.link_layer = 1,
		.lid = 0x1c,
		.lmc = 3,
		.sm_lid = 1,
		.sm_sl = 5,
		.cap_mask = 0x0251486a,
		.n_pkeys = 2,
		.pkey = {0xffff, 0x8001}};
	two.port[1].gid[0] = (struct fabric_gid){.raw = {0xfe, 0x80, [15] = 8}, .ifname = "ib1"};
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &two), 0);
	assert_string_equal(get("ports/1/state"), "4: ACTIVE\n");
	assert_string_equal(get("ports/1/lid_mask_count"), "0\n");
	assert_string_equal(get("ports/1/cap_mask"), "0x00010000\n");
	assert_string_equal(get("ports/2/state"), "2: INIT\n");
	assert_string_equal(get("ports/2/link_layer"), "InfiniBand\n");
	assert_string_equal(get("ports/2/lid"), "0x1c\n");
	assert_string_equal(get("ports/2/lid_mask_count"), "3\n");
	assert_string_equal(get("ports/2/sm_lid"), "0x1\n");
	assert_string_equal(get("ports/2/sm_sl"), "5\n");
	assert_string_equal(get("ports/2/cap_mask"), "0x0251486a\n");
	assert_string_equal(get("ports/2/pkeys/1"), "0x8001\n");
	assert_string_equal(get("ports/2/gids/0"), "fe80:0000:0000:0000:0000:0000:0000:0008\n");
	inode("sys/class/infiniband/weft0/device/net/lo");
	inode("sys/class/infiniband/weft0/device/net/ib1");
	assert_string_equal(says("class/infiniband_mad/umad0/port"), "1\n");
	assert_string_equal(says("class/infiniband_mad/umad1/port"), "2\n");
	assert_string_equal(says("class/infiniband_mad/umad1/dev"), "231:1\n");
	assert_string_equal(says("class/infiniband_mad/issm1/dev"), "231:65\n");
	inode("dev/infiniband/issm1");
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &page), 0);
}

/* A page that says it has more ports than there can be has two. */
static void page_ports(void **state)
{
	static struct fabric_page odd;
	struct fabric_port port;

	(void)state;
	odd = page;
	odd.n_ports = UINT32_MAX;
	assert_ptr_equal(fabric_port(&odd, 2), &odd.port[1]);
	assert_null(fabric_port(&odd, 3));
	assert_null(fabric_port(&odd, 0));
	assert_null(fabric_port(&page, 2));
	assert_int_equal(fabric_read_port(&page, 2, &port), -EINVAL);
	assert_int_equal(fabric_read_port(&page, 1, &port), 0);
	assert_memory_equal(&port, &page.port[0], sizeof port);
	memset(&odd, 0xa5, sizeof odd);
	fabric_read_node(&page, &odd);
	assert_memory_equal(&odd, &page, offsetof(struct fabric_page, port));
	assert_int_equal(odd.port[0].state, 0xa5);
}

/* A full table of ours, and names that are not the kernel's own, do no harm. */
static void hostile_page(void **state)
{
	struct fabric_page odd = page;

	(void)state;
	memset(odd.port[0].gid, 0xff, sizeof odd.port[0].gid);
	odd.port[0].n_gids = odd.port[0].n_pkeys = UINT32_MAX;
	odd.port[0].state = odd.port[0].phys_state = odd.port[0].active_speed = 0xff;
	memcpy(odd.port[0].gid[1].ifname, "../../../../evil", 16);
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &odd), 0);
	assert_string_equal(get("ports/1/state"), "255: NOP\n");
	assert_int_equal(access(at("evil"), F_OK), -1);
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &page), 0);
	assert_true(is_invalid("ports/1/gid_attrs/types/255"));
}

/* What a writer that was killed left behind does not stop the next. */
static void leftovers(void **state)
{
	struct fabric_page changed = page;

	(void)state;
	assert_int_equal(symlink("/nowhere", at(".new")), 0);
	changed.port[0].state = 2;
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &changed), 0);
	assert_string_equal(get("ports/1/state"), "2: INIT\n");
	assert_int_equal(access("/nowhere", F_OK), -1);
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &page), 0);
	assert_int_equal(faccessat(AT_FDCWD, at(".new"), F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

/* What was counted stays where the device changes. */
static void counted(void **state)
{
	static const struct sysfs_counter some[] = {
		{"counters/port_xmit_packets", 1ull << 40}, {"hw_counters/sent_pkts", 7}};
	struct fabric_page changed = page;

	(void)state;
	assert_string_equal(get("ports/1/counters/port_xmit_packets"), "0\n");
	assert_int_equal(sysfs_write_counters(AT_FDCWD, tree, "weft0", 1, some, 2), 0);
	changed.port[0].lid++;
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &changed), 0);
	assert_string_equal(get("ports/1/counters/port_xmit_packets"), "1099511627776\n");
	assert_string_equal(get("ports/1/hw_counters/sent_pkts"), "7\n");
	assert_string_equal(get("ports/1/counters/port_rcv_packets"), "0\n");
	assert_int_equal(sysfs_write(AT_FDCWD, tree, &page), 0);
}

static void failures(void **state)
{
	char none[2 * PATH_MAX];

	(void)state;
	snprintf(none, sizeof none, "%s/none/tree", top);
	assert_int_equal(sysfs_write(AT_FDCWD, none, &page), -ENOENT);
	assert_int_equal(sysfs_write(AT_FDCWD, "/dev/null", &page), -ENOTDIR);
	assert_int_equal(sysfs_remove(none), 0);
}

/* Written into a folder that was there, and into one that was not, where less is looked for. */
static void fresh_or_not(void **state)
{
	char made[PATH_MAX], was[PATH_MAX], diff[3 * PATH_MAX];

	(void)state;
	snprintf(made, sizeof made, "%s/made", top);
	snprintf(was, sizeof was, "%s/was", top);
	assert_int_equal(mkdir(was, 0755), 0);
	assert_int_equal(sysfs_write(AT_FDCWD, was, &page), 0);
	assert_int_equal(sysfs_write(AT_FDCWD, made, &page), 0);
	snprintf(diff, sizeof diff, "diff -r --no-dereference %s %s", was, made);
	assert_int_equal(system(diff), 0);
	assert_int_equal(sysfs_remove(made), 0);
	assert_int_equal(sysfs_remove(was), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_values),
		cmocka_unit_test(entries_below_the_device),
		cmocka_unit_test(rates),
		cmocka_unit_test(only_changes_are_written),
		cmocka_unit_test(gids_come_and_go),
		cmocka_unit_test(pkeys_come_and_go),
		cmocka_unit_test(fresh_or_not),
		cmocka_unit_test(mad_files),
		cmocka_unit_test(two_ports),
		cmocka_unit_test(page_ports),
		cmocka_unit_test(hostile_page),
		cmocka_unit_test(leftovers),
		cmocka_unit_test(counted),
		cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
