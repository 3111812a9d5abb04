// SPDX-License-Identifier: BSD-3-Clause
#include "cli/common/sanitizer.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define CLANG_DIR "/usr/lib/llvm-*/lib/clang/*/lib/linux/"

/* The runtimes by what a library of that compiler and sanitizer has in its text. */
static const struct runtime {
	const char *in_file; /* a library that it needs, or a function that it calls */
	const char *where;   /* where clang has it; NULL: it is found by that name */
} runtimes[] = {
	{"libasan.so.", NULL},
	{"libubsan.so.", NULL},
	{"libclang_rt.asan", CLANG_DIR "libclang_rt.asan-*.so"},
	{"__asan_init", CLANG_DIR "libclang_rt.asan-*.so"},
	{"__ubsan_handle_", CLANG_DIR "libclang_rt.ubsan_standalone-*.so"},
};

/* Those that a program may need as a library, by how their names begin; it wants one to be first.
 */
static const char *const needed_runtimes[] = {"libasan.so.", "libubsan.so.", "libclang_rt."};

/* "libasan.so.8" where text begins with it. */
static void copy_name(const char *text, const char *end, char *to, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && text + n < end && text[n] > ' ')
		n++;
	memcpy(to, text, n);
	to[n] = '\0';
}

static bool find_clang(const char *where, char *to, size_t size)
{
	glob_t found = {0};
	bool is = glob(where, 0, NULL, &found) == 0 && found.gl_pathc > 0;

	if (is)
		snprintf(to, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
	globfree(&found);
	return is;
}

/* A runtime of that name, which is the text of a program. */
static void find_needed(const char *name, char *to, size_t size)
{
	char where[sizeof CLANG_DIR + NAME_MAX];

	snprintf(where, sizeof where, CLANG_DIR "%s", name);
	if (strpbrk(name, "/*?[\\") || !find_clang(where, to, size))
		snprintf(to, size, "%s", name);
}

bool sanitizer_needed(const char *names, char *to, size_t size)
{
	for (size_t i = 0; i < sizeof needed_runtimes / sizeof *needed_runtimes; i++)
		for (const char *name = names; *name; name += strlen(name) + 1)
			if (!strncmp(name, needed_runtimes[i], strlen(needed_runtimes[i]))) {
				find_needed(name, to, size);
				return true;
			}
	return false;
}

int sanitizer_runtime(const char *text, size_t n, char *to, size_t size)
{
	for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
		const struct runtime *r = &runtimes[i];
		const char *at = memmem(text, n, r->in_file, strlen(r->in_file));

		if (!at)
			continue;
		copy_name(at, text + n, to, size);
		return !r->where || find_clang(r->where, to, size) ? 1 : -ENOENT;
	}
	return 0;
}
