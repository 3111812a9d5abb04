/* SPDX-License-Identifier: BSD-3-Clause */
/* What a userfaultfd of this kernel can do to hold off writers. */
#pragma once

enum uffd_grade {
	UFFD_NOTHING,   /* protects nothing (before Linux 5.7) */
	UFFD_ANONYMOUS, /* anonymous pages that are there */
	UFFD_PRESENT,   /* also those of private mappings of the arena (5.19) */
	UFFD_ALL,       /* also what is not there yet (6.4) */
};

/* Agrees with the kernel on the best that fd, a new userfaultfd, can do.  Keeps errno. */
enum uffd_grade uffd_agree(int fd);
