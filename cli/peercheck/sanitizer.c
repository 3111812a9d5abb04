// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/sanitizer.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/common/sanitizer.h"
#include "cli/common/say.h"

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
	rc = sanitizer_runtime(text, (size_t)st.st_size, to, size);
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
