// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/far_end.h"

#include <string.h>
#include <sys/socket.h>

#include "tests/lib/check.h"

struct start {
	const struct far_kind *kind;
	void *arg;
};

static void run(int fd, void *arg)
{
	_Alignas(16) uint8_t order[FAR_MAX], answer[FAR_MAX];
	const struct start *s = arg;
	const struct far_kind *kind = s->kind;
	void *self = kind->begin(fd, s->arg);

	while (recv(fd, order, kind->order, MSG_WAITALL) == (ssize_t)kind->order) {
		memset(answer, 0, sizeof answer);
		kind->obey(self, fd, order, answer);
		if (send(fd, answer, kind->answer, MSG_NOSIGNAL) == (ssize_t)kind->answer)
			continue;
		if (kind->unheard)
			kind->unheard(self, answer);
		break;
	}
	if (kind->end)
		kind->end(self);
}

struct vp_child far_start(const struct far_kind *kind, void *arg)
{
	struct start s = {kind, arg};

	if (kind->order > FAR_MAX || kind->answer > FAR_MAX)
		die("an order or answer of more than %d bytes", FAR_MAX);
	return vp_fork(run, &s);
}

void far_tell(const struct vp_child *c, const struct far_kind *kind, const void *order)
{
	vp_put(c->fd, order, kind->order);
}

void far_hear(const struct vp_child *c, const struct far_kind *kind, void *answer)
{
	vp_get(c->fd, answer, kind->answer);
}

void far_ask(const struct vp_child *c, const struct far_kind *kind, const void *order, void *answer)
{
	far_tell(c, kind, order);
	far_hear(c, kind, answer);
}

void far_end(struct vp_child *c)
{
	/* Others that we forked have the socket, too. */
	shutdown(c->fd, SHUT_WR);
	vp_join(c);
}
