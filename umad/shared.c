// SPDX-License-Identifier: BSD-3-Clause
#include "umad/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fabric/page.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

/* A page that is mapped. */
struct mapped {
	struct mapped *next;
	const struct fabric_page *page;
	dev_t dev;
	ino_t ino;
	unsigned users;
};

static struct mapped *all;

int shared_map(int fd, size_t size, int prot, void **base)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 ||
		(size_t)st.st_size < size)
		return -EPROTO;
	*base = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
	return *base == MAP_FAILED ? -errno : 0;
}

static struct mapped *find(const struct stat *st)
{
	struct mapped *m = all;

	while (m && (m->ino != st->st_ino || m->dev != st->st_dev))
		m = m->next;
	return m;
}

static int make(int fd, const struct stat *st, struct mapped **out)
{
	struct mapped *m = malloc(sizeof *m);
	void *page;
	int ret;

	if (!m)
		return -ENOMEM;
	ret = shared_map(fd, sizeof *m->page, PROT_READ, &page);
	if (ret) {
		free(m);
		return ret;
	}
	*m = (struct mapped){.next = all, .page = page, .dev = st->st_dev, .ino = st->st_ino};
	all = m;
	*out = m;
	return 0;
}

int shared_node_page(int fd, const struct fabric_page **out)
{
	struct mapped *m;
	struct stat st;
	int ret;

	if (fstat(fd, &st) < 0)
		return -errno;
	m = find(&st);
	ret = m ? 0 : make(fd, &st, &m);
	if (ret)
		return ret;
	m->users++;
	*out = m->page;
	return 0;
}

void shared_drop_node_page(const struct fabric_page *page)
{
	struct mapped **link = &all, *m;

	while ((m = *link)->page != page)
		link = &m->next;
	if (--m->users)
		return;
	*link = m->next;
	munmap((void *)page, sizeof *page);
	free(m);
}
