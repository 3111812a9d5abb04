// SPDX-License-Identifier: BSD-3-Clause
/* umad files of weft0: runs the case named by the argument. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/prog/umad/help.h"

enum { SECONDS = 60 };

static const struct test_case *find_case(const char *name)
{
	const struct test_case *tables[] = {rule_cases, traffic_cases, hand_on_cases, loss_cases,
		message_cases, issm_cases, memory_cases, pace_cases, readiness_cases};

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		for (const struct test_case *c = tables[i]; c->name; c++)
			if (!strcmp(c->name, name))
				return c;
	return NULL;
}

/* What a case executes: reads a MAD from that fd and writes it to its output. */
static int read_one(const char *fd)
{
	struct packet p;

	get(atoi(fd), &p);
	t_tell(STDOUT_FILENO, &p, sizeof p);
	return 0;
}

int main(int argc, char **argv)
{
	const struct test_case *c = argc == 2 ? find_case(argv[1]) : NULL;

	if (argc == 3 && !strcmp(argv[1], "--read"))
		return read_one(argv[2]);
	if (!c) {
		fprintf(stderr, "usage: %s CASE\n", argv[0]);
		return 2;
	}
	t_start(SECONDS);
	c->run();
	return 0;
}
