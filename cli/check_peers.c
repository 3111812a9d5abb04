// SPDX-License-Identifier: BSD-3-Clause
#include "cli/check_peers.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check.h"
#include "cli/common/dirs.h"
#include "cli/peercheck/loads.h"

/* The first of list, which is cut, that registers no client, and why; *n: how many do. */
static const char *first_wrong(
	char *list, const char *libverbs, unsigned *n, char *why, size_t size)
{
	for (char *path; (path = strsep(&list, ":"));) {
		if (!*path)
			continue;
		if (!peer_client_loads(path, libverbs, why, size))
			return path;
		++*n;
	}
	return NULL;
}

void check_peer_clients(struct check *c)
{
	const char *named = secure_getenv("WEFT_PEER_CLIENTS"), *wrong;
	char libverbs[PATH_MAX + sizeof "/libibverbs.so.1"], why[256] = "";
	char *list = strdup(named ? named : "");
	struct cli_dirs dirs;
	unsigned n = 0;

	if (!list || cli_find_dirs(&dirs))
		dirs.lib[0] = 0;
	snprintf(libverbs, sizeof libverbs, "%s/libibverbs.so.1", dirs.lib);
	wrong = list ? first_wrong(list, libverbs, &n, why, sizeof why) : NULL;
	if (wrong)
		check_set(c, CHECK_FAIL, "correct WEFT_PEER_CLIENTS", "%.150s: %s", wrong, why);
	else if (n)
		check_set(c, CHECK_OK, NULL,
			"WEFT_PEER_CLIENTS names %u librar%s, each loads and registers a client", n,
			n == 1 ? "y" : "ies");
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
