// SPDX-License-Identifier: BSD-3-Clause
/*
 * weftd asks for no memory per MAD: once as many were under way, or kept for a program that does
 * not read, as now, what held those holds the next ones.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/session.h"
#include "daemon/umad_file.h"
#include "daemon/umad_lane.h"
#include "daemon/umad_recv.h"
#include "daemon/umad_send.h"
#include "mad/dispatch.h"
#include "mad/loop.h"

enum { MANY = 1000, CLASS = 0x0a, TIMEOUT_MS = 1000, LID = 5 };

static struct {
	struct server server;
	struct umads umads;
	struct fabric_page page;
	struct node node;
	struct mad_layer layer;
	struct mad_port port;
	struct session session;
	struct ufile *file;
	struct ulane *lane;
	uint32_t id;         /* of the file's agent */
	uint64_t sent, read; /* positions of the program's in its rings */
	uint64_t now;
} w;

/* ---- who asks for memory ---- */

static unsigned asked;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	asked++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	asked++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	asked++;
	return __real_realloc(p, n);
}

/* ---- a program with a file ---- */

static uint64_t now(void *arg)
{
	(void)arg;
	return w.now;
}

static int lose(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	(void)arg;
	(void)to;
	(void)mad;
	return 0;
}

static int begin(void **state)
{
	struct umad_reg_req req = {
		.qpn = 1, .mgmt_class = CLASS, .class_version = 1, .method_mask = {1 << MAD_GET}};
	int end, fd;

	(void)state;
	memset(&w, 0, sizeof w);
	w.now = NSEC_PER_SEC;
	w.server.epfd = epoll_create1(EPOLL_CLOEXEC);
	w.umads.server = &w.server;
	w.page.n_ports = 1;
	w.page.node_type = FABRIC_CA;
	w.node.page = &w.page;
	w.layer.now = now;
	mad_layer_init(&w.layer);
	w.port =
		(struct mad_port){.layer = &w.layer, .transmit = lose, .has_qp0 = true, .lid = LID};
	if (ufile_make(&w.umads, &w.node, 1, &w.port, &w.file, &end) ||
		ulane_make(w.file, &w.session, &w.lane, &fd))
		return -1;
	close(end);
	close(fd);
	return ufile_register(w.file, &req, &w.id);
}

static int end(void **state)
{
	(void)state;
	ufile_end(w.file);
	spare_free(&w.umads.spare_flights);
	spare_free(&w.umads.spare_held);
	mad_port_end(&w.port);
	mad_layer_end(&w.layer);
	close(w.server.epfd);
	return 0;
}

static void make(uint8_t mad[MAD_SIZE], uint8_t method, uint64_t tid)
{
	const struct mad_hdr hdr = {.base_version = MAD_BASE_VERSION,
		.mgmt_class = CLASS,
		.class_version = 1,
		.method = method,
		.tid = tid};

	memset(mad, 0, MAD_SIZE);
	mad_hdr_pack(&hdr, mad);
}

static uint64_t whole_tid(uint32_t tid)
{
	return mad_tid(&w.file->slot[w.id]->agent, tid);
}

/* As the program's library and weftd's loop do between them. */
static void write_one(uint32_t tid)
{
	const struct ring_ref ring = {
		&w.lane->mem->send, w.lane->mem->send_slot, UMAD_SEND_LOG_SIZE};
	struct umad_record rec = {.hdr = {.id = w.id,
					  .timeout_ms = TIMEOUT_MS,
					  .be_qpn = htobe32(1),
					  .be_lid = htobe16(LID + 1)},
		.length = MAD_SIZE};

	make(rec.mad, MAD_GET, tid);
	assert_int_equal(ring_push(&ring, &w.sent, &rec), RING_OK);
	assert_int_equal(usend_lane(w.lane, 1), 1);
}

/* The transaction id of the next one; 0: there is none. */
static uint64_t read_one(void)
{
	const struct ring_ref ring = {
		&w.file->page->recv, w.file->page->recv_slot, UMAD_RECV_LOG_SIZE};
	struct umad_record rec;
	struct mad_hdr hdr;

	if (ring_pop(&ring, &w.read, &rec) != RING_OK)
		return 0;
	mad_hdr_unpack(rec.mad, &hdr);
	urecv_refill(w.file);
	return hdr.tid;
}

static void arrives(uint8_t method, uint64_t tid)
{
	const struct mad_addr from = {.qp = 1, .qpn = 1, .lid = LID + 1};
	uint8_t mad[MAD_SIZE];

	make(mad, method, tid);
	assert_int_equal(mad_queue(&w.port, &from, mad), 0);
	mad_loop_run(&w.layer, 1);
}

/* ---- tests ---- */

static void answered(void **state)
{
	uint32_t tid = 0;

	(void)state;
	while (tid < MANY)
		write_one(++tid);
	arrives(MAD_GET_RESP, whole_tid(tid - MANY + 1));
	assert_int_equal(read_one(), whole_tid(tid - MANY + 1));
	write_one(++tid);

	asked = 0;
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(w.layer.n_sends, MANY);
		arrives(MAD_GET_RESP, whole_tid(tid - MANY + 1));
		assert_int_equal(read_one(), whole_tid(tid - MANY + 1));
		write_one(++tid);
	}
	assert_int_equal(asked, 0);
}

/* Requests to it, and its own sends that time out: more than its receive ring has room for. */
static void flood(void)
{
	for (uint32_t i = 1; i <= MANY; i++)
		arrives(MAD_GET, i);
	for (uint32_t i = 1; i <= MANY; i++)
		write_one(i);
	w.now += 2 * TIMEOUT_MS * NSEC_PER_MSEC;
	while (w.layer.n_sends)
		mad_run(&w.layer, MANY);
	for (uint32_t i = 1; i <= MANY; i++)
		assert_int_equal(read_one(), i);
	for (uint32_t i = 1; i <= MANY; i++)
		assert_int_not_equal(read_one(), 0);
	assert_int_equal(read_one(), 0);
}

static void unread(void **state)
{
	(void)state;
	flood();
	asked = 0;
	flood();
	assert_int_equal(asked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answered, begin, end),
		cmocka_unit_test_setup_teardown(unread, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
