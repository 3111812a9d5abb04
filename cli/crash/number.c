// SPDX-License-Identifier: BSD-3-Clause
#include "cli/crash/number.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/common/say.h"

uint64_t crash_number(struct argp_state *state, const char *text, uint64_t max)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || !*text || *text == '-' || *end || v > max)
		cli_usage(state, "'%s' is no number from 0 to %llu", text, (unsigned long long)max);
	return v;
}

uint64_t crash_positive(struct argp_state *state, const char *text, uint64_t max)
{
	uint64_t v = crash_number(state, text, max);

	if (!v)
		cli_usage(state, "'%s' is no number from 1 to %llu", text, (unsigned long long)max);
	return v;
}
