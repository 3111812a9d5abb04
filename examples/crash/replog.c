// SPDX-License-Identifier: BSD-3-Clause
/*
 * A log that is replicated: the client appends each record to the files of two servers, and takes
 * it for safe once both have it.  Whenever the power fails, each server's file must hold whole
 * records alone, and all that the client took for safe.
 *
 * The client can be told to do it wrong, in three ways that look right: they are for the
 * power-failure simulator to find.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <weft/crash.h>

#include "../rpma/common.h"

enum { RECORDS = 31, TEXT = 48, REPLICAS = 2 };

struct record {
	uint64_t number, checksum;
	char text[TEXT];
};

/* What a file holds. */
struct log {
	uint64_t used; /* records that count: the commit word */
	char padding[sizeof(struct record) - sizeof(uint64_t)];
	struct record records[RECORDS];
};

static uint64_t checksum(const struct record *r)
{
	uint64_t sum = r->number * 0x9e3779b97f4a7c15u;

	for (int i = 0; i < TEXT; i++)
		sum = (sum ^ (unsigned char)r->text[i]) * 0x100000001b3u;
	return sum;
}

/* ---- server ---- */

static void serve(struct rpma_peer *peer, const struct side *side)
{
	const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
			  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	struct rpma_conn_private_data pdata = {.len = sizeof(struct offer)};
	struct log *log = map_file(side->argc ? side->argv[0] : "replog.data", sizeof *log);
	struct rpma_ep *ep;
	struct rpma_mr_local *mr;
	struct rpma_conn *conn;
	struct offer offer;

	need(rpma_mr_reg(peer, log, sizeof *log, usage, &mr), "rpma_mr_reg");
	make_offer(&offer, mr, 1);
	pdata.ptr = &offer;
	ep = listen_at(peer, side);
	conn = accept_from(ep, NULL, &pdata);
	end_server(&conn);
	printf("%" PRIu64 " records\n", log->used);
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	need(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
}

/* ---- client ---- */

enum how { CORRECT, NO_FLUSH, VISIBILITY, NO_FENCE };

static enum how parse_how(const char *text)
{
	static const char *const names[] = {"correct", "no-flush", "visibility", "no-fence"};

	for (int i = CORRECT; i <= NO_FENCE; i++)
		if (!strcmp(text, names[i]))
			return i;
	fprintf(stderr, "%s is none of correct, no-flush, visibility, no-fence\n", text);
	exit(2);
}

struct replica {
	struct rpma_conn *conn;
	struct rpma_mr_remote *log;
};

/* The client's copy of the log, from which it writes. */
struct copy {
	struct log *log;
	struct rpma_mr_local *mr;
};

/* The number of the record: it comes back with completions, and in reports of the simulator. */
static const void *context_of(const struct copy *copy)
{
	return (const void *)(uintptr_t)copy->log->used;
}

/* The word that makes the record count: atomic, and behind the flush. */
static void commit(struct replica *r, const struct copy *copy, enum how how)
{
	const void *context = context_of(copy);
	union {
		uint64_t word;
		char bytes[8];
	} used = {.word = copy->log->used};

	if (how == NO_FENCE) /* eight aligned bytes are written whole, so what can go wrong? */
		need(rpma_write(r->conn, r->log, 0, copy->mr, 0, sizeof used,
			     RPMA_F_COMPLETION_ON_ERROR, context),
			"rpma_write");
	else
		need(rpma_atomic_write(
			     r->conn, r->log, 0, used.bytes, RPMA_F_COMPLETION_ON_ERROR, context),
			"rpma_atomic_write");
}

static void append_to(struct replica *r, const struct copy *copy, enum how how)
{
	const void *context = context_of(copy);
	const enum rpma_flush_type type =
		how == VISIBILITY ? RPMA_FLUSH_TYPE_VISIBILITY : RPMA_FLUSH_TYPE_PERSISTENT;
	size_t at = offsetof(struct log, records) + (copy->log->used - 1) * sizeof(struct record);

	need(rpma_write(r->conn, r->log, at, copy->mr, at, sizeof(struct record),
		     RPMA_F_COMPLETION_ON_ERROR, context),
		"rpma_write");
	if (how != NO_FLUSH)
		need(rpma_flush(r->conn, r->log, at, sizeof(struct record), type,
			     RPMA_F_COMPLETION_ON_ERROR, context),
			"rpma_flush");
	commit(r, copy, how);
	need(rpma_flush(r->conn, r->log, 0, how == NO_FLUSH ? sizeof(struct log) : sizeof(uint64_t),
		     type, RPMA_F_COMPLETION_ALWAYS, context),
		"rpma_flush");
}

static void append(struct replica *replicas, struct copy *copy, enum how how, const char *text)
{
	struct record *r = &copy->log->records[copy->log->used];
	char mark[64];

	r->number = ++copy->log->used;
	snprintf(r->text, sizeof r->text, "%s", text);
	r->checksum = checksum(r);
	for (int i = 0; i < REPLICAS; i++)
		append_to(&replicas[i], copy, how);
	for (int i = 0; i < REPLICAS; i++)
		wait_conn(replicas[i].conn);
	/* From here on others may rely on it: so it must survive. */
	snprintf(mark, sizeof mark, "safe %" PRIu64, copy->log->used);
	weft_crash_mark(mark);
}

static void append_all(struct rpma_peer *peer, struct side *side)
{
	enum how how = parse_how(side->argc > 1 ? side->argv[1] : "");
	struct replica replicas[REPLICAS];
	struct copy copy = {.log = allocate(sizeof(struct log))};

	need(rpma_mr_reg(peer, copy.log, sizeof(struct log), RPMA_MR_USAGE_WRITE_SRC, &copy.mr),
		"rpma_mr_reg");
	for (int i = 0; i < REPLICAS; i++) {
		replicas[i].conn = connect_to(peer, side, NULL);
		replicas[i].log = take_offer(replicas[i].conn);
		side->port = side->argv[0];
	}
	for (int i = 2; i < side->argc && copy.log->used < RECORDS; i++)
		append(replicas, &copy, how, side->argv[i]);
	for (int i = 0; i < REPLICAS; i++) {
		end_client(&replicas[i].conn);
		need(rpma_mr_remote_delete(&replicas[i].log), "rpma_mr_remote_delete");
	}
	need(rpma_mr_dereg(&copy.mr), "rpma_mr_dereg");
	printf("appended %" PRIu64 "\n", copy.log->used);
}

/* ---- recovery: is what a power failure left in order? ---- */

/* How many records the client had taken for safe. */
static uint64_t promised(void)
{
	const char *path = getenv("WEFT_CRASH_MARKS");
	FILE *f = path ? fopen(path, "r") : NULL;
	uint64_t n = 0, last = 0;

	while (f && fscanf(f, "safe %" SCNu64 "\n", &n) == 1)
		last = n;
	if (f)
		fclose(f);
	return last;
}

static int recover(const char *path)
{
	FILE *f = fopen(path, "r");
	struct log log;
	int ok = f && fread(&log, sizeof log, 1, f) == 1;

	if (f)
		fclose(f);
	if (!ok || log.used > RECORDS) {
		printf("%s is no log\n", path);
		return 1;
	}
	for (uint64_t i = 0; i < log.used; i++) {
		const struct record *r = &log.records[i];

		if (r->number == i + 1 && r->checksum == checksum(r))
			continue;
		printf("%" PRIu64 " records count, but record %" PRIu64 " is not whole\n", log.used,
			i + 1);
		return 1;
	}
	if (log.used < promised()) {
		printf("%" PRIu64 " records count, but %" PRIu64 " were taken for safe\n", log.used,
			promised());
		return 1;
	}
	return 0;
}

/* All replicas that lie in a directory, or one. */
static int recover_all(const char *path)
{
	struct stat st;
	char file[4096];
	int bad = 0;

	if (stat(path, &st)) {
		perror(path);
		return 2;
	}
	if (!S_ISDIR(st.st_mode))
		return recover(path);
	for (int i = 0;; i++) {
		snprintf(file, sizeof file, "%s/region-%d", path, i);
		if (stat(file, &st))
			return bad;
		bad |= recover(file);
	}
}

int main(int argc, char **argv)
{
	struct rpma_peer *peer;
	struct side side;

	if (argc == 3 && !strcmp(argv[1], "recover"))
		return recover_all(argv[2]);
	side = parse(
		argc, argv, RECORDS + 2, "[FILE] (server), PORT HOW TEXT..., or recover IMAGE");
	peer = open_peer(&side);
	if (side.is_server)
		serve(peer, &side);
	else
		append_all(peer, &side);
	need(rpma_peer_delete(&peer), "rpma_peer_delete");
	return 0;
}
