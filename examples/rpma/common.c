// SPDX-License-Identifier: BSD-3-Clause
#include "common.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct side parse(int argc, char **argv, int more, const char *usage)
{
	struct side side = {0};

	if (argc < 4 || argc > 4 + more ||
		(strcmp(argv[1], "server") && strcmp(argv[1], "client"))) {
		fprintf(stderr, "usage: %s server|client ADDR PORT %s\n", argv[0], usage);
		exit(2);
	}
	side.is_server = !strcmp(argv[1], "server");
	side.addr = argv[2];
	side.port = argv[3];
	side.argc = argc - 4;
	side.argv = argv + 4;
	return side;
}

void need(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s\n", what, rpma_err_2str(ret));
	exit(1);
}

struct rpma_peer *open_peer(const struct side *side)
{
	struct ibv_context *ctx;
	struct rpma_peer *peer;

	need(rpma_utils_get_ibv_context(side->addr,
		     side->is_server ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE,
		     &ctx),
		"no adapter for this address");
	need(rpma_peer_new(ctx, &peer), "rpma_peer_new");
	return peer;
}

struct rpma_ep *listen_at(struct rpma_peer *peer, const struct side *side)
{
	struct rpma_ep *ep;

	need(rpma_ep_listen(peer, side->addr, side->port, &ep), "rpma_ep_listen");
	printf("listening\n");
	fflush(stdout);
	return ep;
}

void expect(struct rpma_conn *conn, enum rpma_conn_event want)
{
	enum rpma_conn_event event;

	need(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	if (event == want)
		return;
	fprintf(stderr, "%s\n", rpma_utils_conn_event_2str(event));
	exit(1);
}

struct rpma_conn *connect_to(
	struct rpma_peer *peer, const struct side *side, const struct rpma_conn_private_data *pdata)
{
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	need(rpma_conn_req_new(peer, side->addr, side->port, NULL, &req), "rpma_conn_req_new");
	need(rpma_conn_req_connect(&req, pdata, &conn), "rpma_conn_req_connect");
	expect(conn, RPMA_CONN_ESTABLISHED);
	return conn;
}

struct rpma_conn *accept_from(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
	const struct rpma_conn_private_data *pdata)
{
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	need(rpma_ep_next_conn_req(ep, cfg, &req), "rpma_ep_next_conn_req");
	need(rpma_conn_req_connect(&req, pdata, &conn), "rpma_conn_req_connect");
	expect(conn, RPMA_CONN_ESTABLISHED);
	return conn;
}

/* An event may be for completions that were taken already: so look first, and look again. */
struct ibv_wc wait_cq(struct rpma_cq *cq)
{
	struct ibv_wc wc;
	int ret;

	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
		need(rpma_cq_wait(cq), "rpma_cq_wait");
	need(ret, "rpma_cq_get_wc");
	if (wc.status == IBV_WC_SUCCESS)
		return wc;
	fprintf(stderr, "an operation failed: %s\n", ibv_wc_status_str(wc.status));
	exit(1);
}

struct ibv_wc wait_conn(struct rpma_conn *conn)
{
	struct rpma_cq *cq;

	need(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
	return wait_cq(cq);
}

void end_client(struct rpma_conn **conn)
{
	need(rpma_conn_disconnect(*conn), "rpma_conn_disconnect");
	expect(*conn, RPMA_CONN_CLOSED);
	need(rpma_conn_delete(conn), "rpma_conn_delete");
}

void end_server(struct rpma_conn **conn)
{
	expect(*conn, RPMA_CONN_CLOSED);
	need(rpma_conn_disconnect(*conn), "rpma_conn_disconnect");
	need(rpma_conn_delete(conn), "rpma_conn_delete");
}

void *allocate(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

void *map_file(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *p;

	if (fd < 0 || ftruncate(fd, (off_t)size)) {
		perror(path);
		exit(1);
	}
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	return p;
}

void make_offer(struct offer *offer, const struct rpma_mr_local *mr, int direct_write)
{
	struct rpma_peer_cfg *cfg;

	need(rpma_mr_get_descriptor(mr, offer->mr), "rpma_mr_get_descriptor");
	need(rpma_peer_cfg_new(&cfg), "rpma_peer_cfg_new");
	need(rpma_peer_cfg_set_direct_write_to_pmem(cfg, direct_write), "direct write");
	need(rpma_peer_cfg_get_descriptor(cfg, offer->peer), "rpma_peer_cfg_get_descriptor");
	need(rpma_peer_cfg_delete(&cfg), "rpma_peer_cfg_delete");
}

struct rpma_mr_remote *take_offer(struct rpma_conn *conn)
{
	struct rpma_conn_private_data pdata;
	struct rpma_peer_cfg *cfg;
	struct rpma_mr_remote *mr;
	struct offer offer;

	need(rpma_conn_get_private_data(conn, &pdata), "rpma_conn_get_private_data");
	if (pdata.len < sizeof offer) {
		fprintf(stderr, "the server offers nothing\n");
		exit(1);
	}
	memcpy(&offer, pdata.ptr, sizeof offer);
	need(rpma_mr_remote_from_descriptor(offer.mr, sizeof offer.mr, &mr), "region");
	need(rpma_peer_cfg_from_descriptor(offer.peer, sizeof offer.peer, &cfg), "peer cfg");
	need(rpma_conn_apply_remote_peer_cfg(conn, cfg), "rpma_conn_apply_remote_peer_cfg");
	need(rpma_peer_cfg_delete(&cfg), "rpma_peer_cfg_delete");
	return mr;
}
