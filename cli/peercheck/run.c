// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/peercheck/forks.h"
#include "cli/peercheck/keeper.h"
#include "cli/peercheck/patience.h"

enum { MOST_JOBS = KEEPERS, LOOK_MS = 100, TELL_AFTER_S = 3, MOST_HANGS = 4 };

struct job {
	struct keeper keeper; /* without a process: the place is free */
	size_t index;
	struct record *record;
	struct patience patience;
};

/* ---- the process of a scenario ---- */

static void quiet(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return;
	dup2(null, STDOUT_FILENO);
	if (!secure_getenv("WEFT_LOG"))
		dup2(null, STDERR_FILENO);
}

struct work {
	const struct run *run;
	const struct scenario *s;
	struct record *record;
};

static void be_scenario(void *arg)
{
	const struct work *work = arg;
	const struct scenario *s = work->s;
	struct subject_spec spec = work->run->spec;
	const char *wrong;

	quiet();
	spec.letter = s->letter;
	spec.old_freeing = s->old_freeing;
	record_use(work->record, s->kind->family);
	forks_begin();
	wrong = subject_load(&spec);
	if (wrong) {
		record_error("%s", wrong);
		_exit(0);
	}
	scenario_run(s);
	_exit(0);
}

static bool is_free(const struct job *j)
{
	return j->keeper.pid <= 0;
}

static struct record *new_record(void)
{
	void *p = mmap(NULL, sizeof(struct record), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static bool start(const struct run *run, const struct scenario *s, size_t index, struct job *j)
{
	*j = (struct job){.index = index, .record = new_record()};
	if (!j->record || !keeper_start(&j->keeper, be_scenario, &(struct work){run, s, j->record}))
		return false;
	patience_begin(&j->patience, j->keeper.pid);
	return true;
}

/* ---- its end ---- */

static void judge_hang(struct record *r, enum family family)
{
	record_use(r, family);
	r->hung = true;
	if (r->in[0])
		record_broken(18, "hang in the callback",
			"hangs: %s, called inside the client's callback, does not return", r->in);
	else
		record_seen(SEEN_HANG, NULL, "hangs: 2 s without a call");
}

static void judge_end(struct record *r, int status, const struct scenario *s)
{
	record_use(r, s->kind->family);
	if (WIFSIGNALED(status))
		record_seen(SEEN_CRASH, NULL, "ended by SIG%s", sigabbrev_np(WTERMSIG(status)));
	else if (!r->finished)
		record_seen(
			SEEN_CRASH, NULL, "ended itself, with exit code %d", WEXITSTATUS(status));
}

static enum outcome outcome_of(const struct record *r)
{
	if (r->rule)
		return OUTCOME_BROKEN;
	return r->skipped[0] ? OUTCOME_SKIPPED : OUTCOME_OK;
}

static bool is_over_time(struct job *j)
{
	const pid_t pid = atomic_load_explicit(&j->keeper.kept->pid, memory_order_relaxed);

	if (pid && pid != j->patience.pid)
		patience_begin(&j->patience, pid);
	return patience_ends(&j->patience, j->record->calls);
}

static void judge_keeper(struct record *r, enum keeper_state is, enum family family)
{
	record_use(r, family);
	record_broken(22, "keeper", "it %s the process that waits for its own",
		is == KEEPER_STOPPED ? "stops" : "kills");
}

/* True: the process has ended, and *outcome is known. */
static bool collect(struct job *j, const struct scenario *s, enum outcome *outcome)
{
	const enum keeper_state is = keeper_look(&j->keeper);
	unsigned left;
	int status;

	if (is == KEEPER_WORKS && !is_over_time(j))
		return false;
	status = keeper_end(&j->keeper, &left);
	if (is == KEEPER_WORKS)
		judge_hang(j->record, s->kind->family);
	else if (is != KEEPER_DONE)
		judge_keeper(j->record, is, s->kind->family);
	else if (!j->record->error)
		judge_end(j->record, status, s);
	if (left && !j->record->error)
		forks_judge_left(left);
	*outcome = j->record->error ? OUTCOME_ERROR : outcome_of(j->record);
	return true;
}

static struct record *take_record(struct job *j)
{
	struct record *copy = malloc(sizeof *copy);

	if (copy)
		memcpy(copy, j->record, sizeof *copy);
	munmap(j->record, sizeof *j->record);
	return copy;
}

/* ---- all of them ---- */

static void wait_for_one(const struct job *jobs, unsigned n)
{
	struct pollfd fds[MOST_JOBS];

	for (unsigned i = 0; i < n; i++)
		fds[i] = (struct pollfd){
			.fd = is_free(&jobs[i]) ? -1 : jobs[i].keeper.pidfd, .events = POLLIN};
	poll(fds, n, LOOK_MS);
}

static void tell(uint64_t begun, size_t done, size_t n)
{
	static size_t told;

	if (clock_ns() - begun < TELL_AFTER_S * NSEC_PER_SEC || done == told)
		return;
	told = done;
	fprintf(stderr, "\rweft: %zu of %zu scenarios%s", done, n, done == n ? "\n" : "");
}

static void keep(struct result *to, struct job *j, enum outcome outcome)
{
	to->outcome = outcome;
	to->rule = j->record->rule;
	to->record = take_record(j);
	if (outcome == OUTCOME_OK && to->record) {
		free(to->record);
		to->record = NULL;
	}
}

/* What is being done. */
struct progress {
	const struct run *run;
	const struct scenario *list;
	size_t n, next, done;
	struct result *result;
	unsigned stage;
	unsigned char broken[128]; /* by letter: the stage after which it is not asked for more */
	unsigned hangs;            /* of those that ran although it is not */
};

static void note_broken(struct progress *p, size_t i)
{
	unsigned char *last = &p->broken[p->list[i].letter & 127];
	const struct result *r = &p->result[i];

	if (r->outcome != OUTCOME_BROKEN)
		return;
	if (!*last)
		*last = (unsigned char)(p->stage + 1);
	else if (p->stage >= *last && r->record && r->record->hung)
		p->hangs++;
}

/* Of a client that has broken a rule in an earlier stage. */
static bool goes_on(const struct progress *p, enum family family)
{
	return p->run->keep_going || (family_is_race(family) && p->hangs < MOST_HANGS);
}

/* Whether the scenario belongs to this stage, and is to be run. */
static bool is_due(struct progress *p, size_t i)
{
	const enum family family = p->list[i].kind->family;
	const unsigned stage = family_stage(family);
	const unsigned last = p->broken[p->list[i].letter & 127];

	if (stage != p->stage)
		return false;
	if (!last || stage < last || goes_on(p, family))
		return true;
	p->result[i].outcome = OUTCOME_SKIPPED;
	p->done++;
	return false;
}

static void fill_place(struct progress *p, struct job *j)
{
	while (p->next < p->n && !is_due(p, p->next))
		p->next++;
	if (p->next == p->n)
		return;
	if (!start(p->run, &p->list[p->next], p->next, j)) {
		p->result[p->next].outcome = OUTCOME_ERROR;
		p->done++;
	}
	p->next++;
}

static bool empty_place(struct progress *p, struct job *j)
{
	enum outcome outcome;

	if (is_free(j))
		return true;
	if (!collect(j, &p->list[j->index], &outcome))
		return false;
	keep(&p->result[j->index], j, outcome);
	note_broken(p, j->index);
	p->done++;
	return true;
}

static void run_stage(struct progress *p, uint64_t begun)
{
	const unsigned places = p->run->jobs < MOST_JOBS ? p->run->jobs : MOST_JOBS;
	struct job jobs[MOST_JOBS] = {0};
	unsigned busy;

	p->next = 0;
	do {
		busy = 0;
		for (unsigned i = 0; i < places; i++) {
			if (empty_place(p, &jobs[i]))
				fill_place(p, &jobs[i]);
			busy += !is_free(&jobs[i]);
		}
		if (p->run->progress)
			tell(begun, p->done, p->n);
		if (busy)
			wait_for_one(jobs, places);
	} while (busy);
}

void run_all(const struct run *run, const struct scenario *list, size_t n, struct result *result)
{
	struct progress p = {.run = run, .list = list, .n = n, .result = result};
	const uint64_t begun = clock_ns();

	for (p.stage = 0; p.stage <= family_stage(FAMILIES - 1); p.stage++)
		run_stage(&p, begun);
}

struct record *run_one(const struct run *run, const struct scenario *s, enum outcome *outcome)
{
	struct job j = {0};

	*outcome = OUTCOME_ERROR;
	if (!start(run, s, 0, &j))
		return NULL;
	while (!collect(&j, s, outcome))
		wait_for_one(&j, 1);
	return take_record(&j);
}
