// SPDX-License-Identifier: BSD-3-Clause
/*
 * <weft/share.h> with memory that its owner shares already: POSIX and System V shared memory,
 * anonymous memory, memfds and files.  It stays what it is, and where it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/share_peer.h"
#include "tests/lib/share_status.h"
#include "tests/lib/shared_memory.h"
#include "tests/lib/weftd_from_outside.h"

enum { PAGE = 4096, PAGES = 40, LEN = PAGES * PAGE, SKIP = 3 * PAGE, RW = PROT_READ | PROT_WRITE };

static struct ibv_context *ctx;
static bool opens_mapped;

static struct weft_share *export(uint8_t *p, size_t len, int prot, struct weft_share_handle *h)
{
	struct weft_share *s = weft_share_export(ctx, p, len, prot, h);

	if (!s)
		printf("%s\n", strerror(errno));
	CHECK(s);
	return s;
}

/* Both see what either writes, in the middle of the object, also where the peer asks for a place.
 */
static void seen_by_both(const struct shared_kind *k, const struct vp_child *c)
{
	struct weft_share_handle h;
	struct weft_share *s;
	uint8_t *p, *q;
	int fd, error;

	check_case("%s", k->name);
	p = k->make(LEN, &fd);
	memset(p, 1, LEN);
	if (k->hidden && !opens_mapped) {
		CHECK(!weft_share_export(ctx, p, LEN, RW, &h) && errno == EOPNOTSUPP);
		munmap(p, LEN);
		return;
	}
	s = export(p + SKIP, LEN - 2 * SKIP, RW, &h);
	if (!s)
		return;
	q = share_peer_maps(c, &h, PAGE, LEN - 2 * SKIP - PAGE);
	CHECK(share_peer_sees(c, q, LEN - 2 * SKIP - PAGE, 1));
	share_peer_fills(c, q, PAGE, 2);
	CHECK(pattern_all(p + SKIP + PAGE, PAGE, 2));
	CHECK(pattern_all(p, SKIP + PAGE, 1));
	p[SKIP + PAGE] = 3;
	CHECK(share_peer_sees(c, q, 1, 3));
	CHECK_EQ(share_peer_error(c, &h, 0, LEN, RW), ENXIO);
	CHECK_EQ(share_peer_unmaps(c, q, PAGE), 0);
	CHECK(share_peer_sees(c, q + PAGE, PAGE, 1));
	CHECK(share_peer_places(c, &h, PAGE, PAGE, WEFT_SHARE_NOREPLACE, q, &error) == q);
	CHECK(share_peer_sees(c, q + 1, PAGE - 1, 2));
	CHECK(!share_peer_places(c, &h, 0, PAGE, WEFT_SHARE_NOREPLACE, q, &error));
	CHECK_EQ(error, EEXIST);
	CHECK(share_peer_places(c, &h, 0, PAGE, WEFT_SHARE_FIXED, q, &error) == q);
	CHECK(share_peer_sees(c, q, PAGE, 1));

	/* it ends: who has it keeps it, whatever becomes of the owner's mapping */
	CHECK_EQ(share_count("shared_objects"), 1);
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(share_peer_error(c, &h, 0, PAGE, RW), ESTALE);
	p[SKIP + 2 * PAGE] = 4;
	munmap(p, LEN);
	CHECK(share_peer_sees(c, q + PAGE, 1, 4));
	CHECK_EQ(share_peer_unmaps(c, q, LEN), 0);
	if (fd >= 0)
		CHECK_EQ(ftruncate(fd, PAGE), k->seals ? -1 : 0);
	close(fd);
}

/* Readers get a mapping for readers, of a descriptor for readers, too. */
static void readers(const struct vp_child *c)
{
	char path[] = "/tmp/weft-test-XXXXXX";
	struct weft_share_handle h;
	struct weft_share *s;
	uint8_t *p, *q;
	int fd;

	check_case("readers");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0 || ftruncate(fd, LEN) || pwrite(fd, "abc", 3, PAGE) != 3)
		die("mkostemp");
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
	p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(!weft_share_export(ctx, p, LEN, RW, &h) && errno == EOPNOTSUPP);
	s = export(p, LEN, PROT_READ, &h);
	if (!s)
		return;
	CHECK_EQ(share_peer_error(c, &h, PAGE, PAGE, RW), EACCES);
	/* the owner itself */
	q = weft_share_map(ctx, &h, PAGE, PAGE, PROT_READ, 0, NULL);
	CHECK(q && memcmp(q, "abc", 3) == 0);
	CHECK_EQ(weft_share_unmap(q, PAGE), 0);
	CHECK_EQ(weft_share_close(s), 0);
	munmap(p, LEN);
	close(fd);
}

/* Not taken away from who has it, and a fork shares it as ever. */
static void revoked_and_forked(const struct vp_child *c)
{
	struct weft_share_handle h;
	struct weft_share *s;
	uint8_t *p, *q;
	int fd, st;

	check_case("revoked and forked");
	p = shared_kinds[SHARED_UNLINKED].make(LEN, &fd);
	s = export(p, LEN, RW, &h);
	q = share_peer_maps(c, &h, 0, LEN);
	if (!fork()) {
		memset(p, 9, LEN);
		_exit(0);
	}
	wait(&st);
	CHECK(share_peer_sees(c, q, LEN, 9));
	CHECK_EQ(weft_share_revoke(s), EBUSY);
	CHECK_EQ(share_peer_error(c, &h, 0, PAGE, RW), ESTALE);
	share_peer_fills(c, q, LEN, 8);
	CHECK(pattern_all(p, LEN, 8));
	CHECK_EQ(share_peer_unmaps(c, q, LEN), 0);
	s = export(p, LEN, RW, &h);
	CHECK_EQ(weft_share_revoke(s), 0);
	CHECK_EQ(share_count("shared_objects"), 0);
	munmap(p, LEN);
	close(fd);
}

/* A region on the same memory, which peers map if it cannot become shorter: sealed from now on. */
static void registered(const struct vp_child *c)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct weft_share_handle h;
	struct weft_share *s;
	struct ibv_mr *mr;
	uint8_t *p, *q;
	int fd;

	check_case("registered, too");
	p = shared_kinds[SHARED_SEALABLE].make(LEN, &fd);
	s = export(p, LEN, RW, &h);
	mr = ibv_reg_mr(pd, p + PAGE, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr);
	CHECK_EQ(share_count("shared_objects"), 1);
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(share_count("shared_objects"), 1);
	s = export(p, LEN, RW, &h);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	q = share_peer_maps(c, &h, 0, LEN);
	share_peer_fills(c, q, LEN, 7);
	CHECK(pattern_all(p, LEN, 7));
	CHECK_EQ(share_peer_unmaps(c, q, LEN), 0);
	CHECK_EQ(weft_share_close(s), 0);
	CHECK_EQ(share_count("shared_objects"), 0);
	ibv_dealloc_pd(pd);
	munmap(p, LEN);
	close(fd);
}

/* A peer that comes after weftd died finds it, as soon as we have published it again. */
static void weftd_dies(const struct vp_child *c)
{
	struct weft_share_handle h;
	struct weft_share *s;
	uint8_t *p, *q, *other;
	int fd, other_fd;

	check_case("weftd dies");
	p = shared_kinds[SHARED_UNLINKED].make(LEN, &fd);
	other = shared_kinds[SHARED_MEMFD].make(LEN, &other_fd);
	s = export(p, LEN, RW, &h);
	weftd_kill(weftd_pid());
	/* the next that we have to tell it tells it all */
	CHECK_EQ(weft_share_close(export(other, LEN, RW, &(struct weft_share_handle){0})), 0);
	q = share_peer_maps(c, &h, 0, LEN);
	share_peer_fills(c, q, LEN, 6);
	CHECK(pattern_all(p, LEN, 6));
	CHECK_EQ(share_peer_unmaps(c, q, LEN), 0);
	CHECK_EQ(weft_share_close(s), 0);
	munmap(p, LEN);
	close(fd);
}

int main(void)
{
	const char *share = getenv("WEFT_SHARE");
	struct vp_child c;

	if (share && !strcmp(share, "never")) {
		printf("WEFT_SHARE is never\n");
		return 77;
	}
	c = share_peer();
	ctx = vp_open();
	opens_mapped = can_open_mapped();
	for (unsigned i = 0; i < SHARED_KINDS; i++)
		seen_by_both(&shared_kinds[i], &c);
	readers(&c);
	revoked_and_forked(&c);
	registered(&c);
	weftd_dies(&c);
	share_peer_ends(&c);
	return check_result();
}
