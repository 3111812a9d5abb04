// SPDX-License-Identifier: BSD-3-Clause
#include "cli/common/sanitizer.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The runtimes by what a library of that compiler and sanitizer has in its text. */
static const struct runtime {
	const char *in_file; /* a library that it needs, or a function that it calls */
	const char *where;   /* where clang has it; NULL: it is found by that name */
} runtimes[] = {
	{"libasan.so.", NULL},
	{"libubsan.so.", NULL},
	{"libclang_rt.asan", "/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-*.so"},
	{"__asan_init", "/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-*.so"},
	{"__ubsan_handle_",
		"/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.ubsan_standalone-*.so"},
};

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
