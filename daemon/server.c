// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/server.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/resident.h"

static const char *const refusal_names[REF_COUNT] = {
	[REF_OTHER_USER] = "other_user",
	[REF_OTHER_NETNS] = "other_netns",
	[REF_BAD_MESSAGE] = "bad_message",
	[REF_BAD_VERSION] = "bad_version",
	[REF_BAD_OP] = "bad_op",
	[REF_BAD_FDS] = "bad_fds",
	[REF_NOT_ATTACHED] = "not_attached",
	[REF_NOT_READING] = "not_reading",
	[REF_NO_FDS] = "no_fds",
	[REF_NO_MEMORY] = "no_memory",
	[REF_BAD_SEGMENT] = "bad_segment",
	[REF_ID_CONFLICT] = "id_conflict",
	[REF_LEASE_CONFLICT] = "lease_conflict",
	[REF_UNKNOWN_PEER] = "unknown_peer",
	[REF_CHANNEL_FULL] = "channel_full",
	[REF_GIDS_FULL] = "gids_full",
	[REF_MEMBERS_FULL] = "members_full",
};

const char *refusal_name(enum refusal why)
{
	return refusal_names[why];
}

void server_refuse(struct server *s, enum refusal why)
{
	s->refusals[why]++;
	log_line(LOG_LVL_INFO, "refused: %s", refusal_names[why]);
}

void server_refuse_what(struct server *s, enum refusal why, const char *fmt, ...)
{
	char what[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	s->refusals[why]++;
	log_line(LOG_LVL_INFO, "refused: %s: %s", refusal_names[why], what);
}

int server_watch(struct server *s, struct watch *w)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

	return epoll_ctl(s->epfd, EPOLL_CTL_ADD, w->fd, &ev) < 0 ? -errno : 0;
}

bool server_hung_up(const struct watch *w)
{
	struct pollfd p = {.fd = w->fd};

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

void server_unwatch(struct server *s, struct watch *w)
{
	epoll_ctl(s->epfd, EPOLL_CTL_DEL, w->fd, NULL);
	close(w->fd);
	w->fd = -1;
}

int server_count_fds(const struct server *s)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = -3 - s->base_fds; /* ".", ".." and the directory itself */

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

void server_arm(struct server *s)
{
	uint64_t when = timers_next(&s->timers);
	struct itimerspec it = {
		.it_value = {.tv_sec = when / NSEC_PER_SEC, .tv_nsec = when % NSEC_PER_SEC},
	};

	timerfd_settime(s->timer.fd, TFD_TIMER_ABSTIME, &it, NULL);
}

/* So long without a word to us, and we give back what memory we need not have. */
enum { REST_MS = 1000 };

/* Milliseconds until we are idle for long enough, -1 for never. */
static int idle_timeout(const struct server *s)
{
	uint64_t end = s->idle_since + s->idle_ns, now = clock_ns();

	if (s->stay || s->n_processes || s->n_files)
		return -1;
	return end > now ? (end - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC : 0;
}

static bool rests_first(int timeout)
{
	return timeout < 0 || timeout > REST_MS;
}

int server_run(struct server *s)
{
	bool rests = false;

	s->base_fds = server_count_fds(s);
	while (!s->stop) {
		int timeout = idle_timeout(s);
		bool until_rest = !rests && rests_first(timeout);
		struct epoll_event ev;
		/* One at a time: handling one event may free what another is about. */
		int n = epoll_wait(s->epfd, &ev, 1, until_rest ? REST_MS : timeout);

		if (n > 0) {
			struct watch *w = ev.data.ptr;

			w->ready(s, w, ev.events);
			rests = false;
		} else if (n == 0 && until_rest) {
			resident_give_back();
			rests = true;
		} else if (n == 0) {
			s->stop = true;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}
