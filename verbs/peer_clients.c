// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/peer_clients.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/at_open.h"
#include "base/library.h"
#include "base/log.h"
#include "peermem/gpu.h"
#include "peermem/refused.h"
#include "peermem/registry.h"

static AT_OPEN_DATA pthread_once_t once = PTHREAD_ONCE_INIT;
/* A client that opens the device itself does not wait for that. */
static __thread bool loading __attribute__((tls_model("initial-exec")));

static void load(const char *path)
{
	const unsigned before = peer_registry_count();
	void *library;
	int rc;

	/* If it ends the process, or hangs, this is the last line. */
	log_line(LOG_LVL_INFO, "WEFT_PEER_CLIENTS: loading %s", path);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		log_line(LOG_LVL_ERROR, "WEFT_PEER_CLIENTS: %s", dlerror());
		peer_refused();
		return;
	}
	rc = library_init(library);
	if (rc || peer_registry_count() == before)
		peer_refused();
	if (rc)
		log_line(LOG_LVL_ERROR, "WEFT_PEER_CLIENTS: init_module of %s answered %d", path,
			rc);
	else if (peer_registry_count() == before)
		log_line(LOG_LVL_WARN, "WEFT_PEER_CLIENTS: %s registers no peer client", path);
	else
		log_line(LOG_LVL_INFO, "WEFT_PEER_CLIENTS: %s loaded", path);
}

static void load_all(void)
{
	const char *named = secure_getenv("WEFT_PEER_CLIENTS");
	char *list = named && *named ? strdup(named) : NULL, *rest = list, *path;

	loading = true;
	while ((path = strsep(&rest, ":")))
		if (*path)
			load(path);
	loading = false;
	free(list);
}

void peer_clients_load(void)
{
	const int saved = errno;

	if (!loading)
		pthread_once(&once, load_all);
	gpu_look();
	errno = saved;
}
