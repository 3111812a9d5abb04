/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * For who is about to read the tree of device files (fabric/sysfs.h), which weftd keeps up to date:
 * looks for weftd, once a second at most, and starts it unless WEFT_AUTOSTART=0.  Blocks as
 * rdv_start() does (rdv/admin.h), and logs what it logs; waits for no other thread.  Without weftd
 * the tree is missing or old, which the reader sees.  Of a fabric with a topology it has weftd make
 * the tree of the node of WEFT_NODE; that there is no such node is logged.
 */
void rdv_look(void);

/* Logs, once, that WEFT_NODE names no node of the fabric. */
void rdv_no_node(const char *fabric);
