// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/entries.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cli/peercheck/record.h"
#include "cli/peercheck/subject.h"
#include "cli/peercheck/watch.h"
#include "peermem/bytes.h"
#include "peermem/generation.h"
#include "peermem/window.h"

enum { PAGE = 4096, WORD = 8 };

/* ---- the table ---- */

static bool is_memory(uint64_t at, uint64_t n)
{
	char byte;
	const struct iovec mine = {&byte, 1};

	for (uint64_t off = 0; off < n; off += PAGE) {
		const struct iovec theirs = {(void *)(uintptr_t)(at + off), 1};

		if (process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) != 1)
			return false;
	}
	return true;
}

static bool is_reachable(uint64_t at, uint64_t n)
{
	struct peer_window *w;

	if (peer_window_get(at, n, &w))
		return false;
	if (!w)
		return is_memory(at, n);
	peer_window_put(w);
	return true;
}

static const char *wrong_entry(const struct scatterlist *s)
{
	if (s->dma_length == 0)
		return "is empty";
	if (s->dma_address % PAGE || s->dma_length % PAGE)
		return "is not of whole pages of 4096 bytes";
	if (s->dma_address + s->dma_length < s->dma_address)
		return "wraps";
	return is_reachable(s->dma_address, s->dma_length) ? NULL : "is not reachable";
}

static bool overlap(const struct scatterlist *a, const struct scatterlist *b)
{
	return a->dma_address < b->dma_address + b->dma_length &&
	       b->dma_address < a->dma_address + a->dma_length;
}

static bool judge_entry(const struct scatterlist *list, int i)
{
	const char *wrong = wrong_entry(&list[i]);

	for (int k = 0; k < i && !wrong; k++)
		if (overlap(&list[k], &list[i]))
			wrong = "overlaps with another";
	if (wrong)
		record_broken(7, "entry", "entry %d of the table, %#" PRIx64 "+%#x, %s", i,
			(uint64_t)list[i].dma_address, list[i].dma_length, wrong);
	return !wrong;
}

static const char *wrong_table(const struct sg_table *t, int nmap)
{
	if (nmap < 1)
		return "nmap is less than 1";
	if (!t->sgl)
		return "the table has no entries";
	if ((unsigned)nmap > t->nents)
		return "nmap is more than the entries of the table";
	return NULL;
}

/* Where a call failed the answer was wrong, if the table is. */
static bool is_not_judged(void)
{
	return record_family() == FAMILY_NTH;
}

void entries_judge_cover(const struct watched_region *r)
{
	const uint64_t page = r->page_size ? r->page_size : PAGE, from = r->addr & ~(page - 1);
	const uint64_t need = (r->addr + r->size - from + page - 1) & ~(page - 1);

	if (!is_not_judged() && r->covered < need)
		record_broken(8, "cover",
			"the entries have %" PRIu64 " bytes; the range needs %" PRIu64, r->covered,
			need);
}

void entries_judge(struct watched_region *r, int nmap)
{
	const char *wrong = wrong_table(r->table, nmap);

	if (is_not_judged())
		return;

	if (subject.kshim && subject.kshim->about(r->table->sgl)) {
		record_broken(11, "table freed", "dma_map leaves a table whose entries are %s",
			subject.kshim->about(r->table->sgl));
		return;
	}
	if (wrong) {
		record_broken(7, "entry", "%s (nmap %d)", wrong, nmap);
		return;
	}
	r->covered = 0;
	for (int i = 0; i < nmap; i++) {
		if (!judge_entry(r->table->sgl, i))
			return;
		r->covered += r->table->sgl[i].dma_length;
	}
	entries_judge_cover(r);
}

/* ---- the bytes ---- */

/* What the word at addr holds. */
static uint64_t word_at(uint64_t addr)
{
	uint64_t x = addr * 0x9e3779b97f4a7c15U;

	return x ^ x >> 31;
}

void entries_mark(uint64_t addr, uint64_t n)
{
	uint64_t *word = malloc(n);

	if (!word)
		abort();
	for (uint64_t i = 0; i < n / WORD; i++)
		word[i] = word_at(addr + i * WORD);
	subject.device->write(addr, word, n);
	free(word);
}

/* The address in the allocation of which this is the word; 0: of none. */
static uint64_t whose(uint64_t word, uint64_t start, uint64_t n)
{
	for (uint64_t at = start; at < start + n; at += WORD)
		if (word_at(at) == word)
			return at;
	return 0;
}

static void complain(uint64_t at, uint64_t word, uint64_t start, uint64_t n)
{
	const uint64_t other = whose(word, start, n);

	if (other)
		record_broken(9, "bytes",
			"where byte %" PRIu64
			" of the allocation should be the HCA finds byte %" PRIu64,
			at - start, other - start);
	else
		record_broken(7, "entry",
			"at byte %" PRIu64
			" of the allocation the HCA finds memory of something else",
			at - start);
}

/* The first whole word that differs. */
static bool compare(const char *got, uint64_t addr, uint64_t length, uint64_t start, uint64_t n)
{
	const uint64_t first = (addr + WORD - 1) & ~(uint64_t)(WORD - 1);
	uint64_t word;

	for (uint64_t at = first; at + WORD <= addr + length; at += WORD) {
		memcpy(&word, got + (at - addr), WORD);
		if (word == word_at(at))
			continue;
		complain(at, word, start, n);
		return false;
	}
	return true;
}

/* Each byte the other way round, so that all differ from what was there. */
static void judge_writing(struct peer_region *r, char *bytes, uint64_t addr, uint64_t length)
{
	char *seen = malloc(length);

	if (!seen)
		abort();
	for (uint64_t i = 0; i < length; i++)
		bytes[i] = (char)~bytes[i];
	if (peer_bytes_write(r, 0, bytes, length) || peer_bytes_flush(r))
		record_broken(7, "entry", "the HCA cannot write through the table");
	else if (subject.device->read(addr, seen, length) || memcmp(bytes, seen, length) != 0)
		record_broken(9, "bytes", "the device does not see what the HCA wrote");
	free(seen);
}

/* The bytes, to be freed, of which all are right; NULL. */
static char *read_right(
	struct peer_region *r, uint64_t addr, uint64_t length, uint64_t start, uint64_t n)
{
	char *bytes = malloc(length);
	bool right = false;

	if (!bytes)
		abort();
	if (peer_bytes_read(r, 0, bytes, length))
		record_broken(7, "entry", "the HCA cannot read through the table");
	else
		right = compare(bytes, addr, length, start, n);
	if (!right)
		free(bytes);
	return right ? bytes : NULL;
}

void entries_judge_reading(
	struct peer_region *r, uint64_t addr, uint64_t length, uint64_t start, uint64_t n)
{
	free(read_right(r, addr, length, start, n));
}

void entries_judge_bytes(
	struct peer_region *r, uint64_t addr, uint64_t length, uint64_t start, uint64_t n)
{
	char *bytes = read_right(r, addr, length, start, n);

	if (bytes)
		judge_writing(r, bytes, addr, length);
	free(bytes);
	entries_mark(start, n);
}
