// SPDX-License-Identifier: BSD-3-Clause
/*
 * What each function of librpma refuses, and how: NULL, numbers out of range, objects in the wrong
 * state.  What the layers below refuse is rpma_faults.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/check.h"
#include "tests/lib/rpma_ends.h"

enum { LEN = 4096 };

#define INVAL(call) CHECK_EQ(call, RPMA_E_INVAL)

static char buf[LEN] __attribute__((aligned(4096)));

static void strings(void)
{
	check_case("strings");
	CHECK(!strcmp(rpma_err_2str(0), "Success"));
	CHECK(!strcmp(rpma_err_2str(RPMA_E_UNKNOWN), "Unknown error"));
	CHECK(!strcmp(rpma_err_2str(RPMA_E_NOSUPP), "Not supported"));
	CHECK(!strcmp(rpma_err_2str(RPMA_E_PROVIDER), "Provider error occurred"));
	CHECK(!strcmp(rpma_err_2str(RPMA_E_NOMEM), "Out of memory"));
	CHECK(!strcmp(rpma_err_2str(RPMA_E_INVAL), "Invalid argument"));
	CHECK(!strcmp(rpma_err_2str(RPMA_E_NO_COMPLETION), "No next completion available"));
	CHECK(!strcmp(rpma_err_2str(RPMA_E_NO_EVENT), "No next event available"));
	CHECK(!strcmp(rpma_err_2str(RPMA_E_AGAIN), "Temporary error, try again"));
	CHECK(!strcmp(rpma_err_2str(RPMA_E_SHARED_CHANNEL), "Completion channel is shared"));
	CHECK(!strcmp(rpma_err_2str(RPMA_E_NOT_SHARED_CHNL), "Completion channel is not shared"));
	CHECK(!strcmp(rpma_err_2str(1), "Unknown error"));
	CHECK(!strcmp(
		rpma_utils_conn_event_2str(RPMA_CONN_UNDEFINED), "Undefined connection event"));
	CHECK(!strcmp(rpma_utils_conn_event_2str(RPMA_CONN_ESTABLISHED), "Connection established"));
	CHECK(!strcmp(rpma_utils_conn_event_2str(RPMA_CONN_CLOSED), "Connection closed"));
	CHECK(!strcmp(rpma_utils_conn_event_2str(RPMA_CONN_LOST), "Connection lost"));
	CHECK(!strcmp(rpma_utils_conn_event_2str(RPMA_CONN_REJECTED), "Connection rejected"));
	CHECK(!strcmp(rpma_utils_conn_event_2str(RPMA_CONN_UNREACHABLE), "Connection unreachable"));
	CHECK(!strcmp(rpma_utils_conn_event_2str((enum rpma_conn_event)9),
		"Unsupported connection event"));
}

/* ---- the log ---- */

static int messages;
static char last_file[64], last_text[256];

static void count(enum rpma_log_level level, const char *file, const int line, const char *function,
	const char *fmt, ...)
{
	va_list ap;

	CHECK_RANGE(level, RPMA_LOG_LEVEL_FATAL, RPMA_LOG_LEVEL_DEBUG);
	CHECK(line > 0 && function);
	snprintf(last_file, sizeof last_file, "%s", file);
	va_start(ap, fmt);
	vsnprintf(last_text, sizeof last_text, fmt, ap);
	va_end(ap);
	messages++;
}

static void log_calls(void)
{
	enum rpma_log_level level;
	struct rpma_mr_remote *mr;

	check_case("log");
	CHECK_EQ(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level), 0);
	CHECK_EQ(level, RPMA_LOG_LEVEL_WARNING);
	CHECK_EQ(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &level), 0);
	CHECK_EQ(level, RPMA_LOG_DISABLED);
	INVAL(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, NULL));
	INVAL(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_MAX, &level));
	INVAL(rpma_log_get_threshold((enum rpma_log_threshold) - 1, &level));
	INVAL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_MAX, RPMA_LOG_LEVEL_INFO));
	INVAL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level) - 2));
	INVAL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)6));
	CHECK_EQ(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_DEBUG), 0);
	CHECK_EQ(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &level), 0);
	CHECK_EQ(level, RPMA_LOG_LEVEL_DEBUG);
	CHECK_EQ(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED), 0);

	CHECK_EQ(rpma_log_set_function(count), 0);
	errno = EXDEV;
	INVAL(rpma_mr_remote_from_descriptor("too short", 9, &mr));
	CHECK_EQ(errno, EXDEV);
	CHECK_EQ(messages, 1);
	CHECK(!strcmp(last_file, "mr_remote.c"));
	CHECK(strstr(last_text, "9 bytes"));
	CHECK_EQ(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED), 0);
	INVAL(rpma_mr_remote_from_descriptor("too short", 9, &mr));
	CHECK_EQ(messages, 1);
	CHECK_EQ(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION), 0);
	INVAL(rpma_mr_remote_from_descriptor("too short", 9, &mr));
	CHECK_EQ(messages, 1);
}

/* ---- objects without a connection ---- */

static void contexts_and_peers(void)
{
	struct ibv_context *ctx = NULL, *other = NULL;
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr;
	int odp = -1;

	check_case("contexts and peers");
	INVAL(rpma_utils_get_ibv_context(NULL, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	INVAL(rpma_utils_get_ibv_context(RP_ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, NULL));
	INVAL(rpma_utils_get_ibv_context(RP_ADDR, (enum rpma_util_ibv_context_type)2, &ctx));
	CHECK_EQ(rpma_utils_get_ibv_context(
			 "not.a.name.invalid.", RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx),
		RPMA_E_PROVIDER);
	CHECK_EQ(rpma_utils_get_ibv_context("192.0.2.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx),
		RPMA_E_PROVIDER);
	CHECK_EQ(rpma_utils_get_ibv_context("0.0.0.0", RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx),
		RPMA_E_PROVIDER);
	CHECK(!ctx);
	CHECK_EQ(rpma_utils_get_ibv_context(RP_ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx), 0);
	CHECK_EQ(rpma_utils_get_ibv_context(RP_ADDR, RPMA_UTIL_IBV_CONTEXT_REMOTE, &other), 0);
	CHECK(ctx && ctx == other);

	INVAL(rpma_utils_ibv_context_is_odp_capable(NULL, &odp));
	INVAL(rpma_utils_ibv_context_is_odp_capable(ctx, NULL));
	CHECK_EQ(rpma_utils_ibv_context_is_odp_capable(ctx, &odp), 0);
	CHECK_RANGE(odp, 0, 1);

	INVAL(rpma_peer_new(NULL, &peer));
	INVAL(rpma_peer_new(ctx, NULL));
	INVAL(rpma_peer_delete(NULL));
	CHECK_EQ(rpma_peer_delete(&peer), 0);
	CHECK_EQ(rpma_peer_new(ctx, &peer), 0);
	CHECK_EQ(rpma_mr_reg(peer, buf, LEN, RPMA_MR_USAGE_SEND, &mr), 0);
	CHECK_EQ(rpma_peer_delete(&peer), RPMA_E_PROVIDER); /* a region is left in it */
	CHECK(!peer);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
}

static void peer_cfgs(void)
{
	struct rpma_peer_cfg *cfg = NULL, *copy = NULL;
	uint8_t desc[2] = {9, 9};
	size_t size;
	bool direct = true;

	check_case("peer configurations");
	INVAL(rpma_peer_cfg_new(NULL));
	INVAL(rpma_peer_cfg_delete(NULL));
	CHECK_EQ(rpma_peer_cfg_delete(&cfg), 0);
	CHECK_EQ(rpma_peer_cfg_new(&cfg), 0);
	CHECK_EQ(rpma_peer_cfg_get_direct_write_to_pmem(cfg, &direct), 0);
	CHECK_EQ(direct, false);
	INVAL(rpma_peer_cfg_get_direct_write_to_pmem(NULL, &direct));
	INVAL(rpma_peer_cfg_get_direct_write_to_pmem(cfg, NULL));
	INVAL(rpma_peer_cfg_set_direct_write_to_pmem(NULL, true));
	CHECK_EQ(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true), 0);
	INVAL(rpma_peer_cfg_get_descriptor(NULL, desc));
	INVAL(rpma_peer_cfg_get_descriptor(cfg, NULL));
	INVAL(rpma_peer_cfg_get_descriptor_size(NULL, &size));
	INVAL(rpma_peer_cfg_get_descriptor_size(cfg, NULL));
	CHECK_EQ(rpma_peer_cfg_get_descriptor_size(cfg, &size), 0);
	CHECK_EQ(size, 1);
	CHECK_EQ(rpma_peer_cfg_get_descriptor(cfg, desc), 0);
	CHECK(desc[0] == 1 && desc[1] == 9);
	INVAL(rpma_peer_cfg_from_descriptor(NULL, 1, &copy));
	INVAL(rpma_peer_cfg_from_descriptor(desc, 0, &copy));
	INVAL(rpma_peer_cfg_from_descriptor(desc, 1, NULL));
	INVAL(rpma_peer_cfg_from_descriptor(desc + 1, 1, &copy)); /* neither 0 nor 1 */
	CHECK(!copy);
	CHECK_EQ(rpma_peer_cfg_from_descriptor(desc, 2, &copy), 0);
	CHECK_EQ(rpma_peer_cfg_get_direct_write_to_pmem(copy, &direct), 0);
	CHECK_EQ(direct, true);
	CHECK_EQ(rpma_peer_cfg_delete(&cfg), 0);
	CHECK_EQ(rpma_peer_cfg_delete(&copy), 0);
	CHECK(!cfg && !copy);
}

static void regions(struct rpma_peer *peer)
{
	struct rpma_mr_local *mr = NULL;
	size_t size = 0;
	void *hole, *ptr;

	check_case("regions");
	INVAL(rpma_mr_reg(NULL, buf, LEN, RPMA_MR_USAGE_SEND, &mr));
	INVAL(rpma_mr_reg(peer, NULL, LEN, RPMA_MR_USAGE_SEND, &mr));
	INVAL(rpma_mr_reg(peer, buf, 0, RPMA_MR_USAGE_SEND, &mr));
	INVAL(rpma_mr_reg(peer, buf, LEN, 0, &mr));
	INVAL(rpma_mr_reg(peer, buf, LEN, 256, &mr));
	INVAL(rpma_mr_reg(peer, buf, LEN, -1, &mr));
	INVAL(rpma_mr_reg(peer, buf, LEN, RPMA_MR_USAGE_SEND, NULL));
	hole = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(hole, LEN);
	CHECK_EQ(rpma_mr_reg(peer, hole, LEN, RPMA_MR_USAGE_RECV, &mr), RPMA_E_PROVIDER);
	CHECK(!mr);
	INVAL(rpma_mr_dereg(NULL));
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
	for (int usage = 1; usage < 256; usage++) {
		CHECK_EQ(rpma_mr_reg(peer, buf, LEN, usage, &mr), 0);
		CHECK_EQ(rpma_mr_dereg(&mr), 0);
		CHECK(!mr);
	}
	CHECK_EQ(rpma_mr_reg(peer, buf, LEN, RPMA_MR_USAGE_READ_DST, &mr), 0);
	INVAL(rpma_mr_get_ptr(NULL, &ptr));
	INVAL(rpma_mr_get_ptr(mr, NULL));
	CHECK_EQ(rpma_mr_get_ptr(mr, &ptr), 0);
	CHECK(ptr == buf);
	INVAL(rpma_mr_get_size(NULL, &size));
	INVAL(rpma_mr_get_size(mr, NULL));
	CHECK_EQ(rpma_mr_get_size(mr, &size), 0);
	CHECK_EQ(size, LEN);
	INVAL(rpma_mr_get_descriptor(NULL, buf));
	INVAL(rpma_mr_get_descriptor(mr, NULL));
	INVAL(rpma_mr_get_descriptor_size(NULL, &size));
	INVAL(rpma_mr_get_descriptor_size(mr, NULL));

	INVAL(rpma_mr_advise(NULL, 0, 1, IBV_ADVISE_MR_ADVICE_PREFETCH, 0));
	INVAL(rpma_mr_advise(mr, 1, LEN, IBV_ADVISE_MR_ADVICE_PREFETCH, 0));
	INVAL(rpma_mr_advise(mr, LEN + 1, 0, IBV_ADVISE_MR_ADVICE_PREFETCH, 0));
	INVAL(rpma_mr_advise(mr, 0, LEN, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 31));
	CHECK_EQ(rpma_mr_advise(mr, 0, LEN, 1000, 0), RPMA_E_NOSUPP);
	CHECK_EQ(rpma_mr_advise(
			 mr, 0, LEN, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH),
		0);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
}

static void descriptors(struct rpma_peer *peer)
{
	const int flushes =
		RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	struct rpma_mr_remote *remote = NULL;
	struct rpma_mr_local *mr;
	uint8_t desc[32], bad[32];
	uint64_t word;
	size_t size;
	int type;

	check_case("descriptors");
	memset(desc, 0xee, sizeof desc);
	CHECK_EQ(rpma_mr_reg(peer, buf, 513, RPMA_MR_USAGE_WRITE_DST | flushes, &mr), 0);
	CHECK_EQ(rpma_mr_get_descriptor_size(mr, &size), 0);
	CHECK_EQ(size, 21);
	CHECK_EQ(rpma_mr_get_descriptor(mr, desc), 0);
	CHECK_EQ(desc[21], 0xee);
	CHECK_EQ(desc[20], RPMA_MR_USAGE_WRITE_DST | flushes);
	CHECK(desc[8] == 1 && desc[9] == 2 && desc[10] == 0); /* 513, little endian */
	word = 0;
	for (int i = 7; i >= 0; i--)
		word = word << 8 | desc[i];
	CHECK_EQ(word, (uintptr_t)buf);

	INVAL(rpma_mr_remote_from_descriptor(NULL, 21, &remote));
	INVAL(rpma_mr_remote_from_descriptor(desc, 21, NULL));
	for (size = 0; size < 21; size++)
		INVAL(rpma_mr_remote_from_descriptor(desc, size, &remote));
	memcpy(bad, desc, sizeof bad);
	bad[20] = 0; /* no usage */
	INVAL(rpma_mr_remote_from_descriptor(bad, 21, &remote));
	memcpy(bad, desc, sizeof bad);
	memset(bad + 8, 0, 8); /* nothing in it */
	CHECK_EQ(rpma_mr_remote_from_descriptor(bad, 21, &remote), RPMA_E_NOSUPP);
	memset(bad + 8, 0xff, 8); /* beyond the end of all memory */
	CHECK_EQ(rpma_mr_remote_from_descriptor(bad, 21, &remote), RPMA_E_NOSUPP);
	CHECK(!remote);
	CHECK_EQ(rpma_mr_remote_from_descriptor(desc, 30, &remote), 0);
	CHECK_EQ(rpma_mr_remote_get_size(remote, &size), 0);
	CHECK_EQ(size, 513);
	INVAL(rpma_mr_remote_get_size(NULL, &size));
	INVAL(rpma_mr_remote_get_size(remote, NULL));
	CHECK_EQ(rpma_mr_remote_get_flush_type(remote, &type), 0);
	CHECK_EQ(type, flushes);
	INVAL(rpma_mr_remote_get_flush_type(NULL, &type));
	INVAL(rpma_mr_remote_get_flush_type(remote, NULL));
	INVAL(rpma_mr_remote_delete(NULL));
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
}

/* ---- configurations ---- */

static void sizes(struct rpma_conn_cfg *cfg)
{
	static const struct {
		int (*set)(struct rpma_conn_cfg *cfg, uint32_t size);
		int (*get)(const struct rpma_conn_cfg *cfg, uint32_t *size);
		uint32_t first;
	} table[] = {
		{rpma_conn_cfg_set_cq_size, rpma_conn_cfg_get_cq_size, 10},
		{rpma_conn_cfg_set_rcq_size, rpma_conn_cfg_get_rcq_size, 0},
		{rpma_conn_cfg_set_sq_size, rpma_conn_cfg_get_sq_size, 10},
		{rpma_conn_cfg_set_rq_size, rpma_conn_cfg_get_rq_size, 10},
	};

	for (int i = 0; i < 4; i++) {
		uint32_t size = 77;

		check_case("size %d", i);
		INVAL(table[i].set(NULL, 1));
		INVAL(table[i].get(NULL, &size));
		INVAL(table[i].get(cfg, NULL));
		CHECK_EQ(table[i].get(cfg, &size), 0);
		CHECK_EQ(size, table[i].first);
		CHECK_EQ(table[i].set(cfg, UINT32_MAX - i), 0);
		CHECK_EQ(table[i].get(cfg, &size), 0);
		CHECK_EQ(size, UINT32_MAX - i);
	}
}

static void conn_cfgs(void)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_srq *srq = (struct rpma_srq *)buf;
	bool shared = true;
	int ms = 0;

	check_case("connection configurations");
	INVAL(rpma_conn_cfg_new(NULL));
	INVAL(rpma_conn_cfg_delete(NULL));
	CHECK_EQ(rpma_conn_cfg_delete(&cfg), 0);
	CHECK_EQ(rpma_conn_cfg_new(&cfg), 0);
	INVAL(rpma_conn_cfg_set_timeout(NULL, 1));
	INVAL(rpma_conn_cfg_set_timeout(cfg, -1));
	INVAL(rpma_conn_cfg_get_timeout(NULL, &ms));
	INVAL(rpma_conn_cfg_get_timeout(cfg, NULL));
	CHECK_EQ(rpma_conn_cfg_get_timeout(cfg, &ms), 0);
	CHECK_EQ(ms, RPMA_DEFAULT_TIMEOUT_MS);
	CHECK_EQ(rpma_conn_cfg_set_timeout(cfg, 0), 0);
	CHECK_EQ(rpma_conn_cfg_get_timeout(cfg, &ms), 0);
	CHECK_EQ(ms, 0);
	INVAL(rpma_conn_cfg_set_compl_channel(NULL, true));
	INVAL(rpma_conn_cfg_get_compl_channel(NULL, &shared));
	INVAL(rpma_conn_cfg_get_compl_channel(cfg, NULL));
	CHECK_EQ(rpma_conn_cfg_get_compl_channel(cfg, &shared), 0);
	CHECK_EQ(shared, false);
	INVAL(rpma_conn_cfg_set_srq(NULL, srq));
	INVAL(rpma_conn_cfg_set_srq(cfg, NULL));
	INVAL(rpma_conn_cfg_get_srq(NULL, &srq));
	INVAL(rpma_conn_cfg_get_srq(cfg, NULL));
	CHECK_EQ(rpma_conn_cfg_get_srq(cfg, &srq), 0);
	CHECK(!srq);
	sizes(cfg);
	CHECK_EQ(rpma_conn_cfg_delete(&cfg), 0);
	CHECK(!cfg);
}

static void srqs(struct rpma_peer *peer)
{
	struct rpma_srq_cfg *cfg = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_mr_local *mr;
	struct rpma_cq *rcq;
	uint32_t n = 0;

	check_case("shared receive queues");
	INVAL(rpma_srq_cfg_new(NULL));
	INVAL(rpma_srq_cfg_delete(NULL));
	CHECK_EQ(rpma_srq_cfg_delete(&cfg), 0);
	CHECK_EQ(rpma_srq_cfg_new(&cfg), 0);
	INVAL(rpma_srq_cfg_set_rq_size(NULL, 1));
	INVAL(rpma_srq_cfg_get_rq_size(NULL, &n));
	INVAL(rpma_srq_cfg_get_rq_size(cfg, NULL));
	INVAL(rpma_srq_cfg_set_rcq_size(NULL, 1));
	INVAL(rpma_srq_cfg_get_rcq_size(NULL, &n));
	INVAL(rpma_srq_cfg_get_rcq_size(cfg, NULL));
	CHECK_EQ(rpma_srq_cfg_get_rq_size(cfg, &n), 0);
	CHECK_EQ(n, 20);
	CHECK_EQ(rpma_srq_cfg_get_rcq_size(cfg, &n), 0);
	CHECK_EQ(n, 20);
	INVAL(rpma_srq_new(NULL, cfg, &srq));
	INVAL(rpma_srq_new(peer, cfg, NULL));
	INVAL(rpma_srq_delete(NULL));
	CHECK_EQ(rpma_srq_delete(&srq), 0);
	CHECK_EQ(rpma_srq_cfg_set_rq_size(cfg, UINT32_MAX), 0);
	CHECK_EQ(rpma_srq_new(peer, cfg, &srq), RPMA_E_PROVIDER);
	CHECK_EQ(rpma_srq_cfg_set_rq_size(cfg, 2), 0);
	CHECK_EQ(rpma_srq_cfg_set_rcq_size(cfg, UINT32_MAX), 0);
	CHECK_EQ(rpma_srq_new(peer, cfg, &srq), RPMA_E_PROVIDER);
	CHECK_EQ(rpma_srq_cfg_set_rcq_size(cfg, 0), 0);
	CHECK_EQ(rpma_srq_new(peer, cfg, &srq), 0);
	INVAL(rpma_srq_get_rcq(NULL, &rcq));
	INVAL(rpma_srq_get_rcq(srq, NULL));
	CHECK_EQ(rpma_srq_get_rcq(srq, &rcq), 0);
	CHECK(!rcq);
	CHECK_EQ(rpma_mr_reg(peer, buf, LEN, RPMA_MR_USAGE_RECV, &mr), 0);
	INVAL(rpma_srq_recv(NULL, mr, 0, 1, NULL));
	INVAL(rpma_srq_recv(srq, NULL, 0, 1, NULL));
	INVAL(rpma_srq_recv(srq, NULL, 1, 0, NULL));
	INVAL(rpma_srq_recv(srq, mr, 1, LEN, NULL));
	for (n = 0; n < 100 && !rpma_srq_recv(srq, mr, 0, LEN, NULL); n++)
		;
	CHECK_RANGE(n, 2, 64);
	CHECK_EQ(rpma_srq_recv(srq, NULL, 0, 0, NULL), RPMA_E_PROVIDER); /* full */
	CHECK_EQ(rpma_srq_delete(&srq), 0);
	CHECK_EQ(rpma_srq_new(peer, NULL, &srq), 0);
	CHECK_EQ(rpma_srq_get_rcq(srq, &rcq), 0);
	CHECK(rcq);
	CHECK_EQ(rpma_srq_delete(&srq), 0);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
	CHECK_EQ(rpma_srq_cfg_delete(&cfg), 0);
}

/* ---- endpoints and requests ---- */

static void endpoints(struct rpma_peer *peer)
{
	struct rpma_ep *ep = NULL, *second = NULL;
	struct rpma_conn_req *req = NULL;
	int fd;

	check_case("endpoints");
	INVAL(rpma_ep_listen(NULL, RP_ADDR, RP_PORT, &ep));
	INVAL(rpma_ep_listen(peer, NULL, RP_PORT, &ep));
	INVAL(rpma_ep_listen(peer, RP_ADDR, NULL, &ep));
	INVAL(rpma_ep_listen(peer, RP_ADDR, RP_PORT, NULL));
	CHECK_EQ(rpma_ep_listen(peer, "192.0.2.1", RP_PORT, &ep), RPMA_E_PROVIDER);
	CHECK_EQ(rpma_ep_listen(peer, RP_ADDR, "no such port", &ep), RPMA_E_PROVIDER);
	INVAL(rpma_ep_shutdown(NULL));
	CHECK_EQ(rpma_ep_shutdown(&ep), 0);
	CHECK_EQ(rpma_ep_listen(peer, RP_ADDR, RP_PORT, &ep), 0);
	CHECK_EQ(rpma_ep_listen(peer, RP_ADDR, RP_PORT, &second), RPMA_E_PROVIDER);
	CHECK(!second);
	INVAL(rpma_ep_get_fd(NULL, &fd));
	INVAL(rpma_ep_get_fd(ep, NULL));
	INVAL(rpma_ep_next_conn_req(NULL, NULL, &req));
	INVAL(rpma_ep_next_conn_req(ep, NULL, NULL));
	CHECK_EQ(rpma_ep_get_fd(ep, &fd), 0);
	CHECK_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
	CHECK_EQ(rpma_ep_next_conn_req(ep, NULL, &req), RPMA_E_NO_EVENT);
	CHECK(!req);
	CHECK_EQ(rpma_ep_shutdown(&ep), 0);
	CHECK(!ep);
}

static void requests(struct rpma_peer *peer, struct rpma_mr_local *mr)
{
	struct rpma_conn_private_data pdata = {.ptr = buf, .len = 57}, empty = {NULL, 0};
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_srq *srq;

	check_case("requests");
	INVAL(rpma_conn_req_new(NULL, RP_ADDR, RP_PORT, NULL, &req));
	INVAL(rpma_conn_req_new(peer, NULL, RP_PORT, NULL, &req));
	INVAL(rpma_conn_req_new(peer, RP_ADDR, NULL, NULL, &req));
	INVAL(rpma_conn_req_new(peer, RP_ADDR, RP_PORT, NULL, NULL));
	CHECK_EQ(rpma_conn_req_new(peer, "not.a.name.invalid.", RP_PORT, NULL, &req),
		RPMA_E_PROVIDER);
	CHECK_EQ(rpma_conn_cfg_new(&cfg), 0);
	CHECK_EQ(rpma_conn_cfg_set_cq_size(cfg, UINT32_MAX), 0);
	CHECK_EQ(rpma_conn_req_new(peer, RP_ADDR, RP_PORT, cfg, &req), RPMA_E_PROVIDER);
	CHECK_EQ(rpma_conn_cfg_set_cq_size(cfg, 10), 0);
	CHECK_EQ(rpma_conn_cfg_set_sq_size(cfg, UINT32_MAX), 0);
	CHECK_EQ(rpma_conn_req_new(peer, RP_ADDR, RP_PORT, cfg, &req), RPMA_E_PROVIDER);
	CHECK_EQ(rpma_conn_cfg_set_sq_size(cfg, 10), 0);
	CHECK_EQ(rpma_srq_new(peer, NULL, &srq), 0);
	CHECK_EQ(rpma_conn_cfg_set_srq(cfg, srq), 0);
	CHECK_EQ(rpma_conn_cfg_set_compl_channel(cfg, true), 0);
	INVAL(rpma_conn_req_new(peer, RP_ADDR, RP_PORT, cfg, &req)); /* the SRQ has an RCQ */
	CHECK(!req);
	CHECK_EQ(rpma_conn_cfg_delete(&cfg), 0);
	CHECK_EQ(rpma_srq_delete(&srq), 0);

	INVAL(rpma_conn_req_delete(NULL));
	CHECK_EQ(rpma_conn_req_delete(&req), 0);
	CHECK_EQ(rpma_conn_req_new(peer, RP_ADDR, RP_PORT, NULL, &req), 0);
	INVAL(rpma_conn_req_recv(NULL, mr, 0, LEN, buf));
	INVAL(rpma_conn_req_recv(req, NULL, 0, 0, buf));
	INVAL(rpma_conn_req_recv(req, mr, 0, LEN + 1, buf));
	CHECK_EQ(rpma_conn_req_recv(req, mr, 0, LEN, buf), 0);
	INVAL(rpma_conn_req_get_private_data(NULL, &pdata));
	INVAL(rpma_conn_req_get_private_data(req, NULL));
	CHECK_EQ(rpma_conn_req_get_private_data(req, &empty), 0);
	CHECK(!empty.ptr && !empty.len);
	INVAL(rpma_conn_req_connect(NULL, NULL, &conn));
	INVAL(rpma_conn_req_connect(&req, NULL, NULL)); /* consumes it */
	CHECK(!req);
	INVAL(rpma_conn_req_connect(&req, NULL, &conn));
	CHECK_EQ(rpma_conn_req_new(peer, RP_ADDR, RP_PORT, NULL, &req), 0);
	INVAL(rpma_conn_req_connect(&req, &empty, &conn));
	CHECK(!req);
	CHECK_EQ(rpma_conn_req_new(peer, RP_ADDR, RP_PORT, NULL, &req), 0);
	CHECK_EQ(rpma_conn_req_connect(&req, &pdata, &conn), RPMA_E_PROVIDER); /* 56 at most */
	CHECK(!req && !conn);
	conn = rp_call(peer, NULL, NULL); /* nobody listens */
	rp_expect(conn, RPMA_CONN_REJECTED);
	CHECK_EQ(rpma_conn_delete(&conn), 0);
}

/* ---- connections ---- */

static void copies(struct rpma_conn *conn, struct rpma_mr_local *mr, struct rpma_mr_remote *rmr)
{
	const int always = RPMA_F_COMPLETION_ALWAYS;
	/* A range has a NULL region, or begins or ends outside. */
	static const struct {
		bool local, remote;
		size_t local_offset, remote_offset, len;
	} bad[] = {
		{false, true, 0, 0, 0},
		{true, false, 0, 0, 0},
		{false, false, 1, 0, 0},
		{false, false, 0, 1, 0},
		{false, false, 0, 0, 1},
		{true, true, 1, 0, LEN},
		{true, true, 0, 1, LEN},
		{true, true, LEN + 1, 0, 0},
		{true, true, 0, LEN + 1, 0},
		{true, true, SIZE_MAX, 0, 2},
		{true, true, 0, SIZE_MAX, 2},
		{true, true, 0, 0, (size_t)UINT32_MAX + 9},
	};

	check_case("operations");
	INVAL(rpma_read(NULL, mr, 0, rmr, 0, 8, always, NULL));
	INVAL(rpma_read(conn, mr, 0, rmr, 0, 8, 0, NULL));
	INVAL(rpma_write(NULL, rmr, 0, mr, 0, 8, always, NULL));
	INVAL(rpma_write(conn, rmr, 0, mr, 0, 8, 0, NULL));
	INVAL(rpma_write_with_imm(NULL, rmr, 0, mr, 0, 8, always, 1, NULL));
	INVAL(rpma_write_with_imm(conn, rmr, 0, mr, 0, 8, 0, 1, NULL));
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct rpma_mr_local *l = bad[i].local ? mr : NULL;
		struct rpma_mr_remote *r = bad[i].remote ? rmr : NULL;
		size_t lo = bad[i].local_offset, ro = bad[i].remote_offset, len = bad[i].len;

		check_case("bad range %u", i);
		INVAL(rpma_read(conn, l, lo, r, ro, len, always, NULL));
		INVAL(rpma_write(conn, r, ro, l, lo, len, always, NULL));
		INVAL(rpma_write_with_imm(conn, r, ro, l, lo, len, always, 1, NULL));
	}
}

static void operations(struct rpma_conn *conn, struct rpma_mr_local *mr, struct rpma_mr_remote *rmr)
{
	const int always = RPMA_F_COMPLETION_ALWAYS, vis = RPMA_FLUSH_TYPE_VISIBILITY;

	copies(conn, mr, rmr);
	check_case("other operations");
	INVAL(rpma_atomic_write(NULL, rmr, 0, buf, always, NULL));
	INVAL(rpma_atomic_write(conn, NULL, 0, buf, always, NULL));
	INVAL(rpma_atomic_write(conn, rmr, 0, NULL, always, NULL));
	INVAL(rpma_atomic_write(conn, rmr, 0, buf, 0, NULL));
	INVAL(rpma_atomic_write(conn, rmr, 4, buf, always, NULL));
	INVAL(rpma_atomic_write(conn, rmr, LEN, buf, always, NULL));
	INVAL(rpma_write_atomic(NULL, rmr, 0, mr, 0, always, NULL));
	INVAL(rpma_write_atomic(conn, NULL, 0, mr, 0, always, NULL));
	INVAL(rpma_write_atomic(conn, rmr, 0, NULL, 0, always, NULL));
	INVAL(rpma_write_atomic(conn, rmr, 0, mr, 0, 0, NULL));
	INVAL(rpma_write_atomic(conn, rmr, 3, mr, 0, always, NULL));
	INVAL(rpma_write_atomic(conn, rmr, 0, mr, LEN - 7, always, NULL));
	INVAL(rpma_flush(NULL, rmr, 0, 8, vis, always, NULL));
	INVAL(rpma_flush(conn, NULL, 0, 8, vis, always, NULL));
	INVAL(rpma_flush(conn, rmr, 0, 8, (enum rpma_flush_type)2, always, NULL));
	INVAL(rpma_flush(conn, rmr, 0, 8, vis, 0, NULL));
	INVAL(rpma_flush(conn, rmr, 1, LEN, vis, always, NULL));
	INVAL(rpma_send(NULL, mr, 0, 8, always, NULL));
	INVAL(rpma_send(conn, mr, 0, 8, 0, NULL));
	INVAL(rpma_send(conn, NULL, 0, 8, always, NULL));
	INVAL(rpma_send(conn, NULL, 8, 0, always, NULL));
	INVAL(rpma_send(conn, mr, 1, LEN, always, NULL));
	INVAL(rpma_send_with_imm(NULL, mr, 0, 8, always, 1, NULL));
	INVAL(rpma_send_with_imm(conn, mr, 0, 8, 0, 1, NULL));
	INVAL(rpma_send_with_imm(conn, NULL, 0, 8, always, 1, NULL));
	INVAL(rpma_recv(NULL, mr, 0, 8, NULL));
	INVAL(rpma_recv(conn, NULL, 0, 8, NULL));
	INVAL(rpma_recv(conn, NULL, 8, 0, NULL));
	INVAL(rpma_recv(conn, mr, LEN, 1, NULL));
}

static void flush_usage(struct rpma_peer *peer, struct rpma_conn *conn)
{
	const int always = RPMA_F_COMPLETION_ALWAYS;
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	struct rpma_peer_cfg *cfg;

	check_case("usage of flushed regions");
	CHECK_EQ(rpma_peer_cfg_new(&cfg), 0);
	INVAL(rpma_conn_apply_remote_peer_cfg(NULL, cfg));
	INVAL(rpma_conn_apply_remote_peer_cfg(conn, NULL));
	CHECK_EQ(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true), 0);
	CHECK_EQ(rpma_conn_apply_remote_peer_cfg(conn, cfg), 0);
	CHECK_EQ(rpma_mr_reg(peer, buf, LEN, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, &mr), 0);
	remote = rp_remote(mr);
	CHECK_EQ(rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, always, NULL),
		RPMA_E_NOSUPP);
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
	CHECK_EQ(rpma_mr_reg(peer, buf, LEN, RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, &mr), 0);
	remote = rp_remote(mr);
	CHECK_EQ(rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, always, NULL),
		RPMA_E_NOSUPP);
	CHECK_EQ(rpma_peer_cfg_set_direct_write_to_pmem(cfg, false), 0);
	CHECK_EQ(rpma_conn_apply_remote_peer_cfg(conn, cfg), 0);
	CHECK_EQ(rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, always, NULL),
		RPMA_E_NOSUPP);
	CHECK_EQ(rpma_peer_cfg_delete(&cfg), 0);
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
}

static void connection_calls(struct rpma_conn *conn)
{
	struct rpma_conn_private_data pdata = {buf, 1};
	enum rpma_conn_event event;
	struct rpma_conn *none = NULL;
	struct rpma_cq *cq;
	uint32_t qpn = 0;
	bool is_rcq;
	int fd;

	check_case("connections");
	INVAL(rpma_conn_get_event_fd(NULL, &fd));
	INVAL(rpma_conn_get_event_fd(conn, NULL));
	INVAL(rpma_conn_next_event(NULL, &event));
	INVAL(rpma_conn_next_event(conn, NULL));
	CHECK_EQ(rpma_conn_get_event_fd(conn, &fd), 0);
	CHECK_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
	CHECK_EQ(rpma_conn_next_event(conn, &event), RPMA_E_NO_EVENT);
	INVAL(rpma_conn_get_private_data(NULL, &pdata));
	INVAL(rpma_conn_get_private_data(conn, NULL));
	INVAL(rpma_conn_disconnect(NULL));
	INVAL(rpma_conn_delete(NULL));
	CHECK_EQ(rpma_conn_delete(&none), 0);
	INVAL(rpma_conn_get_qp_num(NULL, &qpn));
	INVAL(rpma_conn_get_qp_num(conn, NULL));
	CHECK_EQ(rpma_conn_get_qp_num(conn, &qpn), 0);
	CHECK(qpn);
	INVAL(rpma_conn_get_cq(NULL, &cq));
	INVAL(rpma_conn_get_cq(conn, NULL));
	INVAL(rpma_conn_get_rcq(NULL, &cq));
	INVAL(rpma_conn_get_rcq(conn, NULL));
	CHECK_EQ(rpma_conn_get_rcq(conn, &cq), 0);
	CHECK(!cq);
	INVAL(rpma_conn_get_compl_fd(NULL, &fd));
	INVAL(rpma_conn_get_compl_fd(conn, NULL));
	CHECK_EQ(rpma_conn_get_compl_fd(conn, &fd), RPMA_E_NOT_SHARED_CHNL);
	INVAL(rpma_conn_wait(NULL, 0, &cq, &is_rcq));
	INVAL(rpma_conn_wait(conn, 0, NULL, &is_rcq));
	CHECK_EQ(rpma_conn_wait(conn, 0, &cq, &is_rcq), RPMA_E_NOT_SHARED_CHNL);
}

static void completion_calls(struct rpma_conn *conn)
{
	struct rpma_cq *cq = rp_cq(conn);
	struct rpma_completion cmpl;
	struct ibv_wc wc[2];
	int fd, n;

	check_case("completions");
	INVAL(rpma_cq_get_fd(NULL, &fd));
	INVAL(rpma_cq_get_fd(cq, NULL));
	INVAL(rpma_cq_wait(NULL));
	INVAL(rpma_cq_get_wc(NULL, 1, wc, &n));
	INVAL(rpma_cq_get_wc(cq, 0, wc, &n));
	INVAL(rpma_cq_get_wc(cq, -1, wc, &n));
	INVAL(rpma_cq_get_wc(cq, 1, NULL, &n));
	INVAL(rpma_cq_get_wc(cq, 2, wc, NULL));
	CHECK_EQ(rpma_cq_get_wc(cq, 1, wc, NULL), RPMA_E_NO_COMPLETION);
	CHECK_EQ(rpma_cq_get_fd(cq, &fd), 0);
	CHECK_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
	CHECK_EQ(rpma_cq_wait(cq), RPMA_E_NO_COMPLETION);
	CHECK_EQ(rpma_conn_completion_wait(conn), RPMA_E_NO_COMPLETION);
	CHECK_EQ(rpma_conn_completion_get(conn, &cmpl), RPMA_E_NO_COMPLETION);
	INVAL(rpma_conn_completion_wait(NULL));
	INVAL(rpma_conn_completion_get(NULL, &cmpl));
	INVAL(rpma_conn_completion_get(conn, NULL));
	INVAL(rpma_conn_get_completion_fd(NULL, &fd));
	INVAL(rpma_conn_get_completion_fd(conn, NULL));
	CHECK_EQ(rpma_conn_get_completion_fd(conn, &n), 0);
	CHECK_EQ(n, fd);
	INVAL(rpma_cq_get_completion(NULL, &cmpl));
	INVAL(rpma_cq_get_completion(cq, NULL));
	CHECK_EQ(rpma_cq_get_completion(cq, &cmpl), RPMA_E_NO_COMPLETION);
}

static void shared_channel(struct rpma_peer *peer)
{
	struct rpma_conn_cfg *cfg;
	struct rp_pair pair;
	struct rpma_cq *cq;
	int fd, own = -1;

	check_case("shared channel");
	CHECK_EQ(rpma_conn_cfg_new(&cfg), 0);
	CHECK_EQ(rpma_conn_cfg_set_compl_channel(cfg, true), 0);
	rp_pair(peer, cfg, &pair);
	cq = rp_cq(pair.active);
	CHECK_EQ(rpma_cq_wait(cq), RPMA_E_SHARED_CHANNEL);
	CHECK_EQ(rpma_cq_get_fd(cq, &own), 0);
	CHECK_EQ(rpma_conn_completion_wait(pair.active), RPMA_E_SHARED_CHANNEL);
	CHECK_EQ(rpma_conn_get_compl_fd(pair.active, &fd), 0);
	CHECK_EQ(own, fd);
	CHECK_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
	CHECK_EQ(rpma_conn_wait(pair.active, 0, &cq, NULL), RPMA_E_NO_COMPLETION);
	rp_pair_end(&pair);
	CHECK_EQ(rpma_conn_cfg_delete(&cfg), 0);
}

static void connections(struct rpma_peer *peer, struct rpma_mr_local *mr)
{
	struct rpma_mr_remote *remote = rp_remote(mr);
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rp_pair pair;
	int n;

	rp_pair(peer, NULL, &pair);
	connection_calls(pair.active);
	completion_calls(pair.active);
	operations(pair.active, mr, remote);
	flush_usage(peer, pair.active);
	check_case("full queues");
	for (n = 0; n < 1000 && !rpma_recv(pair.active, mr, 0, 8, NULL); n++)
		;
	CHECK_RANGE(n, 10, 999);
	CHECK_EQ(rpma_recv(pair.active, mr, 0, 8, NULL), RPMA_E_PROVIDER);
	rp_pair_end(&pair);

	check_case("not connected");
	CHECK_EQ(rpma_conn_req_new(peer, RP_ADDR, RP_PORT, NULL, &req), 0);
	pair.ep = rp_listen(peer);
	CHECK_EQ(rpma_conn_req_connect(&req, NULL, &conn), 0);
	CHECK_EQ(rpma_write(conn, remote, 0, mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, NULL),
		RPMA_E_PROVIDER);
	CHECK_EQ(rpma_atomic_write(conn, remote, 0, buf, RPMA_F_COMPLETION_ALWAYS, NULL),
		RPMA_E_PROVIDER);
	CHECK_EQ(rpma_conn_disconnect(conn), RPMA_E_PROVIDER);
	CHECK_EQ(rpma_conn_delete(&conn), 0);
	CHECK_EQ(rpma_ep_shutdown(&pair.ep), 0);
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
}

int main(void)
{
	const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
			  RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
			  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_SEND |
			  RPMA_MR_USAGE_RECV;
	struct rpma_mr_local *mr;
	struct rpma_peer *peer;

	/* For names that nobody has, where no server of names answers. */
	setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);
	strings();
	log_calls();
	contexts_and_peers();
	peer_cfgs();
	peer = rp_peer();
	regions(peer);
	descriptors(peer);
	conn_cfgs();
	srqs(peer);
	endpoints(peer);
	CHECK_EQ(rpma_mr_reg(peer, buf, LEN, usage, &mr), 0);
	requests(peer, mr);
	connections(peer, mr);
	shared_channel(peer);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
	return check_result();
}
