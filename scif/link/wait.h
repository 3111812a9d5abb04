/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for something to change at an endpoint. */
#pragma once

#include <stdint.h>

struct scif_ep;

/*
 * Gives the lock up until something changes, at most until that time (0: for ever), and takes it
 * again; looks for completions itself first for a while, from *spin on (0 at first).
 * -EINTR, -ETIMEDOUT.
 */
int ep_wait(struct scif_ep *ep, uint64_t *spin, uint64_t until);
