// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/sysfs.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>

#include "fabric/sysfs_hca.h"
#include "fabric/sysfs_mad.h"
#include "fabric/tree.h"

enum { REMOVE_FDS = 8 };

static void put_uverbs(struct tree *t, const struct fabric_page *page)
{
	tree_dir(t, "sys/class/infiniband_verbs/uverbs0");
	tree_put(t, "sys/class/infiniband_verbs/abi_version", "6\n");
	tree_put(t, "sys/class/infiniband_verbs/uverbs0/abi_version", "1\n");
	tree_put(t, "sys/class/infiniband_verbs/uverbs0/ibdev", "%.63s\n", page->device);
	tree_put(t, "sys/class/infiniband_verbs/uverbs0/dev", "%d:%d\n", SYSFS_MAJOR,
		SYSFS_UVERBS_MINOR);
	tree_link(t, "sys/class/infiniband_verbs/uverbs0/device",
		tree_path("../../infiniband/%.63s/device", page->device).s);
	tree_link(t, "dev/infiniband/uverbs0", "/dev/null");
}

int sysfs_write(int at, const char *dir, const struct fabric_page *page)
{
	static const char *const top[] = {"sys", "sys/class", "sys/class/infiniband",
		"sys/class/infiniband_verbs", "dev", "dev/infiniband"};
	struct tree t;
	int rc = tree_open(&t, at, dir);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof top / sizeof *top; i++)
		tree_dir(&t, top[i]);
	sysfs_put_hca(&t, page);
	if (page->node_type != FABRIC_SWITCH)
		put_uverbs(&t, page);
	sysfs_put_mad(&t, page);
	return tree_close(&t);
}

int sysfs_write_counters(int at, const char *dir, const char *device, uint32_t port,
	const struct sysfs_counter *counter, size_t n)
{
	struct tree t;
	int rc = tree_open(&t, at, dir);

	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++)
		tree_put(&t,
			tree_path("sys/class/infiniband/%.63s/ports/%u/%s", device, port,
				counter[i].file)
				.s,
			"%" PRIu64 "\n", counter[i].value);
	return tree_close(&t);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) && errno != ENOENT ? -1 : 0;
}

int sysfs_remove(const char *dir)
{
	if (nftw(dir, remove_one, REMOVE_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT))
		return errno == ENOENT ? 0 : -errno;
	return 0;
}
