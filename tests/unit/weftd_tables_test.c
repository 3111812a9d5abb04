// SPDX-License-Identifier: BSD-3-Clause
/* weftd's leases, timers, lists of members, and the processes that ended last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/tables/ended.h"
#include "daemon/tables/leases.h"
#include "daemon/tables/members.h"
#include "daemon/tables/timers.h"

static struct leases *leases_new(void)
{
	struct leases *l = calloc(1, sizeof *l);

	l->claims.file = -1;
	return l;
}

/* With all sockets that it has. */
static void leases_free(struct leases *l)
{
	for (uint32_t n = 0; n < CLAIMS; n++)
		if (claims_socket(&l->claims, n) >= 0)
			close(claims_socket(&l->claims, n));
	free(l);
}

static void lease_life(void **state)
{
	struct leases *l = leases_new();
	int a, b;

	(void)state;
	a = lease_take(l, 7);
	b = lease_take(l, 8);
	assert_true(a > 0 && b > 0);
	assert_int_not_equal(a, b);
	assert_int_equal(lease_owner(l, a * LEASE_QPNS + LEASE_QPNS - 1), 7);
	assert_int_equal(lease_owner(l, b * LEASE_QPNS), 8);
	assert_int_equal(lease_owner(l, ~0u), 0);
	assert_true(lease_is_ours(l, a * LEASE_QPNS));
	assert_int_equal(lease_return(l, a, 8), -ENOENT);
	assert_int_equal(lease_return(l, a, 7), 0);
	assert_int_equal(lease_owner(l, a * LEASE_QPNS), 0);
	lease_drop(l, 8);
	assert_int_equal(l->count, 0);
	leases_free(l);
}

/* Nobody else can take a claim while it is held, rests, or a duplicate of it lives. */
static void claims_are_ones_own(void **state)
{
	struct leases *a = leases_new(), *b = leases_new();
	int n = lease_take(a, 7), copy = dup(claims_socket(&a->claims, n)), more;

	(void)state;
	assert_true(claim_is(copy, n) && !claim_is(copy, n + 1));
	assert_int_equal(claim_take(n), -EADDRINUSE);
	lease_drop(a, 7);
	assert_int_equal(claim_take(n), -EADDRINUSE);
	for (int i = 0; i < CLAIMS_RESTING; i++) {
		assert_true(lease_take(a, 7) > 0);
		lease_drop(a, 7);
	}
	assert_true(claims_socket(&a->claims, n) < 0 && !lease_is_ours(a, n * LEASE_QPNS));
	assert_int_equal(claim_take(n), -EADDRINUSE);
	/* its process brings it to the next weftd */
	assert_int_equal(lease_claim(b, n, 9, copy, false), 0);
	assert_int_equal(lease_owner(b, n * LEASE_QPNS), 9);
	more = dup(copy);
	assert_int_equal(lease_claim(b, n, 9, more, false), 0);
	assert_int_equal(fcntl(more, F_GETFD), -1);
	leases_free(b);
	n = claim_take(n);
	assert_true(n >= 0);
	close(n);
	leases_free(a);
}

static void lease_claims(void **state)
{
	struct leases *a = leases_new(), *b = leases_new();
	int n = lease_take(a, 7), other = lease_take(a, 7), fd = dup(claims_socket(&a->claims, n));

	(void)state;
	assert_int_equal(lease_claim(b, 0, 7, -1, false), -EINVAL);
	assert_int_equal(lease_claim(b, LEASE_BLOCKS, 7, -1, false), -EINVAL);
	assert_int_equal(lease_claim(b, other, 7, fd, false), -EINVAL);
	assert_int_equal(lease_claim(b, n, 7, fd, false), 0);
	assert_int_equal(lease_claim(b, n, 7, -1, false), 0);
	assert_int_equal(lease_claim(b, n, 8, -1, false), -EEXIST);
	assert_int_equal(b->count, 1);
	/* that one has closed it, and nobody has taken it since */
	leases_free(a);
	assert_int_equal(lease_claim(b, other, 7, -1, false), 0);
	assert_true(claims_socket(&b->claims, other) >= 0);
	leases_free(b);
}

/* Claims begin anywhere, and no two fabrics have one in common. */
static void drawn_claims(void **state)
{
	enum { EACH = 100 };
	struct leases *a = leases_new(), *b = leases_new();
	unsigned next = 0;
	int last = 0;

	(void)state;
	for (int i = 0; i < EACH; i++) {
		int n = lease_take(i & 1 ? a : b, 7);

		assert_true(n > 0);
		assert_true(!a->owner[n] || !b->owner[n]);
		next += n == last + 1;
		last = n;
	}
	assert_true(next < EACH / 10);
	leases_free(a);
	leases_free(b);
}

static void timers_in_order(void **state)
{
	struct timers *t = calloc(1, sizeof *t);
	uint32_t id, qp;
	uint64_t last = 0;
	unsigned seed = 5;

	(void)state;
	for (int i = 0; i < 500; i++)
		assert_int_equal(timers_set(t, i % 5 + 1, i, 1 + rand_r(&seed) % 1000), 0);
	for (int i = 0; i < 500; i += 3) /* moves, does not add */
		assert_int_equal(timers_set(t, i % 5 + 1, i, 1 + rand_r(&seed) % 1000), 0);
	assert_int_equal(t->count, 500);
	timers_drop(t, 2);
	assert_int_equal(t->count, 400);
	while (t->count) {
		uint64_t when = timers_next(t);

		assert_true(when >= last);
		last = when;
		assert_false(timers_pop(t, when - 1, &id, &qp));
		assert_true(timers_pop(t, when, &id, &qp));
		assert_int_not_equal(id, 2);
		assert_int_equal(id, qp % 5 + 1);
	}
	assert_int_equal(timers_next(t), 0);
	assert_false(timers_pop(t, ~0ull, &id, &qp));
	free(t->heap);
	free(t);
}

/* ---- members ---- */

static struct seg *new_seg(void)
{
	struct seg *seg = mmap(NULL, sizeof *seg, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(seg != MAP_FAILED);
	return seg;
}

static void list(struct seg *seg, uint32_t i, uint32_t word, uint8_t key)
{
	memset(seg->member[i].key, key, sizeof seg->member[i].key);
	seg->member[i].id = word;
	if (seg->hdr.members_used < i + 1)
		seg->hdr.members_used = i + 1;
}

static unsigned times(const struct seg *hub, uint32_t word, uint8_t key)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < hub->hdr.members_used; i++)
		n += hub->member[i].id == word && hub->member[i].key[7] == key;
	return n;
}

static void members_follow_segments(void **state)
{
	struct members *m = calloc(1, sizeof *m);
	struct seg *hub = new_seg(), *a = new_seg(), *b = new_seg();

	(void)state;
	list(a, 0, 5, 1);
	list(a, 1, 5, 2);
	list(a, 3, 5, 3); /* behind a free entry */
	list(b, 0, 5, 1);
	members_update(m, hub, a, 77);
	members_update(m, hub, b, 78);
	assert_int_equal(members_count(m, hub), 4);
	assert_int_equal(times(hub, 5, 1), 2);
	assert_int_equal(times(hub, 5, 2), 1);
	members_update(m, hub, a, 77);
	assert_int_equal(members_count(m, hub), 4);
	a->member[1].id = 0;
	list(a, 4, 6, 9);
	members_update(m, hub, a, 77);
	assert_int_equal(times(hub, 5, 1), 2);
	assert_int_equal(times(hub, 5, 2), 0);
	assert_int_equal(times(hub, 6, 9), 1);
	members_drop(m, hub, 77);
	assert_int_equal(members_count(m, hub), 1);
	assert_int_equal(times(hub, 5, 1), 1);
	munmap(hub, sizeof *hub);
	munmap(a, sizeof *a);
	munmap(b, sizeof *b);
	free(m);
}

/* One entry that changes costs no look at the others. */
static void members_one_by_one(void **state)
{
	struct members *m = calloc(1, sizeof *m);
	struct seg *hub = new_seg(), *a = new_seg();

	(void)state;
	for (uint32_t i = 0; i < SEG_MEMBERS; i++)
		list(a, i, 100 + i, 3);
	assert_int_equal(members_change(m, hub, a, 77, 5), 0);
	assert_int_equal(members_count(m, hub), 1); /* of others it was not told */
	for (uint32_t i = 0; i < SEG_MEMBERS; i++)
		assert_int_equal(members_change(m, hub, a, 77, i), 0);
	assert_int_equal(members_count(m, hub), SEG_MEMBERS);
	list(a, 7, 7, 7);
	a->member[9].id = 0;
	assert_int_equal(members_change(m, hub, a, 77, 7), 0);
	assert_int_equal(times(hub, 107, 3), 0);
	assert_int_equal(times(hub, 7, 7), 1);
	assert_int_equal(times(hub, 109, 3), 1);
	assert_int_equal(members_change(m, hub, a, 77, 9), 0);
	assert_int_equal(times(hub, 109, 3), 0);
	assert_int_equal(members_change(m, hub, a, 77, UINT32_MAX), 0); /* all: a strange number */
	assert_int_equal(members_count(m, hub), SEG_MEMBERS - 1);
	munmap(hub, sizeof *hub);
	munmap(a, sizeof *a);
	free(m);
}

static void members_without_room(void **state)
{
	struct members *m = calloc(1, sizeof *m);
	struct seg *hub = new_seg(), *a = new_seg(), *b = new_seg();

	(void)state;
	for (uint32_t i = 0; i < SEG_MEMBERS; i++) {
		list(a, i, 100 + i, 3);
		list(b, i, 100 + i, 4);
	}
	a->hdr.members_used = b->hdr.members_used = UINT32_MAX; /* a liar */
	assert_int_equal(members_update(m, hub, a, 77), 0);
	assert_int_equal(members_update(m, hub, b, 78), -ENOSPC);
	assert_int_equal(members_change(m, hub, b, 78, 9), -ENOSPC);
	assert_true(members_ask_missing(m));
	assert_int_equal(members_update(m, hub, b, 78), -ENOSPC);
	assert_true(members_ask_missing(m));
	assert_int_equal(members_count(m, hub), SEG_MEMBERS);
	assert_int_equal(times(hub, 100, 3), 1);
	assert_int_equal(times(hub, 100, 4), 0);
	memset(a->member, 0, sizeof a->member);
	assert_int_equal(members_update(m, hub, a, 77), 0);
	assert_int_equal(members_update(m, hub, b, 78), 0);
	assert_int_equal(members_count(m, hub), SEG_MEMBERS);
	assert_int_equal(times(hub, 100, 4), 1);
	assert_false(members_ask_missing(m));
	munmap(hub, sizeof *hub);
	munmap(a, sizeof *a);
	munmap(b, sizeof *b);
	free(m);
}

/* Nor has a segment without members any page of its list read: that would make one. */
static void members_of_nobody(void **state)
{
	struct members *m = calloc(1, sizeof *m);
	struct seg *hub = new_seg(), *a = new_seg(), *b = new_seg();

	(void)state;
	assert_int_equal(mprotect(a->member, sizeof a->member, PROT_NONE), 0);
	list(b, 0, 5, 1);
	assert_int_equal(members_update(m, hub, b, 78), 0);
	assert_int_equal(members_update(m, hub, a, 77), 0);
	assert_int_equal(members_change(m, hub, a, 77, 3), 0);
	assert_int_equal(members_count(m, hub), 1);
	munmap(hub, sizeof *hub);
	munmap(a, sizeof *a);
	munmap(b, sizeof *b);
	free(m);
}

/* ---- processes that ended ---- */

static struct seg *segment_new(void)
{
	void *seg = mmap(NULL, sizeof(struct seg), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(seg, MAP_FAILED);
	return seg;
}

static void ended_add_id(struct ended *e, uint32_t id, const struct seg *seg)
{
	ended_add(e, seg)->attach_id = id;
}

static void ended_in_order(void **state)
{
	struct ended *e = calloc(1, sizeof *e);
	struct seg *seg = segment_new();

	(void)state;
	assert_null(ended_at(e, 0));
	for (uint32_t id = 1; id <= ENDED_KEPT + 1; id++) {
		uint32_t kept = id < ENDED_KEPT ? id : ENDED_KEPT;

		ended_add_id(e, id, seg);
		for (uint32_t i = 0; i < kept; i++)
			assert_int_equal(ended_at(e, i)->attach_id, id - i);
		assert_null(ended_at(e, kept));
	}
	assert_null(ended_at(e, ~0u));
	munmap(seg, sizeof *seg);
	free(e);
}

/* A row has what its segment counted, however many slots that says it has, and no other row. */
static void ended_counts(void **state)
{
	struct ended *e = calloc(1, sizeof *e);
	struct seg *seg = segment_new();

	(void)state;
	atomic_store(&seg->counters[0][CTR_ERR_LOC_PROT], 2);
	atomic_store(&seg->counters[SEG_SLOTS - 1][CTR_ERR_LOC_PROT], 3);
	atomic_store(&seg->hdr.slots_used, SEG_SLOTS);
	atomic_store(&seg->hdr.not_mapped[SHARE_BUDGET], 4);
	ended_add_id(e, 1, seg);
	memset((void *)seg->counters, 0xff, sizeof seg->counters);
	memset((void *)seg->hdr.not_mapped, 0xff, sizeof seg->hdr.not_mapped);
	atomic_store(&seg->hdr.slots_used, ~0u);
	ended_add_id(e, 2, seg);
	assert_int_equal(ended_at(e, 1)->count[CTR_ERR_LOC_PROT], 5);
	assert_int_equal(ended_at(e, 1)->count[CTR_ERR_RNR], 0);
	assert_int_equal(ended_at(e, 1)->not_mapped[SHARE_BUDGET], 4);
	assert_int_equal(ended_at(e, 1)->not_mapped[SHARE_STACK], 0);
	assert_int_equal(ended_at(e, 0)->count[CTR_ERR_RNR], -(uint64_t)SEG_SLOTS);
	assert_int_equal(ended_at(e, 0)->not_mapped[SHARE_STACK], UINT64_MAX);
	munmap(seg, sizeof *seg);
	free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lease_life),
		cmocka_unit_test(claims_are_ones_own),
		cmocka_unit_test(drawn_claims),
		cmocka_unit_test(lease_claims),
		cmocka_unit_test(timers_in_order),
		cmocka_unit_test(members_follow_segments),
		cmocka_unit_test(members_one_by_one),
		cmocka_unit_test(members_without_room),
		cmocka_unit_test(members_of_nobody),
		cmocka_unit_test(ended_in_order),
		cmocka_unit_test(ended_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
