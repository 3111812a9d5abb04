// SPDX-License-Identifier: BSD-3-Clause
#include "face/poll_many.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

enum { FEW = 16, ALWAYS = POLLERR | POLLHUP | POLLNVAL };

/* Of each entry of the program's array. */
struct entry {
	void *ours; /* NULL: the kernel's */
	struct sleeper sleeper;
	nfds_t at; /* what it is slept for on, in the list */
	bool has[POLL_ON];
};

struct call {
	const struct poll_face *face;
	struct pollfd *fds;
	nfds_t n, n_ours;
	struct entry *entry;
	struct pollfd *real; /* for poll(2): of all entries, and our eventfd */
	nfds_t n_real;
	struct entry few[FEW];
	struct pollfd few_real[POLL_ON * FEW + 1];
};

int poll_ns(struct pollfd *fds, nfds_t n, int64_t ns)
{
	struct timespec ts = {
		.tv_sec = ns / (int64_t)NSEC_PER_SEC, .tv_nsec = ns % (int64_t)NSEC_PER_SEC};
	int ret = ppoll(fds, n, ns < 0 ? NULL : &ts, NULL);

	return ret < 0 ? -errno : ret;
}

static int begin(struct call *c, const struct poll_face *face, struct pollfd *fds, nfds_t n)
{
	c->face = face;
	c->fds = fds;
	c->n = n;
	c->n_ours = 0;
	c->entry = n <= FEW ? c->few : calloc(n, sizeof *c->entry);
	c->real = n <= FEW ? c->few_real : calloc(POLL_ON * n + 1, sizeof *c->real);
	if (!c->entry || !c->real)
		return -ENOMEM;
	for (nfds_t i = 0; i < n; i++) {
		c->entry[i].ours = face->find(fds[i].fd);
		c->n_ours += c->entry[i].ours != NULL;
	}
	return 0;
}

static void disown(struct call *c, nfds_t i)
{
	c->face->put(c->entry[i].ours);
	c->entry[i].ours = NULL;
	c->n_ours--;
}

static void end(struct call *c)
{
	for (nfds_t i = 0; c->entry && c->real && i < c->n; i++)
		if (c->entry[i].ours)
			c->face->put(c->entry[i].ours);
	if (c->entry != c->few)
		free(c->entry);
	if (c->real != c->few_real)
		free(c->real);
}

/* One entry has those conditions; false: it has become the kernel's. */
static bool answer(struct call *c, nfds_t i, int conditions)
{
	c->fds[i].revents = 0;
	if (conditions == POLL_NOT_OURS) {
		disown(c, i);
		return false;
	}
	c->fds[i].revents = conditions & (c->fds[i].events | ALWAYS);
	return true;
}

/* How many of ours are ready. */
static int look(struct call *c)
{
	int ready = 0;

	for (nfds_t i = 0; i < c->n; i++) {
		void *ours = c->entry[i].ours;

		if (ours && answer(c, i, c->face->look(ours, &c->fds[i])))
			ready += c->fds[i].revents != 0;
	}
	return ready;
}

/* Adds what one entry is slept for on to the list; and what came of it. */
static void push(struct call *c, struct entry *e, const struct pollfd on[POLL_ON])
{
	e->at = c->n_real;
	for (int k = 0; k < POLL_ON; k++) {
		e->has[k] = on[k].fd >= 0;
		if (e->has[k])
			c->real[c->n_real++] = on[k];
	}
}

static void pull(const struct call *c, const struct entry *e, struct pollfd on[POLL_ON])
{
	const struct pollfd *from = &c->real[e->at];

	for (int k = 0; k < POLL_ON; k++)
		on[k] = e->has[k] ? *from++ : (struct pollfd){.fd = -1};
}

static void push_kernels(struct call *c, nfds_t i)
{
	push(c, &c->entry[i], (struct pollfd[POLL_ON]){c->fds[i], {.fd = -1}});
}

/* Takes over what poll(2) said of the kernel's; how many of them are ready. */
static int take_kernels(struct call *c)
{
	struct pollfd on[POLL_ON];
	int ready = 0;

	for (nfds_t i = 0; i < c->n; i++) {
		if (c->entry[i].ours)
			continue;
		pull(c, &c->entry[i], on);
		c->fds[i].revents = on[0].revents;
		ready += on[0].revents != 0;
	}
	return ready;
}

/* With what is ready of ours: adds the kernel's as they are now. */
static int add_kernels(struct call *c, int ready)
{
	int ret;

	if (c->n == c->n_ours)
		return ready;
	c->n_real = 0;
	for (nfds_t i = 0; i < c->n; i++)
		if (!c->entry[i].ours)
			push_kernels(c, i);
	ret = poll_ns(c->real, c->n_real, 0);
	if (ret < 0)
		return ready ? ready : ret;
	return ready + take_kernels(c);
}

/* Enters this thread everywhere; how many of ours are ready after all. */
static int prepare(struct call *c, int wake)
{
	int ready = 0;

	c->n_real = 0;
	for (nfds_t i = 0; i < c->n; i++) {
		struct pollfd on[POLL_ON] = {{.fd = -1}, {.fd = -1}};
		struct entry *e = &c->entry[i];

		e->sleeper.fd = wake;
		if (e->ours &&
			answer(c, i, c->face->before(e->ours, &c->fds[i], &e->sleeper, on))) {
			ready += c->fds[i].revents != 0;
			push(c, e, on);
		} else {
			push_kernels(c, i);
		}
	}
	if (wake >= 0)
		c->real[c->n_real++] = (struct pollfd){.fd = wake, .events = POLLIN};
	return ready;
}

/* The opposite. */
static int recover(struct call *c)
{
	int ready = take_kernels(c);

	for (nfds_t i = 0; i < c->n; i++) {
		struct entry *e = &c->entry[i];
		struct pollfd on[POLL_ON];

		if (!e->ours)
			continue;
		pull(c, e, on);
		if (answer(c, i, c->face->after(e->ours, &c->fds[i], &e->sleeper, on)))
			ready += c->fds[i].revents != 0;
	}
	return ready;
}

static int sleep_once(struct call *c, uint64_t until)
{
	uint64_t now = clock_ns(), left = until > now ? until - now : 0;
	int wake = sleeper_fd();
	int ready = prepare(c, wake), ret;

	if (left > c->face->nap_ns)
		left = c->face->nap_ns;
	ret = poll_ns(c->real, c->n_real, ready ? 0 : left);
	for (nfds_t i = 0; ret < 0 && i < c->n_real; i++)
		c->real[i].revents = 0;
	sleeper_drain(wake);
	ready = recover(c);
	return ready || ret >= 0 ? ready : ret;
}

static int poll_all(struct call *c, int64_t ns)
{
	uint64_t start = clock_ns(), until = ns < 0 ? UINT64_MAX : start + ns;
	int ready = add_kernels(c, look(c));

	while (!ready && ns && clock_ns() - start < c->face->look_ns) {
		ready = look(c);
		if (ready)
			ready = add_kernels(c, ready);
	}
	while (!ready && ns) {
		ready = sleep_once(c, until);
		if (clock_ns() >= until)
			break;
	}
	return ready;
}

int poll_many(const struct poll_face *face, struct pollfd *fds, nfds_t n, int64_t ns)
{
	struct call c;
	int ret = begin(&c, face, fds, n);

	if (!ret && c.n_ours) {
		ret = poll_all(&c, ns);
	} else if (!ret) {
		ret = poll_ns(fds, n, ns);
	}
	end(&c);
	return ret;
}
