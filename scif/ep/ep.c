// SPDX-License-Identifier: BSD-3-Clause
#include "scif/ep/ep.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

enum { BUCKETS = 256, VISITS = 16 };

static struct {
	struct lock lock;
	_Atomic uint32_t epoch; /* moves when an endpoint gets or loses its fd */
	uint32_t round;         /* of ep_each() */
	struct scif_ep *bucket[BUCKETS];
} table;

/* Inode numbers of sockets come one after the other, and an endpoint takes two. */
static struct scif_ep **bucket_of(uint64_t ino)
{
	_Static_assert(BUCKETS == 1 << 8, "the hash has 8 bits");
	return &table.bucket[ino * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

struct scif_ep *ep_new(void)
{
	struct scif_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->refs = 1;
	ep->standin.sock = ep->maker = -1;
	ep->connect_result = 1;
	ep->requests_end = &ep->requests;
	ep->link.after_end = &ep->link.after;
	return ep;
}

void ep_enter(struct scif_ep *ep)
{
	struct scif_ep **head;

	lock_take(&table.lock);
	head = bucket_of(ep->standin.ino);
	ep->next = *head;
	*head = ep;
	ep->visited = table.round;
	ep_get(ep);
	atomic_fetch_add_explicit(&table.epoch, 1, memory_order_relaxed);
	lock_drop(&table.lock);
}

int ep_inherit(int fd, int maker)
{
	struct scif_ep *ep;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	ep = ep_new();
	if (!ep)
		return -ENOMEM;
	ep->state = EP_INHERITED;
	ep->inherited = true;
	ep->maker = maker;
	ep->standin.ino = st.st_ino;
	ep_enter(ep);
	ep_put(ep);
	return 0;
}

void ep_get(struct scif_ep *ep)
{
	atomic_fetch_add_explicit(&ep->refs, 1, memory_order_relaxed);
}

void ep_put(struct scif_ep *ep)
{
	if (atomic_fetch_sub_explicit(&ep->refs, 1, memory_order_acq_rel) > 1)
		return;
	standin_close(&ep->standin);
	port_put(ep->port);
	free(ep->remains);
	free(ep);
}

struct scif_ep *ep_find_ino(uint64_t ino)
{
	struct scif_ep *ep;

	lock_take(&table.lock);
	for (ep = *bucket_of(ino); ep && ep->standin.ino != ino;)
		ep = ep->next;
	if (ep)
		ep_get(ep);
	lock_drop(&table.lock);
	return ep;
}

int ep_find(int fd, struct scif_ep **ep)
{
	int err = errno;
	struct stat st;

	if (fstat(fd, &st) < 0) {
		errno = err;
		return -EBADF;
	}
	*ep = S_ISSOCK(st.st_mode) ? ep_find_ino(st.st_ino) : NULL;
	return *ep ? 0 : -ENOTTY;
}

/* What a thread knows of the fd that it used last. */
enum { FAMILIAR = 8, TRUSTED = 64, TRUST_NS = 100 * NSEC_PER_USEC };

struct known {
	int fd;
	uint32_t epoch;
	uint64_t ino, until;
	unsigned hits; /* calls in a row that found it */
};

static _Thread_local struct known known __attribute__((tls_model("initial-exec"))) = {.fd = -1};

static struct scif_ep *recall(int fd, uint64_t now)
{
	if (known.fd != fd || now > known.until || known.hits < FAMILIAR || known.hits >= TRUSTED ||
		known.epoch != atomic_load_explicit(&table.epoch, memory_order_relaxed))
		return NULL;
	known.hits++;
	return ep_find_ino(known.ino);
}

static void remember(int fd, const struct scif_ep *ep, uint64_t now)
{
	if (known.fd != fd || known.ino != ep->standin.ino || now > known.until + TRUST_NS)
		known.hits = 0;
	else
		known.hits = known.hits < FAMILIAR ? known.hits + 1 : FAMILIAR;
	known.fd = fd;
	known.ino = ep->standin.ino;
	known.until = now + TRUST_NS;
	known.epoch = atomic_load_explicit(&table.epoch, memory_order_relaxed);
}

int ep_find_again(int fd, struct scif_ep **ep)
{
	uint64_t now = clock_ns();
	int ret = 0;

	*ep = recall(fd, now);
	if (!*ep) {
		ret = ep_find(fd, ep);
		if (!ret)
			remember(fd, *ep, now);
	}
	if (!ret)
		atomic_store_explicit(&(*ep)->used, now, memory_order_relaxed);
	return ret;
}

void ep_fd_lost(void)
{
	atomic_fetch_add_explicit(&table.epoch, 1, memory_order_relaxed);
}

bool ep_remove(struct scif_ep *ep)
{
	struct scif_ep **at;
	bool found;

	lock_take(&table.lock);
	for (at = bucket_of(ep->standin.ino); *at && *at != ep;)
		at = &(*at)->next;
	found = *at != NULL;
	if (found)
		*at = ep->next;
	atomic_fetch_add_explicit(&table.epoch, 1, memory_order_relaxed);
	lock_drop(&table.lock);
	return found;
}

/* Some of that bucket that were not visited in this round, with references; how many. */
static size_t next_batch(int bucket, uint32_t round, struct scif_ep **batch)
{
	size_t n = 0;

	lock_take(&table.lock);
	for (struct scif_ep *ep = table.bucket[bucket]; ep && n < VISITS; ep = ep->next) {
		if (ep->visited == round)
			continue;
		ep->visited = round;
		ep_get(ep);
		batch[n++] = ep;
	}
	lock_drop(&table.lock);
	return n;
}

void ep_each(void (*fn)(struct scif_ep *ep))
{
	struct scif_ep *batch[VISITS];
	uint32_t round;
	size_t n;

	lock_take(&table.lock);
	round = ++table.round;
	lock_drop(&table.lock);
	for (int i = 0; i < BUCKETS; i++) {
		while ((n = next_batch(i, round, batch)) > 0) {
			while (n > 0) {
				fn(batch[--n]);
				ep_put(batch[n]);
			}
		}
	}
}

/* ---- fork ---- */

static _Atomic uintptr_t forking; /* the thread, which is itself in the child, too */

bool ep_forking(void)
{
	return atomic_load_explicit(&forking, memory_order_relaxed) == (uintptr_t)pthread_self();
}

bool ep_any(void)
{
	for (int i = 0; i < BUCKETS; i++)
		for (const struct scif_ep *ep = table.bucket[i]; ep; ep = ep->next)
			if (!ep->inherited)
				return true;
	return false;
}

bool ep_is_open(int fd)
{
	const struct scif_ep *ep = NULL;
	int err = errno;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode)) {
		errno = err;
		return false;
	}
	while (!lock_try(&table.lock)) {
		/* Who forks may wait for a lock that is held around this close of something else.
		 */
		if (atomic_load_explicit(&forking, memory_order_relaxed))
			return false;
		sched_yield();
	}
	for (ep = *bucket_of(st.st_ino); ep && ep->standin.ino != st.st_ino;)
		ep = ep->next;
	lock_drop(&table.lock);
	return ep;
}

void ep_before_fork(void)
{
	lock_take(&table.lock);
	atomic_store_explicit(&forking, (uintptr_t)pthread_self(), memory_order_relaxed);
}

void ep_parent_forked(void)
{
	atomic_store_explicit(&forking, 0, memory_order_relaxed);
	lock_drop(&table.lock);
}

/*
 * The queue pairs are the parent's; its fds that watch ours would hide its end from the peers. What
 * our parent inherited itself is asked for where it was made, by the same socket as there.
 */
void ep_child_forked(int maker)
{
	for (int i = 0; i < BUCKETS; i++) {
		for (struct scif_ep *ep = table.bucket[i]; ep; ep = ep->next) {
			atomic_store_explicit(&ep->lock.word, 0, memory_order_relaxed);
			atomic_store_explicit(&ep->sending.word, 0, memory_order_relaxed);
			atomic_store_explicit(&ep->receiving.word, 0, memory_order_relaxed);
			if (!ep->inherited)
				ep->maker = maker;
			ep->state = EP_INHERITED;
			ep->inherited = true;
			ep->pollers = NULL;
			standin_close(&ep->standin);
			port_forked(ep->port);
		}
	}
	atomic_store_explicit(&table.lock.word, 0, memory_order_relaxed);
	atomic_store_explicit(&forking, 0, memory_order_relaxed);
}

/* ---- states ---- */

void ep_changed(struct scif_ep *ep)
{
	atomic_fetch_add_explicit(&ep->seq, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&ep->sleepers, memory_order_seq_cst))
		syscall(SYS_futex, &ep->seq, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
}

int ep_connected(const struct scif_ep *ep)
{
	if (ep->state == EP_CONNECTED)
		return 0;
	if (ep->state == EP_INHERITED)
		return -EOPNOTSUPP;
	return ep->state == EP_DISCONNECTED || ep->state == EP_CLOSED ? -ECONNRESET : -ENOTCONN;
}

bool ep_fd_closed(struct scif_ep *ep)
{
	return ep->state == EP_INHERITED || standin_closed(&ep->standin);
}
