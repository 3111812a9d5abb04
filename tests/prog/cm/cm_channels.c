// SPDX-License-Identifier: BSD-3-Clause
/*
 * The sockets of event channels: no filter, a name in the runtime directory, which goes with the
 * channel, with its process, and with the next weftd if both died; and what happens without it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/weftd_from_outside.h"

enum { MANY = 20000, NOT_SO_MANY = 1000, SOME = 40, WAIT_MS = 20000, WAITING = 200 };

static const char *runtime_dir(void)
{
	return getenv("WEFT_RUNTIME_DIR");
}

/* Relative to the runtime directory. */
static void name_of(const struct rdma_event_channel *ch, char name[128])
{
	struct sockaddr_un addr = {0};
	socklen_t len = sizeof addr - 1;

	CHECK_EQ(getsockname(ch->fd, (struct sockaddr *)&addr, &len), 0);
	snprintf(name, 128, "%s", addr.sun_path);
}

/* The directory of all names. */
static DIR *open_names(const struct rdma_event_channel *ch)
{
	char name[128], path[4096 + 128];

	name_of(ch, name);
	if (!strchr(name, '/'))
		return NULL;
	*strchr(name, '/') = '\0';
	snprintf(path, sizeof path, "%s/%s", runtime_dir(), name);
	return opendir(path);
}

static int count_names(const struct rdma_event_channel *ch)
{
	DIR *dir = open_names(ch);
	struct dirent *e;
	int n = 0;

	if (!dir)
		return -1;
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* Names go a moment after what they belonged to. */
static void expect_names(const struct rdma_event_channel *ch, int n)
{
	for (int ms = 0; count_names(ch) != n && ms < WAIT_MS; ms++)
		usleep(1000);
	CHECK_EQ(count_names(ch), n);
}

static void connect_once(void)
{
	struct rdma_event_channel *a = cm_channel(), *p = cm_channel();
	uint16_t port;
	struct rdma_cm_id *listener = cm_listener(p, 0, &port);
	struct cm_conn c = cm_connect(a, p, port, true);

	CHECK_EQ(rdma_disconnect(c.active), 0);
	cm_expect(p, RDMA_CM_EVENT_DISCONNECTED);
	CHECK_EQ(rdma_disconnect(c.passive), 0);
	cm_expect(a, RDMA_CM_EVENT_DISCONNECTED);
	cm_end(c.active);
	cm_end(c.passive);
	cm_end(listener);
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(p);
}

static void named(void)
{
	struct rdma_event_channel *ch = cm_channel();
	char name[128], path[4096 + 128];
	socklen_t len = 0;
	struct stat st;

	check_case("named");
	CHECK_EQ(getsockopt(ch->fd, SOL_SOCKET, SO_GET_FILTER, NULL, &len), 0);
	CHECK_EQ(len, 0);
	name_of(ch, name);
	snprintf(path, sizeof path, "%s/%s", runtime_dir(), name);
	CHECK(*name && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode));
	CHECK_EQ(count_names(ch), 1);
	connect_once();
	expect_names(ch, 1);
	rdma_destroy_event_channel(ch);
}

static void many(int n)
{
	struct rdma_event_channel *first = cm_channel();

	check_case("many");
	for (int i = 0; i < n; i++)
		rdma_destroy_event_channel(cm_channel());
	expect_names(first, 1);
	rdma_destroy_event_channel(first);
}

/* A process with some channels; it says when it has them. */
static pid_t start_owner(void)
{
	char byte;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		die("pipe");
	pid = fork();
	if (pid == 0) {
		alarm(60);
		for (int i = 0; i < SOME; i++)
			cm_channel();
		if (write(fds[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	if (read(fds[0], &byte, 1) != 1)
		die("the child ended");
	close(fds[0]);
	return pid;
}

static void end_owner(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void swept(void)
{
	struct rdma_event_channel *ch;
	pid_t pid = start_owner();

	check_case("of a process that was killed");
	ch = cm_channel();
	CHECK_EQ(count_names(ch), SOME + 1);
	end_owner(pid);
	expect_names(ch, 1);

	check_case("of one that was killed after its weftd");
	pid = start_owner();
	weftd_kill(weftd_pid());
	end_owner(pid);
	CHECK_EQ(count_names(ch), SOME + 1);
	connect_once(); /* by a new one, to which ch is known */
	expect_names(ch, 1);

	check_case("of one that was killed before it came to the next weftd");
	pid = start_owner();
	weftd_kill(weftd_pid());
	connect_once();
	expect_names(ch, SOME + 1);
	end_owner(pid);
	for (int ms = 0; count_names(ch) != 1 && ms < WAIT_MS; ms++) {
		rdma_destroy_event_channel(cm_channel()); /* it looks where one comes or goes */
		usleep(1000);
	}
	CHECK_EQ(count_names(ch), 1);
	rdma_destroy_event_channel(ch);
}

/* A child closes what it inherited, and takes nothing from its parent. */
static void inherited(void)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_id(ch);
	int status = -1;
	pid_t pid;

	check_case("inherited");
	CHECK_EQ(rdma_resolve_addr(id, NULL, cm_addr4(1), 100), 0);
	pid = fork();
	if (!pid) {
		alarm(20);
		rdma_destroy_id(id);
		rdma_destroy_event_channel(ch);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(count_names(ch), 1);
	CHECK(cm_readable(ch, 0));
	cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cm_end(id);
	rdma_destroy_event_channel(ch);
}

static void remove_name(const struct rdma_event_channel *ch)
{
	char name[128], path[4096 + 128];

	name_of(ch, name);
	snprintf(path, sizeof path, "%s/%s", runtime_dir(), name);
	CHECK_EQ(unlink(path), 0);
}

struct reader {
	struct rdma_event_channel *ch;
	_Atomic pid_t tid;
	int err;
};

static void *read_one(void *arg)
{
	struct reader *r = arg;
	struct rdma_cm_event *e;

	r->tid = gettid();
	r->err = rdma_get_cm_event(r->ch, &e) ? errno : 0;
	return NULL;
}

/* Who waits at a channel that gets nothing any more is told; others go on. */
static void name_removed(void)
{
	struct rdma_event_channel *a = cm_channel(), *p = cm_channel();
	struct reader r = {.ch = p};
	struct rdma_cm_id *listener, *id;
	struct rdma_cm_event *e;
	pthread_t thread;
	uint16_t port;

	check_case("a name that was removed");
	listener = cm_listener(p, 0, &port);
	id = cm_resolved(a, cm_addr4(port), true);
	if (pthread_create(&thread, NULL, read_one, &r))
		die("pthread_create");
	while (!r.tid)
		sched_yield();
	await_sleep(r.tid);
	remove_name(p);
	CHECK_EQ(rdma_connect(id, NULL), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(r.err, ENOENT);
	CHECK_FAILS(rdma_get_cm_event(p, &e), ENOENT);
	CHECK_EQ(cm_expect(a, RDMA_CM_EVENT_REJECTED), 28);
	cm_end(id);
	cm_end(listener);
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(p);
	connect_once();
}

/* The token alone: an event of our own making finds its way, or ends the wait. */
static void own_event(void)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_id(ch);
	struct rdma_cm_event *e;

	check_case("an event of our own after the name was removed");
	remove_name(ch);
	CHECK_EQ(rdma_resolve_addr(id, NULL, cm_addr4(1), 100), 0);
	CHECK_EQ(rdma_get_cm_event(ch, &e), 0);
	CHECK_EQ(e->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	rdma_ack_cm_event(e);
	CHECK_FAILS(rdma_get_cm_event(ch, &e), ENOENT);
	cm_end(id);
	rdma_destroy_event_channel(ch);
}

/* More requests than its socket takes: each is refused when their listener goes. */
static void listener_closed(void)
{
	struct rdma_event_channel *a = cm_channel(), *p = cm_channel();
	struct rdma_cm_id *listener, *id[WAITING];
	uint16_t port;

	check_case("a listener that closes while requests wait");
	listener = cm_listener(p, 0, &port);
	for (int i = 0; i < WAITING; i++) {
		id[i] = cm_resolved(a, cm_addr4(port), false);
		CHECK_EQ(rdma_connect(id[i], &(struct rdma_conn_param){.qp_num = 1 + i}), 0);
	}
	CHECK(cm_readable(p, WAIT_MS));
	cm_end(listener);
	CHECK(!cm_readable(p, 0));
	for (int i = 0; i < WAITING; i++)
		CHECK_EQ(cm_expect(a, RDMA_CM_EVENT_REJECTED), 28);
	for (int i = 0; i < WAITING; i++)
		cm_end(id[i]);
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(p);
}

/* Again where no path fits into an address, and names are the same length. */
static void deep(char **argv)
{
	char path[4096];
	int n = snprintf(path, sizeof path, "%s", runtime_dir()), status = -1;
	pid_t pid;

	check_case("a deep runtime directory");
	for (int i = 0; i < 6; i++) {
		n += snprintf(path + n, sizeof path - n, "/%040d", i);
		CHECK_EQ(mkdir(path, 0700), 0);
	}
	pid = fork();
	if (pid == 0) {
		setenv("WEFT_RUNTIME_DIR", path, 1);
		execl(argv[0], argv[0], "deep", NULL);
		_exit(1);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	check_child(status);
}

int main(int argc, char **argv)
{
	bool many_alone = argc > 1 && !strcmp(argv[1], "many");

	if (argc == 1)
		deep(argv);
	named();
	/* With a filter each, so many might stop the kernel. */
	if ((argc == 1 || many_alone) && !check_failures())
		many(many_alone ? MANY : NOT_SO_MANY);
	if (many_alone)
		return check_result();
	swept();
	inherited();
	listener_closed();
	own_event();
	name_removed();
	if (argc > 1)
		weftd_down();
	return check_result();
}
