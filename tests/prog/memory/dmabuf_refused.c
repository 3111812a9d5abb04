// SPDX-License-Identifier: BSD-3-Clause
/*
 * A dma-buf that cannot be mapped, as those of GPUs cannot: an eventfd, of which this program's
 * fstatfs() and fopen() say that it is one.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

/* In the place of libc's for the libraries, too. */
#define EXPORT __attribute__((visibility("default")))

enum { DMA_BUF_MAGIC = 0x444d4142, PAGE = 4096 };

static int dmabuf = -1;

EXPORT int fstatfs(int fd, struct statfs *fs)
{
	int rc = syscall(SYS_fstatfs, fd, fs);

	if (!rc && fd == dmabuf)
		fs->f_type = DMA_BUF_MAGIC;
	return rc;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	static char info[] = "pos:\t0\nexp_name:\tthe device\n";
	void *symbol = dlsym(RTLD_NEXT, "fopen64");

	if (dmabuf >= 0 && !strncmp(path, "/proc/self/fdinfo/", 18))
		return fmemopen(info, strlen(info), "r");
	return ((FILE * (*)(const char *, const char *)) symbol)(path, mode);
}

static bool log_has(const char *log, const char *what)
{
	char line[512] = "";
	FILE *f = fopen(log, "r");
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f))
		found = strstr(line, what);
	if (f)
		fclose(f);
	return found;
}

int main(void)
{
	char log[] = "/tmp/weft-dmabuf-XXXXXX", value[64];
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	int fd = mkstemp(log);

	if (fd < 0)
		die("mkstemp");
	close(fd);
	snprintf(value, sizeof value, "warn:%s", log);
	setenv("WEFT_LOG", value, 1);
	ctx = vp_open();
	pd = ibv_alloc_pd(ctx);
	check_case("a dma-buf that cannot be mapped");
	dmabuf = eventfd(0, 0);
	CHECK(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, dmabuf, IBV_ACCESS_LOCAL_WRITE) == NULL);
	CHECK_EQ(errno, EOPNOTSUPP);
	CHECK(log_has(log, "is a dma-buf of the device that cannot be mapped"));
	check_case("the same file as what it is");
	dmabuf = -1;
	fd = eventfd(0, 0);
	CHECK(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, fd, IBV_ACCESS_LOCAL_WRITE) == NULL);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	ibv_close_device(ctx);
	unlink(log);
	return check_result();
}
