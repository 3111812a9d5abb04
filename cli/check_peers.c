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

enum { CLIENTS_MAX = 64 };

/* Cuts list into its paths; how many. */
static unsigned split(char *list, char **path)
{
	unsigned n = 0;

	for (char *one; n < CLIENTS_MAX && (one = strsep(&list, ":"));)
		if (*one)
			path[n++] = one;
	return n;
}

void check_peer_clients(struct check *c)
{
	const char *named = secure_getenv("WEFT_PEER_CLIENTS");
	char libverbs[PATH_MAX + sizeof "/libibverbs.so.1"], why[256] = "";
	char *list = strdup(named ? named : ""), *path[CLIENTS_MAX];
	const unsigned n = list ? split(list, path) : 0;
	struct cli_dirs dirs;
	unsigned good = 0;

	if (!n || cli_find_dirs(&dirs))
		dirs.lib[0] = 0;
	snprintf(libverbs, sizeof libverbs, "%s/libibverbs.so.1", dirs.lib);
	if (n)
		good = peer_clients_load(path, n, libverbs, why, sizeof why);
	if (good < n)
		check_set(
			c, CHECK_FAIL, "correct WEFT_PEER_CLIENTS", "%.150s: %s", path[good], why);
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
