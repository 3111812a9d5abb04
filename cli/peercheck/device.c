// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/device.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first that is found counts. */
static const struct mark {
	const char *symbol, *device;
} marks[] = {
	{"nvidia_p2p_get_pages", "nvidia"},
	{"amdkfd_query_rdma_interface", "kfd"},
	{"find_vma", "vma"},
	{"mmu_notifier_register", "vma"},
	{"weft_peer_device", "own"},
};

bool device_is_library(const char *client, char *why, size_t size)
{
	int fd = open(client, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	Elf64_Ehdr hdr = {0};
	ssize_t n = fd < 0 ? -1 : pread(fd, &hdr, sizeof hdr, 0);

	err = errno;
	if (fd >= 0)
		close(fd);
	if (n == sizeof hdr && !memcmp(hdr.e_ident, ELFMAG, SELFMAG) && hdr.e_type == ET_DYN)
		return true;
	if (n < 0 && err == ESPIPE)
		snprintf(why, size, "it is a pipe, or another thing that is no file");
	else
		snprintf(why, size, "%s",
			n < 0 ? strerror(err) : "its first bytes are not those of one");
	return false;
}

static const char *look(const void *text, size_t n)
{
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (memmem(text, n, marks[i].symbol, strlen(marks[i].symbol)))
			return marks[i].device;
	return NULL;
}

const char *device_of(const char *client)
{
	int fd = open(client, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *device = NULL;
	void *text = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
		text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (text == MAP_FAILED)
		return NULL;
	device = look(text, (size_t)st.st_size);
	munmap(text, (size_t)st.st_size);
	return device;
}
