// SPDX-License-Identifier: BSD-3-Clause
/*
 * Peers of a process under the power-failure simulator: who keeps the same journal notes what he
 * does; who keeps another one, or none, is refused what he could not note, and opens no file that
 * a peer names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "crash/journal.h"
#include "crash/keep.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	LEN = 4096,
	SIZE = 2 << 20,
	CLIENTS = 3,
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_ATOMIC
};

/* A client: its journal (NULL: none), and whether that is the server's. */
struct client {
	char journal[256], log[256];
	bool same;
};

static const struct op {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool writes;
} ops[] = {
	{"READ", IBV_WR_RDMA_READ, false},
	{"WRITE", IBV_WR_RDMA_WRITE, true},
	{"atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, true},
	{"SEND", IBV_WR_SEND, true},
};

enum { OPS = sizeof ops / sizeof *ops };

static const char *in_dir(char path[256], const char *name)
{
	snprintf(path, 256, "%s/%s", getenv("WEFT_RUNTIME_DIR"), name);
	return path;
}

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	o.mr_access = o.qp_access = RIGHTS;
	return o;
}

/* ---- a client ---- */

static void try(const struct op *op, bool refused, struct ibv_context *ctx, int fd)
{
	struct vp_opts o = options();
	struct vp_addr peer;
	struct vp_end e;
	struct ibv_wc wc;

	vp_make(&e, ctx, &o);
	peer = vp_meet(&e, fd);
	vp_sync(fd);
	pattern_fill(e.buf, 8, 1);
	CHECK_EQ(vp_post_send(&e, 1, op->opcode, IBV_SEND_SIGNALED, 0, 8, &peer, 0), 0);
	vp_want(e.scq, &wc, refused ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS, 1);
	vp_sync(fd);
	vp_free(&e);
}

static void client(int fd, void *arg)
{
	const struct client *c = arg;
	struct ibv_context *ctx;
	char how[300];

	if (*c->journal)
		setenv(JOURNAL_ENV, c->journal, 1);
	snprintf(how, sizeof how, "warn:%s", c->log);
	setenv("WEFT_LOG", how, 1);
	vp_sync(fd);
	ctx = vp_open();
	for (unsigned i = 0; i < OPS; i++) {
		check_case("%s, journal '%s'", ops[i].name, c->journal);
		try(&ops[i], ops[i].writes && !c->same, ctx, fd);
	}
	CHECK_EQ(ibv_close_device(ctx), 0);
	if (!c->same)
		CHECK_EQ(lines_with(c->log, "weft crash run --add"), 1);
}

/* ---- the server ---- */

static uint8_t *map_file(void)
{
	char path[256];
	FILE *f = fopen(in_dir(path, "pmem"), "w+");
	uint8_t *p;

	if (!f || ftruncate(fileno(f), LEN))
		die("%s", path);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	if (p == MAP_FAILED)
		die("mmap");
	fclose(f);
	return p;
}

static void receive(struct vp_end *e, uint8_t *mem, struct ibv_mr *mr)
{
	struct ibv_sge sge = {.addr = (uintptr_t)mem, .length = 64, .lkey = mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};

	CHECK_EQ(ibv_post_recv(e->qp, &wr, &bad), 0);
}

static void serve(
	const struct op *op, const struct client *c, struct ibv_context *ctx, int fd, uint8_t *mem)
{
	struct vp_opts o = options();
	uint8_t before[LEN];
	struct vp_addr mine, peer;
	struct ibv_mr *mr;
	struct vp_end e;

	vp_make(&e, ctx, &o);
	mr = ibv_reg_mr(e.pd, mem, LEN, RIGHTS);
	if (!mr)
		die("ibv_reg_mr");
	memset(mem, 0x55, LEN);
	memcpy(before, mem, LEN);
	mine = vp_addr(&e);
	mine.addr = (uintptr_t)mem;
	mine.rkey = mr->rkey;
	peer = vp_swap(fd, &mine);
	vp_connect(&e, &peer);
	receive(&e, mem, mr);
	vp_sync(fd);
	vp_sync(fd);
	CHECK_EQ(!!memcmp(before, mem, LEN), op->writes && c->same);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	vp_free(&e);
}

int main(void)
{
	struct client clients[CLIENTS] = {{.same = false}, {.same = false}, {.same = true}};
	struct vp_child children[CLIENTS];
	struct ibv_context *ctx;
	char path[256], other[256];
	struct journal_keep keep[2];
	struct journal j;
	uint8_t *mem;

	CHECK_EQ(journal_create(in_dir(path, "journal"), SIZE), 0);
	CHECK_EQ(journal_create(in_dir(other, "other"), SIZE), 0);
	CHECK_EQ(journal_keep(&keep[0], path), 0);
	CHECK_EQ(journal_keep(&keep[1], other), 0);
	CHECK_EQ(journal_open(&j, path, false), 0);
	strcpy(clients[1].journal, other);
	strcpy(clients[2].journal, path);
	for (unsigned i = 0; i < CLIENTS; i++) {
		in_dir(clients[i].log, "log");
		clients[i].log[strlen(clients[i].log)] = '0' + i;
		children[i] = vp_fork(client, &clients[i]);
	}
	setenv(JOURNAL_ENV, path, 1);
	mem = map_file();
	ctx = vp_open();
	for (unsigned i = 0; i < CLIENTS; i++) {
		vp_sync(children[i].fd);
		for (unsigned k = 0; k < OPS; k++) {
			uint64_t n = journal_count(&j);

			check_case("server: %s, journal '%s'", ops[k].name, clients[i].journal);
			serve(&ops[k], &clients[i], ctx, children[i].fd, mem);
			/* The region; and what was done, by whoever notes it. */
			CHECK_EQ(journal_count(&j), n + 1 + clients[i].same);
		}
		vp_join(&children[i]);
	}
	journal_close(&j);
	return check_result();
}
