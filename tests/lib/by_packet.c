// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/by_packet.h"

#include <stdlib.h>
#include <string.h>

bool by_packet(void)
{
	const char *wire = getenv("WEFT_WIRE");

	return wire && !strcmp(wire, "always");
}
