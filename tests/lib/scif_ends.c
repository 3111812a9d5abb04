// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/scif_ends.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/lib/check.h"

enum { WAIT_MS = 20000 };

scif_epd_t scif_listener(int backlog, uint16_t *port)
{
	scif_epd_t epd = scif_open();
	int pn = scif_bind(epd, 0);

	if (epd < 0 || pn < 0 || scif_listen(epd, backlog))
		die("cannot listen");
	*port = pn;
	return epd;
}

uint16_t scif_cm_port(uint16_t port)
{
	const char *dir = getenv("WEFT_RUNTIME_DIR");
	char path[1024];
	unsigned n = 0;
	struct dirent *e;
	DIR *d = opendir(dir);
	FILE *f;

	while (d && (e = readdir(d)) != NULL) {
		if (!strstr(e->d_name, ".scif"))
			continue;
		snprintf(path, sizeof(path), "%s/%s/0.%u", dir, e->d_name, port);
		f = fopen(path, "r");
		if (!f || fscanf(f, "%u", &n) != 1)
			die("%s", path);
		fclose(f);
	}
	closedir(d);
	return n;
}

scif_epd_t scif_dial(uint16_t node, uint16_t port)
{
	struct scif_portID dst = {node, port};
	scif_epd_t epd = scif_open();

	if (epd < 0 || scif_connect(epd, &dst) < 0)
		die("cannot connect to %u:%u", node, port);
	return epd;
}

struct scif_pair scif_make_pair(void)
{
	struct scif_pair p;
	struct scif_portID dst, peer;

	p.listener = scif_listener(4, &p.port);
	p.a = scif_open();
	scif_get_nodeIDs(NULL, 0, &dst.node);
	dst.port = p.port;
	fcntl(p.a, F_SETFL, O_NONBLOCK);
	if (scif_connect(p.a, &dst) != -1 || errno != EINPROGRESS)
		die("connect");
	if (scif_accept(p.listener, &peer, &p.b, SCIF_ACCEPT_SYNC))
		die("accept");
	if (scif_raw_poll(p.a, POLLOUT, WAIT_MS) != POLLOUT || scif_connect(p.a, &dst) <= 0)
		die("the connection does not come");
	fcntl(p.a, F_SETFL, 0);
	return p;
}

void scif_end_pair(struct scif_pair *p)
{
	CHECK_EQ(scif_close(p->a), 0);
	CHECK_EQ(scif_close(p->b), 0);
	CHECK_EQ(scif_close(p->listener), 0);
}

void *scif_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

bool scif_can_map(void)
{
	const char *share = getenv("WEFT_SHARE");

	return !share || strcmp(share, "never") != 0;
}

bool scif_can_map_again(void)
{
	enum { WP_SHMEM = 1 << 12 }; /* of newer kernel headers than Debian 12's */
	struct uffdio_api api = {
		.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | WP_SHMEM};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	bool can;

	if (fd < 0) /* 5.10 does not know that flag */
		fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	can = scif_can_map() && fd >= 0 && !ioctl(fd, UFFDIO_API, &api);
	if (fd >= 0)
		close(fd);
	return can;
}

short scif_raw_poll(scif_epd_t epd, short events, int ms)
{
	struct pollfd p = {.fd = epd, .events = events};

	return poll(&p, 1, ms) < 0 ? -1 : p.revents;
}

int scif_events(scif_epd_t epd, short events, long ms)
{
	struct scif_pollepd p = {.epd = epd, .events = events};
	int n = scif_poll(&p, 1, ms);

	return n == 1 ? p.revents : n == 0 ? -1 : -2;
}

struct scif_child scif_fork(void (*fn)(int in, int out))
{
	struct scif_child c;
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		die("pipe");
	c.pid = fork();
	if (c.pid < 0)
		die("fork");
	if (!c.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to[1]);
		close(from[0]);
		fn(to[0], from[1]);
		_exit(check_result());
	}
	close(to[0]);
	close(from[1]);
	c.to = to[1];
	c.from = from[0];
	return c;
}

void scif_join(struct scif_child *c)
{
	int status;

	close(c->to);
	if (waitpid(c->pid, &status, 0) != c->pid)
		die("waitpid");
	check_child(status);
	close(c->from);
}

void scif_tell(int fd, uint64_t word)
{
	if (write(fd, &word, sizeof(word)) != sizeof(word))
		die("write");
}

uint64_t scif_hear(int fd)
{
	uint64_t word;

	if (read(fd, &word, sizeof(word)) != sizeof(word))
		die("the other process is gone");
	return word;
}
