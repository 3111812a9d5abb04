// SPDX-License-Identifier: BSD-3-Clause
/*
 * Windows over memory that their owner shares already (POSIX and System V shared memory, anonymous
 * memory, memfds, files), and windows above 1 GiB: mapped by the peer like any other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/scif_ends.h"
#include "tests/lib/shared_memory.h"

enum { PAGE = 4096, LEN = 16 * PAGE, OFF = 0x100000, OTHER = 0x800000, WAIT_MS = 10000 };
enum { READ = SCIF_PROT_READ, WRITE = SCIF_PROT_WRITE, BOTH = READ | WRITE };

static bool opens_mapped;

static bool mappable(const struct shared_kind *k)
{
	return scif_can_map() && (!k->hidden || opens_mapped);
}

/* Pages at m, and the window of e at OFF, are the same as those of the owner at p. */
static void same_pages(scif_epd_t e, uint8_t *m, uint8_t *p)
{
	uint8_t got[8];

	m[1] = 77;
	p[LEN - 1] = 78;
	CHECK_EQ(p[1], 77);
	CHECK_EQ(m[LEN - 1], 78);
	CHECK_EQ(scif_vwriteto(e, "rma", 4, OFF + PAGE, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(m + PAGE, "rma", 4), 0);
	CHECK_EQ(memcmp(p + PAGE, "rma", 4), 0);
	memcpy(m + 2 * PAGE, "store", 6);
	CHECK_EQ(scif_vreadfrom(e, got, 6, OFF + 2 * PAGE, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(got, "store", 6), 0);
}

static void same_process(const struct shared_kind *k)
{
	struct scif_pair p = scif_make_pair();
	struct scif_range *r;
	uint8_t *a, *m;
	int fd;

	check_case("%s", k->name);
	a = k->make(LEN, &fd);
	pattern_fill(a, LEN, 1);
	CHECK_EQ(scif_register(p.a, a, LEN, OFF, BOTH, SCIF_MAP_FIXED), OFF);
	m = scif_mmap(NULL, LEN, BOTH, 0, p.b, OFF);
	if (!mappable(k)) {
		CHECK(m == SCIF_MMAP_FAILED && errno == EOPNOTSUPP);
	} else if (CHECK(m != SCIF_MMAP_FAILED)) {
		CHECK_EQ(pattern_match(m, LEN, 1), LEN);
		same_pages(p.b, m, a);
		CHECK_EQ(scif_get_pages(p.b, OFF + PAGE, PAGE, &r), 0);
		CHECK_EQ(memcmp(r->va[0], "rma", 4), 0);
		CHECK_EQ(scif_put_pages(r), 0);
		/* it outlives the window */
		CHECK_EQ(scif_unregister(p.a, OFF, LEN), 0);
		a[3] = 33;
		CHECK_EQ(m[3], 33);
		CHECK_EQ(scif_munmap(m, LEN), 0);
	}
	scif_end_pair(&p);
	munmap(a, LEN);
	close(fd);
}

static const struct shared_kind *peers_kind;

/* It maps a window of the other process, which has unmapped its memory meanwhile. */
static void peer(int in, int out)
{
	scif_epd_t e = scif_dial(0, scif_hear(in));
	uint8_t *m;

	scif_hear(in);
	m = scif_mmap(NULL, LEN, BOTH, 0, e, OFF);
	if (!mappable(peers_kind)) {
		CHECK(m == SCIF_MMAP_FAILED && errno == EOPNOTSUPP);
	} else if (CHECK_EQ(m == SCIF_MMAP_FAILED ? errno : 0, 0)) {
		CHECK_EQ(pattern_match(m, LEN, 1), LEN);
		pattern_fill(m, LEN, 2);
		CHECK_EQ(scif_mmap(m + PAGE, PAGE, READ, SCIF_MAP_FIXED, e, OFF) == m + PAGE, 1);
		CHECK_EQ(pattern_match(m + PAGE, PAGE, 2), PAGE);
	}
	scif_tell(out, 1);
	scif_hear(in);
	CHECK_EQ(scif_close(e), 0);
}

static void other_process(const struct shared_kind *k, bool unmaps)
{
	struct scif_portID from;
	struct scif_child c;
	uint8_t *a, *m = scif_pages(LEN);
	scif_epd_t l, e;
	uint16_t port;
	int fd, status;

	check_case("%s, another process%s", k->name, unmaps ? ", unmapped" : ", a fork");
	peers_kind = k;
	c = scif_fork(peer);
	a = k->make(LEN, &fd);
	pattern_fill(a, LEN, 1);
	l = scif_listener(1, &port);
	scif_tell(c.to, port);
	CHECK_EQ(scif_accept(l, &from, &e, SCIF_ACCEPT_SYNC), 0);
	CHECK_EQ(scif_register(e, a, LEN, OFF, BOTH, SCIF_MAP_FIXED), OFF);
	if (unmaps) {
		munmap(a, LEN);
	} else if (!fork()) { /* a relative, who shares it as ever */
		_exit(pattern_match(a, LEN, 1) != LEN);
	} else {
		wait(&status);
		CHECK_EQ(status, 0);
	}
	scif_tell(c.to, 1);
	scif_hear(c.from);
	if (mappable(k)) {
		/* the window is the same, whoever looks */
		CHECK_EQ(scif_register(e, m, LEN, OTHER, BOTH, SCIF_MAP_FIXED), OTHER);
		if (!unmaps)
			CHECK_EQ(pattern_match(a, LEN, 2), LEN);
	}
	scif_tell(c.to, 1);
	scif_join(&c);
	scif_close(e);
	scif_close(l);
	if (!unmaps)
		munmap(a, LEN);
	close(fd);
	munmap(m, LEN);
}

/* More than a gigabyte, of which little is used: of a file, and moved pages of our own. */
static void large(bool shared)
{
	const size_t len = (1ul << 30) + LEN;
	struct scif_pair p = scif_make_pair();
	uint8_t *a, *m;
	int fd = -1;

	check_case("above 1 GiB, %s", shared ? "shared" : "private");
	a = shared ? shared_kinds[SHARED_MEMFD].make(len, &fd) : scif_pages(len);
	a[len - 1] = 5;
	CHECK_EQ(scif_register(p.a, a, len, OFF, BOTH, SCIF_MAP_FIXED), OFF);
	m = scif_mmap(NULL, len, BOTH, 0, p.b, OFF);
	if (CHECK(m != SCIF_MMAP_FAILED)) {
		CHECK_EQ(m[len - 1], 5);
		same_pages(p.b, m, a);
		m[len - 2] = 6;
		CHECK_EQ(a[len - 2], 6);
		CHECK_EQ(scif_munmap(m, len), 0);
	}
	scif_end_pair(&p);
	munmap(a, len);
	close(fd);
}

static bool has_memory(void)
{
	if (sysconf(_SC_AVPHYS_PAGES) > (4l << 30) / PAGE)
		return true;
	printf("less than 4 GiB of free memory\n");
	return false;
}

int main(int argc, char **argv)
{
	opens_mapped = can_open_mapped();
	if (argc > 1 && !strcmp(argv[1], "large")) {
		if (!scif_can_map() || !has_memory())
			return 77;
		large(false);
		return check_result();
	}
	for (unsigned i = 0; i < SHARED_KINDS; i++) {
		other_process(&shared_kinds[i], true); /* forks: before there are threads */
		other_process(&shared_kinds[i], false);
	}
	for (unsigned i = 0; i < SHARED_KINDS; i++)
		same_process(&shared_kinds[i]);
	if (scif_can_map())
		large(true);
	return check_result();
}
