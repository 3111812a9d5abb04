// SPDX-License-Identifier: BSD-3-Clause
/* Each error of each command of the SCIF device, as a table, in the forms of both generations. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_raw.h"

enum { PAGE = 4096, WAIT_MS = 20000 };

/* Endpoints in each state; the last is none. */
enum who { UNBOUND, BOUND, LISTENING, CONNECTED, RESET, FILE_FD, WHOS };
static const char *const names[] = {
	"unbound", "bound", "listening", "connected", "reset", "a file"};
static int who[WHOS];
static uint16_t port; /* of LISTENING */
static uint8_t *mem;  /* a page */
static uint8_t *ro;   /* a page that cannot be written, and one that cannot be read behind it */

/* Windows of CONNECTED and its peer. */
enum { RW = 0x10000, RO = 0x20000 };

static enum raw_gen gen;

#define NR(n) .nr = n, .name = #n
#define BAD   ((void *)(16 * PAGE)) /* nothing is ever there */

/* A command whose argument is a pointer to one of these. */
struct call {
	enum raw_nr nr;
	const char *name;
	enum who who;
	int error; /* 0: it succeeds */
	union {
		int number;
		int64_t offset;
		uint64_t endpt;
		struct raw_connect connect;
		struct raw_accept accept;
		struct raw_msg msg;
		struct raw_reg reg;
		struct raw_unreg unreg;
		struct raw_copy copy;
		struct raw_mark mark;
		struct raw_signal signal;
	} arg;
};

static const struct call calls[] = {
	{NR(RAW_BIND), BOUND, EINVAL, {.number = 0}},
	{NR(RAW_BIND), LISTENING, EISCONN, {.number = 0}},
	{NR(RAW_BIND), CONNECTED, EISCONN, {.number = 0}},
	{NR(RAW_BIND), FILE_FD, ENOTTY, {.number = 0}},

	{NR(RAW_CONNECT), UNBOUND, EINVAL, {.connect = {.peer = {0, 0}}}},
	{NR(RAW_CONNECT), BOUND, ENODEV, {.connect = {.peer = {77, 2000}}}},
	{NR(RAW_CONNECT), LISTENING, EOPNOTSUPP, {.connect = {.peer = {0, 2000}}}},
	{NR(RAW_CONNECT), CONNECTED, EISCONN, {.connect = {.peer = {0, 2000}}}},
	{NR(RAW_CONNECT), RESET, EINVAL, {.connect = {.peer = {0, 2000}}}},
	{NR(RAW_CONNECT), FILE_FD, ENOTTY, {.connect = {.peer = {0, 2000}}}},

	{NR(RAW_ACCEPTREQ), BOUND, EINVAL, {.accept = {.flags = 0}}},
	{NR(RAW_ACCEPTREQ), CONNECTED, EINVAL, {.accept = {.flags = 0}}},
	{NR(RAW_ACCEPTREQ), LISTENING, EAGAIN, {.accept = {.flags = 0}}},
	{NR(RAW_ACCEPTREQ), LISTENING, EINVAL, {.accept = {.flags = 2}}},
	{NR(RAW_ACCEPTREG), UNBOUND, ENOENT, {.endpt = 0}},
	{NR(RAW_ACCEPTREG), UNBOUND, ENOENT, {.endpt = UINT64_MAX}},
	{NR(RAW_ACCEPTREG), FILE_FD, ENOTTY, {.endpt = 0}},

	{NR(RAW_SEND), CONNECTED, EINVAL, {.msg = {.len = -1}}},
	{NR(RAW_SEND), CONNECTED, EINVAL, {.msg = {.len = 1, .flags = 2}}},
	{NR(RAW_SEND), CONNECTED, EFAULT, {.msg = {.msg = 16 * PAGE, .len = 1}}},
	{NR(RAW_SEND), CONNECTED, EFAULT, {.msg = {.msg = -1, .len = 100000, .flags = 1}}},
	{NR(RAW_SEND), CONNECTED, 0, {.msg = {.msg = 16 * PAGE}}},
	{NR(RAW_SEND), UNBOUND, 0, {.msg = {.len = 0}}},
	{NR(RAW_RECV), CONNECTED, EINVAL, {.msg = {.len = -1}}},
	{NR(RAW_RECV), CONNECTED, EINVAL, {.msg = {.len = 1, .flags = 2}}},
	{NR(RAW_RECV), CONNECTED, 0, {.msg = {.len = 0}}},
	{NR(RAW_SEND), FILE_FD, ENOTTY, {.msg = {.len = 0}}},

	{NR(RAW_REG), CONNECTED, EINVAL, {.reg = {.len = PAGE, .prot = 4}}},
	{NR(RAW_REG), CONNECTED, EINVAL, {.reg = {.len = PAGE, .prot = 3, .flags = 0x20}}},
	{NR(RAW_REG), CONNECTED, EINVAL, {.reg = {.len = 0, .prot = 3}}},
	{NR(RAW_REG), CONNECTED, EINVAL,
		{.reg = {.len = PAGE, .offset = 1, .prot = 3, .flags = 0x10}}},
	{NR(RAW_REG), CONNECTED, EFAULT, {.reg = {.addr = 16 * PAGE, .len = PAGE, .prot = 3}}},
	{NR(RAW_REG), BOUND, ENOTCONN, {.reg = {.len = PAGE, .prot = 3}}},
	{NR(RAW_REG), RESET, ECONNRESET, {.reg = {.len = PAGE, .prot = 3}}},
	{NR(RAW_UNREG), CONNECTED, EINVAL, {.unreg = {RW, PAGE / 2}}},
	{NR(RAW_UNREG), CONNECTED, ENXIO, {.unreg = {0x90000, PAGE}}},
	{NR(RAW_UNREG), UNBOUND, ENOTCONN, {.unreg = {RW, PAGE}}},

	{NR(RAW_READFROM), CONNECTED, EINVAL, {.copy = {RW, 8, RW, 0, 0x10}}},
	{NR(RAW_READFROM), CONNECTED, EACCES, {.copy = {RO, 8, RW, 0, 0}}},
	{NR(RAW_READFROM), CONNECTED, ENXIO, {.copy = {RW, 8, 0x90000, 0, 0}}},
	{NR(RAW_READFROM), BOUND, ENOTCONN, {.copy = {RW, 8, RW, 0, 0}}},
	{NR(RAW_READFROM), RESET, ECONNRESET, {.copy = {RW, 8, RW, 0, 0}}},
	{NR(RAW_WRITETO), CONNECTED, EINVAL, {.copy = {RW, 0, RW, 0, 0}}},
	{NR(RAW_WRITETO), CONNECTED, EACCES, {.copy = {RW, 8, RO, 0, 0}}},
	{NR(RAW_WRITETO), CONNECTED, ENXIO, {.copy = {0x90000, 8, RW, 0, 0}}},
	{NR(RAW_VREADFROM), CONNECTED, EFAULT, {.copy = {0, 8, RW, 16 * PAGE, 4}}},
	{NR(RAW_VREADFROM), CONNECTED, ENXIO, {.copy = {0, 8, -PAGE, 16 * PAGE, 4}}},
	{NR(RAW_VWRITETO), CONNECTED, EFAULT, {.copy = {0, 8, RW, 16 * PAGE, 4}}},
	{NR(RAW_VWRITETO), CONNECTED, EINVAL, {.copy = {0, 8, RW, 16 * PAGE, 32}}},
	{NR(RAW_VWRITETO), UNBOUND, ENOTCONN, {.copy = {0, 8, RW, 16 * PAGE, 4}}},

	{NR(RAW_MARK), CONNECTED, EINVAL, {.mark = {.flags = 3}}},
	{NR(RAW_MARK), CONNECTED, EFAULT, {.mark = {.flags = 1, .mark = 16 * PAGE}}},
	{NR(RAW_MARK), BOUND, ENOTCONN, {.mark = {.flags = 1}}},
	{NR(RAW_SIGNAL), CONNECTED, EINVAL, {.signal = {RW, 1, RW, 1, 1}}},
	{NR(RAW_SIGNAL), CONNECTED, EINVAL, {.signal = {RW + 1, 1, RW, 1, 0x31}}},
	{NR(RAW_SIGNAL), CONNECTED, ENXIO, {.signal = {0x90000, 1, RW, 1, 0x31}}},
	{NR(RAW_SIGNAL), CONNECTED, EACCES, {.signal = {RO, 1, RW, 1, 0x31}}},
	{NR(RAW_SIGNAL), RESET, ECONNRESET, {.signal = {RW, 1, RW, 1, 0x31}}},
};

/* Commands whose argument is a number, or which do not exist. */
static const struct {
	uint32_t cmd;
	enum who who;
	uint64_t arg;
	int error;
} plain[] = {
	{0x40047302, UNBOUND, 1, EINVAL}, {0x40047302, BOUND, 0, EINVAL},
	{0x40047302, CONNECTED, 1, EISCONN}, {0x40047302, FILE_FD, 1, ENOTTY},
	{0xc0047310, CONNECTED, 12345, EINVAL}, {0xc0047310, UNBOUND, 0, ENOTCONN},
	{0x7317, UNBOUND, 0, 0}, {0x7317, FILE_FD, 0, ENOTTY}, {0x7300, CONNECTED, 0, EINVAL},
	{0x7312, CONNECTED, 0, EINVAL}, {0x7318, CONNECTED, 0, EINVAL},
	{0x73ff, CONNECTED, 0, EINVAL}, {0xc0207306, CONNECTED, 0, EINVAL}, /* another size */
	{0x40087306, CONNECTED, 0, EINVAL},                                 /* another direction */
	{0xc0087406, CONNECTED, 0, EINVAL},                                 /* another type */
	{TCGETS, CONNECTED, 0, EINVAL}, {FIONREAD, CONNECTED, 0, EINVAL},
	{FIONREAD, FILE_FD, 16 * PAGE, EFAULT}, /* files answer as ever */
};

static size_t size_of(enum raw_nr nr)
{
	static const size_t sizes[] = {[RAW_BIND] = 4,
		[RAW_CONNECT] = sizeof(struct raw_connect),
		[RAW_ACCEPTREQ] = sizeof(struct raw_accept),
		[RAW_ACCEPTREG] = 8,
		[RAW_SEND] = sizeof(struct raw_msg),
		[RAW_RECV] = sizeof(struct raw_msg),
		[RAW_REG] = sizeof(struct raw_reg),
		[RAW_UNREG] = sizeof(struct raw_unreg),
		[RAW_READFROM] = sizeof(struct raw_copy),
		[RAW_WRITETO] = sizeof(struct raw_copy),
		[RAW_VREADFROM] = sizeof(struct raw_copy),
		[RAW_VWRITETO] = sizeof(struct raw_copy),
		[RAW_MARK] = sizeof(struct raw_mark),
		[RAW_SIGNAL] = sizeof(struct raw_signal)};

	return sizes[nr];
}

static void table(void)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		const struct call *c = &calls[i];
		size_t size = size_of(c->nr);
		struct call copy = *c;
		int ret;

		check_case("%s: %s of %s, line %zu", raw_path[gen], c->name, names[c->who], i);
		if (c->nr == RAW_REG && !copy.arg.reg.addr)
			copy.arg.reg.addr = (uintptr_t)mem;
		errno = 0;
		ret = raw_do(who[c->who], gen, c->nr, &copy.arg);
		CHECK_EQ(ret, c->error ? -1 : 0);
		CHECK_EQ(errno, c->error);

		/* The argument itself: nowhere, and across the end of what is mapped. */
		if (c->who == FILE_FD)
			continue;
		CHECK_EQ(raw_do(who[c->who], gen, c->nr, NULL), -1);
		CHECK_EQ(errno, EFAULT);
		CHECK_EQ(raw_do(who[c->who], gen, c->nr, (void *)-1), -1);
		CHECK_EQ(errno, EFAULT);
		CHECK_EQ(raw_do(who[c->who], gen, c->nr, ro + PAGE - size + 1), -1);
		CHECK_EQ(errno, EFAULT);
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		check_case("%#x of %s", plain[i].cmd, names[plain[i].who]);
		errno = 0;
		CHECK_EQ(
			ioctl(who[plain[i].who], plain[i].cmd, plain[i].arg) >= 0, !plain[i].error);
		CHECK_EQ(errno, plain[i].error);
	}
	check_case("no fd");
	CHECK_EQ(ioctl(-1, raw_cmd(gen, RAW_BIND), mem), -1);
	CHECK_EQ(errno, EBADF);
}

/* Answers that cannot be written: in memory that can only be read. */
static void unwritable(void)
{
	struct raw_node_ids n = {(uintptr_t)ro, (uintptr_t)mem, 1};
	struct raw_node_ids_old o = {(uint16_t *)ro, 1, (uint16_t *)mem};
	void *nodes = gen == RAW_NEW ? (void *)&n : &o;
	struct raw_msg m = {(uintptr_t)ro, 1, 1, 0};
	struct pollfd *fds = (void *)ro;
	int fd = raw_open(gen, 0);

	check_case("%s: unwritable", raw_path[gen]);
	CHECK_EQ(raw_do(fd, gen, RAW_BIND, ro), -1); /* ro is zeros: any port */
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(raw_do(fd, gen, RAW_NODE_IDS, nodes), -1);
	CHECK_EQ(errno, EFAULT);
	n = (struct raw_node_ids){(uintptr_t)mem, (uintptr_t)ro, 1};
	o = (struct raw_node_ids_old){(uint16_t *)mem, 1, (uint16_t *)ro};
	CHECK_EQ(raw_do(fd, gen, RAW_NODE_IDS, nodes), -1);
	CHECK_EQ(errno, EFAULT);
	n = (struct raw_node_ids){0, (uintptr_t)mem, 0};
	o = (struct raw_node_ids_old){NULL, 0, (uint16_t *)mem};
	CHECK_EQ(raw_do(fd, gen, RAW_NODE_IDS, nodes), 0);
	n.len = o.len = -1;
	CHECK_EQ(raw_do(fd, gen, RAW_NODE_IDS, nodes), -1);
	CHECK_EQ(errno, EINVAL);
	close(fd);

	CHECK_EQ(raw_send(who[CONNECTED], gen, "x", 1, 1), 1);
	CHECK_EQ(raw_do(who[CONNECTED], gen, RAW_RECV, &m), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(poll(BAD, 1, 0), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(poll(fds, 1, 0), -1); /* fd 0, and revents cannot be said */
	CHECK_EQ(errno, EFAULT);
}

static void connects_refused(void)
{
	int fd = raw_open(gen, 0);

	check_case("%s: refused", raw_path[gen]);
	CHECK_EQ(raw_connect(fd, gen, (struct raw_id){0, 1999}), -1);
	CHECK_EQ(errno, ECONNREFUSED);
	close(fd);
	CHECK_EQ(open("/dev/scif/", O_RDWR), -1);
	CHECK_EQ(errno, ENOTDIR);
	CHECK_EQ(open("/dev/mic/scif/x", O_RDWR), -1);
	CHECK_EQ(errno, ENOTDIR);
	CHECK_EQ(open("/dev/mic/scix", O_RDWR), -1);
	CHECK_EQ(errno, ENOENT);
}

/* Everybody of the table; `spare` is the peer of CONNECTED. */
static struct raw_pair make_all(int *spare)
{
	struct raw_pair reset = raw_make_pair(gen), p = raw_make_pair(gen);
	struct raw_reg r = {(uintptr_t)mem, PAGE, RO, 1, 0x10, 0};
	int pn = 0;

	close(reset.b);
	close(reset.listener);
	who[RESET] = reset.a;
	for (int i = 0; i < WAIT_MS && raw_send(reset.a, gen, "", 1, 0) >= 0; i++)
		usleep(1000);
	who[UNBOUND] = raw_open(gen, 0);
	who[BOUND] = raw_open(gen, 0);
	CHECK_EQ(raw_do(who[BOUND], gen, RAW_BIND, &pn), 0);
	CHECK(pn > 1088);
	who[LISTENING] = raw_listener(gen, 1, &port);
	who[CONNECTED] = p.a;
	who[FILE_FD] = open("/proc/self/exe", O_RDONLY);
	CHECK_EQ(raw_register(p.a, gen, mem, PAGE, RW, 0x10), RW);
	CHECK_EQ(raw_register(p.b, gen, mem, PAGE, RW, 0x10), RW);
	CHECK_EQ(raw_do(p.a, gen, RAW_REG, &r), 0);
	CHECK_EQ(raw_do(p.b, gen, RAW_REG, &r), 0);
	*spare = p.b;
	return p;
}

int main(void)
{
	mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ro = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED || ro == MAP_FAILED || mprotect(ro + PAGE, PAGE, PROT_NONE))
		die("mmap");
	for (gen = 0; gen < RAW_GENS; gen++) {
		int spare;
		struct raw_pair p = make_all(&spare);

		table();
		CHECK_EQ(raw_send(spare, gen, "y", 1, 1), 1);
		unwritable();
		connects_refused();
		for (int i = 0; i < WHOS; i++)
			close(who[i]);
		close(p.b);
		close(p.listener);
	}
	return check_result();
}
