// SPDX-License-Identifier: BSD-3-Clause
/*
 * What librpma answers when a call below it fails.  This program has functions of libibverbs,
 * librdmacm and libc under their own names, so that librpma calls these: each passes on, and one of
 * them, a different one in each run of the scenario, fails.  Each run must end in the right error,
 * and leave nothing open.
 */
#pragma GCC visibility push(default)
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/rpma_ends.h"

#include <rdma/rdma_cma.h>

#undef ibv_reg_mr

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#ifndef OWN_MALLOC
#define OWN_MALLOC 1
#endif

enum { LEN = 4096, RUNS_MAX = 1000 };

/* ---- failing ---- */

static bool armed;
static int countdown, fault_errno;
static const char *failed_call;
/* That the id of a look-up could not be destroyed is no reason to withhold the device. */
static bool looking_up, failed_look_up;

static bool from_librpma(void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && strstr(info.dli_fname, "librpma");
}

/* The call that is due, if librpma itself makes it, sets errno and fails. */
static bool is_due(const char *call, void *caller)
{
	if (!armed || !from_librpma(caller) || countdown-- > 0)
		return false;
	armed = false;
	failed_call = call;
	failed_look_up = looking_up;
	errno = fault_errno;
	return true;
}

/* Passes on to the library's function unless it is due. */
#define FAULTY(type, failure, name, params, args)                                                  \
	type name params                                                                           \
	{                                                                                          \
		static type(*real) params;                                                         \
		if (!real)                                                                         \
			real = (type(*) params)dlsym(RTLD_NEXT, #name);                            \
		if (is_due(#name, __builtin_return_address(0)))                                    \
			return failure;                                                            \
		return real args;                                                                  \
	}

/* Fails after it did its work, as what frees things must not leak them here. */
#define FAULTY_END(failure, name, params, args)                                                    \
	int name params                                                                            \
	{                                                                                          \
		static int(*real) params;                                                          \
		int ret;                                                                           \
		if (!real)                                                                         \
			real = (int(*) params)dlsym(RTLD_NEXT, #name);                             \
		ret = real args;                                                                   \
		return is_due(#name, __builtin_return_address(0)) ? failure : ret;                 \
	}

FAULTY(struct ibv_pd *, NULL, ibv_alloc_pd, (struct ibv_context * ctx), (ctx))
FAULTY(struct ibv_mr *, NULL, ibv_reg_mr, (struct ibv_pd * pd, void *addr, size_t len, int access),
	(pd, addr, len, access))
FAULTY(struct ibv_mr *, NULL, ibv_reg_mr_iova2,
	(struct ibv_pd * pd, void *addr, size_t len, uint64_t iova, unsigned access),
	(pd, addr, len, iova, access))
FAULTY(struct ibv_comp_channel *, NULL, ibv_create_comp_channel, (struct ibv_context * ctx), (ctx))
FAULTY(struct ibv_cq *, NULL, ibv_create_cq,
	(struct ibv_context * ctx, int n, void *context, struct ibv_comp_channel *ch, int vector),
	(ctx, n, context, ch, vector))
FAULTY(struct ibv_srq *, NULL, ibv_create_srq, (struct ibv_pd * pd, struct ibv_srq_init_attr *attr),
	(pd, attr))
/* What is told instead of the truth, if anything. */
static struct ibv_cq *other_cq;
static int other_event = -1;

int ibv_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **context)
{
	static int (*real)(struct ibv_comp_channel *, struct ibv_cq **, void **);
	int ret;

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "ibv_get_cq_event");
	if (is_due("ibv_get_cq_event", __builtin_return_address(0)))
		return -1;
	ret = real(ch, cq, context);
	if (!ret && other_cq) {
		ibv_ack_cq_events(*cq, 1);
		*cq = other_cq;
	}
	return ret;
}

int rdma_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **event)
{
	static int (*real)(struct rdma_event_channel *, struct rdma_cm_event **);
	int ret;

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "rdma_get_cm_event");
	if (is_due("rdma_get_cm_event", __builtin_return_address(0)))
		return -1;
	ret = real(ch, event);
	if (!ret && other_event >= 0)
		(*event)->event = (enum rdma_cm_event_type)other_event;
	return ret;
}

FAULTY_END(fault_errno, ibv_dealloc_pd, (struct ibv_pd * pd), (pd))
FAULTY_END(fault_errno, ibv_dereg_mr, (struct ibv_mr * mr), (mr))
FAULTY_END(fault_errno, ibv_destroy_cq, (struct ibv_cq * cq), (cq))
FAULTY_END(fault_errno, ibv_destroy_srq, (struct ibv_srq * srq), (srq))
FAULTY_END(fault_errno, ibv_destroy_comp_channel, (struct ibv_comp_channel * ch), (ch))
FAULTY(int, -1, rdma_getaddrinfo,
	(const char *node, const char *service, const struct rdma_addrinfo *hints,
		struct rdma_addrinfo **res),
	(node, service, hints, res))
FAULTY(int, -1, rdma_create_id,
	(struct rdma_event_channel * ch, struct rdma_cm_id **id, void *context,
		enum rdma_port_space ps),
	(ch, id, context, ps))
FAULTY(int, -1, rdma_bind_addr, (struct rdma_cm_id * id, struct sockaddr *addr), (id, addr))
FAULTY(int, -1, rdma_resolve_addr,
	(struct rdma_cm_id * id, struct sockaddr *src, struct sockaddr *dst, int ms),
	(id, src, dst, ms))
FAULTY(int, -1, rdma_resolve_route, (struct rdma_cm_id * id, int ms), (id, ms))
FAULTY(struct rdma_event_channel *, NULL, rdma_create_event_channel, (void), ())
FAULTY(int, -1, rdma_listen, (struct rdma_cm_id * id, int backlog), (id, backlog))
FAULTY(int, -1, rdma_create_qp_ex, (struct rdma_cm_id * id, struct ibv_qp_init_attr_ex *attr),
	(id, attr))
FAULTY(int, -1, rdma_migrate_id, (struct rdma_cm_id * id, struct rdma_event_channel *ch), (id, ch))
FAULTY(int, -1, rdma_connect, (struct rdma_cm_id * id, struct rdma_conn_param *param), (id, param))
FAULTY(int, -1, rdma_accept, (struct rdma_cm_id * id, struct rdma_conn_param *param), (id, param))
FAULTY_END(-1, rdma_ack_cm_event, (struct rdma_cm_event * event), (event))
FAULTY_END(-1, rdma_disconnect, (struct rdma_cm_id * id), (id))
FAULTY_END(
	-1, rdma_reject, (struct rdma_cm_id * id, const void *data, uint8_t len), (id, data, len))
FAULTY_END(-1, rdma_destroy_id, (struct rdma_cm_id * id), (id))

#if OWN_MALLOC
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);

void *malloc(size_t size)
{
	if (armed && is_due("malloc", __builtin_return_address(0)))
		return NULL;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	if (armed && is_due("calloc", __builtin_return_address(0)))
		return NULL;
	return __libc_calloc(n, size);
}
#endif

/* ---- the scenario ---- */

struct world {
	struct rpma_peer_cfg *pcfg, *remote_pcfg;
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	struct rpma_srq_cfg *srq_cfg;
	struct rpma_srq *srq;
	struct rpma_conn_cfg *cfg;
	struct rpma_ep *ep;
	struct rpma_conn_req *active_req, *passive_req;
	struct rpma_conn *active, *passive;
};

static char buf[LEN] __attribute__((aligned(4096)));
static char private_data[] = "private";

#define TRY(call)                                                                                  \
	do {                                                                                       \
		int ret_ = (call);                                                                 \
		if (ret_)                                                                          \
			return ret_;                                                               \
	} while (0)

static int make_objects(struct world *w)
{
	struct ibv_context *ctx;
	uint8_t desc[21];

	failed_look_up = false;
	looking_up = true;
	TRY(rpma_utils_get_ibv_context(RP_ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	TRY(rpma_utils_get_ibv_context(RP_ADDR, RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	looking_up = false;
	TRY(rpma_peer_new(ctx, &w->peer));
	TRY(rpma_peer_cfg_new(&w->pcfg));
	TRY(rpma_peer_cfg_get_descriptor(w->pcfg, desc));
	TRY(rpma_peer_cfg_from_descriptor(desc, 1, &w->remote_pcfg));
	TRY(rpma_mr_reg(w->peer, buf, LEN,
		RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV, &w->mr));
	TRY(rpma_mr_get_descriptor(w->mr, desc));
	TRY(rpma_mr_remote_from_descriptor(desc, sizeof desc, &w->remote));
	TRY(rpma_srq_cfg_new(&w->srq_cfg));
	TRY(rpma_srq_new(w->peer, w->srq_cfg, &w->srq));
	TRY(rpma_conn_cfg_new(&w->cfg));
	TRY(rpma_conn_cfg_set_rcq_size(w->cfg, 10));
	return rpma_conn_cfg_set_compl_channel(w->cfg, true);
}

static int connect_both(struct world *w)
{
	struct rpma_conn_private_data pdata = {private_data, sizeof private_data};
	enum rpma_conn_event event;

	TRY(rpma_ep_listen(w->peer, RP_ADDR, RP_PORT, &w->ep));
	TRY(rpma_conn_req_new(w->peer, RP_ADDR, RP_PORT, w->cfg, &w->active_req));
	TRY(rpma_conn_req_connect(&w->active_req, &pdata, &w->active));
	TRY(rpma_ep_next_conn_req(w->ep, NULL, &w->passive_req));
	TRY(rpma_conn_req_connect(&w->passive_req, &pdata, &w->passive));
	TRY(rpma_conn_next_event(w->active, &event));
	CHECK_EQ(event, RPMA_CONN_ESTABLISHED);
	TRY(rpma_conn_next_event(w->passive, &event));
	CHECK_EQ(event, RPMA_CONN_ESTABLISHED);
	return 0;
}

static int write_both(struct world *w)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	TRY(rpma_write(w->active, w->remote, 0, w->mr, 8, 8, RPMA_F_COMPLETION_ALWAYS, NULL));
	TRY(rpma_conn_wait(w->active, 0, &cq, NULL));
	TRY(rpma_cq_get_wc(cq, 1, &wc, NULL));
	TRY(rpma_write(w->passive, w->remote, 0, w->mr, 8, 8, RPMA_F_COMPLETION_ALWAYS, NULL));
	TRY(rpma_conn_get_cq(w->passive, &cq));
	TRY(rpma_cq_wait(cq));
	return rpma_cq_get_wc(cq, 1, &wc, NULL);
}

static int disconnect_both(struct world *w)
{
	enum rpma_conn_event event;

	TRY(rpma_conn_disconnect(w->active));
	TRY(rpma_conn_next_event(w->passive, &event));
	CHECK_EQ(event, RPMA_CONN_CLOSED);
	TRY(rpma_conn_disconnect(w->passive));
	return rpma_conn_next_event(w->active, &event);
}

/* A request that is made, and one that is received, and neither used. */
static int delete_requests(struct world *w)
{
	struct rpma_conn *conn = NULL;
	int ret;

	TRY(rpma_conn_req_new(w->peer, RP_ADDR, RP_PORT, NULL, &w->active_req));
	TRY(rpma_conn_req_delete(&w->active_req));
	TRY(rpma_conn_req_new(w->peer, RP_ADDR, RP_PORT, NULL, &w->active_req));
	TRY(rpma_conn_req_connect(&w->active_req, NULL, &conn));
	ret = rpma_ep_next_conn_req(w->ep, NULL, &w->passive_req);
	if (!ret)
		ret = rpma_conn_req_delete(&w->passive_req);
	if (ret)
		(void)rpma_conn_delete(&conn);
	else
		ret = rpma_conn_delete(&conn);
	return ret;
}

/* The first error, if there is any. */
static int tidy_up(struct world *w)
{
	int rets[] = {
		rpma_conn_req_delete(&w->active_req),
		rpma_conn_req_delete(&w->passive_req),
		rpma_conn_delete(&w->active),
		rpma_conn_delete(&w->passive),
		rpma_ep_shutdown(&w->ep),
		rpma_conn_cfg_delete(&w->cfg),
		rpma_srq_delete(&w->srq),
		rpma_srq_cfg_delete(&w->srq_cfg),
		rpma_mr_remote_delete(&w->remote),
		rpma_mr_dereg(&w->mr),
		rpma_peer_cfg_delete(&w->pcfg),
		rpma_peer_cfg_delete(&w->remote_pcfg),
		rpma_peer_delete(&w->peer),
	};

	CHECK(!w->active_req && !w->passive_req && !w->active && !w->passive && !w->ep);
	CHECK(!w->cfg && !w->srq && !w->mr && !w->remote && !w->peer);
	for (unsigned i = 0; i < sizeof rets / sizeof rets[0]; i++)
		if (rets[i])
			return rets[i];
	return 0;
}

static int run(void)
{
	struct world w = {0};
	int ret = make_objects(&w), end;

	if (!ret)
		ret = connect_both(&w);
	if (!ret)
		ret = write_both(&w);
	if (!ret)
		ret = disconnect_both(&w);
	if (!ret)
		ret = delete_requests(&w);
	end = tidy_up(&w);
	return ret ? ret : end;
}

/* ---- checks ---- */

static int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static int expected(const char *call)
{
	if (!strcmp(call, "malloc") || !strcmp(call, "calloc"))
		return RPMA_E_NOMEM;
	if (!strcmp(call, "ibv_get_cq_event"))
		return RPMA_E_NO_COMPLETION;
	if (failed_look_up && !strcmp(call, "rdma_destroy_id"))
		return 0;
	if (fault_errno == ENOMEM &&
		(!strcmp(call, "ibv_alloc_pd") || !strcmp(call, "rdma_create_id")))
		return RPMA_E_NOMEM;
	return RPMA_E_PROVIDER;
}

static int fail_each_call(int err)
{
	int before = open_fds(), n;

	fault_errno = err;
	for (n = 0; n < RUNS_MAX; n++) {
		int ret;

		check_case("errno %d at call %d", err, n);
		failed_call = NULL;
		countdown = n;
		armed = true;
		ret = run();
		armed = false;
		if (!failed_call) {
			CHECK_EQ(ret, 0); /* there is no such call any more */
			break;
		}
		check_case("errno %d at call %d, %s", err, n, failed_call);
		CHECK_EQ(ret, expected(failed_call));
		CHECK_EQ(open_fds(), before);
	}
	return n;
}

/* ---- what verbs call through the context ---- */

static int polled;

static int bad_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq;
	(void)n;
	(void)wc;
	return polled;
}

static int bad_notify(struct ibv_cq *cq, int solicited)
{
	(void)cq;
	(void)solicited;
	return EIO;
}

static int bad_query(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
	struct ibv_device_attr_ex *attr, size_t size)
{
	(void)ctx;
	(void)in;
	(void)attr;
	(void)size;
	return EIO;
}

static void inline_calls(void)
{
	struct rpma_peer *peer = rp_peer(), *none = NULL;
	struct verbs_context *v;
	struct ibv_context *ctx;
	struct rpma_conn_req *req;
	struct ibv_wc wc[2];
	struct rp_pair pair;
	struct rpma_cq *cq;
	int odp, n;

	check_case("calls through the context");
	CHECK_EQ(rpma_utils_get_ibv_context(RP_ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx), 0);
	v = verbs_get_ctx(ctx);
	rp_pair(peer, NULL, &pair);
	cq = rp_cq(pair.active);
	CHECK_EQ(rpma_write(pair.active, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL), 0);
	{
		struct ibv_context_ops ops = ctx->ops;
		__typeof__(v->query_device_ex) query = v->query_device_ex;

		ctx->ops.poll_cq = bad_poll;
		ctx->ops.req_notify_cq = bad_notify;
		v->query_device_ex = bad_query;
		polled = -1;
		CHECK_EQ(rpma_cq_get_wc(cq, 1, wc, NULL), RPMA_E_PROVIDER);
		polled = 3;
		CHECK_EQ(rpma_cq_get_wc(cq, 2, wc, &n), RPMA_E_UNKNOWN);
		CHECK_EQ(rpma_cq_wait(cq), RPMA_E_PROVIDER);
		CHECK_EQ(rpma_conn_req_new(peer, RP_ADDR, RP_PORT, NULL, &req), RPMA_E_PROVIDER);
		CHECK_EQ(rpma_utils_ibv_context_is_odp_capable(ctx, &odp), RPMA_E_PROVIDER);
		CHECK_EQ(rpma_peer_new(ctx, &none), RPMA_E_PROVIDER);
		ctx->ops = ops;
		v->query_device_ex = query;
	}
	fault_errno = 0;
	countdown = 0;
	armed = true;
	while (armed && countdown >= 0 && !none) { /* malloc comes before */
		int ret = rpma_peer_new(ctx, &none);

		CHECK(ret);
		if (!strcmp(failed_call, "ibv_alloc_pd")) {
			CHECK_EQ(ret, RPMA_E_UNKNOWN);
			break;
		}
		countdown = 1;
		armed = true;
	}
	armed = false;
	CHECK(failed_call && !strcmp(failed_call, "ibv_alloc_pd"));
	rp_pair_end(&pair);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
}

/* ---- what is told ---- */

static const struct {
	enum rdma_cm_event_type cm;
	enum rpma_conn_event rpma; /* UNDEFINED: RPMA_E_UNKNOWN */
} events[] = {
	{RDMA_CM_EVENT_ESTABLISHED, RPMA_CONN_ESTABLISHED},
	{RDMA_CM_EVENT_CONNECT_ERROR, RPMA_CONN_LOST},
	{RDMA_CM_EVENT_DEVICE_REMOVAL, RPMA_CONN_LOST},
	{RDMA_CM_EVENT_DISCONNECTED, RPMA_CONN_CLOSED},
	{RDMA_CM_EVENT_TIMEWAIT_EXIT, RPMA_CONN_CLOSED},
	{RDMA_CM_EVENT_REJECTED, RPMA_CONN_REJECTED},
	{RDMA_CM_EVENT_UNREACHABLE, RPMA_CONN_UNREACHABLE},
	{RDMA_CM_EVENT_CONNECT_RESPONSE, RPMA_CONN_UNDEFINED},
	{RDMA_CM_EVENT_CONNECT_REQUEST, RPMA_CONN_UNDEFINED},
	{RDMA_CM_EVENT_ADDR_CHANGE, RPMA_CONN_UNDEFINED},
	{RDMA_CM_EVENT_MULTICAST_JOIN, RPMA_CONN_UNDEFINED},
};

static void each_event(void)
{
	struct rpma_peer *peer = rp_peer();
	struct rpma_ep *ep = rp_listen(peer);

	for (unsigned i = 0; i < sizeof events / sizeof events[0]; i++) {
		struct rpma_conn *active = rp_call(peer, NULL, NULL);
		struct rpma_conn *passive = rp_answer(ep, NULL, NULL);
		enum rpma_conn_event got = RPMA_CONN_UNDEFINED;
		int ret;

		check_case("%s", rdma_event_str(events[i].cm));
		other_event = events[i].cm;
		ret = rpma_conn_next_event(active, &got);
		other_event = -1;
		CHECK_EQ(ret, events[i].rpma == RPMA_CONN_UNDEFINED ? RPMA_E_UNKNOWN : 0);
		CHECK_EQ(got, events[i].rpma);
		CHECK_EQ(rpma_conn_delete(&active), 0);
		CHECK_EQ(rpma_conn_delete(&passive), 0);
	}
	CHECK_EQ(rpma_ep_shutdown(&ep), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
}

/* An event of a queue that is not the connection's. */
static void strange_queue(void)
{
	struct rpma_peer *peer = rp_peer();
	struct rpma_conn_cfg *cfg;
	struct rpma_cq *cq = NULL;
	struct ibv_context *ctx;
	struct rp_pair pair;

	check_case("strange queue");
	CHECK_EQ(rpma_utils_get_ibv_context(RP_ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx), 0);
	CHECK_EQ(rpma_conn_cfg_new(&cfg), 0);
	CHECK_EQ(rpma_conn_cfg_set_compl_channel(cfg, true), 0);
	rp_pair(peer, cfg, &pair);
	CHECK_EQ(rpma_write(pair.active, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL), 0);
	other_cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	CHECK_EQ(rpma_conn_wait(pair.active, 0, &cq, NULL), RPMA_E_UNKNOWN);
	CHECK(!cq);
	CHECK_EQ(other_cq->comp_events_completed, 1); /* acknowledged */
	other_cq->comp_events_completed = 0;
	CHECK_EQ(ibv_destroy_cq(other_cq), 0);
	other_cq = NULL;
	rp_pair_end(&pair);
	CHECK_EQ(rpma_conn_cfg_delete(&cfg), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
}

int main(void)
{
	CHECK_EQ(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED), 0);
	check_case("nothing fails");
	CHECK_EQ(run(), 0); /* opens the adapter, too */
	CHECK_RANGE(fail_each_call(EIO), 70, RUNS_MAX - 1);
	CHECK_RANGE(fail_each_call(ENOMEM), 70, RUNS_MAX - 1);
	inline_calls();
	each_event();
	strange_queue();
	return check_result();
}
#pragma GCC visibility pop
