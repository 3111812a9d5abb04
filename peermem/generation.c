// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/generation.h"

#include <errno.h>
#include <stddef.h>

static const struct peer_generation rows[] = {
	{
		.letter = 'W',
		.name = "Weft",
		.peers_first = true,
		.table_at_pin = true,
		.extended = true,
		.first_context = 1,
	},
	{
		.letter = 'A',
		.name = "MLNX_OFED 2.1 to 3.4",
		.peers_first = true,
		.acquire_is_one = true,
		.page_size_needed = true,
		.page_size_first = true,
		.table_at_pin = true,
		.force_always = true,
		.release_inside = true,
		.host_pages = true,
		.bytes_by_entry = true,
		.mark_below = PEER_PINNED,
		.first_context = 1,
	},
	{
		.letter = 'B',
		.name = "MLNX_OFED 4.0",
		.peers_first = true,
		.page_size_needed = true,
		.page_size_first = true,
		.table_at_pin = true,
		.release_inside = true,
		.bytes_by_entry = true,
		.mark_below = PEER_LIVE,
		.first_context = 1,
	},
	{
		.letter = 'C',
		.name = "MLNX_OFED 4.1 to 5.0",
		.peers_first = true, /* until 4.5 */
		.page_size_needed = true,
		.page_size_first = true,
		.table_at_pin = true,
		.release_inside = true,
		.bytes_by_entry = true,
		.mark_below = PEER_LIVE,
		.first_context = 1,
	},
	{
		.letter = 'D',
		.name = "MLNX_OFED 5.1 to 5.3",
		.page_size_first = true,
		.first_context = 0,
		.no_context = UINT32_MAX,
	},
	{
		.letter = 'E',
		.name = "MLNX_OFED 5.4 and DOCA",
		.extended = true,
		.first_context = 0,
		.no_context = UINT32_MAX,
	},
};

static const struct peer_generation *in_force = rows;

const struct peer_generation *peer_generation(void)
{
	return in_force;
}

int peer_generation_use(char letter)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].letter == letter) {
			in_force = &rows[i];
			return 0;
		}
	}
	return -EINVAL;
}
