/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a fabric with a topology has in the runtime directory, so that a weftd that is started anew
 * comes up with the same links and LIDs:
 *
 *   NAME.topo  the netlist; `do` lines say what was changed since.  Its first line may be
 *              `# sm=off`: no bring-up subnet manager.  rdv/topology.h writes it first.
 *   NAME.lids  GUIDs and LIDs (sm/lids.h)
 */
#pragma once

#include "rdv/paths.h"
#include "sm/lids.h"
#include "topo/netlist.h"

/* Reads NAME.topo.  -ENOENT: there is none, why is empty; -errno with a reason in why. */
int subnet_files_get(
	const struct rdv_paths *p, struct netlist *out, bool *sm_off, char *why, size_t size);

/* Appends a command to NAME.topo, all of it or nothing.  -errno. */
int subnet_files_add(const struct rdv_paths *p, const char *command);

/* Adds what NAME.lids has; what is wrong there is logged, and the rest of it does not count. */
void subnet_files_get_lids(const struct rdv_paths *p, struct lids *l);

/* Replaces NAME.lids as a whole; an error is logged. */
void subnet_files_put_lids(const struct rdv_paths *p, const struct lids *l);

/* The fabric ends for good: removes both. */
void subnet_files_forget(const struct rdv_paths *p);

/* Calls fn with the number of each node whose device files an earlier weftd has left. */
void subnet_files_each_tree(
	const struct rdv_paths *p, void (*fn)(void *arg, uint32_t node), void *arg);
