// SPDX-License-Identifier: BSD-3-Clause
/*
 * A client's function waits for a lock that the program holds while it deregisters or re-registers
 * that very memory, or deregisters it itself: told, refused after a while, and possible later.
 * For 10 s each nothing happens.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/check.h"
#include "tests/lib/peer_device.h"
#include "tests/lib/verbs_pair.h"

enum { SIZE = 1 << 20, GIVES_UP_MS = 9000, LATEST_MS = 40000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vp_end a, b;

static void take_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

static void use_device(void)
{
	b.mr = ibv_reg_mr(
		b.pd, peer_device.addr, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!b.mr)
		die("ibv_reg_mr of the device");
	b.buf = peer_device.addr;
}

static void set_up(void)
{
	struct vp_opts o = vp_defaults();

	if (!peer_device_open("device", SIZE, PEER_DEVICE_WINDOW))
		die("the client was refused");
	vp_pair(&a, &b, &o);
	CHECK_EQ(ibv_dereg_mr(b.mr), 0);
	munmap(b.buf, b.len);
	use_device();
}

static void post_write(void)
{
	const struct vp_addr to = vp_addr(&b);

	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 1000, &to, 0), 0);
}

/* A function of the client that waits for us. */
static void hold_it_up(void)
{
	pthread_mutex_lock(&lock);
	peer_device.in_copy = take_lock;
	post_write();
	while (!__atomic_load_n(&peer_device.inside, __ATOMIC_SEQ_CST))
		;
}

static void let_it_go(void)
{
	struct ibv_wc wc;

	pthread_mutex_unlock(&lock);
	CHECK(vp_poll(a.scq, &wc, VP_DEADLINE_MS));
}

static int rereg(void)
{
	return ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

static void re_registers(void)
{
	struct ibv_wc wc;
	double begun;

	check_case("re-registers what it holds up");
	hold_it_up();
	begun = now_ms();
	CHECK(rereg() != 0);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK_RANGE(now_ms() - begun, GIVES_UP_MS, LATEST_MS);
	let_it_go();
	check_case("what was not re-registered is as it was");
	vp_reconnect(&a, &b);
	post_write();
	CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, 1));
	CHECK_EQ(rereg(), 0);
}

static int answer = -1;

static void deregister(void)
{
	answer = ibv_dereg_mr(b.mr);
}

static void inside(void)
{
	struct ibv_wc wc;

	check_case("deregisters inside its own function");
	peer_device.in_copy = deregister;
	post_write();
	CHECK(vp_poll(a.scq, &wc, VP_DEADLINE_MS));
	CHECK_EQ(answer, EDEADLK);
	CHECK_EQ(ibv_dereg_mr(b.mr), 0);
	CHECK_EQ(peer_device.releases, peer_device.acquires);
	use_device();
	vp_reconnect(&a, &b);
}

static void deregisters(void)
{
	double begun;

	check_case("deregisters what it holds up");
	hold_it_up();
	begun = now_ms();
	CHECK_EQ(ibv_dereg_mr(b.mr), ETIMEDOUT);
	CHECK_RANGE(now_ms() - begun, GIVES_UP_MS, LATEST_MS);
	let_it_go();
	CHECK_EQ(ibv_dereg_mr(b.mr), 0);
	CHECK_EQ(peer_device.releases, peer_device.acquires);
	CHECK_EQ(peer_device.late, 0);
	b.mr = NULL;
	b.buf = NULL;
}

int main(void)
{
	set_up();
	re_registers();
	inside();
	deregisters();
	vp_pair_free(&a, &b);
	peer_device_close();
	return check_result();
}
