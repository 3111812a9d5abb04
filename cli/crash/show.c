// SPDX-License-Identifier: BSD-3-Clause
/* weft crash show, and how a record is told of. */
#include "cli/crash/show.h"

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/say.h"
#include "cli/crash/open.h"
#include "crash/search.h"
#include "include/weft/verbs_ext.h"

enum { KEY_JSON = 256 };

static const char *opcode_name(uint32_t opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
		return "RDMA WRITE";
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return "RDMA WRITE WITH IMMEDIATE";
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return "SEND";
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return "COMPARE AND SWAP";
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return "FETCH AND ADD";
	case IBV_WR_ATOMIC_WRITE:
		return "ATOMIC WRITE";
	default:
		return "operation";
	}
}

static const char *push_name(uint8_t push)
{
	static const char *const names[] = {[JOURNAL_READ] = "RDMA READ",
		[JOURNAL_FLUSH_VISIBLE] = "FLUSH for visibility",
		[JOURNAL_FLUSH_PERSISTENT] = "FLUSH for persistence"};

	return push < sizeof names / sizeof *names ? names[push] : "push";
}

/* Names and texts come from other processes. */
enum { NAME_ROOM = 4 * JOURNAL_NAME + 1, TEXT_ROOM = 4 * JOURNAL_TEXT_MAX + 1 };

static void clean(char *to, size_t room, const char *from, size_t size)
{
	text_escape(to, room, from, strnlen(from, size));
}

/* The region that has the address, -1 none; *off: where in it. */
static int find_region(const struct crash_state *s, const struct journal_record *r, uint64_t *off)
{
	for (unsigned i = 0; i < s->n_regions; i++) {
		const struct crash_region *g = &s->regions[i];

		if (g->owner == r->owner && r->addr >= g->addr && r->addr < g->addr + g->len) {
			*off = r->addr - g->addr;
			return i;
		}
	}
	return -1;
}

static void place(FILE *to, const struct crash_state *s, const struct journal_record *r)
{
	uint64_t off;
	int i = find_region(s, r, &off);

	if (i < 0)
		fprintf(to, "%llu bytes at %#llx of process %u", (unsigned long long)r->len,
			(unsigned long long)r->addr, r->owner);
	else if (s->n_regions == 1)
		fprintf(to, "%llu bytes at +%#llx", (unsigned long long)r->len,
			(unsigned long long)off);
	else
		fprintf(to, "%llu bytes at +%#llx of region-%d", (unsigned long long)r->len,
			(unsigned long long)off, i);
}

static void origin(FILE *to, const struct journal_record *r)
{
	char name[NAME_ROOM];

	clean(name, sizeof name, r->name, sizeof r->name);
	if (r->kind == JOURNAL_WRITE || r->kind == JOURNAL_PUSH)
		fprintf(to, ", request %u (wr_id %#llx) of queue pair %#x to %#x%s", r->pos,
			(unsigned long long)r->wr_id, r->qpn, r->target_qpn,
			r->fenced ? ", fenced" : "");
	fprintf(to, ", process %u %s", r->pid, name);
}

void crash_describe(FILE *to, const struct crash_state *s, const struct journal_record *r)
{
	switch (r->kind) {
	case JOURNAL_REGION:
		fputs("region: ", to);
		place(to, s, r);
		break;
	case JOURNAL_WRITE:
		fprintf(to, "%s of ", opcode_name(r->opcode));
		place(to, s, r);
		break;
	case JOURNAL_PUSH:
		fputs(push_name(r->push), to);
		if (r->push != JOURNAL_READ) {
			fputs(" of ", to);
			place(to, s, r);
		}
		break;
	case JOURNAL_PERSIST:
		fputs("made durable by its owner: ", to);
		place(to, s, r);
		break;
	case JOURNAL_MARK:
		fputs("mark", to);
		break;
	case JOURNAL_ASKED:
		fprintf(to, "rpma_flush() of %llu bytes for %s (wr_id %#llx)",
			(unsigned long long)r->len,
			r->push == JOURNAL_FLUSH_PERSISTENT ? "persistence" : "visibility",
			(unsigned long long)r->wr_id);
		break;
	}
	origin(to, r);
}

json_t *crash_describe_json(
	const struct crash_state *s, const struct journal_record *r, uint64_t index)
{
	static const char *const kinds[JOURNAL_KINDS] = {[JOURNAL_REGION] = "region",
		[JOURNAL_WRITE] = "write",
		[JOURNAL_PUSH] = "push",
		[JOURNAL_PERSIST] = "persist",
		[JOURNAL_MARK] = "mark",
		[JOURNAL_ASKED] = "asked"};
	const char *op = r->kind == JOURNAL_WRITE  ? opcode_name(r->opcode)
			 : r->kind == JOURNAL_PUSH ? push_name(r->push)
						   : kinds[r->kind];
	char name[NAME_ROOM];
	uint64_t off = 0;
	int region = find_region(s, r, &off);
	json_t *o;

	clean(name, sizeof name, r->name, sizeof r->name);
	o = json_pack("{sI ss ss sI ss sI sI sI}", "record", (json_int_t)index, "kind",
		kinds[r->kind], "operation", op, "process", (json_int_t)r->pid, "name", name,
		"time_ns", (json_int_t)r->time_ns, "address", (json_int_t)r->addr, "length",
		(json_int_t)r->len);
	if (o && region >= 0) {
		json_object_set_new(o, "region", json_integer(region));
		json_object_set_new(o, "offset", json_integer((json_int_t)off));
	}
	if (o && (r->kind == JOURNAL_WRITE || r->kind == JOURNAL_PUSH)) {
		json_object_set_new(o, "qpn", json_integer(r->qpn));
		json_object_set_new(o, "target_qpn", json_integer(r->target_qpn));
		json_object_set_new(o, "wr_id", json_integer((json_int_t)r->wr_id));
		json_object_set_new(o, "request", json_integer(r->pos));
		json_object_set_new(o, "fenced", json_boolean(r->fenced));
	}
	return o;
}

/* ---- the command ---- */

struct show {
	const char *path;
	bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct show *show = state->input;

	switch (key) {
	case KEY_JSON:
		show->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (show->path)
			cli_usage(state, "one journal is enough");
		show->path = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		cli_usage(state, "which journal?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The text of a mark, or "". */
static void mark_text(const struct journal *j, const struct journal_record *r, char text[TEXT_ROOM])
{
	const uint8_t *bytes = r->kind == JOURNAL_MARK ? journal_bytes(j, r) : NULL;
	uint32_t len = r->data_len < JOURNAL_TEXT_MAX ? r->data_len : JOURNAL_TEXT_MAX;

	clean(text, TEXT_ROOM, bytes ? (const char *)bytes : "", bytes ? len : 0);
}

static json_t *one_json(const struct journal *j, const struct crash_state *s, uint64_t i)
{
	const struct journal_record *r = journal_at(j, i);
	char text[TEXT_ROOM];
	json_t *o = crash_describe_json(s, r, i + 1);

	mark_text(j, r, text);
	if (o && *text)
		json_object_set_new(o, "text", json_string(text));
	return o;
}

static void one_line(const struct journal *j, const struct crash_state *s, uint64_t i)
{
	const struct journal_record *r = journal_at(j, i);
	char text[TEXT_ROOM];

	mark_text(j, r, text);
	printf("#%-5llu ", (unsigned long long)i + 1);
	crash_describe(stdout, s, r);
	printf("%s%s\n", *text ? ": " : "", text);
}

static void print_end(const struct journal *j)
{
	uint32_t flags = atomic_load_explicit(&j->head->flags, memory_order_relaxed);

	if (flags & JOURNAL_FULL)
		puts("the journal is full: what came later is missing (weft crash run --size)");
	if (flags & JOURNAL_STOPPED)
		puts("here the power failed (weft crash now)");
}

static int print_all(const struct journal *j, const struct crash_state *s, bool json)
{
	json_t *list = json ? json_array() : NULL;

	for (uint64_t i = 0; i < journal_count(j); i++) {
		if (!journal_at(j, i))
			continue;
		if (json)
			json_array_append_new(list, one_json(j, s, i));
		else
			one_line(j, s, i);
	}
	if (json) {
		json_dumpf(list, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(list);
	} else {
		print_end(j);
	}
	return cli_written();
}

int crash_cmd_show(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", KEY_JSON, NULL, 0, "print JSON", 0}, {0}};
	static const struct argp argp = {.options = options,
		.parser = parse,
		.args_doc = "JOURNAL",
		.doc = "Prints the records of a journal."};
	const struct crash_rules rules = {0};
	struct crash_state s;
	struct show show = {0};
	struct journal j;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &show);
	rc = crash_open(&j, show.path, false);
	if (rc)
		return rc;
	rc = crash_state_at(
		&s, &j, &rules, (struct crash_point){.record = journal_count(&j)}, false);
	rc = rc ? cli_fail("out of memory") : print_all(&j, &s, show.json);
	crash_state_free(&s);
	journal_close(&j);
	return rc;
}
