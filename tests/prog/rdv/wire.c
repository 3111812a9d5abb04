// SPDX-License-Identifier: BSD-3-Clause
/* UDP port 4791: who has it, and which packets come to whom; in a network namespace of its own. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdv/address.h"
#include "rdv/admin.h"
#include "roce/port/lock.h"
#include "tests/prog/rdv/help.h"
#include "tests/prog/rdv/wire_kid.h"
#include "wire/roce.h"

enum { WAIT_MS = 20000, QPN_BLOCK = 256, NOBODY = 65534 };

static const char *const addrs[] = {"127.0.0.1", "198.51.100.1", "2001:db8:77::1"};

/* A kid that has joined and has a block of queue pairs, which is steered to it. */
static struct kid joined(long *index, long *qpn)
{
	struct kid k = kid_start();

	*index = kid_do(&k, DO_JOIN, 0, 0);
	CHECK(*index > 0);
	*qpn = kid_do(&k, DO_LEASE, 0, 0);
	CHECK(*qpn > 0);
	return k;
}

/* Sends until it comes, which the first may not: steering is made anew ten times a second. */
static void comes(struct kid *k, const char *addr, long qpn, long way)
{
	double end = seconds() + WAIT_MS / 1000;
	long got;

	do {
		wire_send_to(addr, qpn);
		got = kid_do(k, DO_PACKET, qpn, 100);
	} while (got != way && seconds() < end);
	CHECK_EQ(got, way);
}

/* Which addresses of this host are GIDs; 127.0.0.1 is one always. */
static void gids_of(const char *fabric, bool on_lo, bool ipv4, bool ipv6)
{
	CHECK(has_gid(fabric, "::ffff:127.0.0.1"));
	CHECK_EQ(has_gid(fabric, "::ffff:192.0.2.9"), on_lo);
	CHECK_EQ(has_gid(fabric, "::ffff:198.51.100.1"), ipv4);
	CHECK_EQ(has_gid(fabric, addrs[2]), ipv6);
}

static int wire_join(void)
{
	long index_a, index_b, qpn_a, qpn_b;
	struct kid a = joined(&index_a, &qpn_a), b = joined(&index_b, &qpn_b);

	CHECK_EQ(index_a, 1);
	CHECK_EQ(index_b, 2);
	CHECK_EQ(kid_do(&a, DO_JOIN, 0, 0), index_a);
	for (int i = 0; i < 3; i++) {
		long way = i < 2 ? CAME_IPV4 : CAME_IPV6;

		comes(&a, addrs[i], qpn_a, way);
		comes(&a, addrs[i], qpn_a + QPN_BLOCK - 1, way);
		comes(&b, addrs[i], qpn_b, way);
	}
	CHECK_EQ(status_of(NULL, "wire.processes"), 2);
	gids_of(NULL, false, true, true);
	CHECK_EQ(status_of(NULL, "wire.sockets"), 6);
	kid_end(&a, 0);
	kid_end(&b, SIGKILL);
	CHECK(status_becomes(NULL, "wire.processes", 0));
	return 0;
}

/* Who opens the port is not to have its first packets by way of weftd. */
static int wire_first(void)
{
	long index, qpn;
	struct kid a = joined(&index, &qpn);

	wire_send_to(addrs[1], qpn);
	CHECK_EQ(kid_do(&a, DO_PACKET, qpn, WAIT_MS), CAME_IPV4);
	CHECK_EQ(status_of(NULL, "wire.handed_over"), 0);
	kid_end(&a, 0);
	return 0;
}

/* What weftd gets, because it is steered to nobody, and what processes find among their own. */
static int wire_handed(void)
{
	long index, qpn_a, qpn_b, qpn_c;
	struct kid a = joined(&index, &qpn_a), b = joined(&index, &qpn_b), c = kid_start();

	CHECK_EQ(kid_do(&a, DO_HAND, qpn_b + 3, 0), 0);
	CHECK_EQ(kid_do(&b, DO_PACKET, qpn_b + 3, WAIT_MS), CAME_BY_HAND);
	CHECK_EQ(status_of(NULL, "wire.handed_over"), 1);
	CHECK_EQ(kid_do(&a, DO_HAND, qpn_a, 0), 0);
	CHECK(status_becomes(NULL, "wire_drops.handed_back", 1));
	CHECK_EQ(kid_do(&a, DO_HAND, 1, 0), 0);
	CHECK(status_becomes(NULL, "qp1.malformed", 1));
	wire_send_to(addrs[0], 1);
	wire_send_to(addrs[2], 1);
	CHECK(status_becomes(NULL, "qp1.malformed", 3));
	wire_send_to(addrs[1], 0xabcdef);
	CHECK(status_becomes(NULL, "wire_drops.no_qp", 1));
	qpn_c = kid_do(&c, DO_LEASE, 0, 0);
	wire_send_to(addrs[1], qpn_c);
	CHECK(status_becomes(NULL, "wire_drops.not_joined", 1));
	CHECK_EQ(kid_do(&a, DO_PACKET, qpn_b + 3, 0), -EAGAIN);
	kid_end(&a, 0);
	kid_end(&b, 0);
	kid_end(&c, 0);
	return 0;
}

/* A dead process's socket is the next one's, and nobody else's packets go astray. */
static int wire_dead(void)
{
	long index_a, index_b, index_c, qpn_a, qpn_b, qpn_c;
	struct kid a = joined(&index_a, &qpn_a), b = joined(&index_b, &qpn_b), c;

	comes(&a, addrs[1], qpn_a, CAME_IPV4);
	comes(&b, addrs[1], qpn_b, CAME_IPV4);
	kid_end(&a, SIGKILL);
	wire_send_to(addrs[1], qpn_b);
	CHECK_EQ(kid_do(&b, DO_PACKET, qpn_b, WAIT_MS), CAME_IPV4);
	CHECK(status_becomes(NULL, "wire.processes", 1));
	c = joined(&index_c, &qpn_c);
	CHECK_EQ(index_c, index_a);
	comes(&c, addrs[1], qpn_c, CAME_IPV4);
	CHECK_EQ(status_of(NULL, "wire.sockets"), 6);
	CHECK(status_becomes(NULL, "wire.ranges", 2));
	wire_send_to(addrs[1], qpn_a);
	CHECK(status_becomes(NULL, "wire_drops.no_qp", 1));
	kid_end(&b, SIGKILL);
	kid_end(&c, SIGKILL);
	CHECK(status_becomes(NULL, "wire.processes", 0));
	CHECK(status_becomes(NULL, "wire.ranges", 0));
	return 0;
}

/* Without weftd each packet goes where it went before; with its successor, too. */
static int wire_weftd_killed(void)
{
	enum { PACKETS = 100 };
	long index_a, index_b, index_c, qpn_a, qpn_b, qpn_c;
	struct kid a = joined(&index_a, &qpn_a), b = joined(&index_b, &qpn_b), c;

	comes(&a, addrs[1], qpn_a, CAME_IPV4);
	comes(&b, addrs[2], qpn_b, CAME_IPV6);
	for (int again = 0; again < 3; again++) {
		weftd_kill(NULL);
		for (int i = 0; i < PACKETS; i++) {
			wire_send_to(addrs[1], qpn_a);
			wire_send_to(addrs[2], qpn_b);
		}
		CHECK_EQ(kid_do(&a, DO_COUNT, qpn_a, 200), PACKETS);
		CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
		CHECK_EQ(status_of(NULL, "wire.processes"), 1);
		/* The other one has not come yet. */
		CHECK_EQ(kid_do(&b, DO_COUNT, qpn_b, 200), PACKETS);
		wire_send_to(addrs[2], qpn_b);
		CHECK_EQ(kid_do(&b, DO_PACKET, qpn_b, WAIT_MS), CAME_IPV6);
		CHECK_EQ(kid_do(&b, DO_CHECK, 0, 0), 0);
		CHECK_EQ(status_of(NULL, "wire.processes"), 2);
	}
	c = joined(&index_c, &qpn_c);
	CHECK_EQ(index_c, 3);
	comes(&a, addrs[1], qpn_a, CAME_IPV4);
	comes(&b, addrs[2], qpn_b, CAME_IPV6);
	comes(&c, addrs[0], qpn_c, CAME_IPV4);
	CHECK_EQ(kid_do(&c, DO_HAND, qpn_a, 0), 0);
	CHECK_EQ(kid_do(&a, DO_PACKET, qpn_a, WAIT_MS), CAME_BY_HAND);
	kid_end(&a, SIGKILL);
	kid_end(&b, SIGKILL);
	kid_end(&c, SIGKILL);
	CHECK(status_becomes(NULL, "wire.processes", 0));
	return 0;
}

/*
 * Who comes to a new weftd first finds the port taken by those whom the old one served; of these
 * one has died since, and one is stopped, whose socket nobody else may have.
 */
static int wire_orphans(void)
{
	long index_a, index_b, index_c, index_d, qpn_a, qpn_b, qpn_c, qpn_d;
	struct kid a = joined(&index_a, &qpn_a), b = joined(&index_b, &qpn_b), c, d;

	c = joined(&index_c, &qpn_c);
	comes(&b, addrs[1], qpn_b, CAME_IPV4);
	weftd_kill(NULL);
	kid_end(&a, SIGKILL);
	CHECK_EQ(kill(b.pid, SIGSTOP), 0);
	d = kid_start();
	kid_send(&d, DO_JOIN, 0, 0);
	usleep(100000);
	CHECK_EQ(kid_do(&c, DO_CHECK, 0, 0), 0);
	index_d = kid_reply(&d);
	CHECK_EQ(index_d, index_a);
	qpn_d = kid_do(&d, DO_LEASE, 0, 0);
	comes(&d, addrs[1], qpn_d, CAME_IPV4);
	a = joined(&index_a, &qpn_a);
	CHECK_EQ(index_a, 4);
	CHECK_EQ(kill(b.pid, SIGCONT), 0);
	CHECK_EQ(kid_do(&b, DO_CHECK, 0, 0), 0);
	comes(&b, addrs[1], qpn_b, CAME_IPV4);
	comes(&a, addrs[1], qpn_a, CAME_IPV4);
	CHECK_EQ(status_of(NULL, "wire.processes"), 4);
	kid_end(&a, SIGKILL);
	kid_end(&b, SIGKILL);
	kid_end(&c, SIGKILL);
	kid_end(&d, SIGKILL);
	return 0;
}

/* Where nobody comes that holds the port, the others learn who has it, and go on without. */
static int wire_orphans_stay(void)
{
	long index, qpn;
	struct kid a = joined(&index, &qpn), b = kid_start();

	CHECK_EQ(kill(a.pid, SIGSTOP), 0);
	weftd_kill(NULL);
	CHECK_EQ(kid_do(&b, DO_JOIN, 0, 0), -EADDRINUSE);
	CHECK(logged("is taken by processes of a weftd"));
	CHECK(kid_do(&b, DO_LEASE, 0, 0) > 0);
	kid_end(&a, SIGKILL);
	CHECK(status_becomes(NULL, "wire.sockets", 2));
	CHECK_EQ(kid_do(&b, DO_JOIN, 0, 0), 1);
	kid_end(&b, SIGKILL);
	return 0;
}

/* Asks whose the port is; the answer must have this kind, and this text in it. */
static void whose(enum port_holder_kind kind, const char *text)
{
	const struct port_place all = {.any = true};
	struct port_holder holder;

	port_holder_find(&all, &holder);
	CHECK_EQ(holder.kind, kind);
	if (!strstr(holder.text, text))
		fprintf(stderr, "it is said to be of: %s\n", holder.text);
	CHECK(strstr(holder.text, text));
}

/* A socket that has that abstract name, and answers nobody. */
static int take_name(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(a.sun_path + 1, name);
	CHECK_EQ(bind(fd, (struct sockaddr *)&a,
			 offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)),
		0);
	CHECK_EQ(listen(fd, 1), 0);
	return fd;
}

/*
 * Whoever asks whose the port is gets the right answer, however many have asked before: of a weftd
 * that runs, of one that is stopped, and of processes that one has left behind.
 */
static int wire_asked(void)
{
	enum { OFTEN = 6000 }; /* more than any socket lets wait */
	long index, qpn;
	struct kid a = joined(&index, &qpn);
	char weftd[64], orphans[64];
	pid_t pid = weftd_pid(NULL);
	int squatter;

	snprintf(weftd, sizeof weftd, "weftd (pid %d) of user %u", (int)pid, (unsigned)geteuid());
	snprintf(orphans, sizeof orphans, "of user %u that has ended", (unsigned)geteuid());
	for (int i = 0; i < OFTEN; i++)
		whose(PORT_HOLDER_FABRIC, i % 100 ? "" : weftd);
	CHECK_EQ(kill(pid, SIGSTOP), 0);
	whose(PORT_HOLDER_FABRIC, weftd);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	for (double end = seconds() + WAIT_MS / 1000; kill(pid, 0) == 0 && seconds() < end;)
		usleep(1000);
	for (int i = 0; i < OFTEN; i++)
		whose(PORT_HOLDER_ORPHANS, orphans);
	/* Who takes the name of a living one is not taken for it, unless it is that user. */
	squatter = take_name("weft-roce-4791/*/weftd");
	if (geteuid() == 0 && seteuid(NOBODY) == 0) { /* a user namespace may have no other user */
		close(squatter);
		squatter = take_name("weft-roce-4791/*/weftd");
		CHECK_EQ(seteuid(0), 0);
		whose(PORT_HOLDER_ORPHANS, orphans);
	}
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
	comes(&a, addrs[1], qpn, CAME_IPV4);
	close(squatter);
	kid_end(&a, SIGKILL);
	return 0;
}

/* Another fabric of this user would slip into the group, but for the lock. */
static int wire_two_fabrics(void)
{
	long index, qpn;
	struct kid a = joined(&index, &qpn), b;
	char who[64];

	snprintf(who, sizeof who, "is taken by weftd (pid %d) of user %u", (int)weftd_pid(NULL),
		(unsigned)geteuid());
	setenv("WEFT_FABRIC", "b", 1);
	b = kid_start();
	CHECK_EQ(kid_do(&b, DO_JOIN, 0, 0), -EADDRINUSE);
	CHECK(logged(who));
	CHECK_EQ(status_of("b", "wire.waiting"), 1);
	comes(&a, addrs[1], qpn, CAME_IPV4);
	kid_end(&a, SIGKILL);
	CHECK_EQ(rdv_shutdown("default"), 0);
	CHECK(status_becomes("b", "wire.sockets", 2));
	CHECK_EQ(kid_do(&b, DO_JOIN, 0, 0), 1);
	CHECK(logged("is ours now"));
	kid_end(&b, SIGKILL);
	return 0;
}

/* A program of somebody else's, which knows no group. */
static int wire_taken(void)
{
	const struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct kid a = kid_start();

	CHECK_EQ(bind(fd, (const struct sockaddr *)&port, sizeof port), 0);
	CHECK_EQ(kid_do(&a, DO_JOIN, 0, 0), -EADDRINUSE);
	CHECK(logged("is taken by a program of user"));
	CHECK(kid_do(&a, DO_LEASE, 0, 0) > 0);
	close(fd);
	CHECK(status_becomes(NULL, "wire.sockets", 2));
	CHECK_EQ(kid_do(&a, DO_JOIN, 0, 0), 1);
	kid_end(&a, SIGKILL);
	return 0;
}

/* Two fabrics, each of which has one address, and all that loopback has. */
static int wire_address(void)
{
	long index, qpn_a, qpn_b;
	struct kid a, b;

	CHECK_EQ(system("ip addr add 192.0.2.9/32 dev lo"), 0);
	CHECK_EQ(rdv_start_at("a", addrs[1], NULL), 0);
	CHECK_EQ(rdv_start_at("a", addrs[1], NULL), -EEXIST);
	CHECK_EQ(rdv_start_at("b", addrs[2], NULL), 0);
	setenv("WEFT_FABRIC", "a", 1);
	a = joined(&index, &qpn_a);
	setenv("WEFT_FABRIC", "b", 1);
	b = joined(&index, &qpn_b);
	comes(&a, addrs[1], qpn_a, CAME_IPV4);
	comes(&b, addrs[2], qpn_b, CAME_IPV6);
	gids_of("a", true, true, false);
	gids_of("b", true, false, true);
	wire_send_to(addrs[0], qpn_a);
	CHECK_EQ(kid_do(&a, DO_PACKET, qpn_a, 100), -EAGAIN);
	/* One that is started anew has it, too. */
	weftd_kill("a");
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
	comes(&a, addrs[1], qpn_a, CAME_IPV4);
	gids_of("a", true, true, false);
	kid_end(&a, SIGKILL);
	kid_end(&b, SIGKILL);
	return 0;
}

/* Who stays behind when the fabric ends holds all addresses, and no fabric of one takes that up. */
static int wire_address_later(void)
{
	long index, qpn;
	struct kid a = joined(&index, &qpn), b;

	CHECK_EQ(rdv_shutdown(NULL), 0);
	CHECK_EQ(rdv_start_at(NULL, addrs[1], NULL), 0);
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
	CHECK(logged("its port is another; restart the program"));
	CHECK_EQ(status_of(NULL, "wire.sockets"), 0);
	b = kid_start();
	CHECK_EQ(kid_do(&b, DO_JOIN, 0, 0), -EADDRINUSE);
	CHECK(logged("of address 198.51.100.1 is taken by processes of a weftd"));
	kid_end(&a, SIGKILL);
	CHECK(status_becomes(NULL, "wire.sockets", 1)); /* one family */
	CHECK_EQ(kid_do(&b, DO_JOIN, 0, 0), 1);
	CHECK_EQ(rdv_shutdown(NULL), 0);
	kid_end(&b, SIGKILL);
	return 0;
}

/* A program that closes all, and one that forks. */
static int wire_lost(void)
{
	long index, qpn, child;
	struct kid a = joined(&index, &qpn), b = joined(&index, &qpn);

	CHECK_EQ(kid_do(&a, DO_CLOSE_FDS, 0, 0), 0);
	CHECK_EQ(kid_do(&a, DO_JOIN, 0, 0), 1);
	qpn = kid_do(&a, DO_LEASE, 0, 0);
	comes(&a, addrs[1], qpn, CAME_IPV4);
	child = kid_do(&b, DO_FORK, 0, 0);
	CHECK(child > 0);
	CHECK_EQ(kid_do(&b, DO_JOIN, 0, 0), 3);
	qpn = kid_do(&b, DO_LEASE, 0, 0);
	comes(&b, addrs[1], qpn, CAME_IPV4);
	CHECK_EQ(status_of(NULL, "wire.processes"), 3);
	kid_end(&a, SIGKILL);
	kid_send(&b, DO_EXIT, 0, 0);
	kid_end(&b, SIGKILL);
	CHECK(status_becomes(NULL, "wire.processes", 0));
	return 0;
}

/* The port is another's again once nobody has wanted it for a while, though weftd stays. */
static int wire_idle(void)
{
	long index, qpn;
	struct kid a;

	setenv("WEFT_IDLE_EXIT", "0.3", 1);
	CHECK_EQ(rdv_start(NULL, true, NULL), 0);
	a = joined(&index, &qpn);
	usleep(600000);
	CHECK_EQ(status_of(NULL, "wire.sockets"), 4);
	kid_end(&a, SIGKILL);
	CHECK(status_becomes(NULL, "wire.sockets", 0));
	CHECK(all_zero(NULL));
	a = joined(&index, &qpn);
	comes(&a, addrs[1], qpn, CAME_IPV4);
	kid_end(&a, SIGKILL);
	return 0;
}

static int wire_never(void)
{
	struct kid a;

	setenv("WEFT_WIRE", "never", 1);
	a = kid_start();
	CHECK_EQ(kid_do(&a, DO_JOIN, 0, 0), -EOPNOTSUPP);
	CHECK(kid_do(&a, DO_LEASE, 0, 0) > 0);
	CHECK_EQ(status_of(NULL, "wire.sockets"), 0);
	kid_end(&a, 0);
	setenv("WEFT_WIRE", "sometimes", 1);
	a = kid_start();
	CHECK_EQ(kid_do(&a, DO_JOIN, 0, 0), 1);
	CHECK(logged("WEFT_WIRE=sometimes is none of auto, never, always"));
	kid_end(&a, 0);
	return 0;
}

/* How many descriptors a process has open. */
static int fds_of(pid_t pid)
{
	char path[64];
	DIR *dir;
	int n = -2; /* "." and ".." */

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* weftd without descriptors says so, and those who have joined have what they have. */
static int wire_fds(void)
{
	enum { KIDS = 8 };
	long index, qpn, got = 0;
	struct kid a = joined(&index, &qpn), k[KIDS];
	struct rlimit rl;
	pid_t pid = weftd_pid(NULL);

	CHECK_EQ(prlimit(pid, RLIMIT_NOFILE, NULL, &rl), 0);
	for (int i = 0; i < KIDS; i++) {
		k[i] = kid_start();
		CHECK_EQ(kid_do(&k[i], DO_ATTACH, 0, 0), 0);
	}
	CHECK_EQ(prlimit(pid, RLIMIT_NOFILE, &(struct rlimit){fds_of(pid), rl.rlim_max}, NULL), 0);
	for (int i = 0; i < KIDS && got >= 0; i++)
		got = kid_do(&k[i], DO_JOIN, 0, 0);
	CHECK_EQ(got, -EMFILE);
	CHECK(logged("weftd may not have more descriptors (ulimit -n)"));
	CHECK_EQ(prlimit(pid, RLIMIT_NOFILE, &rl, NULL), 0);
	for (int i = 0; i < KIDS; i++)
		CHECK(kid_do(&k[i], DO_JOIN, 0, 0) > 0);
	qpn = kid_do(&k[KIDS - 1], DO_LEASE, 0, 0);
	comes(&k[KIDS - 1], addrs[1], qpn, CAME_IPV4);
	for (int i = 0; i < KIDS; i++)
		kid_end(&k[i], SIGKILL);
	kid_end(&a, SIGKILL);
	return 0;
}

/* Bytes that are no packets, more than weftd can read: others are served, and each is counted. */
static int wire_garbage(void)
{
	enum { FLOOD = 30000 };
	long index, qpn, got, lost;
	struct kid a = joined(&index, &qpn), b;

	wire_send_noise(addrs[1], FLOOD);
	b = kid_start();
	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), 0);
	comes(&a, addrs[1], qpn, CAME_IPV4);
	/* Whatever came after the last read of seat 0 tells of what was lost before. */
	do {
		wire_send_to(addrs[1], 0xabcdef);
		usleep(10000);
		got = status_of(NULL, "wire.packets");
		lost = status_of(NULL, "wire_drops.no_room");
	} while (got + lost < FLOOD);
	CHECK(status_of(NULL, "wire_drops.too_short") > 0);
	CHECK(status_of(NULL, "wire_drops.no_qp") > 0);
	CHECK_EQ(status_of(NULL, "wire.handed_over"), 0);
	kid_end(&a, SIGKILL);
	kid_end(&b, SIGKILL);
	return 0;
}

/*
 * Packets flow while processes and weftd are killed at random: in the end each process gets those
 * to its own queue pairs, by its own socket, and no index was lost.
 */
static int wire_storm(void)
{
	enum { KIDS = 5, ROUNDS = 60 };
	long index[KIDS], qpn[KIDS];
	struct kid k[KIDS];
	unsigned seed = getpid();

	printf("seed %u\n", seed);
	for (int i = 0; i < KIDS; i++)
		k[i] = joined(&index[i], &qpn[i]);
	for (int round = 0; round < ROUNDS; round++) {
		int who = rand_r(&seed) % (KIDS + 2);

		for (int i = 0; i < KIDS; i++)
			wire_send_to(addrs[rand_r(&seed) % 3], qpn[i]);
		if (who < KIDS) {
			kid_end(&k[who], SIGKILL);
			k[who] = joined(&index[who], &qpn[who]);
		} else {
			weftd_kill(NULL);
			/* One at least, or nobody brings the port to the next weftd. */
			do
				CHECK_EQ(kid_do(&k[who - KIDS], DO_CHECK, 0, 0), 0);
			while (!weftd_pid(NULL));
			for (int i = 0; i < KIDS; i++)
				if (rand_r(&seed) % 4)
					CHECK_EQ(kid_do(&k[i], DO_CHECK, 0, 0), 0);
		}
	}
	for (int i = 0; i < KIDS; i++)
		CHECK_EQ(kid_do(&k[i], DO_CHECK, 0, 0), 0);
	CHECK(status_becomes(NULL, "wire.processes", KIDS));
	for (int i = 0; i < KIDS; i++) {
		comes(&k[i], addrs[1], qpn[i], CAME_IPV4);
		comes(&k[i], addrs[2], qpn[i], CAME_IPV6);
		for (int j = 0; j < i; j++)
			CHECK(index[i] != index[j]);
		CHECK(index[i] <= 2 * KIDS);
	}
	for (int i = 0; i < KIDS; i++)
		kid_end(&k[i], SIGKILL);
	CHECK(status_becomes(NULL, "wire.ranges", 0));
	return 0;
}

const struct test_case wire_cases[] = {
	{"wire_first", wire_first},
	{"wire_join", wire_join},
	{"wire_handed", wire_handed},
	{"wire_dead", wire_dead},
	{"wire_weftd_killed", wire_weftd_killed},
	{"wire_orphans", wire_orphans},
	{"wire_orphans_stay", wire_orphans_stay},
	{"wire_asked", wire_asked},
	{"wire_two_fabrics", wire_two_fabrics},
	{"wire_taken", wire_taken},
	{"wire_address", wire_address},
	{"wire_address_later", wire_address_later},
	{"wire_lost", wire_lost},
	{"wire_idle", wire_idle},
	{"wire_never", wire_never},
	{"wire_fds", wire_fds},
	{"wire_garbage", wire_garbage},
	{"wire_storm", wire_storm},
	{0},
};
