// SPDX-License-Identifier: BSD-3-Clause
/* No port is left: ENOSPC.  In both conventions, of which the kernel's is asked for by its symbol.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"

int weft_kscif_bind(struct scif_endpt *epd, uint16_t pn);

enum { LAST = 65535, ANY = 1500 };

/* The folder of ports, which are files that their holders lock. */
static int ports_folder(void)
{
	const char *run = getenv("WEFT_RUNTIME_DIR");
	DIR *d = opendir(run ? run : "");
	struct dirent *e;
	int fd = -1;

	while (d && (e = readdir(d)) != NULL) {
		const char *dot = strrchr(e->d_name, '.');

		if (dot && strcmp(dot, ".scif") == 0)
			fd = openat(dirfd(d), e->d_name, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		die("no folder of ports");
	closedir(d);
	return fd;
}

/* One file by all their names, which we lock: they are all ours. */
static void take_all(int dir, bool take)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char name[32];

	if (take) {
		int fd = openat(dir, "all", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0 || fcntl(fd, F_OFD_SETLK, &l) < 0)
			die("cannot lock a file");
	}
	for (unsigned port = SCIF_PORT_RSVD; port <= LAST; port++) {
		snprintf(name, sizeof(name), "7.%u", port);
		if (!take) {
			unlinkat(dir, name, 0);
		} else if (linkat(dir, "all", dir, name, 0) < 0) {
			take_all(dir, false);
			printf("this file system has not that many links\n");
			exit(77);
		}
	}
}

int main(void)
{
	struct scif_portID dst = {7, ANY};
	scif_epd_t a, b;
	int dir;

	setenv("WEFT_NODE", "7", 1);
	a = scif_open();
	b = scif_open();
	dir = ports_folder();
	take_all(dir, true);
	errno = 0;
	check_case("connect");
	CHECK_EQ(scif_connect(a, &dst), -1);
	CHECK_EQ(errno, ENOSPC);
	check_case("a port of one's own choice, taken");
	CHECK_EQ(scif_bind(a, ANY), -1);
	CHECK_EQ(errno, EINVAL);
	check_case("bind, in the kernel's convention");
	CHECK_EQ(weft_kscif_bind(weft_scif_from_fd(b), 0), -ENOSPC);
	take_all(dir, false);
	check_case("free again");
	CHECK(scif_bind(a, 0) > SCIF_PORT_RSVD);
	CHECK_EQ(scif_close(a), 0);
	CHECK_EQ(scif_close(b), 0);
	return check_result();
}
