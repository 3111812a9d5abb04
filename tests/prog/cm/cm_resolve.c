// SPDX-License-Identifier: BSD-3-Clause
/*
 * Ways to another host: what rdma_resolve_addr() finds, and what it says where there is no route,
 * or nobody answers in the link in time; also of a device that has not the address that the kernel
 * would send from.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/two_hosts.h"
#include "tests/lib/weftd_from_outside.h"

enum { NEAR = 1, FAR = 2, SECOND = 11, NOBODY = 77, LONG_MS = 20000, SHORT_MS = 50 };

/* How often the kernel asks for a next hop; it gives up after three times. */
static void ask_each(int ms)
{
	host_do("echo %d >/proc/sys/net/ipv4/neigh/v0/retrans_time_ms", ms);
	host_do("echo %d >/proc/sys/net/ipv6/neigh/v0/retrans_time_ms", ms);
	host_do("ip neigh flush dev v0");
}

static void resolve(struct rdma_cm_id *id, struct sockaddr *to, int timeout_ms)
{
	if (rdma_resolve_addr(id, NULL, to, timeout_ms))
		die("rdma_resolve_addr");
}

static void check_source_is(const struct rdma_cm_id *id, int family, int host)
{
	const struct sockaddr *want = host_addr(family, host, 0);
	const struct sockaddr *got = &id->route.addr.src_addr;

	CHECK_EQ(got->sa_family, family);
	if (family == AF_INET)
		CHECK(!memcmp(&((struct sockaddr_in *)got)->sin_addr,
			&((struct sockaddr_in *)want)->sin_addr, sizeof(struct in_addr)));
	else
		CHECK(!memcmp(&((struct sockaddr_in6 *)got)->sin6_addr,
			&((struct sockaddr_in6 *)want)->sin6_addr, sizeof(struct in6_addr)));
	CHECK(rdma_get_src_port((struct rdma_cm_id *)id) != 0);
	CHECK(id->verbs != NULL);
}

static void check_source(const struct rdma_cm_id *id, int family)
{
	check_source_is(id, family, NEAR);
}

static void finds(struct rdma_event_channel *ch, int family)
{
	struct rdma_cm_id *id = cm_id(ch);

	resolve(id, host_addr(family, FAR, 4711), LONG_MS);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	check_source(id, family);
	rdma_destroy_id(id);
	/* The next hop is known by now, and the id has an address already. */
	id = cm_id(ch);
	if (rdma_bind_addr(id, host_addr(family, NEAR, 0)))
		die("rdma_bind_addr");
	resolve(id, host_addr(family, FAR, 4711), LONG_MS);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	check_source(id, family);
	rdma_destroy_id(id);
}

/* An id whose address was not resolved may try another. */
static void nobody_answers(struct rdma_event_channel *ch, int family)
{
	struct rdma_cm_id *id = cm_id(ch);

	ask_each(LONG_MS);
	resolve(id, host_addr(family, NOBODY, 4711), SHORT_MS);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_ERROR), -ETIMEDOUT);
	resolve(id, host_addr(family, FAR, 4711), LONG_MS);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	check_source(id, family);
	rdma_destroy_id(id);
}

/* A host that comes after the kernel has given up asking for it is there all the same. */
static void comes_late(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id = cm_id(ch);
	char at[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &((struct sockaddr_in *)host_addr(AF_INET, NOBODY, 0))->sin_addr, at,
		sizeof at);
	ask_each(50);
	resolve(id, host_addr(AF_INET, NOBODY, 4711), LONG_MS);
	host_do("until ip neigh show %s dev v0 | grep -q FAILED; do sleep 0.02; done", at);
	CHECK(!cm_readable(ch, 0));
	host_do("ip neigh replace %s dev v0 lladdr 02:00:00:00:00:4d nud reachable", at);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	check_source(id, AF_INET);
	rdma_destroy_id(id);
}

static void refused(struct rdma_cm_id *id, int family, const char *to, int err)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(4711)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(4711)};
	bool v4 = family == AF_INET;

	inet_pton(family, to, v4 ? (void *)&a4.sin_addr : (void *)&a6.sin6_addr);
	CHECK_FAILS(rdma_resolve_addr(id, NULL, v4 ? (void *)&a4 : (void *)&a6, LONG_MS), err);
}

/* The call itself fails, with the kernel's errno, and the id may try another address. */
static void no_route(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id = cm_id(ch), *other = cm_id(ch);

	host_do("ip route add prohibit 203.0.113.64/26");
	host_do("ip route add unreachable 203.0.113.128/26");
	refused(id, AF_INET, "203.0.113.5", ENETUNREACH);
	refused(id, AF_INET, "203.0.113.65", EACCES);
	refused(id, AF_INET, "203.0.113.129", EHOSTUNREACH);
	refused(other, AF_INET6, "2001:db8:99::1", ENETUNREACH);
	CHECK(!cm_readable(ch, 0));
	resolve(id, host_addr(AF_INET, FAR, 4711), LONG_MS);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	rdma_destroy_id(id);
	rdma_destroy_id(other);
}

/* What was asked for ends with its id; what is asked for goes with it to another channel. */
static void gone_meanwhile(struct rdma_event_channel *ch)
{
	struct rdma_event_channel *other = cm_channel();
	struct rdma_cm_id *id = cm_id(ch), *moved = cm_id(ch);

	ask_each(LONG_MS);
	resolve(id, host_addr(AF_INET, NOBODY, 4711), 2 * SHORT_MS);
	resolve(moved, host_addr(AF_INET, NOBODY, 4711), 4 * SHORT_MS);
	rdma_destroy_id(id);
	if (rdma_migrate_id(moved, other))
		die("rdma_migrate_id");
	CHECK_EQ(cm_expect(other, RDMA_CM_EVENT_ADDR_ERROR), -ETIMEDOUT);
	CHECK(!cm_readable(ch, 0));
	rdma_destroy_id(moved);
	rdma_destroy_event_channel(other);
}

static void synchronous(void)
{
	struct rdma_cm_id *id;

	ask_each(LONG_MS);
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	CHECK_FAILS(
		rdma_resolve_addr(id, NULL, host_addr(AF_INET, NOBODY, 1), SHORT_MS), ETIMEDOUT);
	refused(id, AF_INET, "203.0.113.5", ENETUNREACH);
	CHECK_EQ(rdma_resolve_addr(id, NULL, host_addr(AF_INET, FAR, 1), LONG_MS), 0);
	rdma_destroy_id(id);
}

/* An address of this host to name to others is one that leads them here. */
static void names_itself(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_FAMILY,
				     .ai_family = AF_INET,
				     .ai_port_space = RDMA_PS_TCP},
			     *res;

	if (rdma_getaddrinfo("localhost", NULL, &hints, &res))
		die("rdma_getaddrinfo");
	CHECK_EQ(res->ai_src_addr->sa_family, AF_INET);
	CHECK(!memcmp(&((struct sockaddr_in *)res->ai_src_addr)->sin_addr,
		&((struct sockaddr_in *)host_addr(AF_INET, NEAR, 0))->sin_addr, 4));
	rdma_freeaddrinfo(res);
	if (rdma_getaddrinfo("localhost", "4711", &hints, &res))
		die("rdma_getaddrinfo");
	CHECK_EQ(((struct sockaddr_in *)res->ai_src_addr)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	rdma_freeaddrinfo(res);
}

/* Until v0 has it no more: the kernel goes on sending from its first. */
static void add_second(const char *what)
{
	const struct sockaddr_in *sin = (struct sockaddr_in *)host_addr(AF_INET, SECOND, 0);
	char at[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &sin->sin_addr, at, sizeof at);
	host_do("ip addr %s %s/24 dev v0", what, at);
	if (!strcmp(what, "add"))
		host_do("\"${WEFT_DAEMON%%d}\" up --address %s >&2", at);
}

/* A process whose device has the second address of the link alone. */
static void has_the_second(int in, int out, void *arg)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	char dir[256];

	(void)in, (void)out, (void)arg;
	snprintf(dir, sizeof dir, "%s/second", t_dir());
	T_SYS(mkdir(dir, 0700));
	T_SYS(setenv("WEFT_RUNTIME_DIR", dir, 1));
	add_second("add");
	ch = cm_channel();
	id = cm_id(ch);
	resolve(id, host_addr(AF_INET, FAR, 4711), LONG_MS);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	check_source_is(id, AF_INET, SECOND);
	CHECK_EQ(rdma_resolve_route(id, LONG_MS), 0);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
	rdma_destroy_id(id);
	id = cm_id(ch);
	resolve(id, host_addr(AF_INET6, FAR, 4711), LONG_MS);
	CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_ERROR), -ENODEV);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
	weftd_down();
	add_second("del");
	exit(check_result());
}

static void live_far(int in, int out, void *arg)
{
	(void)arg;
	t_signal(out);
	t_await(in);
}

int main(void)
{
	char log[] = "/tmp/cm_resolve_XXXXXX", to[sizeof log + 5];
	struct rdma_event_channel *ch;
	struct t_child far, second;

	close(mkstemp(log));
	snprintf(to, sizeof to, "info:%s", log);
	setenv("WEFT_LOG", to, 1);
	t_start(60);
	two_hosts(&far, live_far);
	t_await(far.from);
	t_fork(&second, has_the_second, NULL);
	T_EQUAL(t_wait(&second), 0);
	ch = cm_channel();
	finds(ch, AF_INET);
	finds(ch, AF_INET6);
	no_route(ch);
	comes_late(ch);
	nobody_answers(ch, AF_INET);
	nobody_answers(ch, AF_INET6);
	gone_meanwhile(ch);
	synchronous();
	names_itself();
	rdma_destroy_event_channel(ch);
	t_signal(far.to);
	T_EQUAL(t_wait(&far), 0);
	CHECK_EQ(lines_with(log, "no way to 203.0.113.5: there is no route"), 2);
	CHECK(lines_with(log, "the next hop did not answer in time"));
	CHECK_EQ(lines_with(log, "no way to 2001:db8:77::2: the device has no address that leads"),
		1);
	unlink(log);
	return check_result();
}
