// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/umad_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/spin.h"
#include "daemon/umad_lane.h"
#include "daemon/umad_recv.h"
#include "daemon/umad_send.h"
#include "mad/agents.h"
#include "rdv/file_name.h"

enum {
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	MANY = 8, /* MADs in one turn */
	SPIN_NS = 10 * NSEC_PER_USEC,
};

int ufile_memory(const char *name, size_t size, int *fd, void **base)
{
	int ret;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	*base = MAP_FAILED;
	if (!ftruncate(*fd, (off_t)size) && !fcntl(*fd, F_ADD_SEALS, SEALS))
		*base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (*base != MAP_FAILED)
		return 0;
	ret = -errno;
	close(*fd);
	return ret;
}

/* ---- its beginning and end ---- */

static void send_byte(void *arg, uint8_t number)
{
	const struct ufile *f = arg;

	(void)!send(f->sock.fd, &number, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Without a name programs do not know the file unless they opened it. */
static void name_socket(const struct ufile *f, int end)
{
	unsigned number = f->port_number - fabric_first_port(f->node->page);
	int ret = file_name_set(end, FILE_UMAD, number);

	if (ret)
		log_line(LOG_LVL_WARN, "cannot name a umad file: %s; only who opened it uses it",
			strerror(-ret));
}

/*
 * More is likely to come at once: somebody waits for the answers and does nothing else, or has sent
 * many.  Others, such as a subnet manager of several threads, need the CPU more than we do.
 */
static bool is_brisk(const struct ufile *f, uint32_t sent)
{
	if (sent >= MANY)
		return true;
	for (const struct ulane *l = f->lanes; l; l = l->next)
		if (atomic_load_explicit(&l->mem->prompt, memory_order_relaxed))
			return true;
	return false;
}

/*
 * Sends what programs write and answers it at once, until nothing comes for a moment, or others
 * have to have their turn.  The byte stays in the socket and the bells stay rung: who writes or
 * waits meanwhile needs no system call.  How many it sent.
 */
static uint32_t linger(struct ufile *f)
{
	struct umads *all = f->all;
	uint32_t sent = 0, n;
	uint64_t until = 0;

	do {
		n = usend_some(f, UMAD_TURN - sent);
		sent += n;
		if (n) {
			all->server->deliver(all->server);
			until = 0;
			continue;
		}
		urecv_ring_idle(all);
		if (!until && is_brisk(f, sent))
			until = clock_ns() + spin_limit_ns(SPIN_NS);
		else if (until)
			sched_yield(); /* who is to send may need this very CPU */
	} while (all->served == f && sent < UMAD_TURN && (n || (until && clock_ns() < until)));
	return sent;
}

static void on_socket(struct server *s, struct watch *w, uint32_t events)
{
	struct ufile *f = (struct ufile *)w;
	struct umads *all = f->all;
	uint32_t sent;

	(void)events;
	all->served = f;
	all->in_turn = true;
	sent = linger(f);
	if (all->served == f) {
		all->served = NULL;
		if (!usend_turn(f, UMAD_TURN - sent))
			ufile_end(f);
		s->deliver(s);
	}
	all->in_turn = false;
	urecv_ring_all(all);
}

static int make_socket(struct ufile *f, int *end)
{
	struct stat st;
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	f->sock = (struct watch){on_socket, pair[0]};
	*end = pair[1];
	ret = fstat(pair[1], &st) < 0 ? -errno : server_watch(f->all->server, &f->sock);
	if (ret) {
		close(pair[0]);
		close(pair[1]);
		return ret;
	}
	f->ino = st.st_ino;
	name_socket(f, pair[1]);
	return 0;
}

static void enlist(struct ufile *f)
{
	f->next = f->all->files;
	f->link = &f->all->files;
	if (f->next)
		f->next->link = &f->next;
	f->all->files = f;
	f->all->n_files++;
	f->all->server->n_files++;
}

static void show_state(struct ufile *f)
{
	uint32_t state =
		(f->rules.pkey ? UMAD_PAGE_PKEY : 0) | (f->rules.used ? UMAD_PAGE_USED : 0) |
		(f->facts.gone ? UMAD_PAGE_GONE : 0) | (f->facts.has_smi ? 0 : UMAD_PAGE_GRH);

	atomic_store_explicit(&f->page->state, state, memory_order_release);
}

int ufile_make(struct umads *all, const struct node *node, uint32_t port_number,
	struct mad_port *port, struct ufile **out, int *end)
{
	struct ufile *f = calloc(1, sizeof *f);
	void *page;
	int ret;

	if (!f)
		return -ENOMEM;
	*f = (struct ufile){.all = all, .node = node, .port_number = port_number, .port = port};
	f->facts.has_smi = port->has_qp0;
	f->held.last = &f->held.first;
	f->longs.last = &f->longs.first;
	ret = ufile_memory("weft-umad", sizeof *f->page, &f->page_fd, &page);
	if (ret) {
		free(f);
		return ret;
	}
	f->page = page;
	f->bell = (struct bell_producer){
		.ring = {&f->page->recv, f->page->recv_slot, UMAD_RECV_LOG_SIZE},
		.send = send_byte,
		.arg = f};
	ret = make_socket(f, end);
	if (ret) {
		munmap(f->page, sizeof *f->page);
		close(f->page_fd);
		free(f);
		return ret;
	}
	show_state(f);
	enlist(f);
	*out = f;
	return 0;
}

void ufile_end(struct ufile *f)
{
	f->facts.gone = true;
	show_state(f);
	if (f->all->served == f)
		f->all->served = NULL;
	for (uint32_t id = 0; id < UMAD_AGENTS; id++)
		(void)ufile_unregister(f, id);
	while (f->lanes)
		ulane_end(f->lanes);
	urecv_end(f);
	*f->link = f->next;
	if (f->next)
		f->next->link = f->link;
	f->all->n_files--;
	f->all->server->n_files--;
	f->all->server->idle_since = clock_ns();
	server_unwatch(f->all->server, &f->sock);
	munmap(f->page, sizeof *f->page);
	close(f->page_fd);
	free(f);
}

struct ufile *ufile_find(const struct umads *all, uint64_t ino)
{
	struct ufile *f = all->files;

	while (f && f->ino != ino)
		f = f->next;
	return f;
}

/* ---- its agents ---- */

static void show_agent(struct ufile *f, uint32_t id, uint64_t word)
{
	atomic_store_explicit(&f->word[id], word, memory_order_relaxed);
	atomic_store_explicit(&f->page->agent[id], word, memory_order_release);
}

static int refused(const char *why, int error)
{
	log_line(LOG_LVL_INFO, "umad agent refused: %s", why);
	return error;
}

/*
 * Ends the files whose last fd is closed, which the loop is about to hear: whoever closed one has
 * its methods free at once.  False: there are none.
 */
static bool end_closed(const struct ufile *asking)
{
	struct umads *all = asking->all;
	struct ufile *f, *next;
	bool any = false;

	for (f = all->files; f; f = next) {
		next = f->next;
		if (f == asking || !server_hung_up(&f->sock) || usend_turn(f, UMAD_TURN))
			continue;
		ufile_end(f);
		any = true;
	}
	return any;
}

static int take_slot(struct ufile *f, const struct mad_registration *reg, uint32_t id, bool by_req2)
{
	struct uslot *slot = calloc(1, sizeof *slot);
	int ret;

	if (!slot)
		return -ENOMEM;
	*slot = (struct uslot){.file = f, .id = id};
	slot->agent = (struct mad_agent){.reg = *reg,
		.receive = urecv_one,
		.receive_long = urecv_long,
		.done = usend_done,
		.file = f,
		.arg = slot};
	ret = mad_register(f->port, &slot->agent);
	if (ret == -EINVAL && end_closed(f))
		ret = mad_register(f->port, &slot->agent);
	if (ret) {
		free(slot);
		return refused("another agent of the port has such a method", ret);
	}
	f->slot[id] = slot;
	umad_registered(&f->rules, id, by_req2);
	show_state(f);
	show_agent(f, id, umad_agent_word(slot->agent.hi_tid, reg));
	return 0;
}

int ufile_register(struct ufile *f, const struct umad_reg_req *req, uint32_t *id)
{
	struct mad_registration reg;
	const char *why;
	int ret = umad_check_req(&f->rules, &f->facts, req, &reg, id, &why);

	return ret ? refused(why, ret) : take_slot(f, &reg, *id, false);
}

int ufile_register2(struct ufile *f, struct umad_reg_req2 *req, uint32_t *id)
{
	struct mad_registration reg;
	const char *why;
	int ret = umad_check_req2(&f->rules, &f->facts, req, &reg, id, &why);

	return ret ? refused(why, ret) : take_slot(f, &reg, *id, true);
}

int ufile_unregister(struct ufile *f, uint32_t id)
{
	int ret = umad_unregistered(&f->rules, id);

	if (ret)
		return ret;
	show_agent(f, id, 0);
	usend_cancel_all(f->slot[id]);
	mad_unregister(&f->slot[id]->agent);
	free(f->slot[id]);
	f->slot[id] = NULL;
	return 0;
}

int ufile_enable_pkey(struct ufile *f)
{
	int ret = umad_enable_pkey(&f->rules);

	if (!ret)
		show_state(f);
	return ret;
}
