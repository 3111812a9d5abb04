// SPDX-License-Identifier: BSD-3-Clause
/*
 * librpma between two processes: each operation with each way of making a connection.  The child
 * serves; the parent works on its memory and tells it what to look at.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/weft/verbs_ext.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/rpma_ends.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 1 << 16, SMALL = 4, MSG = 64, MSGS = 4, ALWAYS = RPMA_F_COMPLETION_ALWAYS };

/* How both ends are made. */
enum variant { PLAIN, RCQ, SHARED, SHARED_RCQ, SRQ, SRQ_RCQ, NO_ATOMIC, VARIANTS };

struct end {
	struct rpma_peer *peer;
	struct rpma_conn_cfg *cfg;
	struct rpma_srq *srq;
	struct rpma_conn *conn;
	struct rpma_cq *rcq; /* where receives complete */
	uint8_t *buf;
	struct rpma_mr_local *mr;
};

/* What the server tells in its private data. */
struct hello {
	uint8_t all[21], small[21], flushable[21], pcfg[1];
};
_Static_assert(sizeof(struct hello) == 64, "of 196 bytes that an answer may have");

static const int all_usage =
	RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
	RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
	RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;

/* ---- both ends ---- */

static void make_end(struct end *e, enum variant v)
{
	struct rpma_srq_cfg *srq_cfg;

	*e = (struct end){0};
	rp_hide_caps(v == NO_ATOMIC ? IB_UVERBS_DEVICE_ATOMIC_WRITE : 0);
	e->peer = rp_peer();
	CHECK_EQ(rpma_conn_cfg_new(&e->cfg), 0);
	CHECK_EQ(rpma_conn_cfg_set_compl_channel(e->cfg, v == SHARED || v == SHARED_RCQ), 0);
	CHECK_EQ(rpma_conn_cfg_set_rcq_size(e->cfg, v == RCQ || v == SHARED_RCQ ? 10 : 0), 0);
	if (v == SRQ || v == SRQ_RCQ) {
		CHECK_EQ(rpma_srq_cfg_new(&srq_cfg), 0);
		CHECK_EQ(rpma_srq_cfg_set_rcq_size(srq_cfg, v == SRQ_RCQ ? 10 : 0), 0);
		CHECK_EQ(rpma_srq_new(e->peer, srq_cfg, &e->srq), 0);
		CHECK_EQ(rpma_srq_cfg_delete(&srq_cfg), 0);
		CHECK_EQ(rpma_conn_cfg_set_srq(e->cfg, e->srq), 0);
	}
	e->buf = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_EQ(rpma_mr_reg(e->peer, e->buf, LEN, all_usage, &e->mr), 0);
}

static void find_rcq(struct end *e, enum variant v)
{
	struct rpma_cq *own = NULL;

	CHECK_EQ(rpma_conn_get_rcq(e->conn, &own), 0);
	CHECK(!own == (v != RCQ && v != SHARED_RCQ));
	e->rcq = own ? own : rp_cq(e->conn);
	if (v == SRQ_RCQ)
		CHECK_EQ(rpma_srq_get_rcq(e->srq, &e->rcq), 0);
}

static void free_end(struct end *e)
{
	CHECK_EQ(rpma_conn_delete(&e->conn), 0);
	if (e->srq)
		CHECK_EQ(rpma_srq_delete(&e->srq), 0);
	CHECK_EQ(rpma_conn_cfg_delete(&e->cfg), 0);
	CHECK_EQ(rpma_mr_dereg(&e->mr), 0);
	CHECK_EQ(rpma_peer_delete(&e->peer), 0);
	munmap(e->buf, LEN);
}

static int post_recv(struct end *e, size_t offset, size_t len, const void *context)
{
	if (e->srq)
		return rpma_srq_recv(e->srq, e->mr, offset, len, context);
	return rpma_recv(e->conn, e->mr, offset, len, context);
}

/* ---- the server ---- */

static void make_hello(struct end *e, struct rpma_mr_local *small, struct rpma_mr_local *flushable,
	struct hello *hello)
{
	struct rpma_peer_cfg *cfg;

	CHECK_EQ(rpma_mr_get_descriptor(e->mr, hello->all), 0);
	CHECK_EQ(rpma_mr_get_descriptor(small, hello->small), 0);
	CHECK_EQ(rpma_mr_get_descriptor(flushable, hello->flushable), 0);
	CHECK_EQ(rpma_peer_cfg_new(&cfg), 0);
	CHECK_EQ(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true), 0);
	CHECK_EQ(rpma_peer_cfg_get_descriptor(cfg, hello->pcfg), 0);
	CHECK_EQ(rpma_peer_cfg_delete(&cfg), 0);
}

static void accept_one(struct end *e, struct rpma_ep *ep, const struct hello *hello)
{
	struct rpma_conn_private_data mine = {.ptr = (void *)hello, .len = sizeof *hello}, theirs;
	struct rpma_conn_req *req;

	if (rpma_ep_next_conn_req(ep, e->cfg, &req))
		die("no request");
	CHECK_EQ(rpma_conn_req_get_private_data(req, &theirs), 0);
	CHECK(theirs.len >= 5 && !memcmp(theirs.ptr, "hello", 5));
	for (uintptr_t i = 0; i < MSGS; i++) {
		if (e->srq)
			CHECK_EQ(rpma_srq_recv(e->srq, e->mr, i * MSG, MSG, (void *)i), 0);
		else
			CHECK_EQ(rpma_conn_req_recv(req, e->mr, i * MSG, MSG, (void *)i), 0);
	}
	CHECK_EQ(rpma_conn_req_connect(&req, &mine, &e->conn), 0);
	CHECK(!req);
	rp_expect(e->conn, RPMA_CONN_ESTABLISHED);
	CHECK_EQ(rpma_conn_get_private_data(e->conn, &theirs), 0);
	CHECK(theirs.len >= 5 && !memcmp(theirs.ptr, "hello", 5));
}

static struct ibv_wc take_recv(struct end *e, uintptr_t context)
{
	struct ibv_wc wc = rp_wc(e->rcq);

	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, context);
	return wc;
}

/* In the order in which the client sends. */
static void take_messages(struct end *e)
{
	struct ibv_wc wc = take_recv(e, 0);

	CHECK_EQ(wc.opcode, IBV_WC_RECV);
	CHECK_EQ(wc.byte_len, 33);
	CHECK(!(wc.wc_flags & IBV_WC_WITH_IMM));
	CHECK(pattern_filled(e->buf, 33, 7));
	wc = take_recv(e, 1);
	CHECK_EQ(wc.byte_len, MSG);
	CHECK(wc.wc_flags & IBV_WC_WITH_IMM);
	CHECK_EQ(ntohl(wc.imm_data), 0x01020304);
	CHECK(pattern_filled(e->buf + MSG, MSG, 7));
	wc = take_recv(e, 2);
	CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK_EQ(wc.byte_len, 100);
	CHECK_EQ(ntohl(wc.imm_data), 0xfffefdfc);
	CHECK(pattern_filled(e->buf + 6000, 100, 7));
	wc = take_recv(e, 3);
	CHECK_EQ(wc.byte_len, 0);
	CHECK_EQ(ntohl(wc.imm_data), 5);
}

static void serve(int fd, void *arg)
{
	enum variant v = *(enum variant *)arg;
	uint8_t small_buf[SMALL] = {1, 2, 3, 4}, plain[MSG] = {0};
	struct rpma_mr_local *small, *flushable;
	struct hello hello;
	struct rpma_ep *ep;
	struct end e;

	check_case("server, variant %d", v);
	make_end(&e, v);
	CHECK_EQ(rpma_mr_reg(e.peer, small_buf, SMALL,
			 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, &small),
		0);
	CHECK_EQ(rpma_mr_reg(e.peer, plain, MSG, RPMA_MR_USAGE_WRITE_DST, &flushable), 0);
	make_hello(&e, small, flushable, &hello);
	ep = rp_listen(e.peer);
	vp_sync(fd);
	accept_one(&e, ep, &hello);
	find_rcq(&e, v);
	vp_sync(fd); /* connected */
	vp_sync(fd); /* written */
	CHECK(pattern_filled(e.buf + 8192, 30000, 3));
	pattern_fill(e.buf + 8192, 30000, 4);
	vp_sync(fd); /* to be read */
	vp_sync(fd); /* written atomically */
	CHECK(!memcmp(e.buf + 4096, "12345678", 8));
	CHECK(!memcmp(e.buf + 4104, "abcdefgh", 8));
	take_messages(&e);
	CHECK_EQ(post_recv(&e, 0, MSG, NULL), 0);
	vp_sync(fd); /* messages taken */
	pattern_fill(e.buf, MSG, 9);
	CHECK_EQ(rpma_send(e.conn, e.mr, 0, MSG, ALWAYS, e.buf), 0);
	rp_done(e.conn, e.buf, IBV_WC_SUCCESS);
	rp_expect(e.conn, RPMA_CONN_CLOSED);
	CHECK_EQ(rpma_conn_disconnect(e.conn), 0);
	vp_sync(fd);
	CHECK_EQ(rpma_mr_dereg(&small), 0);
	CHECK_EQ(rpma_mr_dereg(&flushable), 0);
	CHECK_EQ(rpma_ep_shutdown(&ep), 0);
	free_end(&e);
}

/* ---- the client ---- */

struct regions {
	struct rpma_mr_remote *all, *small, *no_flush;
};

static void meet(struct end *e, struct regions *r)
{
	struct rpma_conn_private_data mine = {.ptr = "hello", .len = 5}, theirs;
	struct hello *hello;

	e->conn = rp_call(e->peer, e->cfg, &mine);
	rp_expect(e->conn, RPMA_CONN_ESTABLISHED);
	CHECK_EQ(rpma_conn_get_private_data(e->conn, &theirs), 0);
	if (!CHECK(theirs.len >= sizeof *hello))
		die("no private data");
	hello = theirs.ptr;
	CHECK_EQ(rpma_mr_remote_from_descriptor(hello->all, 21, &r->all), 0);
	CHECK_EQ(rpma_mr_remote_from_descriptor(hello->small, 21, &r->small), 0);
	CHECK_EQ(rpma_mr_remote_from_descriptor(hello->flushable, 21, &r->no_flush), 0);
}

static void apply_cfg(struct end *e)
{
	struct rpma_conn_private_data theirs;
	struct rpma_peer_cfg *cfg;

	CHECK_EQ(rpma_conn_get_private_data(e->conn, &theirs), 0);
	CHECK_EQ(rpma_peer_cfg_from_descriptor(((struct hello *)theirs.ptr)->pcfg, 1, &cfg), 0);
	CHECK_EQ(rpma_conn_apply_remote_peer_cfg(e->conn, cfg), 0);
	CHECK_EQ(rpma_peer_cfg_delete(&cfg), 0);
}

static void flushes(struct end *e, struct regions *r)
{
	const enum rpma_flush_type vis = RPMA_FLUSH_TYPE_VISIBILITY,
				   pers = RPMA_FLUSH_TYPE_PERSISTENT;
	struct ibv_wc wc;

	CHECK_EQ(rpma_flush(e->conn, r->all, 0, LEN, pers, ALWAYS, NULL), RPMA_E_NOSUPP);
	apply_cfg(e);
	CHECK_EQ(rpma_flush(e->conn, r->no_flush, 0, 8, vis, ALWAYS, NULL), RPMA_E_NOSUPP);
	CHECK_EQ(rpma_flush(e->conn, r->no_flush, 0, 8, pers, ALWAYS, NULL), RPMA_E_NOSUPP);
	CHECK_EQ(rpma_flush(e->conn, r->all, 0, LEN, pers, ALWAYS, r), 0);
	wc = rp_done(e->conn, r, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_RDMA_READ);
	/* The last bytes, nothing, and a region smaller than what a flush reads. */
	CHECK_EQ(rpma_flush(e->conn, r->all, LEN - 1, 1, vis, ALWAYS, r), 0);
	rp_done(e->conn, r, IBV_WC_SUCCESS);
	CHECK_EQ(rpma_flush(e->conn, r->all, LEN, 0, vis, ALWAYS, r), 0);
	rp_done(e->conn, r, IBV_WC_SUCCESS);
	CHECK_EQ(rpma_flush(e->conn, r->small, SMALL - 1, 1, vis, ALWAYS, r), 0);
	rp_done(e->conn, r, IBV_WC_SUCCESS);
	/* Without a completion: the next one is of what comes behind. */
	CHECK_EQ(rpma_flush(e->conn, r->all, 0, 8, vis, RPMA_F_COMPLETION_ON_ERROR, NULL), 0);
	CHECK_EQ(rpma_flush(e->conn, r->all, 0, 8, vis, ALWAYS, e), 0);
	rp_done(e->conn, e, IBV_WC_SUCCESS);
}

static void transfers(struct end *e, struct regions *r, int fd)
{
	pattern_fill(e->buf + 100, 30000, 3);
	CHECK_EQ(rpma_write(e->conn, r->all, 8192, e->mr, 100, 30000, RPMA_F_COMPLETION_ON_ERROR,
			 NULL),
		0);
	CHECK_EQ(
		rpma_flush(e->conn, r->all, 8192, 30000, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, r), 0);
	rp_done(e->conn, r, IBV_WC_SUCCESS);
	vp_sync(fd); /* written */
	vp_sync(fd); /* to be read */
	CHECK_EQ(rpma_read(e->conn, e->mr, 1, r->all, 8192, 30000, ALWAYS, e), 0);
	rp_done(e->conn, e, IBV_WC_SUCCESS);
	CHECK(pattern_filled(e->buf + 1, 30000, 4));
	/* Nothing, with regions and without. */
	CHECK_EQ(rpma_read(e->conn, e->mr, LEN, r->all, LEN, 0, ALWAYS, e), 0);
	rp_done(e->conn, e, IBV_WC_SUCCESS);
	CHECK_EQ(rpma_read(e->conn, NULL, 0, NULL, 0, 0, ALWAYS, e), 0);
	rp_done(e->conn, e, IBV_WC_SUCCESS);
	CHECK_EQ(rpma_write(e->conn, NULL, 0, NULL, 0, 0, ALWAYS, e), 0);
	rp_done(e->conn, e, IBV_WC_SUCCESS);
}

static void atomics(struct end *e, struct regions *r, bool native)
{
	char word[8] = "12345678";
	struct ibv_wc wc;

	CHECK_EQ(rpma_flush(e->conn, r->all, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT,
			 RPMA_F_COMPLETION_ON_ERROR, NULL),
		0);
	CHECK_EQ(rpma_atomic_write(e->conn, r->all, 4096, word, ALWAYS, word), 0);
	memset(word, 'x', sizeof word); /* has been read */
	wc = rp_done(e->conn, word, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, native ? IBV_WC_ATOMIC_WRITE : IBV_WC_RDMA_WRITE);
	memcpy(e->buf + 3, "abcdefgh", 8);
	CHECK_EQ(rpma_write_atomic(e->conn, r->all, 4104, e->mr, 3, ALWAYS, word), 0);
	rp_done(e->conn, word, IBV_WC_SUCCESS);
}

static void messages(struct end *e, struct regions *r)
{
	pattern_fill(e->buf, MSG * 2, 7);
	CHECK_EQ(rpma_send(e->conn, e->mr, 0, 33, ALWAYS, e), 0);
	rp_done(e->conn, e, IBV_WC_SUCCESS);
	CHECK_EQ(rpma_send_with_imm(e->conn, e->mr, 0, MSG, ALWAYS, 0x01020304, e), 0);
	rp_done(e->conn, e, IBV_WC_SUCCESS);
	CHECK_EQ(rpma_write_with_imm(e->conn, r->all, 6000, e->mr, 0, 100, ALWAYS, 0xfffefdfc, e),
		0);
	rp_done(e->conn, e, IBV_WC_SUCCESS);
	CHECK_EQ(rpma_send_with_imm(e->conn, NULL, 0, 0, ALWAYS, 5, e), 0);
	rp_done(e->conn, e, IBV_WC_SUCCESS);
}

/* The answer, waited for as the variant has it. */
static void hear_answer(struct end *e, enum variant v)
{
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;
	bool is_rcq;
	int ret = RPMA_E_NO_COMPLETION;

	if (v == SHARED || v == SHARED_RCQ) {
		do { /* events of what was polled before come first */
			CHECK_EQ(rpma_conn_wait(e->conn, 0, &cq, &is_rcq), 0);
			CHECK(cq == (is_rcq ? e->rcq : rp_cq(e->conn)));
			ret = rpma_cq_get_wc(cq, 1, &wc, NULL);
		} while (ret == RPMA_E_NO_COMPLETION);
		CHECK_EQ(ret, 0);
		CHECK_EQ(is_rcq, v == SHARED_RCQ);
	} else {
		wc = rp_wc(e->rcq);
	}
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, 77);
	CHECK(pattern_filled(e->buf + 512, MSG, 9));
}

static void test_variant(enum variant v)
{
	struct vp_child child = vp_fork(serve, &v);
	struct regions r;
	struct end e;

	check_case("client, variant %d", v);
	make_end(&e, v);
	vp_sync(child.fd);
	meet(&e, &r);
	find_rcq(&e, v);
	CHECK_EQ(post_recv(&e, 512, MSG, (void *)77), 0);
	vp_sync(child.fd); /* connected */
	flushes(&e, &r);
	transfers(&e, &r, child.fd);
	atomics(&e, &r, v != NO_ATOMIC);
	vp_sync(child.fd); /* written atomically */
	messages(&e, &r);
	vp_sync(child.fd); /* messages taken */
	hear_answer(&e, v);
	CHECK_EQ(rpma_conn_disconnect(e.conn), 0);
	rp_expect(e.conn, RPMA_CONN_CLOSED);
	vp_sync(child.fd);
	CHECK_EQ(rpma_mr_remote_delete(&r.all), 0);
	CHECK_EQ(rpma_mr_remote_delete(&r.small), 0);
	CHECK_EQ(rpma_mr_remote_delete(&r.no_flush), 0);
	free_end(&e);
	vp_join(&child);
}

/* ---- what goes wrong on the other side ---- */

/* Rights that the region was not registered for. */
static void no_rights(void)
{
	struct rpma_peer *peer = rp_peer();
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *src, *mr;
	static uint8_t buf[64], other[64];
	struct rp_pair pair;

	check_case("no rights");
	CHECK_EQ(rpma_mr_reg(peer, buf, sizeof buf, all_usage, &mr), 0);
	CHECK_EQ(rpma_mr_reg(peer, other, sizeof other, RPMA_MR_USAGE_WRITE_SRC, &src), 0);
	remote = rp_remote(src);
	for (int write = 0; write < 2; write++) {
		rp_pair(peer, NULL, &pair);
		if (write)
			CHECK_EQ(rpma_write(pair.active, remote, 0, mr, 0, 8,
					 RPMA_F_COMPLETION_ON_ERROR, buf),
				0);
		else
			CHECK_EQ(rpma_read(pair.active, mr, 0, remote, 0, 8,
					 RPMA_F_COMPLETION_ON_ERROR, buf),
				0);
		rp_done(pair.active, buf, IBV_WC_REM_ACCESS_ERR);
		rp_pair_end(&pair);
	}
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
	CHECK_EQ(rpma_mr_dereg(&src), 0);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
}

/* A region may begin anywhere; no adapter has an atomic operation there. */
static void odd_region(void)
{
	static uint8_t odd[64];
	struct rpma_peer *peer = rp_peer();
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	struct rp_pair pair;

	check_case("odd region");
	CHECK_EQ(rpma_mr_reg(peer, odd + 1, 32, RPMA_MR_USAGE_WRITE_DST, &mr), 0);
	remote = rp_remote(mr);
	rp_pair(peer, NULL, &pair);
	CHECK_EQ(rpma_atomic_write(pair.active, remote, 8, "abcdefgh", ALWAYS, odd), 0);
	rp_done(pair.active, odd, IBV_WC_SUCCESS);
	CHECK(!memcmp(odd + 9, "abcdefgh", 8));
	rp_pair_end(&pair);
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
}

/* Offsets that no 32 bits hold. */
static void beyond_4g(void)
{
	const size_t size = 5ull << 30, far = (9ull << 29) + 8;
	int fd = memfd_create("large", MFD_CLOEXEC);
	struct rpma_peer *peer = rp_peer();
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	struct rp_pair pair;
	size_t got = 0;
	char *big;

	check_case("beyond 4 GiB");
	if (fd < 0 || ftruncate(fd, size))
		die("memfd");
	big = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (big == MAP_FAILED || rpma_mr_reg(peer, big, size, all_usage, &mr))
		die("5 GiB");
	remote = rp_remote(mr);
	CHECK_EQ(rpma_mr_remote_get_size(remote, &got), 0);
	CHECK_EQ(got, size);
	rp_pair(peer, NULL, &pair);
	strcpy(big, "far away");
	CHECK_EQ(rpma_write(pair.active, remote, far, mr, 0, 9, ALWAYS, big), 0);
	rp_done(pair.active, big, IBV_WC_SUCCESS);
	CHECK_EQ(rpma_flush(pair.active, remote, 0, size, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, big),
		0);
	rp_done(pair.active, big, IBV_WC_SUCCESS);
	CHECK_EQ(rpma_atomic_write(pair.active, remote, far + 16, "abcdefgh", ALWAYS, big), 0);
	rp_done(pair.active, big, IBV_WC_SUCCESS);
	CHECK_EQ(rpma_read(pair.active, mr, far + 100, remote, far + 4, 5, ALWAYS, big), 0);
	rp_done(pair.active, big, IBV_WC_SUCCESS);
	CHECK(!strcmp(big + far, "far away") && !strcmp(big + far + 100, "away"));
	CHECK(!memcmp(big + far + 16, "abcdefgh", 8));
	CHECK_EQ(rpma_write(pair.active, remote, 0, mr, 0, 1ull << 32, ALWAYS, big), RPMA_E_INVAL);
	CHECK_EQ(rpma_mr_advise(mr, 8, size - 8, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0), 0);
	rp_pair_end(&pair);
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
	munmap(big, size);
	close(fd);
}

int main(void)
{
	for (enum variant v = 0; v < VARIANTS; v++)
		test_variant(v);
	rp_hide_caps(0);
	no_rights();
	odd_region();
	beyond_4g();
	return check_result();
}
