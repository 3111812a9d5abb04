// SPDX-License-Identifier: BSD-3-Clause
/*
 * SCIF in the kernel's convention, over the same objects as scif_kernel_user.c, which has the
 * user's.  Errors are scif_errors.c's.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/scif.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"
#include "tests/prog/scif/scif_kernel_user.h"

enum { PAGE = 4096, PAGES = 8, LEN = PAGES * PAGE, MANY = 40, WAIT_MS = 10000 };
enum { BOTH = SCIF_PROT_READ | SCIF_PROT_WRITE };

/* Two ends of a connection, the first by kernel calls alone. */
struct ends {
	scif_epd_t listener, a, b;
};

static struct ends connect_ends(void)
{
	struct scif_port_id dst, peer;
	struct ends e;
	int port, local;

	e.listener = scif_open();
	e.a = scif_open();
	CHECK(e.listener && e.a);
	port = scif_bind(e.listener, 0);
	CHECK(port > SCIF_PORT_RSVD);
	CHECK_EQ(scif_listen(e.listener, 4), 0);
	CHECK(scif_get_node_ids(NULL, 0, &dst.node) >= 1);
	dst.port = port;
	fcntl(weft_scif_to_fd(e.a), F_SETFL, O_NONBLOCK);
	CHECK_EQ(scif_connect(e.a, &dst), -EINPROGRESS);
	CHECK_EQ(scif_accept(e.listener, &peer, &e.b, SCIF_ACCEPT_SYNC), 0);
	do {
		struct scif_pollepd p = {.epd = e.a, .events = EPOLLOUT};

		CHECK_EQ(scif_poll(&p, 1, WAIT_MS), 1);
		CHECK_EQ(p.revents, EPOLLOUT);
		local = scif_connect(e.a, &dst);
	} while (local == -EINPROGRESS);
	CHECK_EQ(local, peer.port);
	CHECK_EQ(peer.node, dst.node);
	CHECK_EQ(scif_connect(e.a, &dst), -EISCONN);
	return e;
}

static void close_ends(struct ends *e)
{
	CHECK_EQ(scif_close(e->a), 0);
	CHECK_EQ(scif_close(e->b), 0);
	CHECK_EQ(scif_close(e->listener), 0);
}

static void polling(struct ends *e)
{
	struct scif_pollepd p[MANY];

	check_case("poll");
	for (int i = 0; i < MANY; i++)
		p[i] = (struct scif_pollepd){.epd = e->listener, .events = EPOLLIN};
	CHECK_EQ(scif_poll(p, MANY, 0), 0);
	CHECK_EQ(scif_poll(p, 2, 5), 0);
	p[3].epd = NULL;
	p[5] = (struct scif_pollepd){.epd = e->a, .events = EPOLLIN | EPOLLOUT};
	p[MANY - 1] = (struct scif_pollepd){.epd = e->b, .events = EPOLLIN};
	CHECK_EQ(scif_send(e->a, "x", 1, SCIF_SEND_BLOCK), 1);
	while (scif_poll(&p[MANY - 1], 1, WAIT_MS) == 0)
		;
	CHECK_EQ(scif_poll(p, MANY, -1), 3);
	CHECK_EQ(p[3].revents, EPOLLNVAL);
	CHECK_EQ(p[5].revents, EPOLLOUT);
	CHECK_EQ(p[MANY - 1].revents, EPOLLIN);
	CHECK_EQ(p[0].revents, 0);
}

static void one_process(void)
{
	struct ends e;
	char buf[8] = "";

	check_case("one process");
	errno = 0;
	e = connect_ends();
	polling(&e);
	check_case("one endpoint by both conventions");
	CHECK_EQ(user_poll_in(weft_scif_to_fd(e.b), WAIT_MS), 1);
	CHECK_EQ(user_recv_bytes(weft_scif_to_fd(e.b), buf, 1), 1);
	CHECK_EQ(buf[0], 'x');
	CHECK_EQ(user_send_bytes(weft_scif_to_fd(e.b), "hello", 5), 5);
	CHECK_EQ(scif_recv(e.a, buf, 5, SCIF_RECV_BLOCK), 5);
	CHECK_EQ(memcmp(buf, "hello", 5), 0);
	CHECK(weft_scif_from_fd(weft_scif_to_fd(e.a)) == e.a);
	CHECK_EQ(errno, 0);
	check_case("closed by the other convention");
	CHECK_EQ(user_close_it(weft_scif_to_fd(e.b)), 0);
	CHECK_EQ(scif_close(e.b), -EBADF);
	CHECK_EQ(scif_recv(e.a, buf, 1, SCIF_RECV_BLOCK), -ECONNRESET);
	CHECK_EQ(scif_close(e.a), 0);
	CHECK_EQ(scif_close(e.listener), 0);
	CHECK_EQ(errno, 0);
}

static void pinned(struct ends *e, uint8_t *m)
{
	scif_pinned_pages_t h;
	off_t o, more;

	check_case("pinned pages");
	CHECK_EQ(scif_pin_pages(m, LEN, BOTH, SCIF_MAP_KERNEL, &h), 0);
	o = scif_register_pinned_pages(e->b, h, 0x40000, SCIF_MAP_FIXED);
	CHECK_EQ(o, 0x40000);
	more = scif_register_pinned_pages(e->b, h, 0, 0);
	CHECK(more > 0 && more != o);
	CHECK_EQ(scif_unpin_pages(h), 0);
	CHECK_EQ(scif_register_pinned_pages(e->b, h, 0, 0), -EINVAL);
	CHECK_EQ(scif_vwriteto(e->a, "pinned", 7, o + 10, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(m + 10, "pinned", 7), 0);
	CHECK_EQ(scif_vwriteto(e->a, "twice", 6, more + 10, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(m + 10, "twice", 6), 0);
	CHECK_EQ(scif_unregister(e->b, more, LEN), 0);
	CHECK_EQ(scif_unregister(e->b, o, LEN), 0);
}

static void copies(struct ends *e, uint8_t *m)
{
	uint8_t *own = scif_pages(LEN), back[16] = "";
	off_t a = scif_register(e->a, own, LEN, 0, BOTH, SCIF_MAP_KERNEL);
	off_t b = scif_register(e->b, m, LEN, 0x80000, BOTH, SCIF_MAP_FIXED);
	volatile uint64_t *word = (uint64_t *)(m + PAGE);
	double until = now_ms() + WAIT_MS;
	int mark;

	check_case("copies");
	CHECK(a > 0);
	CHECK_EQ(b, 0x80000);
	memset(own, 0x5a, LEN);
	CHECK_EQ(scif_writeto(e->a, a, PAGE, b, 0), 0);
	CHECK_EQ(scif_fence_mark(e->a, SCIF_FENCE_INIT_SELF, &mark), 0);
	CHECK_EQ(scif_fence_wait(e->a, mark), 0);
	CHECK_EQ(m[PAGE - 1], 0x5a);
	CHECK_EQ(scif_fence_signal(
			 e->a, 0, 0, b + PAGE, 77, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE),
		0);
	while (*word != 77 && now_ms() < until)
		usleep(100);
	CHECK_EQ(*word, 77);
	memcpy(m, "to read", 8);
	CHECK_EQ(scif_readfrom(e->a, a, PAGE, b, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(own, "to read", 8), 0);
	CHECK_EQ(scif_vreadfrom(e->a, back, 8, b, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(back, "to read", 8), 0);
	CHECK_EQ(scif_unregister(e->b, b, LEN), 0);
}

/* What scif_get_pages() gives is memory that an adapter takes. */
static void register_pages(const struct scif_range *r)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_mr *mr;

	if (!pd)
		die("no adapter");
	ibv_free_device_list(list);
	mr = ibv_reg_mr(pd, (void *)(uintptr_t)r->phys_addr[0], (size_t)r->nr_pages * PAGE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(mr != NULL);
	if (mr)
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(context), 0);
}

static void pages(struct ends *e, uint8_t *m)
{
	off_t o = scif_register(e->b, m, LEN, 0x40000, BOTH, SCIF_MAP_FIXED);
	struct scif_range *r;
	int ret;

	check_case("pages");
	ret = scif_get_pages(e->a, o + PAGE, 3 * PAGE, &r);
	if (!scif_can_map()) {
		CHECK_EQ(ret, -EOPNOTSUPP);
		return;
	}
	if (!CHECK_EQ(ret, 0))
		return;
	CHECK_EQ(r->nr_pages, 3);
	CHECK_EQ(r->prot_flags, BOTH);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(r->phys_addr[i], (uintptr_t)r->va[i]);
		memcpy(r->va[i], &i, sizeof(i));
		CHECK_EQ(memcmp(m + (i + 1) * PAGE, &i, sizeof(i)), 0);
	}
	register_pages(r);
	check_case("pages stay until they are given back");
	CHECK_EQ(scif_unregister(e->b, o, LEN), 0);
	CHECK_EQ(scif_register(e->b, m, LEN, o, BOTH, SCIF_MAP_FIXED), -EADDRINUSE);
	*(volatile char *)r->va[2] = 'v';
	CHECK_EQ(m[3 * PAGE], 'v');
	CHECK_EQ(scif_put_pages(r), 0);
	CHECK_EQ(scif_put_pages(r), -EINVAL);
	CHECK_EQ(scif_register(e->b, m, LEN, o, BOTH, SCIF_MAP_FIXED), o);
}

/* A child in the user's convention dials, and answers until we close. */
static void two_processes(void)
{
	struct scif_child c = scif_fork(user_echo);
	struct scif_port_id peer;
	scif_epd_t l = scif_open(), e;
	char buf[16] = "";
	int port = scif_bind(l, 0);

	check_case("two processes");
	CHECK_EQ(scif_listen(l, 1), 0);
	scif_tell(c.to, port);
	CHECK_EQ(scif_accept(l, &peer, &e, SCIF_ACCEPT_SYNC), 0);
	CHECK_EQ(scif_send(e, "to and fro", 11, SCIF_SEND_BLOCK), 11);
	CHECK_EQ(scif_recv(e, buf, 11, SCIF_RECV_BLOCK), 11);
	CHECK_EQ(memcmp(buf, "to and fro", 11), 0);
	CHECK_EQ(scif_close(e), 0);
	scif_join(&c);
	CHECK_EQ(scif_close(l), 0);
}

int main(void)
{
	uint8_t *m = scif_pages(LEN);
	struct ends e;

	two_processes();
	one_process();
	e = connect_ends();
	pinned(&e, m);
	copies(&e, m);
	pages(&e, m);
	close_ends(&e);
	return check_result();
}
