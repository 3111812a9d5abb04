// SPDX-License-Identifier: BSD-3-Clause
/* Connections: events, private data, waiting, the end. */
#include "rpma/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpma/log.h"
#include "rpma/peer_cfg.h"

/* ---- making and deleting ---- */

/* A page of its own, shared, so that a fork takes nothing from under the adapter. */
static int make_flush_dst(struct rpma_conn *conn)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int ret;

	conn->flush_page =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (conn->flush_page == MAP_FAILED)
		return RPMA_E_NOMEM;
	ret = rpma_mr_reg(conn->link.peer, conn->flush_page, sizeof(uint64_t),
		RPMA_MR_USAGE_READ_DST, &conn->flush_dst);
	if (ret)
		munmap(conn->flush_page, page);
	return ret;
}

static int delete_flush_dst(struct rpma_conn *conn)
{
	int ret = rpma_mr_dereg(&conn->flush_dst);

	munmap(conn->flush_page, sysconf(_SC_PAGESIZE));
	return ret;
}

int conn_new(struct link *link, struct rpma_conn **conn_ptr)
{
	struct rpma_conn *conn = calloc(1, sizeof *conn);
	int ret;

	if (!conn)
		return RPMA_E_NOMEM;
	conn->link = *link;
	atomic_init(&conn->pdata_known, link->pdata.ptr);
	ret = make_flush_dst(conn);
	if (ret)
		goto no_page;
	conn->events = rdma_create_event_channel();
	if (!conn->events) {
		ret = PROVIDER_FAILED("rdma_create_event_channel()", errno);
		goto no_channel;
	}
	if (rdma_migrate_id(link->id, conn->events)) {
		ret = PROVIDER_FAILED("rdma_migrate_id()", errno);
		goto no_migration;
	}
	*conn_ptr = conn;
	return 0;
no_migration:
	rdma_destroy_event_channel(conn->events);
no_channel:
	(void)delete_flush_dst(conn);
no_page:
	free(conn);
	return ret;
}

int conn_delete(struct rpma_conn *conn)
{
	int ret;

	/* First what might still write into the page. */
	rdma_destroy_qp(conn->link.id);
	ret = delete_flush_dst(conn);
	if (link_destroy(&conn->link))
		ret = RPMA_E_PROVIDER;
	rdma_destroy_event_channel(conn->events);
	free(conn);
	return ret;
}

int rpma_conn_delete(struct rpma_conn **conn_ptr)
{
	struct rpma_conn *conn;

	if (!conn_ptr)
		return RPMA_E_INVAL;
	conn = *conn_ptr;
	*conn_ptr = NULL;
	return conn ? conn_delete(conn) : 0;
}
RPMA_SINCE_0_10(rpma_conn_delete);

int rpma_conn_disconnect(struct rpma_conn *conn)
{
	if (!conn)
		return RPMA_E_INVAL;
	LOG_NOTICE("disconnecting");
	return rdma_disconnect(conn->link.id) ? PROVIDER_FAILED("rdma_disconnect()", errno) : 0;
}
RPMA_SINCE_0_10(rpma_conn_disconnect);

/* ---- events ---- */

int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd)
{
	if (!conn || !fd)
		return RPMA_E_INVAL;
	*fd = conn->events->fd;
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_get_event_fd);

static enum rpma_conn_event name_of(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		return RPMA_CONN_ESTABLISHED;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return RPMA_CONN_LOST;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return RPMA_CONN_CLOSED;
	case RDMA_CM_EVENT_REJECTED:
		return RPMA_CONN_REJECTED;
	case RDMA_CM_EVENT_UNREACHABLE:
		return RPMA_CONN_UNREACHABLE;
	default:
		return RPMA_CONN_UNDEFINED;
	}
}

/* The passive side has its data from the request. */
static int on_established(struct rpma_conn *conn, const struct rdma_cm_event *event)
{
	int ret;

	if (atomic_load_explicit(&conn->pdata_known, memory_order_relaxed))
		return 0;
	ret = link_keep_private_data(&conn->link, event);
	/* Other threads look at what is kept only after they have seen this. */
	atomic_store_explicit(&conn->pdata_known, true, memory_order_release);
	return ret;
}

int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event)
{
	enum rpma_conn_event name;
	struct rdma_cm_event *e;
	int ret = 0;

	if (!conn || !event)
		return RPMA_E_INVAL;
	if (rdma_get_cm_event(conn->events, &e))
		return errno == EAGAIN || errno == ENODATA
			       ? RPMA_E_NO_EVENT
			       : PROVIDER_FAILED("rdma_get_cm_event()", errno);
	name = name_of(e->event);
	if (name == RPMA_CONN_UNDEFINED) {
		LOG_ERROR("%s is no event of a connection", rdma_event_str(e->event));
		ret = RPMA_E_UNKNOWN;
	} else if (name == RPMA_CONN_ESTABLISHED) {
		ret = on_established(conn, e);
	}
	if (rdma_ack_cm_event(e) && !ret)
		ret = PROVIDER_FAILED("rdma_ack_cm_event()", errno);
	if (ret)
		return ret;
	LOG_NOTICE("%s", rpma_utils_conn_event_2str(name));
	*event = name;
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_next_event);

int rpma_conn_get_private_data(const struct rpma_conn *conn, struct rpma_conn_private_data *pdata)
{
	if (!conn || !pdata)
		return RPMA_E_INVAL;
	*pdata = (struct rpma_conn_private_data){0};
	if (atomic_load_explicit(&conn->pdata_known, memory_order_acquire))
		*pdata = conn->link.pdata;
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_get_private_data);

int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg)
{
	bool direct_write;

	if (!conn || rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &direct_write))
		return RPMA_E_INVAL;
	atomic_store_explicit(&conn->direct_write_to_pmem, direct_write, memory_order_relaxed);
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_apply_remote_peer_cfg);

/* ---- queues ---- */

int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr)
{
	if (!conn || !cq_ptr)
		return RPMA_E_INVAL;
	*cq_ptr = conn->link.cq;
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_get_cq);

int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr)
{
	if (!conn || !rcq_ptr)
		return RPMA_E_INVAL;
	*rcq_ptr = conn->link.rcq;
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_get_rcq);

int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num)
{
	if (!conn || !qp_num)
		return RPMA_E_INVAL;
	*qp_num = conn->link.id->qp->qp_num;
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_get_qp_num);

int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd)
{
	if (!conn || !fd)
		return RPMA_E_INVAL;
	if (!conn->link.channel)
		return RPMA_E_NOT_SHARED_CHNL;
	*fd = conn->link.channel->fd;
	return 0;
}

int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq_ptr, bool *is_rcq)
{
	struct rpma_cq *cq;
	struct ibv_cq *fired;
	void *context;
	int ret;

	(void)flags;
	if (!conn || !cq_ptr)
		return RPMA_E_INVAL;
	if (!conn->link.channel)
		return RPMA_E_NOT_SHARED_CHNL;
	if (ibv_get_cq_event(conn->link.channel, &fired, &context))
		return RPMA_E_NO_COMPLETION;
	ibv_ack_cq_events(fired, 1);
	if (fired == conn->link.cq->cq)
		cq = conn->link.cq;
	else if (conn->link.rcq && fired == conn->link.rcq->cq)
		cq = conn->link.rcq;
	else
		return RPMA_E_UNKNOWN;
	ret = cq_arm(cq);
	if (ret)
		return ret;
	*cq_ptr = cq;
	if (is_rcq)
		*is_rcq = cq != conn->link.cq;
	return 0;
}
