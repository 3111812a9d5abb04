// SPDX-License-Identifier: BSD-3-Clause
/* Which fds are rsockets, how long each one lives, and what a forked child makes of them. */
#include "rsock/table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

#include "rsock/config.h"
#include "rsock/dgram.h"
#include "rsock/stream.h"

enum { PAGE_FDS = 1024, PAGES = 1024 };

/* The lock keeps whoever is about to refer to s from one who takes it out. */
struct place {
	struct lock lock;
	struct rsocket *s;
};

/* Pages come when they are needed, and stay. */
static struct place *_Atomic table[PAGES];

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Queues and connections stay the parent's; the child can only close what it inherited. */
static void forked_child(void)
{
	for (int i = 0; i < PAGES; i++) {
		struct place *page = atomic_load_explicit(&table[i], memory_order_relaxed);

		for (int k = 0; page && k < PAGE_FDS; k++) {
			struct rsocket *s = page[k].s;

			atomic_store_explicit(&page[k].lock.word, 0, memory_order_relaxed);
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

static struct place *place_of(int fd)
{
	struct place *page = NULL;

	if (fd >= 0 && fd / PAGE_FDS < PAGES)
		page = atomic_load_explicit(&table[fd / PAGE_FDS], memory_order_acquire);
	return page ? &page[fd % PAGE_FDS] : NULL;
}

static int make_page(unsigned i)
{
	struct place *none = NULL, *page;

	if (i >= PAGES)
		return -EMFILE;
	if (atomic_load_explicit(&table[i], memory_order_acquire))
		return 0;
	page = calloc(PAGE_FDS, sizeof *page);
	if (!page)
		return -ENOMEM;
	if (!atomic_compare_exchange_strong_explicit(
		    &table[i], &none, page, memory_order_acq_rel, memory_order_acquire))
		free(page); /* another thread was faster */
	return 0;
}

static int enter(struct rsocket *s)
{
	int ret = make_page(s->fd / PAGE_FDS);
	struct place *p = place_of(s->fd);

	if (ret)
		return ret;
	lock_take(&p->lock);
	p->s = s;
	lock_drop(&p->lock);
	return 0;
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

struct rsocket *rs_find(int fd)
{
	struct place *p = place_of(fd);
	struct rsocket *s;

	if (!p)
		return NULL;
	lock_take(&p->lock);
	s = p->s;
	if (s)
		atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	lock_drop(&p->lock);
	return s;
}

bool rs_withdraw(struct rsocket *s)
{
	struct place *p = place_of(s->fd);
	bool ours;

	lock_take(&p->lock);
	ours = p->s == s;
	if (ours)
		p->s = NULL;
	lock_drop(&p->lock);
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
	if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
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
