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

static void release(struct lids *l, uint16_t lid)
{
	uint16_t *p = &l->first[bucket(l->guid[lid])];

	while (*p != lid)
		p = &l->next[*p];
	*p = l->next[lid];
	l->guid[lid] = 0;
	if (lid < l->least)
		l->least = lid;
}

static void enter(struct lids *l, uint64_t guid, uint16_t lid)
{
	uint16_t *first = &l->first[bucket(guid)];

	l->guid[lid] = guid;
	l->next[lid] = *first;
	*first = lid;
}

int lids_claim(struct lids *l, uint64_t guid, uint16_t lid)
{
	uint16_t old = lids_of(l, guid);

	if (!guid || !lid || lid > TOPO_UNICAST_LIDS)
		return -EINVAL;
	if (old == lid)
		return 0;
	if (l->guid[lid])
		return -EEXIST;
	if (old)
		release(l, old);
	enter(l, guid, lid);
	return 0;
}

int lids_take(struct lids *l, uint64_t guid, uint16_t lid)
{
	if (guid && lid && lid <= TOPO_UNICAST_LIDS && l->guid[lid] && l->guid[lid] != guid)
		release(l, lid);
	return lids_claim(l, guid, lid);
}

uint16_t lids_give(struct lids *l, uint64_t guid)
{
	uint16_t lid = lids_of(l, guid);

	if (lid || !guid)
		return lid;
	if (!l->least)
		l->least = 1;
	while (l->least <= TOPO_UNICAST_LIDS && l->guid[l->least])
		l->least++;
	if (l->least > TOPO_UNICAST_LIDS)
		return 0;
	enter(l, guid, l->least);
	return l->least;
}

/* What is wrong with a line, NULL: nothing; of one that says something guid is not 0. */
static const char *parse(struct lex line, uint64_t *guid, uint64_t *first)
{
	uint64_t last;

	*guid = 0;
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
	return lex_blank(&line) ? "after the last LID nothing follows" : NULL;
}

static const char *add_line(struct lids *l, const char *text, size_t len)
{
	uint64_t guid, lid = 0;
	const char *wrong = parse((struct lex){text, text + len}, &guid, &lid);

	if (wrong || !guid)
		return wrong;
	if (lids_of(l, guid) && lids_of(l, guid) != lid)
		return "this GUID has another LID already";
	return lids_claim(l, guid, lid) ? "this LID is another GUID's already" : NULL;
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
	for (unsigned lid = 1; lid <= TOPO_UNICAST_LIDS; lid++)
		if (l->guid[lid])
			fprintf(out, "0x%016" PRIx64 " 0x%04x 0x%04x\n\n", l->guid[lid], lid, lid);
	return fflush(out) || ferror(out) ? -EIO : 0;
}
