/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tree of devices as weftd keeps it, in a runtime directory of its own; no weftd is started.
 * Paths are relative to its sys/class.  A step that fails ends the program.
 */
#pragma once

#include <stdint.h>

struct tree_port {
	const char *state;      /* NULL: "4: ACTIVE" */
	const char *phys_state; /* NULL: "5: LinkUp" */
	const char *link_layer; /* NULL: "InfiniBand" */
	uint64_t guid;          /* host order */
	unsigned cap_mask;
	unsigned n_pkeys; /* 0: 2 */
};

/* Makes it, empty but for infiniband_mad/abi_version, and names it in the environment. */
void tree_start(void);

/* Removes what is in it, and its folder if `all`. */
void tree_clear(int all);

/* A device; node_type as in sysfs ("1: CA"). */
void tree_ca(const char *name, const char *node_type);

/* A port of it, with umad number (negative: none). */
void tree_add_port(const char *ca, int portnum, int number, const struct tree_port *port);

/* Writes or removes one file. */
void tree_set(const char *path, const char *text);
void tree_del(const char *path);

/* Where sys/class of the tree lies. */
const char *tree_class_dir(void);
