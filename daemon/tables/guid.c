// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tables/guid.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

/* The first line of a file, empty if there is none. */
static void read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");

	buf[0] = '\0';
	if (!f)
		return;
	if (!fgets(buf, size, f))
		buf[0] = '\0';
	fclose(f);
	buf[strcspn(buf, "\n")] = '\0';
}

static void read_host(char *buf, size_t size)
{
	read_line("/etc/machine-id", buf, size);
	if (!buf[0] && gethostname(buf, size) == 0)
		buf[size - 1] = '\0';
}

void guid_look(struct guid_place *p, int dir_fd, const char *fabric)
{
	struct stat st;

	*p = (struct guid_place){.fabric = fabric};
	read_host(p->host, sizeof p->host);
	read_line("/proc/sys/kernel/random/boot_id", p->boot, sizeof p->boot);
	if (stat("/proc/self/ns/net", &st) == 0) {
		p->netns_dev = st.st_dev;
		p->netns_ino = st.st_ino;
	}
	if (fstat(dir_fd, &st) == 0) {
		p->dir_dev = st.st_dev;
		p->dir_ino = st.st_ino;
	}
}

/* With its length, so that what ends one string does not begin the next. */
static uint64_t add(uint64_t h, const char *s)
{
	return hash_bytes(s, strlen(s), h);
}

uint64_t guid_make(const struct guid_place *p)
{
	const uint64_t group = 1ull << 56, local = 2ull << 56;
	const uint64_t words[] = {p->netns_dev, p->netns_ino, p->dir_dev, p->dir_ino};
	uint64_t h = add(add(add(0, p->host), p->boot), p->fabric);

	h = hash_bytes(words, sizeof words, h);
	return htobe64((h & ~group) | local);
}
