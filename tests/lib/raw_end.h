/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An end of a connection that speaks raw verbs to a face, which takes it for one of its own.  Over
 * the public librdmacm and libibverbs alone.
 */
#pragma once

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RAW_BUF = 1 << 16, RAW_RECVS = 128, RAW_RECV = 4096, RAW_PRIV = 56 };

struct raw_end {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t *buf; /* RAW_BUF bytes, which the other end may read and write */
	uint8_t priv[256];
	uint8_t priv_len; /* what the other end has answered */
	unsigned under_way;
};

/* Looks for 127.0.0.1:port; its memory and queue pair are there, with RAW_RECVS receives. */
void raw_begin(struct raw_end *r, uint16_t port);
/* Asks for the connection with that private data. */
void raw_dial(struct raw_end *r, const void *priv, uint8_t len);
/* The answer, once it is there: 1 established, -1 refused, 0 not yet; waits for up to ms. */
int raw_answer(struct raw_end *r, int ms);

/* Posts wr with n bytes of buf at off, signaled; false: the send queue is full. */
bool raw_post(struct raw_end *r, struct ibv_send_wr *wr, size_t off, uint32_t n);
/*
 * The status of the oldest request that was posted; IBV_WC_GENERAL_ERR: none was, or the other end
 * has hung up, and no answer comes.
 */
enum ibv_wc_status raw_status(struct raw_end *r);
/* raw_post() and raw_status(). */
enum ibv_wc_status raw_do(struct raw_end *r, struct ibv_send_wr *wr, size_t off, uint32_t n);

/* A message that came: its bytes, *n of them, where the next but RAW_RECVS lies; NULL: none. */
const uint8_t *raw_heard(struct raw_end *r, uint32_t *n);

/* Has the other end hung up? */
bool raw_hung_up(struct raw_end *r);

void raw_end(struct raw_end *r);
