// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/peer_counters.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"

static json_t *status(void)
{
	const char *weftd = getenv("WEFT_DAEMON");
	char command[512];
	json_t *all;
	FILE *f;

	if (!weftd || strlen(weftd) < 2)
		die("WEFT_DAEMON is not set");
	/* weft lies beside weftd. */
	snprintf(command, sizeof command, "%.*s status --json", (int)strlen(weftd) - 1, weftd);
	f = popen(command, "r");
	all = f ? json_loadf(f, 0, NULL) : NULL;
	if (f)
		pclose(f);
	if (!all)
		die("weft status answers nothing");
	return all;
}

long peer_counter(const char *client, const char *counter)
{
	json_t *all = status(), *peer;
	long found = -1;
	size_t i;

	json_array_foreach(json_object_get(all, "peers"), i,
		peer) if (!strcmp(client, json_string_value(json_object_get(peer, "name")) ?: ""))
		found = json_integer_value(json_object_get(peer, counter));
	json_decref(all);
	return found;
}
