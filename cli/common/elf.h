/* SPDX-License-Identifier: BSD-3-Clause */
/* What the file of a program says to the kernel and the dynamic linker.  It may hold anything. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { ELF_TEXT = 4096, ELF_NAMES = 8192 };

struct elf_facts {
	uint8_t bits;     /* 32 or 64 */
	bool foreign;     /* of the other byte order: the rest but machine is not filled in */
	uint16_t machine; /* EM_... of <elf.h> */
	/* The dynamic linker that it asks for; "": it is linked statically. */
	char interp[PATH_MAX];
	bool has_soname; /* with no interp: it is a dynamic linker, or a library */
	/* DT_RPATH, as it stands there; "": none, or DT_RUNPATH makes it void. */
	char rpath[ELF_TEXT];
	/* Names of libraries, each ended by a NUL, and one more behind all. */
	char needed[ELF_NAMES];
};

/*
 * Reads them from a file; of what does not fit the first part.  -ENOEXEC: it is no program in ELF;
 * what is broken inside is as if it was not there.  Reads at most a few hundred KiB.
 */
int elf_read(int fd, struct elf_facts *f);
