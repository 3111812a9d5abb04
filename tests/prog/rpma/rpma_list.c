// SPDX-License-Identifier: BSD-3-Clause
/* rpma_write_list() and rpma_read_list(): the extension of <weft/rpma_list.h>. */
#include <infiniband/verbs.h>
#include <string.h>

#include "include/weft/rpma_list.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/rpma_ends.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 1 << 16, PART = 100, STRIDE = 512, ALWAYS = RPMA_F_COMPLETION_ALWAYS };

static uint8_t mine[LEN], theirs[LEN];
static struct rp_pair pair;
static struct rpma_mr_local *local, *served;
static struct rpma_mr_remote *remote;

static void set_up(struct rpma_peer *peer)
{
	const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
			  RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST;
	struct rpma_conn_cfg *cfg;

	CHECK_EQ(rpma_conn_cfg_new(&cfg), 0);
	CHECK_EQ(rpma_conn_cfg_set_sq_size(cfg, 2 * RPMA_LIST_MAX), 0);
	CHECK_EQ(rpma_conn_cfg_set_cq_size(cfg, 2 * RPMA_LIST_MAX), 0);
	rp_pair(peer, cfg, &pair);
	CHECK_EQ(rpma_conn_cfg_delete(&cfg), 0);
	CHECK_EQ(rpma_mr_reg(peer, mine, LEN, usage, &local), 0);
	CHECK_EQ(rpma_mr_reg(peer, theirs, LEN, usage, &served), 0);
	remote = rp_remote(served);
}

/* Ours lie close together, theirs apart. */
static void fill(struct rpma_list_part *part, size_t n)
{
	for (size_t i = 0; i < n; i++)
		part[i] = (struct rpma_list_part){.local = local,
			.local_offset = i * PART,
			.remote = remote,
			.remote_offset = i * STRIDE,
			.len = PART};
}

static bool nothing_more(void)
{
	struct ibv_wc wc;

	return rpma_cq_get_wc(rp_cq(pair.active), 1, &wc, NULL) == RPMA_E_NO_COMPLETION;
}

static void both_ways(size_t n)
{
	struct rpma_list_part part[RPMA_LIST_MAX];
	size_t posted = 0;
	char id;

	check_case("%zu parts", n);
	pattern_fill(mine, n * PART, n);
	memset(theirs, 0, LEN);
	fill(part, n);
	CHECK_EQ(rpma_write_list(pair.active, part, n, ALWAYS, &id, &posted), 0);
	CHECK_EQ(posted, n);
	rp_done(pair.active, &id, IBV_WC_SUCCESS);
	CHECK(nothing_more()); /* one for all */
	for (size_t i = 0; i < n; i++) {
		CHECK(!memcmp(theirs + i * STRIDE, mine + i * PART, PART));
		CHECK(pattern_all(theirs + i * STRIDE + PART, STRIDE - PART, 0));
	}
	memset(mine, 0, LEN);
	CHECK_EQ(rpma_read_list(pair.active, part, n, ALWAYS, &id, NULL), 0);
	rp_done(pair.active, &id, IBV_WC_SUCCESS);
	CHECK(pattern_filled(mine, n * PART, n));
	CHECK(nothing_more());
}

static void refused(void)
{
	struct rpma_list_part part[RPMA_LIST_MAX + 1];
	struct rpma_conn *c = pair.active;
	size_t posted = 7;

	check_case("refused");
	fill(part, RPMA_LIST_MAX);
	part[RPMA_LIST_MAX] = part[0];
	CHECK_EQ(rpma_write_list(NULL, part, 1, ALWAYS, NULL, &posted), RPMA_E_INVAL);
	CHECK_EQ(posted, 0);
	CHECK_EQ(rpma_write_list(c, NULL, 1, ALWAYS, NULL, NULL), RPMA_E_INVAL);
	CHECK_EQ(rpma_write_list(c, part, 0, ALWAYS, NULL, NULL), RPMA_E_INVAL);
	CHECK_EQ(rpma_write_list(c, part, RPMA_LIST_MAX + 1, ALWAYS, NULL, NULL), RPMA_E_INVAL);
	CHECK_EQ(rpma_write_list(c, part, 1, 0, NULL, NULL), RPMA_E_INVAL);
	part[2].local = NULL;
	CHECK_EQ(rpma_write_list(c, part, 3, ALWAYS, NULL, NULL), RPMA_E_INVAL);
	fill(part, RPMA_LIST_MAX);
	part[2].remote = NULL;
	CHECK_EQ(rpma_read_list(c, part, 3, ALWAYS, NULL, NULL), RPMA_E_INVAL);
	fill(part, RPMA_LIST_MAX);
	part[2].remote_offset = LEN - PART + 1;
	memset(theirs, 0, LEN);
	CHECK_EQ(rpma_write_list(c, part, 3, ALWAYS, NULL, NULL), RPMA_E_INVAL);
	part[2].remote_offset = 0;
	part[2].local_offset = LEN;
	CHECK_EQ(rpma_write_list(c, part, 3, ALWAYS, NULL, NULL), RPMA_E_INVAL);
	CHECK(nothing_more());
	CHECK(pattern_all(theirs, LEN, 0)); /* not the good ones before it either */
}

/* A part that the peer refuses completes, and the others after it are flushed. */
static void failing(void)
{
	struct rpma_list_part part[3];
	struct ibv_wc wc;
	char id;

	check_case("one fails");
	fill(part, 3);
	CHECK_EQ(rpma_mr_dereg(&served), 0);
	CHECK_EQ(rpma_write_list(pair.active, part, 3, ALWAYS, &id, NULL), 0);
	rp_done(pair.active, &id, IBV_WC_REM_ACCESS_ERR);
	for (int i = 1; i < 3; i++) {
		wc = rp_wc(rp_cq(pair.active));
		CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(wc.wr_id, (uintptr_t)&id);
	}
}

int main(void)
{
	struct rpma_peer *peer = rp_peer();

	set_up(peer);
	both_ways(1);
	both_ways(7);
	both_ways(RPMA_LIST_MAX);
	refused();
	failing();
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
	CHECK_EQ(rpma_mr_dereg(&local), 0);
	rp_pair_end(&pair);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
	return check_result();
}
