// SPDX-License-Identifier: BSD-3-Clause
/*
 * Processes and threads send each other requests of every kind, as a seed says, while all around
 * them changes, and compare memory and completions with a model.
 *
 * usage: differ BUILD [--seconds N] [--seed N] [--share auto|always|never] [--mover default|agent]
 *                     [--slice N] [--progress] [--fabrics]
 *                     [--without regions,forks,stops,weftd,kills,exits]
 *
 * Goes through all settings that are not given, a slice of time each, with another seed each time.
 * In each fourth of them, or with --fabrics in all, one process is of another fabric of this host.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "board.h"
#include "players.h"
#include "tests/storm/world.h"

enum { SLICE_S = 5 };

struct options {
	double seconds, slice;
	uint64_t seed;
	const char *share, *mover;
	bool progress, fabrics;
	uint32_t without;
	char *left_out; /* the same as a text */
};

static const char *const shares[] = {"auto", "always", "never"};
static const char *const movers[] = {"default", "agent"};

static void usage(void)
{
	fprintf(stderr, "usage: differ BUILD [--seconds N] [--seed N] [--share auto|always|never] "
			"[--mover default|agent] [--slice N] [--progress] "
			"[--fabrics] [--without regions,forks,stops,weftd,kills,exits]\n");
	exit(2);
}

static uint32_t disturbers(const char *list)
{
	static const char *const names[] = {"regions", "forks", "stops", "weftd", "kills", "exits"};
	uint32_t mask = 0;

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		mask |= strstr(list, names[i]) ? 1u << i : 0;
	return mask;
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {{"seconds", 1, NULL, 's'}, {"seed", 1, NULL, 'n'},
		{"share", 1, NULL, 'h'}, {"mover", 1, NULL, 'm'}, {"slice", 1, NULL, 'l'},
		{"progress", 0, NULL, 'p'}, {"fabrics", 0, NULL, 'f'}, {"without", 1, NULL, 'w'},
		{NULL}};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
		switch (c) {
		case 's':
			o->seconds = atof(optarg);
			break;
		case 'n':
			o->seed = strtoull(optarg, NULL, 0);
			break;
		case 'h':
			o->share = optarg;
			break;
		case 'm':
			o->mover = optarg;
			break;
		case 'l':
			o->slice = atof(optarg);
			break;
		case 'p':
			o->progress = true;
			break;
		case 'f':
			o->fabrics = true;
			break;
		case 'w':
			o->left_out = optarg;
			o->without = disturbers(optarg);
			break;
		default:
			usage();
		}
	if (optind != argc - 1)
		usage();
}

static double seconds(void)
{
	return now_ns() / 1e9;
}

static void say_failure(
	const char *self, const char *build, const struct setting *s, const struct options *o)
{
	printf("differ: %s\nrepeat it with:\n  %s %s --seed %llu --share %s --mover %s --seconds "
	       "%.0f --slice %.0f%s%s%s\n",
		board->text, self, build, (unsigned long long)s->seed, s->share, s->mover,
		10 * o->slice, o->slice, s->fabrics ? " --fabrics" : "",
		o->without ? " --without " : "", o->without ? o->left_out : "");
}

static void say_progress(const struct setting *s, double since, unsigned slices)
{
	static uint64_t requests, rounds, epochs, forks, deaths, exits, lost;

	requests += atomic_load(&board->requests);
	rounds += atomic_load(&board->rounds);
	epochs += atomic_load(&board->epochs);
	forks += atomic_load(&board->forks);
	deaths += atomic_load(&board->deaths);
	exits += atomic_load(&board->exits);
	lost += atomic_load(&board->lost);
	printf("differ: %6.0f s, slice %u (share %s, mover %s%s, seed %llu): %llu requests, %llu "
	       "rounds, %llu epochs, %llu forks, %llu deaths (%llu exits), %llu datagrams lost\n",
		seconds() - since, slices, s->share, s->mover, s->fabrics ? ", two fabrics" : "",
		(unsigned long long)s->seed, (unsigned long long)requests,
		(unsigned long long)rounds, (unsigned long long)epochs, (unsigned long long)forks,
		(unsigned long long)deaths, (unsigned long long)exits, (unsigned long long)lost);
}

/* One slice after the other; false after a difference. */
static bool go_through(const char *self, const char *build, const struct options *o)
{
	double since = seconds();
	struct setting s = {.without = o->without};

	for (unsigned i = 0; seconds() - since < o->seconds; i++) {
		double left = o->seconds - (seconds() - since);

		s.share = o->share ? o->share : shares[i % 3];
		s.mover = o->mover ? o->mover : movers[i / 3 % 2];
		s.fabrics = o->fabrics || (!o->share && i % 4 == 3);
		s.seed = o->seed + i;
		if (!players_run(&s, left < o->slice ? left : o->slice)) {
			check(false, "differ: seed %llu", (unsigned long long)s.seed);
			say_failure(self, build, &s, o);
			return false;
		}
		if (o->progress)
			say_progress(&s, since, i + 1);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options o = {.seconds = 30, .slice = SLICE_S};

	if (getrandom(&o.seed, sizeof o.seed, 0) != sizeof o.seed)
		return 99;
	o.seed %= 1000000000;
	parse(argc, argv, &o);
	world_begin(argv[optind]);
	world_up();
	board_make();
	go_through(argv[0], argv[optind], &o);
	return world_end();
}
