// SPDX-License-Identifier: BSD-3-Clause
/*
 * Each error of each SCIF call, as a table: who is asked, what, what comes.  In both conventions.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/prog/scif/scif_convention.h"

enum { PAGE = 4096 };

/* Endpoints in each state. */
enum who { BAD_FD, NO_EP, UNBOUND, BOUND, LISTENING, CONNECTED, RESET, WHOS };
static const char *const names[] = {
	"bad fd", "not an endpoint", "unbound", "bound", "listening", "connected", "reset"};
static scif_epd_t who[WHOS];
static uint16_t port; /* somebody listens there */
static uint8_t *mem;  /* two pages */
static scif_pinned_pages_t pinned, unpinned;

/* Windows: CONNECTED has its own and its peer's at these offsets. */
enum { RW = 0x10000, RO = 0x20000, WO = 0x30000, HOLE = 0x50000 };

struct call {
	const char *name;
	enum who who;
	int64_t (*call)(scif_epd_t epd, const int64_t *arg);
	int64_t arg[4];
	int error; /* 0: it succeeds */
};

static int64_t do_bind(scif_epd_t epd, const int64_t *a)
{
	return scif_bind(epd, a[0] < 0 ? port : a[0]);
}

static int64_t do_listen(scif_epd_t epd, const int64_t *a)
{
	return scif_listen(epd, a[0]);
}

static int64_t do_connect(scif_epd_t epd, const int64_t *a)
{
	struct scif_portID dst = {a[0], a[1]};

	return scif_connect(epd, a[2] ? NULL : &dst);
}

static int64_t do_accept(scif_epd_t epd, const int64_t *a)
{
	struct scif_portID peer;
	scif_epd_t e;

	return scif_accept(epd, a[1] ? NULL : &peer, a[2] ? NULL : &e, a[0]);
}

static int64_t do_close(scif_epd_t epd, const int64_t *a)
{
	(void)a;
	return scif_close(epd);
}

static int64_t do_send(scif_epd_t epd, const int64_t *a)
{
	return scif_send(epd, a[2] ? NULL : mem, a[0], a[1]);
}

static int64_t do_recv(scif_epd_t epd, const int64_t *a)
{
	return scif_recv(epd, a[2] ? NULL : mem, a[0], a[1]);
}

static int64_t do_register(scif_epd_t epd, const int64_t *a)
{
	return scif_register(epd, mem + (a[3] & 0xfff), a[0], a[1], a[2], a[3] & ~0xfff);
}

/* scif_register() with flags; prot in the low bits of a[3]. */
static int64_t do_register_at(scif_epd_t epd, const int64_t *a)
{
	return scif_register(epd, mem + a[0], a[1], a[2], a[3] & 0xff, a[3] >> 8);
}

/* At an address, not in mem. */
static int64_t do_register_there(scif_epd_t epd, const int64_t *a)
{
	return scif_register(epd, (void *)a[0], a[1], 0, 3, 0);
}

static int64_t do_register_hole(scif_epd_t epd, const int64_t *a)
{
	(void)a;
	return scif_register(epd, (void *)(16 * PAGE), PAGE, 0, 3, 0);
}

static int64_t do_unregister(scif_epd_t epd, const int64_t *a)
{
	return scif_unregister(epd, a[0], a[1]);
}

static int64_t do_readfrom(scif_epd_t epd, const int64_t *a)
{
	return scif_readfrom(epd, a[0], a[1], a[2], a[3]);
}

static int64_t do_writeto(scif_epd_t epd, const int64_t *a)
{
	return scif_writeto(epd, a[0], a[1], a[2], a[3]);
}

static void *place(int64_t bad)
{
	return bad ? (void *)(16 * PAGE) : mem;
}

static int64_t do_vreadfrom(scif_epd_t epd, const int64_t *a)
{
	return scif_vreadfrom(epd, place(a[0]), a[1], a[2], a[3]);
}

static int64_t do_vwriteto(scif_epd_t epd, const int64_t *a)
{
	return scif_vwriteto(epd, place(a[0]), a[1], a[2], a[3]);
}

static int64_t do_mark(scif_epd_t epd, const int64_t *a)
{
	int mark;

	return scif_fence_mark(epd, a[0], a[1] ? NULL : &mark);
}

static int64_t do_wait(scif_epd_t epd, const int64_t *a)
{
	return scif_fence_wait(epd, a[0]);
}

static int64_t do_signal(scif_epd_t epd, const int64_t *a)
{
	return scif_fence_signal(epd, a[0], 1, a[1], 2, a[2]);
}

#ifndef KERNEL_CONVENTION
static int64_t do_mmap(scif_epd_t epd, const int64_t *a)
{
	void *p = scif_mmap(NULL, a[0], a[1], a[2], epd, a[3]);

	return p == SCIF_MMAP_FAILED ? -1 : scif_munmap(p, a[0]);
}

/* With SCIF_MAP_FIXED, at that address. */
static int64_t do_mmap_there(scif_epd_t epd, const int64_t *a)
{
	void *p = scif_mmap((void *)a[0], PAGE, 3, SCIF_MAP_FIXED, epd, RW);

	return p == SCIF_MMAP_FAILED ? -1 : scif_munmap(p, PAGE);
}

static int64_t do_get_fd(scif_epd_t epd, const int64_t *a)
{
	(void)a;
	return scif_get_fd(epd) == epd ? 0 : -1;
}

static int64_t do_munmap(scif_epd_t epd, const int64_t *a)
{
	(void)epd;
	return scif_munmap(mem + a[0], a[1]);
}
#endif

static int64_t do_pin(scif_epd_t epd, const int64_t *a)
{
	scif_pinned_pages_t p;
	int ret;

	(void)epd;
	ret = scif_pin_pages(mem + a[0], a[1], a[2] & 0xff, a[2] >> 8, a[3] ? NULL : &p);
	return ret ? ret : scif_unpin_pages(p);
}

static int64_t do_pin_there(scif_epd_t epd, const int64_t *a)
{
	scif_pinned_pages_t p;

	(void)epd;
	return scif_pin_pages((void *)a[0], a[1], 3, 0, &p);
}

static int64_t do_pin_hole(scif_epd_t epd, const int64_t *a)
{
	scif_pinned_pages_t p;

	(void)epd;
	(void)a;
	return scif_pin_pages((void *)(16 * PAGE), PAGE, 3, 0, &p);
}

/* 0: no handle, 1: one that was given up. */
static int64_t do_unpin(scif_epd_t epd, const int64_t *a)
{
	(void)epd;
	return scif_unpin_pages(a[0] ? unpinned : NULL);
}

/* The handle: 0 a good one, 1 none, 2 one that was given up. */
static int64_t do_register_pinned(scif_epd_t epd, const int64_t *a)
{
	scif_pinned_pages_t p = a[0] == 0 ? pinned : a[0] == 1 ? NULL : unpinned;

	return scif_register_pinned_pages(epd, p, a[1], a[2]);
}

static int64_t do_get_pages(scif_epd_t epd, const int64_t *a)
{
	struct scif_range *r;
	int ret = scif_get_pages(epd, a[0], a[1], a[2] ? NULL : &r);

	return ret ? ret : scif_put_pages(r);
}

static int64_t do_put_pages(scif_epd_t epd, const int64_t *a)
{
	struct scif_range r = {.cookie = &r};

	(void)epd;
	return scif_put_pages(a[0] ? NULL : &r);
}

static int64_t do_put_twice(scif_epd_t epd, const int64_t *a)
{
	struct scif_range *r;
	int ret = scif_get_pages(epd, a[0], a[1], &r);

	if (!ret)
		ret = scif_put_pages(r);
	return ret ? ret : scif_put_pages(r);
}

static int64_t do_client(scif_epd_t epd, const int64_t *a)
{
	struct scif_client c = {.name = "twice"};
	int64_t ret;

	(void)epd;
	if (a[0])
		return scif_client_register(NULL);
	CHECK_EQ(scif_client_register(&c), 0);
	ret = scif_client_register(&c);
	scif_client_unregister(&c);
	return ret;
}

static int64_t do_nodes(scif_epd_t epd, const int64_t *a)
{
	(void)epd;
	return scif_get_nodeIDs(NULL, a[0], NULL);
}

static int64_t do_poll(scif_epd_t epd, const int64_t *a)
{
	struct scif_pollepd p = {.epd = epd, .events = POLLIN};

	return scif_poll(a[1] ? NULL : &p, a[0], 0);
}

enum {
	SELF = SCIF_FENCE_INIT_SELF,
	PEER = SCIF_FENCE_INIT_PEER,
	LOCAL = SCIF_SIGNAL_LOCAL,
	REMOTE = SCIF_SIGNAL_REMOTE,
	FIXED = SCIF_MAP_FIXED << 8,
	SYNC = SCIF_RMA_SYNC,
};

static const struct call calls[] = {
	{"listen", UNBOUND, do_listen, {1}, EINVAL},
	{"accept", UNBOUND, do_accept, {0}, EINVAL},
	{"bind taken", UNBOUND, do_bind, {-1}, EINVAL},
	{"bind", UNBOUND, do_bind, {0}, 0},
	{"bind again", UNBOUND, do_bind, {0}, EINVAL},
	{"bind", BOUND, do_bind, {2000}, EINVAL},
	{"bind", LISTENING, do_bind, {2000}, EISCONN},
	{"bind", CONNECTED, do_bind, {2000}, EISCONN},
	{"bind", RESET, do_bind, {2000}, EINVAL},
	{"listen", LISTENING, do_listen, {1}, EISCONN},
	{"listen", CONNECTED, do_listen, {1}, EISCONN},
	{"listen", RESET, do_listen, {1}, EINVAL},
	{"listen", BOUND, do_listen, {0}, EINVAL},
	{"listen", BOUND, do_listen, {-1}, EINVAL},
	{"connect", LISTENING, do_connect, {0, 2000}, EOPNOTSUPP},
	{"connect", CONNECTED, do_connect, {0, 2000}, EISCONN},
	{"connect", RESET, do_connect, {0, 2000}, EINVAL},
	{"connect", BOUND, do_connect, {0, 0}, EINVAL},
	{"connect", BOUND, do_connect, {0, 2000, 1}, EINVAL},
	{"connect", BOUND, do_connect, {9, 2000}, ENODEV},
	{"connect", BOUND, do_connect, {0, 2000}, ECONNREFUSED},
	{"connect again", BOUND, do_connect, {0, 2000}, ECONNREFUSED},
	{"accept", BOUND, do_accept, {0}, EINVAL},
	{"accept", CONNECTED, do_accept, {0}, EINVAL},
	{"accept", RESET, do_accept, {0}, EINVAL},
	{"accept", LISTENING, do_accept, {0}, EAGAIN},
	{"accept flags", LISTENING, do_accept, {2}, EINVAL},
	{"accept peer", LISTENING, do_accept, {0, 1}, EINVAL},
	{"accept newepd", LISTENING, do_accept, {0, 0, 1}, EINVAL},
	{"send nothing", BOUND, do_send, {0}, 0},
	{"send len", BOUND, do_send, {-1}, EINVAL},
	{"send flags", CONNECTED, do_send, {1, 2}, EINVAL},
	{"send NULL", CONNECTED, do_send, {1, 0, 1}, EFAULT},
	{"send NULL", CONNECTED, do_send, {0, 0, 1}, 0},
	{"send", BOUND, do_send, {1}, ENOTCONN},
	{"send", LISTENING, do_send, {1}, ENOTCONN},
	{"send", RESET, do_send, {1}, ECONNRESET},
	{"recv nothing", UNBOUND, do_recv, {0}, 0},
	{"recv", UNBOUND, do_recv, {1, 1}, ENOTCONN},
	{"recv", LISTENING, do_recv, {1, 1}, ENOTCONN},
	{"recv len", CONNECTED, do_recv, {-1}, EINVAL},
	{"recv flags", CONNECTED, do_recv, {1, 6}, EINVAL},
	{"recv NULL", CONNECTED, do_recv, {1, 0, 1}, EFAULT},
	{"recv NULL", CONNECTED, do_recv, {0, 1, 1}, 0},
	{"recv", BOUND, do_recv, {1}, ENOTCONN},
	{"recv", RESET, do_recv, {1, 1}, ECONNRESET},
	{"recv when empty", CONNECTED, do_recv, {1}, 0},
	{"register", BOUND, do_register, {PAGE, 0, 3}, ENOTCONN},
	{"register", RESET, do_register, {PAGE, 0, 3}, ECONNRESET},
	{"register len", CONNECTED, do_register, {0, 0, 3}, EINVAL},
	{"register len", CONNECTED, do_register, {100, 0, 3}, EINVAL},
	{"register prot", CONNECTED, do_register, {PAGE, 0, 4}, EINVAL},
	{"register no prot", CONNECTED, do_register, {PAGE, 0, 0}, EINVAL},
	{"register addr", CONNECTED, do_register_at, {1, PAGE, 0, 3}, EINVAL},
	{"register flags", CONNECTED, do_register_at, {0, PAGE, 0, 3 | 0x40 << 8}, EINVAL},
#ifdef KERNEL_CONVENTION
	{"register kernel", CONNECTED, do_register_at, {0, PAGE, 0, 3 | SCIF_MAP_KERNEL << 8}, 0},
#else
	{"register kernel", CONNECTED, do_register_at, {0, PAGE, 0, 3 | SCIF_MAP_KERNEL << 8},
		EINVAL},
#endif
	{"register offset", CONNECTED, do_register_at, {0, PAGE, 100, 3 | FIXED}, EINVAL},
	{"register offset", CONNECTED, do_register_at, {0, PAGE, -PAGE, 3 | FIXED}, EINVAL},
	{"register negative", CONNECTED, do_register, {PAGE, -PAGE, 3}, EINVAL},
	{"register negative", CONNECTED, do_register, {PAGE, -1, 3}, EINVAL},
	{"register end", CONNECTED, do_register_at, {0, PAGE, INT64_MAX - PAGE + 1, 3 | FIXED},
		EINVAL},
	{"register taken", CONNECTED, do_register_at, {0, PAGE, RW, 3 | FIXED}, EADDRINUSE},
	{"register hole", CONNECTED, do_register_hole, {0}, EFAULT},
	{"register NULL", CONNECTED, do_register_there, {0, PAGE}, EFAULT},
	{"register beyond", CONNECTED, do_register_there, {-PAGE, PAGE}, EFAULT},
	{"register beyond", CONNECTED, do_register_there, {-2 * PAGE, PAGE}, EFAULT},
	{"register beyond", CONNECTED, do_register_there, {-PAGE, 2 * PAGE}, EFAULT},
	{"unregister", BOUND, do_unregister, {RW, PAGE}, ENOTCONN},
	{"unregister", RESET, do_unregister, {RW, PAGE}, ECONNRESET},
	{"unregister part", CONNECTED, do_unregister, {RW, PAGE}, EINVAL},
	{"unregister part", CONNECTED, do_unregister, {RW + PAGE, PAGE}, EINVAL},
	{"unregister negative", CONNECTED, do_unregister, {-PAGE, PAGE}, EINVAL},
	{"unregister nothing", CONNECTED, do_unregister, {HOLE, PAGE}, ENXIO},
	{"readfrom", BOUND, do_readfrom, {RW, 8, RW, SYNC}, ENOTCONN},
	{"readfrom", RESET, do_readfrom, {RW, 8, RW, SYNC}, ECONNRESET},
	{"readfrom", CONNECTED, do_readfrom, {RW, 8, RW, SYNC}, 0},
	{"readfrom flags", CONNECTED, do_readfrom, {RW, 8, RW, 0x10}, EINVAL},
	{"readfrom len", CONNECTED, do_readfrom, {RW, 0, RW, SYNC}, EINVAL},
	{"readfrom local", CONNECTED, do_readfrom, {HOLE, 8, RW, SYNC}, ENXIO},
	{"readfrom remote", CONNECTED, do_readfrom, {RW, 8, HOLE, SYNC}, ENXIO},
	{"readfrom end", CONNECTED, do_readfrom, {RW + 2 * PAGE - 4, 8, RW, SYNC}, ENXIO},
	{"readfrom wraps", CONNECTED, do_readfrom, {RW, -1, RW, SYNC}, ENXIO},
	{"readfrom to ro", CONNECTED, do_readfrom, {RO, 8, RW, SYNC}, EACCES},
	{"readfrom of wo", CONNECTED, do_readfrom, {RW, 8, WO, SYNC}, EACCES},
	{"writeto", BOUND, do_writeto, {RW, 8, RW, SYNC}, ENOTCONN},
	{"writeto", RESET, do_writeto, {RW, 8, RW, SYNC}, ECONNRESET},
	{"writeto", CONNECTED, do_writeto, {RO, 8, WO, SYNC}, 0},
	{"writeto flags", CONNECTED, do_writeto, {RW, 8, RW, -1}, EINVAL},
	{"writeto local", CONNECTED, do_writeto, {HOLE, 8, RW, SYNC}, ENXIO},
	{"writeto remote", CONNECTED, do_writeto, {RW, 8, HOLE, SYNC}, ENXIO},
	{"writeto negative", CONNECTED, do_writeto, {RW, 8, -8, SYNC}, ENXIO},
	{"writeto of wo", CONNECTED, do_writeto, {WO, 8, RW, SYNC}, EACCES},
	{"writeto to ro", CONNECTED, do_writeto, {RW, 8, RO, SYNC}, EACCES},
	{"vreadfrom", BOUND, do_vreadfrom, {0, 8, RW, SYNC}, ENOTCONN},
	{"vreadfrom", RESET, do_vreadfrom, {0, 8, RW, SYNC}, ECONNRESET},
	{"vreadfrom", CONNECTED, do_vreadfrom, {0, 8, RW, SYNC}, 0},
	{"vreadfrom flags", CONNECTED, do_vreadfrom, {0, 8, RW, 0x20}, EINVAL},
	{"vreadfrom remote", CONNECTED, do_vreadfrom, {0, 8, HOLE, SYNC}, ENXIO},
	{"vreadfrom of wo", CONNECTED, do_vreadfrom, {0, 8, WO, SYNC}, EACCES},
	{"vreadfrom hole", CONNECTED, do_vreadfrom, {1, 8, RW, SYNC}, EFAULT},
	{"vwriteto", BOUND, do_vwriteto, {0, 8, RW, SYNC}, ENOTCONN},
	{"vwriteto", RESET, do_vwriteto, {0, 8, RW, SYNC}, ECONNRESET},
	{"vwriteto", CONNECTED, do_vwriteto, {0, 8, RW, SYNC}, 0},
	{"vwriteto flags", CONNECTED, do_vwriteto, {0, 8, RW, 0x40}, EINVAL},
	{"vwriteto remote", CONNECTED, do_vwriteto, {0, 8, HOLE, SYNC}, ENXIO},
	{"vwriteto to ro", CONNECTED, do_vwriteto, {0, 8, RO, SYNC}, EACCES},
	{"vwriteto hole", CONNECTED, do_vwriteto, {1, 8, RW, SYNC}, EFAULT},
	{"mark", BOUND, do_mark, {SELF}, ENOTCONN},
	{"mark", RESET, do_mark, {PEER}, ECONNRESET},
	{"mark neither", CONNECTED, do_mark, {0}, EINVAL},
	{"mark both", CONNECTED, do_mark, {SELF | PEER}, EINVAL},
	{"mark flags", CONNECTED, do_mark, {SELF | LOCAL}, EINVAL},
	{"mark nowhere", CONNECTED, do_mark, {SELF, 1}, EINVAL},
	{"wait", BOUND, do_wait, {1}, ENOTCONN},
	{"wait", RESET, do_wait, {1}, ECONNRESET},
	{"wait for nothing", CONNECTED, do_wait, {1}, EINVAL},
	{"wait for nothing", CONNECTED, do_wait, {-1}, EINVAL},
	{"signal", BOUND, do_signal, {RW, RW, SELF | LOCAL}, ENOTCONN},
	{"signal", RESET, do_signal, {RW, RW, SELF | LOCAL}, ECONNRESET},
	{"signal neither", CONNECTED, do_signal, {RW, RW, LOCAL}, EINVAL},
	{"signal both", CONNECTED, do_signal, {RW, RW, SELF | PEER | LOCAL}, EINVAL},
	{"signal nothing", CONNECTED, do_signal, {RW, RW, SELF}, EINVAL},
	{"signal flags", CONNECTED, do_signal, {RW, RW, SELF | LOCAL | 0x100}, EINVAL},
	{"signal loff", CONNECTED, do_signal, {RW + 2, RW, SELF | LOCAL}, EINVAL},
	{"signal roff", CONNECTED, do_signal, {RW, RW + 1, PEER | REMOTE}, EINVAL},
	{"signal unused", CONNECTED, do_signal, {RW, HOLE + 1, SELF | LOCAL}, 0},
	{"signal local", CONNECTED, do_signal, {HOLE, RW, SELF | LOCAL}, ENXIO},
	{"signal end", CONNECTED, do_signal, {RW + 2 * PAGE - 4, RW, SELF | LOCAL}, ENXIO},
	{"signal remote", CONNECTED, do_signal, {RW, HOLE, PEER | REMOTE}, ENXIO},
	{"signal ro", CONNECTED, do_signal, {RO, RW, SELF | LOCAL}, EACCES},
	{"signal ro", CONNECTED, do_signal, {RW, RO, SELF | REMOTE}, EACCES},
	{"nodes", CONNECTED, do_nodes, {0}, 0},
	{"nodes", CONNECTED, do_nodes, {-1}, EINVAL},
	{"poll", CONNECTED, do_poll, {1}, 0},
	{"poll nowhere", CONNECTED, do_poll, {1, 1}, EFAULT},
	{"poll many", CONNECTED, do_poll, {0x7fffffff}, EINVAL},
#ifndef KERNEL_CONVENTION
	{"mmap", BOUND, do_mmap, {PAGE, 3, 0, RW}, ENOTCONN},
	{"mmap", RESET, do_mmap, {PAGE, 3, 0, RW}, ECONNRESET},
	{"mmap", CONNECTED, do_mmap, {PAGE, 3, 0, RW}, 0},
	{"mmap nothing", CONNECTED, do_mmap, {0, 3, 0, RW}, EINVAL},
	{"mmap offset", CONNECTED, do_mmap, {PAGE, 3, 0, RW + 1}, EINVAL},
	{"mmap prot", CONNECTED, do_mmap, {PAGE, 8, 0, RW}, EINVAL},
	{"mmap flags", CONNECTED, do_mmap, {PAGE, 3, 0x1000, RW}, EINVAL},
	{"mmap hole", CONNECTED, do_mmap, {PAGE, 3, 0, HOLE}, ENXIO},
	{"mmap end", CONNECTED, do_mmap, {3 * PAGE, 3, 0, RW}, ENXIO},
	{"mmap ro", CONNECTED, do_mmap, {PAGE, 3, 0, RO}, EACCES},
	{"mmap wo", CONNECTED, do_mmap, {PAGE, 1, 0, WO}, EACCES},
	{"mmap at NULL", CONNECTED, do_mmap_there, {0}, EINVAL},
	{"mmap at no page", CONNECTED, do_mmap_there, {RW + 1}, EINVAL},
	{"mmap beyond", CONNECTED, do_mmap_there, {-PAGE}, ENOMEM},
	{"mmap beyond", CONNECTED, do_mmap_there, {-16 * PAGE}, ENOMEM},
	{"get_fd", UNBOUND, do_get_fd, {0}, 0},
	{"munmap address", CONNECTED, do_munmap, {1, PAGE}, EINVAL},
	{"munmap nothing", CONNECTED, do_munmap, {0, 0}, EINVAL},
#endif
	{"pin", CONNECTED, do_pin, {0, PAGE, 3}, 0},
	{"pin addr", CONNECTED, do_pin, {1, PAGE, 3}, EINVAL},
	{"pin len", CONNECTED, do_pin, {0, 100, 3}, EINVAL},
	{"pin nothing", CONNECTED, do_pin, {0, 0, 3}, EINVAL},
	{"pin prot", CONNECTED, do_pin, {0, PAGE, 4}, EINVAL},
	{"pin no prot", CONNECTED, do_pin, {0, PAGE, 0}, EINVAL},
	{"pin flags", CONNECTED, do_pin, {0, PAGE, 3 | FIXED}, EINVAL},
	{"pin hole", CONNECTED, do_pin_hole, {0}, EFAULT},
	{"pin NULL", CONNECTED, do_pin_there, {0, PAGE}, EFAULT},
	{"pin beyond", CONNECTED, do_pin_there, {-PAGE, PAGE}, EFAULT},
	{"pin beyond", CONNECTED, do_pin_there, {-2 * PAGE, PAGE}, EFAULT},
	{"pin nowhere", CONNECTED, do_pin, {0, PAGE, 3, 1}, EINVAL},
#ifdef KERNEL_CONVENTION
	{"pin kernel", CONNECTED, do_pin, {0, PAGE, 3 | SCIF_MAP_KERNEL << 8}, 0},
#else
	{"pin kernel", CONNECTED, do_pin, {0, PAGE, 3 | SCIF_MAP_KERNEL << 8}, EINVAL},
#endif
	{"unpin nothing", CONNECTED, do_unpin, {0}, EINVAL},
	{"unpin again", CONNECTED, do_unpin, {1}, EINVAL},
	{"register_pinned", BOUND, do_register_pinned, {0}, ENOTCONN},
	{"register_pinned", RESET, do_register_pinned, {0}, ECONNRESET},
	{"register_pinned", CONNECTED, do_register_pinned, {0}, 0},
	{"register_pinned none", CONNECTED, do_register_pinned, {1}, EINVAL},
	{"register_pinned unpinned", CONNECTED, do_register_pinned, {2}, EINVAL},
	{"register_pinned flags", CONNECTED, do_register_pinned, {0, 0, 0x40}, EINVAL},
	{"register_pinned offset", CONNECTED, do_register_pinned, {0, 100, SCIF_MAP_FIXED}, EINVAL},
	{"register_pinned negative", CONNECTED, do_register_pinned, {0, -PAGE, SCIF_MAP_FIXED},
		EINVAL},
	{"register_pinned negative", CONNECTED, do_register_pinned, {0, -PAGE, 0}, EINVAL},
	{"register_pinned taken", CONNECTED, do_register_pinned, {0, RW + PAGE, SCIF_MAP_FIXED},
		EADDRINUSE},
	{"get_pages", BOUND, do_get_pages, {RW, PAGE}, ENOTCONN},
	{"get_pages", RESET, do_get_pages, {RW, PAGE}, ECONNRESET},
	{"get_pages", CONNECTED, do_get_pages, {RW, PAGE}, 0},
	{"get_pages offset", CONNECTED, do_get_pages, {RW + 8, PAGE}, EINVAL},
	{"get_pages negative", CONNECTED, do_get_pages, {-PAGE, PAGE}, EINVAL},
	{"get_pages len", CONNECTED, do_get_pages, {RW, 100}, EINVAL},
	{"get_pages nowhere", CONNECTED, do_get_pages, {RW, PAGE, 1}, EINVAL},
	{"get_pages hole", CONNECTED, do_get_pages, {HOLE, PAGE}, ENXIO},
	{"get_pages end", CONNECTED, do_get_pages, {RW, 3 * PAGE}, ENXIO},
	{"put_pages", CONNECTED, do_put_pages, {0}, EINVAL},
	{"put_pages", CONNECTED, do_put_pages, {1}, EINVAL},
	{"put_pages twice", CONNECTED, do_put_twice, {RW, PAGE}, EINVAL},
	{"client_register", CONNECTED, do_client, {1}, EINVAL},
	{"client_register twice", CONNECTED, do_client, {0}, EEXIST},
};

/* Every call that takes an endpoint: EBADF and ENOTTY. */
static const struct call all[] = {
	{"bind", 0, do_bind, {2000}, 0},
	{"listen", 0, do_listen, {1}, 0},
	{"connect", 0, do_connect, {0, 2000}, 0},
	{"accept", 0, do_accept, {0}, 0},
	{"close", 0, do_close, {0}, 0},
	{"send", 0, do_send, {1}, 0},
	{"recv", 0, do_recv, {1}, 0},
	{"register", 0, do_register, {PAGE, 0, 3}, 0},
	{"unregister", 0, do_unregister, {RW, PAGE}, 0},
	{"readfrom", 0, do_readfrom, {RW, 8, RW}, 0},
	{"writeto", 0, do_writeto, {RW, 8, RW}, 0},
	{"vreadfrom", 0, do_vreadfrom, {0, 8, RW}, 0},
	{"vwriteto", 0, do_vwriteto, {0, 8, RW}, 0},
	{"mark", 0, do_mark, {SELF}, 0},
	{"wait", 0, do_wait, {1}, 0},
	{"signal", 0, do_signal, {RW, RW, SELF | LOCAL}, 0},
#ifndef KERNEL_CONVENTION
	{"mmap", 0, do_mmap, {PAGE, 3, 0, RW}, 0},
	{"get_fd", 0, do_get_fd, {0}, 0},
#endif
	{"register_pinned", 0, do_register_pinned, {0}, 0},
	{"get_pages", 0, do_get_pages, {RW, PAGE}, 0},
};

/* Does it need pages that can be shared? */
static bool maps(const struct call *c)
{
#ifndef KERNEL_CONVENTION
	if (c->call == do_mmap || (c->call == do_mmap_there && c->error == ENOMEM))
		return true;
#endif
	return c->call == do_get_pages || c->call == do_put_twice;
}

static void run(const struct call *c, enum who w, int error)
{
	int64_t ret;

	if (maps(c) && !scif_can_map() && (!error || error == ENOMEM || c->call == do_put_twice))
		error = EOPNOTSUPP;
	check_case("%s, %s", c->name, names[w]);
	errno = 0;
	ret = c->call(who[w], c->arg);
	check_answer(ret, error);
}

static void open_windows(int fd)
{
	scif_epd_t epd = epd_of(fd);
	uint8_t *m = scif_pages(6 * PAGE);

	CHECK_EQ(scif_register(epd, m, 2 * PAGE, RW, 3, SCIF_MAP_FIXED), RW);
	CHECK_EQ(
		scif_register(epd, m + 2 * PAGE, 2 * PAGE, RO, SCIF_PROT_READ, SCIF_MAP_FIXED), RO);
	CHECK_EQ(scif_register(epd, m + 4 * PAGE, 2 * PAGE, WO, SCIF_PROT_WRITE, SCIF_MAP_FIXED),
		WO);
}

/* Another user than root, though one who reaches what files root has. */
static bool become_user(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	if (geteuid())
		return true;
	if (seteuid(65534) || syscall(SYS_capget, &head, caps))
		return false;
	caps[0].effective = caps[0].permitted & 1u << CAP_DAC_OVERRIDE;
	return !syscall(SYS_capset, &head, caps);
}

/* Ports below 1024 are root's. */
static void privileged_ports(void)
{
	pid_t pid = fork();
	scif_epd_t e;
	int status;

	if (!pid) {
		e = scif_open();
		if (!become_user())
			_exit(1);
		errno = 0;
		check_answer(scif_bind(e, 1023), EACCES);
		CHECK_EQ(scif_bind(e, 1024), 1024);
		_exit(check_result());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	check_child(status);
	e = scif_open();
	setenv("WEFT_SCIF_PORTS", "any", 1);
	CHECK_EQ(scif_bind(e, 1023), 1023);
	CHECK_EQ(scif_close(e), 0);
}

/* The kernel's convention has no place for the error. */
static void no_endpoint(int err)
{
#ifdef KERNEL_CONVENTION
	(void)err;
	CHECK(scif_open() == NULL);
#else
	CHECK_FAILS(scif_open(), err);
#endif
}

/* A node that cannot be: no endpoint, no list of nodes. */
static void node_of_nobody(int in, int out)
{
	static const char *const bad[] = {"65536", "99999999999", "-1", "1x", "mic0"};
	uint16_t self = 77;

	(void)in;
	(void)out;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		check_case("WEFT_NODE=%s", bad[i]);
		setenv("WEFT_NODE", bad[i], 1);
		no_endpoint(EINVAL);
		errno = 0;
		check_answer(scif_get_nodeIDs(NULL, 0, &self), EINVAL);
		CHECK_EQ(self, 77);
	}
}

static void no_weftd(int in, int out)
{
	(void)in;
	(void)out;
	check_case("no weftd");
	setenv("WEFT_FABRIC", "nobody", 1);
	setenv("WEFT_AUTOSTART", "0", 1);
	no_endpoint(ENOTCONN);
}

static void bad_node(void)
{
	struct scif_child c = scif_fork(node_of_nobody);

	check_case("bad node");
	scif_join(&c);
	c = scif_fork(no_weftd);
	scif_join(&c);
}

/* A node that was there: killed, so that it is lost. */
static void node_of_child(int in, int out)
{
	uint16_t pn;

	setenv("WEFT_NODE", "6", 1);
	scif_listener(1, &pn);
	scif_tell(out, pn);
	scif_hear(in);
}

static void lost_node(void)
{
	struct scif_child c = scif_fork(node_of_child);
	struct scif_portID dst = {6, scif_hear(c.from)};
	scif_epd_t e = scif_open();

	check_case("lost node");
	kill(c.pid, SIGKILL);
	waitpid(c.pid, NULL, 0);
	close(c.to);
	close(c.from);
	errno = 0;
	check_answer(scif_connect(e, &dst), ENODEV);
	CHECK_EQ(scif_close(e), 0);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* Calls that wait, when a signal comes. */
static void interrupted(void)
{
	const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
	struct scif_pollepd p = {.epd = who[CONNECTED], .events = POLLIN};
	struct sigaction sa = {.sa_handler = on_alarm};
	struct scif_portID peer;
	scif_epd_t e;
	char byte;

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	errno = 0;
	check_case("accept, interrupted");
	check_answer(scif_accept(who[LISTENING], &peer, &e, SCIF_ACCEPT_SYNC), EINTR);
	errno = 0;
	check_case("recv, interrupted");
	check_answer(scif_recv(who[CONNECTED], &byte, 1, SCIF_RECV_BLOCK), EINTR);
	errno = 0;
	check_case("poll, interrupted");
	check_answer(scif_poll(&p, 1, -1), EINTR);
	setitimer(ITIMER_REAL, &never, NULL);
}

/* What scif_poll() says at once; -1: nothing. */
static int events(scif_epd_t epd, int wanted)
{
	struct scif_pollepd p = {.epd = epd, .events = wanted};
	int n = scif_poll(&p, 1, 0);

	return n == 1 ? (int)p.revents : n == 0 ? -1 : -2;
}

/* Descriptors that are none. */
static void make_strangers(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
#ifdef KERNEL_CONVENTION
	static int something;

	check_case("pointers");
	who[NO_EP] = scif_open(); /* something else takes its place */
	CHECK(dup2(null, weft_scif_to_fd(who[NO_EP])) >= 0);
	who[BAD_FD] = scif_open();
	CHECK_EQ(scif_close(who[BAD_FD]), 0);
	errno = 0;
	CHECK_EQ(scif_listen(NULL, 1), -EBADF);
	CHECK_EQ(scif_listen(SCIF_OPEN_FAILED, 1), -EBADF);
	CHECK_EQ(scif_listen((scif_epd_t)&something, 1), -EBADF);
	CHECK_EQ(weft_scif_to_fd(who[BAD_FD]), -EBADF);
	CHECK_EQ(weft_scif_to_fd(NULL), -EBADF);
	CHECK_EQ(errno, 0);
	CHECK(weft_scif_from_fd(null) == NULL);
	CHECK_EQ(errno, ENOTTY);
	CHECK(weft_scif_from_fd(-1) == NULL);
	CHECK_EQ(errno, EBADF);
#else
	who[BAD_FD] = 999;
	who[NO_EP] = null;
#endif
}

int main(void)
{
	struct scif_pair p, q;

	mem = scif_pages(2 * PAGE);
	p = scif_make_pair();
	q = scif_make_pair();
	who[UNBOUND] = scif_open();
	who[BOUND] = scif_open();
	CHECK(scif_bind(who[BOUND], 0) > 0);
	who[LISTENING] = epd_of(scif_listener(1, &port));
	who[CONNECTED] = epd_of(p.a);
	open_windows(p.a);
	open_windows(p.b);
	CHECK_EQ(scif_pin_pages(mem, 2 * PAGE, 3, 0, &pinned), 0);
	CHECK_EQ(scif_pin_pages(mem, 2 * PAGE, 3, 0, &unpinned), 0);
	CHECK_EQ(scif_unpin_pages(unpinned), 0);
	who[RESET] = epd_of(q.a);
	scif_close(epd_of(q.b));
	CHECK_EQ(scif_raw_poll(q.a, 0, 10000) & POLLHUP, POLLHUP);
	make_strangers(); /* last: the number of BAD_FD stays free */
	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) {
		run(&all[i], BAD_FD, EBADF);
		run(&all[i], NO_EP, ENOTTY);
	}
	check_case("poll");
	CHECK_EQ(events(who[BAD_FD], POLLIN), POLLNVAL);
	CHECK_EQ(events(who[NO_EP], POLLIN), POLLIN); /* as poll(2) */
	CHECK_EQ(events(who[UNBOUND], POLLIN), POLLERR);
	CHECK_EQ(events(who[BOUND], POLLIN), POLLERR);
	CHECK_EQ(events(who[LISTENING], POLLIN | POLLOUT), -1);
	CHECK_EQ(events(who[CONNECTED], POLLIN | POLLOUT), POLLOUT);
	CHECK_EQ(events(who[RESET], POLLIN), POLLHUP);
	check_case("privileged ports");
	privileged_ports();
	bad_node();
	lost_node();
	interrupted();
	for (unsigned i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		run(&calls[i], calls[i].who, calls[i].error);
	return check_result();
}
