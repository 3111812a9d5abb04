// SPDX-License-Identifier: BSD-3-Clause
/*
 * What is counted of peer clients: the eight files, summed over processes, of which some have
 * ended; the modules that libraries look for; weft status.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/peer_device.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

#define DIRECTORY "/sys/kernel/mm/memory_peers/"

enum { SIZE = 1 << 20, LENGTH = 300000, PIECES = 2, REGIONS = 3, TIMES = 70 };

/* The content of a file, without its newline; "" if it cannot be read. */
static const char *content(const char *path)
{
	static char text[128];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static void check_count(const char *file, long want)
{
	char path[256];

	snprintf(path, sizeof path, DIRECTORY "nv_mem/%s", file);
	check_case("%s", file);
	CHECK_EQ(atol(content(path)), want);
	CHECK(*content(path));
}

static void check_counts(long regions, long gone, long taken)
{
	check_count("num_alloc_mrs", regions);
	check_count("num_dealloc_mrs", gone);
	check_count("num_reg_pages", PIECES * regions);
	check_count("num_dereg_pages", PIECES * gone);
	check_count("num_reg_bytes", LENGTH * regions);
	check_count("num_dereg_bytes", LENGTH * gone);
	check_count("num_free_callbacks", taken);
}

static void make_regions(struct ibv_mr **mr)
{
	struct ibv_pd *pd = ibv_alloc_pd(vp_open());

	for (int i = 0; i < REGIONS; i++)
		CHECK((mr[i] = ibv_reg_mr(pd, peer_device.addr, LENGTH, 0)) != NULL);
}

/* Ends with one of three regions. */
static void other(int fd, void *arg)
{
	struct ibv_mr *mr[REGIONS];

	(void)arg;
	if (!peer_device_open("nv_mem", SIZE, 0))
		die("the client was refused");
	make_regions(mr);
	CHECK_EQ(peer_device_take(peer_device.last), 0);
	CHECK_EQ(ibv_dereg_mr(mr[0]), 0);
	vp_sync(fd);
	vp_sync(fd);
}

static void check_files(void)
{
	DIR *dir = opendir(DIRECTORY "nv_mem");
	int n = 0;

	check_case("files");
	CHECK(dir != NULL);
	for (const struct dirent *d; dir && (d = readdir(dir));)
		n += d->d_name[0] != '.';
	CHECK_EQ(n, 8);
	if (dir)
		closedir(dir);
	CHECK(!strcmp(content(DIRECTORY "nv_mem/version"), "2.5"));
	CHECK(!strcmp(content("/sys/module/nvidia_peermem/version"), "2.5"));
	CHECK(!strcmp(content("/sys/module/nv_peer_mem/version"), "2.5"));
	CHECK_FAILS(access(DIRECTORY "other/version", F_OK), ENOENT);
	CHECK_FAILS(open(DIRECTORY "nv_mem/version", O_WRONLY), EACCES);
}

static void check_status(void)
{
	check_case("weft status");
	CHECK_EQ(peer_counter("nv_mem", "processes"), 1);
	CHECK_EQ(peer_counter("nv_mem", "num_alloc_mrs"), 2 * REGIONS);
	CHECK_EQ(peer_counter("nv_mem", "stale_callbacks"), 1);
	CHECK_EQ(peer_counter("another", "processes"), -1);
}

/* More often than a process has room for clients; and a name with a space is a whole one. */
static void comes_again(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(vp_open());

	for (int i = 0; i < TIMES; i++) {
		struct ibv_mr *mr;

		peer_device_close();
		if (!peer_device_open("my device", SIZE, 0))
			die("the client was refused");
		mr = ibv_reg_mr(pd, peer_device.addr, LENGTH, 0);
		CHECK(mr != NULL);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	check_case("a client that comes again");
	CHECK_EQ(atol(content(DIRECTORY "my device/num_alloc_mrs")), TIMES);
	CHECK_EQ(atol(content(DIRECTORY "my device/num_dealloc_mrs")), TIMES);
	CHECK_FAILS(access(DIRECTORY "my/version", F_OK), ENOENT);
}

int main(void)
{
	struct ibv_mr *mr[REGIONS];
	struct vp_child c;

	check_case("nobody yet");
	CHECK_FAILS(access(DIRECTORY "nv_mem/version", F_OK), ENOENT);
	CHECK_FAILS(access("/sys/module/nvidia_peermem/version", F_OK), ENOENT);
	c = vp_fork(other, NULL);
	vp_sync(c.fd);
	check_counts(REGIONS, 2, 1);
	vp_sync(c.fd);
	vp_join(&c);
	while (peer_counter("nv_mem", "processes"))
		usleep(1000); /* weftd hears of its end */
	if (!peer_device_open("nv_mem", SIZE, 0))
		die("the client was refused");
	make_regions(mr);
	check_counts(2 * REGIONS, REGIONS, 1); /* what it left has ended with it */
	check_files();
	for (int i = 0; i < REGIONS; i++)
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
	check_counts(2 * REGIONS, 2 * REGIONS, 1);
	CHECK_EQ(peer_device_take(12345), 0);
	check_counts(2 * REGIONS, 2 * REGIONS, 2);
	check_status();
	comes_again();
	return check_result();
}
