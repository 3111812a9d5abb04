/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of this machine: /etc/rdma/rsocket. */
#pragma once

#include "rsock/rsock.h"

/* The defaults of this machine. */
void rs_default_options(struct rs_options *opt);

/* How long to spin before sleeping, ns: 0 on a single CPU. */
uint64_t rs_spin_ns(void);

/*
 * How many ms to sleep at once, of a timeout as for poll(2).  It has an end: only a call of ours
 * notices that weftd was started anew and has to be told of this process.
 */
int rs_sleep_ms(int wanted);
