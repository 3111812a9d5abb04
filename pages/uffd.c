// SPDX-License-Identifier: BSD-3-Clause
#include "pages/uffd.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* Of newer kernel headers than Debian 12's. */
enum { WP_SHMEM = 1 << 12, WP_UNPOPULATED = 1 << 13 };

static const uint64_t features[] = {
	[UFFD_ANONYMOUS] = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	[UFFD_PRESENT] = UFFD_FEATURE_PAGEFAULT_FLAG_WP | WP_SHMEM,
	[UFFD_ALL] = UFFD_FEATURE_PAGEFAULT_FLAG_WP | WP_SHMEM | WP_UNPOPULATED,
};

enum uffd_grade uffd_agree(int fd)
{
	enum uffd_grade g = UFFD_ALL;
	int saved = errno;

	for (; g != UFFD_NOTHING; g--) {
		struct uffdio_api api = {.api = UFFD_API, .features = features[g]};

		if (ioctl(fd, UFFDIO_API, &api) == 0)
			break;
	}
	errno = saved;
	return g;
}
