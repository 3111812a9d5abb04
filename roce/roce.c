// SPDX-License-Identifier: BSD-3-Clause
#include "roce/roce.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/at_open.h"
#include "base/clock.h"
#include "base/gid.h"
#include "hca/proc/proc.h"
#include "hca/run/far.h"
#include "hca/run/path.h"
#include "roce/ask.h"
#include "roce/beside.h"
#include "roce/engine.h"
#include "roce/faults.h"
#include "roce/join.h"
#include "roce/mcast.h"
#include "roce/port/keeper.h"
#include "roce/port/route.h"
#include "roce/rx.h"
#include "roce/serve.h"
#include "roce/ud.h"
#include "roce/watch.h"

enum {
	OFTEN = 256,                   /* looks in a row that found nothing */
	SELDOM_NS = 2 * NSEC_PER_USEC, /* between those that follow */
};

static struct flow *flow_of(const struct hca_qp *qp)
{
	return atomic_load_explicit(&qp->away, memory_order_acquire);
}

/* ---- where it leads ---- */

/* Of a link-local destination: the interface of the GID that it is sent from; else 0. */
static uint32_t link_of(const struct seg_path *path)
{
	uint32_t index;

	if (!gid_is_link_local(path->dgid) || path_find_gid(path->sgid, &index) != PATH_LOCAL)
		return 0;
	return proc_at()->fabric->port[0].gid[index].ifindex;
}

/* It can be had later: nothing is wrong with the destination. */
static bool is_scarce(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM;
}

static int route(struct seg_path *path)
{
	struct route_want want = {.tos = path->flow >> PATH_TCLASS_SHIFT, .ifindex = link_of(path)};
	struct route found;
	int rc;

	if (wire_mode() == WIRE_NEVER)
		return -EHOSTUNREACH;
	memcpy(want.dst, path->dgid, sizeof want.dst);
	memcpy(want.src, path->sgid, sizeof want.src);
	rc = route_find(&want, &found);
	if (rc)
		return rc;
	rc = join_wire();
	if (rc && !is_scarce(rc))
		rdv_wire_explain();
	if (rc)
		return is_scarce(rc) ? rc : -EHOSTUNREACH;
	path->interface = want.ifindex ? want.ifindex : found.ifindex;
	path->udp_source = ROCE_PORT;
	path->mtu = route_path_mtu(found.mtu);
	return 0;
}

/* A look whether it can be had: find() holds it. */
static bool reaches_beside(const struct hca_qp *qp)
{
	uint32_t dest_qpn = qp->me.qp->dest_qpn;

	if (beside_hold(dest_qpn))
		return false;
	beside_drop(dest_qpn);
	return true;
}

static bool reaches(const struct hca_qp *qp)
{
	enum ibv_qp_type type = qp->init.qp_type;

	if ((type != IBV_QPT_RC && type != IBV_QPT_UC) || qp->me.rxq.matches_tags)
		return false;
	if (qp->me.qp->path.beside)
		return reaches_beside(qp);
	return wire_mode() != WIRE_NEVER && qp->me.qp->path.interface;
}

/* What else it takes to send and to be heard. */
static bool open_doors(const struct hca_qp *qp, struct flow *f)
{
	if (f->path.claim && (beside_listen(f->qpn) || beside_hold(qp->me.qp->dest_qpn)))
		return false;
	f->holds = f->path.claim;
	if (f->path.claim)
		flow_meets_weft(f);
	return !watch_start();
}

/* Of a flow that may be half made. */
static void end_flow(struct flow *f)
{
	if (f->holds)
		beside_drop(f->resp.conf.dest_qpn);
	flow_free(f);
}

static bool find(struct hca_qp *qp)
{
	struct flow *f;

	if (flow_of(qp))
		return true;
	f = flow_new(qp);
	if (!f || !open_doors(qp, f)) {
		if (f)
			end_flow(f);
		return false;
	}
	f->resp.ops = &serve_ops;
	engine_stop();
	flow_add(f);
	atomic_store_explicit(&qp->away, f, memory_order_release);
	engine_go();
	far_count(qp, 1);
	return true;
}

/* ---- what is to be done ---- */

/* In an exec slot, so that forget() waits for us.  The flow, if there is one that runs. */
static struct flow *call_flow(struct hca_qp *qp, unsigned calls)
{
	struct exec *x = exec_self();
	struct flow *f;

	if (x) {
		slot_enter(x->slot, qp->me.view.attach, qp->me.view.attach);
		atomic_thread_fence(memory_order_seq_cst);
	}
	f = flow_of(qp);
	if (f && end_state(&qp->me) == IBV_QPS_RESET)
		f = NULL;
	if (f)
		engine_call(f, calls);
	if (x)
		slot_leave(x->slot);
	return f;
}

static void call(struct hca_qp *qp, unsigned calls)
{
	call_flow(qp, calls);
	engine_run(ENGINE_CALLS);
}

static void run_out(struct hca_qp *qp)
{
	call(qp, FLOW_POSTED);
}

static void run_in(struct hca_qp *qp)
{
	call(qp, FLOW_RECEIVE);
}

static enum run_end work(struct exec *x, struct hca_qp *qp, unsigned direction)
{
	struct flow *f;
	bool left;

	(void)x;
	(void)direction;
	engine_stop(); /* nobody else takes this turn, who may call less than we */
	f = call_flow(qp, FLOW_POSTED | FLOW_RECEIVE);
	engine_pass(ENGINE_CALLS);
	left = f && f->for_worker;
	engine_go();
	return left ? RUN_BUSY : RUN_IDLE;
}

static bool look(struct hca_qp *qp)
{
	bool missing = !flow_of(qp) && end_state(&qp->me) == IBV_QPS_RTR && !find(qp);

	call(qp, FLOW_POSTED);
	return missing;
}

/* The program polls, and found nothing. */
static bool look_in(uint32_t times)
{
	static _Atomic uint64_t last_ns;
	uint64_t now;

	if (times > OFTEN) {
		now = clock_ns();
		if (now - atomic_load_explicit(&last_ns, memory_order_relaxed) < SELDOM_NS)
			return false;
		atomic_store_explicit(&last_ns, now, memory_order_relaxed);
	}
	engine_run(ENGINE_LOOK);
	return true;
}

static unsigned sleep_on(struct pollfd *p, unsigned room)
{
	const struct rdv_wire *wire = join_sockets();
	unsigned n = 0;

	watch_sleeper();
	if (beside_fd() >= 0 && n < room)
		p[n++] = (struct pollfd){.fd = beside_fd(), .events = POLLIN};
	for (int i = 0; i < KEEPER_FDS && wire && n < room; i++)
		if (wire->fd[i] >= 0)
			p[n++] = (struct pollfd){.fd = wire->fd[i], .events = POLLIN};
	return n;
}

static void awake(void)
{
	watch_no_sleeper();
}

/* ---- the end ---- */

static void take_in(struct hca_qp *qp)
{
	if (!flow_of(qp))
		return;
	engine_stop(); /* the thread in it may have looked a moment ago */
	engine_pass(ENGINE_LOOK);
	engine_go();
}

static void stop(struct hca_qp *qp)
{
	struct flow *f = flow_of(qp);
	struct exec *x = exec_get();

	engine_stop();
	if (f && x) {
		engine_settle(f);
		serve_stop(f, x);
		ask_stop(f);
		if (end_state(&qp->me) != IBV_QPS_ERR) {
			engine_forget(f);
			flow_del(f);
		}
	}
	engine_go();
	exec_put(x);
}

static void forget(struct hca_qp *qp, bool live)
{
	struct flow *f = flow_of(qp);

	atomic_store_explicit(&qp->away, NULL, memory_order_release);
	if (!f)
		return;
	engine_stop();
	if (live) {
		engine_forget(f);
		flow_del(f);
	}
	end_flow(f);
	engine_go();
	if (live)
		far_count(qp, -1);
}

static void psn(const struct hca_qp *qp, uint32_t *sent, uint32_t *expected)
{
	const struct flow *f = flow_of(qp);

	engine_stop();
	*sent = f && f->asks ? f->req.next : qp->me.qp->sq_psn;
	*expected = f ? f->resp.expected : qp->me.qp->rq_psn;
	engine_go();
}

static bool draining(struct hca_qp *qp, bool tell)
{
	struct flow *f = flow_of(qp);
	bool drains;

	engine_stop();
	drains = f && ask_draining(f, tell);
	engine_go();
	return drains;
}

static void forked_child(void)
{
	join_forked_child();
	beside_forked_child();
	faults_forked_child();
	rx_forked_child();
	mcast_forked_child();
	engine_forked_child();
	watch_forked_child();
}

static const struct far_ops ops = {
	.name = "roce",
	.route = route,
	.reaches = reaches,
	.find = find,
	.posted = run_out,
	.run_out = run_out,
	.run_in = run_in,
	.work = work,
	.look = look,
	.take_in = take_in,
	.stop = stop,
	.forget = forget,
	.psn = psn,
	.draining = draining,
	.look_in = look_in,
	.sleep_on = sleep_on,
	.awake = awake,
	.forked_child = forked_child,
	.datagrams = &ud_ops,
};

static AT_OPEN_DATA int started;

static void start(void)
{
	rx_take_datagrams(ud_take);
	started = far_register(&ops);
}

int roce_start(void)
{
	static AT_OPEN_DATA pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
	faults_start();
	return started;
}

static void acknowledge(struct flow *f, void *arg)
{
	(void)arg;
	engine_settle(f);
}

/* A program may exit right after its last receive: what it got is acknowledged. */
static __attribute__((destructor)) void at_exit(void)
{
	if ((!join_sockets() && beside_fd() < 0) || !proc_epoch())
		return;
	engine_stop();
	flow_each(acknowledge, NULL);
	engine_go();
}
