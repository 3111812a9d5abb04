// SPDX-License-Identifier: BSD-3-Clause
/*
 * rpma_lat read|write_flush SIZE COUNT: the time of one operation of librpma to its completion,
 * between two processes, one at a time, over anonymous memory.  Prints the average, the median and
 * the 99.9th percentile in microseconds.
 * rpma_lat read_bw|write_flush_bw SIZE COUNT: two at a time; prints GB/s.
 */
#include <librpma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/pin.h"

enum { ACTIVE_CPU = 0, PEER_CPU = 1, WARM_UP = 100, DEPTH = 2, DESC_SIZE = 21 };

#define ADDR "127.0.0.1"
#define PORT "7499"

static struct rpma_peer *peer;
static struct rpma_conn *conn;
static struct rpma_mr_local *mr;

static void need(int ret, const char *what)
{
	if (!ret)
		return;
	printf("%s: %s\n", what, rpma_err_2str(ret));
	exit(1);
}

static void begin(size_t size)
{
	const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
			  RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
			  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
	struct ibv_context *ctx;
	void *memory;

	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		need(RPMA_E_NOMEM, "mmap");
	need(rpma_utils_get_ibv_context(ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx), "adapter");
	need(rpma_peer_new(ctx, &peer), "peer");
	need(rpma_mr_reg(peer, memory, size, usage, &mr), "region");
}

static void expect(enum rpma_conn_event want)
{
	enum rpma_conn_event event;

	need(rpma_conn_next_event(conn, &event), "event");
	if (event != want)
		need(RPMA_E_UNKNOWN, rpma_utils_conn_event_2str(event));
}

/* ---- the peer, which only has memory ---- */

static void serve(int ready, size_t size)
{
	char desc[DESC_SIZE];
	struct rpma_conn_private_data pdata = {desc, sizeof desc};
	struct rpma_conn_req *req;
	struct rpma_ep *ep;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(PEER_CPU);
	begin(size);
	need(rpma_mr_get_descriptor(mr, desc), "descriptor");
	need(rpma_ep_listen(peer, ADDR, PORT, &ep), "listen");
	if (write(ready, "", 1) != 1)
		exit(1);
	need(rpma_ep_next_conn_req(ep, NULL, &req), "request");
	need(rpma_conn_req_connect(&req, &pdata, &conn), "accept");
	expect(RPMA_CONN_ESTABLISHED);
	expect(RPMA_CONN_CLOSED);
	exit(0);
}

/* ---- the active side ---- */

static struct rpma_mr_remote *meet(void)
{
	struct rpma_conn_private_data pdata;
	struct rpma_mr_remote *remote;
	struct rpma_conn_req *req;

	need(rpma_conn_req_new(peer, ADDR, PORT, NULL, &req), "request");
	need(rpma_conn_req_connect(&req, NULL, &conn), "connect");
	expect(RPMA_CONN_ESTABLISHED);
	need(rpma_conn_get_private_data(conn, &pdata), "private data");
	need(rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &remote), "remote region");
	return remote;
}

static void post(bool reads, struct rpma_mr_remote *remote, size_t size)
{
	if (reads) {
		need(rpma_read(conn, mr, 0, remote, 0, size, RPMA_F_COMPLETION_ALWAYS, NULL),
			"read");
	} else {
		need(rpma_write(conn, remote, 0, mr, 0, size, RPMA_F_COMPLETION_ON_ERROR, NULL),
			"write");
		need(rpma_flush(conn, remote, 0, size, RPMA_FLUSH_TYPE_VISIBILITY,
			     RPMA_F_COMPLETION_ALWAYS, NULL),
			"flush");
	}
}

static void complete(struct rpma_cq *cq)
{
	struct ibv_wc wc;
	int ret;

	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
		;
	need(ret, "completion");
	if (wc.status != IBV_WC_SUCCESS)
		need(RPMA_E_UNKNOWN, ibv_wc_status_str(wc.status));
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(uint64_t *ns, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (double)ns[i];
	qsort(ns, count, sizeof *ns, compare);
	printf("%.3f %.3f %.3f\n", sum / (double)count / 1e3, (double)ns[count / 2] / 1e3,
		(double)ns[count * 999 / 1000] / 1e3);
}

static void measure(bool reads, size_t size, size_t count)
{
	struct rpma_mr_remote *remote = meet();
	uint64_t *ns = calloc(count, sizeof *ns);
	struct rpma_cq *cq;

	if (!ns)
		need(RPMA_E_NOMEM, "samples");
	need(rpma_conn_get_cq(conn, &cq), "queue");
	for (int i = 0; i < WARM_UP; i++) {
		post(reads, remote, size);
		complete(cq);
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t from = clock_ns();

		post(reads, remote, size);
		complete(cq);
		ns[i] = clock_ns() - from;
	}
	report(ns, count);
	need(rpma_conn_disconnect(conn), "disconnect");
}

static void measure_rate(bool reads, size_t size, size_t count)
{
	struct rpma_mr_remote *remote = meet();
	struct rpma_cq *cq;
	uint64_t from;

	need(rpma_conn_get_cq(conn, &cq), "queue");
	for (int i = 0; i < DEPTH; i++)
		post(reads, remote, size);
	from = clock_ns();
	for (size_t i = 0; i < count; i++) {
		complete(cq);
		post(reads, remote, size);
	}
	printf("%.3f\n", (double)size * (double)count / (double)(clock_ns() - from));
	for (int i = 0; i < DEPTH; i++)
		complete(cq);
	need(rpma_conn_disconnect(conn), "disconnect");
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"write_flush", "read", "write_flush_bw", "read_bw"};
	unsigned what = 0;
	size_t size = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	size_t count = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	int ready[2], status;
	pid_t child;
	char c;

	while (argc == 4 && what < 4 && strcmp(argv[1], names[what]))
		what++;
	if (!size || !count || what == 4) {
		fprintf(stderr,
			"usage: rpma_lat read|write_flush|read_bw|write_flush_bw SIZE COUNT\n");
		return 2;
	}
	if (pipe(ready))
		return 1;
	child = fork();
	if (!child)
		serve(ready[1], size);
	close(ready[1]);
	if (child < 0 || read(ready[0], &c, 1) != 1)
		return 1;
	pin(ACTIVE_CPU);
	begin(size);
	if (what & 2)
		measure_rate(what & 1, size, count);
	else
		measure(what & 1, size, count);
	return waitpid(child, &status, 0) == child && !status ? 0 : 1;
}
