// SPDX-License-Identifier: BSD-3-Clause
/*
 * libFuzzer: a netlist with anything in it.  What is taken is a topology that could be a subnet,
 * reads back as itself when it is printed, and can be drawn.  What is refused has a reason, of one
 * line.  Files that it includes are looked for where there are none.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/topo_same.h"
#include "topo/check.h"
#include "topo/draw.h"

static void draw(const struct topo *t)
{
	size_t len = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);
	json_t *o = topo_json(t);

	if (!out || !o || topo_draw_dot(t, out) || topo_draw_svg(t, out))
		abort();
	fclose(out);
	free(text);
	json_decref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[TOPO_ERROR];
	struct topo_fault fault;
	struct netlist n;

	if (netlist_parse(&n, "/proc/none/net", (const char *)data, size, error)) {
		if (!*error || strchr(error, '\n') || n.topo.n_nodes || n.n_commands)
			abort();
		return 0;
	}
	if (topo_check(&n.topo, &fault) || !topo_comes_back(&n.topo, error))
		abort();
	draw(&n.topo);
	netlist_free(&n);
	return 0;
}
