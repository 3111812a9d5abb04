// SPDX-License-Identifier: BSD-3-Clause
/* A library of the program, whose constructor runs before that of the preloaded shim. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int early_stat = -2, early_open = -2;

__attribute__((constructor)) static void before_the_shim(void)
{
	struct stat st;

	early_stat = stat("/sys/class/infiniband/weft0/node_type", &st) ? errno : 0;
	early_open = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
}
