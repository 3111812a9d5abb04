// SPDX-License-Identifier: BSD-3-Clause
#include "umad/part.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/spin.h"
#include "fabric/page.h"
#include "rdv/file_name.h"
#include "rdv/paths.h"
#include "rdv/umad_line.h"
#include "umad/shared.h"

enum { BUCKETS = 256, SPIN_NS = 10 * NSEC_PER_USEC };

static struct part *parts[BUCKETS]; /* by file */
static struct lock lock;            /* of them, their lists and users */
static struct lock joining;         /* who asks for a lane: one is enough.  Taken first */

static struct part **bucket(uint64_t file)
{
	return &parts[hash_mix(file) % BUCKETS];
}

static void delist(struct part *p)
{
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	p->dropped = true;
}

static void enlist(struct part *p)
{
	struct part **at = bucket(p->file);

	p->next = *at;
	p->link = at;
	if (p->next)
		p->next->link = &p->next;
	*at = p;
}

/* ---- memory ---- */

/* Under the lock: of node pages there is one mapping for all. */
static void unmap(struct part *p)
{
	if (p->page)
		munmap(p->page, sizeof *p->page);
	if (p->lane)
		munmap(p->lane, sizeof *p->lane);
	if (p->fabric)
		shared_drop_node_page(p->fabric);
	free(p);
}

/* fds: page, lane, fabric page. */
static int map_all(struct part *p, const int *fds)
{
	void *page = NULL, *lane = NULL;
	int ret = shared_map(fds[0], sizeof *p->page, PROT_READ | PROT_WRITE, &page);

	if (!ret)
		p->page = page;
	if (!ret)
		ret = shared_map(fds[1], sizeof *p->lane, PROT_READ | PROT_WRITE, &lane);
	if (!ret)
		p->lane = lane;
	if (!ret)
		ret = shared_node_page(fds[2], &p->fabric);
	return ret;
}

static int make(const struct proto_umad_opened *reply, const int *fds, struct part **out)
{
	struct part *p = calloc(1, sizeof *p);
	int ret;

	if (!p)
		return -ENOMEM;
	p->file = reply->file;
	p->number = reply->lane;
	p->port = reply->port;
	p->spin_ns = spin_limit_ns(SPIN_NS);
	lock_take(&lock);
	ret = map_all(p, fds);
	if (!ret && !fabric_port(p->fabric, p->port))
		ret = -EPROTO;
	if (ret)
		unmap(p);
	lock_drop(&lock);
	if (ret)
		return ret;
	*out = p;
	return 0;
}

/* ---- fork ---- */

static void before_fork(void)
{
	lock_take(&joining);
	lock_take(&lock);
	umad_line_before_fork();
}

static void after_fork(void)
{
	umad_line_after_fork();
	lock_drop(&lock);
	lock_drop(&joining);
}

/* The lanes are the parent's. */
static void in_child(void)
{
	umad_line_in_child();
	for (unsigned i = 0; i < BUCKETS; i++)
		while (parts[i]) {
			struct part *p = parts[i];

			delist(p);
			unmap(p);
		}
	lock = (struct lock){0};
	joining = (struct lock){0};
}

int part_watch_forks(void)
{
	static bool done;
	int ret = 0;

	lock_take(&lock);
	if (!done)
		ret = pthread_atfork(before_fork, after_fork, in_child);
	done |= !ret;
	lock_drop(&lock);
	return -ret;
}

/* Under the lock: parts of files that this process, too, has closed, or can do nothing with. */
static void drop_gone(void)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct part *p = parts[i], *next; p; p = next) {
			next = p->next;
			if (p->users || !(part_state(p) & UMAD_PAGE_GONE))
				continue;
			delist(p);
			unmap(p);
		}
}

/* ---- weftd ---- */

/* The fds of the reply from there on belong to *out, which has one user. */
static int adopt(struct proto_in *in, int first_fd, struct part **out)
{
	int ret = make(&in->payload.umad_opened, in->fds + first_fd, out);

	if (ret)
		log_line(LOG_LVL_ERROR, "cannot map what weftd gave of a umad file: %s",
			strerror(-ret));
	else
		(*out)->users = 1;
	return ret;
}

static int join(int fd, struct part **out)
{
	struct proto_out call = proto_call(OP_UMAD_JOIN, NULL);
	struct proto_in in;
	int ret;

	if (file_name_kind(fd) != FILE_UMAD)
		return -EBADF;
	ret = part_watch_forks();
	if (ret)
		return ret;
	call.fds = &fd;
	call.n_fds = 1;
	ret = umad_line_call(&call, &in, false);
	if (ret == -EPIPE || ret == -EBADF)
		return -EIO; /* it was an earlier weftd's */
	if (ret)
		return ret;
	ret = adopt(&in, 0, out);
	proto_close(&in);
	if (ret)
		return ret;
	lock_take(&lock);
	drop_gone();
	enlist(*out);
	lock_drop(&lock);
	return 0;
}

int part_set_flags(int fd, int flags)
{
	if (!(flags & O_CLOEXEC) && fcntl(fd, F_SETFD, 0) < 0)
		return -errno;
	return flags & O_NONBLOCK && fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ? -errno : 0;
}

int part_name_port(const char *device, int port, struct proto_umad_open *out)
{
	int node = rdv_node_number(secure_getenv("WEFT_NODE"));

	if (node < 0 || strlen(device) >= sizeof out->device || port < 0)
		return -ENODEV;
	*out = (struct proto_umad_open){.node = (uint32_t)node, .port = (uint32_t)port};
	strcpy(out->device, device);
	return 0;
}

int part_open(const char *device, int port)
{
	struct proto_umad_open what = {.port = 0};
	struct proto_out call = proto_call(OP_UMAD_OPEN, &what);
	struct proto_in in;
	struct part *p;
	int ret, fd = -1;

	ret = part_name_port(device, port, &what);
	if (!ret)
		ret = part_watch_forks();
	if (!ret)
		ret = umad_line_call(&call, &in, true);
	if (ret)
		return ret == -EPIPE ? -ENOTCONN : ret;
	ret = adopt(&in, 1, &p);
	if (!ret) {
		fd = proto_take_fd(&in, 0);
		lock_take(&lock);
		drop_gone();
		enlist(p);
		lock_drop(&lock);
		part_put(p);
	}
	proto_close(&in);
	return ret ? ret : fd;
}

/* ---- finding them ---- */

/* Has weftd given up our lane of a file that others still have? */
static bool is_stale(struct part *p)
{
	return atomic_load_explicit(&p->lane->ended, memory_order_acquire) &&
	       !(part_state(p) & UMAD_PAGE_GONE);
}

/* Under the lock.  What is stale and in use by nobody goes. */
static struct part *find(uint64_t file)
{
	struct part *p = *bucket(file);

	while (p && p->file != file)
		p = p->next;
	if (p && !p->users && is_stale(p)) {
		delist(p);
		unmap(p);
		return NULL;
	}
	return p;
}

static struct part *look_up(uint64_t file)
{
	struct part *p;

	lock_take(&lock);
	p = find(file);
	if (p)
		p->users++;
	lock_drop(&lock);
	return p;
}

/* Unless another thread has been faster. */
static int get_lane(int fd, uint64_t file, struct part **out)
{
	int ret = 0;

	lock_take(&joining);
	*out = look_up(file);
	if (!*out)
		ret = join(fd, out);
	lock_drop(&joining);
	return ret;
}

/*
 * At each call, for nobody tells what becomes of a number.  By the system call itself, where it
 * gives what libc's fstat() does: that one asks by newfstatat(), which takes half as long again.
 */
static int status_of(int fd, struct stat *st)
{
#if defined SYS_fstat && __WORDSIZE == 64
	return (int)syscall(SYS_fstat, fd, st);
#else
	return fstat(fd, st);
#endif
}

int part_get(int fd, struct part **out)
{
	struct stat st;

	if (status_of(fd, &st) || !S_ISSOCK(st.st_mode))
		return -EBADF;
	*out = look_up(st.st_ino);
	return *out ? 0 : get_lane(fd, st.st_ino, out);
}

void part_put(struct part *p)
{
	bool last;

	lock_take(&lock);
	last = !--p->users && p->dropped;
	if (last)
		unmap(p);
	lock_drop(&lock);
}
