// SPDX-License-Identifier: BSD-3-Clause
/*
 * Memory of a peer client at addresses of the process: every operation between two processes, what
 * a client does wrong, and clients that take their memory away.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/peer_device.h"
#include "tests/lib/verbs_pair.h"

enum {
	SIZE = 4 << 20,
	ODD = 1000,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
	      IBV_ACCESS_REMOTE_ATOMIC
};

static const uint32_t sizes[] = {1, 8, 64, 4095, 4097, 65537, 1 << 20};

enum { SIZES = sizeof sizes / sizeof *sizes };

static char log_file[256];

/* ---- an end whose memory is the device's ---- */

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.len = 0;
	return o;
}

static void use_device(struct vp_end *e, size_t at, size_t len)
{
	e->mr = ibv_reg_mr(e->pd, peer_device.addr + at, len, ALL);
	if (!e->mr)
		die("ibv_reg_mr of the device");
	e->len = len;
}

/* Requests are made of e->buf, which then is where nobody can load from. */
static void make_end(struct vp_end *e, unsigned flags)
{
	const struct vp_opts o = options();

	if (!peer_device_open("device", SIZE, flags))
		die("the client was refused");
	vp_make(e, vp_open(), &o);
	use_device(e, ODD, SIZE - 2 * ODD);
	e->buf = peer_device.addr + ODD;
}

static void free_end(struct vp_end *e)
{
	struct ibv_context *ctx = e->ctx;

	e->buf = NULL;
	vp_free(e);
	CHECK_EQ(ibv_close_device(ctx), 0);
	CHECK_EQ(peer_device.unmaps, peer_device.maps);
	CHECK_EQ(peer_device.puts, peer_device.gets);
	CHECK_EQ(peer_device.releases, peer_device.acquires);
	peer_device_close();
}

static uint8_t *bytes(void)
{
	return peer_device.store + ODD;
}

/* ---- every operation ---- */

static void respond(int fd, void *arg)
{
	struct vp_end e;
	struct ibv_wc wc;

	make_end(&e, arg ? PEER_DEVICE_KEEPS : 0);
	vp_meet(&e, fd);
	for (int i = 0; i < SIZES; i++) {
		CHECK_EQ(vp_post_recv(&e, i, 0, sizes[i]), 0);
		vp_sync(fd);
		CHECK(vp_want(e.rcq, &wc, IBV_WC_SUCCESS, i));
		CHECK(pattern_filled(bytes(), sizes[i], i));
		vp_sync(fd);
		vp_sync(fd);
		CHECK(pattern_filled(bytes(), sizes[i], i + 1)); /* a WRITE */
		pattern_fill(bytes(), sizes[i], i + 2);          /* for a READ */
		memset(bytes() + SIZE / 2, 0, 8);
		vp_sync(fd);
		vp_sync(fd);
		CHECK_EQ(*(uint64_t *)(bytes() + SIZE / 2), 1);
	}
	free_end(&e);
}

static void run(struct vp_end *e, enum ibv_wr_opcode op, uint32_t len, const struct vp_addr *peer,
	size_t at)
{
	struct ibv_wc wc;

	CHECK_EQ(vp_post_send(e, op, op, IBV_SEND_SIGNALED, 0, len, peer, at), 0);
	CHECK(vp_want(e->scq, &wc, IBV_WC_SUCCESS, op));
}

static void request(int fd, unsigned flags)
{
	struct vp_addr peer;
	struct vp_end e;

	make_end(&e, flags);
	peer = vp_meet(&e, fd);
	for (int i = 0; i < SIZES; i++) {
		vp_sync(fd);
		pattern_fill(bytes(), sizes[i], i);
		run(&e, IBV_WR_SEND, sizes[i], &peer, 0);
		vp_sync(fd);
		pattern_fill(bytes(), sizes[i], i + 1);
		run(&e, IBV_WR_RDMA_WRITE, sizes[i], &peer, 0);
		vp_sync(fd);
		vp_sync(fd);
		run(&e, IBV_WR_RDMA_READ, sizes[i], &peer, 0);
		CHECK(pattern_filled(bytes(), sizes[i], i + 2));
		run(&e, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, &peer, SIZE / 2);
		CHECK_EQ(*(uint64_t *)bytes(), 0);
		vp_sync(fd);
	}
	free_end(&e);
}

static void all_operations(unsigned flags)
{
	struct vp_child c = vp_fork(respond, flags ? "keeps" : NULL);

	check_case("all operations, flags %u", flags);
	request(c.fd, flags);
	vp_join(&c);
}

int main(void)
{
	const char *dir = getenv("WEFT_RUNTIME_DIR");
	char spec[sizeof log_file + 8];

	snprintf(log_file, sizeof log_file, "%s/peer_direct.log", dir ? dir : "/tmp");
	snprintf(spec, sizeof spec, "info:%s", log_file);
	setenv("WEFT_LOG", spec, 1);
	all_operations(PEER_DEVICE_KEEPS);
	all_operations(0);
	return check_result();
}
