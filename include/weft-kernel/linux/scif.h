/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the SCIF driver's header is called in the kernel, in a folder of its own, so that it hides
 * nothing of the system's unless it is asked to: -I<prefix>/include/weft-kernel.
 */
#include "../../weft/scif_kernel.h"
