// SPDX-License-Identifier: BSD-3-Clause
/* Other users, other network namespaces.  Most of it needs root. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/gid_table.h"
#include "rdv/admin.h"
#include "rdv/conn.h"
#include "rdv/rdv.h"
#include "tests/prog/rdv/help.h"

enum { NOBODY = 65534 };

/* What a case that cannot run here returns, after it has said why. */
static int skip(const char *why)
{
	puts(why);
	return SKIP;
}

static int other_user(void)
{
	struct kid a;
	char path[PATH_MAX + 80];
	struct rdv_paths p;
	struct conn c;

	if (geteuid() != 0)
		return skip("needs root, to become another user");
	a = kid_start();
	CHECK_EQ(rdv_start(NULL, false, NULL), 0);
	CHECK_EQ(kid_do(&a, DO_SETUID, NOBODY, 0), 0);
	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), -EACCES);
	CHECK(logged("belongs to another user"));
	kid_end(&a, 0);

	/* Even if somebody opens the door, weftd and client look at each other's uid. */
	CHECK_EQ(rdv_paths_open(&p, NULL), 0);
	snprintf(path, sizeof path, "%s/%s.sock", p.dir, p.name);
	CHECK(chmod(run_dir, 0711) == 0 && chmod(path, 0777) == 0);
	CHECK_EQ(seteuid(NOBODY), 0);
	CHECK_EQ(conn_open(&c, &p), -EACCES);
	CHECK_EQ(seteuid(0), 0);
	CHECK_EQ(chmod(run_dir, 0700), 0);
	CHECK(status_becomes(NULL, "refusals.other_user", 1));
	rdv_paths_close(&p);
	return 0;
}

/* The build may lie where only root can go: a copy of weftd that this user can run. */
static bool own_copy_of_weftd(void)
{
	const char *from = getenv("WEFT_DAEMON");
	static char to[PATH_MAX + 16];
	char buf[65536];
	ssize_t n = 0;
	int in = from ? open(from, O_RDONLY | O_CLOEXEC) : -1, out;

	snprintf(to, sizeof to, "%s/weftd", run_dir);
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	while (in >= 0 && out >= 0 && (n = read(in, buf, sizeof buf)) > 0)
		if (write(out, buf, n) != n)
			break;
	close(in);
	return n == 0 && fchmod(out, 0755) == 0 && close(out) == 0 &&
	       setenv("WEFT_DAEMON", to, 1) == 0;
}

/* The whole of it as a user without any privilege. */
static int unprivileged(void)
{
	struct kid a, b;
	long qpn;

	if (geteuid() != 0)
		return skip("not root; then all other cases show it");
	CHECK(own_copy_of_weftd());
	CHECK_EQ(chown(run_dir, NOBODY, NOBODY), 0);
	unlink(log_path);
	CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	a = kid_start();
	b = kid_start();
	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), 0);
	qpn = kid_do(&a, DO_LEASE, 0, 0);
	CHECK(qpn > 0 && kid_do(&b, DO_FIND, qpn, 0) > 0);
	kid_end(&a, SIGKILL);
	kid_end(&b, SIGKILL);
	CHECK(all_zero(NULL));
	a = kid_start();
	CHECK_EQ(rdv_shutdown(NULL), 0);
	CHECK_EQ(kid_do(&a, DO_LIMIT_FSIZE, 0, 0), 0);
	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), -ENOTCONN);
	kid_end(&a, 0);
	return 0;
}

/* Another network namespace has another default fabric, and may not join ours. */
static int other_netns(void)
{
	const struct proto_attach call = {.pid = getpid()};
	struct proto_out attach = proto_call(OP_ATTACH, &call);
	const struct rdv_attach *at;
	struct rdv_paths ours;
	struct proto_in in;
	struct conn c;
	int ns, ret;

	CHECK_EQ(rdv_start(NULL, false, NULL), 0);
	CHECK_EQ(rdv_paths_open(&ours, NULL), 0);
	CHECK_EQ(conn_open(&c, &ours), 0);
	if (unshare(CLONE_NEWNET) < 0)
		return skip("cannot make a network namespace");
	ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	attach.fds = &ns;
	attach.n_fds = 1;
	ret = conn_call(&c, &attach, &in);
	CHECK_EQ(ret, -EACCES);
	conn_close(&c);
	CHECK_EQ(rdv_ping(NULL, NULL), -ENOTCONN);
	CHECK_EQ(rdv_attach(&at), 0);
	CHECK_EQ(status_of(NULL, "counts.processes"), 1);
	CHECK_EQ(rdv_shutdown(NULL), 0);
	return 0;
}

/*
 * A fabric with a name has the addresses of one network namespace, too; who has gone to another
 * since keeps what he had.
 */
static int named_netns(void)
{
	struct kid a, b, moved;
	long id;

	setenv("WEFT_FABRIC", "shared", 1);
	a = kid_start();
	b = kid_start();
	moved = kid_start();
	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), 0);
	id = kid_do(&moved, ASK_ID, 0, 0);
	if (kid_do(&b, DO_NEWNET, 0, 0) || kid_do(&moved, DO_NEWNET, 0, 0))
		return skip("cannot make a network namespace");
	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), -EACCES);
	CHECK(logged("that of another network namespace"));
	CHECK_EQ(status_of("shared", "refusals.other_netns"), 1);
	CHECK_EQ(status_of("shared", "counts.processes"), 2);
	CHECK_EQ(kill(weftd_pid("shared"), SIGKILL), 0);
	CHECK_EQ(kid_do(&a, DO_FIND, kid_do(&a, DO_LEASE, 0, 0), 0), kid_do(&a, ASK_ID, 0, 0));
	CHECK(kid_do(&moved, DO_LEASE, 0, 0) > 0);
	CHECK_EQ(kid_do(&moved, ASK_ID, 0, 0), id);
	kid_end(&a, 0);
	kid_end(&b, 0);
	kid_end(&moved, 0);
	return 0;
}

static int set_address(const char *name, const char *address, bool up)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;
	struct ifreq ifr = {0};

	strcpy(ifr.ifr_name, name);
	if (address) {
		inet_pton(AF_INET, address, &in.sin_addr);
		memcpy(&ifr.ifr_addr, &in, sizeof in);
		ret = ioctl(fd, SIOCSIFADDR, &ifr);
	}
	ifr.ifr_flags = up ? IFF_UP : 0;
	if (!ret)
		ret = ioctl(fd, SIOCSIFFLAGS, &ifr);
	close(fd);
	return ret;
}

static bool gid_becomes(const struct fabric_page *page, uint32_t i, const char *address)
{
	double end = seconds() + 20;
	uint8_t want[16] = {0};
	struct fabric_page now;
	struct in_addr in;

	if (address) {
		inet_pton(AF_INET, address, &in);
		gid_from_ipv4(want, &in);
	}
	do {
		fabric_read(page, &now);
		if (memcmp(now.port[0].gid[i].raw, want, 16) == 0)
			return true;
		usleep(5000);
	} while (seconds() < end);
	return false;
}

/* Addresses come and go in the live page. */
static int addresses(void)
{
	const struct rdv_attach *at;
	struct fabric_page page;

	if (unshare(CLONE_NEWNET) < 0)
		return skip("cannot make a network namespace");
	CHECK_EQ(rdv_attach(&at), 0);
	fabric_read(at->fabric, &page);
	CHECK(page.port[0].gid[0].raw[0] == 0xfe && page.port[0].gid[0].raw[1] == 0x80);
	CHECK(memcmp(page.port[0].gid[0].raw + 8, &page.node_guid, 8) == 0);
	CHECK(gid_becomes(at->fabric, 1, "127.0.0.1"));
	CHECK_EQ(set_address("lo", NULL, true), 0);
	CHECK_EQ(set_address("lo:1", "10.1.2.3", true), 0);
	CHECK(gid_becomes(at->fabric, 3, "10.1.2.3"));
	CHECK_EQ(set_address("lo:1", "10.1.2.4", true), 0);
	CHECK(gid_becomes(at->fabric, 3, "10.1.2.4"));
	CHECK(gid_becomes(at->fabric, 1, "127.0.0.1"));
	CHECK_EQ(set_address("lo:1", NULL, false), 0);
	CHECK(gid_becomes(at->fabric, 3, NULL));
	CHECK_EQ(rdv_shutdown(NULL), 0);
	return 0;
}

const struct test_case user_cases[] = {
	{"other_user", other_user},
	{"unprivileged", unprivileged},
	{"other_netns", other_netns},
	{"named_netns", named_netns},
	{"addresses", addresses},
	{NULL, NULL},
};
