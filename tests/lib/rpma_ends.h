/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of librpma for test programs, over its public functions alone. */
#pragma once

#include <librpma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RP_WAIT_MS = 20000 };

/* Every test has a fabric, and so all ports, for itself. */
#define RP_ADDR "127.0.0.1"
#define RP_PORT "7400"

/*
 * From now on the device says that it lacks these capabilities (enum of device_cap_flags_ex); 0: it
 * says what it has.
 */
void rp_hide_caps(uint64_t caps);

/* What cannot be made ends the program. */
struct rpma_peer *rp_peer(void);
struct rpma_ep *rp_listen(struct rpma_peer *peer);

/* True if fd becomes readable within ms. */
bool rp_readable(int fd, int ms);

/* The next event of conn within RP_WAIT_MS; ends the program if none comes. */
enum rpma_conn_event rp_event(struct rpma_conn *conn);
/* Checks which it is. */
void rp_expect(struct rpma_conn *conn, enum rpma_conn_event want);

/* A request sent, or taken and accepted; no event is taken yet.  cfg and pdata may be NULL. */
struct rpma_conn *rp_call(struct rpma_peer *peer, const struct rpma_conn_cfg *cfg,
	const struct rpma_conn_private_data *pdata);
struct rpma_conn *rp_answer(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
	const struct rpma_conn_private_data *pdata);

/* Both ends within this process, established. */
struct rp_pair {
	struct rpma_ep *ep;
	struct rpma_conn *active, *passive;
};
void rp_pair(struct rpma_peer *peer, const struct rpma_conn_cfg *cfg, struct rp_pair *p);
void rp_pair_end(struct rp_pair *p);

/* The next completion of a queue within RP_WAIT_MS; ends the program if none comes. */
struct ibv_wc rp_wc(struct rpma_cq *cq);
struct rpma_cq *rp_cq(struct rpma_conn *conn);
/* Waits for one in the main queue and checks its context and status. */
struct ibv_wc rp_done(struct rpma_conn *conn, const void *context, enum ibv_wc_status status);

/* The peer's view of a region of ours. */
struct rpma_mr_remote *rp_remote(const struct rpma_mr_local *mr);
