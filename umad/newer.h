/* SPDX-License-Identifier: BSD-3-Clause */
/* What the public interface of libibumad got after version 44 of rdma-core. */
#pragma once

#include "umad/umad.h"

#ifndef HEADER_HAS_UMAD_PAIRS
#pragma GCC visibility push(default)

/*
 * The devices through which one port sends SMPs and GMPs.  They differ where an adapter shows a
 * port as two devices, one without a subnet management interface.  "": there is none.
 */
struct umad_ca_pair {
	char smi_name[UMAD_CA_NAME_LEN];
	uint32_t smi_preferred_port;
	char gsi_name[UMAD_CA_NAME_LEN];
	uint32_t gsi_preferred_port;
};

/* ---- IBUMAD_1.3 ---- */

/* umad_open_port(), but only ports that have a subnet management interface are chosen. */
int umad_open_smi_port(const char *ca_name, int portnum);

/* ---- IBUMAD_1.4 ---- */

/* Fills up to max pairs, without preferred ports.  Returns how many, -1 if memory is short. */
int umad_get_smi_gsi_pairs(struct umad_ca_pair cas[], size_t max);
/*
 * The pair that has device devname (NULL: any), with port portnum (0: the first whose link is not
 * down), in *ca_pair.  enforce_smi: only one with a subnet management interface.  0, also with an
 * empty pair if there is none at all; -1: no memory; -ENODEV, which is in errno, too: none fits.
 */
int umad_get_smi_gsi_pair_by_ca_name(
	const char *devname, uint8_t portnum, struct umad_ca_pair *ca_pair, unsigned enforce_smi);

#pragma GCC visibility pop
#endif
