// SPDX-License-Identifier: BSD-3-Clause
#include "cli/check_peers.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/check.h"

/* 0, or -errno: it cannot be read.  One without a slash is for the dynamic loader to find. */
static int look_for(const char *path)
{
	return strchr(path, '/') && access(path, R_OK) ? -errno : 0;
}

/* The first of list, which is cut, that cannot be read; *n: how many were looked for. */
static const char *first_missing(char *list, unsigned *n, int *err)
{
	for (char *path; (path = strsep(&list, ":"));) {
		if (!*path)
			continue;
		++*n;
		*err = look_for(path);
		if (*err)
			return path;
	}
	return NULL;
}

void check_peer_clients(struct check *c)
{
	const char *named = secure_getenv("WEFT_PEER_CLIENTS"), *missing;
	char *list = strdup(named ? named : "");
	unsigned n = 0;
	int err = 0;

	missing = list ? first_missing(list, &n, &err) : NULL;
	if (missing)
		check_set(c, CHECK_FAIL, "correct WEFT_PEER_CLIENTS", "%.300s: %s", missing,
			strerror(-err));
	else if (n)
		check_set(c, CHECK_OK, NULL, "WEFT_PEER_CLIENTS names %u, which are there", n);
	else
		check_set(c, CHECK_OK, NULL, "WEFT_PEER_CLIENTS names none");
	free(list);
}

void check_gpus(struct check *c)
{
	const char *wanted = secure_getenv("WEFT_GPU");
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (wanted && !strcmp(wanted, "0"))
		check_set(c, CHECK_WARN, "unset it to register memory of GPUs", "WEFT_GPU=0");
	else if (driver)
		check_set(c, CHECK_OK, NULL,
			"libcuda.so.1 is there; programs that load it can register its memory");
	else
		check_set(c, CHECK_OK, NULL, "no libcuda.so.1; only CUDA programs need it");
	if (driver)
		dlclose(driver);
}
