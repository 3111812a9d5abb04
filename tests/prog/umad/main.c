// SPDX-License-Identifier: BSD-3-Clause
/* umad files of weft0: runs the case named by the argument. */
#include <stdio.h>
#include <string.h>

#include "tests/prog/umad/help.h"

enum { SECONDS = 60 };

static const struct test_case *find_case(const char *name)
{
	const struct test_case *tables[] = {rule_cases, traffic_cases};

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		for (const struct test_case *c = tables[i]; c->name; c++)
			if (!strcmp(c->name, name))
				return c;
	return NULL;
}

int main(int argc, char **argv)
{
	const struct test_case *c = argc == 2 ? find_case(argv[1]) : NULL;

	if (!c) {
		fprintf(stderr, "usage: %s CASE\n", argv[0]);
		return 2;
	}
	t_start(SECONDS);
	c->run();
	return 0;
}
