// SPDX-License-Identifier: BSD-3-Clause
/* Connections of librpma whose other end is killed at some step, or says no. */
#include <signal.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/rpma_ends.h"
#include "tests/lib/verbs_pair.h"

enum step { REQUESTED, ACCEPTED, CONNECTED, WORKING, STEPS };

static char buf[4096];
static const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
			 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV;

enum { QUIET_MS = 50 };

static void wait_to_be_killed(int fd)
{
	vp_sync(fd);
	for (;;)
		pause();
}

/* ---- a server that is killed ---- */

/* Of who dies before the other's RTU has come, the other hears REJ, also on an adapter. */
static void wait_until_used(struct rpma_conn *conn)
{
	int fd;

	CHECK_EQ(rpma_conn_get_event_fd(conn, &fd), 0);
	CHECK(rp_readable(fd, RP_WAIT_MS));
}

static void serve(int fd, void *arg)
{
	enum step step = *(enum step *)arg;
	struct rpma_peer *peer = rp_peer();
	struct rpma_ep *ep = rp_listen(peer);
	struct rpma_conn_private_data pdata = {.len = 21};
	struct rpma_conn_req *req;
	struct rpma_mr_local *mr;
	struct rpma_conn *conn;
	uint8_t desc[21];

	CHECK_EQ(rpma_mr_reg(peer, buf, sizeof buf, usage, &mr), 0);
	CHECK_EQ(rpma_mr_get_descriptor(mr, desc), 0);
	pdata.ptr = desc;
	vp_sync(fd);
	CHECK_EQ(rpma_ep_next_conn_req(ep, NULL, &req), 0);
	if (step >= ACCEPTED) {
		CHECK_EQ(rpma_conn_req_connect(&req, &pdata, &conn), 0);
		wait_until_used(conn);
	}
	if (step >= CONNECTED)
		rp_expect(conn, RPMA_CONN_ESTABLISHED);
	wait_to_be_killed(fd);
}

/* What is posted to a dead peer ends when the connection is closed here, in errors. */
static void work_on_dead(struct rpma_conn *conn, struct rpma_peer *peer)
{
	struct rpma_conn_private_data pdata;
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	int posted = 0, failed = 0;

	CHECK_EQ(rpma_conn_get_private_data(conn, &pdata), 0);
	CHECK_EQ(rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &remote), 0);
	CHECK_EQ(rpma_mr_reg(peer, buf, sizeof buf, usage, &mr), 0);
	CHECK_EQ(rpma_recv(conn, mr, 0, 8, buf), 0);
	for (int i = 0; i < 5; i++)
		posted += !rpma_write(conn, remote, 0, mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, NULL);
	rp_expect(conn, RPMA_CONN_CLOSED);
	CHECK_EQ(rpma_conn_disconnect(conn), 0);
	for (int i = 0; i < posted + 1; i++) {
		struct ibv_wc wc = rp_wc(rp_cq(conn));

		failed += wc.status == IBV_WC_RETRY_EXC_ERR || wc.status == IBV_WC_WR_FLUSH_ERR;
	}
	CHECK_RANGE(failed, 1, posted + 1); /* writes may end well until the death is noticed */
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
}

static void killed_server(enum step step)
{
	struct vp_child child = vp_fork(serve, &step);
	struct rpma_peer *peer = rp_peer();
	struct rpma_conn *conn;

	check_case("server killed at step %d", step);
	vp_sync(child.fd);
	conn = rp_call(peer, NULL, NULL);
	if (step >= ACCEPTED)
		rp_expect(conn, RPMA_CONN_ESTABLISHED);
	vp_sync(child.fd);
	vp_kill_join(&child);
	if (step == WORKING) {
		work_on_dead(conn, peer);
	} else {
		rp_expect(conn, step == REQUESTED ? RPMA_CONN_REJECTED : RPMA_CONN_CLOSED);
		CHECK_EQ(rpma_conn_disconnect(conn), 0);
	}
	CHECK_EQ(rpma_conn_delete(&conn), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
}

/* ---- a client that is killed ---- */

static void call(int fd, void *arg)
{
	enum step step = *(enum step *)arg;
	struct rpma_peer *peer = rp_peer();
	struct rpma_conn *conn;

	vp_sync(fd);
	conn = rp_call(peer, NULL, NULL);
	if (step >= CONNECTED)
		rp_expect(conn, RPMA_CONN_ESTABLISHED);
	wait_to_be_killed(fd);
}

static void take_request(struct rpma_ep *ep, struct rpma_conn_req **req)
{
	int fd = -1;

	CHECK_EQ(rpma_ep_get_fd(ep, &fd), 0);
	if (!rp_readable(fd, RP_WAIT_MS) || rpma_ep_next_conn_req(ep, NULL, req))
		die("no request");
}

/* The request of a dead client can be accepted or not; in the end there is no connection. */
static void accept_dead(struct rpma_conn_req *req)
{
	struct rpma_conn *conn = NULL;
	enum rpma_conn_event event;
	int ret = rpma_conn_req_connect(&req, NULL, &conn);

	CHECK(!req);
	if (ret) {
		CHECK_EQ(ret, RPMA_E_PROVIDER);
		CHECK(!conn);
		return;
	}
	event = rp_event(conn);
	CHECK(event != RPMA_CONN_ESTABLISHED);
	CHECK_EQ(rpma_conn_delete(&conn), 0);
}

/* That a request was withdrawn before it was accepted is no event: to connect fails. */
static void no_event_at_endpoint(struct rpma_ep *ep)
{
	int fd = -1;

	CHECK_EQ(rpma_ep_get_fd(ep, &fd), 0);
	CHECK(!rp_readable(fd, QUIET_MS));
}

static void killed_client(enum step step, bool look)
{
	struct vp_child child = vp_fork(call, &step);
	struct rpma_peer *peer = rp_peer();
	struct rpma_ep *ep = rp_listen(peer);
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn;

	check_case("client killed at step %d", step);
	vp_sync(child.fd);
	take_request(ep, &req);
	if (step == REQUESTED) {
		vp_sync(child.fd);
		vp_kill_join(&child);
		if (look)
			no_event_at_endpoint(ep);
		accept_dead(req);
	} else {
		CHECK_EQ(rpma_conn_req_connect(&req, NULL, &conn), 0);
		if (step >= CONNECTED)
			rp_expect(conn, RPMA_CONN_ESTABLISHED);
		vp_sync(child.fd);
		vp_kill_join(&child);
		if (step >= CONNECTED)
			rp_expect(conn, RPMA_CONN_CLOSED);
		else
			CHECK(rp_event(conn) != RPMA_CONN_ESTABLISHED);
		CHECK_EQ(rpma_conn_delete(&conn), 0);
	}
	CHECK_EQ(rpma_ep_shutdown(&ep), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
}

/* ---- refusals ---- */

static void refused(void)
{
	struct rpma_peer *peer = rp_peer();
	struct rpma_ep *ep = rp_listen(peer);
	struct rpma_conn_cfg *too_much;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn;

	check_case("deleted request");
	conn = rp_call(peer, NULL, NULL);
	take_request(ep, &req);
	CHECK_EQ(rpma_conn_req_delete(&req), 0);
	CHECK(!req);
	rp_expect(conn, RPMA_CONN_REJECTED);
	CHECK_EQ(rpma_conn_delete(&conn), 0);

	check_case("request that the listener cannot serve");
	CHECK_EQ(rpma_conn_cfg_new(&too_much), 0);
	CHECK_EQ(rpma_conn_cfg_set_sq_size(too_much, UINT32_MAX), 0);
	conn = rp_call(peer, NULL, NULL);
	CHECK_EQ(rpma_ep_next_conn_req(ep, too_much, &req), RPMA_E_PROVIDER);
	CHECK(!req);
	rp_expect(conn, RPMA_CONN_REJECTED);
	CHECK_EQ(rpma_conn_delete(&conn), 0);
	CHECK_EQ(rpma_conn_cfg_delete(&too_much), 0);
	CHECK_EQ(rpma_ep_shutdown(&ep), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
}

int main(void)
{
	for (enum step step = 0; step < STEPS; step++)
		killed_server(step);
	for (enum step step = 0; step < WORKING; step++)
		killed_client(step, false);
	killed_client(REQUESTED, true);
	refused();
	return check_result();
}
