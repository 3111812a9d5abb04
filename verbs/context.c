// SPDX-License-Identifier: BSD-3-Clause
// Open and close; the tables of functions that inline verbs call.
#include "verbs/context.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "rdv/rdv.h"
#include "roce/roce.h"
#include "verbs/peer_clients.h"

/* Fills slots that nobody has called since libibverbs 1.1; a NULL there would crash who does. */
static void *unused_slot(void)
{
	return fail_null(EOPNOTSUPP);
}

static const struct ibv_context_ops context_ops = {
	._compat_query_device = ibv_query_device,
	._compat_query_port = ibv_query_port,
	._compat_alloc_pd = unused_slot,
	._compat_dealloc_pd = unused_slot,
	._compat_reg_mr = unused_slot,
	._compat_rereg_mr = unused_slot,
	._compat_dereg_mr = unused_slot,
	.alloc_mw = verbs_alloc_mw,
	.bind_mw = verbs_bind_mw,
	.dealloc_mw = verbs_dealloc_mw,
	._compat_create_cq = unused_slot,
	.poll_cq = verbs_poll_cq,
	.req_notify_cq = verbs_req_notify_cq,
	._compat_cq_event = unused_slot,
	._compat_resize_cq = unused_slot,
	._compat_destroy_cq = unused_slot,
	._compat_create_srq = unused_slot,
	._compat_modify_srq = unused_slot,
	._compat_query_srq = unused_slot,
	._compat_destroy_srq = unused_slot,
	.post_srq_recv = verbs_post_srq_recv,
	._compat_create_qp = unused_slot,
	._compat_query_qp = unused_slot,
	._compat_modify_qp = unused_slot,
	._compat_destroy_qp = unused_slot,
	.post_send = verbs_post_send,
	.post_recv = verbs_post_recv,
	._compat_create_ah = unused_slot,
	._compat_destroy_ah = unused_slot,
	._compat_attach_mcast = unused_slot,
	._compat_detach_mcast = unused_slot,
	._compat_async_event = unused_slot,
};

/* What is NULL here makes the inline verb return EOPNOTSUPP by itself. */
static const struct verbs_context extended_ops = {
	.query_port = verbs_query_port,
	.query_device_ex = verbs_query_device_ex,
	.create_qp_ex = verbs_create_qp_ex,
	.open_qp = verbs_open_qp,
	.create_srq_ex = verbs_create_srq_ex,
	.get_srq_num = verbs_get_srq_num,
	.open_xrcd = verbs_open_xrcd,
	.close_xrcd = verbs_close_xrcd,
	.create_cq_ex = verbs_create_cq_ex,
	.modify_cq = verbs_modify_cq,
	.post_srq_ops = verbs_post_srq_ops,
	.alloc_td = verbs_alloc_td,
	.dealloc_td = verbs_dealloc_td,
	.alloc_parent_domain = verbs_alloc_parent_domain,
	.query_rt_values = verbs_query_rt_values,
	.alloc_null_mr = verbs_alloc_null_mr,
	.reg_dm_mr = verbs_reg_dm_mr,
	.advise_mr = verbs_advise_mr,
	.alloc_dm = verbs_alloc_dm,
	.free_dm = verbs_free_dm,
	.sz = sizeof(struct verbs_context),
};

static int count_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : (int)n;
}

/*
 * The async events of a process come by one eventfd.  Each context gets a duplicate, so that it
 * can be polled, closed and compared on its own; O_NONBLOCK and the events are shared: of two
 * contexts of one process, whichever asks first gets the event.
 */
static int dup_async_fd(void)
{
	int rc = rdv_revive(); /* a daemon may have closed all its fds since */
	int fd;

	if (rc)
		return rc;
	fd = fcntl(hca_async_fd(), F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static void init_context(struct ibv_context *c, struct ibv_device *device, int async_fd, int cmd_fd)
{
	c->device = device;
	c->ops = context_ops;
	c->cmd_fd = cmd_fd;
	c->async_fd = async_fd;
	c->num_comp_vectors = count_cpus();
	c->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&c->mutex, NULL);
}

/* cmd_fd belongs to the context, unless this fails. */
static struct ibv_context *make_context(
	struct ibv_device *device, int cmd_fd, struct hca_card *card)
{
	struct verbs_ctx *ctx = malloc(sizeof(*ctx));
	int fd;

	if (!ctx)
		return fail_null(ENOMEM);
	fd = dup_async_fd();
	if (fd < 0) {
		free(ctx);
		return fail_null(fd);
	}
	ctx->v = extended_ops;
	ctx->card = card;
	init_context(&ctx->v.context, device, fd, cmd_fd);
	return &ctx->v.context;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	const struct fabric_page *page;
	struct ibv_context *context;
	int rc, cmd_fd;

	peer_clients_load();
	rc = hca_open(&page);
	if (!rc)
		rc = roce_start();
	cmd_fd = rc ? rc : hca_cmd_fd();
	/* A daemon closed it, or ulimit -f forbids it; nothing but an import needs it. */
	if (cmd_fd == -EBADF || cmd_fd == -EFBIG)
		cmd_fd = -1;
	else if (cmd_fd < 0)
		return fail_null(cmd_fd);
	context = make_context(device, cmd_fd, NULL);
	if (!context) {
		int err = errno;

		if (cmd_fd >= 0)
			close(cmd_fd);
		errno = err;
	}
	return context;
}

/* Objects of the context that still live become unusable, as ibv_close_device(3) says. */
int ibv_close_device(struct ibv_context *context)
{
	close(context->async_fd);
	if (context->cmd_fd >= 0)
		close(context->cmd_fd);
	pthread_mutex_destroy(&context->mutex);
	if (to_ctx(context)->card)
		hca_card_put(to_ctx(context)->card);
	free(to_ctx(context));
	return 0;
}

/*
 * The device of the process that cmd_fd came from.  Of this process everything can be imported by
 * handle; of another, the device memory: its PDs and MRs name memory that is not ours to use.
 */
struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *context;
	struct hca_card *card = NULL;
	struct ibv_device **list;
	int rc = 0;

	if (fcntl(cmd_fd, F_GETFD) < 0)
		return NULL;
	list = ibv_get_device_list(NULL);
	if (!list)
		return NULL;
	if (!hca_cmd_fd_is_ours(cmd_fd))
		rc = hca_card_import(cmd_fd, &card);
	context = rc ? fail_null(rc) : make_context(list[0], cmd_fd, card);
	if (!context && card) {
		rc = errno;
		hca_card_put(card);
		errno = rc;
	}
	ibv_free_device_list(list);
	return context;
}
