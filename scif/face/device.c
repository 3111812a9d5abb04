// SPDX-License-Identifier: BSD-3-Clause
/* Commands of the device: their arguments, to and from the public calls. */
#include "scif/face/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/user_mem.h"
#include "scif.h"
#include "scif/ep/ep.h"
#include "scif/face/device_abi.h"
#include "scif/face/let_go.h"
#include "scif/link/half.h"
#include "scif/win/map.h"

enum { SMALL = 4096, LARGE = 4 << 20, FEW = 16 };

/* What a public call answered, as a negative errno where it failed; errno as it was before. */
static int64_t result(int64_t ret, int err)
{
	int64_t failed = -errno;

	errno = err;
	return ret < 0 ? failed : ret;
}

/* ---- connecting ---- */

static int do_bind(int fd, uint64_t arg)
{
	int32_t port;
	int ret = user_get(&port, arg, sizeof(port)), err = errno;

	if (ret)
		return ret;
	port = result(scif_bind(fd, port), err);
	return port < 0 ? port : user_put(arg, &port, sizeof(port));
}

static int do_connect(int fd, uint64_t arg)
{
	struct scif_portID dst;
	struct dev_connect c;
	int ret = user_get(&c, arg, sizeof(c)), err = errno;

	if (ret)
		return ret;
	dst = (struct scif_portID){c.peer.node, c.peer.port};
	ret = result(scif_connect(fd, &dst), err);
	if (ret < 0)
		return ret;
	c.self = (struct dev_port){node_self(), ret};
	return user_put(arg, &c, sizeof(c));
}

static int do_acceptreq(int fd, struct scif_ep *ep, uint64_t arg)
{
	struct scif_portID peer;
	struct dev_accept a;
	int ret = user_get(&a, arg, sizeof(a)), err = errno, accepted;
	int64_t number;

	if (ret)
		return ret;
	ret = result(scif_accept(fd, &peer, &accepted, a.flags), err);
	if (ret)
		return ret;
	number = half_keep(ep, accepted);
	if (number < 0) {
		scif_close(accepted);
		return number;
	}
	a.peer = (struct dev_port){peer.node, peer.port};
	a.endpt = number;
	ret = user_put(arg, &a, sizeof(a));
	if (!ret)
		return 0;
	accepted = half_take(number);
	if (accepted >= 0)
		scif_close(accepted);
	errno = err;
	return ret;
}

/* Puts the accepted connection in place of what was opened, which has no fd then. */
static int do_acceptreg(int fd, struct scif_ep *opened, uint64_t arg)
{
	uint64_t number;
	int ret = user_get(&number, arg, sizeof(number)), err = errno, accepted, fd_flags, flags;

	if (ret)
		return ret;
	accepted = half_take(number);
	if (accepted < 0)
		return accepted;
	fd_flags = fcntl(fd, F_GETFD);
	flags = fcntl(fd, F_GETFL);
	if (fd_flags < 0 || fcntl(accepted, F_SETFL, flags) < 0 ||
		dup3(accepted, fd, fd_flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
		ret = -errno;
	scif_close(accepted);
	if (!ret)
		ep_let_go(opened);
	errno = err;
	return ret;
}

/* ---- messages ---- */

/* Moves len bytes through a buffer: as much as one call of it, or until one moves less. */
static int move(int fd, const struct dev_msg *m, bool send, uint8_t *buf, int size)
{
	int done = 0, n, ret, err = errno;

	do {
		n = m->len - done < size ? m->len - done : size;
		if (send && user_get(buf, m->msg + done, n))
			return -EFAULT;
		ret = result(
			send ? scif_send(fd, buf, n, m->flags) : scif_recv(fd, buf, n, m->flags),
			err);
		if (ret < 0)
			return done ? done : ret;
		if (!send && user_put(m->msg + done, buf, ret))
			return -EFAULT;
		done += ret;
	} while (ret == n && done < m->len);
	return done;
}

static int do_msg(int fd, uint64_t arg, bool send)
{
	uint8_t small[SMALL], *large = NULL;
	struct dev_msg m;
	int ret = user_get(&m, arg, sizeof(m)), err = errno, size = SMALL;

	if (ret)
		return ret;
	/* Without bytes it looks at its arguments alone. */
	ret = result(scif_send(fd, small, m.len < 0 ? m.len : 0, m.flags), err);
	if (ret)
		return ret;
	/* What waits should be one call, so that others of its direction do not come between. */
	if (m.len > SMALL && (m.flags & SCIF_SEND_BLOCK)) {
		size = m.len < LARGE ? m.len : LARGE;
		large = malloc(size);
		if (!large)
			return -ENOMEM;
	}
	ret = m.len ? move(fd, &m, send, large ? large : small, size) : 0;
	free(large);
	return ret < 0 ? ret : user_put(arg + offsetof(struct dev_msg, out_len), &ret, sizeof(ret));
}

/* ---- windows ---- */

static int do_reg(int fd, uint64_t arg)
{
	struct dev_reg r;
	int ret = user_get(&r, arg, sizeof(r)), err = errno;
	int64_t off;

	if (ret)
		return ret;
	off = result(scif_register(fd, (void *)(uintptr_t)r.addr, r.len, r.offset, r.prot, r.flags),
		err);
	if (off < 0)
		return off;
	return user_put(arg + offsetof(struct dev_reg, out_offset), &off, sizeof(off));
}

static int do_unreg(int fd, uint64_t arg)
{
	struct dev_unreg u;
	int ret = user_get(&u, arg, sizeof(u)), err = errno;

	return ret ? ret : result(scif_unregister(fd, u.offset, u.len), err);
}

static int do_copy(int fd, enum dev_nr nr, uint64_t arg)
{
	struct dev_copy c;
	int ret = user_get(&c, arg, sizeof(c)), err = errno;
	void *addr;

	if (ret)
		return ret;
	addr = (void *)(uintptr_t)c.addr;
	switch (nr) {
	case DEV_READFROM:
		return result(scif_readfrom(fd, c.loffset, c.len, c.roffset, c.flags), err);
	case DEV_WRITETO:
		return result(scif_writeto(fd, c.loffset, c.len, c.roffset, c.flags), err);
	case DEV_VREADFROM:
		return result(scif_vreadfrom(fd, addr, c.len, c.roffset, c.flags), err);
	default:
		return result(scif_vwriteto(fd, addr, c.len, c.roffset, c.flags), err);
	}
}

/* ---- fences ---- */

static int do_mark(int fd, uint64_t arg)
{
	struct dev_fence_mark m;
	int ret = user_get(&m, arg, sizeof(m)), err = errno, mark;

	if (!ret)
		ret = result(scif_fence_mark(fd, m.flags, &mark), err);
	return ret ? ret : user_put(m.mark, &mark, sizeof(mark));
}

static int do_signal(int fd, uint64_t arg)
{
	struct dev_fence_signal s;
	int ret = user_get(&s, arg, sizeof(s)), err = errno;

	return ret ? ret
		   : result(scif_fence_signal(fd, s.loff, s.lval, s.roff, s.rval, s.flags), err);
}

/* ---- nodes ---- */

/* Fills the two arrays; the number of nodes. */
static int node_ids(uint64_t nodes, uint64_t self, int len)
{
	uint16_t few[FEW], *ids = few, me;
	int err = errno, n = result(scif_get_nodeIDs(NULL, len < 0 ? len : 0, &me), err), ret;

	if (n > 0 && len > n)
		len = n;
	if (n > 0 && len > FEW)
		ids = malloc(len * sizeof(*ids));
	if (n < 0 || !ids)
		return n < 0 ? n : -ENOMEM;
	ret = n = result(scif_get_nodeIDs(ids, len, &me), err);
	if (n >= 0 && (user_put(nodes, ids, (n < len ? n : len) * sizeof(*ids)) ||
			      user_put(self, &me, sizeof(me))))
		ret = -EFAULT;
	if (ids != few)
		free(ids);
	return ret;
}

static int do_node_ids(uint64_t arg)
{
	struct dev_node_ids n;
	int ret = user_get(&n, arg, sizeof(n));

	if (!ret)
		ret = n.len = node_ids(n.nodes, n.self, n.len);
	return ret < 0 ? ret : user_put(arg, &n, sizeof(n));
}

static int do_node_ids_old(uint64_t arg)
{
	struct dev_node_ids_old n;
	int ret = user_get(&n, arg, sizeof(n));

	if (!ret)
		ret = n.len = node_ids(n.nodes, n.self, n.len);
	return ret < 0 ? ret : user_put(arg, &n, sizeof(n));
}

/* ---- which command ---- */

#define RW _IOC_READ | _IOC_WRITE
static const struct {
	uint8_t dir, size, old_size;
} commands[] = {
	[DEV_BIND] = {RW, 8, 8},
	[DEV_LISTEN] = {_IOC_WRITE, 4, 4},
	[DEV_CONNECT] = {RW, sizeof(struct dev_connect), 8},
	[DEV_ACCEPTREQ] = {RW, sizeof(struct dev_accept), 8},
	[DEV_ACCEPTREG] = {RW, 8, 8},
	[DEV_SEND] = {RW, sizeof(struct dev_msg), 8},
	[DEV_RECV] = {RW, sizeof(struct dev_msg), 8},
	[DEV_REG] = {RW, sizeof(struct dev_reg), 8},
	[DEV_UNREG] = {RW, sizeof(struct dev_unreg), 8},
	[DEV_READFROM] = {RW, sizeof(struct dev_copy), 8},
	[DEV_WRITETO] = {RW, sizeof(struct dev_copy), 8},
	[DEV_VREADFROM] = {RW, sizeof(struct dev_copy), 8},
	[DEV_VWRITETO] = {RW, sizeof(struct dev_copy), 8},
	[DEV_NODE_IDS] = {RW, sizeof(struct dev_node_ids), 8},
	[DEV_FENCE_MARK] = {RW, sizeof(struct dev_fence_mark), 8},
	[DEV_FENCE_WAIT] = {RW, 4, 4},
	[DEV_FENCE_SIGNAL] = {RW, sizeof(struct dev_fence_signal), 8},
	[DEV_GET_VERSION] = {_IOC_NONE, 0, 0},
};
#undef RW

/* The number of a command of either generation, 0: there is no such. */
static unsigned known(uint32_t cmd)
{
	unsigned nr = _IOC_NR(cmd), size = _IOC_SIZE(cmd);

	if (_IOC_TYPE(cmd) != DEV_TYPE || nr >= sizeof(commands) / sizeof(*commands))
		return 0;
	if (nr != DEV_GET_VERSION && !commands[nr].size)
		return 0;
	if (_IOC_DIR(cmd) != commands[nr].dir)
		return 0;
	return size == commands[nr].size || size == commands[nr].old_size ? nr : 0;
}

static int do_command(int fd, struct scif_ep *ep, uint32_t cmd, uint64_t arg)
{
	unsigned nr = known(cmd);
	int err = errno;

	switch (nr) {
	case DEV_BIND:
		return do_bind(fd, arg);
	case DEV_LISTEN:
		return result(scif_listen(fd, arg), err);
	case DEV_CONNECT:
		return do_connect(fd, arg);
	case DEV_ACCEPTREQ:
		return do_acceptreq(fd, ep, arg);
	case DEV_ACCEPTREG:
		return do_acceptreg(fd, ep, arg);
	case DEV_SEND:
	case DEV_RECV:
		return do_msg(fd, arg, nr == DEV_SEND);
	case DEV_REG:
		return do_reg(fd, arg);
	case DEV_UNREG:
		return do_unreg(fd, arg);
	case DEV_READFROM:
	case DEV_WRITETO:
	case DEV_VREADFROM:
	case DEV_VWRITETO:
		return do_copy(fd, nr, arg);
	case DEV_NODE_IDS:
		return _IOC_SIZE(cmd) == commands[nr].size ? do_node_ids(arg)
							   : do_node_ids_old(arg);
	case DEV_FENCE_MARK:
		return do_mark(fd, arg);
	case DEV_FENCE_WAIT:
		return result(scif_fence_wait(fd, arg), err);
	case DEV_FENCE_SIGNAL:
		return do_signal(fd, arg);
	case DEV_GET_VERSION:
		return DEV_VERSION;
	default:
		return -EINVAL;
	}
}

/* ---- system calls ---- */

/* As ep_find(); while other libraries close what they have around fork(), nothing is ours. */
static int find(int fd, struct scif_ep **ep)
{
	return ep_forking() ? -ENOTTY : ep_find(fd, ep);
}

static int device_open(int flags)
{
	int err = errno, fd;

	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	fd = result(scif_open(), err);
	if (fd < 0)
		return fd;
	if (flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, O_NONBLOCK);
	if (!(flags & O_CLOEXEC))
		fcntl(fd, F_SETFD, 0);
	return fd;
}

static int device_ioctl(int fd, uint32_t cmd, uint64_t arg)
{
	struct scif_ep *ep;
	int ret = find(fd, &ep);

	if (ret)
		return ret;
	ret = do_command(fd, ep, cmd, arg);
	ep_put(ep);
	return ret;
}

static int device_mmap(void *addr, size_t len, int prot, int flags, int fd, int64_t off, void **at)
{
	int err = errno, type = flags & MAP_TYPE;
	struct scif_ep *ep;
	int ret = find(fd, &ep);

	if (ret)
		return ret;
	ep_put(ep);
	if (type != MAP_SHARED && type != MAP_SHARED_VALIDATE)
		return -EINVAL;
	if (flags & MAP_FIXED_NOREPLACE)
		return -EOPNOTSUPP;
	*at = scif_mmap(addr, len, prot, flags & MAP_FIXED, fd, off);
	return result(*at == SCIF_MMAP_FAILED ? -1 : 0, err);
}

static int device_munmap(void *addr, size_t len)
{
	int err = errno;

	if (ep_forking())
		return -ENOTTY;
	return map_holds(addr, len) ? (int)result(scif_munmap(addr, len), err) : -ENOTTY;
}

/* Is one of them an endpoint? */
static bool any_endpoint(const struct pollfd *fds, unsigned n)
{
	struct scif_ep *ep;

	for (unsigned i = 0; i < n; i++) {
		if (fds[i].fd < 0 || find(fds[i].fd, &ep))
			continue;
		ep_put(ep);
		return true;
	}
	return false;
}

static int device_poll(struct pollfd *fds, unsigned n, int timeout)
{
	struct pollfd few[FEW], *copy = n > FEW ? malloc(n * sizeof(*copy)) : few;
	int err = errno, ret = -ENOTTY; /* for the kernel to refuse */

	if (!copy)
		return -ENOMEM;
	if (user_get(copy, (uintptr_t)fds, n * sizeof(*copy)) == 0 && any_endpoint(copy, n)) {
		ret = result(scif_poll((struct scif_pollepd *)copy, n, timeout), err);
		if (ret >= 0 && user_put((uintptr_t)fds, copy, n * sizeof(*copy)))
			ret = -EFAULT;
	}
	if (copy != few)
		free(copy);
	return ret;
}

static int device_close(int fd)
{
	int err = errno;

	return ep_is_open(fd) ? (int)result(scif_close(fd), err) : -ENOTTY;
}

__attribute__((visibility("default"))) const struct scif_device *weft_scif_device(void)
{
	static const struct scif_device device = {.open = device_open,
		.ioctl = device_ioctl,
		.mmap = device_mmap,
		.munmap = device_munmap,
		.poll = device_poll,
		.close = device_close};

	return &device;
}
