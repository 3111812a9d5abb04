// SPDX-License-Identifier: BSD-3-Clause
/*
 * A log in the server's file to which the client appends, record by record.
 *
 * The order is what makes it safe: the record is written and flushed; only then the word that says
 * how much of the log counts is written, atomically, and flushed.  Whenever the server loses power,
 * that word covers whole records alone.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common.h"

enum { RECORD = 64, RECORDS = 1000, HEADER = 64, SIZE = HEADER + RECORD * RECORDS };

/* What the file holds. */
struct log {
	uint64_t used; /* records that count */
	char padding[HEADER - sizeof(uint64_t)];
	char records[RECORDS][RECORD];
};

static void show(const struct log *log)
{
	printf("%d records\n", (int)log->used);
	for (uint64_t i = 0; i < log->used && i < RECORDS; i++)
		printf("%d: %.*s\n", (int)i, RECORD, log->records[i]);
}

static void serve(struct rpma_peer *peer, const struct side *side)
{
	const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
			  RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	struct rpma_conn_private_data pdata = {.len = sizeof(struct offer)};
	struct log *log = map_file(side->argc ? side->argv[0] : "append_log.data", SIZE);
	struct rpma_ep *ep = listen_at(peer, side);
	struct rpma_mr_local *mr;
	struct rpma_conn *conn;
	struct offer offer;

	need(rpma_mr_reg(peer, log, SIZE, usage, &mr), "rpma_mr_reg");
	make_offer(&offer, mr, 1);
	pdata.ptr = &offer;
	conn = accept_from(ep, NULL, &pdata);
	end_server(&conn);
	show(log);
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	need(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
}

static void append(struct rpma_conn *conn, struct rpma_mr_remote *log, struct rpma_mr_local *mr,
	struct log *copy, const char *text)
{
	const enum rpma_flush_type type = RPMA_FLUSH_TYPE_PERSISTENT;
	size_t at = offsetof(struct log, records) + copy->used * RECORD;
	union {
		uint64_t word;
		char bytes[8];
	} used = {.word = copy->used + 1};

	if (copy->used >= RECORDS)
		need(RPMA_E_INVAL, "the log is full");
	snprintf(copy->records[copy->used], RECORD, "%s", text);
	need(rpma_write(conn, log, at, mr, at, RECORD, RPMA_F_COMPLETION_ON_ERROR, NULL),
		"rpma_write");
	need(rpma_flush(conn, log, at, RECORD, type, RPMA_F_COMPLETION_ON_ERROR, NULL),
		"rpma_flush");
	need(rpma_atomic_write(conn, log, offsetof(struct log, used), used.bytes,
		     RPMA_F_COMPLETION_ON_ERROR, NULL),
		"rpma_atomic_write");
	need(rpma_flush(conn, log, 0, sizeof used, type, RPMA_F_COMPLETION_ALWAYS, NULL),
		"rpma_flush");
	wait_conn(conn);
	copy->used++;
}

static void append_all(struct rpma_peer *peer, const struct side *side)
{
	struct rpma_conn *conn = connect_to(peer, side, NULL);
	struct rpma_mr_remote *log = take_offer(conn);
	struct log *copy = allocate(SIZE);
	struct rpma_mr_local *mr;

	need(rpma_mr_reg(peer, copy, SIZE, RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC, &mr),
		"rpma_mr_reg");
	need(rpma_read(conn, mr, 0, log, 0, SIZE, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_read");
	wait_conn(conn);
	for (int i = 0; i < side->argc; i++)
		append(conn, log, mr, copy, side->argv[i]);
	printf("appended %d, now %d\n", side->argc, (int)copy->used);
	end_client(&conn);
	need(rpma_mr_remote_delete(&log), "rpma_mr_remote_delete");
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
}

int main(int argc, char **argv)
{
	struct side side = parse(argc, argv, RECORDS, "[FILE] (server) or TEXT...");
	struct rpma_peer *peer = open_peer(&side);

	if (side.is_server)
		serve(peer, &side);
	else
		append_all(peer, &side);
	need(rpma_peer_delete(&peer), "rpma_peer_delete");
	return 0;
}
