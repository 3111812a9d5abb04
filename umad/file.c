// SPDX-License-Identifier: BSD-3-Clause
#include "umad/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/page.h"
#include "mad/packet.h"
#include "rdv/umad_line.h"
#include "umad/part.h"

enum {
	ROOM_MS = 5000,   /* a write waits so long for room */
	YIELDS = 10,      /* then a reader naps */
	STILL_MS = 100,   /* a reader that does not read for so long is not waited for */
	PROBE_EVERY = 64, /* MADs: then a writer asks whether weftd lives */
	BYTES = 64,       /* in a socket: one, and one of each reader that was stopped */
};

/* From enter() to leave() no thread is cancelled. */
static int enter(int fd, int *cancel, struct part **p)
{
	int ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
	ret = part_get(fd, p);
	if (ret)
		pthread_setcancelstate(*cancel, NULL);
	return ret;
}

static void leave(int cancel, struct part *p)
{
	part_put(p);
	pthread_setcancelstate(cancel, NULL);
}

/* ---- the socket ---- */

/* The fd by which a call came, for functions that bells call. */
struct way {
	struct part *p;
	int fd;
};

/* Without memory for the byte it is tried again: weftd, alive, would not look for what was sent. */
static void send_byte(const struct way *w)
{
	const struct timespec nap = {.tv_nsec = NSEC_PER_MSEC};

	for (unsigned ms = 0; ms < ROOM_MS; ms++) {
		if (send(w->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno == EAGAIN)
			return;
		if (errno != ENOBUFS && errno != ENOMEM)
			break;
		nanosleep(&nap, NULL);
	}
	atomic_store_explicit(&w->p->dead, true, memory_order_relaxed);
}

static bool take_byte(void *arg)
{
	const struct way *w = arg;
	char byte;

	return recv(w->fd, &byte, 1, MSG_DONTWAIT) == 1;
}

/* Without weftd none is on its way any more. */
static bool byte_lies(void *arg, uint8_t number)
{
	const struct way *w = arg;
	uint8_t bytes[BYTES];
	ssize_t n = recv(w->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);

	return !n || (n > 0 && memchr(bytes, number, (size_t)n));
}

/* Looks whether weftd is still there. */
static void probe(const struct way *w)
{
	char byte;

	if (!recv(w->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT))
		atomic_store_explicit(&w->p->dead, true, memory_order_relaxed);
}

/* ---- calls to weftd ---- */

static int call_weftd(struct proto_out *out, struct proto_in *in)
{
	int ret = umad_line_call(out, in, false);

	return ret == -EPIPE || ret == -EBADF ? -EIO : ret;
}

static int call_plain(uint32_t op, const void *payload)
{
	struct proto_out out = proto_call(op, payload);
	struct proto_in in;
	int ret = call_weftd(&out, &in);

	if (!ret)
		proto_close(&in);
	return ret;
}

int umad_file_open(const char *device, int port, int flags)
{
	int cancel, fd, ret = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd = part_open(device, port);
	if (fd >= 0)
		ret = part_set_flags(fd, flags);
	if (ret)
		close(fd);
	pthread_setcancelstate(cancel, NULL);
	return ret ? ret : fd;
}

int umad_file_enable_pkey(int fd)
{
	struct proto_umad_file what;
	struct part *p;
	uint32_t state;
	int cancel, ret = enter(fd, &cancel, &p);

	if (ret)
		return ret;
	what.file = p->file;
	state = part_state(p);
	if (state & UMAD_PAGE_GONE)
		ret = state & UMAD_PAGE_USED ? -EINVAL : 0;
	else
		ret = call_plain(OP_UMAD_PKEY, &what);
	leave(cancel, p);
	return ret;
}

/* What is gone is -EPIPE to who registers. */
static int call_register(struct proto_umad_register *what, int fd, struct umad_agent *agent)
{
	struct proto_out out = proto_call(OP_UMAD_REGISTER, what);
	struct proto_umad_registered *reply;
	struct proto_in in;
	struct part *p;
	int cancel, ret = enter(fd, &cancel, &p);

	if (ret)
		return ret == -EIO ? -EPIPE : ret;
	what->file = p->file;
	ret = umad_line_call(&out, &in, false);
	if (!ret) {
		reply = &in.payload.umad_registered;
		ret = reply->result;
		if (!ret)
			agent->id = reply->id;
		if (what->flags & PROTO_REQ2)
			agent->flags = reply->flags;
		proto_close(&in);
	}
	leave(cancel, p);
	return ret == -EIO || ret == -EBADF ? -EPIPE : ret;
}

int umad_file_register(int fd, struct umad_agent *agent)
{
	struct umad_reg_req req = {
		.mgmt_class = agent->mgmt_class,
		.class_version = agent->class_version,
		.oui = {(uint8_t)(agent->oui >> 16), (uint8_t)(agent->oui >> 8),
			(uint8_t)agent->oui},
		.rmpp_version = agent->rmpp_version,
	};
	struct proto_umad_register what = {0};

	if (agent->qpn > UINT8_MAX)
		return -EINVAL;
	req.qpn = (uint8_t)agent->qpn;
	memcpy(req.method_mask, agent->method_mask, sizeof req.method_mask);
	memcpy(what.req, &req, sizeof req);
	return call_register(&what, fd, agent);
}

int umad_file_register2(int fd, struct umad_agent *agent)
{
	const struct umad_reg_req2 req = {
		.qpn = agent->qpn,
		.mgmt_class = agent->mgmt_class,
		.class_version = agent->class_version,
		.flags = agent->flags,
		.method_mask = {agent->method_mask[0], agent->method_mask[1]},
		.oui = agent->oui,
		.rmpp_version = agent->rmpp_version,
	};
	struct proto_umad_register what = {.flags = PROTO_REQ2};

	memcpy(what.req, &req, sizeof req);
	return call_register(&what, fd, agent);
}

int umad_file_unregister(int fd, uint32_t id)
{
	struct proto_umad_agent what = {.id = id};
	struct part *p;
	int cancel, ret = enter(fd, &cancel, &p);

	/* Of what is gone nothing is registered. */
	if (ret)
		return ret == -EIO ? -EINVAL : ret;
	what.file = p->file;
	ret = call_plain(OP_UMAD_UNREGISTER, &what);
	leave(cancel, p);
	return ret == -EIO ? -EINVAL : ret;
}

/* ---- write ---- */

static struct umad_sender sender_of(struct part *p)
{
	uint32_t state = part_state(p);

	return (struct umad_sender){
		.agents = p->page->agent,
		.pkey = state & UMAD_PAGE_PKEY,
		.gone = state & UMAD_PAGE_GONE,
		.needs_grh = state & UMAD_PAGE_GRH,
		.n_gids = fabric_port(p->fabric, p->port)->n_gids,
	};
}

/* The program's message: what it passed, and the first bytes of it as they were checked. */
struct message {
	const void *msg;
	size_t len;
	size_t hdr_size;
	uint8_t head[UMAD_HDR_SIZE + MAD_SIZE];
};

static int memory_of(const struct message *m, size_t length)
{
	enum { ALL_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL };
	const char *mad = (const char *)m->msg + m->hdr_size;
	int fd = memfd_create("weft-mad", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pwrite(fd, mad, length, 0);
	if (n == (ssize_t)length && !fcntl(fd, F_ADD_SEALS, ALL_SEALS))
		return fd;
	ret = n < 0 || n == (ssize_t)length ? -errno : -EIO;
	close(fd);
	return ret;
}

static int send_long(const struct part *p, const struct message *m, const struct umad_record *rec)
{
	struct proto_umad_send what = {.file = p->file, .lane = p->number};
	struct proto_out out = proto_call(OP_UMAD_SEND, &what);
	int fd = memory_of(m, rec->length), ret;
	struct proto_in in;

	if (fd < 0)
		return fd;
	memcpy(what.record, rec, sizeof *rec);
	out.fds = &fd;
	out.n_fds = 1;
	ret = call_weftd(&out, &in);
	if (!ret)
		proto_close(&in);
	close(fd);
	return ret;
}

/* There is room, and nobody else of this process writes. */
static int push(const struct way *w, const struct umad_record *rec)
{
	const struct ring_ref ring = part_send_ring(w->p);

	if (ring_push(&ring, &w->p->tail, rec) != RING_OK)
		return -EIO;
	if (ring_knock(&w->p->lane->knocked))
		send_byte(w);
	if (w->p->tail % PROBE_EVERY == 0)
		probe(w);
	return part_state(w->p) & UMAD_PAGE_GONE ? -EIO : 0;
}

static bool has_room(const struct part *p)
{
	const struct ring_ref ring = part_send_ring(p);

	return p->tail - atomic_load_explicit(&ring.ends->head, memory_order_acquire) <
	       ring_size(&ring);
}

/* Under the lock of writers: the transaction first, so that nothing is sent twice. */
static int enter_and_send(
	const struct way *w, const struct message *m, const struct umad_send *send)
{
	struct tids *tids = &w->p->page->tids;
	uint16_t lane = (uint16_t)w->p->number;
	struct umad_record rec;
	int ret;

	if (!has_room(w->p))
		return -EAGAIN;
	if (send->listed && tids_enter(tids, send->hash, lane) == TIDS_DUPLICATE)
		return -EINVAL;
	umad_make_record(send, m->head + m->hdr_size, 0, &rec);
	ret = send->length > MAD_SIZE ? send_long(w->p, m, &rec) : push(w, &rec);
	if (ret && send->listed)
		tids_strike(tids, send->hash, lane);
	return ret;
}

static void tell(const char *what, const char *why)
{
	log_line(LOG_LVL_DEBUG, "umad %s: %s", what, why);
}

static int write_once(const struct way *w, struct message *m)
{
	const struct umad_sender sender = sender_of(w->p);
	struct umad_send send;
	const char *why;
	int ret;

	m->hdr_size = umad_hdr_size(sender.pkey);
	if (!m->msg)
		return m->len < m->hdr_size + UMAD_WRITE_MIN ? -EINVAL : -EFAULT;
	ret = umad_check_write(&sender, m->head, m->len, &send, &why);
	if (ret) {
		tell("write", why);
		return ret;
	}
	lock_take(&w->p->writing);
	ret = enter_and_send(w, m, &send);
	lock_drop(&w->p->writing);
	return ret;
}

/*
 * Waits a moment for room in the ring.  *until: 0 at first, then when it is too long.  -EIO: it is,
 * or weftd has died.
 */
static int wait_room(int fd, uint64_t *until)
{
	struct pollfd pfd = {.fd = fd};
	uint64_t now = clock_ns();

	if (!*until)
		*until = now + (uint64_t)ROOM_MS * NSEC_PER_MSEC;
	if (now > *until)
		return -EIO;
	return poll(&pfd, 1, 1) > 0 ? -EIO : 0;
}

static uint64_t head_of(const struct part *p)
{
	const struct ring_ref ring = part_recv_ring(p);

	return ring_head(&ring);
}

/* Another thread of this process reads, and is so far behind that weftd keeps MADs back. */
static bool is_ahead(const struct part *p)
{
	uint64_t reader = atomic_load_explicit(&p->reader, memory_order_relaxed);

	return reader && reader != (uint64_t)pthread_self() &&
	       atomic_load_explicit(&p->page->held, memory_order_relaxed);
}

/*
 * Gives such a reader time.  What a program has sent and not read it keeps in tables of its own:
 * opensm 1,000, and what comes then it takes for lost.  A reader that stands still is waited for
 * once.
 */
static void let_read(struct part *p)
{
	uint64_t head = head_of(p), now;
	unsigned still = 0;

	while (still < STILL_MS && is_ahead(p) &&
		atomic_load_explicit(&p->tired, memory_order_relaxed) != head + 1) {
		(void)poll(NULL, 0, 1);
		now = head_of(p);
		still = now == head ? still + 1 : 0;
		head = now;
	}
	if (still == STILL_MS)
		atomic_store_explicit(&p->tired, head + 1, memory_order_relaxed);
}

/* Tells weftd whether this thread has nothing to do but to wait for its answer. */
static void say_prompt(const struct part *p)
{
	uint32_t prompt =
		atomic_load_explicit(&p->reader, memory_order_relaxed) == (uint64_t)pthread_self();

	if (atomic_load_explicit(&p->lane->prompt, memory_order_relaxed) != prompt)
		atomic_store_explicit(&p->lane->prompt, prompt, memory_order_relaxed);
}

ssize_t umad_file_write(int fd, const void *msg, size_t len)
{
	uint64_t until = 0;
	struct message m = {.msg = msg, .len = len};
	struct way w = {.fd = fd};
	int cancel, ret;

	pthread_testcancel();
	if (msg)
		memcpy(m.head, msg, len < sizeof m.head ? len : sizeof m.head);
	do {
		ret = enter(fd, &cancel, &w.p);
		if (ret)
			return ret;
		let_read(w.p);
		say_prompt(w.p);
		ret = write_once(&w, &m);
		leave(cancel, w.p);
	} while (ret == -EAGAIN && !(ret = wait_room(fd, &until)));
	return ret ? ret : (ssize_t)len;
}

/* ---- read ---- */

/* A read that looks for its record. */
struct want {
	const struct way *w;
	char *buf; /* or NULL */
	size_t len, copy;
	bool pkey;
	ssize_t result;
	int memory;       /* of a long message, or -1 */
	uint64_t message; /* whose that is */
};

static int fetch(struct want *want, uint64_t message)
{
	const struct proto_umad_fetch what = {.file = want->w->p->file, .message = message};
	struct proto_out out = proto_call(OP_UMAD_FETCH, &what);
	struct proto_in in;
	int ret;

	if (want->memory >= 0 && want->message == message)
		return 0;
	ret = call_weftd(&out, &in);
	if (want->memory >= 0)
		close(want->memory);
	want->memory = -1;
	if (ret)
		return ret == -ENOENT ? -EIO : ret;
	want->memory = proto_take_fd(&in, 0);
	want->message = message;
	return 0;
}

/* The bytes of a long message behind the header.  They are there: weftd sealed them. */
static int copy_long(struct want *want, const struct umad_record *rec)
{
	size_t hdr_size = umad_hdr_size(want->pkey);
	int ret = fetch(want, rec->message);

	if (!ret &&
		pread(want->memory, want->buf + hdr_size, rec->length, 0) != (ssize_t)rec->length)
		ret = -EFAULT;
	return ret;
}

/* Before it is taken: who dies meanwhile, or cannot have it, takes nothing away. */
static bool fits(void *arg, const struct umad_record *rec)
{
	struct want *want = arg;
	int ret = 0;

	want->result = umad_read_result(rec, want->pkey, want->len, &want->copy);
	if (!want->buf && (want->result >= 0 || want->result == -ENOSPC))
		ret = -EFAULT;
	else if (want->result >= 0 && rec->flags & UMAD_RECORD_LONG)
		ret = copy_long(want, rec);
	if (ret) {
		want->result = ret;
		want->copy = 0;
	}
	return want->result >= 0;
}

static struct bell_consumer consumer_of(const struct way *w)
{
	return (struct bell_consumer){
		.ring = part_recv_ring(w->p),
		.who = w->p->number,
		.settled = &w->p->lane->settled,
		.lies = byte_lies,
		.take = take_byte,
		.arg = (void *)w,
	};
}

/* After something was taken, or nothing was there; claim: mad/bell.h. */
static void see_to_socket(const struct way *w, const struct bell_consumer *me, uint64_t claim)
{
	if (ring_tells(&me->ring, &w->p->page->held))
		send_byte(w);
	if (claim)
		bell_end(me, claim);
}

/* Nothing is to be read: -EAGAIN, or the device is gone.  doubt: poll(2) says so, or that. */
static int look_empty(const struct way *w, const struct bell_consumer *me, bool doubt)
{
	see_to_socket(w, me, bell_claim(me));
	if (doubt)
		probe(w);
	return part_state(w->p) & UMAD_PAGE_GONE ? -EIO : -EAGAIN;
}

static ssize_t take(struct want *want)
{
	const struct bell_consumer me = consumer_of(want->w);
	struct umad_record rec;
	uint64_t claim;

	switch (bell_take(&me, fits, want, &rec, &claim)) {
	case RING_OK:
		atomic_store_explicit(
			&want->w->p->reader, (uint64_t)pthread_self(), memory_order_relaxed);
		umad_copy_out(&rec, want->pkey, want->buf, want->copy);
		if (rec.flags & UMAD_RECORD_LONG)
			send_byte(want->w); /* weftd need not keep it */
		see_to_socket(want->w, &me, claim);
		return want->result;
	case RING_UNFIT:
		if (want->copy)
			umad_copy_out(&rec, want->pkey, want->buf, want->copy);
		return want->result;
	case RING_EMPTY:
		return look_empty(want->w, &me, true);
	case RING_COMING:
	case RING_LOST:
		return -EAGAIN;
	default:
		return -EIO;
	}
}

static ssize_t read_once(const struct way *w, void *buf, size_t len)
{
	uint32_t state = part_state(w->p);
	struct want want = {
		.w = w, .buf = buf, .len = len, .pkey = state & UMAD_PAGE_PKEY, .memory = -1};
	ssize_t n;

	if (!umad_may_read(want.pkey, len))
		return -EINVAL;
	if (state & UMAD_PAGE_GONE)
		return -EIO;
	n = take(&want);
	if (want.memory >= 0)
		close(want.memory);
	return n;
}

/*
 * A byte was there so often although nothing was to be read: another reader was faster, and takes
 * the byte away in a moment, or was stopped before it could.
 */
static void settle(unsigned in_vain)
{
	if (in_vain > YIELDS)
		(void)poll(NULL, 0, 1);
	else if (in_vain > 1)
		sched_yield();
}

/* By recv(2), which goes on after a signal where read(2) would. */
static int wait_byte(int fd)
{
	char byte;

	if (recv(fd, &byte, 1, MSG_PEEK) >= 0 || errno == EAGAIN)
		return 0;
	return errno == EINTR ? -EINTR : -EIO;
}

ssize_t umad_file_read(int fd, void *buf, size_t len)
{
	struct way w = {.fd = fd};
	unsigned waits = 0;
	int cancel, ret;
	ssize_t n;

	pthread_testcancel();
	for (;;) {
		ret = enter(fd, &cancel, &w.p);
		if (ret)
			return ret;
		n = read_once(&w, buf, len);
		leave(cancel, w.p);
		if (n != -EAGAIN || fcntl(fd, F_GETFL) & O_NONBLOCK)
			return n;
		settle(waits++);
		ret = wait_byte(fd);
		if (ret)
			return ret;
	}
}

/*
 * A thread that has just sent, and waits: true if the answer comes in a moment.  weftd may need
 * this very CPU for it.
 */
static bool comes_soon(const struct way *w)
{
	const struct ring_ref ring = part_recv_ring(w->p);
	uint64_t until;
	bool found;

	if (!w->p->spin_ns || !atomic_load_explicit(&w->p->lane->prompt, memory_order_relaxed))
		return false;
	atomic_store_explicit(&w->p->lane->looking, 1, memory_order_relaxed);
	until = clock_ns() + w->p->spin_ns;
	do {
		sched_yield();
		found = bell_is_ready(&ring);
	} while (!found && clock_ns() < until);
	atomic_store_explicit(&w->p->lane->looking, 0, memory_order_relaxed);
	return found;
}

/* ---- wait ---- */

/* Is something to be read, or the device gone? */
static int look(int fd, bool doubt)
{
	struct way w = {.fd = fd};
	struct bell_consumer me;
	int cancel, ret = enter(fd, &cancel, &w.p);
	bool ready;

	if (ret)
		return ret == -EIO ? 1 : ret;
	me = consumer_of(&w);
	ready = bell_is_readable(&me) || look_empty(&w, &me, doubt) == -EIO;
	leave(cancel, w.p);
	return ready;
}

/* When a wait of so long ends; 0: never. */
static uint64_t end_of(int timeout_ms)
{
	return timeout_ms < 0 ? 0 : clock_ns() + (uint64_t)timeout_ms * NSEC_PER_MSEC;
}

/* Milliseconds until then, rounded up; -1: for ever. */
static int left_ms(uint64_t until)
{
	uint64_t now;

	if (!until)
		return -1;
	now = clock_ns();
	return until > now ? (int)((until - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC) : 0;
}

/* Sleeps until a byte is there: -ETIMEDOUT, -EINTR.  waits: how often it did so before. */
static int sleep_on(int fd, unsigned waits, uint64_t until)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int ret;

	settle(waits);
	ret = poll(&pfd, 1, left_ms(until));
	if (ret < 0)
		return -errno;
	return ret ? 0 : -ETIMEDOUT;
}

int umad_file_wait(int fd, int timeout_ms)
{
	uint64_t until = end_of(timeout_ms);
	int ret;

	for (unsigned waits = 0;; waits++) {
		ret = look(fd, waits > 0);
		if (ret)
			return ret < 0 ? ret : 0;
		ret = sleep_on(fd, waits, until);
		if (ret)
			return ret;
	}
}

/* ---- both in one ---- */

static ssize_t receive_once(int fd, void *buf, size_t len, bool waited)
{
	struct way w = {.fd = fd};
	struct bell_consumer me;
	ssize_t n;
	int cancel, ret = enter(fd, &cancel, &w.p);

	if (ret)
		return ret;
	me = consumer_of(&w);
	if (bell_is_ready(&me.ring) || (!waited && comes_soon(&w)) || bell_is_readable(&me))
		n = read_once(&w, buf, len);
	else
		n = look_empty(&w, &me, waited);
	leave(cancel, w.p);
	return n;
}

ssize_t umad_file_receive(int fd, void *buf, size_t len, int timeout_ms)
{
	uint64_t until = end_of(timeout_ms);
	ssize_t n;
	int ret;

	pthread_testcancel();
	for (unsigned waits = 0;; waits++) {
		n = receive_once(fd, buf, len, waits > 0);
		if (n != -EAGAIN)
			return n;
		ret = sleep_on(fd, waits, until);
		if (ret)
			return ret;
	}
}
