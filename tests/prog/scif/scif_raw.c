// SPDX-License-Identifier: BSD-3-Clause
/*
 * The SCIF device by system calls, in the forms of both generations of drivers.  Not linked with
 * libscif.so.0: the path shim brings it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/scif_raw.h"

enum { PAGE = 4096, RING = 4095, WAIT_MS = 20000 };
enum { SYNC = 1, BLOCK = 1, FIXED = 0x10, RMA_SYNC = 4 };

static enum raw_gen gen;

static void *pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* What poll(2) says, having waited for it; 0: nothing. */
static short said(int fd, short events, int ms)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, ms) == 1 ? p.revents : 0;
}

static bool can_map(void)
{
	const char *share = getenv("WEFT_SHARE");

	return !share || strcmp(share, "never") != 0;
}

static void file(void)
{
	struct stat st;
	FILE *f;
	int fd;

	check_case("%s: the file", raw_path[gen]);
	CHECK_EQ(stat(raw_path[gen], &st), 0);
	CHECK(S_ISCHR(st.st_mode));
	CHECK_EQ(st.st_mode & 0777, 0666);
	CHECK_EQ(access(raw_path[gen], R_OK | W_OK), 0);
	fd = raw_open(gen, 0);
	CHECK_EQ(fcntl(fd, F_GETFD), 0);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	CHECK_EQ(close(fd), 0);
	CHECK_EQ(close(fd), -1);
	CHECK_EQ(errno, EBADF);
	fd = raw_open(gen, O_CLOEXEC | O_NONBLOCK);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	close(fd);
	fd = openat(AT_FDCWD, raw_path[gen], O_RDONLY);
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(open(raw_path[gen], O_RDWR | O_CREAT | O_EXCL, 0600), -1);
	CHECK_EQ(errno, EEXIST);
	CHECK_EQ(open(raw_path[gen], O_RDONLY | O_DIRECTORY), -1);
	CHECK_EQ(errno, ENOTDIR);
	f = fopen(raw_path[gen], "r+");
	CHECK(f != NULL);
	CHECK_EQ(ioctl(fileno(f), RAW_GET_VERSION), 1);
	fclose(f);
}

static void nodes(void)
{
	uint16_t ids[4] = {9, 9, 9, 9}, self = 9;
	struct raw_node_ids n = {(uintptr_t)ids, (uintptr_t)&self, 4};
	struct raw_node_ids_old o = {ids, 4, &self};
	int fd = raw_open(gen, 0);

	check_case("%s: nodes", raw_path[gen]);
	CHECK_EQ(raw_do(fd, gen, RAW_NODE_IDS, gen == RAW_NEW ? (void *)&n : &o), 0);
	CHECK_EQ(gen == RAW_NEW ? n.len : o.len, 1);
	CHECK_EQ(ids[0], 0);
	CHECK_EQ(ids[1], 9);
	CHECK_EQ(self, 0);
	CHECK_EQ(ioctl(fd, RAW_GET_VERSION), 1);
	close(fd);
}

static void messages(void)
{
	static uint8_t many[3 * RING], back[3 * RING];
	struct raw_pair p = raw_make_pair(gen);
	int on = 1, twice;

	check_case("%s: messages", raw_path[gen]);
	pattern_fill(many, sizeof(many), 0);
	CHECK_EQ(said(p.b, POLLIN | POLLOUT, 0), POLLOUT);
	CHECK_EQ(raw_recv(p.b, gen, back, 10, 0), 0);
	CHECK_EQ(raw_send(p.a, gen, many, sizeof(many), 0), RING);
	CHECK_EQ(raw_send(p.a, gen, many, 1, 0), 0);
	CHECK_EQ(said(p.a, POLLIN | POLLOUT, 0), 0);
	CHECK_EQ(said(p.b, POLLIN, WAIT_MS), POLLIN);
	CHECK_EQ(raw_recv(p.b, gen, back, RING, BLOCK), RING);
	CHECK_EQ(memcmp(many, back, RING), 0);
	CHECK_EQ(said(p.a, POLLOUT, WAIT_MS), POLLOUT);
	CHECK_EQ(raw_send(p.a, gen, many, 0, 0), 0);
	CHECK_EQ(ioctl(p.a, FIONBIO, &on), 0);
	CHECK_EQ(fcntl(p.a, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	CHECK_EQ(raw_recv(p.a, gen, back, 1, 0), 0);

	twice = dup(p.a);
	CHECK_EQ(close(p.a), 0);
	p.a = twice;
	CHECK_EQ(raw_send(p.a, gen, "dup", 3, BLOCK), 3);
	CHECK_EQ(raw_recv(p.b, gen, back, 3, BLOCK), 3);

	CHECK_EQ(raw_send(p.a, gen, "last", 4, BLOCK), 4);
	CHECK_EQ(close(p.a), 0);
	CHECK_EQ(said(p.b, 0, WAIT_MS), POLLHUP);
	CHECK_EQ(said(p.b, POLLIN, 0), POLLIN | POLLHUP);
	CHECK_EQ(raw_recv(p.b, gen, back, 4, BLOCK), 4);
	CHECK_EQ(said(p.b, POLLIN | POLLOUT, 0), POLLHUP);
	CHECK_EQ(raw_recv(p.b, gen, back, 4, BLOCK), -1);
	CHECK_EQ(errno, ECONNRESET);
	close(p.b);
	close(p.listener);
}

struct stream {
	int fd;
	uint8_t *bytes;
	int len, done;
};

static void *send_all(void *arg)
{
	struct stream *s = arg;

	s->done = raw_send(s->fd, gen, s->bytes, s->len, BLOCK);
	return NULL;
}

/* More than the device takes in one piece. */
static void long_messages(void)
{
	enum { LEN = 5000000 };
	struct raw_pair p = raw_make_pair(gen);
	struct stream s = {.fd = p.a, .bytes = malloc(LEN), .len = LEN};
	uint8_t *back = malloc(LEN);
	pthread_t thread;

	check_case("%s: long messages", raw_path[gen]);
	pattern_fill(s.bytes, LEN, 0);
	if (pthread_create(&thread, NULL, send_all, &s))
		die("thread");
	CHECK_EQ(raw_recv(p.b, gen, back, LEN, BLOCK), LEN);
	pthread_join(thread, NULL);
	CHECK_EQ(s.done, LEN);
	CHECK_EQ(memcmp(s.bytes, back, LEN), 0);
	free(s.bytes);
	free(back);
	raw_end_pair(&p);
}

static void copies(void)
{
	uint8_t *near = pages(2 * PAGE), *far = pages(2 * PAGE), *mem = pages(PAGE);
	struct raw_pair p = raw_make_pair(gen);
	struct raw_copy c = {0x10000, 100, 0x20000 + 50, (uintptr_t)mem, RMA_SYNC};
	struct raw_unreg u = {0x10000, 2 * PAGE};
	struct raw_signal s = {0x10000, 11, 0x20000 + 8, 22, 1 | 0x30};
	int mark = -1;
	struct raw_mark m = {1, (uintptr_t)&mark};

	check_case("%s: copies", raw_path[gen]);
	CHECK_EQ(raw_register(p.a, gen, near, 2 * PAGE, 0x10000, FIXED), 0x10000);
	CHECK_EQ(raw_register(p.b, gen, far, 2 * PAGE, 0x20000, FIXED), 0x20000);
	CHECK(raw_register(p.b, gen, far, PAGE, 0, 0) > 0);
	memset(near, 'n', PAGE);
	CHECK_EQ(raw_do(p.a, gen, RAW_WRITETO, &c), 0);
	CHECK(far[49] == 0 && far[50] == 'n' && far[149] == 'n' && far[150] == 0);
	memset(far, 'f', 2 * PAGE);
	CHECK_EQ(raw_do(p.a, gen, RAW_READFROM, &c), 0);
	CHECK(near[0] == 'f' && near[99] == 'f' && near[100] == 'n');
	CHECK_EQ(raw_do(p.a, gen, RAW_VREADFROM, &c), 0);
	CHECK(mem[0] == 'f' && mem[99] == 'f' && mem[100] == 0);
	memset(mem, 'm', PAGE);
	CHECK_EQ(raw_do(p.a, gen, RAW_VWRITETO, &c), 0);
	CHECK(far[49] == 'f' && far[50] == 'm' && far[149] == 'm' && far[150] == 'f');
	c.flags = 0;
	memset(mem, 'x', PAGE);
	CHECK_EQ(raw_do(p.a, gen, RAW_VWRITETO, &c), 0);
	CHECK_EQ(raw_do(p.a, gen, RAW_MARK, &m), 0);
	CHECK(mark >= 0);
	CHECK_EQ(ioctl(p.a, raw_cmd(gen, RAW_WAIT), mark), 0);
	CHECK_EQ(far[50], 'x');
	CHECK_EQ(raw_do(p.a, gen, RAW_SIGNAL, &s), 0);
	CHECK_EQ(raw_do(p.a, gen, RAW_MARK, &m), 0);
	CHECK_EQ(ioctl(p.a, raw_cmd(gen, RAW_WAIT), mark), 0);
	for (int i = 0; i < WAIT_MS && *(volatile uint64_t *)near != 11; i++)
		usleep(1000);
	CHECK_EQ(*(uint64_t *)near, 11);
	CHECK_EQ(*(uint64_t *)(far + 8), 22);
	CHECK_EQ(raw_do(p.a, gen, RAW_UNREG, &u), 0);
	CHECK_EQ(raw_do(p.a, gen, RAW_WRITETO, &c), -1);
	CHECK_EQ(errno, ENXIO);
	raw_end_pair(&p);
	munmap(near, 2 * PAGE);
	munmap(far, 2 * PAGE);
	munmap(mem, PAGE);
}

/* Windows by mmap(2), gone by munmap(2): the peer may have their offsets again after that. */
static void mapped(void)
{
	enum { RW = PROT_READ | PROT_WRITE };
	uint8_t *far = pages(4 * PAGE), *m, *place;
	struct raw_pair p = raw_make_pair(gen);
	struct raw_unreg u = {0x20000, 4 * PAGE};

	check_case("%s: mapped", raw_path[gen]);
	far[0] = 1;
	far[3 * PAGE] = 4;
	CHECK_EQ(raw_register(p.b, gen, far, 4 * PAGE, 0x20000, FIXED), 0x20000);
	CHECK(mmap(NULL, PAGE, RW, MAP_PRIVATE, p.a, 0x20000) == MAP_FAILED);
	CHECK_EQ(errno, EINVAL);
	CHECK(mmap(NULL, PAGE, RW, MAP_SHARED, p.a, 0x90000) == MAP_FAILED);
	CHECK_EQ(errno, can_map() ? ENXIO : errno);
	m = mmap(NULL, 4 * PAGE, RW, MAP_SHARED | MAP_POPULATE, p.a, 0x20000);
	if (!can_map()) {
		CHECK(m == MAP_FAILED);
		CHECK_EQ(errno, EOPNOTSUPP);
		raw_end_pair(&p);
		return;
	}
	if (m == MAP_FAILED)
		die("mmap of the device");
	CHECK_EQ(m[0], 1);
	CHECK_EQ(m[3 * PAGE], 4);
	m[1] = 2;
	CHECK_EQ(far[1], 2);
	far[2] = 3;
	CHECK_EQ(m[2], 3);
	place = pages(PAGE);
	CHECK(mmap(place, PAGE, RW, MAP_SHARED | MAP_FIXED, p.a, 0x23000) == place);
	CHECK_EQ(place[0], 4);
	CHECK_EQ(munmap(place, PAGE), 0);
	CHECK_EQ(munmap(m + PAGE, PAGE), 0);
	CHECK_EQ(m[0], 1);

	CHECK_EQ(raw_do(p.b, gen, RAW_UNREG, &u), 0);
	CHECK_EQ(raw_register(p.b, gen, far, PAGE, 0x20000, FIXED), -1);
	CHECK_EQ(errno, EADDRINUSE);
	CHECK_EQ(munmap(m, PAGE), 0); /* and what is behind the hole stays */
	CHECK_EQ(raw_register(p.b, gen, far, PAGE, 0x20000, FIXED), -1);
	CHECK_EQ(errno, EADDRINUSE);
	CHECK_EQ(m[3 * PAGE], 4);
	CHECK_EQ(munmap(m, 4 * PAGE), 0);
	for (int i = 0; i < WAIT_MS && raw_register(p.b, gen, far, PAGE, 0x20000, FIXED) < 0; i++)
		usleep(1000);
	CHECK_EQ(raw_register(p.b, gen, far, PAGE, 0x20000, FIXED), -1);
	CHECK_EQ(errno, EADDRINUSE); /* by the one before */

	m = mmap(NULL, PAGE, RW, MAP_SHARED, p.a, 0x20000);
	CHECK(m != MAP_FAILED);
	raw_end_pair(&p);
	CHECK_EQ(m[1], 2); /* outlives the connection */
	CHECK_EQ(munmap(m, PAGE), 0);
	munmap(far, 4 * PAGE);
}

/* A connecting endpoint: nothing waits for the answer. */
static int dial(uint16_t port)
{
	int fd = raw_open(gen, O_NONBLOCK);

	CHECK_EQ(raw_connect(fd, gen, (struct raw_id){0, port}), -1);
	CHECK_EQ(errno, EINPROGRESS);
	return fd;
}

static void accepting(void)
{
	struct raw_accept a = {.flags = 0}, first, second;
	uint64_t wrong = 12345678;
	uint16_t port;
	int l = raw_listener(gen, 4, &port), c, d, s, t;
	char byte = 0;

	check_case("%s: accepting", raw_path[gen]);
	CHECK_EQ(said(l, POLLIN, 0), 0);
	CHECK_EQ(raw_do(l, gen, RAW_ACCEPTREQ, &a), -1);
	CHECK_EQ(errno, EAGAIN);
	s = raw_open(gen, O_NONBLOCK | O_CLOEXEC);
	CHECK_EQ(said(s, POLLIN, 0), POLLERR);
	CHECK_EQ(raw_do(s, gen, RAW_ACCEPTREG, &wrong), -1);
	CHECK_EQ(errno, ENOENT);

	c = dial(port);
	CHECK_EQ(said(l, POLLIN, WAIT_MS), POLLIN);
	d = dial(port);
	first = second = (struct raw_accept){.flags = SYNC};
	CHECK_EQ(raw_do(l, gen, RAW_ACCEPTREQ, &first), 0);
	CHECK_EQ(raw_do(l, gen, RAW_ACCEPTREQ, &second), 0);
	CHECK(first.endpt != second.endpt);
	CHECK_EQ(said(c, POLLOUT, WAIT_MS), POLLOUT);
	CHECK(raw_connect(c, gen, (struct raw_id){0, port}) > 0);
	CHECK_EQ(raw_send(c, gen, "c", 1, BLOCK), 1);
	CHECK_EQ(raw_do(s, gen, RAW_ACCEPTREG, &first.endpt), 0);
	CHECK_EQ(fcntl(s, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(s, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	CHECK_EQ(raw_recv(s, gen, &byte, 1, BLOCK), 1);
	CHECK_EQ(byte, 'c');
	CHECK_EQ(raw_do(s, gen, RAW_ACCEPTREG, &first.endpt), -1);
	CHECK_EQ(errno, ENOENT);

	/* The other one is never finished: it ends with the listener. */
	CHECK_EQ(said(d, POLLOUT, WAIT_MS), POLLOUT);
	CHECK(raw_connect(d, gen, (struct raw_id){0, port}) > 0);
	CHECK_EQ(close(l), 0);
	CHECK_EQ(said(d, 0, WAIT_MS), POLLHUP);
	t = raw_open(gen, 0);
	CHECK_EQ(raw_do(t, gen, RAW_ACCEPTREG, &second.endpt), -1);
	CHECK_EQ(errno, ENOENT);
	CHECK_EQ(raw_send(s, gen, "s", 1, BLOCK), 1);
	CHECK_EQ(raw_recv(c, gen, &byte, 1, BLOCK), 1);
	close(c);
	close(d);
	close(s);
	close(t);
}

/* An fd that is something else already becomes the connection as well. */
static void accepting_by_another(void)
{
	struct raw_accept first = {.flags = SYNC};
	struct raw_id peer = {0};
	uint16_t port;
	int l, plain, c, d;
	char byte = 0;

	l = raw_listener(gen, 4, &port);
	plain = raw_listener(gen, 4, &peer.port);
	c = dial(port);
	CHECK_EQ(raw_do(l, gen, RAW_ACCEPTREQ, &first), 0);
	CHECK_EQ(raw_do(plain, gen, RAW_ACCEPTREG, &first.endpt), 0);
	CHECK_EQ(raw_send(plain, gen, "p", 1, BLOCK), 1);
	CHECK_EQ(raw_recv(c, gen, &byte, 1, BLOCK), 1);
	d = raw_open(gen, 0);
	CHECK_EQ(raw_connect(d, gen, peer), -1);
	CHECK_EQ(errno, ECONNREFUSED);
	close(c);
	close(d);
	close(l);
	close(plain);
}

static pid_t sleeper; /* a thread that goes to sleep in a call */

static void *close_it(void *arg)
{
	await_sleep(sleeper);
	close(*(int *)arg);
	return NULL;
}

/* close(2) wakes who sleeps in poll(2) or in a command. */
static void closing_wakes(void)
{
	struct raw_accept a = {.flags = SYNC};
	struct pollfd p = {.events = POLLIN};
	pthread_t thread;
	uint16_t port;

	check_case("%s: closing wakes", raw_path[gen]);
	sleeper = gettid();
	p.fd = raw_listener(gen, 4, &port);
	if (pthread_create(&thread, NULL, close_it, &p.fd))
		die("thread");
	CHECK_EQ(poll(&p, 1, -1), 1);
	CHECK_EQ(p.revents, POLLNVAL);
	pthread_join(thread, NULL);
	p.fd = raw_listener(gen, 4, &port);
	if (pthread_create(&thread, NULL, close_it, &p.fd))
		die("thread");
	CHECK_EQ(raw_do(p.fd, gen, RAW_ACCEPTREQ, &a), -1);
	CHECK_EQ(errno, EINTR);
	pthread_join(thread, NULL);
}

int main(void)
{
	for (gen = 0; gen < RAW_GENS; gen++) {
		file();
		nodes();
		messages();
		long_messages();
		copies();
		mapped();
		accepting();
		accepting_by_another();
		closing_wakes();
	}
	return check_result();
}
