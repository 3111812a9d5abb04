// SPDX-License-Identifier: BSD-3-Clause
#include "topo/load.h"

#include "topo/generate.h"

int topo_load(struct netlist *out, const char *what, char error[TOPO_ERROR])
{
	if (!generate_is_spec(what))
		return netlist_load(out, what, error);
	*out = (struct netlist){0};
	return generate(&out->topo, what, error);
}
