// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/infiniband/umad0 and issm0 by system calls alone: no library of RDMA, none of Weft's tests,
 * so that the same binary, linked statically, runs on the kernel's ib_umad.  It prints one line for
 * each thing that it does, and none depends on the machine: umad_raw.expected has what rdma_rxe
 * gives.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/prog/umad/umad_abi.h"

enum { NEW = 64, OLD = 56, MAD = 256, PATIENCE_MS = 20000 };
enum { VENDOR = 0x0a, NOBODY = 0x0b, SA = 3 };
enum { GET = 1, SET = 2, SEND = 3, GET_TABLE = 0x12, RESPONSE = 0x80 };
enum { SA_DATA = 56, LONG = SA_DATA + 600, RMPP_ACTIVE = 1, RESP_TIME = 0x50 };

struct packet {
	uint32_t id, status, timeout_ms, retries, length;
	uint32_t qpn, qkey; /* network order, as all but what stands above */
	uint16_t lid;
	uint8_t sl, path_bits;
	uint8_t grh, gid_index, hops, traffic_class, gid[16];
	uint32_t flow;
	uint16_t pkey_index;
	uint8_t reserved[6];
	uint8_t mad[LONG];
};

static const char umad[] = "/dev/infiniband/umad0", issm[] = "/dev/infiniband/issm0";
static uint8_t gid[16];
static uint16_t lid; /* network order; 0 on Ethernet */

/* ---- what is printed ---- */

static const char *name_of(int err)
{
	static const struct {
		int err;
		const char *name;
	} names[] = {{EAGAIN, "EAGAIN"}, {EBADF, "EBADF"}, {EFAULT, "EFAULT"}, {EINTR, "EINTR"},
		{EINVAL, "EINVAL"}, {EIO, "EIO"}, {ENODEV, "ENODEV"}, {ENOENT, "ENOENT"},
		{ENOMEM, "ENOMEM"}, {ENOSPC, "ENOSPC"}, {ENOTDIR, "ENOTDIR"}, {ENOTTY, "ENOTTY"},
		{EPROTONOSUPPORT, "EPROTONOSUPPORT"}, {ESPIPE, "ESPIPE"}};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].err == err)
			return names[i].name;
	return strerror(err);
}

/* What a call gave: its number, or the name of its errno. */
static long said(const char *what, long ret)
{
	if (ret < 0)
		printf("%s: %s\n", what, name_of(errno));
	else
		printf("%s: %ld\n", what, ret);
	return ret;
}

/* For what gives an fd, whose number says nothing. */
static int opened(const char *what, int fd)
{
	printf("%s: %s\n", what, fd < 0 ? name_of(errno) : "open");
	return fd;
}

static int must(int ret, const char *what)
{
	if (ret >= 0)
		return ret;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- sysfs and nodes ---- */

static void text(const char *dir, const char *file, char *out, size_t size)
{
	char path[300];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/sys/class/%s/%s", dir, file);
	fd = must(open(path, O_RDONLY), path);
	n = must((int)read(fd, out, size - 1), path);
	close(fd);
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

static void attribute(const char *file)
{
	char value[64];

	text("infiniband_mad", file, value, sizeof value);
	printf("%s: %s\n", file, value);
}

static void read_address(void)
{
	char device[64], dir[128], value[64], *at = value;

	text("infiniband_mad", "umad0/ibdev", device, sizeof device);
	snprintf(dir, sizeof dir, "infiniband/%s", device);
	text(dir, "ports/1/gids/0", value, sizeof value);
	for (int i = 0; i < 16; i += 2, at += 5) {
		uint16_t word = htons(strtoul(at, NULL, 16));

		memcpy(gid + i, &word, 2);
	}
	text(dir, "ports/1/lid", value, sizeof value);
	lid = htons(strtoul(value, NULL, 16));
}

static void sysfs(void)
{
	char device[64], value[64];

	attribute("abi_version");
	attribute("umad0/port");
	attribute("umad0/dev");
	attribute("issm0/port");
	attribute("issm0/dev");
	text("infiniband_mad", "umad0/ibdev", device, sizeof device);
	text("infiniband_mad", "issm0/ibdev", value, sizeof value);
	printf("of one device: %s\n", strcmp(device, value) ? "no" : "yes");
	printf("GID 0 is link-local: %s\n", gid[0] == 0xfe && gid[1] == 0x80 ? "yes" : "no");
}

static void node(const char *path)
{
	struct stat st;

	must(stat(path, &st), path);
	printf("%s: %s %u:%u %o\n", path, S_ISCHR(st.st_mode) ? "character" : "other",
		major(st.st_rdev), minor(st.st_rdev), st.st_mode & 0777);
}

static void nodes(void)
{
	DIR *dir = opendir("/dev/infiniband");
	int umads = 0, issms = 0;
	struct dirent *e;

	must(dir ? 0 : -1, "/dev/infiniband");
	while ((e = readdir(dir))) {
		umads += !strncmp(e->d_name, "umad", 4);
		issms += !strncmp(e->d_name, "issm", 4);
	}
	closedir(dir);
	printf("listed: %d umad, %d issm\n", umads, issms);
	node(umad);
	node(issm);
}

/* ---- files ---- */

static int file(void)
{
	return must(open(umad, O_RDWR | O_NONBLOCK), umad);
}

static int with_pkey(void)
{
	int fd = file();

	must(ioctl(fd, PKEY), "ENABLE_PKEY");
	return fd;
}

/* Of a descriptor, as of the path. */
static void node_of(const char *what, int fd)
{
	struct stat st, path;

	must(fstat(fd, &st), what);
	must(stat(umad, &path), umad);
	printf("%s: %s %u:%u %o, as the path: %s\n", what,
		S_ISCHR(st.st_mode) ? "character" : "other", major(st.st_rdev), minor(st.st_rdev),
		st.st_mode & 0777,
		st.st_ino == path.st_ino && st.st_dev == path.st_dev ? "yes" : "no");
}

static void opening(void)
{
	static char page[4096];
	int fd, n = 0;

	opened("umad99", open("/dev/infiniband/umad99", O_RDWR));
	opened("as a directory", open(umad, O_RDONLY | O_DIRECTORY));
	opened("behind it", open("/dev/infiniband/umad0/x", O_RDWR));
	fd = open(umad, O_WRONLY | O_NONBLOCK);
	said("read of O_WRONLY", read(fd, page, sizeof page));
	close(fd);
	fd = open(umad, O_RDONLY | O_NONBLOCK);
	said("write to O_RDONLY", write(fd, page, 320));
	close(fd);
	fd = opened("umad0", open(umad, O_RDWR | O_NONBLOCK));
	node_of("fstat", fd);
	said("lseek", lseek(fd, 0, SEEK_SET));
	said("pread", pread(fd, page, sizeof page, 0));
	said("mmap", mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
	said("an unknown command", ioctl(fd, _IOC(_IOC_NONE, 0x1b, 99, 0)));
	said("FIONREAD", ioctl(fd, FIONREAD, &n));
	said("read of 10", read(fd, page, 10));
	said("read of 320", read(fd, page, 320));
	said("write of 10", write(fd, page, 10));
	said("write without agents", write(fd, page, 320));
	page[0] = 32;
	said("write by agent 32", write(fd, page, 320));
	close(fd);
	said("read of a closed one", read(fd, page, 320));
}

/* ---- agents ---- */

static struct req request(int class, int version, int method)
{
	struct req r = {.qpn = 1, .class = class, .version = version};

	if (method)
		r.mask[method / 32] = 1u << method % 32;
	return r;
}

static int agent(int fd, int class, int version, int method)
{
	struct req r = request(class, version, method);

	return ioctl(fd, REGISTER, &r) ? -1 : (int)r.id;
}

static long odd(int fd, struct req r)
{
	return ioctl(fd, REGISTER, &r) ? -1 : (int)r.id;
}

static void registering(void)
{
	struct req r = request(VENDOR, 1, GET);
	int fd = file(), other = file();
	uint32_t id = 32;

	said("class 0x0a", agent(fd, VENDOR, 1, GET));
	said("the same methods", agent(fd, VENDOR, 1, GET));
	said("the same methods by another", agent(other, VENDOR, 1, GET));
	said("another version", agent(fd, VENDOR, 2, GET));
	said("no methods", agent(fd, VENDOR, 1, 0));
	said("class 0x50", agent(fd, 0x50, 1, GET));
	said("class 0x30 without OUI", agent(fd, 0x30, 1, GET));
	said("RMPP of class 0x0a", odd(fd, (r.rmpp = 1, r)));
	said("QP 2", odd(fd, (r.rmpp = 0, r.qpn = 2, r)));
	said("QP 0 of class 0x0a", odd(other, (r.qpn = 0, r)) < 0 ? -(errno != 0) : 0);
	said("QP 0 of class 1", odd(other, (r.class = 1, r)));
	said("from nowhere", ioctl(fd, REGISTER, NULL));
	said("agent 32 ends", ioctl(fd, UNREGISTER, &id));
	said("agent 9 ends", ioctl(fd, UNREGISTER, (id = 9, &id)));
	said("agent 1 ends", ioctl(fd, UNREGISTER, (id = 1, &id)));
	said("agent 1 ends again", ioctl(fd, UNREGISTER, &id));
	said("from nowhere", ioctl(fd, UNREGISTER, NULL));
	said("the next", agent(fd, VENDOR, 3, GET));
	said("ENABLE_PKEY afterwards", ioctl(fd, PKEY));
	close(fd);
	said("methods of a closed file", agent(other, VENDOR, 1, GET));
	close(other);
}

static void registering2(void)
{
	struct req2 r = {.qpn = 1, .class = VENDOR, .version = 1, .flags = 2};
	int fd = file(), n = 0;

	said("unknown flags", ioctl(fd, REGISTER2, &r));
	said("those that are known", r.flags);
	r.flags = 6;
	r.qpn = 2;
	said("and QP 2", ioctl(fd, REGISTER2, &r));
	said("flags as they were", r.flags);
	r.flags = 0;
	r.qpn = 1;
	r.oui = 1 << 24;
	said("an OUI of 25 bits", ioctl(fd, REGISTER2, &r));
	r.oui = 0;
	said("REGISTER2", ioctl(fd, REGISTER2, &r));
	said("its id", r.id);
	said("ENABLE_PKEY afterwards", ioctl(fd, PKEY));
	close(fd);
	fd = file();
	said("ENABLE_PKEY", ioctl(fd, PKEY));
	said("ENABLE_PKEY again", ioctl(fd, PKEY));
	while (n < 40 && agent(fd, 0, 0, 0) >= 0)
		n++;
	said("after the last agent", agent(fd, 0, 0, 0));
	said("agents", n);
	close(fd);
}

/* ---- MADs ---- */

static int readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, PATIENCE_MS);
}

/* A request to the port itself. */
static struct packet packet(int id, int class, int method, uint32_t tid)
{
	struct packet p = {.id = id,
		.timeout_ms = PATIENCE_MS,
		.qpn = htonl(1),
		.qkey = htonl(0x80010000),
		.lid = lid,
		.grh = 1,
		.hops = 64,
		.mad = {1, class, class == SA ? 2 : 1, method}};

	memcpy(p.gid, gid, sizeof gid);
	tid = htonl(tid);
	memcpy(p.mad + 12, &tid, 4);
	return p;
}

static uint32_t tid_of(const struct packet *p)
{
	uint32_t tid;

	memcpy(&tid, p->mad + 12, 4);
	return ntohl(tid);
}

static void show(const char *what, const struct packet *p, long n)
{
	if (n < 0) {
		said(what, n);
		return;
	}
	printf("%s: %ld bytes, agent %u, status %u, length %u, QP %u, LID %u, P_Key index %u, "
	       "GRH %u, GID %s; class 0x%02x method 0x%02x status 0x%02x%02x TID %08x\n",
		what, n, p->id, p->status, p->length, ntohl(p->qpn), ntohs(p->lid), p->pkey_index,
		p->grh, memcmp(p->gid, gid, sizeof gid) ? "another" : "ours", p->mad[1], p->mad[3],
		p->mad[4], p->mad[5], tid_of(p));
}

static long get(int fd, struct packet *p)
{
	readable(fd);
	return read(fd, p, NEW + MAD);
}

static long put(int fd, const struct packet *p)
{
	return write(fd, p, NEW + MAD);
}

static void ask_and_answer(int asks, int answers)
{
	struct packet p = packet(0, VENDOR, GET, 0x1001), got;

	said("asked", put(asks, &p));
	show("request", &got, get(answers, &got));
	got.mad[3] |= RESPONSE;
	got.timeout_ms = 0;
	said("answered", put(answers, &got));
	show("response", &got, get(asks, &got));
	said("nothing more", read(asks, &got, NEW + MAD));
}

/* Of what its sender writes into the header Ethernet carries this. */
static void by_ethernet(int asks, int answers)
{
	struct packet p = packet(0, VENDOR, SEND, 0x100d), got;

	p.lid = htons(0x1234);
	p.sl = 5;
	p.path_bits = 3;
	p.hops = 7;
	p.traffic_class = 9;
	p.flow = htonl(0x12345);
	said("with a LID", put(asks, &p));
	get(answers, &got);
	printf("came with LID %u, SL %u, path bits %u, %u hops, traffic class %u, flow %u\n",
		ntohs(got.lid), got.sl, got.path_bits, got.hops, got.traffic_class,
		ntohl(got.flow));
}

/* Addresses at which there is no memory: what would be said first is. */
static void from_nowhere(int asks, int answers)
{
	struct packet p = packet(0, VENDOR, GET, 0x100e), got;
	void *volatile nowhere = (void *)8;

	said("nothing to be read into nowhere", read(answers, nowhere, NEW + MAD));
	said("a MAD from nowhere", write(asks, nowhere, NEW + MAD));
	said("35 bytes of one", write(asks, nowhere, NEW + 35));
	put(asks, &p);
	readable(answers);
	said("read into nowhere", read(answers, nowhere, NEW + MAD));
	said("read of 100 into nowhere", read(answers, nowhere, 100));
	show("it stayed", &got, get(answers, &got));
}

/* What was written is sent, whatever becomes of its agent then. */
static void last_words(int asks, int answers)
{
	uint32_t id = agent(asks, 0, 0, 0);
	struct packet p = packet(id, VENDOR, SEND, 0x100f), got;

	p.timeout_ms = 0;
	put(asks, &p);
	said("its agent ends", ioctl(asks, UNREGISTER, &id));
	show("last words", &got, get(answers, &got));
}

static void unanswered(int asks, int answers)
{
	struct packet p = packet(0, VENDOR, GET, 0x1002), got;

	p.timeout_ms = 50;
	said("asked", put(asks, &p));
	get(answers, &got);
	show("time is over", &got, get(asks, &got));
	p = packet(0, NOBODY, GET, 0x1003);
	said("asked nobody", put(asks, &p));
	show("nobody's response", &got, get(asks, &got));
}

static void refused(int asks, int answers)
{
	struct packet p = packet(0, VENDOR, GET, 0x1004), got;

	said("35 bytes of a MAD", write(asks, &p, NEW + 35));
	said("257 bytes of a MAD", write(asks, &p, NEW + MAD + 1));
	said("asked", put(asks, &p));
	said("asked the same", put(asks, &p));
	p.id = 3;
	said("by no agent", put(asks, &p));
	readable(answers);
	said("read of 100", read(answers, &got, 100));
	show("the request stayed", &got, get(answers, &got));
	p = packet(0, VENDOR, GET, 0x1005);
	p.grh = 0;
	said("without GRH", put(asks, &p));
}

static void vectors(int asks, int answers)
{
	struct packet p = packet(0, VENDOR, GET, 0x1006), got;
	struct iovec halves[2] = {{&p, NEW}, {p.mad, MAD}}, whole = {&p, NEW + MAD};
	volatile int too_many = 5000;

	said("writev of two halves", writev(asks, halves, 2));
	said("writev of one", writev(asks, &whole, 1));
	readable(answers);
	halves[0].iov_base = &got;
	halves[1].iov_base = got.mad;
	said("readv of two halves", readv(answers, halves, 2));
	whole.iov_base = &got;
	said("readv of one", readv(answers, &whole, 1));
	said("readv of nothing", readv(answers, &whole, 0));
	said("readv of too many", readv(answers, &whole, too_many));
	printf("TID %08x\n", tid_of(&got));
}

/* Two requests at once: the answer to a third says that they are there. */
static void many_segments(int asks, int answers)
{
	struct packet p = packet(0, VENDOR, GET, 0x1008), got[2];
	struct iovec two[2] = {{&got[0], NEW + MAD}, {&got[1], NEW + MAD}};

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2; i++) {
			p = packet(0, VENDOR, GET, 0x1008 + 2 * round + i);
			put(asks, &p);
		}
		p = packet(0, NOBODY, GET, 0x100c);
		put(asks, &p);
		get(asks, &p);
		said("readv of two MADs", readv(answers, two, 2));
		two[0].iov_len = two[1].iov_len = sizeof got[0];
	}
	said("the one that it left", read(answers, &got[1], sizeof got[1]));
	printf("TID %08x, %08x\n", tid_of(&got[0]), tid_of(&got[1]));
}

static void old_layout(int asks)
{
	struct packet p = packet(0, VENDOR, GET, 0x1007);
	int fd = file();
	char got[1000];

	said("a file of the old layout", agent(fd, VENDOR, 1, 2));
	p.mad[3] = 2;
	said("asked", put(asks, &p));
	readable(fd);
	said("read of 311", read(fd, got, OLD + MAD - 1));
	said("read of 320", read(fd, got, NEW + MAD));
	printf("class 0x%02x\n", (uint8_t)got[OLD + 1]);
	close(fd);
}

/* MADs must have the whole of their class's header. */
static void short_ones(void)
{
	static const struct {
		int class, header;
	} c[] = {{SA, 56}, {6, 64}, {0x10, 64}, {0x12, 64}, {0x30, 40}, {0x4f, 40}, {VENDOR, 36}};
	struct req r = request(0, 0, 0);
	int fd = with_pkey();
	struct packet p;

	agent(fd, 0, 0, 0);
	r.rmpp = 1;
	must(ioctl(fd, REGISTER, &r), "RMPP agent");
	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		for (int id = 0; id < 2; id++) {
			p = packet(id, c[i].class, SEND, 0x1100 + 2 * i + id);
			p.timeout_ms = 0;
			printf("class 0x%02x, agent %d ", c[i].class, id);
			said("too short", write(fd, &p, NEW + c[i].header - 1));
			printf("class 0x%02x, agent %d ", c[i].class, id);
			said("as short as may be", write(fd, &p, NEW + c[i].header));
		}
	p.mad[1] = SA;
	p.mad[26] = RMPP_ACTIVE;
	said("a message of 55", write(fd, &p, NEW + SA_DATA - 1));
	close(fd);
}

static int rmpp_agent(int fd, int method)
{
	struct req r = request(SA, 2, method);

	r.rmpp = 1;
	return must(ioctl(fd, REGISTER, &r), "RMPP agent");
}

static void long_message(void)
{
	int asks = with_pkey(), answers = with_pkey();
	struct packet p = packet(0, SA, GET_TABLE, 0x2001), got;

	rmpp_agent(asks, 0);
	rmpp_agent(answers, GET_TABLE);
	p.mad[24] = p.mad[25] = 1; /* no message: the header is the layer's */
	p.mad[26] = RESP_TIME;
	said("asked", put(asks, &p));
	show("request", &got, get(answers, &got));
	printf("RMPP %u, type %u, flags 0x%02x\n", got.mad[24], got.mad[25], got.mad[26]);
	got.mad[3] |= RESPONSE;
	got.mad[24] = 1; /* RMPP version, type DATA, flags */
	got.mad[25] = 1;
	got.mad[26] = RMPP_ACTIVE | RESP_TIME;
	got.timeout_ms = 0;
	memset(got.mad + SA_DATA, 0x5a, LONG - SA_DATA);
	said("answered at length", write(answers, &got, NEW + LONG));
	memset(&got, 0, sizeof got);
	said("read of 320", get(asks, &got));
	printf("needs %u, begins with class 0x%02x\n", got.length, got.mad[1]);
	said("read of all", read(asks, &got, sizeof got));
	printf("ends in 0x%02x\n", got.mad[LONG - 1]);
	printf("RMPP flags 0x%02x\n", got.mad[26]);
	close(asks);
	close(answers);
}

/* A request of several segments for which nobody is there: the port answers each. */
static void long_to_nobody(int method, int timeout_ms)
{
	int fd = with_pkey();
	struct packet p = packet(0, SA, method, 0x2002), got;

	rmpp_agent(fd, 0);
	p.timeout_ms = timeout_ms;
	p.mad[24] = p.mad[25] = p.mad[26] = 1;
	memset(p.mad + SA_DATA, 0x6b, LONG - SA_DATA);
	said("to nobody at length", write(fd, &p, NEW + LONG));
	readable(fd);
	show("its response", &got, read(fd, &got, sizeof got));
	printf("ends in 0x%02x\n", got.mad[LONG - 1]);
	close(fd);
}

/* An agent without RMPP among those with: it sees what the layer says. */
static void segments(void)
{
	int layer = with_pkey(), plain = with_pkey();
	struct packet p = packet(0, SA, GET_TABLE, 0x2003), got;

	rmpp_agent(layer, GET_TABLE);
	agent(plain, SA, 2, SEND);
	p.mad[24] = p.mad[25] = p.mad[31] = 1;
	p.mad[26] = RMPP_ACTIVE | 6 | RESP_TIME; /* first and last */
	p.mad[35] = 20 + 64;
	said("a segment", put(plain, &p));
	show("what came", &got, (readable(layer), read(layer, &got, sizeof got)));
	show("ACK", &got, get(plain, &got));
	printf("type %u, flags 0x%02x, segment %u, window to %u\n", got.mad[25], got.mad[26],
		got.mad[31], got.mad[35]);
	p = packet(0, SA, SEND, 0x2004);
	p.timeout_ms = 20;
	p.mad[24] = p.mad[25] = p.mad[26] = 1;
	said("never acknowledged", write(layer, &p, NEW + LONG));
	show("segment 1", &got, get(plain, &got));
	show("time is over", &got, get(layer, &got));
	p = packet(0, NOBODY, GET, 0x2005);
	put(plain, &p);
	show("no word of it, but", &got, get(plain, &got));
	close(layer);
	close(plain);
}

static void messages(void)
{
	int asks = with_pkey(), answers = with_pkey();
	struct pollfd p = {.fd = asks, .events = POLLIN | POLLOUT};

	said("asks", agent(asks, VENDOR, 1, 0));
	said("answers", agent(answers, VENDOR, 1, GET));
	said("hears", agent(answers, VENDOR, 1, SEND));
	poll(&p, 1, 0);
	printf("poll: 0x%x\n", p.revents);
	ask_and_answer(asks, answers);
	if (!lid)
		by_ethernet(asks, answers);
	from_nowhere(asks, answers);
	last_words(asks, answers);
	unanswered(asks, answers);
	refused(asks, answers);
	vectors(asks, answers);
	many_segments(asks, answers);
	old_layout(asks);
	close(asks);
	close(answers);
	short_ones();
	long_message();
	long_to_nobody(GET, PATIENCE_MS);
	long_to_nobody(SET, PATIENCE_MS);
	long_to_nobody(SET, 0);
	segments();
}

/* ---- the same file by other ways ---- */

static char *self;

static void ended(const char *who, pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	if (status)
		printf("%s: ended with 0x%x\n", who, status);
}

static void by_exec(int fd)
{
	char number[16];
	pid_t pid;

	snprintf(number, sizeof number, "%d", fd);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		execl(self, self, number, NULL);
		_exit(1);
	}
	ended("exec", pid);
}

static void send_fd(int to, int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof fd)] = {0};
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof room};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	must((int)sendmsg(to, &m, 0), "sendmsg");
}

static int get_fd(int from)
{
	char byte, room[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof room};
	int fd;

	must((int)recvmsg(from, &m, 0), "recvmsg");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

/* To a child that does not have it yet. */
static void by_message(int asks, const struct packet *p)
{
	struct packet got;
	int ends[2], fd;
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd = file();
		agent(fd, VENDOR, 1, 2);
		send_fd(ends[1], fd);
		_exit(0);
	}
	fd = get_fd(ends[0]);
	ended("the other process", pid);
	node_of("fstat of a file received", fd);
	said("asked", put(asks, p));
	readable(fd);
	said("read of a file received", read(fd, &got, OLD + MAD));
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void handed_on(void)
{
	int asks = with_pkey(), answers = with_pkey(), other, pipe_end[2];
	struct packet p = packet(0, VENDOR, GET, 0x3001), got;

	agent(asks, VENDOR, 1, 0);
	agent(answers, VENDOR, 1, GET);
	put(asks, &p);
	by_exec((readable(answers), answers));
	other = must(fcntl(answers, F_DUPFD, 200), "F_DUPFD");
	close(answers);
	p = packet(0, VENDOR, GET, 0x3002);
	put(asks, &p);
	show("read of a duplicate", &got, get(other, &got));
	must(pipe(pipe_end), "pipe");
	must((int)write(pipe_end[1], "text", 4), "write");
	must(dup2(pipe_end[0], other), "dup2");
	said("read of a pipe in its place", read(other, &got, sizeof got));
	said("methods are free", agent(asks, VENDOR, 1, GET));
	p = packet(0, VENDOR, 2, 0x3003);
	by_message(asks, &p);
	close(pipe_end[0]);
	close(pipe_end[1]);
	close(other);
	close(asks);
}

static int inherited(int fd)
{
	struct packet got;

	node_of("fstat after exec", fd);
	show("read after exec", &got, read(fd, &got, NEW + MAD));
	said("nothing more", read(fd, &got, NEW + MAD));
	return 0;
}

/* ---- issm ---- */

static void nothing(int signal)
{
	(void)signal;
}

static void is_sm(void)
{
	struct sigaction act = {.sa_handler = nothing};
	int fd = opened("issm0", open(issm, O_RDONLY | O_NONBLOCK));
	char buf[320] = {0};

	opened("issm0 again", open(issm, O_RDONLY | O_NONBLOCK));
	said("read", read(fd, buf, sizeof buf));
	said("write", write(fd, buf, sizeof buf));
	said("ioctl", ioctl(fd, PKEY));
	sigaction(SIGALRM, &act, NULL);
	ualarm(100000, 100000);
	opened("issm0 until a signal", open(issm, O_RDONLY));
	ualarm(0, 0);
	close(fd);
	fd = opened("issm0 after close", open(issm, O_RDWR));
	said("write", write(fd, buf, sizeof buf));
	close(fd);
}

int main(int argc, char **argv)
{
	self = argv[0];
	read_address();
	if (argc > 1)
		return inherited(atoi(argv[1]));
	sysfs();
	nodes();
	opening();
	registering();
	registering2();
	messages();
	handed_on();
	is_sm();
	return 0;
}
