// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/qp_timers.h"

#include "base/clock.h"

enum { ACK_UNIT_NS = 4096, MIN_RETRY_NS = NSEC_PER_MSEC };

uint64_t ack_patience_ns(const struct seg_qp *q)
{
	uint64_t ns = ((uint64_t)ACK_UNIT_NS << (q->timeout & 31)) * (q->retry_cnt + 1u);

	if (!q->timeout)
		return UINT64_MAX;
	return ns < MIN_RETRY_NS ? MIN_RETRY_NS : ns;
}

uint64_t rnr_timer_ns(unsigned code)
{
	/* In units of 10 us: IBTA table of the RNR NAK timer field. */
	static const uint32_t table[32] = {65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128,
		192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768, 49152};

	return (uint64_t)table[code & 31] * 10 * NSEC_PER_USEC;
}
