/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heir's side (heir.h): calls become questions.  All return what the function of that name
 * would; -EOPNOTSUPP: nobody can be asked; -ECONNRESET: that process is gone.  They wait while it
 * is stopped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scif/ep/node.h"

struct rma_args;
struct scif_ep;

int heir_send(struct scif_ep *ep, int fd, const uint8_t *msg, int len, bool block);
int heir_recv(struct scif_ep *ep, int fd, uint8_t *msg, int len, bool block);
int heir_bind(struct scif_ep *ep, int fd, uint16_t pn);
int heir_listen(struct scif_ep *ep, int fd, int backlog);
int heir_connect(struct scif_ep *ep, int fd, struct scif_id dst, bool block);
/* The new endpoint is the asked process's too, and we are its heir. */
int heir_accept(struct scif_ep *ep, int fd, bool block, struct scif_id *peer);
/* The memory is ours: what weft_share_export() takes; other memory: -EOPNOTSUPP. */
int64_t heir_register(
	struct scif_ep *ep, int fd, void *addr, size_t len, int64_t off, int prot, int flags);
int heir_unregister(struct scif_ep *ep, int fd, int64_t off, size_t len);
/* Copies of memory that is no window go through a buffer, and are always synchronous. */
int heir_copy(struct scif_ep *ep, int fd, const struct rma_args *args);
int heir_mark(struct scif_ep *ep, int fd, int flags, int *mark);
int heir_wait(struct scif_ep *ep, int fd, int mark);
int heir_signal(struct scif_ep *ep, int fd, int64_t loff, uint64_t lval, int64_t roff,
	uint64_t rval, int flags);
/* The heir gave the endpoint up: what it lent to windows goes when they do. */
void heir_forget(struct scif_ep *ep);
