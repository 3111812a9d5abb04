// SPDX-License-Identifier: BSD-3-Clause
#include "roce/port/lock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unix_names.h"
#include "wire/roce.h"

void port_place_text(const struct port_place *p, char text[PORT_PLACE_TEXT])
{
	if (p->any)
		strcpy(text, "*");
	else if (p->ipv6)
		inet_ntop(AF_INET6, p->addr, text, PORT_PLACE_TEXT);
	else
		inet_ntop(AF_INET, p->addr + 12, text, PORT_PLACE_TEXT);
}

bool port_place_same(const struct port_place *a, const struct port_place *b)
{
	if (a->any || b->any)
		return a->any == b->any;
	return a->ipv6 == b->ipv6 && !memcmp(a->addr, b->addr, sizeof a->addr);
}

bool port_place_parse(struct port_place *p, const char *text)
{
	*p = (struct port_place){.any = !*text || strcmp(text, "*") == 0};
	if (p->any || inet_pton(AF_INET, text, p->addr + 12) == 1)
		return true;
	p->ipv6 = inet_pton(AF_INET6, text, p->addr) == 1;
	return p->ipv6;
}

struct lock_name {
	char s[PORT_PLACE_TEXT + 32];
};

static struct lock_name name_of(const struct port_place *p, const char *suffix)
{
	char where[PORT_PLACE_TEXT];
	struct lock_name n;

	port_place_text(p, where);
	snprintf(n.s, sizeof n.s, "weft-roce-%d/%s%s", ROCE_PORT, where, suffix);
	return n;
}

static const char the_lock[] = "", the_weftd[] = "/weftd";

int port_lock_take(const struct port_place *p)
{
	int fd = unix_name_take(name_of(p, the_lock).s, SOCK_DGRAM);

	if (fd >= 0)
		shutdown(fd, SHUT_RDWR); /* what anybody sends there does not lie there */
	return fd;
}

bool port_lock_is(int fd)
{
	socklen_t len = sizeof(int);
	int domain = 0, type = 0;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && domain == AF_UNIX &&
	       type == SOCK_DGRAM;
}

int port_lock_show(const struct port_place *p)
{
	return unix_name_listen(name_of(p, the_weftd).s, SOMAXCONN);
}

static bool is_locked(const struct port_place *p)
{
	int fd = unix_name_meet(name_of(p, the_lock).s, SOCK_DGRAM);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Who shows that it has the lock.  0; -EAGAIN: it does not answer; other errors: nobody does. */
static int who_shows(const struct port_place *p, struct ucred *cred)
{
	int fd = unix_name_meet_listener(name_of(p, the_weftd).s, cred);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* A socket on the port, as a table of the kernel's has it. */
struct bound {
	struct port_place place;
	unsigned uid;
	unsigned long inode;
};

/* The table has addresses as 32-bit numbers in hexadecimal, one or four. */
static void read_address(const char *hex, struct port_place *p)
{
	const size_t digits = 8, words = strlen(hex) / digits;
	static const uint8_t none[sizeof p->addr];
	uint32_t word;

	*p = (struct port_place){.ipv6 = words == 4};
	for (size_t i = 0; i < words && sscanf(hex + digits * i, "%8" SCNx32, &word) == 1; i++)
		memcpy(p->addr + (p->ipv6 ? 0 : 12) + sizeof word * i, &word, sizeof word);
	p->any = !memcmp(p->addr, none, sizeof none);
}

/*
 * Looks in a table of the kernel's for who has the port there; of all places where want is NULL.
 * What is bound to one address stands in the way of who wants all, and the other way round.
 */
static bool find_in(const char *table, const struct port_place *want, struct bound *b)
{
	char line[512], hex[33];
	FILE *f = fopen(table, "re");
	unsigned port = 0;
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f)) {
		if (sscanf(line, " %*d: %32[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u %*d %lu", hex,
			    &port, &b->uid, &b->inode) != 4 ||
			port != ROCE_PORT)
			continue;
		read_address(hex, &b->place);
		found = !want || port_place_same(want, &b->place);
	}
	if (f)
		fclose(f);
	return found;
}

static bool find_socket(const struct port_place *want, struct bound *b)
{
	return find_in("/proc/self/net/udp", want, b) || find_in("/proc/self/net/udp6", want, b);
}

/*
 * The name of who shows itself could be taken by anybody: it counts if the socket on the port is of
 * that user, or of nobody that can be seen.
 */
static bool tell_weftd(const struct port_place *p, const struct bound *b, struct port_holder *out)
{
	struct ucred cred = {.pid = 0};
	int ret = who_shows(p, &cred);

	if ((ret && ret != -EAGAIN) || (!ret && b && b->uid != cred.uid))
		return false;
	out->kind = PORT_HOLDER_FABRIC;
	if (ret)
		snprintf(out->text, sizeof out->text, "a weftd that does not answer");
	else if (cred.pid > 0)
		snprintf(out->text, sizeof out->text, "weftd (pid %d) of user %u", (int)cred.pid,
			(unsigned)cred.uid);
	else /* of another pid namespace */
		snprintf(out->text, sizeof out->text, "a weftd of user %u", (unsigned)cred.uid);
	return true;
}

/* A fabric that has that place. */
static bool tell_fabric(const struct port_place *p, struct port_holder *out)
{
	struct bound b;
	bool seen;

	if (!is_locked(p))
		return false;
	seen = find_socket(p, &b);
	if (tell_weftd(p, seen ? &b : NULL, out))
		return true;
	out->kind = PORT_HOLDER_ORPHANS;
	if (seen)
		snprintf(out->text, sizeof out->text,
			"processes of a weftd of user %u that has ended", b.uid);
	else
		snprintf(out->text, sizeof out->text, "processes of a weftd that has ended");
	return true;
}

/* A socket of the kernel's own belongs to no file: its inode is 0. */
static void tell_other(struct port_holder *out)
{
	struct bound b;

	out->kind = PORT_HOLDER_OTHER;
	if (!find_socket(NULL, &b))
		snprintf(out->text, sizeof out->text, "somebody who cannot be seen");
	else if (!b.inode)
		snprintf(out->text, sizeof out->text, "the kernel (rdma_rxe?)");
	else if (!tell_fabric(&b.place, out)) /* of one address, where all are wanted */
		snprintf(out->text, sizeof out->text, "a program of user %u", b.uid);
}

void port_holder_find(const struct port_place *p, struct port_holder *out)
{
	const struct port_place any = {.any = true};

	if (!tell_fabric(p, out) && !tell_fabric(&any, out))
		tell_other(out);
}
