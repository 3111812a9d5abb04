// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/half.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "scif/ep/ep.h"

struct half {
	struct half *next;
	struct scif_ep *listener; /* compared, never followed */
	uint64_t number;
	int fd;
};

static struct {
	struct lock lock;
	struct half *list;
	uint64_t numbers;
} halves;

static bool is_closed(struct scif_ep *ep)
{
	bool closed;

	lock_take(&ep->lock);
	closed = ep->state == EP_CLOSED;
	lock_drop(&ep->lock);
	return closed;
}

int64_t half_keep(struct scif_ep *listener, int fd)
{
	struct half *h = malloc(sizeof(*h));
	int64_t number;

	if (!h)
		return -ENOMEM;
	lock_take(&halves.lock);
	number = ++halves.numbers;
	*h = (struct half){halves.list, listener, number, fd};
	halves.list = h;
	lock_drop(&halves.lock);
	if (is_closed(listener)) /* perhaps after half_drop() */
		half_drop(listener);
	return number;
}

int half_take(uint64_t number)
{
	struct half **at, *h;
	int fd;

	lock_take(&halves.lock);
	for (at = &halves.list; *at && (*at)->number != number;)
		at = &(*at)->next;
	h = *at;
	if (h)
		*at = h->next;
	lock_drop(&halves.lock);
	if (!h)
		return -ENOENT;
	fd = h->fd;
	free(h);
	return fd;
}

/* Takes one of a listener's out of the list. */
static struct half *take_of(const struct scif_ep *listener)
{
	struct half **at, *h;

	lock_take(&halves.lock);
	for (at = &halves.list; *at && (*at)->listener != listener;)
		at = &(*at)->next;
	h = *at;
	if (h)
		*at = h->next;
	lock_drop(&halves.lock);
	return h;
}

void half_drop(struct scif_ep *listener)
{
	struct half *h;

	while ((h = take_of(listener)) != NULL) {
		close(h->fd); /* the service's thread sees that, and does the rest */
		free(h);
	}
}

void half_before_fork(void)
{
	lock_take(&halves.lock);
}

void half_parent_forked(void)
{
	lock_drop(&halves.lock);
}

void half_child_forked(void)
{
	struct half *h;

	atomic_store_explicit(&halves.lock.word, 0, memory_order_relaxed);
	while ((h = halves.list) != NULL) {
		halves.list = h->next;
		syscall(SYS_close, h->fd); /* past the shim, which would look for the endpoint */
		free(h);
	}
}
