// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/sanitizer.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/common/say.h"

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

/* 1: *to is to be preloaded; 0: nothing is; -ENOENT: *to cannot be found. */
static int find(const char *text, size_t n, char *to, size_t size)
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

static int look_into(const char *client, char *to, size_t size)
{
	int fd = open(client, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
	struct stat st;
	void *text;

	if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
		if (fd >= 0)
			close(fd);
		return 0; /* to load it will fail, and say why */
	}
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (text == MAP_FAILED)
		return 0;
	rc = find(text, (size_t)st.st_size, to, size);
	munmap(text, (size_t)st.st_size);
	return rc;
}

/* The first value counts for the user's options, and ours come first. */
static void add_options(const char *name, const char *ours)
{
	const char *theirs = secure_getenv(name);
	char all[1024];

	snprintf(all, sizeof all, "%s%s%s", ours, theirs ? ":" : "", theirs ? theirs : "");
	setenv(name, all, 1);
}

int sanitizer_preload(const char *client, const char *self, char **argv)
{
	const char *loaded = secure_getenv("LD_PRELOAD");
	char runtime[PATH_MAX], all[2 * PATH_MAX];
	int rc = look_into(client, runtime, sizeof runtime);

	if (rc == 0 || (loaded && strstr(loaded, runtime)))
		return EXIT_OK;
	if (rc < 0)
		return cli_fail("%s needs the runtime of its sanitizer (%s), which is not there: "
				"compile it with gcc, or with -shared-libsan",
			client, runtime);
	snprintf(all, sizeof all, "%s%s%s", runtime, loaded ? ":" : "", loaded ? loaded : "");
	setenv("LD_PRELOAD", all, 1);
	add_options("ASAN_OPTIONS", "detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_abort=0:"
				    "abort_on_error=1:verify_asan_link_order=0");
	add_options("UBSAN_OPTIONS", "halt_on_error=1:abort_on_error=1");
	execv(self, argv);
	return cli_fail("cannot start %s again: %s", self, strerror(errno));
}
