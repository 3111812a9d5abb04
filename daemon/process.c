// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sparse.h"
#include "daemon/connections.h"
#include "daemon/peer_stats.h"
#include "daemon/session.h"
#include "daemon/tables/ended.h"
#include "daemon/wire.h"
#include "pages/arena.h"
#include "rdv/segment.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, EPOCH_SHIFT = 14 };

/* Reads a small file of /proc/PID; the text, cut off at a newline if line, in buf. */
static int read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0 ? 0 : -ENOENT;
}

/* Field 22 of /proc/PID/stat; the second, the name in parentheses, may hold anything. */
static uint64_t start_time(pid_t pid)
{
	char buf[1024], *p;

	if (pid <= 0 || read_proc(pid, "stat", buf, sizeof buf) || !(p = strrchr(buf, ')')))
		return 0;
	for (int field = 2; field < 22 && p; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

static void read_comm(struct process *p)
{
	char buf[32] = "?";

	if (p->pid > 0 && !read_proc(p->pid, "comm", buf, sizeof buf))
		buf[strcspn(buf, "\n")] = '\0';
	buf[sizeof p->comm - 1] = '\0';
	strcpy(p->comm, buf);
}

static int map_segment(int fd, struct seg **seg)
{
	void *p = mmap(NULL, SEG_SIZE, sparse_prot(), MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	madvise(p, SEG_SIZE, MADV_DONTDUMP);
	madvise(p, SEG_SIZE, MADV_DONTFORK);
	*seg = p;
	return 0;
}

int segment_create(uint32_t id, struct seg **seg, int *fd)
{
	int ret;

	*fd = memfd_create("weft-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, SEG_SIZE) < 0 || fcntl(*fd, F_ADD_SEALS, SEALS) < 0)
		ret = -errno;
	else
		ret = map_segment(*fd, seg);
	if (ret) {
		close(*fd);
		return ret;
	}
	(*seg)->hdr.magic = SEG_MAGIC;
	(*seg)->hdr.version = SEG_VERSION;
	(*seg)->hdr.attach = id;
	(*seg)->hdr.size = SEG_SIZE;
	return 0;
}

/* Without one the process's pages are not mapped by peers, that is all. */
static int create_arena(void)
{
	int fd = memfd_create("weft-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (ftruncate(fd, ARENA_SIZE) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	close(fd);
	return -1;
}

uint32_t process_new_id(struct server *s)
{
	for (int i = 1; i < ATTACH_NUMBERS; i++) {
		uint32_t id;

		if (++s->next_number >= ATTACH_NUMBERS)
			s->next_number = 1;
		id = (s->epoch & 0x3ff) << EPOCH_SHIFT | s->next_number;
		if (id != s->env.hub_id && !process_find(s, id))
			return id;
	}
	return 0;
}

static void on_death(struct server *s, struct watch *w, uint32_t events)
{
	(void)events;
	process_died(s, (struct process *)w);
}

/* Enters p, complete but for its death watch, into the tables; not if its death went unseen. */
static int enter(struct server *s, struct process *p, pid_t pid, int pidfd)
{
	int ret = 0;

	p->death = (struct watch){on_death, pidfd};
	if (pidfd >= 0)
		ret = server_watch(s, &p->death);
	if (ret) {
		p->death.fd = -1;
		return ret;
	}
	p->pid = pid;
	p->seg->hdr.pid = pid;
	p->seg->hdr.start_time = start_time(pid);
	read_comm(p);
	memcpy(p->seg->hdr.comm, p->comm, sizeof p->seg->hdr.comm);
	process_table_add(s, p);
	return 0;
}

/* ---- descriptors of a process ---- */

static uint32_t kept_index(const struct kept_fds *k, uint32_t id)
{
	uint32_t i = 0;

	while (i < k->n && k->at[i].id != id)
		i++;
	return i;
}

static int kept_find(const struct kept_fds *k, uint32_t id)
{
	uint32_t i = kept_index(k, id);

	return i < k->n ? k->at[i].fd : -1;
}

/* Adds it or replaces that of the same id. */
static int kept_add(struct kept_fds *k, uint32_t id, int fd)
{
	uint32_t i = kept_index(k, id);

	if (i < k->n) {
		close(k->at[i].fd);
		k->at[i].fd = fd;
		return 0;
	}
	if (k->n == k->room) {
		uint32_t room = k->room ? 2 * k->room : 4;
		struct kept_fd *at = realloc(k->at, room * sizeof *at);

		if (!at)
			return -ENOMEM;
		k->at = at;
		k->room = room;
	}
	k->at[k->n++] = (struct kept_fd){id, fd};
	return 0;
}

static int kept_del(struct kept_fds *k, uint32_t id)
{
	uint32_t i = kept_index(k, id);

	if (i == k->n)
		return -ENOENT;
	close(k->at[i].fd);
	k->at[i] = k->at[--k->n];
	return 0;
}

static void kept_free(struct kept_fds *k)
{
	for (uint32_t i = 0; i < k->n; i++)
		close(k->at[i].fd);
	free(k->at);
}

/* ---- its life ---- */

static void release(struct server *s, struct process *p)
{
	s->n_channels -= p->channels.n;
	kept_free(&p->channels);
	kept_free(&p->backings);
	close(p->async_fd);
	close(p->seg_fd);
	if (p->arena_fd >= 0)
		close(p->arena_fd);
	if (p->death.fd >= 0)
		server_unwatch(s, &p->death);
	munmap(p->seg, SEG_SIZE);
	free(p);
}

int process_create(struct server *s, pid_t pid, int pidfd, struct process **out)
{
	struct process *p = calloc(1, sizeof *p);
	int ret = -ENOMEM;

	if (!p)
		return ret;
	p->id = process_new_id(s);
	p->async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (p->async_fd < 0)
		ret = -errno;
	else if (!p->id)
		ret = -ENOSPC;
	else
		ret = segment_create(p->id, &p->seg, &p->seg_fd);
	if (ret) {
		if (p->async_fd >= 0)
			close(p->async_fd);
		free(p);
		return ret;
	}
	p->arena_fd = create_arena();
	ret = enter(s, p, pid, pidfd);
	if (ret)
		release(s, p);
	else
		*out = p;
	return ret;
}

static bool is_segment_of(const struct seg *seg, uint32_t id)
{
	return seg->hdr.magic == SEG_MAGIC && seg->hdr.version == SEG_VERSION &&
	       seg->hdr.attach == id && seg->hdr.size == SEG_SIZE && !atomic_load(&seg->hdr.dead);
}

int process_adopt(struct server *s, uint32_t id, pid_t pid, int pidfd, int seg_fd, int async_fd,
	int arena_fd, struct process **out)
{
	struct process *p;
	int ret = segment_check(seg_fd, SEG_SIZE);

	if (!ret && arena_fd >= 0)
		ret = arena_check(arena_fd);
	if (ret)
		return ret;
	p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	ret = map_segment(seg_fd, &p->seg);
	if (!ret && !is_segment_of(p->seg, id)) {
		munmap(p->seg, SEG_SIZE);
		ret = -EPROTO;
	}
	if (ret) {
		free(p);
		return ret;
	}
	p->id = id;
	p->seg_fd = seg_fd;
	p->async_fd = async_fd;
	p->arena_fd = arena_fd;
	ret = enter(s, p, pid, pidfd);
	if (ret) {
		munmap(p->seg, SEG_SIZE);
		free(p);
	} else {
		*out = p;
	}
	return ret;
}

/*
 * A process that called execve() keeps its pid, but the program that was attached is gone: its
 * memory no longer has the segment mapped.  If that cannot be seen, it counts as alive.
 */
static bool maps_segment(const struct process *p)
{
	char path[64], inode[32];
	char *line = NULL;
	size_t room = 0;
	bool found = false;
	struct stat st;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/maps", (int)p->pid);
	f = fopen(path, "re");
	if (!f || fstat(p->seg_fd, &st) < 0) {
		if (f)
			fclose(f);
		return true;
	}
	snprintf(inode, sizeof inode, " %llu ", (unsigned long long)st.st_ino);
	while (!found && getline(&line, &room, f) > 0)
		found = strstr(line, inode) && strstr(line, "weft-segment");
	free(line);
	fclose(f);
	return found;
}

bool process_lives(const struct process *p)
{
	struct pollfd pfd = {.fd = p->death.fd, .events = POLLIN};

	if (p->death.fd < 0 || poll(&pfd, 1, 0) != 0)
		return false;
	return p->pid <= 0 || maps_segment(p);
}

void processes_list_members(struct server *s)
{
	if (!members_ask_missing(&s->members))
		return;
	for (struct process *p = s->processes; p; p = p->next)
		members_update(&s->members, s->env.hub, p->seg, p->id);
}

static void keep_counts(struct server *s, const struct process *p)
{
	struct ended_process *row = ended_add(&s->ended, p->seg);

	row->attach_id = p->id;
	row->pid = p->pid;
	memcpy(row->comm, p->comm, sizeof row->comm);
	row->when = clock_ns();
	wire_counters_keep(s, row->count);
}

void process_died(struct server *s, struct process *p)
{
	log_line(LOG_LVL_INFO, "process %d (%s), attach id %#x, is gone", (int)p->pid, p->comm,
		p->id);
	atomic_store(&p->seg->hdr.dead, 1);
	peer_stats_keep(s, p);
	keep_counts(s, p);
	if (p->session)
		session_close(s, p->session);
	process_table_del(s, p);
	if (!s->n_processes)
		s->idle_since = clock_ns();
	timers_drop(&s->timers, p->id);
	lease_drop(&s->leases, p->id);
	wire_process_gone(s, p);
	members_drop(&s->members, s->env.hub, p->id);
	processes_list_members(s);
	connections_process_gone(s, p->id);
	for (struct process *q = s->processes; q; q = q->next)
		recover_death(&s->env, q->seg, q->id, p->id);
	release(s, p);
	server_arm(s);
}

int process_add_channel(struct server *s, struct process *p, uint32_t id, int fd)
{
	uint32_t before = p->channels.n;
	int ret = kept_add(&p->channels, id, fd);

	s->n_channels += p->channels.n - before;
	return ret;
}

int process_del_channel(struct server *s, struct process *p, uint32_t id)
{
	int ret = kept_del(&p->channels, id);

	s->n_channels -= !ret;
	return ret;
}

int process_channel(const struct process *p, uint32_t id)
{
	return id == 0 ? p->async_fd : kept_find(&p->channels, id);
}

int process_add_backing(struct process *p, uint32_t id, int fd)
{
	return kept_add(&p->backings, id, fd);
}

int process_del_backing(struct process *p, uint32_t id)
{
	return kept_del(&p->backings, id);
}

int process_backing(const struct process *p, uint32_t id)
{
	return kept_find(&p->backings, id);
}

bool process_unread(struct process *p, uint32_t id)
{
	struct pollfd pfd = {.fd = process_channel(p, id), .events = POLLIN};

	return pfd.fd >= 0 && poll(&pfd, 1, 0) == 1;
}

void process_fire(struct server *s, struct process *p, uint32_t id)
{
	int fd = process_channel(p, id);
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	uint64_t one = 1;

	if (fd < 0)
		return; /* destroyed since */
	/* The owner may have made it blocking; we may not wait for him to read. */
	if (poll(&pfd, 1, 0) != 1 || write(fd, &one, sizeof one) != sizeof one)
		server_refuse(s, REF_CHANNEL_FULL);
}
