/* SPDX-License-Identifier: BSD-3-Clause */
/* The adapters of this machine. */
#pragma once

#include <infiniband/verbs.h>

/* Opens them all, if that was not done yet or there was no file descriptor left for them. */
void devices_open(void);

/* The first device that there is; NULL. */
struct ibv_context *device_first(void);

/* After a fork: none is open. */
void devices_forked(void);
