// SPDX-License-Identifier: BSD-3-Clause
#include "sm/lids.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "topo/lex.h"

static uint16_t bucket(uint64_t guid)
{
	return hash_mix(guid) % LIDS_BUCKETS;
}

uint16_t lids_of(const struct lids *l, uint64_t guid)
{
	uint16_t lid = guid ? l->first[bucket(guid)] : 0;

	while (lid && l->guid[lid] != guid)
		lid = l->next[lid];
	return lid;
}

uint8_t lids_lmc(const struct lids *l, uint16_t first)
{
	return l->lmc[first];
}

/* All LIDs of the port that has that as its first one. */
static void release(struct lids *l, uint16_t first)
{
	uint16_t *p = &l->first[bucket(l->guid[first])];

	while (*p != first)
		p = &l->next[*p];
	*p = l->next[first];
	for (unsigned i = 0; i < 1u << l->lmc[first]; i++)
		l->guid[first + i] = 0;
	l->lmc[first] = 0;
	for (unsigned lmc = 0; lmc < LIDS_LMCS; lmc++) {
		uint16_t from = first & ~((1u << lmc) - 1); /* others of these may have been free */

		if (from < l->least[lmc])
			l->least[lmc] = from;
	}
}

static void enter(struct lids *l, uint64_t guid, uint16_t lid, uint8_t lmc)
{
	uint16_t *first = &l->first[bucket(guid)];

	for (unsigned i = 0; i < 1u << lmc; i++)
		l->guid[lid + i] = guid;
	l->lmc[lid] = lmc;
	l->next[lid] = *first;
	*first = lid;
}

static bool is_block(uint16_t lid, uint8_t lmc)
{
	return lid && lmc < LIDS_LMCS && !(lid & ((1u << lmc) - 1)) &&
	       lid + (1u << lmc) - 1 <= TOPO_UNICAST_LIDS;
}

/* Whether all of them are nobody's, or that port's. */
static bool is_free(const struct lids *l, uint64_t guid, uint16_t lid, uint8_t lmc)
{
	for (unsigned i = 0; i < 1u << lmc; i++)
		if (l->guid[lid + i] && l->guid[lid + i] != guid)
			return false;
	return true;
}

int lids_claim(struct lids *l, uint64_t guid, uint16_t lid, uint8_t lmc)
{
	uint16_t old = lids_of(l, guid);

	if (!guid || !is_block(lid, lmc))
		return -EINVAL;
	if (old == lid && l->lmc[old] == lmc)
		return 0;
	if (!is_free(l, guid, lid, lmc))
		return -EEXIST;
	if (old)
		release(l, old);
	enter(l, guid, lid, lmc);
	return 0;
}

int lids_take(struct lids *l, uint64_t guid, uint16_t lid, uint8_t lmc)
{
	if (!guid || !is_block(lid, lmc))
		return -EINVAL;
	for (unsigned i = 0; i < 1u << lmc; i++)
		if (l->guid[lid + i] && l->guid[lid + i] != guid)
			release(l, lids_of(l, l->guid[lid + i]));
	return lids_claim(l, guid, lid, lmc);
}

uint16_t lids_give(struct lids *l, uint64_t guid, uint8_t lmc)
{
	uint16_t old = lids_of(l, guid), step = 1u << lmc;
	uint32_t lid;

	if ((old && l->lmc[old] == lmc) || !guid)
		return old;
	if (old)
		release(l, old);
	lid = l->least[lmc] ? l->least[lmc] : step;
	while (is_block(lid, lmc) && !is_free(l, guid, lid, lmc))
		lid += step;
	l->least[lmc] = lid;
	if (!is_block(lid, lmc))
		return 0;
	enter(l, guid, lid, lmc);
	return lid;
}

/* The LMC of a port with those LIDs; LIDS_LMCS: it has none. */
static uint8_t lmc_of(uint64_t first, uint64_t last)
{
	uint8_t lmc = 0;

	while (lmc < LIDS_LMCS && first + (1u << lmc) - 1 != last)
		lmc++;
	return lmc < LIDS_LMCS && !is_block(first, lmc) ? LIDS_LMCS : lmc;
}

/* What is wrong with a line, NULL: nothing; of one that says something guid is not 0. */
static const char *parse(struct lex line, uint64_t *guid, uint64_t *first, uint8_t *lmc)
{
	uint64_t last;

	*guid = *lmc = 0;
	if (!lex_blank(&line) || *line.p == '#')
		return NULL;
	if (!lex_number(&line, UINT64_MAX, guid) || !*guid || !lex_blank(&line))
		return "a line begins with a GUID that is not 0";
	if (!lex_number(&line, TOPO_UNICAST_LIDS, first) || !*first)
		return "after the GUID comes a unicast LID, 1 to 0xbfff";
	if (!lex_blank(&line))
		return NULL;
	if (!lex_number(&line, TOPO_UNICAST_LIDS, &last) || last < *first)
		return "the last LID is a unicast one, and not below the first";
	*lmc = lmc_of(*first, last);
	if (*lmc == LIDS_LMCS)
		return "so many LIDs a port has not, or not from this one on";
	return lex_blank(&line) ? "after the last LID nothing follows" : NULL;
}

static const char *add_line(struct lids *l, const char *text, size_t len)
{
	uint64_t guid, lid = 0;
	uint8_t lmc;
	const char *wrong = parse((struct lex){text, text + len}, &guid, &lid, &lmc);

	if (wrong || !guid)
		return wrong;
	if (lids_of(l, guid) && lids_of(l, guid) != lid)
		return "this GUID has another LID already";
	return lids_claim(l, guid, lid, lmc) ? "this LID is another GUID's already" : NULL;
}

static int fail(char error[TOPO_ERROR], const char *name, unsigned line, const char *why)
{
	snprintf(error, TOPO_ERROR, "%.300s:%u: %s", name, line, why);
	return -EINVAL;
}

int lids_read(struct lids *l, FILE *in, const char *name, char error[TOPO_ERROR])
{
	enum { LINE = 128 };
	char text[LINE];
	const char *wrong;

	for (unsigned line = 1; fgets(text, sizeof text, in); line++) {
		size_t len = strlen(text);

		if (len && text[len - 1] == '\n')
			len--;
		else if (!feof(in))
			return fail(error, name, line, "a NUL byte, or the line is too long");
		wrong = add_line(l, text, len);
		if (wrong)
			return fail(error, name, line, wrong);
	}
	if (!ferror(in))
		return 0;
	snprintf(error, TOPO_ERROR, "%.300s: cannot be read", name);
	return -EIO;
}

int lids_write(const struct lids *l, FILE *out)
{
	for (unsigned lid = 1; lid <= TOPO_UNICAST_LIDS; lid += 1u << l->lmc[lid])
		if (l->guid[lid])
			fprintf(out, "0x%016" PRIx64 " 0x%04x 0x%04x\n\n", l->guid[lid], lid,
				lid + (1u << l->lmc[lid]) - 1);
	return fflush(out) || ferror(out) ? -EIO : 0;
}
