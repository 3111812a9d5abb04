// SPDX-License-Identifier: BSD-3-Clause
/* libFuzzer: the file of a program that weft run looks at, with anything in it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/common/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct program_verdict verdict;
	char path[32];
	char *cmd[] = {path, NULL};

	if (fd < 0)
		fd = memfd_create("program", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	program_look(cmd, "/nowhere", &verdict);
	if (!memchr(verdict.why, 0, sizeof verdict.why) ||
		!memchr(verdict.remedy, 0, sizeof verdict.remedy) ||
		!memchr(verdict.runtime, 0, sizeof verdict.runtime))
		abort();
	return 0;
}
