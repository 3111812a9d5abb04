// SPDX-License-Identifier: BSD-3-Clause
#include "scif/heir/heir_call.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "face/poll_many.h"
#include "scif.h"
#include "scif/ep/copy.h"
#include "scif/ep/ep.h"
#include "scif/ep/hold.h"
#include "scif/heir/heir_msg.h"
#include "scif/win/reg.h"

enum { CHUNK = 4 << 20 };

/* A question with bytes, and perhaps a file; what is answered goes back into it. */
struct call {
	struct heir_question q;
	const void *out;
	size_t out_len;
	int file; /* -1: none */
	void *in;
	size_t in_len; /* of room, then of bytes that came */
	uint64_t word;
	int got; /* an fd, or -1 */
};

static struct call call_of(struct heir_question q)
{
	return (struct call){.q = q, .file = -1, .got = -1};
}

static int64_t ask(const struct scif_ep *ep, int fd, struct call *c)
{
	struct heir_answer a = {.ret = -ECONNRESET};
	struct heir_msg q = {&c->q, sizeof(c->q), (void *)c->out, c->out_len, {fd, -1, c->file}};
	struct heir_msg m = {&a, sizeof(a), c->in, c->in_len, {-1, -1, -1}};
	int back[2], err = errno, ret;

	if (ep->maker < 0)
		return -EOPNOTSUPP;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, back) < 0) {
		errno = err;
		return -ENOMEM;
	}
	q.fd[1] = back[1];
	ret = heir_put(ep->maker, &q);
	close(back[1]); /* so that the end of who is asked shows */
	if (!ret)
		ret = heir_get(back[0], &m);
	close(back[0]);
	errno = err;
	if (ret)
		return -ECONNRESET;
	c->word = a.word;
	c->got = m.fd[0];
	c->in_len = m.len;
	return c->in && a.ret > 0 && (size_t)a.ret != m.len ? -ECONNRESET : a.ret;
}

/* ---- messages ---- */

/* Moves len bytes in pieces; where it blocks, readiness of the fd says when to go on. */
static int move(struct scif_ep *ep, int fd, const uint8_t *out, uint8_t *in, int len, bool block)
{
	struct pollfd p = {.fd = fd, .events = in ? POLLIN : POLLOUT};
	int done = 0;

	while (done < len) {
		int n = len - done < HEIR_BYTES ? len - done : HEIR_BYTES;
		struct call c = call_of((struct heir_question){in ? HEIR_RECV : HEIR_SEND, 0, {n}});
		int64_t ret;

		if (in) {
			c.in = in + done;
			c.in_len = n;
		} else {
			c.out = out + done;
			c.out_len = n;
		}
		ret = ask(ep, fd, &c);
		if (ret < 0)
			return done ? done : ret;
		done += ret;
		if (done == len || (!block && ret < n))
			break;
		if (!ret)
			ret = poll_ns(&p, 1, -1);
		if (ret < 0)
			return done ? done : ret;
	}
	return done;
}

int heir_send(struct scif_ep *ep, int fd, const uint8_t *msg, int len, bool block)
{
	return move(ep, fd, msg, NULL, len, block);
}

int heir_recv(struct scif_ep *ep, int fd, uint8_t *msg, int len, bool block)
{
	return move(ep, fd, NULL, msg, len, block);
}

/* ---- connecting ---- */

int heir_bind(struct scif_ep *ep, int fd, uint16_t pn)
{
	struct call c = call_of((struct heir_question){HEIR_BIND, 0, {pn}});

	return ask(ep, fd, &c);
}

int heir_listen(struct scif_ep *ep, int fd, int backlog)
{
	struct call c = call_of((struct heir_question){HEIR_LISTEN, 0, {backlog}});

	return ask(ep, fd, &c);
}

int heir_connect(struct scif_ep *ep, int fd, struct scif_id dst, bool block)
{
	struct call c =
		call_of((struct heir_question){HEIR_CONNECT, 0, {dst.node, dst.port, block}});

	return ask(ep, fd, &c);
}

/* What was accepted has come: it is inherited as if it had been there at the fork. */
static int take_accepted(const struct scif_ep *listener, const struct call *c, struct scif_id *peer)
{
	int ret = c->got < 0 ? -ECONNRESET : ep_inherit(c->got, listener->maker);

	if (ret && c->got >= 0)
		close(c->got);
	if (ret)
		return ret;
	*peer = (struct scif_id){c->word >> 16, c->word & 0xffff};
	return c->got;
}

int heir_accept(struct scif_ep *ep, int fd, bool block, struct scif_id *peer)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int err = errno;

	for (;;) {
		struct call c = call_of((struct heir_question){HEIR_ACCEPT});
		int64_t ret = ask(ep, fd, &c);

		if (!ret)
			return take_accepted(ep, &c, peer);
		if (ret != -EAGAIN || !block)
			return ret;
		ret = poll_ns(&p, 1, -1);
		if (ret < 0)
			return ret;
		errno = err;
	}
}

/* ---- windows ---- */

static int export(void *addr, size_t len, int prot, struct hold **hold)
{
	int ret = hold_by_any(addr, len, prot, hold);

	if (ret)
		return ret;
	if (hold_export_by_any(*hold)) {
		hold_put(*hold);
		ret = -EOPNOTSUPP;
	}
	return ret;
}

/* The window is another process's; that its pages can be mapped depends on us. */
static void lend(struct scif_ep *ep, struct window *w)
{
	lock_take(&ep->lock);
	if (windows_add(&ep->lent, w)) {
		hold_put(w->hold);
		free(w);
	}
	lock_drop(&ep->lock);
}

int64_t heir_register(
	struct scif_ep *ep, int fd, void *addr, size_t len, int64_t off, int prot, int flags)
{
	struct call c = call_of((struct heir_question){HEIR_REGISTER, flags, {off, len, prot}});
	struct window *w;
	int64_t ret = reg_check(addr, len, off, prot, flags);

	if (ret)
		return ret;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	ret = export(addr, len, prot, &w->hold);
	if (!ret) {
		c.out = &w->hold->handle;
		c.out_len = sizeof(w->hold->handle);
		ret = ask(ep, fd, &c);
		if (ret < 0)
			hold_put(w->hold);
	}
	if (ret < 0) {
		free(w);
		return ret;
	}
	w->off = ret;
	w->len = len;
	lend(ep, w);
	return ret;
}

/* Forgets what we lent in the range. */
static void take_back(struct scif_ep *ep, uint64_t off, uint64_t len)
{
	struct window *w;

	lock_take(&ep->lock);
	while ((w = windows_hit(&ep->lent, off, len)) != NULL) {
		windows_remove(&ep->lent, w);
		hold_put(w->hold);
		free(w);
	}
	lock_drop(&ep->lock);
}

void heir_forget(struct scif_ep *ep)
{
	take_back(ep, 0, INT64_MAX);
	windows_free(&ep->lent, NULL);
}

int heir_unregister(struct scif_ep *ep, int fd, int64_t off, size_t len)
{
	struct call c = call_of((struct heir_question){HEIR_UNREGISTER, 0, {off, len}});
	int ret = ask(ep, fd, &c);

	if (!ret)
		take_back(ep, off, len);
	return ret;
}

/* ---- copies ---- */

/* A file of so many bytes, with a seal on its size; or a negative errno. */
static int new_file(size_t len)
{
	int fd = memfd_create("scif-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -ENOMEM;
	if (ftruncate(fd, len) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		close(fd);
		return -ENOMEM;
	}
	return fd;
}

/* All bytes between memory and the file, with a kernel's EFAULT. */
static int transfer(int file, uint8_t *addr, size_t len, bool out)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = out ? pwrite(file, addr + done, len - done, done)
				: pread(file, addr + done, len - done, done);

		if (n <= 0)
			return n < 0 ? -errno : -EFAULT;
		done += n;
	}
	return 0;
}

static int copy_piece(struct scif_ep *ep, int fd, const struct rma_args *a, uint64_t at, size_t n)
{
	struct call c = call_of(
		(struct heir_question){HEIR_COPY_MEMORY, a->flags, {a->write, n, a->roff + at}});
	uint8_t *addr = (uint8_t *)a->addr + at;
	int err = errno, ret = 0;

	c.file = new_file(n);
	if (c.file < 0)
		return c.file;
	if (a->write)
		ret = transfer(c.file, addr, n, true);
	if (!ret)
		ret = ask(ep, fd, &c);
	if (!ret && !a->write)
		ret = transfer(c.file, addr, n, false);
	close(c.file);
	errno = err;
	return ret;
}

int heir_copy(struct scif_ep *ep, int fd, const struct rma_args *a)
{
	struct call c = call_of(
		(struct heir_question){HEIR_COPY, a->flags, {a->write, a->len, a->roff, a->loff}});
	int ret = 0;

	if (!a->memory || !a->len)
		return ask(ep, fd, &c);
	for (uint64_t at = 0, n; !ret && at < a->len; at += n) {
		n = a->len - at < CHUNK ? a->len - at : CHUNK;
		ret = copy_piece(ep, fd, a, at, n);
	}
	return ret;
}

/* ---- fences ---- */

int heir_mark(struct scif_ep *ep, int fd, int flags, int *mark)
{
	struct call c = call_of((struct heir_question){HEIR_MARK, flags});
	int ret = mark ? ask(ep, fd, &c) : -EINVAL;

	if (!ret)
		*mark = c.word;
	return ret;
}

int heir_wait(struct scif_ep *ep, int fd, int mark)
{
	struct call c = call_of((struct heir_question){HEIR_WAIT, 0, {mark}});

	return ask(ep, fd, &c);
}

int heir_signal(struct scif_ep *ep, int fd, int64_t loff, uint64_t lval, int64_t roff,
	uint64_t rval, int flags)
{
	struct call c =
		call_of((struct heir_question){HEIR_SIGNAL, flags, {loff, lval, roff, rval}});

	return ask(ep, fd, &c);
}
