/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SCIF in the convention of the kernel's <linux/scif.h>, for code that was written against it: an
 * endpoint is a pointer, and a call answers a negative errno.  Everything else is as in <scif.h>,
 * over the same objects; scif(7) says what each call does.
 *
 * The names are those of <scif.h>, the symbols behind them are not (weft_kscif_*): one program may
 * use both conventions, in different source files.  weft_scif_to_fd() and weft_scif_from_fd()
 * carry an endpoint from one to the other.
 *
 * All calls but scif_poll() answer -EBADF for an epd that is NULL, closed, or of no scif_open() or
 * scif_accept().  errno is left alone.  Sizes and offsets are bytes.  Calls may be made from
 * several threads.
 */
#ifndef WEFT_SCIF_KERNEL_H
#define WEFT_SCIF_KERNEL_H

#ifdef SCIF_H
#error "one source file has one convention: include <scif.h> or <linux/scif.h>"
#endif

#include <errno.h>
#include <linux/types.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>
#if __has_include(<linux/scif_ioctl.h>)
#include <linux/scif_ioctl.h>
#else
struct scif_port_id {
	__u16 node;
	__u16 port;
};
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Types of the kernel; a program that has its own defines WEFT_OWN_KERNEL_TYPES. */
#ifndef WEFT_OWN_KERNEL_TYPES
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef uint64_t dma_addr_t;
#endif
#ifndef __iomem
#define __iomem
#endif
#ifndef EPOLLNVAL /* the C library lacks this one */
#define EPOLLNVAL 0x20
#endif

/* As much of a device as its clients use. */
struct device {
	const char *init_name;
	void *driver_data;
};

static inline const char *dev_name(const struct device *dev)
{
	return dev->init_name;
}

static inline void *dev_get_drvdata(const struct device *dev)
{
	return dev->driver_data;
}

static inline void dev_set_drvdata(struct device *dev, void *data)
{
	dev->driver_data = data;
}

struct subsys_interface {
	const char *name;
	void *subsys;
};

#define SCIF_ACCEPT_SYNC 1
#define SCIF_SEND_BLOCK  1
#define SCIF_RECV_BLOCK  1

enum {
	SCIF_PROT_READ = 1,
	SCIF_PROT_WRITE = 2,
};

enum {
	SCIF_MAP_FIXED = 0x10,
	SCIF_MAP_KERNEL = 0x20, /* accepted and without effect: there is one address space */
};

enum {
	SCIF_FENCE_INIT_SELF = 1,
	SCIF_FENCE_INIT_PEER = 2,
	SCIF_SIGNAL_LOCAL = 0x10,
	SCIF_SIGNAL_REMOTE = 0x20,
};

enum {
	SCIF_RMA_USECPU = 1,
	SCIF_RMA_USECACHE = 2,
	SCIF_RMA_SYNC = 4,
	SCIF_RMA_ORDERED = 8,
};

/* Ports below need privilege to bind; those that scif_bind() chooses lie above the second. */
#define SCIF_ADMIN_PORT_END 1024
#define SCIF_PORT_RSVD      1088

typedef struct scif_endpt *scif_epd_t;
typedef struct scif_pinned_pages *scif_pinned_pages_t;

/* Pages of the peer.  An address can be used by this process and registered with an adapter. */
struct scif_range {
	void *cookie;
	int nr_pages;
	int prot_flags; /* of the registration */
	dma_addr_t *phys_addr;
	void __iomem **va; /* the same addresses; on every node */
};

struct scif_pollepd {
	scif_epd_t epd;
	__poll_t events;
	__poll_t revents;
};

/* A node, this one included, as clients see it; one for all of them, as long as it is there. */
struct scif_peer_dev {
	struct device dev;
	u8 dnode;
};

struct scif_client {
	const char *name;
	void (*probe)(struct scif_peer_dev *spdev);
	void (*remove)(struct scif_peer_dev *spdev);
	struct subsys_interface si; /* the library's */
};

#define SCIF_OPEN_FAILED     ((scif_epd_t)-1)
#define SCIF_REGISTER_FAILED ((off_t)-1)
#define SCIF_MMAP_FAILED     ((void *)-1)

#define WEFT_KSCIF(name)     __asm__("weft_kscif_" #name)

/* A new endpoint; NULL: no memory, no file descriptor, no weftd, or WEFT_NODE is no number. */
scif_epd_t scif_open(void) WEFT_KSCIF(open);

/*
 * Binds to port pn of this node, 0: a free one above SCIF_PORT_RSVD.  Returns the port.  -EACCES,
 * -EINVAL endpoint or port is bound already, -EISCONN, -ENOSPC.
 */
int scif_bind(scif_epd_t epd, u16 pn) WEFT_KSCIF(bind);

/* Lets at most backlog requests queue.  -EINVAL not bound, backlog < 1; -EISCONN. */
int scif_listen(scif_epd_t epd, int backlog) WEFT_KSCIF(listen);

/*
 * Connects; returns the local port.  Blocks until the other side accepts, at most 30 s.
 * -ECONNREFUSED, -EINVAL, -EISCONN, -ENODEV, -ENOSPC, -EOPNOTSUPP listening.
 */
int scif_connect(scif_epd_t epd, struct scif_port_id *dst) WEFT_KSCIF(connect);

/* Accepts the first request; SCIF_ACCEPT_SYNC waits for one, else -EAGAIN.  -EINVAL, -EINTR. */
int scif_accept(scif_epd_t epd, struct scif_port_id *peer, scif_epd_t *newepd, int flags)
	WEFT_KSCIF(accept);

/* Closes epd and its file descriptor. */
int scif_close(scif_epd_t epd) WEFT_KSCIF(close);

/*
 * Bytes into the peer's queue and out of our own; how many.  SCIF_SEND_BLOCK and SCIF_RECV_BLOCK
 * wait for all, else 0 may be the answer.  -EINVAL, -EFAULT NULL, -ENOTCONN, -ECONNRESET, -EINTR.
 */
int scif_send(scif_epd_t epd, void *msg, int len, int flags) WEFT_KSCIF(send);
int scif_recv(scif_epd_t epd, void *msg, int len, int flags) WEFT_KSCIF(recv);

/*
 * Opens a window and returns its offset.  -EINVAL, -EADDRINUSE, -EAGAIN, -EFAULT, -ENOMEM,
 * -ENOTCONN, -ECONNRESET.
 */
off_t scif_register(scif_epd_t epd, void *addr, size_t len, off_t offset, int prot_flags,
	int map_flags) WEFT_KSCIF(register);

/* Closes all windows inside the range.  -EINVAL cuts one in two; -ENXIO; -ENOTCONN; -ECONNRESET. */
int scif_unregister(scif_epd_t epd, off_t offset, size_t len) WEFT_KSCIF(unregister);

/*
 * Copy between windows of ours and the peer's, or memory (v) and the peer's windows.  -EACCES
 * protection, -EINVAL flags or len 0, -ENXIO not inside windows, -EFAULT (v), -ENOTCONN,
 * -ECONNRESET.
 */
int scif_readfrom(scif_epd_t epd, off_t loffset, size_t len, off_t roffset, int rma_flags)
	WEFT_KSCIF(readfrom);
int scif_writeto(scif_epd_t epd, off_t loffset, size_t len, off_t roffset, int rma_flags)
	WEFT_KSCIF(writeto);
int scif_vreadfrom(scif_epd_t epd, void *addr, size_t len, off_t roffset, int rma_flags)
	WEFT_KSCIF(vreadfrom);
int scif_vwriteto(scif_epd_t epd, void *addr, size_t len, off_t roffset, int rma_flags)
	WEFT_KSCIF(vwriteto);

/*
 * Marks copies begun by one side; waits for what was marked; writes words of 8 bytes, lval to our
 * window and rval to the peer's, when copies are done.  -EINVAL flags, alignment to 4, no such
 * mark; -ENXIO, -EACCES (signal); -ENOTCONN, -ECONNRESET.
 */
int scif_fence_mark(scif_epd_t epd, int flags, int *mark) WEFT_KSCIF(fence_mark);
int scif_fence_wait(scif_epd_t epd, int mark) WEFT_KSCIF(fence_wait);
int scif_fence_signal(scif_epd_t epd, off_t loff, u64 lval, off_t roff, u64 rval, int flags)
	WEFT_KSCIF(fence_signal);

/* Number of nodes; up to len of them in nodes, this one in *self; both may be NULL.  -EINVAL. */
int scif_get_node_ids(u16 *nodes, int len, u16 *self) WEFT_KSCIF(get_node_ids);

/* A handle for pages, and its end; windows made from it stay.  -EINVAL, -EFAULT, -ENOMEM. */
int scif_pin_pages(void *addr, size_t len, int prot_flags, int map_flags,
	scif_pinned_pages_t *pinned_pages) WEFT_KSCIF(pin_pages);
int scif_unpin_pages(scif_pinned_pages_t pinned_pages) WEFT_KSCIF(unpin_pages);
/* As scif_register(), of such a handle. */
off_t scif_register_pinned_pages(scif_epd_t epd, scif_pinned_pages_t pinned_pages, off_t offset,
	int map_flags) WEFT_KSCIF(register_pinned_pages);

/* The pages of one window of the peer.  -EINVAL, -ENXIO, -ENOTCONN, -ECONNRESET, -EOPNOTSUPP. */
int scif_get_pages(scif_epd_t epd, off_t offset, size_t len, struct scif_range **pages)
	WEFT_KSCIF(get_pages);
/* Gives them back.  -EINVAL not of scif_get_pages(), or given back before. */
int scif_put_pages(struct scif_range *pages) WEFT_KSCIF(put_pages);

/*
 * Waits, at most timeout ms (negative: for ever).  How many entries have revents; an epd that is
 * none has EPOLLNVAL.  -EINTR, -EINVAL nepds beyond the limit of open files, -EFAULT, -ENOMEM.
 */
int scif_poll(struct scif_pollepd *epds, unsigned int nepds, long timeout) WEFT_KSCIF(poll);

/*
 * Calls client->probe() for each node that is there, now, and for each that comes;
 * client->remove() for each that goes.  Later calls come from a thread of the library, one at a
 * time.  *client stays the caller's, who keeps it until scif_client_unregister(), which
 * calls remove() for each node that is there.  -EINVAL NULL, -EEXIST is registered, -ENOMEM,
 * -EAGAIN no thread.
 */
int scif_client_register(struct scif_client *client) WEFT_KSCIF(client_register);
void scif_client_unregister(struct scif_client *client) WEFT_KSCIF(client_unregister);

#undef WEFT_KSCIF

/*
 * The file descriptor of an endpoint, as the calls of <scif.h>, poll(2) and fcntl(2) take it; it
 * stays the endpoint's, and closing either closes both.  With O_NONBLOCK on it scif_connect()
 * answers -EINPROGRESS.  -EBADF.
 */
int weft_scif_to_fd(scif_epd_t epd);
/* The reverse; NULL and errno EBADF, ENOTTY. */
scif_epd_t weft_scif_from_fd(int fd);

#ifdef __cplusplus
}
#endif

#endif
