// SPDX-License-Identifier: BSD-3-Clause
/*
 * libFuzzer: what a program passes to a umad file, and what one that has the file scribbles over
 * its page and lane, while weftd and readers go on.  Nothing is read or written outside, no call
 * goes on for ever, and a read never gives more than the buffer holds.
 */
#include <stdlib.h>
#include <string.h>

#include "mad/packet.h"
#include "mad/umad_page.h"

enum { LOG_SIZE = 2, STEPS = 64, BUFFER = 1024 };

static struct {
	const uint8_t *data;
	size_t left;
	struct ring_ends ends;
	struct ring_slot slot[1 << LOG_SIZE];
	_Atomic uint32_t settled, held, knocked;
	_Atomic uint64_t agent[UMAD_AGENTS];
	struct bell_producer producer;
	uint64_t tail, head;
} f;

static const struct ring_ref ring = {.ends = &f.ends, .slots = f.slot, .log_size = LOG_SIZE};

static void fill(void *to, size_t size)
{
	size_t n = size < f.left ? size : f.left;

	memset(to, 0, size);
	memcpy(to, f.data, n);
	f.data += n;
	f.left -= n;
}

static uint64_t number(void)
{
	uint64_t v;

	fill(&v, sizeof v);
	return v;
}

static struct umad_sender sender(uint8_t how)
{
	return (struct umad_sender){.agents = f.agent,
		.pkey = how & 1,
		.gone = how & 2,
		.needs_grh = how & 4,
		.n_gids = how >> 3};
}

static bool fits(void *arg, const struct umad_record *rec)
{
	size_t copy;

	return umad_read_result(rec, true, *(size_t *)arg, &copy) >= 0;
}

/* ---- the steps ---- */

static void scribble(void)
{
	f.agent[number() % UMAD_AGENTS] = number();
	f.ends.head = number();
	f.ends.tail = number();
	f.knocked = (uint32_t)number();
	f.settled = (uint32_t)number();
	f.slot[number() % (1 << LOG_SIZE)].word[number() % RING_WORDS] = number();
}

static void do_write(void)
{
	uint8_t head[UMAD_HDR_SIZE + UMAD_WRITE_MIN], mad[UMAD_MAD_BYTES];
	struct umad_sender s = sender((uint8_t)number());
	size_t count = (uint32_t)number() % BUFFER;
	struct umad_record rec;
	struct umad_send out;
	const char *why;

	fill(head, sizeof head);
	fill(mad, sizeof mad);
	if (umad_check_write(&s, head, count, &out, &why))
		return;
	umad_make_record(&out, mad, number(), &rec);
	if (ring_push(&ring, &f.tail, &rec) == RING_OK)
		ring_knock(&f.knocked);
}

static void do_pop(void)
{
	struct umad_sender s = sender((uint8_t)number());
	struct umad_record rec;
	struct umad_send out;
	const char *why;

	ring_heard(&f.knocked);
	if (ring_pop(&ring, &f.head, &rec) != RING_OK || umad_check_record(&s, &rec, &out, &why))
		return;
	if (out.length > UMAD_MAD_BYTES && !(rec.flags & UMAD_RECORD_LONG))
		abort();
	umad_addr_of(&out.hdr, out.hdr.gid);
}

static bool yes_or_no(void *arg)
{
	(void)arg;
	return number() & 1;
}

static bool byte_lies(void *arg, uint8_t which)
{
	(void)which;
	return yes_or_no(arg);
}

static void no_byte(void *arg, uint8_t which)
{
	(void)arg;
	(void)which;
}

static struct bell_consumer consumer(void)
{
	return (struct bell_consumer){.ring = ring,
		.who = (uint32_t)number(),
		.settled = &f.settled,
		.lies = byte_lies,
		.take = yes_or_no};
}

static void do_read(void)
{
	const struct bell_consumer c = consumer();
	uint8_t buf[BUFFER];
	size_t count = (uint32_t)number() % BUFFER, copy;
	struct umad_record rec;
	bool pkey = number() & 1;
	enum ring_result result;
	uint64_t claim;

	if (!umad_may_read(pkey, count))
		return;
	result = bell_take(&c, fits, &count, &rec, &claim);
	if (claim)
		bell_end(&c, claim);
	if (result > RING_OK)
		return;
	umad_read_result(&rec, pkey, count, &copy);
	if (copy > count)
		abort();
	umad_copy_out(&rec, pkey, buf, copy);
}

static void do_bell(void)
{
	const struct bell_consumer c = consumer();
	uint64_t claim = bell_claim(&c);
	uint32_t ghosts = (uint32_t)number();

	if (claim)
		bell_end(&c, claim);
	bell_is_readable(&c);
	bell_ring(&f.producer, f.tail);
	bell_bury(&f.producer, (uint32_t)number());
	bell_exorcise(&f.producer, yes_or_no, &ghosts);
	ring_hold(&ring, &f.held, f.tail);
	ring_tells(&ring, &f.held);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const steps[])(void) = {scribble, do_write, do_pop, do_read, do_bell};

	memset(&f, 0, sizeof f);
	f.data = data;
	f.left = size;
	f.producer = (struct bell_producer){.ring = ring, .send = no_byte};
	for (unsigned i = 0; i < STEPS && f.left; i++) {
		uint8_t step;

		fill(&step, sizeof step);
		steps[step % (sizeof steps / sizeof steps[0])]();
	}
	return 0;
}
