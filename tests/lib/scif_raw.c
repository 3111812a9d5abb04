// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/scif_raw.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <unistd.h>
#if __has_include(<linux/scif_ioctl.h>)
#include <linux/scif_ioctl.h>
#endif

#include "tests/lib/check.h"

enum { WAIT_MS = 20000 };

const char *const raw_path[RAW_GENS] = {"/dev/scif", "/dev/mic/scif"};

static const uint32_t commands[RAW_GENS][RAW_COUNT] = {
	[RAW_NEW] = {0, 0xc0087301, 0x40047302, 0xc0087303, 0xc0107304, 0xc0087305, 0xc0187306,
		0xc0187307, 0xc0287308, 0xc0107309, 0xc028730a, 0xc028730b, 0xc028730c, 0xc028730d,
		0xc018730e, 0xc010730f, 0xc0047310, 0xc0287311},
	[RAW_OLD] = {0, 0xc0087301, 0x40047302, 0xc0087303, 0xc0087304, 0xc0087305, 0xc0087306,
		0xc0087307, 0xc0087308, 0xc0087309, 0xc008730a, 0xc008730b, 0xc008730c, 0xc008730d,
		0xc008730e, 0xc008730f, 0xc0047310, 0xc0087311},
};

#ifdef SCIF_FENCE_SIGNAL
_Static_assert(SCIF_BIND == 0xc0087301 && SCIF_LISTEN == 0x40047302 && SCIF_CONNECT == 0xc0087303 &&
		       SCIF_ACCEPTREQ == 0xc0107304 && SCIF_ACCEPTREG == 0xc0087305 &&
		       SCIF_SEND == 0xc0187306 && SCIF_RECV == 0xc0187307 &&
		       SCIF_REG == 0xc0287308 && SCIF_UNREG == 0xc0107309 &&
		       SCIF_READFROM == 0xc028730a && SCIF_VWRITETO == 0xc028730d &&
		       SCIF_GET_NODEIDS == 0xc018730e && SCIF_FENCE_MARK == 0xc010730f &&
		       SCIF_FENCE_WAIT == 0xc0047310 && SCIF_FENCE_SIGNAL == 0xc0287311,
	"the numbers of the kernel's header");
_Static_assert(
	offsetof(struct raw_accept, endpt) == offsetof(struct scifioctl_accept, endpt) &&
		offsetof(struct raw_msg, out_len) == offsetof(struct scifioctl_msg, out_len) &&
		offsetof(struct raw_reg, prot) == offsetof(struct scifioctl_reg, prot) &&
		offsetof(struct raw_copy, addr) == offsetof(struct scifioctl_copy, addr) &&
		offsetof(struct raw_node_ids, self) == offsetof(struct scifioctl_node_ids, self) &&
		offsetof(struct raw_mark, mark) == offsetof(struct scifioctl_fence_mark, mark),
	"the structs of the kernel's header");
#endif

unsigned long raw_cmd(enum raw_gen gen, enum raw_nr nr)
{
	return commands[gen][nr];
}

int raw_do(int fd, enum raw_gen gen, enum raw_nr nr, void *arg)
{
	return ioctl(fd, raw_cmd(gen, nr), arg);
}

int raw_open(enum raw_gen gen, int flags)
{
	int fd = open(raw_path[gen], O_RDWR | flags);

	if (fd < 0)
		die("%s", raw_path[gen]);
	return fd;
}

int raw_listener(enum raw_gen gen, int backlog, uint16_t *port)
{
	int fd = raw_open(gen, O_CLOEXEC), pn = 0;

	if (raw_do(fd, gen, RAW_BIND, &pn) || ioctl(fd, raw_cmd(gen, RAW_LISTEN), backlog))
		die("cannot listen");
	*port = pn;
	return fd;
}

int raw_connect(int fd, enum raw_gen gen, struct raw_id peer)
{
	struct raw_connect c = {.peer = peer};
	int ret = raw_do(fd, gen, RAW_CONNECT, &c);

	return ret ? ret : c.self.port;
}

int raw_accept(int fd, enum raw_gen gen, int flags, struct raw_id *peer)
{
	struct raw_accept a = {.flags = flags};
	int new = raw_open(gen, 0), err;

	if (raw_do(fd, gen, RAW_ACCEPTREQ, &a) || raw_do(new, gen, RAW_ACCEPTREG, &a.endpt)) {
		err = errno;
		close(new);
		errno = err;
		return -1;
	}
	*peer = a.peer;
	return new;
}

int raw_send(int fd, enum raw_gen gen, const void *msg, int len, int flags)
{
	struct raw_msg m = {(uintptr_t)msg, len, flags, -2};
	int ret = raw_do(fd, gen, RAW_SEND, &m);

	return ret ? ret : m.out_len;
}

int raw_recv(int fd, enum raw_gen gen, void *msg, int len, int flags)
{
	struct raw_msg m = {(uintptr_t)msg, len, flags, -2};
	int ret = raw_do(fd, gen, RAW_RECV, &m);

	return ret ? ret : m.out_len;
}

int64_t raw_register(int fd, enum raw_gen gen, void *mem, uint64_t len, int64_t off, int flags)
{
	struct raw_reg r = {(uintptr_t)mem, len, off, 3, flags, -2};
	int ret = raw_do(fd, gen, RAW_REG, &r);

	return ret ? ret : r.out_offset;
}

struct raw_pair raw_make_pair(enum raw_gen gen)
{
	struct raw_pair p;
	struct raw_id peer;
	struct pollfd ready;

	p.listener = raw_listener(gen, 4, &p.port);
	p.a = raw_open(gen, O_NONBLOCK);
	if (raw_connect(p.a, gen, (struct raw_id){0, p.port}) != -1 || errno != EINPROGRESS)
		die("connect");
	p.b = raw_accept(p.listener, gen, 1, &peer);
	if (p.b < 0)
		die("accept");
	ready = (struct pollfd){.fd = p.a, .events = POLLOUT};
	if (poll(&ready, 1, WAIT_MS) != 1 || ready.revents != POLLOUT ||
		raw_connect(p.a, gen, (struct raw_id){0, p.port}) <= 0)
		die("the connection does not come");
	fcntl(p.a, F_SETFL, 0);
	return p;
}

void raw_end_pair(struct raw_pair *p)
{
	CHECK_EQ(close(p->a), 0);
	CHECK_EQ(close(p->b), 0);
	CHECK_EQ(close(p->listener), 0);
}
