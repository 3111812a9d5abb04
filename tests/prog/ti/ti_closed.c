// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program that closes every fd it does not know, and opens its own at these numbers: nothing of
 * ours reads or writes there, no thread spins, calls that cannot work say so, and all can be ended.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { FDS_MAX = 256, DATAGRAMS = 4, TIMEOUT_MS = 1000, LOOKS = 20, LOOK_US = 10000 };

static struct tx_world w;
static struct tx_end a, p;
static ti_cq_handle_t cq;
static int ours[2]; /* what is opened at the library's numbers, and its other end */

/* ---- descriptors ---- */

static unsigned list_fds(int *fds)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	if (!d)
		die("/proc/self/fd");
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		int fd = atoi(e->d_name);

		if (fd > 2 && fd != dirfd(d) && n < FDS_MAX)
			fds[n++] = fd;
	}
	closedir(d);
	return n;
}

/* Each number that the library had is a socket of the program's, with datagrams to be read. */
static void take_over(void)
{
	int fds[FDS_MAX], pair[2];
	unsigned n = list_fds(fds);

	CHECK(n);
	for (int fd = 3; fd < 4096; fd++)
		close(fd);
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
		die("socketpair");
	for (int i = 0; i < 2; i++) {
		ours[i] = fcntl(pair[i], F_DUPFD_CLOEXEC, 4096);
		close(pair[i]);
		if (ours[i] < 0)
			die("fcntl");
	}
	for (unsigned i = 0; i < n; i++)
		if (dup2(ours[0], fds[i]) < 0)
			die("dup2");
	for (int i = 0; i < DATAGRAMS; i++)
		CHECK_EQ(send(ours[1], "data", 4, 0), 4);
}

/* They are all there, and nobody wrote. */
static void look_at_ours(void)
{
	char buf[512];

	for (int i = 0; i < DATAGRAMS; i++)
		CHECK_EQ(recv(ours[0], buf, sizeof buf, 0), 4);
	CHECK(recv(ours[0], buf, sizeof buf, 0) < 0 && errno == EAGAIN);
	CHECK(recv(ours[1], buf, sizeof buf, 0) < 0 && errno == EAGAIN);
}

/* ---- threads ---- */

/* The first line of that file of a thread; false: it has ended. */
static bool read_of(const char *task, const char *file, char *text, int size)
{
	char path[300];
	bool ok;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%s/%s", task, file);
	f = fopen(path, "r");
	ok = f && fgets(text, size, f);
	if (f)
		fclose(f);
	return ok;
}

/* It runs no more while it is looked at, or has ended. */
static bool sleeps(const char *task)
{
	char stat[512], run_time[64], before[64] = "";
	int quiet = 0;

	for (int i = 0; i < 100 * LOOKS && quiet < LOOKS; i++) {
		if (!read_of(task, "stat", stat, sizeof stat) ||
			!read_of(task, "schedstat", run_time, sizeof run_time))
			return true;
		quiet = strstr(stat, ") S ") && !strcmp(run_time, before) ? quiet + 1 : 0;
		strcpy(before, run_time);
		usleep(LOOK_US);
	}
	return quiet == LOOKS;
}

static void check_sleeps(const char *task)
{
	char name[64] = "";

	(void)read_of(task, "comm", name, sizeof name);
	check_that(sleeps(task), __FILE__, __LINE__, name);
}

static void nobody_spins(void)
{
	char self[32];
	DIR *d = opendir("/proc/self/task");

	check_case("nobody spins");
	if (!d)
		die("/proc/self/task");
	snprintf(self, sizeof self, "%d", getpid());
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		if (e->d_name[0] != '.' && strcmp(e->d_name, self) != 0)
			check_sleeps(e->d_name);
	closedir(d);
}

/* ---- calls ---- */

static void event(const ti_event_t e, const void *data, const void *context)
{
	(void)e, (void)data, (void)context;
}

static ti_conn_info_t info_of(struct tx_kept *k, bool listens)
{
	return (ti_conn_info_t){.src_ep = listens ? w.ep : w.any,
		.dst_ep = listens ? NULL : w.ep,
		.pdh = w.pd,
		.conn_request_cb = tx_keep,
		.context = k};
}

static void refused(void)
{
	static struct tx_kept nobody = {.n = TX_COUNT};
	ti_conn_info_t down = info_of(&nobody, true), up = info_of(&nobody, false);
	ti_conn_handle_t h;
	ti_handle_t ti;

	check_case("what cannot work");
	TX_IS(tx->create_ti(&ti), TI_INSUFFICIENT_RESOURCES);
	CHECK(!ti);
	TX_IS(tx->listen(w.ti, &a.attr, &down, NULL, &h), TI_INSUFFICIENT_RESOURCES);
	TX_IS(tx->connect(w.ti, &a.attr, &up, NULL, &h), TI_INSUFFICIENT_RESOURCES);
	TX_IS(ti_ops_get()->events_register(NULL, event), TI_INSUFFICIENT_RESOURCES);
}

/* What needs no descriptor does. */
static void works(void)
{
	ti_data_element_t *m = tx_message(&w, "still", 5), *r = tx_get(w.pool, 1);

	check_case("what works");
	TX_IS(tx->msg_recv(p.conn, r), TI_SUCCESS);
	TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
	tx_put(w.pool, tx_poll(cq, 2));
	CHECK(!memcmp(r->local_data_desc->vaddr, "still", 5));
}

int main(void)
{
	struct tx_kept up = {.n = TX_COUNT}, down = {.n = TX_COUNT};
	ti_conn_info_t asks, listens;
	ti_conn_handle_t listener, h;

	tx_begin(&w);
	cq = tx_cq(&w, 64);
	TX_IS(tx->events_register(NULL, event), TI_SUCCESS);
	tx_defaults(&a, &w, cq);
	tx_defaults(&p, &w, cq);
	tx_connect(&a, &p);
	/* a request that is not answered in time */
	listens = info_of(&down, true);
	asks = info_of(&up, false);
	TX_IS(tx->listen(w.ti, &a.attr, &listens, NULL, &listener), TI_SUCCESS);
	a.attr.connect_request_timeout = TIMEOUT_MS;
	TX_IS(tx->connect(w.ti, &a.attr, &asks, NULL, &h), TI_SUCCESS);
	tx_await(&down.n, 1);
	take_over();
	check_case("deadlines pass");
	tx_await(&up.n, 1);
	TX_IS(up.req.status, TI_TIMEOUT);
	nobody_spins();
	works();
	refused();
	check_case("all is ended");
	tx_close(a.conn);
	tx_end(&w);
	nobody_spins();
	look_at_ours();
	return check_result();
}
