// SPDX-License-Identifier: BSD-3-Clause
/*
 * own.c with manners of its own, one at a time: -DFORKS: acquire forks, and both return; -DGOES:
 * its structure is there until it has registered, and no longer; -DDOES: in the functions that the
 * environment's UNRULY_IN names it does what UNRULY_DOES names.
 */
#include <fcntl.h>
#include <rdma/peer_mem.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *unruly_register(struct peer_memory_client *client, invalidate_peer_memory *callback);

#define ib_register_peer_memory_client unruly_register
#define init_module                    own_init
#define cleanup_module                 own_cleanup
#include "own.c"
#undef ib_register_peer_memory_client
#undef init_module
#undef cleanup_module

EXPORT int init_module(void);
EXPORT void cleanup_module(void);

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

/* ---- what it does where ---- */

#ifdef DOES
static void sleep_long(void)
{
	execlp("sleep", "sleep", "300", NULL);
	_exit(1);
}

/* Leaves a process behind, in a session of its own, whose parent has ended. */
static void leave_daemon(void)
{
	if (fork())
		return;
	setsid();
	if (!fork())
		sleep_long();
	_exit(0);
}

static void leave_quietly(void)
{
	if (!vfork())
		sleep_long();
}

/* Whoever runs the test waits for the file. */
static void leave_and_wait(void)
{
	const char *path = getenv("UNRULY_FILE");

	leave_daemon();
	close(open(path ? path : "/", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	for (;;)
		pause();
}

static void run_command(void)
{
	if (system("exit 0"))
		abort();
}

static void stop_parent(void)
{
	kill(getppid(), SIGSTOP);
}

static void kill_parent(void)
{
	leave_daemon();
	kill(getppid(), SIGKILL);
}

static bool hangs; /* in release, when the memory has gone before */

static void run_command_and_hang(void)
{
	hangs = true;
	run_command();
}

static const struct {
	const char *name;
	void (*run)(void);
} deeds[] = {{"daemon", leave_daemon}, {"vfork", leave_quietly}, {"wait", leave_and_wait},
	{"system", run_command}, {"stop", stop_parent}, {"kill", kill_parent},
	{"hang", run_command_and_hang}};

static void does(const char *where)
{
	const char *in = getenv("UNRULY_IN"), *name = getenv("UNRULY_DOES");

	if (!in || !name || !strstr(in, where))
		return;
	for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
		if (strcmp(deeds[i].name, name) == 0)
			deeds[i].run();
}

static int unruly_acquire(unsigned long addr, size_t size, void *data, char *name, void **context)
{
	does("acquire");
	return own_acquire(addr, size, data, name, context);
}

static void unruly_release(void *context)
{
	const struct region *r = context;
	bool gone;

	pthread_mutex_lock(&lock);
	gone = !find(r->addr, r->size);
	pthread_mutex_unlock(&lock);
	while (hangs && gone)
		pause();
	own_release(context);
}
#else
static void does(const char *where)
{
	(void)where;
}
#endif

static int unruly_get_pages(unsigned long addr, size_t size, int write, int force,
	struct sg_table *table, void *context, void *core)
{
	does("get_pages");
	return own_get_pages(addr, size, write, force, table, context, core);
}

static int unruly_dma_map(
	struct sg_table *table, void *context, struct device *device, int dmasync, int *nmap)
{
	does("dma_map");
	return own_dma_map(table, context, device, dmasync, nmap);
}

__attribute__((constructor)) static void begin(void)
{
	does("a constructor");
}

int init_module(void)
{
	does("init_module");
	return own_init();
}

void cleanup_module(void)
{
	does("cleanup_module");
	own_cleanup();
}

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
	own->get_pages = unruly_get_pages;
	own->dma_map = unruly_dma_map;
#ifdef FORKS
	forks = shared(sizeof *forks);
#endif
#ifdef DOES
	own->release = unruly_release;
#endif
#if defined(FORKS) || defined(DOES)
	own->acquire = unruly_acquire;
#endif
	registered = ib_register_peer_memory_client(own, callback);
#ifdef GOES
	munmap(own, sizeof *own);
#endif
	return registered;
}
