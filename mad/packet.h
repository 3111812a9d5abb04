/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What write(2) to a umad file refuses and what read(2) makes of a received MAD: rules without any
 * I/O, in the order in which Linux' ib_umad has them.  A program's process asks before it puts a
 * MAD into its send ring, weftd asks again: it believes nothing in that ring.
 */
#pragma once

#include <sys/types.h>

#include "mad/addr.h"
#include "mad/file.h"
#include "mad/ring.h"
#include "wire/mad.h"

/* The Q_Key of all QP1s; a program's own is ignored. */
#define UMAD_GSI_QKEY 0x80010000u

/* ---- agents, as a file's page shows them: 0 where the slot is free ---- */

/* Who cuts and joins messages of many segments for an agent. */
enum umad_rmpp {
	UMAD_RMPP_NONE,
	UMAD_RMPP_LAYER, /* the MAD layer */
	UMAD_RMPP_USER,  /* the program: it sends and gets segments */
};

/*
 *   bits  0..31  upper half of its transaction ids
 *   bits 32..33  enum umad_rmpp
 *   bit  63      1
 */
static inline uint64_t umad_agent_word(uint32_t hi_tid, const struct mad_registration *reg)
{
	enum umad_rmpp rmpp = !reg->rmpp_version ? UMAD_RMPP_NONE
			      : reg->user_rmpp   ? UMAD_RMPP_USER
						 : UMAD_RMPP_LAYER;

	return 1ull << 63 | (uint64_t)rmpp << 32 | hi_tid;
}

static inline uint32_t umad_agent_hi_tid(uint64_t word)
{
	return (uint32_t)word;
}

static inline enum umad_rmpp umad_agent_rmpp(uint64_t word)
{
	return word >> 32 & 3;
}

/* ---- write ---- */

/* What is known of the file and its port. */
struct umad_sender {
	const _Atomic uint64_t *agents; /* UMAD_AGENTS words: the page's, or weftd's own */
	bool pkey;                      /* the layout */
	bool gone;
	bool needs_grh; /* an Ethernet port: there is no address without */
	unsigned n_gids;
};

/* A write that passed. */
struct umad_send {
	struct umad_hdr hdr; /* in the new layout */
	size_t length;       /* of the MAD or message */
	bool rmpp;           /* to be cut into segments */
	bool no_rmpp;        /* the layer's, and no part of a message: without such a header */
	uint64_t tid;        /* that it will get */
	bool listed;         /* -EINVAL if it is a duplicate: tids_enter() of hash */
	uint64_t hash;
};

/*
 * May the program write that?  head: the first bytes of its buffer, a header and UMAD_WRITE_MIN
 * bytes of the MAD, copied if count says that they are there; count: what it passed.  0 and *out;
 * -EINVAL, -EIO: no such agent, or the device is gone; -ENODATA: no such GID.  *why: of an error.
 */
int umad_check_write(const struct umad_sender *s, const void *head, size_t count,
	struct umad_send *out, const char **why);

/*
 * weftd: the same for a record out of a send ring; s->pkey is not looked at.  -EINVAL, too, for a
 * record that no write could have made.
 */
int umad_check_record(const struct umad_sender *s, const struct umad_record *rec,
	struct umad_send *out, const char **why);

/*
 * Makes the record of a write that passed.  mad: out->length bytes, of which it takes the first
 * 256; message: of a longer one, under which weftd has it.  The transaction id stays what it was:
 * the layer sets it (mad_own_tid()).
 */
void umad_make_record(
	const struct umad_send *out, const uint8_t *mad, uint64_t message, struct umad_record *rec);

/* ---- what was received ---- */

/* A MAD or message of length bytes has come to the agent in that slot; the file has that layout. */
void umad_make_received(uint32_t slot, const struct mad_addr *from, uint8_t gid_index, bool pkey,
	const uint8_t *mad, uint32_t length, uint64_t message, struct umad_record *rec);

/* Nobody answered: the header as it was written, and the MAD's own, with the id that it got. */
void umad_make_timeout(
	const struct umad_hdr *written, const uint8_t mad[MAD_HDR_SIZE], struct umad_record *rec);

/*
 * What a read of count bytes returns that finds rec first: its length, and *copy of it goes to the
 * program; -EINVAL: nothing does, and rec stays; -ENOSPC: a long message stays, *copy bytes of
 * header and first segment go to the program all the same.
 */
ssize_t umad_read_result(const struct umad_record *rec, bool pkey, size_t count, size_t *copy);

/* May a read have such a buffer at all, whatever is there? */
static inline bool umad_may_read(bool pkey, size_t count)
{
	return count >= umad_hdr_size(pkey);
}

/* Copies the first bytes of header, in that layout, and MAD; of a long message no more than 256. */
void umad_copy_out(const struct umad_record *rec, bool pkey, void *buf, size_t bytes);

/* ---- addresses ---- */

/* Where that header sends to; local_gid: the one of its gid_index, if it has a GRH. */
struct mad_addr umad_addr_of(const struct umad_hdr *h, const uint8_t local_gid[MAD_GID]);

/* Fills in the members of a header that say where a MAD came from. */
void umad_tell_addr(struct umad_hdr *h, const struct mad_addr *from, uint8_t gid_index);
