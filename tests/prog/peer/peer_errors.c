// SPDX-License-Identifier: BSD-3-Clause
/*
 * What peer clients and programs do wrong with registrations: the program gets the errno, the log
 * names client, step and reason, weft status counts it, and the client has back what it gave.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/peer_device.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

enum {
	SIZE = 1 << 20,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE
};

static char log_file[256];
static struct ibv_pd *pd;

static void check_balance(void)
{
	CHECK_EQ(peer_device.unmaps, peer_device.maps);
	CHECK_EQ(peer_device.puts, peer_device.gets);
	CHECK_EQ(peer_device.releases, peer_device.acquires);
}

/* ---- registrations that fail ---- */

static const struct {
	enum peer_fault fault;
	int error;
	const char *line; /* after "asked: device answered 1; " */
} faults[] = {
	{PEER_NO_PAGES, ENOMEM, "get_pages: Cannot allocate memory"},
	{PEER_POSITIVE, EINVAL, "get_pages: Invalid argument (the answer is neither 0 nor"},
	{PEER_NO_MAP, EIO, "dma_map: Input/output error"},
	{PEER_NO_TABLE, EINVAL, "its table: Invalid argument ("},
	{PEER_NO_NMAP, EINVAL, "its table: Invalid argument ("},
	{PEER_SHORT, EINVAL, "its table: Invalid argument (the entries do not cover the range)"},
	{PEER_MISALIGNED, EINVAL, "its table: Invalid argument ("},
	{PEER_EMPTY, EINVAL, "its table: Invalid argument ("},
	{PEER_NOWHERE, EFAULT, "the addresses of its table: Bad address (they are not memory"},
	{PEER_PAGE_SIZE, EINVAL, "get_page_size: Invalid argument (not a power of two"},
	{PEER_TAKEN_INSIDE, EINVAL, "dma_map: Invalid argument (the client took the memory away)"},
};

static unsigned lines_of_failure(const char *line)
{
	char text[256];

	snprintf(text, sizeof text, "peer clients asked: device answered 1; %s", line);
	return lines_with(log_file, text);
}

static void registrations_that_fail(void)
{
	const int64_t refused = peer_counter("device", "failed_registrations");
	const int64_t deadlocks = peer_counter("device", "deadlocks");
	struct ibv_mr *mr;

	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		const unsigned before = lines_of_failure(faults[i].line);

		check_case("fault %d: %s", faults[i].fault, faults[i].line);
		peer_device.fault = faults[i].fault;
		errno = 0;
		CHECK(ibv_reg_mr(pd, peer_device.addr + 100, 300000, ALL) == NULL);
		CHECK_EQ(errno, faults[i].error);
		CHECK_EQ(lines_of_failure(faults[i].line), before + 1);
		check_balance();
	}
	CHECK_EQ(peer_device.inside_answer, -EDEADLK);
	CHECK_EQ(lines_with(log_file, ": the callback inside dma_map of the same registration"), 1);
	CHECK_EQ(peer_counter("device", "deadlocks"), deadlocks + 1);
	CHECK_EQ(peer_counter("device", "failed_registrations"),
		refused + (long)(sizeof faults / sizeof *faults));
	check_case("afterwards all is well");
	mr = ibv_reg_mr(pd, peer_device.addr + 100, 300000, ALL);
	CHECK(mr != NULL);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	check_balance();
}

/* Not the client's, and nobody's. */
static void beyond(void)
{
	check_case("ranges that are not the device's");
	errno = 0;
	CHECK(ibv_reg_mr(pd, peer_device.addr + SIZE - 100, 101, ALL) == NULL);
	CHECK_EQ(errno, EFAULT);
	/* Another client may have been asked, too. */
	CHECK_EQ(lines_with(log_file, "asked: device answered 0"), 1);
	CHECK_EQ(lines_with(log_file, " answered 0; as memory of the program: "), 1);
	errno = 0;
	CHECK(ibv_reg_mr(pd, peer_device.addr, 100, ALL | IBV_ACCESS_ON_DEMAND) == NULL);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(lines_with(log_file, "cannot be registered on demand"), 1);
	CHECK(ibv_reg_mr(pd, peer_device.addr, 0, ALL) == NULL);
	check_balance();
}

/* The client is not asked. */
static void wraps(void)
{
	static uint8_t *const top = (uint8_t *)-(uintptr_t)4096;
	const unsigned acquires = peer_device.acquires;

	check_case("ranges that wrap");
	CHECK_FAILS(ibv_reg_mr(pd, peer_device.addr, SIZE_MAX, ALL) ? 0 : -1, EINVAL);
	CHECK_FAILS(ibv_reg_mr(pd, top, 8192, ALL) ? 0 : -1, EINVAL);
	CHECK_FAILS(ibv_reg_mr(pd, top, 100, ALL) ? 0 : -1, EINVAL); /* in whole pages */
	CHECK_EQ(peer_device.acquires, acquires);
	CHECK_EQ(lines_with(log_file, " 0 peer clients asked; its range: Invalid argument"), 1);
}

/* What it is told of the region's rights. */
static void read_only(void)
{
	static const unsigned access[] = {0, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE, ALL};

	check_case("regions that are only read");
	for (int i = 0; i < 4; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, peer_device.addr, 65536, access[i]);

		CHECK(mr);
		CHECK_EQ(peer_device.write, 1);
		CHECK_EQ(peer_device.force, i < 2);
		if (mr)
			CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	check_balance();
}

/* ---- registering in the wrong place ---- */

static void *nested;

static void register_in_acquire(void)
{
	struct peer_device saved = peer_device;

	CHECK(!peer_device_open("inner", 65536, 0));
	peer_device = saved;
	CHECK(ibv_reg_mr(pd, &nested, sizeof nested, ALL) == NULL);
	CHECK_EQ(errno, EDEADLK);
	peer_device_close(); /* refused, too */
	peer_device.handle = saved.handle;
}

static void inside_acquire(void)
{
	struct ibv_mr *mr;

	check_case("calls inside acquire");
	peer_device.in_acquire = register_in_acquire;
	mr = ibv_reg_mr(pd, peer_device.addr, 100, ALL);
	CHECK(mr != NULL);
	CHECK_EQ(lines_with(log_file, "it registers inside acquire of device"), 1);
	CHECK_EQ(lines_with(log_file, "refused to unregister inside acquire of device"), 1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	check_balance();
}

static struct ibv_mr *leaving;

static void dereg_in_unmap(void)
{
	CHECK_EQ(ibv_dereg_mr(leaving), EDEADLK);
}

/* The client's own function deregisters what is being deregistered. */
static void dereg_inside(void)
{
	const int64_t deadlocks = peer_counter("device", "deadlocks");

	check_case("ibv_dereg_mr inside dma_unmap");
	leaving = ibv_reg_mr(pd, peer_device.addr, 100, ALL);
	CHECK(leaving != NULL);
	peer_device.in_unmap = dereg_in_unmap;
	CHECK_EQ(peer_device_take(peer_device.last), 0);
	CHECK_EQ(lines_with(log_file, "ibv_dereg_mr of a region inside its own dma_unmap"), 1);
	CHECK_EQ(peer_counter("device", "deadlocks"), deadlocks + 1);
	CHECK_EQ(ibv_dereg_mr(leaving), 0);
	check_balance();
}

static void names(void)
{
	struct peer_device saved = peer_device;

	check_case("a name that is taken");
	CHECK(!peer_device_open("device", 65536, 0));
	CHECK_EQ(lines_with(log_file, "peer client device refused: the name is taken"), 1);
	peer_device = saved;
}

/* ---- ibv_rereg_mr ---- */

static void rereg(void)
{
	void *own = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, own, 65536, ALL);
	const unsigned maps = peer_device.maps;
	struct ibv_pd *other = ibv_alloc_pd(pd->context);
	const int move = IBV_REREG_MR_CHANGE_TRANSLATION;

	check_case("ibv_rereg_mr");
	CHECK_EQ(ibv_rereg_mr(mr, move, NULL, peer_device.addr, 5000, ALL), 0);
	CHECK_EQ(peer_device.maps, maps + 1);
	CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	CHECK_EQ(peer_device.maps, maps + 1);
	CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
	CHECK_EQ(peer_device.maps, maps + 2);
	CHECK_EQ(peer_device.unmaps, peer_device.maps - 1);
	peer_device.fault = PEER_NO_MAP; /* it stays as it was */
	CHECK_EQ(ibv_rereg_mr(mr, move, NULL, peer_device.addr + 4096, 5000, ALL),
		IBV_REREG_MR_ERR_INPUT);
	CHECK_EQ(errno, EIO);
	CHECK_EQ(lines_with(log_file, "ibv_rereg_mr of "), 1);
	CHECK_EQ(peer_device.unmaps, peer_device.maps - 1);
	CHECK_EQ(ibv_rereg_mr(mr, move, NULL, own, 65536, ALL), 0);
	check_balance();
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(other), 0);
	munmap(own, 65536);
}

/* ---- the callback ---- */

static void callback(void)
{
	const int64_t stale = peer_counter("device", "stale_callbacks");
	struct ibv_mr *mr;
	uint64_t context;

	check_case("contexts that mean nothing");
	CHECK_EQ(peer_device_take(0), 0);
	CHECK_EQ(peer_device_take(123456789), 0);
	CHECK_EQ(lines_with(log_file, "peer client device: context 0x75bcd15 is no region of it"),
		1);
	CHECK_EQ(peer_counter("device", "stale_callbacks"), stale + 2);
	mr = ibv_reg_mr(pd, peer_device.addr, 100, ALL);
	CHECK(mr != NULL);
	context = peer_device.last;
	check_case("taken away twice");
	CHECK_EQ(peer_device_take(context), 0);
	CHECK_EQ(peer_device.puts, peer_device.gets);
	CHECK_EQ(peer_device.releases, peer_device.acquires - 1);
	CHECK_EQ(peer_device_take(context), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(peer_device_take(context), 0);
	CHECK_EQ(peer_counter("device", "stale_callbacks"), stale + 3);
	check_balance();
}

/* It waits a second for them, and then they are dead. */
static void unregister_with_regions(void)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, peer_device.addr, 100, ALL);

	check_case("a client that goes while it has a region");
	CHECK(mr != NULL);
	peer_device_close();
	check_balance();
	CHECK_EQ(lines_with(log_file, "device unregistered with 1 live regions: they are dead"), 1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	check_balance();
	CHECK_EQ(peer_device_take(7), 0);
	CHECK_EQ(lines_with(log_file, "callback of the handle NULL: context 0x7 is"), 1);
	CHECK(ibv_reg_mr(pd, peer_device.addr, 100, ALL) == NULL);
	CHECK_EQ(errno, EFAULT);
}

/* ---- in a forked child ---- */

static void use_parents_pd(int fd, void *arg)
{
	char own[100];

	(void)fd;
	(void)arg;
	errno = 0;
	CHECK(ibv_reg_mr(pd, own, sizeof own, ALL) == NULL);
	CHECK_EQ(errno, EINVAL);
}

static void forked(void)
{
	struct vp_child c;

	check_case("a child's region in its parent's PD");
	c = vp_fork(use_parents_pd, NULL);
	vp_join(&c);
	CHECK_EQ(lines_with(log_file, "refused: the PD is of the process that forked this one"), 1);
}

/* ---- functions that fail ---- */

/* Between a buffer and memory of the device, whose function says no. */
static enum ibv_wc_status request(
	struct vp_end *a, const struct ibv_mr *at, const struct ibv_mr *from, uint8_t *buf)
{
	struct ibv_sge sge = {(uintptr_t)buf, 8, from->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1};

	vp_aim(&wr, (uintptr_t)at->addr, at->rkey, 0);
	return vp_run(a, &wr);
}

/* A message for memory of the device. */
static void receive_fails(struct vp_end *a, struct vp_end *b, const struct ibv_mr *at)
{
	struct ibv_sge sge = {(uintptr_t)at->addr, 8, at->lkey};
	struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_wc wc;

	vp_reconnect(a, b);
	CHECK_EQ(ibv_post_recv(b->qp, &wr, &bad), 0);
	CHECK_EQ(vp_post_send(a, 8, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	vp_want(a->scq, &wc, IBV_WC_REM_OP_ERR, 8);
	vp_want(b->rcq, &wc, IBV_WC_LOC_PROT_ERR, 9);
	CHECK_EQ(lines_with(log_file, "LOCAL_WRITE, or a function of its peer client failed"), 1);
}

static void functions_that_fail(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;
	struct ibv_mr *mine, *theirs;

	check_case("functions that fail");
	if (!peer_device_open("window", SIZE, PEER_DEVICE_WINDOW))
		die("the client was refused");
	vp_pair(&a, &b, &o);
	mine = ibv_reg_mr(a.pd, peer_device.addr, 100, ALL);
	theirs = ibv_reg_mr(b.pd, peer_device.addr, 100, ALL);
	__atomic_store_n(&peer_device.copy_answer, -EIO, __ATOMIC_SEQ_CST);
	CHECK_EQ(request(&a, theirs, a.mr, a.buf), IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(lines_with(log_file, "REM_ACCESS_ERR: a function of the peer client that the"), 1);
	vp_reconnect(&a, &b);
	CHECK_EQ(request(&a, b.mr, mine, peer_device.addr), IBV_WC_LOC_PROT_ERR);
	CHECK_EQ(lines_with(log_file, "LOC_PROT_ERR: its own memory could not be reached: a"), 1);
	receive_fails(&a, &b, theirs);
	__atomic_store_n(&peer_device.copy_answer, 0, __ATOMIC_SEQ_CST);
	CHECK_EQ(ibv_dereg_mr(mine), 0);
	CHECK_EQ(ibv_dereg_mr(theirs), 0);
	vp_pair_free(&a, &b);
	CHECK_EQ(lines_with(log_file, ": a function of the peer client with the key "), 1);
	peer_device_close();
}

int main(void)
{
	const char *dir = getenv("WEFT_RUNTIME_DIR");
	char spec[sizeof log_file + 8];

	snprintf(log_file, sizeof log_file, "%s/peer_errors.log", dir ? dir : "/tmp");
	snprintf(spec, sizeof spec, "info:%s", log_file);
	setenv("WEFT_LOG", spec, 1);
	if (!peer_device_open("device", SIZE, 0))
		die("the client was refused");
	pd = ibv_alloc_pd(vp_open());
	registrations_that_fail();
	beyond();
	wraps();
	read_only();
	inside_acquire();
	dereg_inside();
	names();
	rereg();
	callback();
	unregister_with_regions();
	forked();
	functions_that_fail();
	return check_result();
}
