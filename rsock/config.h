/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of this machine: /etc/rdma/rsocket. */
#pragma once

#include "rsock/rsock.h"

/* The defaults of this machine. */
void rs_default_options(struct rs_options *opt);

/* How long to look before sleeping, ns: polling_time, or what WEFT_SPIN_US says (base/spin.h). */
uint64_t rs_look_ns(void);

/*
 * How many ns to sleep at most at once.  It has an end: only a call of ours notices that weftd was
 * started anew and has to be told of this process.
 */
uint64_t rs_nap_ns(void);
