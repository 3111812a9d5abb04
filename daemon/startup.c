// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/startup.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/unix_names.h"
#include "daemon/connections.h"
#include "daemon/events.h"
#include "daemon/issm.h"
#include "daemon/node_ports.h"
#include "daemon/port/place.h"
#include "daemon/session.h"
#include "daemon/tables/addrs.h"
#include "daemon/tables/guid.h"
#include "daemon/umad.h"
#include "daemon/wire.h"
#include "rdv/conn.h"
#include "rdv/fabrics.h"

enum { LIFE_WAIT_MS = 3000, LIFE_POLL_MS = 2, DEFAULT_IDLE_S = 30, MAX_IDLE_S = 1000000 };
/* Fewer do not serve a single process. */
enum { ENOUGH_FDS = 65536, FEWEST_FDS = 20 };
/* Who starts us must have time to connect. */
static const double min_idle_s = 0.2;

/* What went wrong, for people. */
struct failure {
	char *why;
	size_t size;
};

static int fail(const struct failure *f, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(const struct failure *f, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->why, f->size, fmt, ap);
	va_end(ap);
	return err;
}

/* Our limits are those of whoever happened to start us; only the privileged lift hard ones. */
static void raise_limit(int which, rlim_t enough)
{
	struct rlimit rl;

	if (getrlimit(which, &rl) < 0)
		return;
	if (rl.rlim_max == RLIM_INFINITY || rl.rlim_max >= enough)
		enough = rl.rlim_max;
	if (setrlimit(which, &(struct rlimit){enough, enough}) == 0)
		return;
	rl.rlim_cur = rl.rlim_max;
	setrlimit(which, &rl);
}

/* The kernel grants nobody more than fs.nr_open. */
static rlim_t enough_fds(void)
{
	unsigned long most = ENOUGH_FDS;
	FILE *f = fopen("/proc/sys/fs/nr_open", "re");

	if (f) {
		if (fscanf(f, "%lu", &most) != 1 || most > ENOUGH_FDS)
			most = ENOUGH_FDS;
		fclose(f);
	}
	return most;
}

static void raise_limits(void)
{
	raise_limit(RLIMIT_AS, RLIM_INFINITY);
	raise_limit(RLIMIT_NOFILE, enough_fds());
	raise_limit(RLIMIT_FSIZE, RLIM_INFINITY);
	raise_limit(RLIMIT_CPU, RLIM_INFINITY);
}

static int check_limits(const struct failure *f)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < FEWEST_FDS)
		return fail(f, -EMFILE,
			"it may have but %llu open files (ulimit -n); run \"weft up\" in a shell "
			"that allows more",
			(unsigned long long)rl.rlim_cur);
	return 0;
}

/* The pid that the weftd which holds the lock wrote beside its epoch; 0 if it cannot be seen. */
static int holder(int fd)
{
	char text[32], path[64], comm[8] = "";
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	int pid = 0;

	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%*u %d", &pid) != 1 || pid <= 0)
		return 0;
	/* The number may be of another pid namespace, or old: whom we name will be killed. */
	snprintf(path, sizeof path, "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, comm, sizeof comm - 1);
	close(fd);
	return n > 0 && strcmp(comm, "weftd\n") == 0 ? pid : 0;
}

static int locked_out(const struct server *s, int pid, const struct failure *f)
{
	char name[sizeof s->paths.name + 8];

	snprintf(name, sizeof name, "%s.sock", s->paths.name);
	if (!pid)
		return fail(f, -EALREADY,
			"another weftd serves fabric %s already; weft down ends it, or else kill "
			"the process that has %s/%s.epoch open",
			s->paths.fabric, s->paths.dir, s->paths.name);
	if (faccessat(s->paths.dir_fd, name, F_OK, 0) < 0)
		return fail(f, -EALREADY,
			"another weftd (pid %d) serves fabric %s but its socket is gone; end it "
			"with: kill %d",
			pid, s->paths.fabric, pid);
	return fail(f, -EALREADY,
		"another weftd (pid %d) serves fabric %s already; weft down ends it", pid,
		s->paths.fabric);
}

/* Does the weftd that holds the lock take connections?  Then it is not about to leave. */
static bool serves(const struct server *s)
{
	struct conn c;

	if (conn_open(&c, &s->paths))
		return false;
	conn_close(&c);
	return true;
}

/* One weftd per fabric; one that is leaving needs a moment. */
static int take_life_lock(struct server *s, const struct failure *f)
{
	uint64_t until = clock_ns() + (uint64_t)LIFE_WAIT_MS * NSEC_PER_MSEC;
	int fd = rdv_open_file(&s->paths, "epoch");

	if (fd < 0)
		return fail(f, fd, "cannot open %s/%s.epoch: %s", s->paths.dir, s->paths.name,
			strerror(-fd));
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (clock_ns() > until || serves(s)) {
			int pid = holder(fd);

			close(fd);
			return locked_out(s, pid, f);
		}
		nanosleep(&(struct timespec){.tv_nsec = LIFE_POLL_MS * NSEC_PER_MSEC}, NULL);
	}
	s->life_fd = fd;
	return 0;
}

static void count_start(struct server *s)
{
	char text[32];
	ssize_t n = pread(s->life_fd, text, sizeof text - 1, 0);
	int len;

	text[n > 0 ? n : 0] = '\0';
	s->epoch = strtoul(text, NULL, 10) + 1;
	/* Of a fixed width: a longer text of a predecessor is written over. */
	len = snprintf(text, sizeof text, "%010u %010d\n", s->epoch, (int)getpid());
	if (pwrite(s->life_fd, text, len, 0) == len)
		return;
	/* Disk full or ulimit -f: the clock tells starts apart nearly as well. */
	s->epoch = time(NULL);
	log_line(LOG_LVL_WARN, "cannot write %s/%s.epoch: %s", s->paths.dir, s->paths.name,
		strerror(errno));
}

static int make_hub(struct server *s, const struct failure *f)
{
	uint32_t id = process_new_id(s);
	int ret = segment_create(id, &s->env.hub, &s->hub_fd);

	if (ret == -EFBIG)
		return fail(f, ret,
			"the limit of file sizes (ulimit -f) is too low for segments; run "
			"\"weft up\" in a shell without it");
	if (ret)
		return fail(f, ret, "cannot create a segment of %llu GiB: %s", SEG_SIZE >> 30,
			strerror(-ret));
	s->env.hub_id = id;
	s->env.hub->hdr.pid = getpid();
	return 0;
}

static void find_netns(struct server *s)
{
	struct stat st = {0};

	if (stat("/proc/self/ns/net", &st) == 0) {
		s->netns_dev = st.st_dev;
		s->netns_ino = st.st_ino;
	}
}

static int make_page(struct server *s, const struct failure *f)
{
	struct guid_place place;
	int ret;

	if (s->subnet) {
		ret = node_get(s, 0, &s->node);
	} else {
		guid_look(&place, s->paths.dir_fd, s->paths.fabric);
		ret = nodes_make(&s->nodes, 0, s->paths.fabric, guid_make(&place), &s->node);
	}
	if (ret)
		return fail(f, ret, "cannot create the fabric page: %s", strerror(-ret));
	node_ports_remake(s);
	if (s->epoch > 1)
		atomic_store_explicit(
			&s->node->page->restarted_ns, clock_ns(), memory_order_relaxed);
	s->addrs.fd = -1;
	return 0;
}

/* Addresses of this host are those of weft0; a node of a topology has the GIDs of its ports. */
static void follow_addresses(struct server *s)
{
	if (s->subnet)
		return;
	s->addrs = (struct watch){events_addrs, addrs_watch()};
	if (s->addrs.fd < 0)
		log_line(LOG_LVL_WARN, "cannot watch addresses: %s", strerror(-s->addrs.fd));
	events_addrs(s, &s->addrs, 0);
}

static int listen_at(struct server *s, const struct failure *f)
{
	struct sockaddr_un addr;
	socklen_t len = rdv_sock_addr(&s->paths, &addr);
	char name[sizeof s->paths.name + 8];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int ret;

	snprintf(name, sizeof name, "%s.sock", s->paths.name);
	s->took_over = unlinkat(s->paths.dir_fd, name, 0) == 0; /* of one that was killed */
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) < 0 || listen(fd, SOMAXCONN) < 0) {
		ret = -errno;
		return fail(
			f, ret, "cannot listen at %s/%s: %s", s->paths.dir, name, strerror(-ret));
	}
	s->listener = (struct watch){session_accept, fd};
	return 0;
}

static void greet(struct server *s, struct watch *w, uint32_t events)
{
	(void)s, (void)events;
	unix_name_greet(w->fd);
}

/* Without it all works, but others of this host cannot say that we are here. */
static void show(struct server *s)
{
	int fd = rdv_fabric_show(s->paths.fabric, be64toh(s->node->page->node_guid));
	int ret = fd < 0 ? fd : 0;

	s->shown = (struct watch){greet, fd};
	if (!ret)
		ret = server_watch(s, &s->shown);
	if (ret)
		log_line(LOG_LVL_INFO, "cannot show others of this host that we are here: %s",
			strerror(-ret));
}

static int signal_fd(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int make_events(struct server *s, const struct failure *f)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int ret = 0;

	s->epfd = epoll_create1(EPOLL_CLOEXEC);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	s->signals = (struct watch){events_signal, signal_fd()};
	s->timer = (struct watch){events_timer, timer};
	if (s->epfd < 0 || timer < 0 || s->signals.fd < 0)
		return fail(f, -errno, "cannot create the event loop: %s", strerror(errno));
	ret = server_watch(s, &s->signals);
	if (!ret)
		ret = server_watch(s, &s->timer);
	if (!ret && s->addrs.fd >= 0)
		ret = server_watch(s, &s->addrs);
	if (!ret)
		ret = server_watch(s, &s->listener);
	if (ret)
		return fail(f, ret, "cannot watch for events: %s", strerror(-ret));
	return 0;
}

static uint64_t idle_ns(void)
{
	const char *text = secure_getenv("WEFT_IDLE_EXIT");
	double seconds = DEFAULT_IDLE_S;
	char *end = NULL;

	if (text && *text)
		seconds = strtod(text, &end);
	/* Not a number is neither, too. */
	if (end && (end == text || *end || !(seconds >= 0 && seconds <= MAX_IDLE_S))) {
		log_line(LOG_LVL_WARN,
			"WEFT_IDLE_EXIT=%.40s is no number of seconds from 0 to %d; it counts as "
			"%d (\"weft up\" makes weftd stay for ever)",
			text, MAX_IDLE_S, DEFAULT_IDLE_S);
		seconds = DEFAULT_IDLE_S;
	}
	return (seconds > min_idle_s ? seconds : min_idle_s) * NSEC_PER_SEC;
}

int server_start(struct server *s, const char *fabric, char *why, size_t size)
{
	struct failure f = {why, size};
	int ret;

	umask(077);
	raise_limits();
	ret = check_limits(&f);
	if (ret)
		return ret;
	ret = rdv_paths_open(&s->paths, fabric);
	if (ret)
		return fail(&f, ret, "no usable runtime directory or fabric name");
	ret = take_life_lock(s, &f);
	if (ret)
		return ret;
	count_start(s);
	claims_start(&s->leases.claims, &s->paths);
	events_env(s);
	find_netns(s);
	port_place_get(&s->paths, &s->place);
	ret = make_hub(s, &f);
	if (!ret)
		ret = subnet_service_start(s, why, size);
	if (!ret)
		ret = make_page(s, &f);
	if (!ret)
		follow_addresses(s);
	if (!ret)
		ret = listen_at(s, &f);
	if (!ret)
		ret = make_events(s, &f);
	if (!ret)
		show(s);
	if (!ret)
		ret = wire_start(s);
	if (!ret)
		ret = connections_start(s);
	if (!ret)
		ret = umads_start(s);
	s->idle_ns = idle_ns();
	s->started = s->idle_since = clock_ns();
	return ret;
}

void server_end(struct server *s)
{
	char name[sizeof s->paths.name + 8];

	snprintf(name, sizeof name, "%s.sock", s->paths.name);
	unlinkat(s->paths.dir_fd, name, 0);
	claims_end(&s->leases.claims, &s->paths, s->n_processes > 0);
	umads_end(s);
	issm_end(s);
	connections_end(s);
	subnet_service_end(s);
	nodes_leave(&s->nodes);
	/*
	 * Those of passers-by stay open: their end tells who asked for the shutdown that we are
	 * gone.  By then those that are attached must have seen it.
	 */
	while (s->sessions) {
		struct session *next = s->sessions->next;

		if (s->sessions->process)
			shutdown(s->sessions->sock.fd, SHUT_RDWR);
		free(s->sessions);
		s->sessions = next;
	}
	nodes_end(&s->nodes);
}
