// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/faults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "daemon/process.h"
#include "daemon/qp1.h"
#include "daemon/session.h"
#include "roce/fault/rules.h"

_Static_assert(
	(int)SEG_FAULT_TEXT == FAULT_TEXT && (int)PROTO_FAULT_TEXT == FAULT_TEXT, "one text");
_Static_assert((int)SEG_FAULT_RULES == FAULT_RULES, "a count for each rule");

static bool is_meant(const struct process *p, const struct session *c, int32_t pid)
{
	return pid == PROTO_FAULT_ALL ||
	       (pid == PROTO_FAULT_SELF ? p == c->process : p->pid == pid || p->own_pid == pid);
}

/* Rules of all: weftd's own packets are MADs. */
static void take(struct server *s, const char *text, const struct fault_rules *rules)
{
	strcpy(s->faults, text);
	s->faults_told = true;
	if (s->qp1)
		qp1_set_faults(s->qp1, rules);
}

int faults_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_fault *call = &in->payload.fault;
	size_t len = in->len - offsetof(struct proto_fault, text);
	bool all = call->pid == PROTO_FAULT_ALL;
	char text[FAULT_TEXT] = "";
	struct fault_rules rules;
	struct fault_error why;
	uint32_t n = 0;

	if (len >= sizeof text || fault_parse(call->text, len, &rules, &why))
		return -EINVAL;
	memcpy(text, call->text, len);
	for (struct process *p = s->processes; p; p = p->next) {
		if (!is_meant(p, c, call->pid))
			continue;
		seg_fault_write(&p->seg->faults, rules.n ? text : "", all);
		n++;
	}
	if (!all && !n)
		return -ESRCH;
	if (all)
		take(s, rules.n ? text : "", &rules);
	r->payload.faulted.processes = n;
	return 0;
}

/* What an earlier weftd gave a process, which may have scribbled over that since. */
static bool learn(struct server *s, const struct seg_faults *f, uint32_t word)
{
	char text[FAULT_TEXT];
	struct fault_rules rules;
	struct fault_error why;

	if (!seg_fault_read(f, word, text) || fault_parse(text, strlen(text), &rules, &why))
		return false;
	take(s, text, &rules);
	return true;
}

static void give(const struct server *s, struct process *p)
{
	struct seg_faults *f = &p->seg->faults;
	bool has = atomic_load_explicit(&f->word, memory_order_relaxed);

	if (f->last && !f->of_all) /* rules of its own, or none of its own */
		return;
	if (strncmp(has ? f->text : "", s->faults, sizeof f->text))
		seg_fault_write(f, s->faults, true);
}

void faults_attached(struct server *s, struct process *p)
{
	const struct seg_faults *f = &p->seg->faults;
	uint32_t word = atomic_load_explicit(&f->word, memory_order_acquire);

	if (s->faults_told || !f->of_all || !word || !learn(s, f, word)) {
		give(s, p);
		return;
	}
	for (p = s->processes; p; p = p->next)
		give(s, p);
}

json_t *faults_of_process(const struct process *p)
{
	const struct seg_faults *f = &p->seg->faults;
	uint32_t word = atomic_load_explicit(&f->word, memory_order_acquire);
	bool taken = atomic_load_explicit(&f->taken, memory_order_acquire) == word;
	char text[FAULT_TEXT], name[FAULT_RULE_TEXT + 16];
	json_t *o = json_object(), *counts;
	struct fault_rules rules;
	struct fault_error why;

	if (!seg_fault_read(f, word, text) || fault_parse(text, strlen(text), &rules, &why))
		return o;
	for (uint32_t i = 0; i < rules.n; i++) {
		int n = snprintf(name, sizeof name, "%u ", i + 1);

		fault_print(&rules.rule[i], name + n);
		counts = json_object();
		json_object_set_new(
			counts, "seen", json_integer(taken ? atomic_load(&f->count[i].seen) : 0));
		json_object_set_new(
			counts, "done", json_integer(taken ? atomic_load(&f->count[i].done) : 0));
		json_object_set_new(o, name, counts);
	}
	return o;
}

json_t *faults_of_all(const struct server *s)
{
	return json_string(s->faults);
}
