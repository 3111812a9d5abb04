// SPDX-License-Identifier: BSD-3-Clause
/* Which fds are rsockets, how long each one lives, and what a forked child makes of them. */
#include "rsock/rsock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

enum { PAGE_FDS = 1024, PAGES = 1024 };

static struct {
	struct lock lock;
	struct rsocket **page[PAGES];
} table;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Queues and connections stay the parent's; the child can only close what it inherited. */
static void forked_child(void)
{
	atomic_store_explicit(&table.lock.word, 0, memory_order_relaxed);
	for (int i = 0; i < PAGES; i++) {
		for (int k = 0; table.page[i] && k < PAGE_FDS; k++) {
			struct rsocket *s = table.page[i][k];

			if (!s)
				continue;
			atomic_store_explicit(&s->lock.word, 0, memory_order_relaxed);
			s->inherited = true;
			s->state = RS_ENDED;
			s->err = ECONNRESET;
			s->sleepers = NULL;
		}
	}
}

static void set_up(void)
{
	pthread_atfork(NULL, NULL, forked_child);
}

static int enter(struct rsocket *s)
{
	unsigned i = s->fd / PAGE_FDS;
	int ret = 0;

	if (i >= PAGES)
		return -EMFILE;
	lock_take(&table.lock);
	if (!table.page[i])
		table.page[i] = calloc(PAGE_FDS, sizeof *table.page[i]);
	if (table.page[i])
		table.page[i][s->fd % PAGE_FDS] = s;
	else
		ret = -ENOMEM;
	lock_drop(&table.lock);
	return ret;
}

int rs_create(int family, int type, struct rsocket **out)
{
	struct rsocket *s = calloc(1, sizeof *s);
	int ret;

	if (!s)
		return -ENOMEM;
	pthread_once(&once, set_up);
	s->family = family;
	s->type = type;
	s->refs = 1;
	rs_default_options(&s->opt);
	s->cm = rdma_create_event_channel();
	if (!s->cm) {
		ret = -errno;
		free(s);
		return ret;
	}
	s->fd = s->cm->fd;
	/* Whether calls block is ours to decide. */
	ret = fcntl(s->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : enter(s);
	if (ret) {
		rdma_destroy_event_channel(s->cm);
		free(s);
		return ret;
	}
	*out = s;
	return 0;
}

static struct rsocket **place(int fd)
{
	struct rsocket **page = fd >= 0 && fd / PAGE_FDS < PAGES ? table.page[fd / PAGE_FDS] : NULL;

	return page ? &page[fd % PAGE_FDS] : NULL;
}

struct rsocket *rs_find(int fd)
{
	struct rsocket **p, *s = NULL;

	lock_take(&table.lock);
	p = place(fd);
	if (p && *p) {
		s = *p;
		s->refs++;
	}
	lock_drop(&table.lock);
	return s;
}

bool rs_withdraw(struct rsocket *s)
{
	struct rsocket **p;
	bool ours;

	lock_take(&table.lock);
	p = place(s->fd);
	ours = p && *p == s;
	if (ours)
		*p = NULL;
	lock_drop(&table.lock);
	return ours;
}

static void destroy(struct rsocket *s)
{
	if (s->dg)
		dgram_free(s);
	else
		stream_free(s);
	if (s->request)
		rdma_destroy_id(s->request);
	if (s->id)
		rdma_destroy_id(s->id);
	if (s->cc)
		ibv_destroy_comp_channel(s->cc);
	rdma_destroy_event_channel(s->cm);
	free(s->route);
	free(s);
}

void rs_release(struct rsocket *s)
{
	bool last;

	lock_take(&table.lock);
	last = --s->refs == 0;
	lock_drop(&table.lock);
	if (last)
		destroy(s);
}

/* ---- the edge of public functions ---- */

struct rsocket *rs_enter(int fd)
{
	struct rsocket *s = rs_find(fd);

	if (s)
		lock_take(&s->lock);
	else
		errno = EBADF;
	return s;
}

int64_t rs_leave(struct rsocket *s, int64_t ret)
{
	lock_drop(&s->lock);
	rs_release(s);
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}
