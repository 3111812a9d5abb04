/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Symbol versions.  Each release of librpma had one version node: LIBRPMA_1.0 for 0.9.0, then
 * LIBRPMA_0.10 to LIBRPMA_0.14, then LIBRPMA_1.0 again.  A function stands in the node of every
 * release that had it, so that a program linked with any of them starts.  The macros stand behind
 * the definition; what only releases 1.0 and later have is in librpma.map alone.
 */
#pragma once

/* The node that programs are linked with today: it takes the function's own name. */
#define RPMA_DEFAULT_NODE(fn, node) __asm__(".symver " #fn ", " #fn "@@@LIBRPMA_" node)

/* A second name, for the other nodes: assemblers want the first for the default alone. */
#define RPMA_OLD_NAME(fn)                                                                          \
	extern __typeof__(fn) fn##_old __attribute__((alias(#fn), visibility("default")))
#define RPMA_OLD_NODE(fn, node) __asm__(".symver " #fn "_old, " #fn "@LIBRPMA_" node)

#define RPMA_SINCE_0_13(fn)                                                                        \
	RPMA_DEFAULT_NODE(fn, "1.0");                                                              \
	RPMA_OLD_NAME(fn);                                                                         \
	RPMA_OLD_NODE(fn, "0.13");                                                                 \
	RPMA_OLD_NODE(fn, "0.14")
#define RPMA_SINCE_0_11(fn)                                                                        \
	RPMA_SINCE_0_13(fn);                                                                       \
	RPMA_OLD_NODE(fn, "0.11");                                                                 \
	RPMA_OLD_NODE(fn, "0.12")
/* Also what 0.9.0 had: its node is LIBRPMA_1.0. */
#define RPMA_SINCE_0_10(fn)                                                                        \
	RPMA_SINCE_0_11(fn);                                                                       \
	RPMA_OLD_NODE(fn, "0.10")

/* From 0.9.0 on. */
#define RPMA_UNTIL_0_10(fn)                                                                        \
	RPMA_DEFAULT_NODE(fn, "1.0");                                                              \
	RPMA_OLD_NAME(fn);                                                                         \
	RPMA_OLD_NODE(fn, "0.10")
#define RPMA_UNTIL_0_13(fn)                                                                        \
	RPMA_UNTIL_0_10(fn);                                                                       \
	RPMA_OLD_NODE(fn, "0.11");                                                                 \
	RPMA_OLD_NODE(fn, "0.12");                                                                 \
	RPMA_OLD_NODE(fn, "0.13")
