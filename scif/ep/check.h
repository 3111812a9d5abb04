/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WEFT_SCIF_CHECK=1: why calls fail, in words, and what programs do wrong without an error, on the
 * log as warnings.  Costs one test of a flag where it is off.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scif_ep;
struct rma_args;

enum { CHECK_COPIES = 16 };

/* What is remembered of an endpoint; under its lock. */
struct ep_check {
	int port;        /* that scif_connect() returned, 0: none; while nothing else was called */
	unsigned said;   /* what need not be said again: bits of check.c */
	unsigned copies; /* asynchronous ones that no fence covers yet; the first few: */
	struct {
		uint64_t number;    /* of the request, as in a mark */
		uint64_t addr, len; /* memory of ours that is written, 0: the peer's */
	} copy[CHECK_COPIES];
};

bool check_on(void);

/* Says why the call that this thread is in is about to fail; the last one counts.  printf style. */
void check_why(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for no failure: nothing is left of what was said. */
void check_begin(void);
/* A public call ends with this result, a negative errno if it failed; ep may be NULL. */
void check_end(const char *call, struct scif_ep *ep, int64_t ret);

/* A copy was posted, its last request has that number; bytes are sent; a fence covers all copies
 * up to that number.  Under the endpoint's lock. */
void check_copied(struct scif_ep *ep, const struct rma_args *args, uint64_t number);
void check_sent(struct scif_ep *ep, const void *msg, size_t len);
void check_fenced(struct scif_ep *ep, uint64_t number);
