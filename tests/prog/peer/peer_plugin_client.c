// SPDX-License-Identifier: BSD-3-Clause
/* The device as a library that WEFT_PEER_CLIENTS names: PLUGIN_NAME, answers PLUGIN_ANSWER. */
#include "tests/lib/peer_device.h"

int init_module(void);

int init_module(void)
{
	if (PLUGIN_ANSWER)
		return PLUGIN_ANSWER;
	return peer_device_open(PLUGIN_NAME, 1 << 20, 0) ? 0 : -1;
}
