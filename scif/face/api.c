// SPDX-License-Identifier: BSD-3-Clause
/* The public calls: arguments and errors as user mode has them; no logic. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

#include "scif.h"
#include "scif/ep/check.h"
#include "scif/ep/ep.h"
#include "scif/face/client.h"
#include "scif/face/let_go.h"
#include "scif/face/poll.h"
#include "scif/heir/heir_call.h"
#include "scif/link/cm.h"
#include "scif/link/fence.h"
#include "scif/link/open.h"
#include "scif/link/service.h"
#include "scif/link/stream.h"
#include "scif/win/map.h"
#include "scif/win/reg.h"
#include "scif/win/rma.h"

#define API __attribute__((visibility("default")))

/* -1 and errno for what failed; what did not leaves errno as it was before. */
static int64_t answer_from(const char *call, struct scif_ep *ep, int64_t ret, int err)
{
	if (check_on())
		check_end(call, ep, ret);
	errno = ret < 0 ? (int)-ret : err;
	return ret < 0 ? -1 : ret;
}

/* The end of a call on ep. */
static int64_t leave_from(const char *call, struct scif_ep *ep, int64_t ret, int err)
{
	ret = answer_from(call, ep, ret, err);
	ep_put(ep);
	return ret;
}

#define answer(ret, err)    answer_from(__func__, NULL, ret, err)
#define leave(ep, ret, err) leave_from(__func__, ep, ret, err)

API scif_epd_t scif_open(void)
{
	int err = errno, ret = node_check();
	struct scif_ep *ep;

	if (!ret)
		ret = service_start();
	if (!ret)
		ret = node_join();
	if (ret)
		return answer(ret, err);
	ep = ep_new();
	if (!ep)
		return answer(-ENOMEM, err);
	return leave(ep, ep_open(ep), err);
}

API int scif_close(scif_epd_t epd)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find(epd, &ep);
	if (ret)
		return answer(ret, err);
	close(epd);
	ep_let_go(ep);
	return leave(ep, 0, err);
}

API int scif_bind(scif_epd_t epd, uint16_t pn)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find(epd, &ep);
	if (ret)
		return answer(ret, err);
	return leave(ep, ep->inherited ? heir_bind(ep, epd, pn) : cm_bind(ep, pn), err);
}

API int scif_listen(scif_epd_t epd, int backlog)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find(epd, &ep);
	if (ret)
		return answer(ret, err);
	ret = ep->inherited ? heir_listen(ep, epd, backlog) : cm_listen(ep, backlog);
	return leave(ep, ret, err);
}

API int scif_connect(scif_epd_t epd, struct scif_portID *dst)
{
	int err = errno, ret, flags;
	struct scif_ep *ep;
	struct scif_id id;
	bool block;

	ret = ep_find(epd, &ep);
	if (ret)
		return answer(ret, err);
	if (!dst) {
		check_why("dst is NULL");
		return leave(ep, -EINVAL, err);
	}
	id = (struct scif_id){dst->node, dst->port};
	flags = fcntl(epd, F_GETFL);
	block = flags < 0 || !(flags & O_NONBLOCK);
	ret = ep->inherited ? heir_connect(ep, epd, id, block) : cm_connect(ep, epd, id, block);
	return leave(ep, ret, err);
}

API int scif_accept(scif_epd_t epd, struct scif_portID *peer, scif_epd_t *newepd, int flags)
{
	int err = errno, ret;
	struct scif_ep *ep;
	struct scif_id id;

	ret = ep_find(epd, &ep);
	if (ret)
		return answer(ret, err);
	if (!peer || !newepd || (flags & ~SCIF_ACCEPT_SYNC)) {
		check_why(!peer     ? "peer is NULL"
			  : !newepd ? "newepd is NULL"
				    : "flags has bits other than SCIF_ACCEPT_SYNC");
		return leave(ep, -EINVAL, err);
	}
	ret = ep->inherited ? heir_accept(ep, epd, flags & SCIF_ACCEPT_SYNC, &id)
			    : cm_accept(ep, epd, flags & SCIF_ACCEPT_SYNC, &id);
	if (ret < 0)
		return leave(ep, ret, err);
	*newepd = ret;
	*peer = (struct scif_portID){id.node, id.port};
	return leave(ep, 0, err);
}

static int bad_message(int len)
{
	check_why(len < 0 ? "len is negative" : "flags has unknown bits");
	return -EINVAL;
}

API int scif_send(scif_epd_t epd, void *msg, int len, int flags)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find_again(epd, &ep);
	if (ret)
		return answer(ret, err);
	if (len < 0 || (flags & ~SCIF_SEND_BLOCK))
		return leave(ep, bad_message(len), err);
	if (!msg && len)
		return leave(ep, -EFAULT, err);
	if (len && ep->inherited)
		ret = heir_send(ep, epd, msg, len, flags & SCIF_SEND_BLOCK);
	else if (len)
		ret = stream_send(ep, epd, msg, len, flags & SCIF_SEND_BLOCK);
	return leave(ep, ret, err);
}

API int scif_recv(scif_epd_t epd, void *msg, int len, int flags)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find_again(epd, &ep);
	if (ret)
		return answer(ret, err);
	if (len < 0 || (flags & ~SCIF_RECV_BLOCK))
		return leave(ep, bad_message(len), err);
	if (!msg && len)
		return leave(ep, -EFAULT, err);
	if (len && ep->inherited)
		ret = heir_recv(ep, epd, msg, len, flags & SCIF_RECV_BLOCK);
	else if (len)
		ret = stream_recv(ep, epd, msg, len, flags & SCIF_RECV_BLOCK);
	return leave(ep, ret, err);
}

API off_t scif_register(
	scif_epd_t epd, void *addr, size_t len, off_t offset, int prot_flags, int map_flags)
{
	int err = errno;
	struct scif_ep *ep;
	int64_t ret;

	ret = ep_find(epd, &ep);
	if (ret)
		return answer(ret, err);
	ret = ep->inherited ? heir_register(ep, epd, addr, len, offset, prot_flags, map_flags)
			    : reg_register(ep, addr, len, offset, prot_flags, map_flags);
	return leave(ep, ret, err);
}

API int scif_unregister(scif_epd_t epd, off_t offset, size_t len)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find(epd, &ep);
	if (ret)
		return answer(ret, err);
	ret = ep->inherited ? heir_unregister(ep, epd, offset, len)
			    : reg_unregister(ep, offset, len);
	return leave(ep, ret, err);
}

static int copy(const char *call, scif_epd_t epd, const struct rma_args *args)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find_again(epd, &ep);
	if (ret)
		return answer_from(call, NULL, ret, err);
	ret = ep->inherited ? heir_copy(ep, epd, args) : rma_copy(ep, args);
	return leave_from(call, ep, ret, err);
}

API int scif_readfrom(scif_epd_t epd, off_t loffset, size_t len, off_t roffset, int rma_flags)
{
	const struct rma_args args = {
		.loff = loffset, .len = len, .roff = roffset, .flags = rma_flags};

	return copy(__func__, epd, &args);
}

API int scif_writeto(scif_epd_t epd, off_t loffset, size_t len, off_t roffset, int rma_flags)
{
	const struct rma_args args = {
		.write = true, .loff = loffset, .len = len, .roff = roffset, .flags = rma_flags};

	return copy(__func__, epd, &args);
}

API int scif_vreadfrom(scif_epd_t epd, void *addr, size_t len, off_t roffset, int rma_flags)
{
	const struct rma_args args = {
		.memory = true, .addr = addr, .len = len, .roff = roffset, .flags = rma_flags};

	return copy(__func__, epd, &args);
}

API int scif_vwriteto(scif_epd_t epd, void *addr, size_t len, off_t roffset, int rma_flags)
{
	const struct rma_args args = {.write = true,
		.memory = true,
		.addr = addr,
		.len = len,
		.roff = roffset,
		.flags = rma_flags};

	return copy(__func__, epd, &args);
}

API int scif_fence_mark(scif_epd_t epd, int flags, int *mark)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find(epd, &ep);
	if (ret)
		return answer(ret, err);
	ret = ep->inherited ? heir_mark(ep, epd, flags, mark) : fence_mark(ep, flags, mark);
	return leave(ep, ret, err);
}

API int scif_fence_wait(scif_epd_t epd, int mark)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find(epd, &ep);
	if (ret)
		return answer(ret, err);
	return leave(ep, ep->inherited ? heir_wait(ep, epd, mark) : fence_wait(ep, mark), err);
}

API int scif_fence_signal(
	scif_epd_t epd, off_t loff, uint64_t lval, off_t roff, uint64_t rval, int flags)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find(epd, &ep);
	if (ret)
		return answer(ret, err);
	ret = ep->inherited ? heir_signal(ep, epd, loff, lval, roff, rval, flags)
			    : fence_signal(ep, loff, lval, roff, rval, flags);
	return leave(ep, ret, err);
}

API int scif_get_nodeIDs(uint16_t *nodes, int len, uint16_t *self)
{
	int err = errno;

	return answer(node_list(nodes, len, self), err);
}

API int scif_get_node_ids(uint16_t *nodes, int len, uint16_t *self)
{
	return scif_get_nodeIDs(nodes, len, self);
}

_Static_assert(sizeof(struct scif_pollepd) == sizeof(struct pollfd) &&
		       offsetof(struct scif_pollepd, events) == offsetof(struct pollfd, events) &&
		       offsetof(struct scif_pollepd, revents) == offsetof(struct pollfd, revents),
	"a poll entry is a struct pollfd");

API int scif_poll(struct scif_pollepd *epds, unsigned int nepds, long timeout)
{
	int err = errno;

	return answer(poll_eps((struct pollfd *)epds, nepds, timeout), err);
}

API int scif_get_fd(scif_epd_t epd)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find(epd, &ep);
	return ret ? answer(ret, err) : leave(ep, epd, err);
}

/* ---- pages ---- */

API void *scif_mmap(void *addr, size_t len, int prot, int flags, scif_epd_t epd, off_t offset)
{
	int err = errno, ret;
	struct scif_ep *ep;
	void *mapped;

	ret = ep_find(epd, &ep);
	if (!ret) {
		ret = map_window(ep, addr, len, prot, flags, offset, &mapped);
		ep_put(ep);
	}
	return answer(ret, err) ? SCIF_MMAP_FAILED : mapped;
}

API int scif_munmap(void *addr, size_t len)
{
	int err = errno;

	return answer(unmap_window(addr, len), err);
}

API int scif_pin_pages(
	void *addr, size_t len, int prot_flags, int map_flags, scif_pinned_pages_t *pinned_pages)
{
	int err = errno;

	return answer(pin_pages(addr, len, prot_flags, map_flags, pinned_pages), err);
}

API int scif_unpin_pages(scif_pinned_pages_t pinned_pages)
{
	int err = errno;

	return answer(unpin_pages(pinned_pages), err);
}

API off_t scif_register_pinned_pages(
	scif_epd_t epd, scif_pinned_pages_t pinned_pages, off_t offset, int map_flags)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find(epd, &ep);
	return ret ? answer(ret, err)
		   : leave(ep, reg_pinned(ep, pinned_pages, offset, map_flags), err);
}

API int scif_get_pages(scif_epd_t epd, off_t offset, size_t len, struct scif_range **pages)
{
	int err = errno, ret;
	struct scif_ep *ep;

	ret = ep_find(epd, &ep);
	return ret ? answer(ret, err) : leave(ep, map_get_pages(ep, offset, len, pages), err);
}

API int scif_put_pages(struct scif_range *pages)
{
	int err = errno;

	return answer(map_put_pages(pages), err);
}

API int scif_client_register(struct scif_client *client)
{
	int err = errno;

	return answer(client_add(client), err);
}

API void scif_client_unregister(struct scif_client *client)
{
	int err = errno;

	client_remove(client);
	errno = err;
}
