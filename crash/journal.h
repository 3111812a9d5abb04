/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The journal of a simulated power failure: a file in which every process that writes into the
 * persistent memory of another one says what it wrote, and by what it was pushed to be durable.
 * What may be left after a crash is worked out from it later (crash/model.h).
 *
 * The file has a head, records of one size, and room for bytes.  Nobody waits for anybody: a record
 * is reserved by its state, and counted by whoever comes by; its bytes are by adding to a word.
 * One that was reserved and never filled, since its process died, is passed over.  The file is of
 * one size: when it is full, JOURNAL_FULL is set and nothing more is written, so that what it holds
 * has no holes.
 *
 * Who cut a file would end by SIGBUS whoever has it mapped.  So while programs write, the journal
 * is live: it lies in a sealed memfd that a process keeps (crash/keep.h), the head of the file says
 * which, and whoever opens the file maps that.  When all have ended it is saved into the file.
 *
 * A record has a sum of itself and one of its bytes, so that a reader notices if the file was
 * changed by accident.  Else he trusts nothing that it says, for who writes may be hostile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

#define JOURNAL_MAGIC 0x334c4e4a54464557ull /* as bytes: "WEFTJNL3" */
#define JOURNAL_ENV   "WEFT_CRASH"          /* the journal of this process: an absolute path */

/* Which regions: all that peers may write, or those that can be persistent (the default). */
#define CRASH_REGIONS_ENV "WEFT_CRASH_REGIONS"

enum {
	JOURNAL_HEAD_BYTES = 4096,
	JOURNAL_SIZE_MIN = 1 << 20,
	JOURNAL_RECORDS_SHARE = 8, /* one byte in so many is for records, the rest for bytes */
	JOURNAL_NAME = 16,
	JOURNAL_TEXT_MAX = 256, /* of a mark */
};

/* The memfd of a live journal: its name, and what it is sealed against at least. */
#define JOURNAL_MEMFD "weft-journal"
#define JOURNAL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* Of several bits each, and so are the states: a byte that was changed makes none of another. */
enum journal_flags {
	JOURNAL_FULL = 0x33333333,    /* something did not fit: the record ends before it */
	JOURNAL_STOPPED = 0x44444444, /* the power failed (weft crash now): nothing counts after */
};

enum journal_kind {
	JOURNAL_REGION = 1, /* memory came under the simulator; its bytes as they were */
	JOURNAL_WRITE,      /* a peer wrote: the new bytes */
	JOURNAL_PUSH,       /* a READ or FLUSH of a peer, which may make writes durable */
	JOURNAL_PERSIST,    /* the owner made a range durable: its bytes as they were then */
	JOURNAL_MARK,       /* what a program wanted to have noted: a text */
	JOURNAL_ASKED,      /* rpma_flush() was called; its READ or FLUSH comes next */
	JOURNAL_KINDS
};

enum journal_state {
	JOURNAL_EMPTY,                /* nobody's yet: none of those that are counted */
	JOURNAL_CLAIMED = 0x88888888, /* being filled, or its process died in it */
	JOURNAL_BEGUN = 0x11111111, /* filled; the write is under way, or its process died in it */
	JOURNAL_DONE = 0x22222222,
	JOURNAL_VOID = 0x44444444, /* nothing came of it */
};

/* struct journal_record.push */
enum journal_push { JOURNAL_READ, JOURNAL_FLUSH_VISIBLE, JOURNAL_FLUSH_PERSISTENT };

/* A record.  Of which kinds a member is: R(egion) W(rite) P(ush) O(wner's persist) M(ark). */
struct journal_record {
	_Atomic uint32_t state; /* enum journal_state */
	uint8_t kind;           /* enum journal_kind */
	uint8_t push;           /* P A(sked): enum journal_push */
	uint8_t fenced;         /* W P: the request waited for READs before it */
	uint8_t pad0;
	uint64_t time_ns;   /* CLOCK_REALTIME */
	uint64_t addr, len; /* R W O: in the owner's memory.  P: the range; of a READ, what it read.
			       A: its length */
	uint64_t data;      /* R W O M: where its bytes are, from the start of the file */
	uint64_t wr_id;     /* W P A */
	uint32_t data_len;
	uint32_t owner;      /* R W P O: pid of the process whose memory it is */
	uint32_t pid;        /* the process that asked for it */
	uint32_t opcode;     /* W P: enum ibv_wr_opcode */
	uint32_t qpn;        /* W P: of the requester ...  A: 0, it is not known */
	uint32_t target_qpn; /* ... and of the owner */
	uint32_t pos;        /* W P: number of the request in its send queue */
	uint32_t seen;       /* W P: completions of requests before this number had been polled */
	char name[JOURNAL_NAME]; /* of the process */
	uint64_t data_sum;       /* of its bytes */
	uint8_t room[16];
	uint64_t sum; /* of its number and all of the above but the state */
};

_Static_assert(sizeof(struct journal_record) == 128, "two lines");

/* Where a live journal lies; all zero: in its file.  The memfd's own head says the same. */
struct journal_live {
	uint32_t pid, fd; /* of who keeps it */
	uint64_t id;      /* random: pid and fd may be somebody else's by now */
};

struct journal_head {
	uint64_t magic;
	uint64_t size;     /* of the file */
	uint64_t data_off; /* records end, bytes begin */
	uint32_t records_max;
	_Atomic uint32_t flags; /* enum journal_flags */
	struct journal_live live;
	_Alignas(CACHE_LINE) _Atomic uint64_t records; /* reserved */
	_Alignas(CACHE_LINE) _Atomic uint64_t data;    /* end of what is reserved of the bytes */
};

/* A journal as a process maps it. */
struct journal {
	struct journal_head *head;
	uint64_t size, data_off;
	uint32_t records_max;
	uint64_t id;              /* of the file, by device and inode; never 0 */
	struct journal_live live; /* as its head says */
};

/*
 * Makes a journal of so many bytes, all of which the file system must have.  -EEXIST there is such
 * a file, -ENOSPC, -EFBIG, another negative errno.
 */
int journal_create(const char *path, uint64_t size);

/*
 * Maps a journal, to add to it or to read it: the memory of one that is live, else the file.
 * -EPROTO: it is none; -EBADMSG: one that was cut short or whose head is damaged, and j->size is
 * the size of the file; -EOWNERDEAD: it is live, and what its head names is not this journal, for
 * who kept it is gone; another negative errno.  Never blocks.  journal_close() unmaps it.
 */
int journal_open(struct journal *j, const char *path, bool writable);
void journal_close(struct journal *j);

/*
 * The same, to add to it from a program, which must not die by what becomes of the file: one that
 * is not live is -ENOLINK.
 */
int journal_join(struct journal *j, const char *path);

/* What an error of these means, in words. */
const char *journal_error(int rc);

/* Does a head say that? */
bool journal_is_live(const struct journal_live *live);

/*
 * Reads the head of a file and checks it: -EPROTO, -EBADMSG as above, and *size is that of the
 * file; another negative errno.  One that says it is live may have been cut behind its head.
 */
int journal_read_head(int fd, struct journal_head *head, uint64_t *size);

/* Is there an end to it: full, or the power failed?  Then nothing can be added. */
bool journal_ended(const struct journal *j);

/*
 * Room for len bytes: where they are, counted from the start of the file, or 0: it is full now.
 * Never blocks.
 */
uint64_t journal_room(struct journal *j, uint64_t len);

/* Gives the room back, if nobody reserved some since. */
void journal_unroom(struct journal *j, uint64_t data, uint64_t len);

/*
 * Adds a copy of *r in that state.  NULL: it is full, or ended.  Room for its bytes must have been
 * reserved, and filled, before.  Never blocks.
 */
struct journal_record *journal_add(
	struct journal *j, const struct journal_record *r, enum journal_state state);

/* The same, if it would be record number `as`; else NULL, without anything changed. */
struct journal_record *journal_add_as(
	struct journal *j, const struct journal_record *r, enum journal_state state, uint64_t as);

/* A write that was BEGUN has been carried out, or not. */
void journal_settle(struct journal_record *r, enum journal_state state);

/* Fills in time, process and its name. */
void journal_sign(struct journal_record *r, uint32_t pid);

/* Adds a mark; -EINVAL it is empty or too long, -ENOSPC. */
int journal_mark(struct journal *j, const char *text);

/*
 * For readers: how many records there are, and the one of that number, NULL if it was never filled
 * or makes no sense.  Its bytes, data_len of them, or NULL.
 */
uint64_t journal_count(const struct journal *j);
const struct journal_record *journal_at(const struct journal *j, uint64_t i);
const uint8_t *journal_bytes(const struct journal *j, const struct journal_record *r);

/* Where a journal is not what was written: at which byte of the file, and what is wrong. */
struct journal_damage {
	uint64_t at;
	const char *what;
};

/*
 * Reads all of it.  0, or -EBADMSG: it is damaged, and *d says where.  Somebody may be adding to it
 * meanwhile.
 */
int journal_verify(const struct journal *j, struct journal_damage *d);

/* Is the record of that number filled, and what it tells of over? */
bool journal_settled(const struct journal *j, uint64_t i);

/* The bytes at an offset that journal_room() gave. */
static inline uint8_t *journal_data(const struct journal *j, uint64_t data)
{
	return (uint8_t *)j->head + data;
}
