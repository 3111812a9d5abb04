// SPDX-License-Identifier: BSD-3-Clause
/*
 * Compiled with the distribution's <librpma.h>; prints what each call answers, so that the output
 * on our library and on the distribution's can be compared.  Nothing here touches the faults listed
 * in docs/rpma-differences.md.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <librpma.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/weft/verbs_ext.h"

enum { LEN = 8192, WAIT_MS = 20000, ALWAYS = RPMA_F_COMPLETION_ALWAYS };

#define ADDR      "127.0.0.1"
#define PORT      "7400"
#define SHOW(c)   show(#c, c)
#define NUMBER(n) printf("%s is %lld\n", #n, (long long)(n))

static char buf[LEN] __attribute__((aligned(4096)));
static struct rpma_mr_local *mr;
static struct rpma_mr_remote *remote;

static int show(const char *call, int ret)
{
	printf("%s: %s\n", call, rpma_err_2str(ret));
	return ret;
}

static void await(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, WAIT_MS) != 1) {
		printf("nothing comes\n");
		exit(1);
	}
}

static void nonblocking(int fd)
{
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		exit(1);
}

static void event(struct rpma_conn *conn)
{
	enum rpma_conn_event e = RPMA_CONN_UNDEFINED;
	int fd = -1;

	SHOW(rpma_conn_get_event_fd(conn, &fd));
	await(fd);
	SHOW(rpma_conn_next_event(conn, &e));
	printf("%s\n", rpma_utils_conn_event_2str(e));
}

/* Ours names a flush or an atomic write as what it is without such an operation. */
static int plain(enum ibv_wc_opcode opcode)
{
	switch ((int)opcode) {
	case IBV_WC_ATOMIC_WRITE:
		return IBV_WC_RDMA_WRITE;
	case IBV_WC_FLUSH:
		return IBV_WC_RDMA_READ;
	default:
		return opcode;
	}
}

static void completion(struct rpma_cq *cq)
{
	struct ibv_wc wc;
	int ret, tries = WAIT_MS;

	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION && tries--)
		usleep(1000);
	printf("completion: %s, %s, id %d", rpma_err_2str(ret), ibv_wc_status_str(wc.status),
		(int)(wc.wr_id ? (char *)(uintptr_t)wc.wr_id - buf : 0));
	if (wc.status == IBV_WC_SUCCESS)
		printf(", opcode %d, imm %d", plain(wc.opcode),
			wc.wc_flags & IBV_WC_WITH_IMM ? (int)ntohl(wc.imm_data) : -1);
	if (wc.status == IBV_WC_SUCCESS && wc.opcode & IBV_WC_RECV)
		printf(", %u bytes", wc.byte_len);
	printf("\n");
}

/* ---- calls that need no connection ---- */

static void configurations(void)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_srq_cfg *srq_cfg = NULL;
	struct rpma_peer_cfg *pcfg = NULL, *copy = NULL;
	char desc[4] = {7, 7, 7, 7};
	struct rpma_srq *srq = NULL;
	bool flag = true;
	uint32_t n = 99;
	size_t size = 99;
	int ms = 99;

	SHOW(rpma_conn_cfg_new(NULL));
	SHOW(rpma_conn_cfg_new(&cfg));
	SHOW(rpma_conn_cfg_get_timeout(cfg, &ms));
	NUMBER(ms);
	SHOW(rpma_conn_cfg_set_timeout(cfg, -1));
	SHOW(rpma_conn_cfg_get_cq_size(cfg, &n));
	NUMBER(n);
	SHOW(rpma_conn_cfg_get_rcq_size(cfg, &n));
	NUMBER(n);
	SHOW(rpma_conn_cfg_get_sq_size(cfg, &n));
	NUMBER(n);
	SHOW(rpma_conn_cfg_get_rq_size(cfg, &n));
	NUMBER(n);
	SHOW(rpma_conn_cfg_get_compl_channel(cfg, &flag));
	NUMBER(flag);
	SHOW(rpma_conn_cfg_set_srq(cfg, NULL));
	SHOW(rpma_conn_cfg_get_srq(cfg, &srq));
	NUMBER(srq != NULL);
	SHOW(rpma_conn_cfg_delete(&cfg));
	NUMBER(cfg != NULL);
	SHOW(rpma_conn_cfg_delete(&cfg));
	SHOW(rpma_srq_cfg_new(&srq_cfg));
	SHOW(rpma_srq_cfg_get_rq_size(srq_cfg, &n));
	NUMBER(n);
	SHOW(rpma_srq_cfg_get_rcq_size(srq_cfg, &n));
	NUMBER(n);
	SHOW(rpma_srq_cfg_delete(&srq_cfg));
	SHOW(rpma_peer_cfg_new(&pcfg));
	SHOW(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &flag));
	NUMBER(flag);
	SHOW(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	SHOW(rpma_peer_cfg_get_descriptor_size(pcfg, &size));
	NUMBER(size);
	SHOW(rpma_peer_cfg_get_descriptor(pcfg, desc));
	NUMBER(desc[0]);
	NUMBER(desc[1]);
	SHOW(rpma_peer_cfg_from_descriptor(desc, 0, &copy));
	SHOW(rpma_peer_cfg_from_descriptor(desc, 1, &copy));
	SHOW(rpma_peer_cfg_get_direct_write_to_pmem(copy, &flag));
	NUMBER(flag);
	SHOW(rpma_peer_cfg_delete(&pcfg));
	SHOW(rpma_peer_cfg_delete(&copy));
}

static void regions(struct rpma_peer *peer)
{
	struct rpma_mr_remote *bad = NULL;
	unsigned char desc[32] = {0};
	int type = -1, usages = 0;
	struct rpma_mr_local *m;
	size_t size = 0;
	void *ptr;

	SHOW(rpma_mr_reg(peer, buf, 0, RPMA_MR_USAGE_SEND, &m));
	SHOW(rpma_mr_reg(peer, buf, LEN, 0, &m));
	SHOW(rpma_mr_reg(peer, buf, LEN, 256, &m));
	SHOW(rpma_mr_reg(peer, NULL, LEN, 1, &m));
	for (int usage = 1; usage < 256; usage++) {
		usages += !rpma_mr_reg(peer, buf, LEN, usage, &m);
		usages += !rpma_mr_dereg(&m);
	}
	NUMBER(usages);
	SHOW(rpma_mr_reg(peer, buf, LEN, 255, &mr));
	SHOW(rpma_mr_get_ptr(mr, &ptr));
	NUMBER((char *)ptr - buf);
	SHOW(rpma_mr_get_size(mr, &size));
	NUMBER(size);
	SHOW(rpma_mr_get_descriptor_size(mr, &size));
	NUMBER(size);
	SHOW(rpma_mr_get_descriptor(mr, desc));
	for (int i = 8; i < 16; i++)
		NUMBER(desc[i]);
	NUMBER(desc[20]);
	NUMBER(desc[21]);
	SHOW(rpma_mr_remote_from_descriptor(desc, 20, &bad));
	SHOW(rpma_mr_remote_from_descriptor(desc, 22, &remote));
	SHOW(rpma_mr_remote_get_size(remote, &size));
	NUMBER(size);
	SHOW(rpma_mr_remote_get_flush_type(remote, &type));
	NUMBER(type);
	desc[20] = 0;
	SHOW(rpma_mr_remote_from_descriptor(desc, 21, &bad));
	SHOW(rpma_mr_remote_delete(&bad));
	SHOW(rpma_mr_advise(
		mr, 0, LEN, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH));
	SHOW(rpma_mr_advise(mr, 0, LEN, 1000, 0));
	SHOW(rpma_mr_advise(mr, 0, LEN, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 30));
}

static void addresses(struct rpma_peer *peer)
{
	struct ibv_context *ctx = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = NULL;
	int odp = -1;

	SHOW(rpma_utils_get_ibv_context("192.0.2.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	SHOW(rpma_utils_get_ibv_context(ADDR, (enum rpma_util_ibv_context_type)9, &ctx));
	SHOW(rpma_utils_get_ibv_context(ADDR, RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	SHOW(rpma_utils_ibv_context_is_odp_capable(ctx, &odp));
	NUMBER(odp);
	SHOW(rpma_ep_listen(peer, "192.0.2.1", PORT, &ep));
	SHOW(rpma_ep_listen(peer, ADDR, "no such port", &ep));
	SHOW(rpma_ep_listen(peer, ADDR, "99999", &ep));
	SHOW(rpma_ep_shutdown(&ep));
	SHOW(rpma_conn_req_new(peer, ADDR, "no such port", NULL, &req));
	SHOW(rpma_conn_req_new(peer, ADDR, "99999", NULL, &req));
	SHOW(rpma_conn_req_delete(&req));
	SHOW(rpma_conn_req_new(peer, ADDR, PORT, NULL, &req));
	SHOW(rpma_conn_req_connect(&req, NULL, NULL));
	NUMBER(req != NULL);
}

/* ---- a connection ---- */

struct pair {
	struct rpma_ep *ep;
	struct rpma_conn *active, *passive;
};

static void private_data(const char *whose, const struct rpma_conn_private_data *pdata)
{
	printf("%s private data: '%.*s'\n", whose, pdata->ptr ? (int)pdata->len : 0,
		pdata->ptr ? (char *)pdata->ptr : "");
}

static void make_pair(struct rpma_peer *peer, struct rpma_conn_cfg *cfg, struct pair *p)
{
	struct rpma_conn_private_data ask = {"question", 9}, answer = {"answer", 7}, got;
	struct rpma_conn_req *req = NULL;
	int fd = -1;

	SHOW(rpma_ep_listen(peer, ADDR, PORT, &p->ep));
	SHOW(rpma_conn_req_new(peer, ADDR, PORT, cfg, &req));
	SHOW(rpma_conn_req_connect(&req, &ask, &p->active));
	NUMBER(req != NULL);
	SHOW(rpma_ep_get_fd(p->ep, &fd));
	await(fd);
	SHOW(rpma_ep_next_conn_req(p->ep, cfg, &req));
	SHOW(rpma_conn_req_get_private_data(req, &got));
	private_data("request's", &got);
	SHOW(rpma_conn_req_connect(&req, &answer, &p->passive));
	event(p->active);
	event(p->passive);
	SHOW(rpma_conn_get_private_data(p->active, &got));
	private_data("active", &got);
	SHOW(rpma_conn_get_private_data(p->passive, &got));
	private_data("passive", &got);
}

static void end_pair(struct pair *p)
{
	SHOW(rpma_conn_disconnect(p->active));
	event(p->passive);
	SHOW(rpma_conn_disconnect(p->passive));
	event(p->active);
	SHOW(rpma_conn_delete(&p->active));
	SHOW(rpma_conn_delete(&p->passive));
	SHOW(rpma_ep_shutdown(&p->ep));
}

static void queues(struct rpma_conn *conn)
{
	struct rpma_cq *cq = NULL, *rcq = NULL;
	struct ibv_wc wc[2];
	bool is_rcq = false;
	int fd = -1;

	SHOW(rpma_conn_get_cq(conn, &cq));
	SHOW(rpma_conn_get_rcq(conn, &rcq));
	NUMBER(rcq != NULL);
	SHOW(rpma_cq_get_wc(cq, 1, wc, NULL));
	SHOW(rpma_cq_get_wc(cq, 2, wc, NULL));
	SHOW(rpma_cq_get_wc(cq, 0, wc, NULL));
	if (!SHOW(rpma_cq_get_fd(cq, &fd)))
		nonblocking(fd);
	if (!SHOW(rpma_conn_get_compl_fd(conn, &fd)))
		nonblocking(fd);
	SHOW(rpma_cq_wait(cq));
	SHOW(rpma_conn_wait(conn, 0, &cq, &is_rcq));
}

static void bad_operations(struct rpma_conn *conn)
{
	SHOW(rpma_read(conn, mr, 0, remote, 0, 8, 0, NULL));
	SHOW(rpma_read(conn, NULL, 0, remote, 0, 8, ALWAYS, NULL));
	SHOW(rpma_read(conn, mr, 0, NULL, 0, 8, ALWAYS, NULL));
	SHOW(rpma_read(conn, NULL, 1, NULL, 0, 0, ALWAYS, NULL));
	SHOW(rpma_write(conn, remote, 0, mr, 0, 8, 0, NULL));
	SHOW(rpma_write(conn, NULL, 0, NULL, 0, 1, ALWAYS, NULL));
	SHOW(rpma_write_with_imm(conn, NULL, 0, mr, 0, 8, ALWAYS, 1, NULL));
	SHOW(rpma_atomic_write(conn, remote, 4, buf, ALWAYS, NULL));
	SHOW(rpma_atomic_write(conn, NULL, 0, buf, ALWAYS, NULL));
	SHOW(rpma_flush(conn, NULL, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, NULL));
	SHOW(rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 0, NULL));
	SHOW(rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS, NULL));
	SHOW(rpma_send(conn, NULL, 0, 8, ALWAYS, NULL));
	SHOW(rpma_send(conn, mr, 0, 8, 0, NULL));
	SHOW(rpma_send_with_imm(conn, NULL, 1, 0, ALWAYS, 1, NULL));
	SHOW(rpma_recv(conn, NULL, 0, 8, NULL));
}

static void operations(struct pair *p, struct rpma_srq *srq)
{
	struct rpma_cq *cq = NULL, *rcq = NULL;
	struct rpma_peer_cfg *pcfg = NULL;

	rpma_conn_get_cq(p->active, &cq);
	rpma_conn_get_rcq(p->passive, &rcq);
	if (srq && !rcq)
		rpma_srq_get_rcq(srq, &rcq);
	if (!rcq)
		rpma_conn_get_cq(p->passive, &rcq);
	strcpy(buf, "some text");
	SHOW(rpma_write(p->active, remote, 1000, mr, 0, 10, ALWAYS, buf + 1));
	completion(cq);
	SHOW(rpma_read(p->active, mr, 2000, remote, 1000, 10, ALWAYS, buf + 2));
	completion(cq);
	printf("'%s' '%s'\n", buf + 1000, buf + 2000);
	SHOW(rpma_write(p->active, remote, 1000, mr, 0, 10, 1 << 10, buf + 1));
	SHOW(rpma_write(p->active, remote, 1000, mr, 0, 10, 1 << 10 | ALWAYS, buf + 1));
	completion(cq);
	SHOW(rpma_flush(p->active, remote, 1000, 10, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, buf + 3));
	completion(cq);
	SHOW(rpma_peer_cfg_new(&pcfg));
	SHOW(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	SHOW(rpma_conn_apply_remote_peer_cfg(p->active, pcfg));
	SHOW(rpma_peer_cfg_delete(&pcfg));
	SHOW(rpma_flush(p->active, remote, 0, LEN, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS, buf + 4));
	completion(cq);
	SHOW(rpma_atomic_write(p->active, remote, 3000, "8 bytes!", ALWAYS, buf + 5));
	completion(cq);
	printf("'%.8s'\n", buf + 3000);
	for (int i = 0; i < 4; i++)
		show("receive", srq ? rpma_srq_recv(srq, mr, 4000 + i * 100, 100, buf + 10 + i)
				    : rpma_recv(p->passive, mr, 4000 + i * 100, 100, buf + 10 + i));
	SHOW(rpma_send(p->active, mr, 0, 10, ALWAYS, buf + 6));
	completion(cq);
	completion(rcq);
	SHOW(rpma_send_with_imm(p->active, mr, 5, 5, ALWAYS, 1234, buf + 7));
	completion(cq);
	completion(rcq);
	SHOW(rpma_write_with_imm(p->active, remote, 5000, mr, 0, 10, ALWAYS, 4321, buf + 8));
	completion(cq);
	completion(rcq);
	SHOW(rpma_send(p->active, NULL, 0, 0, ALWAYS, buf + 9));
	completion(cq);
	completion(rcq);
	printf("'%s' '%s' '%s'\n", buf + 4000, buf + 4100, buf + 5000);
	SHOW(rpma_read(p->active, NULL, 0, NULL, 0, 0, ALWAYS, buf));
	completion(cq);
	SHOW(rpma_write(p->active, NULL, 0, NULL, 0, 0, ALWAYS, buf));
	completion(cq);
}

static void connection(struct rpma_peer *peer, struct rpma_conn_cfg *cfg, struct rpma_srq *srq)
{
	struct pair p = {0};

	make_pair(peer, cfg, &p);
	queues(p.active);
	bad_operations(p.active);
	operations(&p, srq);
	end_pair(&p);
}

static void variants(struct rpma_peer *peer)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_srq_cfg *srq_cfg = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_srq *srq = NULL;

	connection(peer, NULL, NULL);
	SHOW(rpma_conn_cfg_new(&cfg));
	SHOW(rpma_conn_cfg_set_rcq_size(cfg, 8));
	connection(peer, cfg, NULL);
	SHOW(rpma_conn_cfg_set_compl_channel(cfg, true));
	connection(peer, cfg, NULL);
	SHOW(rpma_srq_new(peer, NULL, &srq));
	SHOW(rpma_conn_cfg_set_srq(cfg, srq));
	SHOW(rpma_conn_req_new(peer, ADDR, PORT, cfg, &req));
	SHOW(rpma_conn_cfg_set_compl_channel(cfg, false));
	connection(peer, cfg, srq);
	SHOW(rpma_srq_delete(&srq));
	SHOW(rpma_srq_cfg_new(&srq_cfg));
	SHOW(rpma_srq_cfg_set_rcq_size(srq_cfg, 0));
	SHOW(rpma_srq_new(peer, srq_cfg, &srq));
	SHOW(rpma_conn_cfg_set_srq(cfg, srq));
	connection(peer, cfg, srq);
	SHOW(rpma_srq_delete(&srq));
	SHOW(rpma_srq_cfg_delete(&srq_cfg));
	SHOW(rpma_conn_cfg_delete(&cfg));
}

static void refused(struct rpma_peer *peer)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;

	SHOW(rpma_conn_req_new(peer, ADDR, PORT, NULL, &req));
	SHOW(rpma_conn_req_connect(&req, NULL, &conn));
	event(conn);
	SHOW(rpma_conn_delete(&conn));
}

int main(void)
{
	struct ibv_context *ctx = NULL;
	struct rpma_peer *peer = NULL;

	SHOW(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
	SHOW(rpma_utils_get_ibv_context(ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	SHOW(rpma_peer_new(ctx, &peer));
	configurations();
	regions(peer);
	addresses(peer);
	variants(peer);
	refused(peer);
	SHOW(rpma_mr_remote_delete(&remote));
	SHOW(rpma_mr_dereg(&mr));
	SHOW(rpma_peer_delete(&peer));
	return 0;
}
