/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SCIF, the Symmetric Communications Interface, in user mode: names, types and values of the user
 * library of Intel's MPSS, so that its programs build and run unchanged.  What each call does
 * says scif(7); which error comes when says the table of docs/scif-conformance.md.
 *
 * An endpoint is a file descriptor: poll(2), select(2), epoll(7), fcntl(2) O_NONBLOCK and
 * FD_CLOEXEC, dup(2) and close(2) work on it; the last close of it disconnects.  Every call
 * answers -1 and sets errno when it fails, unless another value is named; EBADF and ENOTTY (not an
 * endpoint) come from all that take one.  Sizes and offsets are bytes.  Calls may be made from
 * several threads.
 */
#ifndef SCIF_H
#define SCIF_H

#ifdef WEFT_SCIF_KERNEL_H
#error "one source file has one convention: include <scif.h> or <linux/scif.h>"
#endif

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/select.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCIF_ACCEPT_SYNC 1
#define SCIF_SEND_BLOCK  1
#define SCIF_RECV_BLOCK  1
/* Names of older programs. */
#define ACCEPT_SYNC SCIF_ACCEPT_SYNC
#define SEND_BLOCK  SCIF_SEND_BLOCK
#define RECV_BLOCK  SCIF_RECV_BLOCK

enum {
	SCIF_PROT_READ = 1,
	SCIF_PROT_WRITE = 2,
};

enum {
	SCIF_MAP_FIXED = 0x10,
	SCIF_MAP_KERNEL = 0x20, /* not for user mode: EINVAL */
};

enum {
	SCIF_FENCE_INIT_SELF = 1,
	SCIF_FENCE_INIT_PEER = 2,
	SCIF_FENCE_RAS_SELF = 4,
	SCIF_FENCE_RAS_PEER = 8,
	SCIF_SIGNAL_LOCAL = 0x10,
	SCIF_SIGNAL_REMOTE = 0x20,
};

enum {
	SCIF_RMA_USECPU = 1,
	SCIF_RMA_USECACHE = 2,
	SCIF_RMA_SYNC = 4,
	SCIF_RMA_ORDERED = 8,
};

#define SCIF_POLLIN   POLLIN
#define SCIF_POLLOUT  POLLOUT
#define SCIF_POLLERR  POLLERR
#define SCIF_POLLHUP  POLLHUP
#define SCIF_POLLNVAL POLLNVAL

/* Ports that MPSS gave to its own services. */
#define SCIF_COI_PORT_0       40
#define SCIF_COI_PORT_1       41
#define SCIF_COI_PORT_2       42
#define SCIF_COI_PORT_3       43
#define SCIF_COI_PORT_4       44
#define SCIF_COI_PORT_5       45
#define SCIF_COI_PORT_6       46
#define SCIF_COI_PORT_7       47
#define SCIF_COI_PORT_8       48
#define SCIF_COI_PORT_9       49
#define SCIF_OFED_PORT_0      60
#define SCIF_OFED_PORT_1      61
#define SCIF_OFED_PORT_2      62
#define SCIF_OFED_PORT_3      63
#define SCIF_OFED_PORT_4      64
#define SCIF_OFED_PORT_5      65
#define SCIF_OFED_PORT_6      66
#define SCIF_OFED_PORT_7      67
#define SCIF_OFED_PORT_8      68
#define SCIF_OFED_PORT_9      69
#define SCIF_NETDEV_PORT_0    80
#define SCIF_NETDEV_PORT_1    81
#define SCIF_NETDEV_PORT_2    82
#define SCIF_NETDEV_PORT_3    83
#define SCIF_NETDEV_PORT_4    84
#define SCIF_NETDEV_PORT_5    85
#define SCIF_NETDEV_PORT_6    86
#define SCIF_NETDEV_PORT_7    87
#define SCIF_NETDEV_PORT_8    88
#define SCIF_NETDEV_PORT_9    89
#define SCIF_RAS_PORT_0       100
#define SCIF_RAS_PORT_1       101
#define SCIF_RAS_PORT_2       102
#define SCIF_RAS_PORT_3       103
#define SCIF_RAS_PORT_4       104
#define SCIF_RAS_PORT_5       105
#define SCIF_RAS_PORT_6       106
#define SCIF_RAS_PORT_7       107
#define SCIF_RAS_PORT_8       108
#define SCIF_RAS_PORT_9       109
#define SCIF_PM_PORT_0        120
#define SCIF_PM_PORT_1        121
#define SCIF_PM_PORT_2        122
#define SCIF_PM_PORT_3        123
#define SCIF_PM_PORT_4        124
#define SCIF_PM_PORT_5        125
#define SCIF_PM_PORT_6        126
#define SCIF_PM_PORT_7        127
#define SCIF_PM_PORT_8        128
#define SCIF_PM_PORT_9        129
#define SCIF_BT_PORT_0        130
#define SCIF_BT_PORT_1        131
#define SCIF_BT_PORT_2        132
#define SCIF_BT_PORT_3        133
#define SCIF_BT_PORT_4        134
#define SCIF_BT_PORT_5        135
#define SCIF_BT_PORT_6        136
#define SCIF_BT_PORT_7        137
#define SCIF_BT_PORT_8        138
#define SCIF_BT_PORT_9        139
#define MPSSD_MONRECV         160
#define MIC_NOTIFY            161
#define MPSSD_CRED            162
#define MPSSD_MONSEND         163
#define MPSSD_MICCTRL         164
#define MPSSD_RESV5           165
#define MPSSD_RESV6           166
#define MPSSD_RESV7           167
#define MPSSD_RESV8           168
#define MPSSD_RESV9           169
#define SCIF_COSM_LISTEN_PORT 201
/* Ports below need privilege to bind. */
#define SCIF_ADMIN_PORT_END 1024
#define SCIF_MYO_PORT_0     1025
#define SCIF_MYO_PORT_1     1026
#define SCIF_MYO_PORT_2     1027
#define SCIF_MYO_PORT_3     1028
#define SCIF_MYO_PORT_4     1029
#define SCIF_MYO_PORT_5     1030
#define SCIF_MYO_PORT_6     1031
#define SCIF_MYO_PORT_7     1032
#define SCIF_MYO_PORT_8     1033
#define SCIF_MYO_PORT_9     1034
#define SCIF_ST_PORT_0      1044
#define SCIF_ST_PORT_1      1045
#define SCIF_ST_PORT_2      1046
#define SCIF_ST_PORT_3      1047
#define SCIF_ST_PORT_4      1048
#define SCIF_ST_PORT_5      1049
#define SCIF_ST_PORT_6      1050
#define SCIF_ST_PORT_7      1051
#define SCIF_ST_PORT_8      1052
#define SCIF_ST_PORT_9      1053
/* Ports that scif_bind() chooses itself lie above. */
#define SCIF_PORT_RSVD 1088

#define MICACCESSAPI

typedef int scif_epd_t;
typedef struct scif_pinned_pages *scif_pinned_pages_t;

struct scif_portID {
	uint16_t node;
	uint16_t port;
};
#define portID scif_portID
typedef struct scif_portID portID_t;

/* struct pollfd by another name. */
struct scif_pollepd {
	scif_epd_t epd;
	short events;
	short revents;
};

#define SCIF_OPEN_FAILED     ((scif_epd_t)-1)
#define SCIF_REGISTER_FAILED ((off_t)-1)
#define SCIF_MMAP_FAILED     ((void *)-1)

/*
 * A new endpoint, close-on-exec; SCIF_OPEN_FAILED: ENOMEM, EMFILE, ENFILE; EINVAL WEFT_NODE is no
 * number of a node; ENOTCONN there is no weftd, and WEFT_AUTOSTART=0.
 */
scif_epd_t scif_open(void);

/*
 * Binds to port pn of this node, 0: a free one above SCIF_PORT_RSVD.  Returns the port.  EACCES
 * pn below 1024 and neither root nor WEFT_SCIF_PORTS=any; EINVAL endpoint or port is bound
 * already; EISCONN connected, connecting or listening; ENOSPC.
 */
int scif_bind(scif_epd_t epd, uint16_t pn);

/* Lets requests queue, at most backlog (up to 1024).  EINVAL not bound, backlog < 1; EISCONN. */
int scif_listen(scif_epd_t epd, int backlog);

/*
 * Connects; returns the *local port*, which is not 0.  Blocks until the other side accepts, at
 * most 30 s; with O_NONBLOCK EINPROGRESS comes first, POLLOUT when it is over, and the next call
 * gives the result.  ECONNREFUSED (the endpoint stays bound and may try again), EINVAL port 0,
 * dst NULL or endpoint disconnected, EISCONN, ENODEV no such node, ENOSPC, EOPNOTSUPP listening.
 */
int scif_connect(scif_epd_t epd, struct scif_portID *dst);

/*
 * Accepts the first request: *newepd is connected, bound to the listener's port, *peer says to
 * whom.  SCIF_ACCEPT_SYNC waits for a request, else EAGAIN if there is none.  EINVAL not
 * listening, bad flags, NULL; EINTR a signal, or closed by another thread; EMFILE, ENFILE.
 */
int scif_accept(scif_epd_t epd, struct scif_portID *peer, scif_epd_t *newepd, int flags);

/* Closes epd; with its last duplicate the connection ends and windows are released. */
int scif_close(scif_epd_t epd);

/*
 * Bytes into the peer's queue, which holds 4095; returns how many.  With SCIF_SEND_BLOCK waits
 * until all are there; without sends what has room, 0 if none.  EINVAL len < 0, bad flags;
 * EFAULT msg is NULL; ENOTCONN; ECONNRESET; EINTR if a signal came before the first byte went.
 */
int scif_send(scif_epd_t epd, void *msg, int len, int flags);

/* Bytes out of our own queue; likewise, with SCIF_RECV_BLOCK.  After a reset the queue empties
 * first. */
int scif_recv(scif_epd_t epd, void *msg, int len, int flags);

/*
 * Opens a window: whole pages at addr become reachable for the peer at the offset returned.
 * offset with SCIF_MAP_FIXED is the place, else a hint that is followed if it is free; never
 * negative.  The peer knows the window when this returns.  SCIF_REGISTER_FAILED: EINVAL,
 * EADDRINUSE, EAGAIN no place for a region, EFAULT, ENOMEM, ENOTCONN, ECONNRESET; EOPNOTSUPP of an
 * endpoint inherited by fork(2), memory that cannot be shared.
 */
off_t scif_register(
	scif_epd_t epd, void *addr, size_t len, off_t offset, int prot_flags, int map_flags);

/*
 * Closes all windows inside [offset, offset + len).  Offsets of one that is still in use stay
 * taken until it is not.  EINVAL cuts a window in two, negative; ENXIO no window there; ENOTCONN;
 * ECONNRESET.  All or nothing.
 */
int scif_unregister(scif_epd_t epd, off_t offset, size_t len);

/*
 * Copies len bytes between windows of ours and the peer's, or our memory (v) and the peer's
 * windows.  A range may cross windows that adjoin.  Asynchronous but for SCIF_RMA_SYNC.  EACCES
 * protection of a window, EINVAL bad flags or len 0, ENXIO not inside windows, EFAULT (v) bad
 * memory, ENOTCONN, ECONNRESET.
 */
int scif_readfrom(scif_epd_t epd, off_t loffset, size_t len, off_t roffset, int rma_flags);
int scif_writeto(scif_epd_t epd, off_t loffset, size_t len, off_t roffset, int rma_flags);
int scif_vreadfrom(scif_epd_t epd, void *addr, size_t len, off_t roffset, int rma_flags);
int scif_vwriteto(scif_epd_t epd, void *addr, size_t len, off_t roffset, int rma_flags);

/* Marks the copies begun by us (INIT_SELF) or by the peer (INIT_PEER).  EINVAL, ENOTCONN,
 * ECONNRESET. */
int scif_fence_mark(scif_epd_t epd, int flags, int *mark);
/*
 * Waits until what was marked is complete.  EINVAL mark is of no scif_fence_mark() here; ENOTCONN,
 * ECONNRESET.
 */
int scif_fence_wait(scif_epd_t epd, int mark);
/*
 * When the copies of one side begun so far are complete, writes 8 bytes: lval to our window at
 * loff, rval to the peer's at roff.  EINVAL flags, alignment to 4; ENXIO; EACCES; ENOTCONN;
 * ECONNRESET.
 */
int scif_fence_signal(
	scif_epd_t epd, off_t loff, uint64_t lval, off_t roff, uint64_t rval, int flags);

/*
 * Number of nodes in the network, this one included; up to len of their ids in nodes, this
 * node's in *self.  Either pointer may be NULL.  EINVAL len < 0.
 */
int scif_get_nodeIDs(uint16_t *nodes, int len, uint16_t *self);

/*
 * poll(2) with the states of endpoints: POLLERR unless listening, connecting or connected, POLLHUP
 * without POLLIN when disconnected and empty.  Other file descriptors may be among them.  Waits at
 * most timeout ms (negative: for ever); returns how many have revents.  EINVAL nepds beyond the
 * limit of open files; EINTR; EFAULT; ENOMEM.
 */
int scif_poll(struct scif_pollepd *epds, unsigned int nepds, long timeout);

/* The file descriptor of epd, which is epd.  EBADF, ENOTTY. */
int scif_get_fd(scif_epd_t epd);

/*
 * Maps [offset, offset + len) of the peer's windows, for SCIF_PROT_*; addr is a hint, or, with
 * SCIF_MAP_FIXED, the place.  It stays mapped, whatever becomes of the window and the connection.
 * SCIF_MMAP_FAILED: EOPNOTSUPP where pages cannot be shared; ENXIO not inside windows; EACCES their
 * protection; EINVAL; ENOTCONN; ECONNRESET; ENOMEM, also beyond 4096 mappings of the peer's memory.
 */
void *scif_mmap(void *addr, size_t len, int prot, int flags, scif_epd_t epd, off_t offset);
/*
 * munmap(2) of [addr, addr + len), up to the end of the page, which gives up such mappings there.
 * EINVAL addr is no multiple of the page size, len is 0.
 */
int scif_munmap(void *addr, size_t len);

/* ---- Of the kernel's interface, with the conventions of this header; version node WEFT_1.0 ----
 */

/* scif_get_nodeIDs() by its later name. */
int scif_get_node_ids(uint16_t *nodes, int len, uint16_t *self);

/* A handle for pages from which windows can be made.  EINVAL, EFAULT, ENOMEM. */
int scif_pin_pages(
	void *addr, size_t len, int prot_flags, int map_flags, scif_pinned_pages_t *pinned_pages);
/* Ends the handle; windows made from it stay.  EINVAL no such handle. */
int scif_unpin_pages(scif_pinned_pages_t pinned_pages);
/* As scif_register(), of such a handle; EINVAL it is none. */
off_t scif_register_pinned_pages(
	scif_epd_t epd, scif_pinned_pages_t pinned_pages, off_t offset, int map_flags);

struct scif_range {
	void *cookie;
	int nr_pages;
	int prot_flags;
	uint64_t *phys_addr; /* what an adapter can register: an address of this process */
	void **va;
};

/*
 * Maps pages of one window of the peer, and lists their addresses.  EOPNOTSUPP where pages cannot
 * be shared; ENXIO not inside one window; EINVAL; ENOTCONN; ECONNRESET; ENOMEM.
 */
int scif_get_pages(scif_epd_t epd, off_t offset, size_t len, struct scif_range **pages);
/* Unmaps them; *pages is gone.  EINVAL not of scif_get_pages(), or given back before. */
int scif_put_pages(struct scif_range *pages);

/* A node, this one included, as clients see it; one for all of them, as long as it is there. */
struct scif_peer_dev {
	struct {
		const char *init_name;
		void *driver_data; /* the program's */
	} dev;
	uint8_t dnode; /* nodes above 255 are not told of */
};

struct scif_client {
	const char *name;
	void (*probe)(struct scif_peer_dev *spdev);
	void (*remove)(struct scif_peer_dev *spdev);
	struct {
		const char *name;
		void *subsys;
	} si; /* the library's */
};

/*
 * Calls client->probe() for each node that is there, now, and for each that comes;
 * client->remove() for each that goes.  Later calls come from a thread of the library, one at a
 * time, and may make calls of this header.  *client stays the caller's, who keeps it until
 * scif_client_unregister(), which calls remove() for each node that is there.  EINVAL NULL, EEXIST
 * is registered, ENOMEM, EAGAIN no thread.
 */
int scif_client_register(struct scif_client *client);
/* Ends that; without effect where the client is not registered. */
void scif_client_unregister(struct scif_client *client);

/* ---- The kernel's convention, <weft/scif_kernel.h>: an endpoint is a pointer there ---- */

struct scif_endpt;
/* The file descriptor of such an endpoint, which stays the endpoint's; negative errno: -EBADF. */
int weft_scif_to_fd(struct scif_endpt *epd);
/* The reverse; closing either closes both.  NULL and errno EBADF, ENOTTY. */
struct scif_endpt *weft_scif_from_fd(int fd);

#ifdef __cplusplus
}
#endif

#endif
