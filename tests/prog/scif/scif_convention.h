/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For programs that are built twice: for <scif.h>, and with KERNEL_CONVENTION for <linux/scif.h>.
 * Endpoints of the helpers, which know the first alone, go through epd_of(); check_answer() looks
 * at what a call gave, errno having been 0 before.
 */
#pragma once

#include <errno.h>

#include "tests/lib/check.h"

#ifdef KERNEL_CONVENTION
#include <linux/scif.h>

#include "tests/lib/scif_ends.h"

#define scif_portID      scif_port_id
#define scif_get_nodeIDs scif_get_node_ids

static inline scif_epd_t epd_of(int fd)
{
	return weft_scif_from_fd(fd);
}

static inline void check_answer(int64_t ret, int error)
{
	CHECK_EQ(errno, 0);
	if (error)
		CHECK_EQ(ret, -error);
	else
		CHECK(ret >= 0);
}
#else
#include "tests/lib/scif_ends.h"

static inline scif_epd_t epd_of(int fd)
{
	return fd;
}

static inline void check_answer(int64_t ret, int error)
{
	CHECK_EQ(errno, error);
	if (error)
		CHECK_EQ(ret, -1);
	else
		CHECK(ret >= 0);
}
#endif
