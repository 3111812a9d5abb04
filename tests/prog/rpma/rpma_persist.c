// SPDX-License-Identifier: BSD-3-Clause
/*
 * rpma_flush by the FLUSH operation: a file of the peer is written back, but where either end knows
 * reads alone.  This program's own msync() stands before the kernel's and counts.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "include/weft/rkey.h"
#include "include/weft/verbs_ext.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/rpma_ends.h"
#include "tests/lib/verbs_pair.h"

enum { SKIP = 77, ALWAYS = RPMA_F_COMPLETION_ALWAYS };

/* Offsets that no 32 bits hold; the file is all hole. */
static const size_t LEN = 5ull << 30, FAR = (9ull << 29) + 100;

static atomic_int *calls;

__attribute__((visibility("default"))) int msync(void *addr, size_t len, int flags)
{
	if (calls && flags == MS_SYNC)
		atomic_fetch_add(calls, 1);
	return syscall(SYS_msync, addr, len, flags);
}

static void *map_file(void)
{
	static const char *const names[] = {"./weft-rpma-XXXXXX", "/var/tmp/weft-rpma-XXXXXX"};
	struct statfs fs;
	char name[64];
	void *p;

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		int fd = mkstemp(strcpy(name, names[i]));

		if (fd < 0)
			continue;
		unlink(name);
		p = MAP_FAILED;
		if (!fstatfs(fd, &fs) && fs.f_type != TMPFS_MAGIC && !ftruncate(fd, LEN))
			p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		if (p != MAP_FAILED)
			return p;
	}
	printf("no directory on a disk\n");
	exit(SKIP);
}

/* An adapter with FLUSH, or without. */
static struct rpma_peer *peer_of(bool knows_flush)
{
	rp_hide_caps(knows_flush
			     ? 0
			     : IB_UVERBS_DEVICE_FLUSH_GLOBAL | IB_UVERBS_DEVICE_FLUSH_PERSISTENT);
	return rp_peer();
}

/* ---- the owner of the file ---- */

static void serve(int fd, void *arg)
{
	struct rpma_peer *peer = peer_of(*(bool *)arg);
	struct rpma_conn_private_data pdata = {.len = 21};
	struct rpma_mr_local *mr;
	struct rpma_conn *conn;
	struct rpma_ep *ep;
	uint8_t desc[21], *file = map_file();

	CHECK_EQ(rpma_mr_reg(peer, file, LEN,
			 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT |
				 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
			 &mr),
		0);
	CHECK_EQ(rpma_mr_get_descriptor(mr, desc), 0);
	pdata.ptr = desc;
	ep = rp_listen(peer);
	vp_sync(fd);
	conn = rp_answer(ep, NULL, &pdata);
	rp_expect(conn, RPMA_CONN_ESTABLISHED);
	vp_sync(fd); /* written and flushed */
	CHECK(pattern_filled(file + FAR, 5000, 3));
	rp_expect(conn, RPMA_CONN_CLOSED);
	CHECK_EQ(rpma_conn_disconnect(conn), 0);
	CHECK_EQ(rpma_conn_delete(&conn), 0);
	CHECK_EQ(rpma_ep_shutdown(&ep), 0);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
	munmap(file, LEN);
}

/* ---- who writes ---- */

static void allow_persistent(struct rpma_conn *conn)
{
	struct rpma_peer_cfg *cfg;

	CHECK_EQ(rpma_peer_cfg_new(&cfg), 0);
	CHECK_EQ(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true), 0);
	CHECK_EQ(rpma_conn_apply_remote_peer_cfg(conn, cfg), 0);
	CHECK_EQ(rpma_peer_cfg_delete(&cfg), 0);
}

/* Flushes, and how often the file was written back for it. */
static int flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, enum rpma_flush_type type)
{
	int before = atomic_load(calls);
	struct ibv_wc wc;

	CHECK_EQ(rpma_flush(conn, dst, FAR, 5000, type, ALWAYS, dst), 0);
	wc = rp_done(conn, dst, IBV_WC_SUCCESS);
	/* Whatever carried it out: programs of all releases expect that. */
	CHECK_EQ(wc.opcode, IBV_WC_RDMA_READ);
	return atomic_load(calls) - before;
}

static void try_it(bool client_knows, bool server_knows)
{
	struct rpma_conn_private_data theirs;
	struct vp_child server = vp_fork(serve, &server_knows);
	static uint8_t buf[5000];
	struct rpma_mr_remote *dst;
	struct rpma_mr_local *src;
	struct rpma_conn *conn;
	struct rpma_peer *peer;

	check_case("FLUSH: the writer %d, the owner %d", client_knows, server_knows);
	peer = peer_of(client_knows);
	pattern_fill(buf, sizeof buf, 3);
	CHECK_EQ(rpma_mr_reg(peer, buf, sizeof buf, RPMA_MR_USAGE_WRITE_SRC, &src), 0);
	vp_sync(server.fd);
	conn = rp_call(peer, NULL, NULL);
	rp_expect(conn, RPMA_CONN_ESTABLISHED);
	CHECK_EQ(rpma_conn_get_private_data(conn, &theirs), 0);
	CHECK_EQ(rpma_mr_remote_from_descriptor(theirs.ptr, 21, &dst), 0);
	allow_persistent(conn);
	CHECK_EQ(rpma_write(conn, dst, FAR, src, 0, sizeof buf, RPMA_F_COMPLETION_ON_ERROR, NULL),
		0);
	CHECK_EQ(flush(conn, dst, RPMA_FLUSH_TYPE_VISIBILITY), 0);
	CHECK_EQ(flush(conn, dst, RPMA_FLUSH_TYPE_PERSISTENT), client_knows && server_knows);
	vp_sync(server.fd); /* written and flushed */
	CHECK_EQ(rpma_conn_disconnect(conn), 0);
	rp_expect(conn, RPMA_CONN_CLOSED);
	CHECK_EQ(rpma_conn_delete(&conn), 0);
	CHECK_EQ(rpma_mr_remote_delete(&dst), 0);
	CHECK_EQ(rpma_mr_dereg(&src), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
	vp_join(&server);
}

/* ---- what tells the ends apart ---- */

static void key_rights(void)
{
	const int rights[] = {IBV_ACCESS_REMOTE_READ, IBV_ACCESS_FLUSH_PERSISTENT,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;
	unsigned access;

	check_case("weft_rkey_access");
	o.len = 4096;
	vp_pair(&a, &b, &o);
	for (unsigned i = 0; i < sizeof rights / sizeof *rights; i++) {
		struct ibv_mr *mr = ibv_reg_mr(b.pd, b.buf, 4096, rights[i]);
		uint32_t key = mr->rkey;

		access = 0;
		CHECK_EQ(weft_rkey_access(a.qp, key, &access), 0);
		CHECK_EQ(access, rights[i]);
		CHECK_EQ(weft_rkey_access(a.qp, key + 1, &access), ENOENT);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		CHECK_EQ(weft_rkey_access(a.qp, key, &access), ENOENT);
	}
	CHECK_EQ(vp_state(&a, IBV_QPS_RESET), 0);
	CHECK_EQ(weft_rkey_access(a.qp, b.mr->rkey, &access), EINVAL);
	vp_pair_free(&a, &b);
}

int main(void)
{
	munmap(map_file(), LEN); /* else it is over */
	calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (calls == MAP_FAILED)
		die("mmap");
	for (int i = 3; i >= 0; i--)
		try_it(i & 1, i & 2);
	key_rights();
	return check_result();
}
