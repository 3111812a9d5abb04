// SPDX-License-Identifier: BSD-3-Clause
#include "roce/port/lock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

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

bool port_place_parse(struct port_place *p, const char *text)
{
	*p = (struct port_place){.any = !*text || strcmp(text, "*") == 0};
	if (p->any || inet_pton(AF_INET, text, p->addr + 12) == 1)
		return true;
	p->ipv6 = inet_pton(AF_INET6, text, p->addr) == 1;
	return p->ipv6;
}

/* An abstract name: only the first byte of the path is 0. */
static socklen_t lock_addr(const struct port_place *p, struct sockaddr_un *a)
{
	char where[PORT_PLACE_TEXT];

	port_place_text(p, where);
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	return offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "weft-roce-%d/%s", ROCE_PORT,
		       where);
}

static int lock_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

int port_lock_take(const struct port_place *p)
{
	struct sockaddr_un a;
	socklen_t len = lock_addr(p, &a);
	int fd = lock_socket(), ret;

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&a, len) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

void port_lock_greet(int lock)
{
	int fd = accept4(lock, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0)
		close(fd);
}

/* Who made the socket with that name; false: nobody has it. */
static bool lock_owner(const struct port_place *p, struct ucred *cred)
{
	socklen_t size = sizeof *cred;
	struct sockaddr_un a;
	socklen_t len = lock_addr(p, &a);
	int fd = lock_socket();
	bool found;

	if (fd < 0)
		return false;
	found = connect(fd, (struct sockaddr *)&a, len) == 0 &&
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &size) == 0;
	close(fd);
	return found;
}

/* A zombie is none; another program of the same number is none. */
static bool is_weftd(pid_t pid)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = {.fd = fd, .events = POLLIN};
	char path[64], comm[32] = "weftd\n";
	FILE *f;

	if (fd < 0 && errno == ESRCH)
		return false;
	if (fd >= 0 && poll(&end, 1, 0) != 0)
		comm[0] = '\0';
	close(fd);
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	f = comm[0] ? fopen(path, "re") : NULL;
	if (f) {
		if (!fgets(comm, sizeof comm, f))
			comm[0] = '\0';
		fclose(f);
	}
	return strcmp(comm, "weftd\n") == 0;
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

/* Looks in a table of the kernel's for who has the port. */
static bool find_socket(const char *table, struct bound *b)
{
	char line[512], hex[33];
	FILE *f = fopen(table, "re");
	unsigned port = 0;
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f))
		found = sscanf(line, " %*d: %32[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u %*d %lu", hex,
				&port, &b->uid, &b->inode) == 4 &&
			port == ROCE_PORT;
	if (f)
		fclose(f);
	if (found)
		read_address(hex, &b->place);
	return found;
}

static void tell_fabric(const struct ucred *cred, struct port_holder *out)
{
	out->kind = PORT_HOLDER_FABRIC;
	/* 0: it is of another pid namespace, where it cannot be looked for. */
	if (cred->pid <= 0)
		snprintf(out->text, sizeof out->text, "a weftd of user %u", (unsigned)cred->uid);
	else if (is_weftd(cred->pid))
		snprintf(out->text, sizeof out->text, "weftd (pid %d) of user %u", (int)cred->pid,
			(unsigned)cred->uid);
	else {
		out->kind = PORT_HOLDER_ORPHANS;
		snprintf(out->text, sizeof out->text,
			"processes of a weftd (pid %d) of user %u that has ended", (int)cred->pid,
			(unsigned)cred->uid);
	}
}

/* A socket of the kernel's own belongs to no file: its inode is 0. */
static void find_other(struct port_holder *out)
{
	struct ucred cred;
	struct bound b;

	out->kind = PORT_HOLDER_OTHER;
	if (!find_socket("/proc/self/net/udp", &b) && !find_socket("/proc/self/net/udp6", &b))
		snprintf(out->text, sizeof out->text, "somebody who cannot be seen");
	else if (!b.inode)
		snprintf(out->text, sizeof out->text, "the kernel (rdma_rxe?)");
	else if (lock_owner(&b.place, &cred)) /* a fabric of one address, where all are wanted */
		tell_fabric(&cred, out);
	else
		snprintf(out->text, sizeof out->text, "a program of user %u", b.uid);
}

void port_holder_find(const struct port_place *p, struct port_holder *out)
{
	const struct port_place any = {.any = true};
	struct ucred cred;

	if (lock_owner(p, &cred) || lock_owner(&any, &cred))
		tell_fabric(&cred, out);
	else
		find_other(out);
}
