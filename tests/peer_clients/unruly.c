// SPDX-License-Identifier: BSD-3-Clause
/*
 * own.c with manners of its own, one at a time: -DFORKS: acquire forks, and both return; -DGOES:
 * its structure is there until it has registered, and no longer.
 */
#include <rdma/peer_mem.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *unruly_register(struct peer_memory_client *client, invalidate_peer_memory *callback);

#define ib_register_peer_memory_client unruly_register
#include "own.c"
#undef ib_register_peer_memory_client

enum { FORKS_MAX = 200 };

static void *shared(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

#ifdef FORKS
static atomic_uint *forks; /* of all processes together, so that there is an end */

static int unruly_acquire(unsigned long addr, size_t size, void *data, char *name, void **context)
{
	if (forks && atomic_fetch_add(forks, 1) < FORKS_MAX)
		fork();
	return own_acquire(addr, size, data, name, context);
}
#endif

/* Without it kernels refuse a client. */
static unsigned long page_size(void *context)
{
	(void)context;
	return PAGE;
}

static void *unruly_register(struct peer_memory_client *client, invalidate_peer_memory *callback)
{
	struct peer_memory_client *own = shared(sizeof *own);
	void *registered;

	if (!own)
		return NULL;
	memcpy(own, client, sizeof *own);
	own->get_page_size = page_size;
#ifdef FORKS
	forks = shared(sizeof *forks);
	own->acquire = unruly_acquire;
#endif
	registered = ib_register_peer_memory_client(own, callback);
#ifdef GOES
	munmap(own, sizeof *own);
#endif
	return registered;
}
