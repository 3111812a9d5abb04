// SPDX-License-Identifier: BSD-3-Clause
/*
 * pages/backing.c: what a peer finds out by itself before it maps an object, and its windows.
 * pages/piece.c: pieces where programs want them.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cmocka.h>

#include "pages/backing.h"
#include "pages/piece.h"

enum { PAGE = 4096, LEN = 16 * PAGE, ID = 77 };

static struct backing_map map; /* zero, as in a new peer */

static struct backing memfd(unsigned flags, uint64_t bytes, int seals)
{
	struct backing b = {.kind = BACKING_MEMFD};

	b.fd = memfd_create("backing-test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
	assert_true(b.fd >= 0);
	assert_int_equal(ftruncate(b.fd, bytes), 0);
	if (seals)
		assert_int_equal(fcntl(b.fd, F_ADD_SEALS, seals), 0);
	return b;
}

static struct backing sysv(uint64_t bytes)
{
	struct backing b = {.kind = BACKING_SYSV, .fd = -1, .ipc_ns = backing_ipc_ns()};

	b.shmid = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
	assert_true(b.shmid >= 0);
	return b;
}

/* It is mapped in its own place, whoever else has it mapped. */
static void shows(const struct backing *b, uint64_t offset, char *at)
{
	char *own = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, offset);

	assert_true(own != MAP_FAILED);
	own[5] = 'x';
	assert_int_equal(at[5], 'x');
	at[6] = 'y';
	assert_int_equal(own[6], 'y');
	munmap(own, PAGE);
}

static bool is_id(uint32_t id, void *arg)
{
	return id == *(uint32_t *)arg;
}

static void sweep_but(uint32_t id)
{
	backing_sweep(&map, is_id, &id);
}

static int teardown(void **state)
{
	(void)state;
	backing_close(&map);
	memset(&map, 0, sizeof map);
	return 0;
}

static void judges_objects(void **state)
{
	struct backing b = memfd(0, LEN - 100, 0);
	char path[64];
	int fds[2];

	(void)state;
	assert_int_equal(backing_bytes(&b), -EPERM);
	assert_int_equal(fcntl(b.fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_int_equal(backing_bytes(&b), -EPERM);
	assert_int_equal(fcntl(b.fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(backing_bytes(&b), LEN);
	snprintf(path, sizeof path, "/proc/self/fd/%d", b.fd);
	fds[0] = b.fd;
	b.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(backing_bytes(&b), -EACCES);
	close(b.fd);
	b.fd = fds[0];
	assert_int_equal(fcntl(b.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	assert_int_equal(backing_bytes(&b), -EACCES);
	close(b.fd);
	assert_int_equal(backing_bytes(&b), -ENXIO);
	assert_int_equal(pipe(fds), 0);
	b.fd = fds[1];
	assert_int_equal(backing_bytes(&b), -ENXIO);
	close(fds[0]);
	close(fds[1]);
	b.fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB | MFD_ALLOW_SEALING);
	if (b.fd >= 0) {
		fcntl(b.fd, F_ADD_SEALS, F_SEAL_SHRINK);
		assert_int_equal(backing_bytes(&b), -ENXIO);
		close(b.fd);
	}
	b = (struct backing){.kind = 99};
	assert_int_equal(backing_bytes(&b), -ENXIO);
}

static void judges_segments(void **state)
{
	struct backing b = sysv(LEN - 1), large = sysv(BACKING_WINDOW + PAGE);

	(void)state;
	assert_int_equal(backing_bytes(&b), LEN);
	assert_int_equal(backing_bytes(&large), -EFBIG);
	b.ipc_ns++;
	assert_int_equal(backing_bytes(&b), -EXDEV);
	b.ipc_ns = 0;
	assert_int_equal(backing_bytes(&b), -EXDEV);
	b.ipc_ns = backing_ipc_ns();
	shmctl(b.shmid, IPC_RMID, NULL);
	shmctl(large.shmid, IPC_RMID, NULL);
	assert_int_equal(backing_bytes(&b), -ENXIO);
	assert_null(backing_map(&map, ID, 0, 1, &b));
}

static void maps_windows(void **state)
{
	struct backing b = memfd(0, BACKING_WINDOW + LEN, F_SEAL_SHRINK);
	bool worth;
	char *p, *q;

	(void)state;
	assert_null(backing_at(&map, ID, PAGE, PAGE));
	assert_null(backing_find(&map, ID, PAGE, PAGE, &worth));
	assert_true(worth);
	p = backing_map(&map, ID, PAGE, PAGE, &b);
	assert_non_null(p);
	shows(&b, PAGE, p);
	assert_ptr_equal(backing_at(&map, ID, PAGE, LEN), p);
	assert_ptr_equal(backing_find(&map, ID, PAGE, LEN, &worth), p);
	q = backing_map(&map, ID, BACKING_WINDOW + PAGE, PAGE, &b);
	assert_non_null(q);
	shows(&b, BACKING_WINDOW + PAGE, q);
	/* Not beyond a window, nor the end, nor of another. */
	assert_null(backing_at(&map, ID, BACKING_WINDOW - 1, 2));
	assert_null(backing_map(&map, ID, BACKING_WINDOW + LEN - 1, 2, &b));
	assert_null(backing_map(&map, ID, 5 * BACKING_WINDOW, 1, &b));
	assert_null(backing_at(&map, ID + 1, PAGE, PAGE));
	close(b.fd);
}

static void follows_growth(void **state)
{
	struct backing b = memfd(0, LEN, F_SEAL_SHRINK);
	char *p = backing_map(&map, ID, 0, LEN, &b);
	bool worth;

	(void)state;
	assert_non_null(p);
	p[0] = 'a';
	assert_null(backing_at(&map, ID, LEN, 1));
	assert_int_equal(ftruncate(b.fd, 2 * LEN), 0);
	assert_null(backing_find(&map, ID, LEN, 1, &worth));
	assert_true(worth);
	assert_ptr_equal(backing_map(&map, ID, LEN, LEN, &b), p + LEN);
	shows(&b, LEN, p + LEN);
	assert_int_equal(p[0], 'a');
	close(b.fd);
}

static void remembers_failure(void **state)
{
	struct backing b = memfd(0, LEN, 0);
	bool worth;

	(void)state;
	assert_null(backing_map(&map, ID, 0, 1, &b));
	assert_null(backing_find(&map, ID, 0, 1, &worth));
	assert_false(worth);
	assert_null(backing_map(&map, ID + 1, 0, 1, NULL));
	assert_null(backing_find(&map, ID + 1, 0, 1, &worth));
	assert_false(worth);
	close(b.fd);
}

/* What was mapped stays memory, but not that of the object; the place serves the next one. */
static void lets_go(void **state)
{
	struct backing b = memfd(0, LEN, F_SEAL_SHRINK), c = memfd(0, LEN / 2, F_SEAL_SHRINK);
	char *p = backing_map(&map, ID, 0, LEN, &b), *q, byte = 0;

	(void)state;
	assert_non_null(p);
	p[LEN - 1] = 'b';
	sweep_but(ID);
	assert_ptr_equal(backing_at(&map, ID, 0, LEN), p);
	sweep_but(ID + 1);
	assert_null(backing_at(&map, ID, 0, LEN));
	p[LEN - 1] = 'c';
	assert_int_equal(pread(b.fd, &byte, 1, LEN - 1), 1);
	assert_int_equal(byte, 'b');
	assert_int_equal(fcntl(b.fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	q = backing_map(&map, ID + BACKING_WINDOWS, 0, 1, &c);
	assert_ptr_equal(q, p);
	shows(&c, 0, q);
	assert_null(backing_at(&map, ID + BACKING_WINDOWS, 0, LEN));
	p[LEN - 1] = 'd';
	close(b.fd);
	close(c.fd);
}

static void attaches_segments(void **state)
{
	struct backing b = sysv(LEN);
	char *own = shmat(b.shmid, NULL, 0), *p;
	struct shmid_ds ds;

	(void)state;
	shmctl(b.shmid, IPC_RMID, NULL); /* it stays while it is attached */
	p = backing_map(&map, ID, PAGE, PAGE, &b);
	assert_non_null(p);
	own[PAGE + 3] = 'z';
	assert_int_equal(p[3], 'z');
	assert_int_equal(shmctl(b.shmid, IPC_STAT, &ds), 0);
	assert_int_equal(ds.shm_nattch, 2);
	sweep_but(ID + 1);
	assert_int_equal(shmctl(b.shmid, IPC_STAT, &ds), 0);
	assert_int_equal(ds.shm_nattch, 1);
	p[3] = 'q';
	assert_int_equal(own[PAGE + 3], 'z');
	shmdt(own);
}

/* Address space that was free just now is where the kernel itself would put a segment. */
static void places_segments(void **state)
{
	static const int placed[] = {MAP_FIXED, MAP_FIXED_NOREPLACE};
	struct backing b = sysv(LEN);
	char *own = shmat(b.shmid, NULL, 0);

	(void)state;
	shmctl(b.shmid, IPC_RMID, NULL);
	for (unsigned i = 0; i < sizeof placed / sizeof *placed; i++)
		for (uint64_t offset = 0; offset < LEN; offset += LEN / 2) {
			char *at = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			uint64_t len = LEN - offset;
			void *p;

			munmap(at, LEN);
			assert_int_equal(piece_map(&b, offset, len, PROT_READ | PROT_WRITE,
						 placed[i], at + offset, &p),
				0);
			assert_ptr_equal(p, at + offset);
			own[offset] = 'a' + i;
			assert_int_equal(*(char *)p, 'a' + i);
			assert_int_equal(piece_map(&b, 0, PAGE, PROT_READ, MAP_FIXED_NOREPLACE,
						 at + offset, &p),
				-EEXIST);
			assert_int_equal(at[offset], 'a' + i);
			munmap(at + offset, len);
		}
	shmdt(own);
}

/* More objects than windows: no more is mapped, and what is stays in place. */
static void has_an_end(void **state)
{
	struct backing b = memfd(0, LEN, F_SEAL_SHRINK);
	char *first = backing_map(&map, 1, 0, 1, &b);
	bool worth;

	(void)state;
	for (uint32_t id = 2; id <= BACKING_WINDOWS; id++)
		assert_non_null(backing_map(&map, id * 3, 0, 1, &b));
	assert_null(backing_map(&map, 2, 0, 1, &b));
	assert_null(backing_find(&map, 2, 0, 1, &worth));
	assert_false(worth);
	assert_ptr_equal(backing_find(&map, 1, 0, 1, &worth), first);
	for (uint32_t id = 2; id <= BACKING_WINDOWS; id++)
		assert_non_null(backing_find(&map, id * 3, 0, 1, &worth));
	close(b.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(judges_objects, teardown),
		cmocka_unit_test_teardown(judges_segments, teardown),
		cmocka_unit_test_teardown(maps_windows, teardown),
		cmocka_unit_test_teardown(follows_growth, teardown),
		cmocka_unit_test_teardown(remembers_failure, teardown),
		cmocka_unit_test_teardown(lets_go, teardown),
		cmocka_unit_test_teardown(attaches_segments, teardown),
		cmocka_unit_test(places_segments),
		cmocka_unit_test_teardown(has_an_end, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
