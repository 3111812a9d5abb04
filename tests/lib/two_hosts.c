// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/two_hosts.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char near4[] = "198.51.100.1", near6[] = "2001:db8:77::1";

static const char far4[] = "198.51.100.2", far6[] = "2001:db8:77::2";

/* A link-local address of the kernel's own would be tentative for a second or two. */
static const char far_link[] =
	"ip link set lo up && ip link set v1 addrgenmode none up && "
	"ip addr add 198.51.100.2/24 dev v1 && ip addr add 2001:db8:77::2/64 dev v1 nodad && "
	"ip addr add fe80::2/64 dev v1 nodad";

struct life {
	void (*run)(int in, int out, void *arg);
	pid_t pid;
};

void host_do(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (system(line))
		T_FAIL("fails: %s", line);
}

static void live_far(int in, int out, void *arg)
{
	struct life *life = arg;
	char dir[256];
	pid_t pid = getpid();

	T_SYS(unshare(CLONE_NEWNET));
	t_tell(out, &pid, sizeof pid);
	t_await(in);
	host_do("%s", far_link);
	host_do("\"$AWAIT_LINK\" v1 %s %s", near4, near6);
	snprintf(dir, sizeof dir, "%s/far", t_dir());
	T_SYS(mkdir(dir, 0700));
	T_SYS(setenv("WEFT_RUNTIME_DIR", dir, 1));
	life->run(in, out, NULL);
}

void two_hosts(struct t_child *far, void (*run)(int in, int out, void *arg))
{
	struct life life = {.run = run};

	t_fork(far, live_far, &life);
	t_hear(far->from, &life.pid, sizeof life.pid);
	host_do("ip link set v1 netns %d", (int)life.pid);
	t_signal(far->to);
	host_do("\"$AWAIT_LINK\" v0 %s %s", far4, far6);
}

struct sockaddr *host_addr(int family, int host, uint16_t port)
{
	static struct sockaddr_in6 sin6;
	static struct sockaddr_in sin;

	if (family == AF_INET6) {
		sin6 = (struct sockaddr_in6){.sin6_family = family, .sin6_port = htons(port)};
		inet_pton(family, near6, &sin6.sin6_addr);
		sin6.sin6_addr.s6_addr[15] = host;
		return (struct sockaddr *)&sin6;
	}
	sin = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	inet_pton(AF_INET, near4, &sin.sin_addr);
	((uint8_t *)&sin.sin_addr)[3] = host;
	return (struct sockaddr *)&sin;
}
