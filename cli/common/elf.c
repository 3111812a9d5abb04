// SPDX-License-Identifier: BSD-3-Clause
#include "cli/common/elf.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* More headers and entries than any program has: a file of garbage names as many as it likes. */
enum { HEADERS_MAX = 256, ENTRIES_MAX = 4096, ENTRIES_AT_ONCE = 64 };

enum { OURS = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB };

/* A program header and a dynamic entry of either class, as far as they matter. */
struct part {
	uint32_t type;
	uint64_t offset, addr, len;
};

struct entry {
	int64_t tag;
	uint64_t value;
};

struct file {
	int fd;
	bool wide; /* ELFCLASS64 */
	uint64_t headers;
	unsigned n_headers, header_size;
};

/* All n bytes at offset; false: they are not there. */
static bool get(const struct file *e, uint64_t offset, void *to, size_t n)
{
	return offset <= INT64_MAX && pread(e->fd, to, n, (off_t)offset) == (ssize_t)n;
}

/* A text that ends within size, cut off there if it does not; false: there is none. */
static bool get_text(const struct file *e, uint64_t offset, char *to, size_t size)
{
	ssize_t n = offset <= INT64_MAX ? pread(e->fd, to, size - 1, (off_t)offset) : -1;

	to[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static bool get_part(const struct file *e, unsigned i, struct part *p)
{
	const uint64_t at = e->headers + (uint64_t)i * e->header_size;
	Elf64_Phdr wide;
	Elf32_Phdr narrow;

	if (e->wide) {
		if (!get(e, at, &wide, sizeof wide))
			return false;
		*p = (struct part){wide.p_type, wide.p_offset, wide.p_vaddr, wide.p_filesz};
	} else {
		if (!get(e, at, &narrow, sizeof narrow))
			return false;
		*p = (struct part){narrow.p_type, narrow.p_offset, narrow.p_vaddr, narrow.p_filesz};
	}
	return true;
}

/* The first part of a type; for PT_LOAD, that which has addr in it. */
static bool find_part(const struct file *e, uint32_t type, uint64_t addr, struct part *p)
{
	for (unsigned i = 0; i < e->n_headers && get_part(e, i, p); i++)
		if (p->type == type &&
			(type != PT_LOAD || (addr >= p->addr && addr - p->addr < p->len)))
			return true;
	return false;
}

/* ---- the dynamic section ---- */

static size_t entry_size(const struct file *e)
{
	return e->wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
}

/* Entry i of those read at once. */
static struct entry entry_at(const struct file *e, const void *text, unsigned i)
{
	Elf64_Dyn wide;
	Elf32_Dyn narrow;

	if (e->wide) {
		memcpy(&wide, (const char *)text + i * sizeof wide, sizeof wide);
		return (struct entry){wide.d_tag, wide.d_un.d_val};
	}
	memcpy(&narrow, (const char *)text + i * sizeof narrow, sizeof narrow);
	return (struct entry){narrow.d_tag, narrow.d_un.d_val};
}

/* Calls with each entry until the last; it returns false where it has seen enough. */
static void each_entry(const struct file *e, const struct part *dynamic,
	bool (*with)(void *arg, const struct entry *d), void *arg)
{
	char text[ENTRIES_AT_ONCE * sizeof(Elf64_Dyn)];
	uint64_t n = dynamic->len / entry_size(e), at = 0;

	n = n < ENTRIES_MAX ? n : ENTRIES_MAX;
	while (at < n) {
		const unsigned now =
			n - at < ENTRIES_AT_ONCE ? (unsigned)(n - at) : (unsigned)ENTRIES_AT_ONCE;

		if (!get(e, dynamic->offset + at * entry_size(e), text, now * entry_size(e)))
			return;
		for (unsigned i = 0; i < now; i++) {
			const struct entry d = entry_at(e, text, i);

			if (d.tag == DT_NULL || !with(arg, &d))
				return;
		}
		at += now;
	}
}

struct reading {
	const struct file *e;
	struct elf_facts *f;
	uint64_t strings; /* where in the file they lie */
	bool has_strings, has_runpath;
	size_t needed; /* bytes used of f->needed */
};

/* First where the strings are, and whether DT_RUNPATH is there. */
static bool look(void *arg, const struct entry *d)
{
	struct reading *r = arg;
	struct part p;

	if (d->tag == DT_STRTAB && find_part(r->e, PT_LOAD, d->value, &p)) {
		r->strings = p.offset + (d->value - p.addr);
		r->has_strings = true;
	}
	r->has_runpath |= d->tag == DT_RUNPATH;
	r->f->has_soname |= d->tag == DT_SONAME;
	return true;
}

/* Then what they are for. */
static bool take(void *arg, const struct entry *d)
{
	struct reading *r = arg;
	const size_t left = ELF_NAMES - 1 - r->needed;
	char *to = r->f->needed + r->needed;

	if (d->tag == DT_RPATH && !r->has_runpath)
		get_text(r->e, r->strings + d->value, r->f->rpath, sizeof r->f->rpath);
	if (d->tag != DT_NEEDED || left < 2)
		return true;
	if (get_text(r->e, r->strings + d->value, to, left < NAME_MAX ? left : NAME_MAX) && *to)
		r->needed += strlen(to) + 1;
	r->f->needed[r->needed] = '\0';
	return true;
}

static void read_dynamic(const struct file *e, struct elf_facts *f)
{
	struct reading r = {.e = e, .f = f};
	struct part dynamic;

	if (!find_part(e, PT_DYNAMIC, 0, &dynamic))
		return;
	each_entry(e, &dynamic, look, &r);
	if (r.has_strings)
		each_entry(e, &dynamic, take, &r);
}

/* ---- the whole ---- */

static bool read_header(struct file *e, struct elf_facts *f)
{
	Elf64_Ehdr wide;
	Elf32_Ehdr narrow;

	if (!get(e, 0, &narrow, sizeof narrow) || memcmp(narrow.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	e->wide = narrow.e_ident[EI_CLASS] == ELFCLASS64;
	f->bits = e->wide ? 64 : 32;
	f->foreign = narrow.e_ident[EI_DATA] != OURS;
	f->machine = f->foreign ? __builtin_bswap16(narrow.e_machine) : narrow.e_machine;
	if (!e->wide) {
		e->headers = narrow.e_phoff;
		e->n_headers = narrow.e_phnum;
		e->header_size = narrow.e_phentsize;
		return true;
	}
	if (!get(e, 0, &wide, sizeof wide))
		return false;
	e->headers = wide.e_phoff;
	e->n_headers = wide.e_phnum;
	e->header_size = wide.e_phentsize;
	return true;
}

int elf_read(int fd, struct elf_facts *f)
{
	struct file e = {.fd = fd};
	struct part interp;

	memset(f, 0, sizeof *f);
	if (!read_header(&e, f))
		return -ENOEXEC;
	if (f->foreign)
		return 0;
	if (e.n_headers > HEADERS_MAX)
		e.n_headers = HEADERS_MAX;
	if (find_part(&e, PT_INTERP, 0, &interp))
		get_text(&e, interp.offset, f->interp, sizeof f->interp);
	read_dynamic(&e, f);
	return 0;
}
