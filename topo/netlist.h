/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Netlists: the topology files of ibsim, and what ibnetdiscover(8) prints.  weft-fabric(5) has the
 * format, and what differs from ibsim.
 */
#pragma once

#include "topo/build.h"

struct netlist {
	struct topo topo;
	char **commands; /* of do lines, in order */
	uint32_t n_commands;
};

/*
 * Reads the netlist at path, "-": standard input, and what it includes.  0; -EINVAL, -ENOMEM, or
 * what open(2) and read(2) say, with the file, the line and the reason in error.
 */
int netlist_load(struct netlist *out, const char *path, char error[TOPO_ERROR]);

/* As netlist_load, of len bytes at text; name stands for the file in messages. */
int netlist_parse(struct netlist *out, const char *name, const char *text, size_t len,
	char error[TOPO_ERROR]);

/* Frees all; it is as zeroed. */
void netlist_free(struct netlist *n);
