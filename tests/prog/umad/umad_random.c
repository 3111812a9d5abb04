// SPDX-License-Identifier: BSD-3-Clause
/*
 * Random use of /dev/infiniband/umad0 by system calls alone: files that come and go, registrations,
 * writes of any length, reads, messages of many segments, poll, select and epoll.  It prints one
 * line for each step, and none depends on the machine: the same seed gives the same lines on the
 * kernel's ib_umad over rdma_rxe as on Weft.
 *
 * usage: umad_random SEED STEPS
 *
 * After each write a barrier lets all arrive that it brings about: requests that nobody is there
 * for are answered by the port itself, behind what was sent before.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "tests/prog/umad/umad_abi.h"

enum {
	NEW = 64,
	OLD = 56,
	MAD = 256,
	MOST = 600,
	BUFFER = 1024,
	PATIENCE_MS = 60000,
	NEVER_MS = 3600000
};
enum { FILES = 4, AGENTS = 32, CLASS_OF_NOBODY = 0x0e, GET = 1 };
enum { TIMED_OUT = 256 };
enum { LIFE = 250 };      /* steps, then all files are closed */
enum { ROUND_TRIPS = 5 }; /* of a message of segments, until its sender has heard */

struct hdr {
	uint32_t id, status, timeout_ms, retries, length;
	uint32_t qpn, qkey; /* network order, as all but what stands above */
	uint16_t lid;
	uint8_t sl, path_bits;
	uint8_t grh, gid_index, hops, traffic_class, gid[16];
	uint32_t flow;
	uint16_t pkey_index;
	uint8_t reserved[6];
};

/* Who cuts and joins messages of segments for an agent. */
enum rmpp { NONE, LAYER, USER };

struct agent {
	bool there;
	uint8_t class, version, oui;
	uint32_t mask[4];
	enum rmpp rmpp;
};

/* A file of the program. */
struct file {
	int fd;          /* or -1 */
	int level, edge; /* epolls that watch it */
	bool pkey, used;
	struct agent agent[AGENTS];
	bool asked; /* a request was read last */
	int ended;  /* the transaction whose timeout, or response, was read last */
	uint8_t request[NEW + MAD];
};

static struct file files[FILES];
static int control;
static uint8_t gid[16];
static uint32_t barriers;
static unsigned long step;

static const uint8_t classes[] = {
	0x03, 0x03, 0x03, 0x06, 0x09, 0x0a, 0x10, 0x12, 0x21, 0x30, 0x32, 0x4f};
static const uint8_t methods[] = {1, 2, 3, 5, 6, 0x12, 0x13, 0x81, 0x86, 0x92};

/* ---- chance ---- */

static uint64_t state;

static uint32_t chance(uint32_t n)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint32_t)((z ^ z >> 31) >> 32) % n;
}

static bool one_in(uint32_t n)
{
	return !chance(n);
}

#define ANY_OF(table) ((table)[chance(sizeof(table) / sizeof *(table))])

/* ---- what is printed ---- */

static const char *name_of(int err)
{
	static char other[32];
	static const struct {
		int err;
		const char *name;
	} names[] = {{EAGAIN, "EAGAIN"}, {EBADF, "EBADF"}, {EFAULT, "EFAULT"}, {EINVAL, "EINVAL"},
		{EIO, "EIO"}, {ENODATA, "ENODATA"}, {ENOMEM, "ENOMEM"}, {ENOSPC, "ENOSPC"},
		{EPROTONOSUPPORT, "EPROTONOSUPPORT"}};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].err == err)
			return names[i].name;
	snprintf(other, sizeof other, "errno %d", err);
	return other;
}

static const char *result(long ret)
{
	static char number[32];

	if (ret < 0)
		return name_of(errno);
	snprintf(number, sizeof number, "%ld", ret);
	return number;
}

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	va_list ap;

	printf("%lu ", step);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static int must(int ret, const char *what)
{
	if (ret >= 0)
		return ret;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static uint32_t hash(const uint8_t *p, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

/* ---- the port ---- */

static void read_text(const char *path, char *out, size_t size)
{
	int fd = must(open(path, O_RDONLY), path);
	ssize_t n = must((int)read(fd, out, size - 1), path);

	close(fd);
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

static void find_gid(void)
{
	char device[64], path[200], text[64], *at = text;

	read_text("/sys/class/infiniband_mad/umad0/ibdev", device, sizeof device);
	snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/gids/0", device);
	read_text(path, text, sizeof text);
	for (int i = 0; i < 16; i += 2, at += 5) {
		uint16_t word = htons((uint16_t)strtoul(at, NULL, 16));

		memcpy(gid + i, &word, 2);
	}
}

static int open_file(int mode)
{
	return open("/dev/infiniband/umad0", mode | O_NONBLOCK);
}

static void to_ourselves(struct hdr *h)
{
	h->qpn = htonl(1);
	h->qkey = htonl(0x80010000);
	h->grh = 1;
	h->hops = 64;
	memcpy(h->gid, gid, sizeof gid);
}

static struct req nobodys(void)
{
	return (struct req){.qpn = 1, .class = CLASS_OF_NOBODY, .version = 1, .mask = {1u << 31}};
}

static void open_control(void)
{
	struct req r = {.qpn = 1}, other = nobodys();

	control = must(open_file(O_RDWR), "umad0");
	must(ioctl(control, PKEY), "ENABLE_PKEY");
	must(ioctl(control, REGISTER, &r), "REGISTER_AGENT");
	must(ioctl(control, REGISTER, &other), "REGISTER_AGENT");
}

/* Until the answer to a request that the port answers is there. */
static void barrier(unsigned times)
{
	uint8_t buf[NEW + MAD] = {0};
	struct hdr *h = (struct hdr *)buf;
	struct pollfd p = {.fd = control, .events = POLLIN};
	long ret;

	for (; times; times--) {
		uint32_t tid = htonl(++barriers);

		memset(buf, 0, sizeof buf);
		to_ourselves(h);
		h->timeout_ms = PATIENCE_MS;
		memcpy(buf + NEW, (uint8_t[]){1, CLASS_OF_NOBODY, 1, GET}, 4);
		memcpy(buf + NEW + 12, &tid, 4);
		must((int)write(control, buf, sizeof buf), "barrier");
		ret = poll(&p, 1, PATIENCE_MS) == 1 ? read(control, buf, sizeof buf) : 0;
		if (ret != sizeof buf || h->status || memcmp(buf + NEW + 12, &tid, 4)) {
			printf("%lu no answer to a barrier: %s, status %u\n", step, result(ret),
				h->status);
			exit(1);
		}
	}
}

/*
 * Waits for all that a write to a file brings about.  Two files are not in order of themselves:
 * here a command, though refused, comes behind the write and before the barrier.
 */
static void settle(const struct file *f, unsigned times)
{
	uint32_t none = AGENTS;

	ioctl(f->fd, UNREGISTER, &none);
	barrier(times);
}

/* ---- files ---- */

static int epoll_of(int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events};
	int ep = must(epoll_create1(0), "epoll_create1");

	must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), "epoll_ctl");
	return ep;
}

static void do_open(struct file *f, int n)
{
	f->fd = must(open_file(O_RDWR), "umad0");
	f->level = epoll_of(f->fd, EPOLLIN);
	f->edge = epoll_of(f->fd, EPOLLIN | EPOLLET);
	f->pkey = f->used = false;
	memset(f->agent, 0, sizeof f->agent);
	f->asked = false;
	say("open %d", n);
}

/* Whose methods are free is sure once somebody was refused one. */
static void do_close(struct file *f, int n)
{
	struct req r = nobodys();

	close(f->level);
	close(f->edge);
	say("close %d: %s", n, result(close(f->fd)));
	f->fd = -1;
	ioctl(control, REGISTER, &r);
	barrier(1);
}

static void do_pkey(struct file *f, int n)
{
	int ret = ioctl(f->fd, PKEY);

	f->pkey |= !ret;
	say("pkey %d: %s", n, result(ret));
}

/* ---- agents ---- */

static uint8_t any_class(void)
{
	static const uint8_t odd[] = {0, 0, 0, 0x01, 0x81, 0x50, 0xff, 0x4f};

	return one_in(4) ? ANY_OF(odd) : ANY_OF(classes);
}

static void any_mask(uint32_t *mask)
{
	for (unsigned i = chance(3); i; i--) {
		unsigned method = ANY_OF(methods) & 0x7f;

		mask[method / 32] |= 1u << method % 32;
	}
}

static bool has_rmpp(uint8_t class)
{
	return class == 3 || class == 6 || class == 0x10 || class == 0x12 ||
	       (class >= 0x30 && class <= 0x4f);
}

static void registered(struct file *f, uint32_t id, bool by_req2, struct agent a)
{
	a.there = true;
	f->agent[id] = a;
	f->pkey |= by_req2 && !f->used;
	f->used = true;
}

static void do_register(struct file *f, int n)
{
	struct req r = {.qpn = one_in(20) ? chance(3) : 1, .class = any_class()};
	int ret;

	r.version = one_in(12) ? 0x82 + chance(2) : 1 + chance(2);
	r.rmpp = one_in(12) ? chance(256) : has_rmpp(r.class) || !r.class ? !one_in(4) : one_in(5);
	r.oui[2] = one_in(8) ? 0 : 5 + chance(2);
	any_mask(r.mask);
	ret = one_in(50) ? ioctl(f->fd, REGISTER, NULL) : ioctl(f->fd, REGISTER, &r);
	say("register %d class %02x version %02x QP %u RMPP %u OUI %u: %s, id %u", n, r.class,
		r.version, r.qpn, r.rmpp, r.oui[2], result(ret), r.id);
	if (ret)
		return;
	registered(f, r.id, false,
		(struct agent){.class = r.class,
			.version = r.version,
			.oui = r.oui[2],
			.mask = {r.mask[0], r.mask[1], r.mask[2], r.mask[3]},
			.rmpp = r.rmpp ? LAYER : NONE});
}

static void do_register2(struct file *f, int n)
{
	struct req2 r = {.qpn = one_in(12) ? chance(4) : 1, .class = any_class()};
	int ret;

	r.version = one_in(12) ? 0x82 + chance(2) : 1 + chance(2);
	r.rmpp = one_in(12) ? chance(256) : has_rmpp(r.class) || !r.class ? !one_in(4) : one_in(5);
	r.flags = one_in(6) ? chance(8) : chance(2);
	r.oui = one_in(8) ? chance(2) << 24 : 5 + chance(2);
	any_mask(r.mask);
	ret = one_in(50) ? ioctl(f->fd, REGISTER2, NULL) : ioctl(f->fd, REGISTER2, &r);
	say("register2 %d class %02x version %02x QP %u RMPP %u OUI %x: %s, id %u, flags %x", n,
		r.class, r.version, r.qpn, r.rmpp, r.oui, result(ret), r.id, r.flags);
	if (ret)
		return;
	registered(f, r.id, true,
		(struct agent){.class = r.class,
			.version = r.version,
			.oui = (uint8_t)r.oui,
			.mask = {r.mask[0], r.mask[1], r.mask[2], r.mask[3]},
			.rmpp = !r.rmpp   ? NONE
				: r.flags ? USER
					  : LAYER});
}

static void do_unregister(struct file *f, int n)
{
	uint32_t id = one_in(4) ? chance(40) : chance(6);
	int ret = one_in(50) ? ioctl(f->fd, UNREGISTER, NULL) : ioctl(f->fd, UNREGISTER, &id);

	if (!ret)
		f->agent[id].there = false;
	say("unregister %d id %u: %s", n, id, result(ret));
	barrier(1);
}

/* ---- MADs ---- */

static uint32_t any_id(const struct file *f)
{
	uint32_t id = chance(AGENTS);

	if (one_in(20))
		return chance(40);
	for (unsigned i = 0; i < AGENTS; i++)
		if (f->agent[(id + i) % AGENTS].there)
			return (id + i) % AGENTS;
	return id;
}

static void any_header(const struct file *f, struct hdr *h)
{
	to_ourselves(h);
	h->id = any_id(f);
	h->timeout_ms = one_in(2) ? 0 : NEVER_MS;
	h->retries = chance(2);
	h->length = one_in(2) ? 0 : chance(1000);
	h->status = one_in(10);
	h->lid = htons((uint16_t)chance(1 << 16));
	h->sl = (uint8_t)chance(16);
	h->path_bits = (uint8_t)chance(4);
	h->qkey = htonl(chance(2));
	h->grh = one_in(30) ? 0 : 1 + one_in(10);
	h->gid_index = one_in(30) ? 250 : 0;
	h->hops = (uint8_t)chance(256);
	h->traffic_class = (uint8_t)chance(256);
	h->flow = htonl(chance(1 << 20));
}

/* The n-th agent of all files that hears requests, counted round; NULL: there is none. */
static const struct agent *nth_server(uint32_t n)
{
	const struct agent *found[FILES * AGENTS];
	uint32_t count = 0;

	for (int i = 0; i < FILES; i++)
		for (int id = 0; id < AGENTS && files[i].fd >= 0; id++) {
			const struct agent *a = &files[i].agent[id];

			if (a->there && a->class &&
				(a->mask[0] | a->mask[1] | a->mask[2] | a->mask[3]))
				found[count++] = a;
		}
	return count ? found[n % count] : NULL;
}

static bool hears(const struct agent *a, const uint8_t *mad)
{
	uint8_t method = mad[3];

	return a->there && a->class == mad[1] && a->version == mad[2] && method < 128 &&
	       a->mask[method / 32] >> method % 32 & 1 &&
	       (mad[1] < 0x30 || mad[1] > 0x4f || a->oui == mad[39]);
}

/* Who gets a request, or NULL. */
static const struct agent *server_of(const uint8_t *mad)
{
	for (int i = 0; i < FILES; i++)
		for (int id = 0; id < AGENTS && files[i].fd >= 0; id++)
			if (hears(&files[i].agent[id], mad))
				return &files[i].agent[id];
	return NULL;
}

static void to_somebody(uint8_t *mad)
{
	const struct agent *a = nth_server(chance(1 << 16));

	if (!a)
		return;
	mad[1] = a->class;
	mad[2] = a->version;
	mad[39] = a->oui;
	do
		mad[3] = (uint8_t)chance(128);
	while (!(a->mask[mad[3] / 32] >> mad[3] % 32 & 1));
}

/* The RMPP header: none, or the one of a message, whose numbers are the layer's. */
static void any_segment(uint8_t *mad)
{
	memset(mad + 24, 0, 12);
	if (one_in(2))
		return;
	mad[24] = 1;
	mad[25] = 1; /* DATA */
	mad[26] = (uint8_t)(chance(32) << 3 | 1);
	mad[31] = (uint8_t)chance(3);
	mad[35] = (uint8_t)chance(256);
}

static void any_mad(uint8_t *mad, size_t n)
{
	uint32_t tid = htonl(1 + chance(200));

	for (size_t i = 0; i < n; i++)
		mad[i] = (uint8_t)chance(256);
	mad[0] = one_in(30) ? 2 : 1;
	mad[1] = ANY_OF(classes);
	mad[2] = (uint8_t)(1 + chance(2));
	mad[3] = ANY_OF(methods);
	memcpy(mad + 12, &tid, 4);
	mad[39] = (uint8_t)(5 + chance(2)); /* the last byte of an OUI */
	memset(mad + 37, 0, 2);
	if (!one_in(3))
		to_somebody(mad);
	any_segment(mad);
}

static size_t any_length(void)
{
	static const size_t near[] = {36, 39, 40, 41, 55, 56, 57, 63, 64, 65, 255, 256, 257};

	return one_in(2) ? MAD : one_in(2) ? ANY_OF(near) : chance(MOST);
}

static bool is_readable(const struct file *f)
{
	struct pollfd p = {.fd = f->fd, .events = POLLIN};

	return poll(&p, 1, 0);
}

/*
 * A message that is not acknowledged ends when nobody can tell.  Where it may be so it gets a short
 * time, in which it does end, and has one segment; true: that is to be waited for.  Were something
 * there already, one could not, so it is no message then.  Nor are segments of an agent's own, for
 * the layer to put together: what it makes of odd ones is its own affair.
 */
static bool prepare(const struct file *f, struct hdr *h, uint8_t *mad, size_t *length)
{
	bool lost = mad[0] != 1, response = mad[3] & 0x80;
	bool get_or_set = !lost && (mad[3] == 1 || mad[3] == 2);
	const struct agent *to = lost ? NULL : server_of(mad);
	bool layer = h->id < AGENTS && f->agent[h->id].there && f->agent[h->id].rmpp == LAYER;
	bool to_layer = to && to->rmpp == LAYER;

	if (!has_rmpp(mad[1]) || !(mad[26] & 1))
		return false;
	if (!layer && (to_layer || response))
		mad[26] = 0;
	if (!layer || to_layer || (!to && get_or_set))
		return false;
	if (is_readable(f)) {
		mad[26] = 0;
		return false;
	}
	h->timeout_ms = 1 + h->timeout_ms % 8;
	*length = *length < MAD ? *length : MAD;
	return true;
}

static bool await(const struct file *f)
{
	struct pollfd p = {.fd = f->fd, .events = POLLIN};

	if (poll(&p, 1, PATIENCE_MS) == 1)
		return true;
	say("nothing came");
	return false;
}

static long read_one(struct file *f, int n, size_t size);

/* Reads until the MAD that was written with that result has timed out, or is answered. */
static void await_end(struct file *f, int n, long ret, const uint8_t *mad)
{
	int timed_out = TIMED_OUT | mad[15], answered = mad[3] & 0x80 ? timed_out : mad[15];

	if (ret < 0)
		return;
	f->ended = -1;
	while (f->ended != timed_out && f->ended != answered && await(f) &&
		read_one(f, n, BUFFER) >= 0)
		;
}

/* A message for an agent with the layer's RMPP, by one of those. */
static void any_message(const struct file *f, struct hdr *h, uint8_t *mad)
{
	for (uint32_t id = 0; id < AGENTS; id++)
		if (f->agent[id].there && f->agent[id].rmpp == LAYER)
			h->id = id;
	for (unsigned i = 0; i < 20; i++) {
		const struct agent *to = server_of(mad);

		if (to && to->rmpp == LAYER)
			break;
		to_somebody(mad);
	}
	memcpy(mad + 24, (uint8_t[]){1, 1, 1}, 3);
}

static void do_write(struct file *f, int n)
{
	uint8_t buf[NEW + MOST], *mad = buf + (f->pkey ? NEW : OLD);
	struct hdr h = {0};
	size_t length = any_length(), count;
	bool ends;
	long ret;

	any_header(f, &h);
	any_mad(mad, buf + sizeof buf - mad);
	if (one_in(4)) {
		any_message(f, &h, mad);
		length = MOST - chance(MOST - 36);
	}
	ends = prepare(f, &h, mad, &length);
	count = one_in(40) ? chance(f->pkey ? NEW : OLD) : (size_t)(mad - buf) + length;
	memcpy(buf, &h, f->pkey ? NEW : OLD);
	ret = one_in(100) ? write(f->fd, (void *)8, count) : write(f->fd, buf, count);
	say("write %d id %u of %zu, class %02x method %02x TID %02x RMPP %02x: %s", n, h.id, count,
		mad[1], mad[3], mad[15], mad[26], result(ret));
	if (ends)
		await_end(f, n, ret, mad);
	if (ret > 0)
		settle(f, mad[26] & 1 ? ROUND_TRIPS : 1);
}

/* The answer to the request that was read last, once. */
static void do_answer(struct file *f, int n)
{
	uint8_t buf[NEW + MOST], *mad = buf + (f->pkey ? NEW : OLD);
	size_t length = any_length(), count;
	struct hdr h = {0};
	bool ends;
	long ret;

	for (size_t i = 0; i < sizeof buf; i++)
		buf[i] = (uint8_t)i;
	memcpy(buf, f->request, (size_t)(mad - buf) + MAD);
	memcpy(&h, buf, OLD);
	h.timeout_ms = 0;
	mad[3] |= 0x80;
	mad[4] = mad[5] = 0;
	any_segment(mad);
	ends = prepare(f, &h, mad, &length);
	count = (size_t)(mad - buf) + length;
	memcpy(buf, &h, OLD);
	ret = write(f->fd, buf, count);
	say("answer %d of %zu, class %02x method %02x TID %02x RMPP %02x: %s", n, count, mad[1],
		mad[3], mad[15], mad[26], result(ret));
	f->asked = false;
	if (ends)
		await_end(f, n, ret, mad);
	if (ret > 0)
		settle(f, mad[26] & 1 ? ROUND_TRIPS : 1);
}

/* One that nobody answers, if nothing is there, so that one can wait for it. */
static void do_timeout(struct file *f, int n)
{
	uint8_t buf[NEW + MAD] = {0}, *mad = buf + (f->pkey ? NEW : OLD);
	struct hdr h = {0};
	long ret;

	any_header(f, &h);
	if (is_readable(f))
		return;
	h.timeout_ms = 1 + chance(20);
	memcpy(buf, &h, NEW);
	memcpy(mad, (uint8_t[]){1, CLASS_OF_NOBODY, 1, 3}, 4);
	mad[15] = (uint8_t)chance(256);
	ret = write(f->fd, buf, (size_t)(mad - buf) + MAD);
	say("timeout %d id %u: %s", n, h.id, result(ret));
	if (ret > 0) {
		await(f);
		settle(f, 1);
	}
}

static size_t any_size(void)
{
	static const size_t near[] = {55, 56, 63, 64, 80, 87, 88, 311, 312, 319, 320};

	return one_in(2) ? 320 : one_in(2) ? ANY_OF(near) : one_in(2) ? BUFFER : chance(700);
}

static long read_one(struct file *f, int n, size_t size)
{
	uint8_t buf[BUFFER], *mad = buf + (f->pkey ? NEW : OLD);
	struct hdr h = {0};
	size_t hdr_size = (size_t)(mad - buf), got;
	long ret;

	memset(buf, 0xee, sizeof buf);
	ret = read(f->fd, buf, size);
	memcpy(&h, buf, hdr_size);
	if (ret < 0 && errno != ENOSPC) {
		say("read %d of %zu: %s, %02x", n, size, result(ret), buf[0]);
		return ret;
	}
	if (ret > 0 && (h.status || mad[3] & 0x80))
		f->ended = (h.status ? TIMED_OUT : 0) | mad[15];
	f->asked = ret > 0 && !h.status && !(mad[3] & 0x80);
	if (f->asked)
		memcpy(f->request, buf, hdr_size + MAD);
	memset(mad + 8, 0, 4); /* not the program's */
	got = ret < 0 ? hdr_size + MAD : (size_t)ret;
	say("read %d of %zu: %s; id %u status %u timeout %u retries %u length %u QP %u Q_Key %x "
	    "LID %x "
	    "SL %u bits %u GRH %u index %u hops %u class %u flow %x GID %s P_Key %u, MAD %02x %02x "
	    "%02x%02x TID %02x RMPP %02x%02x%02x hash %08x, behind %08x",
		n, size, result(ret), h.id, h.status, h.timeout_ms, h.retries, h.length,
		ntohl(h.qpn), ntohl(h.qkey), ntohs(h.lid), h.sl, h.path_bits, h.grh, h.gid_index,
		h.hops, h.traffic_class, ntohl(h.flow),
		memcmp(h.gid, gid, sizeof gid) ? "another" : "ours", h.pkey_index, mad[1], mad[3],
		mad[4], mad[5], mad[15], mad[24], mad[25], mad[26], hash(mad, got - hdr_size),
		hash(buf + got, sizeof buf - got));
	return ret;
}

static void do_read(struct file *f, int n)
{
	size_t size = any_size();

	if (one_in(50))
		say("read %d of %zu from nowhere: %s", n, size,
			result(read(f->fd, (void *)8, size)));
	else
		read_one(f, n, size);
}

/* ---- readiness ---- */

static void do_poll(struct file *f, int n)
{
	struct pollfd p = {.fd = f->fd, .events = POLLIN | POLLOUT | POLLPRI | POLLRDNORM};

	int ret = poll(&p, 1, 0);

	say("poll %d: %s, %x", n, result(ret), p.revents);
}

static void do_select(struct file *f, int n)
{
	struct timeval at_once = {0};
	fd_set in, out, other;
	int ret;

	FD_ZERO(&in);
	FD_SET(f->fd, &in);
	out = other = in;
	ret = select(f->fd + 1, &in, &out, &other, &at_once);
	say("select %d: %s, %d %d %d", n, result(ret), !!FD_ISSET(f->fd, &in),
		!!FD_ISSET(f->fd, &out), !!FD_ISSET(f->fd, &other));
}

static void do_level(struct file *f, int n)
{
	struct epoll_event ev = {0};
	int ret = epoll_wait(f->level, &ev, 1, 0);

	say("epoll %d: %s, %x", n, result(ret), ev.events);
}

/* As it ought to be done: all that is there is read. */
static void do_edge(struct file *f, int n)
{
	struct epoll_event ev = {0};
	int ret = epoll_wait(f->edge, &ev, 1, 0);

	say("edge %d: %s, %x", n, result(ret), ev.events);
	while (ret == 1 && read_one(f, n, BUFFER) >= 0)
		;
}

/* ---- all ---- */

static void one_step(void)
{
	static const struct {
		void (*run)(struct file *f, int n);
		unsigned weight;
	} ways[] = {{do_close, 1}, {do_pkey, 2}, {do_register, 7}, {do_register2, 7},
		{do_unregister, 4}, {do_write, 40}, {do_timeout, 2}, {do_read, 30}, {do_poll, 6},
		{do_select, 4}, {do_level, 6}, {do_edge, 6}};
	int n = (int)chance(FILES);
	struct file *f = &files[n];
	unsigned at = 0, i;

	for (i = 0; i < sizeof ways / sizeof *ways; i++)
		at += ways[i].weight;
	at = chance(at);
	for (i = 0; at >= ways[i].weight; i++)
		at -= ways[i].weight;
	if (f->fd < 0)
		do_open(f, n);
	else if (f->asked && one_in(3))
		do_answer(f, n);
	else
		ways[i].run(f, n);
}

/* What an agent has begun to receive it gives up after 40 s: until then it is gone. */
static void close_all(void)
{
	for (int n = 0; n < FILES; n++)
		if (files[n].fd >= 0)
			do_close(&files[n], n);
}

int main(int argc, char **argv)
{
	unsigned long steps = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;

	if (!steps) {
		fprintf(stderr, "usage: umad_random SEED STEPS\n");
		return 2;
	}
	state = strtoull(argv[1], NULL, 0);
	find_gid();
	open_control();
	for (int n = 0; n < FILES; n++)
		files[n].fd = -1;
	for (step = 1; step <= steps; step++) {
		if (step % LIFE == 0)
			close_all();
		one_step();
	}
	return 0;
}
