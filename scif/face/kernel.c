// SPDX-License-Identifier: BSD-3-Clause
/*
 * The calls in the kernel's convention: a pointer stands for a file descriptor, which alone says
 * whether it is good; nothing lies where it points.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>

#include "scif/ep/ep.h"
#include "scif/face/poll.h"
#include "scif/face/user.h"
#include "weft/scif_kernel.h"

#define API __attribute__((visibility("default")))

enum { FEW = 16, NO_FD = INT_MAX };

/* No address of a program begins like that, and no fd has a number like NO_FD. */
static const uint64_t MARK = UINT64_C(0x5c1f) << 48, MARK_MASK = UINT64_C(0xffffffff) << 32;

static scif_epd_t epd_of(int fd)
{
	return (scif_epd_t)(MARK | (unsigned)fd);
}

static int fd_of(scif_epd_t epd)
{
	uint64_t v = (uintptr_t)epd;
	int fd = (int)(v & ~MARK_MASK);

	return (v & MARK_MASK) == MARK && fd >= 0 ? fd : NO_FD;
}

/* What a call answered; errno is as it was before it. */
static int64_t answer(int64_t ret, int err)
{
	if (ret == -1) {
		ret = -errno;
		errno = err;
	}
	return ret;
}

/* There is one address space. */
static int user_flags(int map_flags)
{
	return map_flags & ~SCIF_MAP_KERNEL;
}

static struct scif_portID *user_port(struct scif_port_id *id)
{
	return (struct scif_portID *)id;
}

API int weft_scif_to_fd(scif_epd_t epd)
{
	struct scif_ep *ep;
	int fd = fd_of(epd);

	if (ep_find(fd, &ep))
		return -EBADF;
	ep_put(ep);
	return fd;
}

API scif_epd_t weft_scif_from_fd(int fd)
{
	struct scif_ep *ep;
	int ret = ep_find(fd, &ep);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	ep_put(ep);
	return epd_of(fd);
}

API scif_epd_t scif_open(void)
{
	int err = errno, fd = user_open();

	errno = err;
	return fd < 0 ? NULL : epd_of(fd);
}

API int scif_bind(scif_epd_t epd, u16 pn)
{
	int err = errno;

	return answer(user_bind(fd_of(epd), pn), err);
}

API int scif_listen(scif_epd_t epd, int backlog)
{
	int err = errno;

	return answer(user_listen(fd_of(epd), backlog), err);
}

API int scif_connect(scif_epd_t epd, struct scif_port_id *dst)
{
	int err = errno;

	return answer(user_connect(fd_of(epd), user_port(dst)), err);
}

API int scif_accept(scif_epd_t epd, struct scif_port_id *peer, scif_epd_t *newepd, int flags)
{
	int err = errno, fd, ret;

	ret = answer(user_accept(fd_of(epd), user_port(peer), newepd ? &fd : NULL, flags), err);
	if (!ret)
		*newepd = epd_of(fd);
	return ret;
}

API int scif_close(scif_epd_t epd)
{
	int err = errno;

	return answer(user_close(fd_of(epd)), err);
}

API int scif_send(scif_epd_t epd, void *msg, int len, int flags)
{
	int err = errno;

	return answer(user_send(fd_of(epd), msg, len, flags), err);
}

API int scif_recv(scif_epd_t epd, void *msg, int len, int flags)
{
	int err = errno;

	return answer(user_recv(fd_of(epd), msg, len, flags), err);
}

API off_t scif_register(
	scif_epd_t epd, void *addr, size_t len, off_t offset, int prot_flags, int map_flags)
{
	int err = errno;

	return answer(
		user_register(fd_of(epd), addr, len, offset, prot_flags, user_flags(map_flags)),
		err);
}

API int scif_unregister(scif_epd_t epd, off_t offset, size_t len)
{
	int err = errno;

	return answer(user_unregister(fd_of(epd), offset, len), err);
}

API int scif_readfrom(scif_epd_t epd, off_t loffset, size_t len, off_t roffset, int rma_flags)
{
	int err = errno;

	return answer(user_readfrom(fd_of(epd), loffset, len, roffset, rma_flags), err);
}

API int scif_writeto(scif_epd_t epd, off_t loffset, size_t len, off_t roffset, int rma_flags)
{
	int err = errno;

	return answer(user_writeto(fd_of(epd), loffset, len, roffset, rma_flags), err);
}

API int scif_vreadfrom(scif_epd_t epd, void *addr, size_t len, off_t roffset, int rma_flags)
{
	int err = errno;

	return answer(user_vreadfrom(fd_of(epd), addr, len, roffset, rma_flags), err);
}

API int scif_vwriteto(scif_epd_t epd, void *addr, size_t len, off_t roffset, int rma_flags)
{
	int err = errno;

	return answer(user_vwriteto(fd_of(epd), addr, len, roffset, rma_flags), err);
}

API int scif_fence_mark(scif_epd_t epd, int flags, int *mark)
{
	int err = errno;

	return answer(user_fence_mark(fd_of(epd), flags, mark), err);
}

API int scif_fence_wait(scif_epd_t epd, int mark)
{
	int err = errno;

	return answer(user_fence_wait(fd_of(epd), mark), err);
}

API int scif_fence_signal(scif_epd_t epd, off_t loff, u64 lval, off_t roff, u64 rval, int flags)
{
	int err = errno;

	return answer(user_fence_signal(fd_of(epd), loff, lval, roff, rval, flags), err);
}

API int scif_get_node_ids(u16 *nodes, int len, u16 *self)
{
	int err = errno;

	return answer(user_get_node_ids(nodes, len, self), err);
}

API int scif_pin_pages(
	void *addr, size_t len, int prot_flags, int map_flags, scif_pinned_pages_t *pinned_pages)
{
	int err = errno;

	return answer(
		user_pin_pages(addr, len, prot_flags, user_flags(map_flags), pinned_pages), err);
}

API int scif_unpin_pages(scif_pinned_pages_t pinned_pages)
{
	int err = errno;

	return answer(user_unpin_pages(pinned_pages), err);
}

API off_t scif_register_pinned_pages(
	scif_epd_t epd, scif_pinned_pages_t pinned_pages, off_t offset, int map_flags)
{
	int err = errno;

	return answer(
		user_register_pinned_pages(fd_of(epd), pinned_pages, offset, user_flags(map_flags)),
		err);
}

API int scif_get_pages(scif_epd_t epd, off_t offset, size_t len, struct scif_range **pages)
{
	int err = errno;

	return answer(user_get_pages(fd_of(epd), offset, len, pages), err);
}

API int scif_put_pages(struct scif_range *pages)
{
	int err = errno;

	return answer(user_put_pages(pages), err);
}

API int scif_poll(struct scif_pollepd *epds, unsigned int nepds, long timeout)
{
	struct pollfd few[FEW], *fds = few;
	int err = errno, ret = poll_check(epds, nepds);

	if (!ret && nepds > FEW)
		fds = malloc(nepds * sizeof(*fds));
	if (!ret && !fds)
		ret = -ENOMEM;
	for (unsigned i = 0; !ret && i < nepds; i++)
		fds[i] = (struct pollfd){.fd = fd_of(epds[i].epd), .events = epds[i].events};
	if (!ret)
		ret = poll_eps(fds, nepds, timeout);
	for (unsigned i = 0; ret >= 0 && i < nepds; i++)
		epds[i].revents = (unsigned short)fds[i].revents;
	if (fds != few)
		free(fds);
	errno = err;
	return ret;
}

API int scif_client_register(struct scif_client *client)
{
	int err = errno;

	return answer(user_client_register(client), err);
}

API void scif_client_unregister(struct scif_client *client)
{
	user_client_unregister(client);
}
