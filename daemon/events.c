// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/events.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/process.h"
#include "daemon/tables/addrs.h"
#include "daemon/tables/identity.h"
#include "daemon/wire_counters.h"
#include "fabric/sysfs.h"

/* A timer is never set closer than this: a QP that asks again and again leaves time for others. */
enum { TIMER_MIN_NS = 100 * NSEC_PER_USEC };

static void env_fire(uint32_t attach_id, uint32_t channel, void *arg)
{
	struct server *s = arg;
	struct process *p = process_find(s, attach_id);

	if (p)
		process_fire(s, p, channel);
}

static bool env_unread(uint32_t attach_id, uint32_t channel, void *arg)
{
	struct process *p = process_find(arg, attach_id);

	return p && process_unread(p, channel);
}

static void env_timer(uint32_t attach_id, uint32_t qp_index, uint64_t when, void *arg)
{
	struct server *s = arg;
	uint64_t soonest = clock_ns() + TIMER_MIN_NS;

	if (timers_set(&s->timers, attach_id, qp_index, when > soonest ? when : soonest))
		server_refuse(s, REF_NO_MEMORY);
	server_arm(s);
}

void events_env(struct server *s)
{
	s->env.fire = env_fire;
	s->env.unread = env_unread;
	s->env.timer = env_timer;
	s->env.arg = s;
}

void events_signal(struct server *s, struct watch *w, uint32_t events)
{
	(void)w;
	(void)events;
	s->stop = true;
}

void events_timer(struct server *s, struct watch *w, uint32_t events)
{
	uint64_t expirations, now = clock_ns();
	uint32_t attach_id, qp;

	(void)events;
	(void)!read(w->fd, &expirations, sizeof expirations);
	while (timers_pop(&s->timers, now, &attach_id, &qp)) {
		struct process *p = process_find(s, attach_id);

		if (p)
			recover_timer(&s->env, p->seg, p->id, qp);
	}
	server_arm(s);
}

void events_write_files(struct server *s)
{
	char name[sizeof s->paths.name + 8];
	int ret;

	snprintf(name, sizeof name, "%s.tree", s->paths.name);
	/* If it fails that costs programs that look at them, and no others. */
	ret = sysfs_write(s->paths.dir_fd, name, s->node->page);
	if (ret)
		log_line(
			LOG_LVL_WARN, "cannot write %s/%s: %s", s->paths.dir, name, strerror(-ret));
	else if (s->wire)
		wire_counters_write(s, true);
}

static void raise_port_event(struct server *s, enum ibv_event_type type)
{
	for (struct process *p = s->processes; p; p = p->next)
		recover_port_event(&s->env, p->seg, p->id, type);
}

/* As a driver tells it: a port that comes up does so before its GIDs, and goes down after them. */
static void tell(struct server *s, const struct identity_news *news)
{
	if (news->went_up)
		raise_port_event(s, IBV_EVENT_PORT_ACTIVE);
	if (news->gids)
		raise_port_event(s, IBV_EVENT_GID_CHANGE);
	if (news->went_down)
		raise_port_event(s, IBV_EVENT_PORT_ERR);
}

/* With `weft up --address` that one alone is ours, besides loopback. */
static int keep_ours(const struct port_place *p, struct gid_addr *addrs, int n)
{
	uint8_t ours[16];
	int kept = 0;

	memcpy(ours, p->addr, sizeof ours);
	if (!p->ipv6)
		gid_from_ipv4(ours, p->addr + 12);
	for (int i = 0; i < n; i++)
		if (p->any || addrs[i].loopback || !memcmp(addrs[i].raw, ours, sizeof ours))
			addrs[kept++] = addrs[i];
	return kept;
}

void events_addrs(struct server *s, struct watch *w, uint32_t events)
{
	static struct gid_addr addrs[ADDRS_MAX];
	struct identity_news news;
	unsigned uplinks = 0;
	int n;

	(void)events;
	if (w->fd >= 0)
		addrs_drain(w->fd);
	n = addrs_list(addrs, ADDRS_MAX, &uplinks);
	if (n < 0) {
		log_line(LOG_LVL_WARN, "cannot list addresses: %s; loopback only", strerror(-n));
		n = 0;
		uplinks = s->node->page->port[0].state == IBV_PORT_ACTIVE;
	}
	n = keep_ours(&s->place, addrs, n);
	/* A host without a network has a port all the same: loopback. */
	s->had_uplink |= uplinks > 0;
	news = identity_update(s->node->page, addrs, n, uplinks || !s->had_uplink);
	if (news.lost)
		server_refuse(s, REF_GIDS_FULL);
	events_write_files(s);
	tell(s, &news);
}
