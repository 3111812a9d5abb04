// SPDX-License-Identifier: BSD-3-Clause
/* weft crash check: runs the recovery check on images, and tells what breaks it. */
#include "cli/crash/check.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/common/launch.h"
#include "cli/common/say.h"
#include "cli/crash/image.h"
#include "cli/crash/number.h"
#include "cli/crash/open.h"
#include "cli/crash/show.h"
#include "crash/search.h"

enum {
	KEY_RECOVER = 'r',
	KEY_AT = 256,
	KEY_DDIO,
	KEY_RANGES,
	KEY_ALL,
	KEY_RANDOM,
	KEY_SEED,
	KEY_TIMEOUT,
	KEY_KEEP,
	KEY_JSON,
	KEY_EVERYWHERE,
	IMAGES_DEFAULT = 64,
	SECONDS_DEFAULT = 10,
	SECONDS_MAX = 3600,
	NOT_RUNNABLE = 126, /* and one more: the shell's */
	RANGES_MAX = 4,
	LINE_MAX_BYTES = 200,
	OUTPUT_LINES = 40,
	EITHER_MAX = 8,  /* records that are named */
	STORES_MAX = 16, /* calls by which the owner made something durable, that are tried */
	WORD_BYTES = 8,
};

#define PROGRESS_NS (3 * NSEC_PER_SEC)

struct check {
	const char *journal, *command, *keep_path;
	uint64_t at, images, random, seed;
	unsigned seconds;
	bool exhaustive, everywhere, has_images, json;
	struct crash_rules rules;
	/* at work */
	struct journal j;
	struct crash_search q;
	char dir[PATH_MAX], image[PATH_MAX + 16], output[PATH_MAX + 16], marks[PATH_MAX + 16];
	uint64_t marks_written;
	uint64_t told_ns;
	int status; /* of the command, when it last failed */
};

/* Lost words of one record, and of the others how many have to be kept. */
struct loss {
	uint64_t lost, words, kept;
	unsigned n;
	struct {
		uint64_t addr, end;
	} range[RANGES_MAX + 1];
};

/* What was found. */
struct finding {
	struct crash_state *s;
	struct crash_point at;
	bool late;
	uint8_t *keep;
	uint8_t *lost;       /* for each pending word, whether it is */
	bool stored;         /* nothing is lost but what the owner stored and ... */
	uint64_t made_at;    /* ... made durable only in this record, */
	struct loss by_then; /* which is what it was */
};

static void check_options(const struct check *c, struct argp_state *state)
{
	if (!c->journal || !c->command || !*c->command)
		cli_usage(state, "which journal, and which command (--recover)?");
	else if (c->exhaustive && (c->has_images || c->random))
		cli_usage(state, "--all, or some (--images, --random)?");
	else if (c->at && (c->everywhere || c->random))
		cli_usage(state, "after one record (--at), or after many?");
	else if (!strstr(c->command, "{}"))
		fputs("weft: the recovery check does not look at the image: there is no {} in it\n",
			stderr);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct check *c = state->input;

	switch (key) {
	case KEY_RECOVER:
		c->command = arg;
		return 0;
	case KEY_AT:
		c->at = crash_positive(state, arg, UINT32_MAX);
		return 0;
	case KEY_DDIO:
		c->rules.ddio = true;
		return 0;
	case KEY_RANGES:
		c->rules.ranges = true;
		return 0;
	case KEY_ALL:
		c->exhaustive = true;
		return 0;
	case KEY_EVERYWHERE:
		c->everywhere = true;
		return 0;
	case KEY_RANDOM:
		c->random = crash_positive(state, arg, UINT32_MAX);
		return 0;
	case KEY_SEED:
		c->seed = crash_number(state, arg, UINT64_MAX);
		return 0;
	case KEY_TIMEOUT:
		c->seconds = crash_positive(state, arg, SECONDS_MAX);
		return 0;
	case KEY_KEEP:
		c->keep_path = arg;
		return 0;
	case KEY_JSON:
		c->json = true;
		return 0;
	case 'n':
		c->images = crash_positive(state, arg, CRASH_EXHAUSTIVE_MAX);
		c->has_images = true;
		return 0;
	case ARGP_KEY_ARG:
		if (c->journal)
			cli_usage(state, "one journal is enough");
		c->journal = arg;
		return 0;
	case ARGP_KEY_END:
		check_options(c, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- where it works ---- */

static int make_dir(struct check *c)
{
	const char *tmp = secure_getenv("TMPDIR");

	if (!tmp || !*tmp || strchr(tmp, '\''))
		tmp = "/tmp";
	if (snprintf(c->dir, sizeof c->dir, "%s/weft-crash-XXXXXX", tmp) >= (int)sizeof c->dir ||
		!mkdtemp(c->dir))
		return cli_fail("cannot make a directory in %s: %s; set TMPDIR to one with room",
			tmp, strerror(errno));
	snprintf(c->image, sizeof c->image, "%s/image", c->dir);
	snprintf(c->output, sizeof c->output, "%s/output", c->dir);
	snprintf(c->marks, sizeof c->marks, "%s/marks", c->dir);
	c->marks_written = UINT64_MAX;
	setenv("WEFT_CRASH_MARKS", c->marks, 1);
	return 0;
}

static void remove_dir(const struct check *c)
{
	crash_remove_image(c->image);
	unlink(c->output);
	unlink(c->marks);
	rmdir(c->dir);
}

/* Ended by a signal, it leaves nothing behind: no directory, no check that runs on. */
static const struct check *volatile ending;

static void ended(int sig)
{
	const struct check *c = ending;

	crash_end_check();
	if (c)
		remove_dir(c);
	_exit(128 + sig);
}

static void clean_up_on_signals(const struct check *c)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	struct sigaction sa = {.sa_handler = ended};

	ending = c;
	for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &sa, NULL);
}

/* The check may be a program that is linked with our libraries: it finds them, as by weft run. */
static int become_launcher(void)
{
	const struct launch launch = {.no_paths = true};
	struct launch_var vars[LAUNCH_VARS];
	int rc = launch_vars(&launch, vars);

	for (int i = 0; !rc && i < LAUNCH_VARS; i++)
		if (vars[i].value && setenv(vars[i].name, vars[i].value, 1))
			rc = cli_fail("out of memory");
	if (!rc)
		launch_free(vars);
	return rc;
}

static void progress(struct check *c, struct crash_point at)
{
	uint64_t now = clock_ns();

	if (now - c->told_ns < PROGRESS_NS)
		return;
	c->told_ns = now;
	fprintf(stderr, "weft: record %llu of %llu, %llu images checked\n",
		(unsigned long long)at.record + 1, (unsigned long long)journal_count(&c->j),
		(unsigned long long)c->q.checked);
}

/* ---- one image ---- */

static int check_image(
	void *arg, const struct crash_state *s, struct crash_point at, const uint8_t *keep)
{
	struct check *c = arg;
	int rc = crash_write_image(s, keep, c->image);

	progress(c, at);
	if (!rc && c->marks_written != s->marks) {
		rc = crash_write_marks(&c->j, s->marks, c->marks);
		c->marks_written = s->marks;
	}
	if (rc)
		return rc;
	rc = crash_run_check(c->command, c->image, c->output, c->seconds);
	if (rc == NOT_RUNNABLE || rc == NOT_RUNNABLE + 1)
		return -ENOEXEC;
	if (rc < 0 && rc != -ETIME)
		return rc;
	c->status = rc ? rc : c->status;
	return !!rc;
}

/* ---- the report ---- */

static void add_range(struct loss *l, uint64_t addr)
{
	if (l->n && l->range[l->n - 1].end == addr) {
		l->range[l->n - 1].end += WORD_BYTES;
	} else if (l->n <= RANGES_MAX) {
		l->range[l->n].addr = addr;
		l->range[l->n++].end = addr + WORD_BYTES;
	}
}

static void add_lost(struct loss *l, const struct crash_state *s, uint64_t i)
{
	const struct crash_pending *p = &s->pending[i];

	l->lost++;
	add_range(l, s->regions[p->region].base + p->word * WORD_BYTES);
}

/* Calls fn for each record that has words pending, in order. */
static void each_pending(const struct finding *f,
	void (*fn)(uint64_t record, const struct loss *l, void *arg), void *arg)
{
	const struct crash_pending *p = f->s->pending;
	uint64_t n = f->s->n_pending;

	for (uint64_t i = 0; i < n;) {
		uint64_t record = p[i].record;
		struct loss l = {0};

		for (; i < n && p[i].record == record; i++) {
			l.words++;
			l.kept += f->keep[i] == CRASH_KEPT;
			if (f->lost[i])
				add_lost(&l, f->s, i);
		}
		fn(record, &l, arg);
	}
}

struct print {
	const struct check *c;
	const struct finding *f;
	enum { LOST, KEPT, EITHER } which;
	unsigned n;
};

static void print_words(const struct crash_state *s, const struct loss *l)
{
	const char *comma = "";

	printf("\n      %llu of %llu words:", (unsigned long long)l->lost,
		(unsigned long long)l->words);
	for (unsigned i = 0; i < l->n && i < RANGES_MAX; i++) {
		uint64_t base = 0;

		for (unsigned k = 0; k < s->n_regions; k++)
			if (l->range[i].addr >= s->regions[k].base &&
				l->range[i].addr <
					s->regions[k].base + s->regions[k].words * WORD_BYTES)
				base = s->regions[k].addr;
		printf("%s +%#llx..+%#llx", comma, (unsigned long long)(l->range[i].addr - base),
			(unsigned long long)(l->range[i].end - base - 1));
		comma = ",";
	}
	printf("%s", l->n > RANGES_MAX ? ", ..." : "");
}

static void print_record(uint64_t record, const struct loss *l, void *arg)
{
	struct print *p = arg;

	if (p->which != (l->lost          ? LOST
				: l->kept ? KEPT
					  : EITHER) ||
		(p->which == EITHER && p->n++ >= EITHER_MAX))
		return;
	printf("  #%llu ", (unsigned long long)record + 1);
	crash_describe(stdout, p->f->s, journal_at(&p->c->j, record));
	if (l->lost && l->lost < l->words)
		print_words(p->f->s, l);
	putchar('\n');
	p->n += p->which != EITHER;
}

/* How many there were. */
static unsigned print_records(const struct check *c, const struct finding *f, int which)
{
	struct print p = {.c = c, .f = f, .which = which};

	each_pending(f, print_record, &p);
	return p.n;
}

/* What nobody knew of at that moment, but the owner. */
static void print_stored(const struct check *c, const struct finding *f)
{
	printf("  what its owner stored there before #%llu ", (unsigned long long)f->made_at + 1);
	crash_describe(stdout, f->s, journal_at(&c->j, f->made_at));
	print_words(f->s, &f->by_then);
	putchar('\n');
}

static void print_output(const struct check *c)
{
	FILE *out = fopen(c->output, "re");
	char line[LINE_MAX_BYTES], text[4 * LINE_MAX_BYTES];
	unsigned n = 0;

	if (!out)
		return;
	for (; n < OUTPUT_LINES && fgets(line, sizeof line, out); n++) {
		if (!n)
			puts("The recovery check says:");
		for (char *tab = line; (tab = strchr(tab, '\t'));)
			*tab = ' ';
		text_escape(text, sizeof text, line, strcspn(line, "\n"));
		printf("  | %s\n", text);
	}
	if (n == OUTPUT_LINES && fgetc(out) != EOF)
		puts("  | ... and more");
	fclose(out);
}

static bool has_either(const struct finding *f)
{
	return f->s->n_pending && memchr(f->keep, CRASH_EITHER, f->s->n_pending);
}

static const char *how_it_failed(const struct check *c, char *text, size_t size)
{
	if (c->status == -ETIME)
		snprintf(text, size, "it did not end within %u s", c->seconds);
	else if (c->status > 128)
		snprintf(text, size, "signal %d", c->status - 128);
	else
		snprintf(text, size, "exit %d", c->status);
	return text;
}

static void report(const struct check *c, const struct finding *f)
{
	char how[64], path[PATH_MAX];
	unsigned n;

	printf("A power failure %s record %llu breaks it (%s).\n",
		f->at.during ? "during" : "after", (unsigned long long)f->at.record + 1,
		how_it_failed(c, how, sizeof how));
	puts("Lost:");
	if (f->stored)
		print_stored(c, f);
	else if (!print_records(c, f, LOST))
		puts("  nothing");
	puts("Kept, though nothing had made it durable:");
	if (!print_records(c, f, KEPT))
		puts("  nothing");
	if (has_either(f)) {
		puts("Kept or lost, it breaks all the same:");
		n = print_records(c, f, EITHER);
		if (n > EITHER_MAX)
			printf("  ... and %u more\n", n - EITHER_MAX);
	}
	if (f->late)
		puts("The last request is not fenced: it may overtake the READ or FLUSH before "
		     "it.");
	if (!f->s->n_pending && !f->stored)
		puts("It fails where nothing is lost and all is durable: is the check itself "
		     "right?");
	print_output(c);
	if (c->keep_path) {
		text_escape(path, sizeof path, c->keep_path, strlen(c->keep_path));
		printf("The image is in %s.\n", path);
	}
}

struct json_lists {
	const struct check *c;
	const struct finding *f;
	json_t *lost, *kept, *either;
};

static void add_json(uint64_t record, const struct loss *l, void *arg)
{
	struct json_lists *lists = arg;
	json_t *ranges = json_array();
	json_t *o = crash_describe_json(lists->f->s, journal_at(&lists->c->j, record), record + 1);

	for (unsigned i = 0; i < l->n && i < RANGES_MAX; i++)
		json_array_append_new(ranges,
			json_pack("{sI sI}", "address", (json_int_t)l->range[i].addr, "length",
				(json_int_t)(l->range[i].end - l->range[i].addr)));
	json_object_set_new(o, "words", json_integer((json_int_t)l->words));
	json_object_set_new(o, "lost_words", json_integer((json_int_t)l->lost));
	json_object_set_new(o, "lost_ranges", ranges);
	json_array_append_new(l->lost ? lists->lost : l->kept ? lists->kept : lists->either, o);
}

static int report_json(const struct check *c, const struct finding *f)
{
	json_t *o = json_pack("{sb sI sI sb sb}", "broken", !!f, "points", (json_int_t)c->q.points,
		"images", (json_int_t)c->q.checked, "sampled", c->q.sampled, "ended_early",
		!!(atomic_load_explicit(&c->j.head->flags, memory_order_relaxed) & JOURNAL_FULL));
	struct json_lists lists = {
		.c = c, .f = f, .lost = json_array(), .kept = json_array(), .either = json_array()};

	if (f) {
		each_pending(f, add_json, &lists);
		if (f->stored)
			add_json(f->made_at, &f->by_then, &lists);
		json_object_set_new(o, "record", json_integer((json_int_t)f->at.record + 1));
		json_object_set_new(o, "during", json_boolean(f->at.during));
		json_object_set_new(o, "overtakes", json_boolean(f->late));
		json_object_set_new(o, "status", json_integer(c->status));
		json_object_set(o, "lost", lists.lost);
		json_object_set(o, "kept", lists.kept);
		json_object_set(o, "either", lists.either);
	}
	json_decref(lists.lost);
	json_decref(lists.kept);
	json_decref(lists.either);
	json_dumpf(o, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(o);
	return cli_written();
}

/* ---- what the owner itself has stored ---- */

/* Is the image good if the owner's stores up to that one are there, too? */
static int cured_by(struct check *c, struct finding *f, const struct crash_state *more)
{
	uint8_t *keep = malloc(more->n_pending + 1);
	int rc;

	if (!keep)
		return -ENOMEM;
	memset(keep, true, more->n_pending);
	rc = check_image(c, more, f->at, keep);
	free(keep);
	return rc < 0 ? rc : !rc;
}

/*
 * It breaks whatever is kept of what peers wrote.  If it would not, had the owner made durable
 * before what it made durable later, that is what is lost.
 */
static int find_stores(struct check *c, struct finding *f)
{
	struct crash_point next = f->at;
	struct crash_state more;
	int status = c->status, cured = 0;
	int rc = crash_state_at(&more, &c->j, &c->rules, f->at, f->late);

	for (unsigned i = 0; !rc && !cured && i < STORES_MAX; i++) {
		uint64_t known = more.n_pending;

		rc = crash_state_foresee(&more, &c->j, &c->rules, &next);
		if (!rc)
			rc = (cured = cured_by(c, f, &more)) < 0 ? cured : 0;
		if (cured <= 0)
			continue;
		f->by_then = (struct loss){.words = more.n_pending - known};
		while (known < more.n_pending)
			add_lost(&f->by_then, &more, known++);
		f->stored = true;
		f->made_at = next.record;
	}
	c->status = status;
	crash_state_free(&more);
	return rc == -ENOENT ? 0 : rc;
}

/* Completes what is known of it. */
static int explain(struct check *c, struct finding *f)
{
	crash_find_lost(f->s, f->keep, f->lost);
	return memchr(f->lost, true, f->s->n_pending + 1) ? 0 : find_stores(c, f);
}

/* The image on which it broke, once more, as the check may have changed it. */
static int show_finding(struct check *c, struct finding *f)
{
	int rc = explain(c, f);

	rc = rc ? rc : check_image(c, f->s, f->at, f->keep);
	if (rc == 0) {
		fputs("weft: the recovery check failed on this image once, and not again; is it "
		      "deterministic?\n",
			stderr);
	} else if (rc < 0) {
		return rc;
	}
	if (c->keep_path) {
		rc = crash_write_image(f->s, f->keep, c->keep_path);
		if (rc)
			return cli_fail("cannot write %s: %s; choose another place", c->keep_path,
				strerror(-rc));
	}
	if (c->json)
		report_json(c, f);
	else
		report(c, f);
	return EXIT_FAILED;
}

/* ---- all points ---- */

/* s is the state at this point; 1: it breaks there, and has been told of. */
static int check_point(struct check *c, struct crash_state *s, struct crash_point at)
{
	struct finding f = {.s = s, .at = at};
	struct crash_state late;
	int rc;

	f.late = !at.during && crash_overtakes(&c->j, at.record);
	if (f.late) {
		rc = crash_state_at(&late, &c->j, &c->rules, at, true);
		f.s = &late;
		if (rc) {
			crash_state_free(&late);
			return rc;
		}
	}
	rc = crash_search_point(&c->q, f.s, at, &f.keep);
	if (rc == 1) {
		f.lost = calloc(1, f.s->n_pending + 1);
		rc = f.lost ? show_finding(c, &f) : -ENOMEM;
		free(f.lost);
		free(f.keep);
	}
	if (f.late)
		crash_state_free(&late);
	return rc;
}

/* How often each of n points is to be looked at, drawn at random; to be freed. */
static uint32_t *draw_points(const struct check *c, uint64_t n)
{
	uint32_t *times = calloc(n + 1, sizeof *times);
	struct drand48_data state;
	double v;

	srand48_r((long)c->seed, &state);
	for (uint64_t i = 0; times && n && i < c->random; i++) {
		drand48_r(&state, &v);
		times[(uint64_t)(v * (double)n)]++;
	}
	return times;
}

/*
 * Goes through all points; times: how often to look at each that matters (NULL: as wanted);
 * count: only counts them.
 */
static int walk(struct check *c, const uint32_t *times, uint64_t *count)
{
	uint64_t n = journal_count(&c->j), only = c->at;
	struct crash_point p = crash_point_first(&c->j);
	struct crash_state s;
	bool matters;
	int rc = 0;

	if (atomic_load_explicit(&c->j.head->flags, memory_order_relaxed) & JOURNAL_STOPPED &&
		!only && !c->everywhere && !c->random)
		only = n;
	crash_state_init(&s);
	for (; !rc && p.record < n; p = crash_point_next(&c->j, p)) {
		rc = crash_state_step(&s, &c->j, &c->rules, p, &matters);
		if (rc || !s.n_regions || (only ? p.record + 1 != only : !matters))
			continue;
		++*count;
		if (times)
			c->q.images = times[*count - 1];
		if (c->q.check && c->q.images)
			rc = check_point(c, &s, p);
	}
	crash_state_free(&s);
	return rc;
}

static int search(struct check *c)
{
	uint64_t count = 0;
	uint32_t *times;
	int rc;

	if (c->at > journal_count(&c->j))
		return cli_fail("there is no record %llu, the last one is %llu",
			(unsigned long long)c->at, (unsigned long long)journal_count(&c->j));
	c->q = (struct crash_search){.images = c->images,
		.exhaustive = c->exhaustive,
		.random = c->random > 0,
		.seed = c->seed,
		.arg = c};
	if (!c->random) {
		c->q.check = check_image;
		return walk(c, NULL, &count);
	}
	rc = walk(c, NULL, &count);
	times = rc ? NULL : draw_points(c, count);
	if (!times)
		return -ENOMEM;
	count = 0;
	c->q.check = check_image;
	rc = walk(c, times, &count);
	free(times);
	return rc;
}

static int finish(struct check *c, int rc)
{
	bool full = atomic_load_explicit(&c->j.head->flags, memory_order_relaxed) & JOURNAL_FULL;

	if (full)
		fputs("weft: the journal is full, and ends before the program did; give it more "
		      "(weft crash run --size)\n",
			stderr);
	if (rc == -ENOEXEC)
		return cli_fail("cannot run '%s'; check the command", c->command);
	if (rc == -E2BIG)
		return cli_fail(
			"a point has more than %d images; leave out --all", CRASH_EXHAUSTIVE_MAX);
	if (rc < 0)
		return cli_fail("cannot check an image: %s; is there room in %s, and did the check "
				"leave it alone?",
			strerror(-rc), c->dir);
	if (rc)
		return rc;
	if (!c->q.points)
		return cli_fail(
			"nothing to check: no memory of the program is under the simulator; "
			"see weft-crash(1) for which is");
	if (c->json)
		return report_json(c, NULL);
	printf("%llu crash point%s, %llu image%s%s: the recovery check passes\n",
		(unsigned long long)c->q.points, c->q.points == 1 ? "" : "s",
		(unsigned long long)c->q.checked, c->q.checked == 1 ? "" : "s",
		c->q.sampled ? " of more that are possible" : ", which are all");
	return cli_written();
}

int crash_cmd_check(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"recover", KEY_RECOVER, "COMMAND", 0,
			"the check: a shell command, {} is the image; exit 0: it is good", 0},
		{"at", KEY_AT, "N", 0, "only a crash after record N", 0},
		{"everywhere", KEY_EVERYWHERE, NULL, 0,
			"at all records even if the journal ends by weft crash now", 0},
		{"images", 'n', "N", 0, "look at N images of a crash point at most (default: 64)",
			0},
		{"all", KEY_ALL, NULL, 0, "look at all images", 0},
		{"random", KEY_RANDOM, "N", 0, "look at N random images of random crash points", 0},
		{"seed", KEY_SEED, "S", 0, "another choice of random images", 0},
		{"ddio", KEY_DDIO, NULL, 0,
			"data of peers goes to a cache, from which a READ does not push it", 0},
		{"flush-ranges", KEY_RANGES, NULL, 0,
			"where rpma_flush() is a READ, its range counts, as of a FLUSH", 0},
		{"timeout", KEY_TIMEOUT, "SECONDS", 0, "for one run of the check (default: 10)", 0},
		{"keep", KEY_KEEP, "FILE", 0, "leave the image that breaks it in FILE", 0},
		{"json", KEY_JSON, NULL, 0, "print JSON", 0}, {0}};
	static const struct argp argp = {.options = options,
		.parser = parse,
		.args_doc = "--recover COMMAND JOURNAL",
		.doc = "Runs a recovery check on what may be left after a crash.\vThe exit code is "
		       "1 if the check fails on some image."};
	struct check c = {.images = IMAGES_DEFAULT, .seconds = SECONDS_DEFAULT};
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	c.told_ns = clock_ns();
	rc = crash_open(&c.j, c.journal, false);
	if (rc)
		return rc;
	rc = become_launcher();
	if (!rc)
		rc = make_dir(&c);
	if (!rc) {
		clean_up_on_signals(&c);
		rc = finish(&c, search(&c));
		ending = NULL;
		remove_dir(&c);
	}
	crash_search_end(&c.q);
	journal_close(&c.j);
	return rc;
}
