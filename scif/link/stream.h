/* SPDX-License-Identifier: BSD-3-Clause */
/* scif_send() and scif_recv() without conversion of errors; fd is the one that was passed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct scif_ep;

/* How many bytes, or -errno. */
int stream_send(struct scif_ep *ep, int fd, const uint8_t *msg, int len, bool block);
int stream_recv(struct scif_ep *ep, int fd, uint8_t *msg, int len, bool block);
