/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The topology of a fabric, for `weft up`, `weft topo` and `weft run --node`.  fabric, and errors
 * that all have in common, as in rdv/admin.h; -EOPNOTSUPP: the fabric has no topology.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdv/proto.h"

/* The first line of NAME.topo, if the fabric has no bring-up subnet manager. */
#define TOPOLOGY_SM_OFF "# sm=off\n"

/*
 * Starts a fabric with the topology of a netlist; no_sm: without the bring-up subnet manager.  The
 * text stays as NAME.topo in the runtime directory until rdv_shutdown(), or rdv_forget_topology()
 * where weftd does not run any more.  *pid as in rdv_ping().
 * Neither logged: -EEXIST: a weftd serves that fabric already; -EBUSY: somebody else is just
 * starting it with a topology.
 */
int rdv_start_topology(
	const char *fabric, const char *netlist, size_t len, bool no_sm, int32_t *pid);

/* Removes what a weftd that was killed has left of its topology. */
void rdv_forget_topology(const char *fabric);

/*
 * The node of that id, description, GUID (0x...) or number; its device files are there unless
 * out->files_errno says why not.  Starts weftd only for a fabric that has a topology.  -ENOENT:
 * there is no such node; -ENOTCONN as there.
 */
int rdv_find_node(const char *fabric, const char *name, struct proto_node_found *out);

/* The topology as it is now, as text that the caller frees. */
int rdv_topology(const char *fabric, enum proto_topo_form form, char **text, size_t *len);

/*
 * Carries out a console command.  *text, the caller's, is what it printed; or, if done->error is
 * below 0, why it was not carried out.  -EMSGSIZE: the line is too long.
 */
int rdv_topology_do(
	const char *fabric, const char *line, struct proto_topo_done *done, char **text);
