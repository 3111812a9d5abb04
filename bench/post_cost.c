// SPDX-License-Identifier: BSD-3-Clause
/*
 * post_cost send|write|read|ud SIZE N: N requests of that size from one process to another, as
 * programs do.  BATCH of them are posted, then their completions are polled one by one, then those
 * of the receives: no poll finds nothing.  bench/instructions counts what each call executes.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { GRH_BYTES = 40, BATCH = 50 };

static const struct kind {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_qp_type type;
	bool receives;
} kinds[] = {
	{"send", IBV_WR_SEND, IBV_QPT_RC, true},
	{"write", IBV_WR_RDMA_WRITE, IBV_QPT_RC, false},
	{"read", IBV_WR_RDMA_READ, IBV_QPT_RC, false},
	{"ud", IBV_WR_SEND, IBV_QPT_UD, true},
	{0},
};

struct job {
	const struct kind *kind;
	uint32_t size;
	long count;
};

static const struct kind *kind_of(const char *name)
{
	const struct kind *k = kinds;

	while (k->name && strcmp(k->name, name) != 0)
		k++;
	return k->name ? k : NULL;
}

static void make(struct vp_end *e, const struct job *job)
{
	struct vp_opts o = vp_defaults();

	o.type = job->kind->type;
	o.send_wr = o.recv_wr = o.cqe = BATCH;
	o.len = job->size + GRH_BYTES;
	vp_make(e, vp_open(), &o);
}

static void drop(struct vp_end *e)
{
	vp_free(e);
	CHECK(!ibv_close_device(e->ctx));
}

static void poll_all(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	for (uint64_t id = 0; id < BATCH; id++)
		vp_want(cq, &wc, IBV_WC_SUCCESS, id);
}

static void answer(int fd, void *arg)
{
	const struct job *job = arg;
	struct vp_end b;

	make(&b, job);
	vp_meet(&b, fd);
	for (long i = 0; job->kind->receives && i < job->count; i += BATCH) {
		for (uint64_t id = 0; id < BATCH; id++)
			vp_post_recv(&b, id, 0, b.len);
		vp_sync(fd); /* they are posted */
		vp_sync(fd); /* they are taken */
		poll_all(b.rcq);
	}
	vp_sync(fd);
	drop(&b);
}

static void post(
	struct vp_end *a, const struct job *job, struct ibv_ah *ah, const struct vp_addr *to)
{
	for (uint64_t id = 0; id < BATCH; id++)
		if (ah)
			vp_post_ud(a, id, ah, to->qpn, VP_QKEY, 0, job->size);
		else
			vp_post_send(
				a, id, job->kind->opcode, IBV_SEND_SIGNALED, 0, job->size, to, 0);
}

static void ask(int fd, const struct job *job)
{
	struct ibv_ah *ah = NULL;
	struct vp_addr to;
	struct vp_end a;

	make(&a, job);
	to = vp_meet(&a, fd);
	if (job->kind->type == IBV_QPT_UD)
		ah = vp_ah(&a, &to.gid);
	for (long i = 0; i < job->count; i += BATCH) {
		if (job->kind->receives)
			vp_sync(fd);
		post(&a, job, ah, &to);
		poll_all(a.scq);
		if (job->kind->receives)
			vp_sync(fd);
	}
	vp_sync(fd);
	if (ah)
		CHECK(!ibv_destroy_ah(ah));
	drop(&a);
}

int main(int argc, char **argv)
{
	struct vp_child other;
	struct job job;

	job.kind = argc == 4 ? kind_of(argv[1]) : NULL;
	if (!job.kind)
		die("usage: post_cost send|write|read|ud SIZE N");
	job.size = strtoul(argv[2], NULL, 0);
	job.count = atol(argv[3]);
	other = vp_fork(answer, &job);
	ask(other.fd, &job);
	vp_join(&other);
	return check_failures() != 0;
}
