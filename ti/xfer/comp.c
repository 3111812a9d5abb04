// SPDX-License-Identifier: BSD-3-Clause
#include "ti/xfer/comp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/own_fd.h"
#include "base/thread.h"
#include "ti/core/fork.h"
#include "ti/xfer/break.h"
#include "ti/xfer/drain.h"

enum { ROUND = 256, NAP_NS = 10000000, FLUSH_NAP_NS = 20000 };

struct comp {
	struct comp *next;
	struct ibv_context *verbs;
	struct ibv_comp_channel *channel;
	struct own_fd fd;              /* the channel's: the program may have closed it */
	struct conn *more, **more_end; /* who may have more completions than were taken */
};

static struct {
	struct lock lock;
	struct comp *list;
} comps;

/* ---- callbacks ---- */

/* What a look at a connection found for its callbacks. */
struct found {
	ti_data_element_t *list[XFERS];
	ti_xfer_cb_t cb[XFERS]; /* NULL: none to call */
	ti_cq_handle_t cq[XFERS];
};

/* Whether that kind calls back now.  Under the locks. */
static bool is_due(const struct conn *c, enum xfer x)
{
	enum conn_state state = conn_state(c);

	if (!drain_callback(c, x))
		return false;
	if (state == CONN_CLOSING && c->ready[x].first)
		return true; /* nothing more comes that would wake */
	return c->wake[x] && (c->attr.auto_cq_rearm || drain_queue(c, x)->armed);
}

static void find_kind(struct conn *c, enum xfer x, struct found *f)
{
	struct cq *cq = drain_queue(c, x);
	uint32_t n;

	if (!is_due(c, x))
		return;
	f->cb[x] = drain_callback(c, x);
	f->cq[x] = cq->m.obj.handle;
	c->wake[x] = false;
	if (c->attr.auto_cq_rearm) {
		f->list[x] = elements_hand_out(&c->ready[x], &n);
		cq->count -= n;
	}
}

/* Queues that the program rearms are so once more when it says so.  Under the locks. */
static void disarm(const struct conn *c, const struct found *f)
{
	for (enum xfer x = 0; x < XFERS; x++)
		if (f->cb[x] && !c->attr.auto_cq_rearm)
			drain_queue(c, x)->armed = false;
}

static void find(struct conn *c, struct found *f)
{
	*f = (struct found){0};
	if (c->mute)
		return;
	for (enum xfer x = 0; x < XFERS; x++)
		find_kind(c, x, f);
	disarm(c, f);
}

static void call(const struct found *f)
{
	unsigned forks = fork_count();

	for (enum xfer x = 0; x < XFERS && forks == fork_count(); x++)
		if (f->cb[x])
			f->cb[x](f->cq[x], f->list[x]);
}

void comp_deliver(struct conn *c)
{
	struct found f;

	drain_lock(c);
	c->mute = false;
	find(c, &f);
	c->mute = true;
	drain_unlock(c);
	call(&f);
}

static bool bring_back(struct conn *c)
{
	bool idle;

	drain_lock(c);
	(void)drain(c, INT32_MAX);
	idle = !flow_open(&c->in) && !flow_open(&c->out);
	drain_unlock(c);
	return idle;
}

void comp_flush(struct conn *c)
{
	drain_lock(c);
	c->mute = true; /* first: the completion thread does not begin a callback any more */
	drain_unlock(c);
	conn_to_error(c);
	while (!bring_back(c) || atomic_load_explicit(&c->calling, memory_order_acquire))
		nanosleep(&(struct timespec){.tv_nsec = FLUSH_NAP_NS}, NULL);
	comp_deliver(c);
}

/* ---- events ---- */

/* Does anybody want to hear of what comes next?  Under the locks. */
static bool is_heard(const struct conn *c)
{
	const struct cq *s = c->send_cq, *r = c->recv_cq;

	return conn_state(c) >= CONN_BROKEN || cq_watched(s) || cq_watched(r) ||
	       ((c->attr.auto_cq_rearm || s->armed || r->armed) && conn_calls_back(c));
}

/* True: there may be more. */
static bool look(struct conn *c)
{
	unsigned forks = fork_count();
	struct found f;
	int n;

	drain_lock(c);
	if (is_heard(c))
		drain_arm(c);
	n = drain(c, ROUND);
	find(c, &f);
	atomic_store_explicit(&c->calling, true, memory_order_relaxed);
	drain_unlock(c);
	call(&f);
	atomic_store_explicit(&c->calling, false, memory_order_release);
	fork_called_back(forks);
	return n >= ROUND;
}

/* Until its events are acknowledged its destruction waits. */
static void add_more(struct comp *comp, struct conn *c)
{
	c->more_next = NULL;
	*comp->more_end = c;
	comp->more_end = &c->more_next;
}

static struct conn *first_more(struct comp *comp)
{
	struct conn *c = comp->more;

	comp->more = c->more_next;
	if (!comp->more)
		comp->more_end = &comp->more;
	return c;
}

static void take_event(struct comp *comp)
{
	struct ibv_cq *ibcq;
	void *context;
	struct conn *c;

	if (ibv_get_cq_event(comp->channel, &ibcq, &context)) {
		if (errno != EINTR)
			nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
		return;
	}
	c = context;
	c->more_cq = ibcq;
	if (!c->events++)
		add_more(comp, c);
}

/* One round for one of them: who has very many completions lets the others go first. */
static void serve(struct comp *comp)
{
	struct conn *c = first_more(comp);
	struct ibv_cq *ibcq = c->more_cq;
	uint32_t events = c->events;

	if (look(c)) {
		add_more(comp, c);
		return;
	}
	c->events = 0;
	conn_try_finish(c);
	ibv_ack_cq_events(ibcq, events);
}

static bool is_readable(const struct comp *comp)
{
	struct pollfd fd = {.fd = comp->fd.fd, .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

static void *run(void *arg)
{
	struct comp *comp = arg;

	fork_thread_is_ours();
	while (own_fd_ok(&comp->fd)) {
		if (!comp->more || is_readable(comp))
			take_event(comp);
		if (comp->more)
			serve(comp);
	}
	log_line(LOG_LVL_ERROR, "ti: the program has closed a file descriptor of ours: transfers "
				"do not call back any more");
	while (comp->more)
		serve(comp);
	return NULL;
}

/* ---- channels ---- */

static struct comp *start(struct ibv_context *verbs)
{
	struct comp *comp = calloc(1, sizeof *comp);
	pthread_t thread;

	if (!comp)
		return NULL;
	comp->verbs = verbs;
	comp->more_end = &comp->more;
	comp->channel = ibv_create_comp_channel(verbs);
	comp->fd = own_fd_at(comp->channel ? comp->channel->fd : -1);
	if (!comp->channel || thread_start(&thread, "ti-completion", THREAD_CALLBACKS, run, comp)) {
		if (comp->channel)
			(void)ibv_destroy_comp_channel(comp->channel);
		free(comp);
		return NULL;
	}
	pthread_detach(thread);
	return comp;
}

static struct comp *find_comp(const struct ibv_context *verbs)
{
	struct comp *comp = comps.list;

	while (comp && comp->verbs != verbs)
		comp = comp->next;
	return comp;
}

struct ibv_comp_channel *comp_channel(struct ibv_context *verbs)
{
	struct comp *comp;

	lock_take(&comps.lock);
	comp = find_comp(verbs);
	if (!comp) {
		comp = start(verbs);
		if (comp) {
			comp->next = comps.list;
			comps.list = comp;
		}
	}
	lock_drop(&comps.lock);
	return comp && own_fd_ok(&comp->fd) ? comp->channel : NULL;
}

bool comp_hears(const struct conn *c)
{
	const struct comp *comp;

	lock_take(&comps.lock);
	comp = find_comp(c->pd->verbs);
	lock_drop(&comps.lock);
	return comp && own_fd_ok(&comp->fd);
}

void comp_forked(void)
{
	comps.lock = (struct lock){0};
	comps.list = NULL;
}
