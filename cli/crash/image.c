// SPDX-License-Identifier: BSD-3-Clause
/* Images as files, and the recovery check that is run on them; weft crash images. */
#include "cli/crash/image.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/common/say.h"
#include "cli/crash/number.h"
#include "cli/crash/open.h"
#include "crash/search.h"

enum { REGIONS_MAX = 10000, MSEC = 1000 };

/* ---- files ---- */

static int write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		p += n;
		len -= n;
	}
	return 0;
}

static int write_file(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = write_all(fd, data, len);
	if (close(fd) && !rc)
		rc = -errno;
	return rc;
}

static int write_region(
	const struct crash_state *s, const uint8_t *keep, unsigned i, const char *path)
{
	const struct crash_region *r = &s->regions[i];
	uint64_t *words = malloc(r->words * sizeof *words);
	int rc;

	if (!words)
		return -ENOMEM;
	crash_image(s, keep, i, words);
	rc = write_file(path, (char *)words + (r->addr - r->base), r->len);
	free(words);
	return rc;
}

int crash_write_image(const struct crash_state *s, const uint8_t *keep, const char *where)
{
	char path[PATH_MAX];
	int rc = 0;

	crash_remove_image(where);
	if (s->n_regions == 1)
		return write_region(s, keep, 0, where);
	if (mkdir(where, 0700))
		return -errno;
	for (unsigned i = 0; !rc && i < s->n_regions; i++) {
		snprintf(path, sizeof path, "%s/region-%u", where, i);
		rc = write_region(s, keep, i, path);
	}
	return rc;
}

void crash_remove_image(const char *where)
{
	char path[PATH_MAX];
	bool more = true;

	if (!unlink(where) || errno == ENOENT)
		return;
	for (unsigned i = 0; more && i < REGIONS_MAX; i++) {
		snprintf(path, sizeof path, "%s/region-%u", where, i);
		more = !unlink(path);
	}
	rmdir(where);
}

int crash_write_marks(const struct journal *j, uint64_t n, const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return -errno;
	for (uint64_t i = 0; n && i < journal_count(j); i++) {
		const struct journal_record *r = journal_at(j, i);
		const uint8_t *text;

		if (!r || r->kind != JOURNAL_MARK)
			continue;
		n--;
		text = journal_bytes(j, r);
		if (text)
			fwrite(text, 1, r->data_len, f);
		fputc('\n', f);
	}
	return fclose(f) ? -errno : 0;
}

/* ---- the recovery check ---- */

/* The command with each {} replaced, to be freed; no path of ours has a quote in it. */
static char *fill_in(const char *command, const char *where)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (const char *p = command; *p; p++) {
		if (p[0] == '{' && p[1] == '}') {
			fprintf(out, "'%s'", where);
			p++;
		} else {
			fputc(*p, out);
		}
	}
	return fclose(out) ? NULL : text;
}

/* A group of its own, with the signals of old and none of our handlers; pid, or a negative errno.
 */
static pid_t start(const char *text, const char *output, const sigset_t *old)
{
	const char *const argv[] = {"sh", "-c", text, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	pid_t pid = -1;
	int rc;

	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, old);
	posix_spawn_file_actions_init(&files);
	rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (!rc)
		rc = posix_spawn_file_actions_addopen(
			&files, 1, output, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&files, 1, 2);
	if (!rc)
		rc = posix_spawn(&pid, "/bin/sh", &files, &attr, (char **)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return rc ? -rc : pid;
}

static volatile pid_t running; /* the group of the check; 0: none */

void crash_end_check(void)
{
	if (running)
		kill(-running, SIGKILL);
}

/* Its status, or -ETIME after ending it and what it started. */
static int await(pid_t pid, unsigned seconds)
{
	int fd = pidfd_open(pid, 0), status = 0, n = 1;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (fd >= 0) {
		while ((n = poll(&p, 1, (int)seconds * MSEC)) < 0 && errno == EINTR)
			;
		close(fd);
	}
	if (n == 0)
		kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	kill(-pid, SIGKILL); /* what it left running in the background */
	if (n == 0)
		return -ETIME;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int crash_run_check(const char *command, const char *where, const char *output, unsigned seconds)
{
	char *text = fill_in(command, where);
	sigset_t all, old;
	pid_t pid;
	int rc;

	if (!text)
		return -ENOMEM;
	/* A signal that ends us finds none, or one that it knows. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	pid = start(text, output, &old);
	running = pid > 0 ? pid : 0;
	sigprocmask(SIG_SETMASK, &old, NULL);
	free(text);
	rc = pid > 0 ? await(pid, seconds) : pid;
	running = 0;
	return rc;
}

/* ---- weft crash images ---- */

enum { KEY_AT = 256, KEY_DDIO, KEY_RANGES, IMAGES_DEFAULT = 64 };

struct images {
	const char *journal, *dir;
	uint64_t at, max;
	bool has_at;
	struct crash_rules rules;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct images *o = state->input;

	switch (key) {
	case KEY_AT:
		o->at = crash_positive(state, arg, UINT32_MAX);
		o->has_at = true;
		return 0;
	case KEY_DDIO:
		o->rules.ddio = true;
		return 0;
	case KEY_RANGES:
		o->rules.ranges = true;
		return 0;
	case 'n':
		o->max = crash_positive(state, arg, CRASH_EXHAUSTIVE_MAX);
		return 0;
	case ARGP_KEY_ARG:
		if (!o->journal)
			o->journal = arg;
		else if (!o->dir)
			o->dir = arg;
		else
			cli_usage(state, "a journal and a directory are enough");
		return 0;
	case ARGP_KEY_END:
		if (!o->dir)
			cli_usage(state, "which journal, and which directory?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

struct writer {
	const char *dir;
	unsigned n;
};

static int write_one(
	void *arg, const struct crash_state *s, struct crash_point at, const uint8_t *keep)
{
	struct writer *w = arg;
	char path[PATH_MAX];

	(void)at;
	snprintf(path, sizeof path, "%s/image-%u", w->dir, w->n++);
	return crash_write_image(s, keep, path);
}

/* Is there an image in that directory already? */
static bool has_images(const char *dir)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/image-0", dir);
	return access(path, F_OK) == 0;
}

static int write_images(const struct images *o, struct journal *j)
{
	uint64_t n = journal_count(j), at = o->has_at && o->at < n ? o->at : n;
	struct crash_point p = {.record = at - 1};
	struct writer w = {.dir = o->dir};
	struct crash_search q = {.images = o->max, .check = write_one, .arg = &w};
	struct crash_state s;
	uint8_t *keep;
	int rc;

	if (o->has_at && o->at > n)
		return cli_fail("there is no record %llu, the last one is %llu",
			(unsigned long long)o->at, (unsigned long long)n);
	if (has_images(o->dir))
		return cli_fail("%s has images of another time; give an empty directory", o->dir);
	if (!at)
		return cli_fail("the journal is empty; did the program register memory?");
	rc = crash_state_at(&s, j, &o->rules, p, crash_overtakes(j, p.record));
	if (!rc && !s.n_regions)
		rc = -ENODATA;
	if (!rc)
		rc = crash_search_point(&q, &s, p, &keep);
	crash_state_free(&s);
	crash_search_end(&q);
	if (rc == -ENODATA)
		return cli_fail("there is no region yet after record %llu; choose a later one",
			(unsigned long long)at);
	if (rc)
		return cli_fail("cannot write images to %s: %s; give an empty directory with room",
			o->dir, strerror(-rc));
	printf("%u image%s%s\n", w.n, w.n == 1 ? "" : "s",
		q.sampled ? ", of more that are possible (-n)" : "");
	return cli_written();
}

int crash_cmd_images(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"at", KEY_AT, "N", 0, "after record N (default: the last one)", 0},
		{"images", 'n', "N", 0, "write N at most (default: 64)", 0},
		{"ddio", KEY_DDIO, NULL, 0, "data of peers goes to a cache", 0},
		{"flush-ranges", KEY_RANGES, NULL, 0,
			"where rpma_flush() is a READ, its range counts, as of a FLUSH", 0},
		{0}};
	static const struct argp argp = {.options = options,
		.parser = parse,
		.args_doc = "JOURNAL DIRECTORY",
		.doc = "Writes what may be left of the memory after a crash to DIRECTORY/image-N."};
	struct images o = {.max = IMAGES_DEFAULT};
	struct journal j;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	rc = crash_open(&j, o.journal, false);
	if (rc)
		return rc;
	rc = write_images(&o, &j);
	journal_close(&j);
	return rc;
}
