/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that plays one end of a link until the test ends. */
#pragma once

#include <stdint.h>

struct link_part {
	unsigned link, side;
	unsigned peer; /* the player at the other end */
	uint64_t seed;
	uint32_t life; /* of the link */
};

/* Opens the device, or ends the process. */
struct ibv_context *link_device(void);

/* For pthread_create(); arg: a struct link_part. */
void *link_main(void *arg);
