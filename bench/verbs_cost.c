// SPDX-License-Identifier: BSD-3-Clause
/*
 * verbs_cost: what objects of verbs cost, one "name value" line each.  It is an ordinary verbs
 * program, linked with the system's libibverbs, and runs on any adapter.
 *
 *   open_us       ibv_get_device_list and ibv_open_device, the first of this process
 *   qp_kib        memory that one more idle QP (128 send and 128 receive requests) with its CQ of
 *                 256 touches: growth of this process's Pss, in KiB
 *   qp_us         creation of such a QP and CQ, and qp_init_us the move to INIT
 *   reg_us        ibv_reg_mr of 32 GiB of reserved, untouched address space; dereg_us
 *   reg_4k_us     ibv_reg_mr of one page; dereg_4k_us
 *
 * verbs_cost reg [THREADS]: medians over many pages and MiBs that were written before, beside so
 * many idle threads; set WEFT_SHARE=always to see what it costs to map them.
 *
 *   reg_hot_4k_us    ibv_reg_mr of one page; dereg_hot_4k_us
 *   reg_hot_1m_us    ibv_reg_mr of 1 MiB; dereg_hot_1m_us
 *   areas            areas of the address space that were added since the beginning
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/median.h"

enum { QPS = 100, DEPTH = 128, HOT = 200, MIB = 1 << 20 };
enum { RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double since_us(uint64_t begin)
{
	return (clock_ns() - begin) / (double)NSEC_PER_USEC;
}

/* Pss of the whole process in KiB, segments that are shared with others included. */
static long pss_kib(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	long kib = -1;

	if (!f)
		die("/proc/self/smaps_rollup");
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "Pss: %ld kB", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

static struct ibv_context *open_first(void)
{
	uint64_t begin = clock_ns();
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	if (!list || !list[0])
		die("no device");
	context = ibv_open_device(list[0]);
	if (!context)
		die("ibv_open_device");
	printf("open_us %.1f\n", since_us(begin));
	ibv_free_device_list(list);
	return context;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(pd->context, 2 * DEPTH, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {DEPTH, DEPTH, 1, 1, 0},
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;

	if (!qp)
		die("ibv_create_qp");
	return qp;
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = RIGHTS & ~IBV_ACCESS_LOCAL_WRITE,
	};

	if (ibv_modify_qp(qp, &attr,
		    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("ibv_modify_qp");
}

static void cost_of_qps(struct ibv_pd *pd)
{
	struct ibv_qp *qps[QPS];
	uint64_t begin;
	long before;

	to_init(create_qp(pd)); /* what only the first one touches does not count */
	before = pss_kib();
	begin = clock_ns();

	for (int i = 0; i < QPS; i++)
		qps[i] = create_qp(pd);
	printf("qp_us %.2f\n", since_us(begin) / QPS);
	begin = clock_ns();
	for (int i = 0; i < QPS; i++)
		to_init(qps[i]);
	printf("qp_init_us %.2f\n", since_us(begin) / QPS);
	printf("qp_kib %.2f\n", (pss_kib() - before) / (double)QPS);
}

static void cost_of_mr(struct ibv_pd *pd, const char *suffix, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t begin = clock_ns();
	struct ibv_mr *mr = p != MAP_FAILED ? ibv_reg_mr(pd, p, size, RIGHTS) : NULL;

	if (!mr)
		die("ibv_reg_mr");
	printf("reg%s_us %.2f\n", suffix, since_us(begin));
	begin = clock_ns();
	if (ibv_dereg_mr(mr))
		die("ibv_dereg_mr");
	printf("dereg%s_us %.2f\n", suffix, since_us(begin));
	munmap(p, size);
}

static int areas(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	int n = 0;

	for (int c; f && (c = getc(f)) != EOF;)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

/* Every second page, or MiB, of what has been written. */
static void cost_of_hot(struct ibv_pd *pd, const char *suffix, size_t size)
{
	size_t len = 2 * HOT * size;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double reg[HOT], dereg[HOT];

	if (p == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < HOT; i++) {
		char *at = p + 2 * i * size;
		struct ibv_mr *mr;
		uint64_t begin;

		memset(at, i + 1, size);
		begin = clock_ns();
		mr = ibv_reg_mr(pd, at, size, RIGHTS);
		reg[i] = since_us(begin);
		if (!mr)
			die("ibv_reg_mr");
		memset(at, i, size);
		begin = clock_ns();
		if (ibv_dereg_mr(mr))
			die("ibv_dereg_mr");
		dereg[i] = since_us(begin);
	}
	printf("reg_hot%s_us %.2f\ndereg_hot%s_us %.2f\n", suffix, median(reg, HOT), suffix,
		median(dereg, HOT));
	munmap(p, len);
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void cost_of_mapping(struct ibv_pd *pd, int threads)
{
	int before = areas();
	pthread_t t;

	while (threads-- > 0)
		if (pthread_create(&t, NULL, idle, NULL))
			die("pthread_create");
	cost_of_hot(pd, "_4k", 4096);
	cost_of_hot(pd, "_1m", MIB);
	printf("areas %d\n", areas() - before);
}

int main(int argc, char **argv)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd;

	if (argc > 1 && strcmp(argv[1], "open") == 0)
		return 0;
	pd = ibv_alloc_pd(context);
	if (!pd)
		die("ibv_alloc_pd");
	if (argc > 1 && strcmp(argv[1], "reg") == 0) {
		cost_of_mapping(pd, argc > 2 ? atoi(argv[2]) : 0);
		return 0;
	}
	cost_of_mr(pd, "_4k", 4096);
	cost_of_mr(pd, "", 32ull << 30);
	cost_of_qps(pd);
	return 0;
}
