// SPDX-License-Identifier: BSD-3-Clause
#include "scif/face/client.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "scif.h"
#include "scif/ep/check.h"
#include "scif/ep/node.h"
#include "scif/link/service.h"

enum { NODES = UINT8_MAX + 1, LIST = 1024, NAP_MS = 100 };

struct peer {
	struct scif_peer_dev dev;
	char name[16];
};

struct entry {
	struct entry *next;
	struct scif_client *client; /* NULL: gone, the entry goes when no loop is at it */
	uint64_t told[NODES];       /* as present; 0: not told */
};

/*
 * The lock is held while a callback runs, which may come back here: it is recursive, and loops
 * start from the lists as they are.
 */
static struct {
	pthread_mutex_t lock;
	unsigned depth; /* of callbacks, all of one thread */
	pthread_t caller;
	struct entry *list;
	uint64_t present[NODES]; /* since when, not 0; 0: it is not */
	struct peer *peers[NODES];
	bool watched; /* the thread runs */
} clients = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

/* The layout that <weft/scif_kernel.h> has, too. */
_Static_assert(sizeof(struct scif_peer_dev) == 24 && offsetof(struct scif_peer_dev, dnode) == 16,
	"a device and a number");
_Static_assert(sizeof(struct scif_client) == 40 && offsetof(struct scif_client, si) == 24,
	"a name, two functions and an interface");

/* ---- who is there ---- */

static void scan(void)
{
	uint16_t ids[LIST];
	int n = node_list(ids, LIST, NULL);

	if (n < 0)
		return;
	for (int i = 0; i < NODES; i++)
		clients.present[i] = 0;
	for (int i = 0; i < n; i++)
		if (ids[i] < NODES)
			clients.present[ids[i]] = node_since(ids[i]) + 1;
}

static struct peer *peer_of(uint8_t node)
{
	struct peer **p = &clients.peers[node];

	if (*p)
		return *p;
	*p = calloc(1, sizeof(**p));
	if (!*p)
		return NULL;
	snprintf((*p)->name, sizeof((*p)->name), "scif_peer%u", node);
	(*p)->dev.dev.init_name = (*p)->name;
	(*p)->dev.dnode = node;
	return *p;
}

/* ---- telling ---- */

static void call(void (*fn)(struct scif_peer_dev *spdev), struct peer *peer)
{
	clients.caller = pthread_self();
	clients.depth++;
	if (fn)
		fn(&peer->dev);
	clients.depth--;
}

static void tell_of(struct entry *e, int node, uint64_t since)
{
	struct peer *peer = peer_of(node);

	if (!peer)
		return; /* no memory; the next look tries again */
	e->told[node] = since;
	call(since ? e->client->probe : e->client->remove, peer);
}

/* Tells what it was not told yet: first who went, then who came. */
static void tell(struct entry *e)
{
	for (int i = 0; i < NODES; i++)
		if (e->client && e->told[i] && e->told[i] != clients.present[i])
			tell_of(e, i, 0);
	for (int i = 0; i < NODES; i++)
		if (e->client && !e->told[i] && clients.present[i])
			tell_of(e, i, clients.present[i]);
}

static bool anybody_knows(int node)
{
	for (struct entry *e = clients.list; e; e = e->next)
		if (e->told[node])
			return true;
	return false;
}

/* Frees what is gone; not from within a callback. */
static void reap(void)
{
	if (clients.depth)
		return;
	for (struct entry **at = &clients.list; *at;) {
		struct entry *e = *at;

		if (e->client) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
	}
	for (int i = 0; i < NODES; i++) {
		struct peer *peer = clients.peers[i];

		if (peer && !anybody_knows(i)) {
			clients.peers[i] = NULL;
			free(peer);
		}
	}
}

/* ---- the thread ---- */

static void *watch(void *arg)
{
	const struct timespec nap = {.tv_nsec = NAP_MS * (long)NSEC_PER_MSEC};

	(void)arg;
	for (;;) {
		nanosleep(&nap, NULL);
		pthread_mutex_lock(&clients.lock);
		if (!clients.list) {
			clients.watched = false;
			pthread_mutex_unlock(&clients.lock);
			return NULL;
		}
		scan();
		for (struct entry *e = clients.list; e; e = e->next)
			tell(e);
		reap();
		pthread_mutex_unlock(&clients.lock);
	}
}

static int start_watching(void)
{
	pthread_t thread;

	if (clients.watched)
		return 0;
	if (thread_start(&thread, "scif-clients", THREAD_CALLBACKS, watch, NULL))
		return -EAGAIN;
	pthread_detach(thread);
	clients.watched = true;
	return 0;
}

/* ---- the calls ---- */

static struct entry *find(const struct scif_client *client)
{
	struct entry *e;

	for (e = clients.list; e && e->client != client;)
		e = e->next;
	return e;
}

static int add(struct scif_client *client)
{
	struct entry *e, **end;
	int ret;

	if (find(client))
		return -EEXIST;
	ret = start_watching();
	if (ret)
		return ret;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->client = client;
	for (end = &clients.list; *end;)
		end = &(*end)->next;
	*end = e;
	client->si.name = client->name;
	scan();
	tell(e);
	return 0;
}

int client_add(struct scif_client *client)
{
	int ret = client ? node_check() : -EINVAL;

	if (!client)
		check_why("client is NULL");
	if (!ret)
		ret = service_start();
	if (!ret)
		ret = node_join();
	if (ret)
		return ret;
	pthread_mutex_lock(&clients.lock);
	ret = add(client);
	reap();
	pthread_mutex_unlock(&clients.lock);
	return ret;
}

void client_remove(struct scif_client *client)
{
	struct entry *e;

	pthread_mutex_lock(&clients.lock);
	e = client ? find(client) : NULL;
	for (int i = 0; e && i < NODES; i++)
		if (e->client && e->told[i])
			tell_of(e, i, 0);
	if (e)
		e->client = NULL;
	reap();
	pthread_mutex_unlock(&clients.lock);
}

void client_forked(void)
{
	const pthread_mutex_t fresh = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	bool inside = clients.depth && pthread_equal(clients.caller, pthread_self());
	struct entry *e = inside ? clients.list : NULL;

	clients.lock = fresh;
	clients.watched = false;
	if (!inside)
		clients.depth = 0;
	/* a callback that forked goes on with its loop; else another thread was at the list */
	clients.list = e;
	for (; e; e = e->next)
		e->client = NULL;
}
